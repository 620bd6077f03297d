/* SPDX-License-Identifier: BSD-3-Clause */
/* Claims: kept in order, saved and loaded, made coordinates where nobody else knows. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "test.h"
#include "topo/fabrics/fabric.h"
#include "topo/groups.h"

static char *two[] = {"a", "b"}, *one[] = {"c"};

static void make(struct topo *t)
{
    topo_init(t);
    for (const char *h = "abc"; *h; h++)
        topo_add_endpoint(t, topo_add_host(t, (char[]){*h, 0}), ENDPOINT_GPU);
    group_add(t, SOURCE_SLURM, LEVEL_RACK, "topology.conf", "r1", two, 2);
    group_add(t, SOURCE_SLURM, LEVEL_RACK, "topology.conf", "empty", NULL, 0);
    group_add_host(t, SOURCE_LABEL, LEVEL_RACK, "nodes.json", "x", "a");
    group_add_host(t, SOURCE_LABEL, LEVEL_RACK, "nodes.json", "x", "elsewhere");
    group_add(t, SOURCE_SLURM, LEVEL_RACK, "topology.conf", "r2", one, 1);
    group_add_host(t, SOURCE_TOPOGRAPH, LEVEL_SPINE, "m.yaml", "su-1", "b");
}

static void check_sets(const struct topo *t)
{
    int count;
    struct group_set *s = group_sets(t, &count);

    assert_int_equal(count, 3);
    assert_int_equal(s[0].groups, 3);
    assert_string_equal(s[0].group[1]->name, "empty");
    assert_int_equal(s[0].group[1]->hosts, 0);
    assert_int_equal(s[1].groups, 1);
    assert_int_equal(s[1].group[0]->hosts, 2);
    int *of = group_set_of(&s[0], t);
    assert_int_equal(of[0], 0);
    assert_int_equal(of[1], 0);
    assert_int_equal(of[2], 2);
    free(of);
    of = group_set_of(&s[1], t);
    assert_int_equal(of[0], 0);
    assert_int_equal(of[1], -1);
    free(of);
    group_sets_free(s, count);
}

TEST(test_applied_and_saved)
{
    struct topo t, back, copy;
    struct err err;

    make(&t);
    check_sets(&t);
    groups_apply(&t);
    const struct place *a = &t.endpoint[0].place, *b = &t.endpoint[1].place;
    assert_int_equal(a->at[LEVEL_RACK], b->at[LEVEL_RACK]);
    assert_string_equal(t.group[LEVEL_RACK].name[a->at[LEVEL_RACK]], "r1");
    assert_int_equal(t.endpoint[2].source[LEVEL_RACK], SOURCE_SLURM);
    assert_int_equal(a->at[LEVEL_SPINE], -1);
    assert_int_equal(b->at[LEVEL_SPINE], 0);
    assert_int_equal(t.tiers, 2); /* rack, rest */
    char *text = topo_text(&t);
    assert_int_equal(topo_parse(&back, text, strlen(text), "t.json", &err), 0);
    check_sets(&back);
    assert_int_equal(back.endpoint[0].place.at[LEVEL_SPINE], -1);
    assert_int_equal(back.endpoint[1].place.at[LEVEL_SPINE], 0);
    assert_int_equal(back.endpoint[1].source[LEVEL_SPINE], SOURCE_TOPOGRAPH);
    topo_copy(&copy, &back);
    check_sets(&copy);
    groups_add_hosts(&copy);
    assert_int_equal(copy.hosts, 4);
    assert_string_equal(copy.host[3].name, "elsewhere");
    free(text);
    topo_free(&t);
    topo_free(&back);
    topo_free(&copy);
}

/* With rails a host hangs on several leaves: the set of them is its group. */
TEST(test_host_groups)
{
    struct fabric f;
    struct topo t;
    struct err err;
    char **name;
    int groups;

    assert_int_equal(fabric_load(&f, "topo/fabrics/hgx-h100.json", &err), 0);
    assert_int_equal(fabric_topo(&f, 4, false, &t, &err), 0);
    int *of = groups_of_hosts(&t, LEVEL_LEAF, &name, &groups);
    assert_true(f.rail_optimised && f.nics_per_host == 8);
    assert_int_equal(groups, (t.hosts + f.hosts_per_leaf - 1) / f.hosts_per_leaf);
    assert_string_equal(name[0], "leaf-00-0..leaf-00-7 (8)");
    for (int h = 0; h < t.hosts; h++)
        assert_int_equal(of[h], h / f.hosts_per_leaf);
    for (int g = 0; g < groups; g++)
        free(name[g]);
    free(name);
    free(of);
    of = groups_of_hosts(&t, LEVEL_SPINE, &name, &groups);
    assert_int_equal(groups, 0);
    assert_int_equal(of[0], -1);
    free(of);
    fabric_free(&f);
    topo_free(&t);
}

/* What cannot be made from the table when it is compiled. */
TEST(test_schemas_have_every_source)
{
    static const char *const schema[] = {"topo/schema/topology.schema.json",
                                         "src/schema/matrix.schema.json"};
    char *list = mem_strdup("\"source\": {\"enum\": ["), *text;

    for (int i = 0; i < SOURCE_COUNT; i++)
        list = mem_append(list, "%s\"%s\"", i ? ", " : "", source_name[i]);
    list = mem_append(list, "]}");
    for (size_t i = 0; i < sizeof(schema) / sizeof(*schema); i++) {
        assert_int_equal(file_read(&text, NULL, schema[i], 1 << 24, NULL), 0);
        if (!strstr(text, list))
            fail_msg("%s has no %s", schema[i], list);
        free(text);
    }
    free(list);
}
