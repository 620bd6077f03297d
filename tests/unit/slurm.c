/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm's topology files: every form says the same, what slurmctld refuses is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "topo/groups.h"
#include "topo/sources/sched/slurm.h"

/* The claims of a text, one a line: "domain topology.conf rack1: n1 n2". */
static char *claims(const char *text, const char *path)
{
    struct slurm_file f;
    struct topo t;
    struct err err = {0, ""};
    char *out = mem_strdup("");

    topo_init(&t);
    int rc = slurm_parse(&f, text, strlen(text), path, &err);
    if (rc < 0)
        print_message("# %s\n", err.text);
    assert_int_equal(rc, 0);
    slurm_declare(&f, &t);
    for (int i = 0; i < t.declared_groups; i++) {
        const struct declared_group *c = &t.declared_group[i];
        assert_int_equal(c->source, SOURCE_SLURM);
        char *line = mem_printf("%s%s %s %s:", out, level_name[c->level], c->origin, c->name);
        for (int k = 0; k < c->hosts; k++) {
            char *more = mem_printf("%s %s", line, c->host[k]);
            free(line);
            line = more;
        }
        free(out);
        out = mem_printf("%s\n", line);
        free(line);
    }
    slurm_file_free(&f);
    topo_free(&t);
    return out;
}

static void is(const char *text, const char *path, const char *wanted)
{
    char *got = claims(text, path);

    assert_string_equal(got, wanted);
    free(got);
}

static void unseen(const char *text, const char *what, const char *why)
{
    struct slurm_file f;
    struct topo t;
    struct err err = {0, ""};
    const char *said = NULL;

    topo_init(&t);
    assert_int_equal(slurm_parse(&f, text, strlen(text), "/etc/t.conf", &err), 0);
    slurm_declare(&f, &t);
    for (int i = 0; i < t.unseens; i++)
        if (!strcmp(t.unseen[i].what, what))
            said = t.unseen[i].why;
    if (!why ? said != NULL : !said || strncmp(said, why, strlen(why)) != 0)
        fail_msg("%s: \"%s\" where \"%s\" is expected", what, said ? said : "", why ? why : "");
    slurm_file_free(&f);
    topo_free(&t);
}

/* What slurmctld warns of and takes. */
static void warnings(void **state)
{
    (void)state;
    unseen("SwitchName=l1 Nodes=n[1-4]\nSwitchName=l2 Nodes=n[3-8]\nSwitchName=s Switches=l[1-2]\n",
           "leaf of n[3-4]", "in several leaf switches of t.conf, of which the first is taken");
    unseen("SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\n", "tree of t.conf",
           "no switch reaches all nodes (l1 reaches 1 of 2 leaves)");
    unseen("SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\nSwitchName=l3 Nodes=n3\n"
           "SwitchName=s1 Switches=l[1-2]\nSwitchName=s2 Switches=l[2-3]\n",
           "tree of t.conf", "no switch reaches all nodes (s1 reaches 2 of 3 leaves)");
    unseen("SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\nSwitchName=s1 Switches=l[1-2]\n"
           "SwitchName=s2 Switches=l2\n",
           "tree of t.conf", NULL);
    unseen("SwitchName=l1 Nodes=n1\n", "tree of t.conf", NULL);
}

static void blocks(void **state)
{
    (void)state;
    is("# by hand\nBlockName=rack1 Nodes=n[1-2]\nblockname = rack2 NODES=\"n3,n4\" # two\n"
       "BlockName=gap\nBlockName=rack3 \\\n  Nodes=n5\nBlockSizes=1,2,8\n",
       "/etc/slurm/topology.conf",
       "domain topology.conf rack1: n1 n2\ndomain topology.conf rack2: n3 n4\n"
       "domain topology.conf gap:\ndomain topology.conf rack3: n5\n");
}

static void trees(void **state)
{
    (void)state;
    is("SwitchName=core Switches=s[1-2] LinkSpeed=50\nSwitchName=s1 Switches=l1\n"
       "SwitchName=s2 Switches=l[2-3]\nSwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\n"
       "SwitchName=l3 Nodes=n[3-4]\n",
       "t.conf",
       "leaf t.conf l1: n1\nleaf t.conf l2: n2\nleaf t.conf l3: n3 n4\n"
       "spine t.conf s1: n1\nspine t.conf s2: n2 n3 n4\n");
    /* A leaf below two spines: both are its spine; the order of lines is free. */
    is("SwitchName=l1 Nodes=a\nSwitchName=l2 Nodes=b\nSwitchName=s1 Switches=l[1-2]\n"
       "SwitchName=s2 Switches=l[1-2]\n",
       "t.conf", "leaf t.conf l1: a\nleaf t.conf l2: b\nspine t.conf s[1-2]: a b\n");
}

