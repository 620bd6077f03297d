/* SPDX-License-Identifier: BSD-3-Clause */
/* SLURM_TOPOLOGY_ADDR: blocks, switches, lists of switches, names with dots. */
#include <string.h>

#include "test.h"
#include "topo/sources/sched/slurm.h"

static void above(const char *addr, const char *pattern, const char *node, const char *wanted,
                  int names)
{
    struct slurm_addr a;
    struct err err = {0, ""};

    if (slurm_addr_parse(&a, addr, pattern, node, &err) < 0)
        fail_msg("%s", err.text);
    const struct slurm_addr_part *p = slurm_addr_above(&a);
    if (!wanted)
        assert_null(p);
    else {
        assert_string_equal(p->text, wanted);
        assert_int_equal(p->names, names);
    }
    slurm_addr_free(&a);
}

TEST(good)
{
    above("rack2.node05", "block.node", NULL, "rack2", 1); /* as 24.11.5 gave it */
    above("core.spine1.leaf1.node05", "switch.switch.switch.node", NULL, "leaf1", 1);
    above("core.leaf[1-2,7].node05", "switch.switch.node", NULL, "leaf[1-2,7]", 3);
    above("node05", "node", NULL, NULL, 0);
    above("node05.cluster.local", "node", "node05.cluster.local", NULL, 0);
    above("rack2.n5.cluster.local", "block.node", NULL, "rack2", 1);
    above("row.1.rack.2.n5.local", "block.node", "n5.local", "row.1.rack.2", 1);
}

static void bad(const char *addr, const char *pattern, const char *why)
{
    struct slurm_addr a;
    struct err err = {0, ""};

    assert_int_equal(slurm_addr_parse(&a, addr, pattern, NULL, &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(strstr(err.text, why));
    slurm_addr_free(&a);
}

TEST(refused)
{
    bad("rack2.node05", "rack.node", "\"rack\" is not switch, block or node");
    bad("rack2.node05", "node.block", "the node is its last part");
    bad("rack2.node05", "block.block", "the node is its last part");
    bad("rack2.node05", "", "is not switch, block or node");
    bad("rack2.node05", "switch.switch.node", "2 parts where 3 are named");
    bad("rack2", "block.node", "1 part where 2 are named");
    bad("rack2.", "block.node", "does not fit");
    bad(".node05", "block.node", "the name of a block is empty");
    bad("a[1-.node05", "block.node", "does not fit");
    bad("a[3-1].node05", "block.node", "bad range");
    bad("a\x1b[31m.node05", "block.node", "control character 0x1b");
    bad("leaf[1-70][1-70].n1", "switch.node", "more than 4096 hosts");
    bad("", "node", "does not fit");
}
