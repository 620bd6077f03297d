/* SPDX-License-Identifier: BSD-3-Clause */
/* Models and graphs of topograph as claims. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "test.h"
#include "topo/groups.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/sources.h"

#define SEEDS "tests/fuzz/seeds/topograph/"

static void check(const struct topo *t, enum level level, const char *want)
{
    char *text = mem_strdup("");

    for (int i = 0; i < t->declared_groups; i++) {
        const struct declared_group *c = &t->declared_group[i];
        if (c->level != level)
            continue;
        assert_int_equal(c->source, SOURCE_TOPOGRAPH);
        char *hosts = hostlist_fold(c->host, c->hosts);
        char *more = mem_printf("%s%s%s: %s", text, *text ? "; " : "", c->name, hosts);
        free(hosts);
        free(text);
        text = more;
    }
    assert_string_equal(text, want);
    free(text);
}

static void read_file(struct topo *t, const char *path)
{
    struct err err = {0, ""};

    topo_init(t);
    if (host_read(t, -1, path, YAML_BYTES, topograph_parse, &err) < 0)
        fail_msg("%s", err.text);
}

TEST(test_model)
{
    struct topo t;

    read_file(&t, SEEDS "model.yaml");
    assert_string_equal(t.declared_group[0].origin, "model.yaml");
    check(&t, LEVEL_DOMAIN, "nvl-a: n[01-03]; nvl-b: n[04-06]"); /* the first from its spine */
    check(&t, LEVEL_RACK, "r1: n[01-03]; r2: n[04-06]");
    check(&t, LEVEL_LEAF, "leaf-1: n[01-03]; leaf-2: n[04-06]");
    check(&t, LEVEL_SPINE, "spine-1: n[01-03]; spine-2: n[04-06]");
    assert_int_equal(t.unseens, 0); /* the switch that is above all says nothing */
    for (int i = 0; i < t.declared_groups; i++)
        assert_int_equal(t.declared_group[i].above, 0);
    topo_free(&t);
}

TEST(test_old_model)
{
    struct topo t;

    read_file(&t, SEEDS "model-old.yaml");
    check(&t, LEVEL_DOMAIN, "nvl1: [1101-1102]; nvl2: [1201-1202]");
    check(&t, LEVEL_LEAF, "s1: [1101-1102]; s2: [1201-1202]");
    check(&t, LEVEL_SPINE, "s3: [1101-1102,1201-1202]");
    topo_free(&t);
}

TEST(test_graph)
{
    struct topo t;
    struct err err;

    read_file(&t, SEEDS "graph.json");
    check(&t, LEVEL_DOMAIN, "nvl-1: i-a,i-b");
    check(&t, LEVEL_LEAF, "leaf1: i-a,i-b; leaf2: i-c");
    check(&t, LEVEL_SPINE, "spine1: i-a,i-b,i-c");
    topo_free(&t);
    /* Instances of a model are "i-" and the host; hosts that are known keep their names. */
    topo_init(&t);
    topo_add_host(&t, "a");
    topo_add_host(&t, "b");
    assert_int_equal(host_read(&t, -1, SEEDS "graph.json", YAML_BYTES, topograph_parse, &err), 0);
    check(&t, LEVEL_LEAF, "leaf1: a,b; leaf2: i-c");
    topo_free(&t);
}

/* The models that topograph ships, where they are at hand: counts as its own comments tell them. */
TEST(test_shipped)
{
    static const struct {
        const char *file;
        int domains, racks, leaves, spines, hosts;
    } row[] = {
        {"nvl72", 4, 0, 4, 2, 72},
        {"small-tree", 2, 0, 2, 1, 6},
        {"medium", 4, 0, 4, 2, 8},
        {"large", 12, 0, 12, 6, 96},
        {"dual-xclr-irregular", 2, 29, 29, 2, 255},
    };
    const char *dir = "../shared/fixtures/topograph-models";

    if (access(dir, R_OK) < 0) {
        print_message("no %s: not checked\n", dir);
        skip();
    }
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *path = mem_printf("%s/%s.yaml", dir, row[i].file);
        int count[LEVEL_COUNT] = {0};
        struct topo t;
        read_file(&t, path);
        for (int k = 0; k < t.declared_groups; k++)
            count[t.declared_group[k].level]++;
        groups_add_hosts(&t);
        assert_int_equal(count[LEVEL_DOMAIN], row[i].domains);
        assert_int_equal(count[LEVEL_RACK], row[i].racks);
        assert_int_equal(count[LEVEL_LEAF], row[i].leaves);
        assert_int_equal(count[LEVEL_SPINE], row[i].spines);
        assert_int_equal(t.hosts, row[i].hosts);
        topo_free(&t);
        free(path);
    }
}