static void shown(void **state)
{
    (void)state;
    /* As scontrol 24.11 printed it of two racks of four. */
    is("BlockName=rack1 BlockIndex=0 Nodes=node[01-04] BlockSize=4\n"
       "BlockName=rack2 BlockIndex=1 Nodes=node[05-08] BlockSize=4\n"
       "AggregatedBlock=rack[1-2] BlockIndex=2 Nodes=node[01-08] BlockSize=8\n",
       "shown",
       "domain shown rack1: node01 node02 node03 node04\n"
       "domain shown rack2: node05 node06 node07 node08\n");
    is("SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=l[1-2]\n"
       "SwitchName=l1 Level=0 LinkSpeed=1 Nodes=n1\nSwitchName=l2 Level=0 LinkSpeed=1 Nodes=n2\n",
       "shown", "leaf shown l1: n1\nleaf shown l2: n2\nspine shown core: n1 n2\n");
}

static void yaml(void **state)
{
    (void)state;
    is("---\n- topology: fabric\n  tree:\n    switches:\n      - {switch: core, children: "
       "\"l[1-2]\"}\n"
       "      - switch: l1\n        nodes: n1\n      - switch: l2\n        nodes: n2\n"
       "- topology: nvl\n  cluster_default: true\n  block:\n    block_sizes: [1, 2]\n    blocks:\n"
       "      - block: r1\n        nodes: n1\n      - block: 2\n        nodes: n2\n"
       "      - block: gap\n        nodes:\n"
       "- topology: rings\n  ring:\n    rings: [{ring: a, nodes: \"n[1-2]\"}]\n"
       "- topology: probe\n  flat: true\n",
       "topology.yaml",
       "domain topology.yaml nvl r1: n1\ndomain topology.yaml nvl 2: n2\n"
       "domain topology.yaml nvl gap:\n"
       "leaf topology.yaml fabric l1: n1\nleaf topology.yaml fabric l2: n2\n"
       "spine topology.yaml fabric core: n1 n2\n");
}

static void refused(const char *text, const char *why)
{
    struct slurm_file f;
    struct err err = {0, ""};

    assert_int_equal(slurm_parse(&f, text, strlen(text), "t", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text, why);
    slurm_file_free(&f);
}

static void refusals(void **state)
{
    (void)state;
    refused("BlockName=a Nodes=n[1-4]\nBlockSizes=4,12\n",
            "t:2: block size 12 is not 4 times a power of two");
    refused("BlockName=a Nodes=n1\nBlockSizes=1,65536\n",
            "t:2: block size 65536 is more than 2^15 times the base size 1");
    refused("BlockName=a Nodes=n1\n\nBlockName=b Nodes=n1\n",
            "t:3: node \"n1\" is in block \"a\" already");
    refused("SwitchName=a Switches=b\nSwitchName=b Switches=a\n",
            "t:1: switch \"a\" is above itself: not a tree");
    refused("SwitchName=a Switches=a\n", "t:1: switch \"a\" is above itself: not a tree");
    refused("BlockName=a Nodes=n1\nSwitchName=b Nodes=n2\n",
            "t:2: SwitchName in a file of topology/block: Slurm has one of them at a time");
    refused("# nothing\n", "t: no block and no switch in it");
    refused("- topology: a\n  flat: true\n- topology: a\n  flat: true\n",
            "t:3: topology \"a\" is there twice");
    refused("RingName=r Nodes=n[1-17]\n", "t:1: ring \"r\" has 17 nodes, Slurm takes 16");
}

/* A node below two leaves is Slurm's warning, not an error; the first counts. */
static void two_leaves(void **state)
{
    static const char text[] = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-3]\n";
    struct slurm_file f;
    struct topo t;
    struct err err;
    int count;

    (void)state;
    topo_init(&t);
    assert_int_equal(slurm_parse(&f, text, strlen(text), "t", &err), 0);
    slurm_declare(&f, &t);
    groups_add_hosts(&t);
    struct group_set *s = group_sets(&t, &count);
    int *of = group_set_of(s, &t);
    assert_int_equal(count, 1);
    assert_int_equal(of[topo_find_host(&t, "n2")], 0);
    assert_int_equal(of[topo_find_host(&t, "n3")], 1);
    free(of);
    group_sets_free(s, count);
    slurm_file_free(&f);
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings),   cmocka_unit_test(blocks), cmocka_unit_test(trees),
        cmocka_unit_test(shown),      cmocka_unit_test(yaml),   cmocka_unit_test(refusals),
        cmocka_unit_test(two_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
