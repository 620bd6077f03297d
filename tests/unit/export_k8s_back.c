/* SPDX-License-Identifier: BSD-3-Clause */
/* export_k8s_back.c - what is written for Kubernetes and Slurm, read back: the same groups. */
#include "base/host.h"
#include "test.h"
#include "topo/groups.h"
#include "topo/sources/sched/labels_impl.h"
#include "topo/sources/sources.h"

#include "exported.h"

static const enum level all[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};

/* The claims of `back` at a level are the groups of `t`, host by host. */
static void same_groups(const struct topo *t, const struct topo *back, enum level level,
                        bool same_names)
{
    char **name;
    int groups, sets, *of = groups_of_hosts(t, level, &name, &groups);
    struct group_set *s = group_sets(back, &sets);
    int found = 0;

    for (int i = 0; i < sets; i++) {
        if (s[i].level != level)
            continue;
        found++;
        assert_int_equal(s[i].groups, groups);
        int *is = group_set_of(&s[i], t);
        for (int a = 0; a < t->hosts; a++) {
            assert_int_equal(of[a] < 0, is[a] < 0);
            if (same_names && of[a] >= 0)
                assert_string_equal(s[i].group[is[a]]->name, name[of[a]]);
            for (int b = 0; b < a; b++)
                assert_int_equal(of[a] == of[b], is[a] == is[b]);
        }
        free(is);
    }
    assert_int_equal(found, groups > 0);
    group_sets_free(s, sets);
    hostlist_free(name, groups);
    free(of);
}

typedef int reader(struct topo *t, int host, const char *text, size_t len, const char *path,
                   struct err *err);

static void round_trip(const struct matrix *m, const char *format, const char *release,
                       reader *read, const enum level *level, int levels, bool same_names)
{
    struct export_ask ask = {.release = release, .partial = true};
    char *text = written(format, m, &ask, NULL);
    struct topo back;
    struct err err = {0, ""};

    topo_init(&back);
    if (read(&back, -1, text, strlen(text), "back", &err) < 0)
        fail_msg("%s: %s", format, err.text);
    for (int i = 0; i < levels; i++)
        same_groups(&m->topo, &back, level[i], same_names);
    topo_free(&back);
    free(text);
}

TEST(test_round_trips)
{
    static const enum level old[] = {LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_SPINE};
    static const char *const preset[] = {"gb200-nvl72", "gb300-nvl72", "hgx-h100"};
    struct matrix m;
    struct err err;

    for (int stray = 0; stray < 2; stray++) {
        machine(&m, stray);
        round_trip(&m, "k8s-labels", NULL, labels_parse, all, 4, false);
        round_trip(&m, "k8s-labels", "0.5", labels_parse, old, 3, false);
        matrix_free(&m);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(matrix_open(&m, NULL, preset[i], 3, &err), 0);
        round_trip(&m, "k8s-labels", "0.5", labels_parse, old, 3, false);
        matrix_free(&m);
    }
    /* A graph has labels and layers: two sets at no level, the same groups. */
    machine(&m, false);
    round_trip(&m, "topograph", NULL, topograph_parse, all, 4, true);
    matrix_free(&m);
}
