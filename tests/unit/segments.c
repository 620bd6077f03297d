/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of a job: who is misplaced, who disagrees, what nodes tell of themselves. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/segments.h"
#include "test.h"
#include "topo/groups.h"

struct look {
    struct segments s;
    struct segment_verdict v;
    struct err err;
    int code;
};

static void look_at(struct look *l, const char *lines, int size, const struct topo *t)
{
    struct self_report *list;
    int count;
    char *text = mem_strdup(lines);

    memset(l, 0, sizeof(*l));
    segments_init(&l->s, size);
    if (self_report_parse(&list, &count, text, "lines", &l->err) < 0 ||
        segments_from_told(&l->s, list, count, &l->err) < 0)
        fail_msg("%s", l->err.text);
    if (t)
        segments_from_topo(&l->s, t, "t.json");
    segments_judge(&l->v, &l->s);
    l->code = segments_exit(&l->v, &l->s, &l->err);
    self_report_list_free(list, count);
    free(text);
}

static void look_away(struct look *l)
{
    segment_verdict_free(&l->v);
    segments_free(&l->s);
}

TEST(together)
{
    struct look l;

    /* Lines as tasks print them: in no order, several of a node. */
    look_at(&l,
            "n4 rank=3 addr=r2.n4 pattern=block.node\nn1 rank=0 addr=r1.n1 pattern=block.node\n"
            "n3 rank=2 addr=r2.n3 pattern=block.node\nn2 rank=1 addr=r1.n2 pattern=block.node\n"
            "n2 rank=1 addr=r1.n2 pattern=block.node\n",
            2, NULL);
    assert_int_equal(l.code, EXIT_GOOD);
    assert_int_equal(l.s.nodes, 4);
    assert_string_equal(l.s.node[3], "n4");
    assert_int_equal(l.v.together, 2);
    assert_int_equal(l.v.words, 0);
    look_away(&l);
}

TEST(split)
{
    struct look l;

    look_at(&l,
            "n1 addr=r1.n1 pattern=block.node\nn2 addr=r1.n2 pattern=block.node\n"
            "n5 addr=r2.n5 pattern=block.node\nn3 addr=r1.n3 pattern=block.node\n"
            "n6 addr=r2.n6 pattern=block.node\n",
            4, NULL);
    assert_int_equal(l.code, EXIT_BELOW);
    assert_int_equal(l.v.segments, 2);
    assert_int_equal(l.v.together, 1);
    assert_string_equal(l.v.word[0], "segment 1 wants 4 nodes of one block, SLURM_TOPOLOGY_ADDR: "
                                     "n[1-3] in r1, n5 in r2");
    assert_null(l.v.order);
    look_away(&l);
    /* The right nodes in the wrong order. */
    look_at(&l,
            "n1 addr=r1.n1 pattern=block.node\nn5 addr=r2.n5 pattern=block.node\n"
            "n2 addr=r1.n2 pattern=block.node\nn6 addr=r2.n6 pattern=block.node\n",
            2, NULL);
    assert_int_equal(l.v.split, 2);
    assert_string_equal(l.v.order, "n[1-2,5-6]");
    look_away(&l);
}

/* Slurm's file has n3 in the wrong rack; the driver knows better. */
TEST(disagree)
{
    struct look l;

    look_at(&l,
            "n1 addr=r1.n1 pattern=block.node nvlink=A.1\nn2 addr=r1.n2 pattern=block.node "
            "nvlink=A.1\nn3 addr=r1.n3 pattern=block.node nvlink=B.1\n"
            "n4 addr=r2.n4 pattern=block.node nvlink=B.1\n",
            2, NULL);
    assert_int_equal(l.code, EXIT_BELOW); /* by Slurm the second one is split, by NVML none is */
    assert_string_equal(l.v.word[0], "segment 2 wants 2 nodes of one block, SLURM_TOPOLOGY_ADDR: "
                                     "n3 in r1, n4 in r2; NVML: all in B.1");
    assert_int_equal(l.v.differs, 1);
    assert_string_equal(
        l.v.differ[0],
        "NVML and SLURM_TOPOLOGY_ADDR disagree: n3 and n4 are in r1 and in r2, "
        "SLURM_TOPOLOGY_ADDR; n1 and n3 are in A.1 and in B.1, NVML; the other has them together");
    look_away(&l);
    /* Two cliques of one block: finer, not wrong. */
    look_at(&l,
            "n1 addr=r1.n1 pattern=block.node nvlink=A.1\nn2 addr=r1.n2 pattern=block.node "
            "nvlink=A.2\n",
            1, NULL);
    assert_int_equal(l.v.differs, 0);
    look_away(&l);
}

