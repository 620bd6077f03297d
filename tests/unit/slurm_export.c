/* SPDX-License-Identifier: BSD-3-Clause */
/* Files for Slurm: what a layout is made of, what each release refuses, names that fold. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/host.h"
#include "export/export_impl.h"
#include "small.h"

/* `racks` of the given sizes; rack r is below spine r / per_spine unless that is 0. */
static void racks(struct matrix *m, const int *hosts, int count, int per_spine)
{
    char name[64];
    int n = 0;

    matrix_init(m);
    m->transport = mem_strdup("mpi");
    topo_init(&m->topo);
    for (int r = 0; r < count; r++)
        for (int h = 0; h < hosts[r]; h++) {
            snprintf(name, sizeof(name), "n%02d", n++);
            int id = topo_add_endpoint(&m->topo, topo_add_host(&m->topo, name), ENDPOINT_GPU);
            struct place *p = &m->topo.endpoint[id].place;
            snprintf(name, sizeof(name), "rack-%02d", r);
            p->at[LEVEL_RACK] = topo_add_group(&m->topo, LEVEL_RACK, name);
            snprintf(name, sizeof(name), "su-%d", per_spine ? r / per_spine : 0);
            if (per_spine)
                p->at[LEVEL_SPINE] = topo_add_group(&m->topo, LEVEL_SPINE, name);
        }
}

/* What a writer writes, without its comments. */
static char *lines(const struct matrix *m, const char *format, const char *release, int base)
{
    struct export_ask ask = {.release = release, .hosts_per_rack = base};
    struct err err = {0, ""};
    char *text = NULL, *out = mem_strdup(""), *rest, *line;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    const struct exporter *e = exporter_find(format, &err);

    assert_non_null(e);
    int rc = e->write(&(struct export_run){.out = f, .m = m, .ask = &ask}, &err);
    fclose(f);
    if (rc < 0) {
        free(out);
        out = mem_printf("%d: %s", err.code, err.text);
    }
    rest = text;
    while (rc == 0 && (line = strsep(&rest, "\n"))) {
        if (*line == '#' || !*line)
            continue;
        char *longer = mem_printf("%s%s\n", out, line);
        free(out);
        out = longer;
    }
    free(text);
    return out;
}

static void is(const struct matrix *m, const char *format, const char *release, int base,
               const char *wanted)
{
    char *got = lines(m, format, release, base);

    assert_string_equal(got, wanted);
    free(got);
}

TEST(even)
{
    struct matrix m;

    racks(&m, (int[]){2, 2, 2, 2}, 4, 2);
    is(&m, "slurm-block", "24.11", 0,
       "BlockName=rack-00 Nodes=n[00-01]\nBlockName=rack-01 Nodes=n[02-03]\n"
       "BlockName=rack-02 Nodes=n[04-05]\nBlockName=rack-03 Nodes=n[06-07]\nBlockSizes=2,4\n");
    is(&m, "slurm-tree", "24.11", 0,
       "SwitchName=root Switches=su-[0-1]\nSwitchName=su-0 Switches=rack-[00-01]\n"
       "SwitchName=su-1 Switches=rack-[02-03]\nSwitchName=rack-00 Nodes=n[00-01]\n"
       "SwitchName=rack-01 Nodes=n[02-03]\nSwitchName=rack-02 Nodes=n[04-05]\n"
       "SwitchName=rack-03 Nodes=n[06-07]\n");
    matrix_free(&m);
}

/* Three racks below each spine: Slurm joins two or four, so the fourth is an empty one. */
TEST(threes)
{
    struct matrix m;

    racks(&m, (int[]){1, 1, 1, 1, 1, 1, 2, 2, 2}, 9, 3);
    is(&m, "slurm-block", "25.05", 0,
       "BlockName=rack-00 Nodes=n00\nBlockName=rack-01 Nodes=n01\nBlockName=rack-02 Nodes=n02\n"
       "BlockName=railgauge-empty1\nBlockName=rack-03 Nodes=n03\nBlockName=rack-04 Nodes=n04\n"
       "BlockName=rack-05 Nodes=n05\nBlockName=railgauge-empty2\nBlockName=rack-06 Nodes=n[06-07]\n"
       "BlockName=rack-07 Nodes=n[08-09]\nBlockName=rack-08 Nodes=n[10-11]\nBlockSizes=1,4\n");
    /* 24.11 knows no empty block: the level is left out. */
    char *old = lines(&m, "slurm-block", "24.11", 0);
    assert_null(strstr(old, "empty"));
    assert_non_null(strstr(old, "BlockSizes=1\n"));
    free(old);
    matrix_free(&m);
}