TEST(unknown)
{
    struct look l;

    look_at(&l, "n1\nn2 addr=n2 pattern=node\n", 2, NULL); /* flat */
    assert_int_equal(l.code, EXIT_UNJUDGED);
    assert_int_equal(l.s.opinions, 0);
    look_away(&l);
    look_at(&l, "n1 nvlink=A.1\nn2\nn3 nvlink=B.1\n", 3, NULL); /* known to be split all the same */
    assert_int_equal(l.code, EXIT_BELOW);
    assert_string_equal(
        l.v.word[0], "segment 1 wants 3 nodes of one block, NVML: n1 in A.1, n2 not known, n3 in "
                     "B.1");
    look_away(&l);
}

TEST(files)
{
    char *a[] = {"n1", "n2"}, *b[] = {"n3", "n4"}, *all[] = {"n1", "n2", "n3", "n4"};
    struct look l;
    struct topo t;

    topo_init(&t);
    group_add(&t, SOURCE_SLURM, LEVEL_DOMAIN, "topology.conf", "r1", a, 2);
    group_add(&t, SOURCE_SLURM, LEVEL_DOMAIN, "topology.conf", "r2", b, 2);
    group_add(&t, SOURCE_SLURM, LEVEL_LEAF, "topology.conf", "leaf", all, 4);
    group_add(&t, SOURCE_LABEL, LEVEL_RACK, "nodes.json", "x", all, 4);
    groups_add_hosts(&t);
    look_at(&l, "n[1-4]\n", 2, &t);
    assert_int_equal(l.code, EXIT_GOOD);
    assert_int_equal(l.s.opinions, 2); /* of Slurm the finer level */
    assert_string_equal(l.s.opinion[0].who, "topology.conf (domain)");
    assert_string_equal(l.s.opinion[1].who, "nodes.json (rack)");
    look_away(&l);
    look_at(&l, "n[1-3]\n", 3, &t);
    assert_int_equal(l.code, EXIT_BELOW);
    look_away(&l);
    topo_free(&t);
}

static void bad_line(const char *line, const char *why)
{
    struct self_report *list;
    struct err err = {0, ""};
    int count;
    char *text = mem_strdup(line);

    assert_int_equal(self_report_parse(&list, &count, text, "lines", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text, why);
    free(text);
}

TEST(lines)
{
    struct self_report here = {.node = mem_strdup("n1"), .rank = 3, .nvlink = mem_strdup("A.1")},
                       *list;
    int count;
    char *line = self_report_line(&here), hostfile[] = "# nodes\nn1 slots=4\nn[2-3]:8\n\nn1\n";
    struct err err;

    assert_string_equal(line, "n1 rank=3 nvlink=A.1");
    free(line);
    self_report_free(&here);
    assert_int_equal(self_report_parse(&list, &count, hostfile, "lines", &err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(list[2].node, "n3");
    self_report_list_free(list, count);
    bad_line("", "lines: no node in it");
    bad_line("n1 slots=4 core\n", "lines:1: \"core\" is not KEY=VALUE");
    bad_line("\nn1 rack=4\n", "lines:2: unknown key \"rack\"");
    bad_line("n1 rank=x\n", "lines:1: rank: \"x\" is not a whole number");
    bad_line("n1 addr=a addr=b\n", "lines:1: addr is there twice");
    bad_line("n[1-2] rank=1\n", "lines:1: 2 nodes cannot all be there: \"n[1-2]\"");
    bad_line("n[1-\n", "lines:1: host list: unbalanced brackets in \"n[1-\"");
}