TEST(unequal)
{
    struct matrix m;

    racks(&m, (int[]){4, 4, 3}, 3, 0);
    char *old = lines(&m, "slurm-block", "24.11", 0), *newest = lines(&m, "slurm-block", NULL, 0);
    assert_non_null(strstr(old, "BlockSizes=3\n")); /* the smallest: a quarter is spare */
    assert_non_null(strstr(newest, "BlockSizes=4\n"));
    free(old);
    free(newest);
    is(&m, "slurm-block", "24.11", 4,
       "64: Slurm 24.11 refuses a block with fewer nodes than the base size of BlockSizes "
       "(\"children count lower than bblock_node_cnt\"): rack-02 has 3, the base size is 4; say "
       "--hosts-per-rack 3, or --release 25.05 or later");
    matrix_free(&m);
    racks(&m, (int[]){4, 4, 1}, 3, 0); /* a base of 1 would waste the others: ask */
    old = lines(&m, "slurm-block", "24.11", 0);
    assert_non_null(strstr(old, "rack-02 has 1, the base size is 4; say --hosts-per-rack 1"));
    free(old);
    is(&m, "slurm-block", "26.05", 5, "64: --hosts-per-rack 5: the largest block has 4");
    matrix_free(&m);
}

/* Racks 0 and 2 are near each other, as 1 and 3 are: measured time puts them side by side. */
TEST(measured)
{
    struct matrix m;

    racks(&m, (int[]){2, 2, 2, 2}, 4, 0);
    small_tier(&m, "rack", 1u << LEVEL_RACK, 10e-6, 1e9, true);
    small_tier(&m, "fabric", 0, 60e-6, 0.4e9, true);
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++)
            if (b - a != 2)
                small_exception(&m, PART_RACK_PAIR, a, b, -1, 0.5);
    is(&m, "slurm-block", "24.11", 0,
       "BlockName=rack-00 Nodes=n[00-01]\nBlockName=rack-02 Nodes=n[04-05]\n"
       "BlockName=rack-01 Nodes=n[02-03]\nBlockName=rack-03 Nodes=n[06-07]\nBlockSizes=2,4\n");
    matrix_free(&m);
}

TEST(yaml)
{
    struct matrix m;

    racks(&m, (int[]){1, 2}, 2, 0);
    is(&m, "slurm-yaml", "25.05", 0,
       "---\n- topology: \"blocks\"\n  cluster_default: true\n  block:\n    block_sizes: [2]\n"
       "    blocks:\n      - block: \"rack-00\"\n        nodes: \"n00\"\n"
       "      - block: \"rack-01\"\n        nodes: \"n[01-02]\"\n- topology: \"probe\"\n"
       "  cluster_default: false\n  flat: true\n");
    is(&m, "slurm-yaml", "24.11", 0,
       "64: Slurm 24.11 reads no topology.yaml (25.05 was the first): --format slurm-block or "
       "slurm-tree");
    is(&m, "slurm-yaml", "23.02", 0,
       "64: --release: Slurm 23.02 is not one of 24.11, 25.05, 25.11 and 26.05, whose rules are "
       "known");
    matrix_free(&m);
    racks(&m, (int[]){1, 1}, 2, 0);
    char *got = lines(&m, "slurm-block", NULL, 0);
    assert_non_null(strstr(got, "2: no NVLink domain, rack, leaf or spine groups hosts"));
    free(got);
    matrix_free(&m);
}

/* What we write, our reader takes: the checks of Slurm are in it. */
TEST(back)
{
    static const char *const formats[] = {"slurm-tree", "slurm-block", "slurm-yaml"};
    struct matrix m;

    racks(&m, (int[]){4, 3, 4, 4, 2, 4, 4}, 7, 3);
    for (size_t i = 0; i < 3; i++) {
        struct slurm_file f;
        struct err err = {0, ""};
        char *text = lines(&m, formats[i], NULL, 0);
        int nodes = 0;
        if (slurm_parse(&f, text, strlen(text), formats[i], &err) < 0)
            fail_msg("%s", err.text);
        for (int u = 0; u < f.topology[0].units; u++)
            nodes += f.topology[0].unit[u].nodes;
        assert_int_equal(nodes, 25);
        slurm_file_free(&f);
        free(text);
    }
    matrix_free(&m);
}

TEST(names)
{
    char *was[] = {"rack-1", "block02", "5f0c.3", "a b", "8"};
    char **now = slurm_names_make(was, 5, "block");

    assert_string_equal(now[0], "rack-1");
    assert_string_equal(now[1], "block02");
    assert_string_equal(now[2], "block03");
    assert_string_equal(now[3], "block04");
    assert_string_equal(now[4], "block05");
    hostlist_free(now, 5);
    char *clash[] = {"x.y", "block01"};
    now = slurm_names_make(clash, 2, "block");
    assert_string_not_equal(now[0], now[1]);
    hostlist_free(now, 2);
}
