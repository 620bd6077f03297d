/* SPDX-License-Identifier: BSD-3-Clause */
/* What each fault of the simulation does: to every pair, held against its definition; to
 * collectives, which run at the rate of their slowest flow; to uplinks, many flows at once. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/plan.h"
#include "test.h"
#include "transport/sim/sim.h"

struct bed {
    struct fabric fabric;
    struct topo topo;
    struct sim sim;
};

/* All of it grows with the size, so that what faults leave is a ratio of times. */
static double healthy(const void *of, enum op op, const int *ids, int n, double bytes)
{
    (void)of;
    (void)op;
    (void)ids;
    (void)n;
    return bytes / 1e11;
}

static void bed_open(struct bed *b, const char *fabric, int racks)
{
    struct err err;

    memset(b, 0, sizeof(*b));
    assert_int_equal(fabric_load(&b->fabric, fabric, &err), 0);
    assert_int_equal(fabric_topo(&b->fabric, racks, false, &b->topo, &err), 0);
    b->sim = (struct sim){.fabric = &b->fabric, .truth = &b->topo, .healthy = healthy};
}

static void bed_close(struct bed *b)
{
    sim_free(&b->sim);
    topo_free(&b->topo);
    fabric_free(&b->fabric);
}

static void put(struct bed *b, const char *text)
{
    struct err err = {0, ""};

    sim_free(&b->sim);
    b->sim = (struct sim){.fabric = &b->fabric, .truth = &b->topo, .healthy = healthy};
    if (sim_fault(&b->sim, text, &err) < 0)
        fail_msg("%s", err.text);
}

static int at(const struct bed *b, int id, enum level level)
{
    return topo_at(&b->topo, id, (int)level);
}

/* --- pairs --- */

typedef bool slow_fn(const struct bed *b, int src, int dst, bool nic);

static bool of_leaf(const struct bed *b, int src, int dst, bool nic)
{
    return nic && (at(b, src, LEVEL_LEAF) == 5 || at(b, dst, LEVEL_LEAF) == 5);
}

static bool over_uplinks(const struct bed *b, int src, int dst, bool nic)
{
    return nic && (at(b, src, LEVEL_LEAF) == 5) != (at(b, dst, LEVEL_LEAF) == 5);
}

static bool up(const struct bed *b, int src, int dst, bool nic)
{
    return over_uplinks(b, src, dst, nic) && at(b, src, LEVEL_LEAF) == 5;
}

static bool of_rack(const struct bed *b, int src, int dst, bool nic)
{
    return nic && (at(b, src, LEVEL_RACK) == 1 || at(b, dst, LEVEL_RACK) == 1);
}

static bool into_rack(const struct bed *b, int src, int dst, bool nic)
{
    return nic && at(b, src, LEVEL_RACK) != 1 && at(b, dst, LEVEL_RACK) == 1;
}

static bool of_rack_outside(const struct bed *b, int src, int dst, bool nic)
{
    return nic && (at(b, src, LEVEL_RACK) == 1) != (at(b, dst, LEVEL_RACK) == 1);
}

static bool between_racks(const struct bed *b, int src, int dst, bool nic)
{
    int x = at(b, src, LEVEL_RACK), y = at(b, dst, LEVEL_RACK);

    (void)nic;
    return (x == 0 && y == 2) || (x == 2 && y == 0);
}

static bool over_nics(const struct bed *b, int src, int dst, bool nic)
{
    (void)b;
    (void)src;
    (void)dst;
    return nic;
}

static bool the_pair(const struct bed *b, int src, int dst, bool nic)
{
    (void)b;
    (void)nic;
    return (src == 3 && dst == 200) || (src == 200 && dst == 3);
}

static bool none(const struct bed *b, int src, int dst, bool nic)
{
    (void)b;
    (void)src;
    (void)dst;
    (void)nic;
    return false;
}

TEST(each_fault_slows_the_pairs_that_pass_it)
{
    static const struct {
        const char *fault;
        slow_fn *slow;
    } cases[] = {
        {"slow-leaf=5:0.5", of_leaf},
        {"slow-leaf=leaf-01-1:0.5", of_leaf},
        {"slow-uplinks=5:0.5", over_uplinks},
        {"slow-uplinks=leaf-01-1:0.5:tx", up},
        {"lost-uplinks=5:0.5", none},
        {"slow-rack=1:0.5", of_rack},
        {"slow-rack=rack-01:0.5", of_rack},
        {"slow-rack-uplinks=1:0.5", of_rack_outside},
        {"slow-rack-uplinks=rack-01:0.5:rx", into_rack},
        {"slow-racks=rack-00-rack-02:0.5", between_racks},
        {"slow-racks=2-0:0.5", between_racks},
        {"slow-cable=3-200:0.5", the_pair},
        {"slow-fabric=0.5", over_nics},
    };
    struct bed b;

    bed_open(&b, "gb200-nvl72", 6); /* two groups of racks with leaves of their own */
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        put(&b, cases[k].fault);
        for (int i = 0; i < b.topo.endpoints; i++)
            for (int j = 0; j < b.topo.endpoints; j++) {
                if (i == j)
                    continue;
                const struct fabric_tier *t = &b.fabric.tier[topo_tier(&b.topo, i, j)];
                double sec = sim_pair(&b.sim, OP_PAIR_BW, i, j, 1e16, 1),
                       left = 1e16 / t->Bps.value / sec;
                if (fabs(left - (cases[k].slow(&b, i, j, t->nic) ? 0.5 : 1)) > 1e-6)
                    fail_msg("%s: %d to %d at %g", cases[k].fault, i, j, left);
            }
    }
    bed_close(&b);
}

/* --- collectives --- */

/* Rate of a healthy group that is left to `racks` racks from `first` on, every GPU or the first of
 * each host. */
static double left(const struct bed *b, enum op op, int first, int racks, int per_host)
{
    int *ids = calloc((size_t)b->topo.endpoints, sizeof(*ids)), n = 0;

    for (int i = 0; i < b->topo.endpoints; i++)
        if (at(b, i, LEVEL_RACK) >= first && at(b, i, LEVEL_RACK) < first + racks &&
            b->topo.endpoint[i].local < per_host)
            ids[n++] = i;
    double ratio =
        b->sim.healthy(NULL, op, ids, n, 1e12) / sim_collective(&b->sim, op, ids, n, 1e12, 1);
    free(ids);
    return ratio;
}

TEST(a_collective_runs_at_its_slowest_flow)
{
    static const struct {
        const char *fault;
        enum op op;
        int first, racks, per_host;
        double left;
    } cases[] = {
        /* hgx-h100: 4 hosts a rack, leaf k takes NIC k of 8 racks */
        {"slow-nic=7:0.5", OP_ALL_GATHER, 0, 2, 8, 0.5}, /* the last of its host: once, not twice */
        {"slow-nic=3:0.5", OP_ALL_GATHER, 0, 2, 8, 0.5},
        {"slow-leaf=0:0.5", OP_ALL_GATHER, 0, 2, 8, 0.5},
        {"slow-leaf=0:0.5", OP_ALL_TO_ALL, 0, 2, 8, 0.5},
        {"slow-leaf=1:0.5", OP_ALL_GATHER, 0, 2, 1, 1}, /* no member hangs on it */
        {"slow-leaf=1:0.5", OP_ALL_TO_ALL, 0, 2, 1, 1},
        {"slow-uplinks=1:0.5", OP_ALL_GATHER, 0, 8, 8, 1}, /* rings stay on their rails */
        {"slow-uplinks=1:0.5", OP_ALL_TO_ALL, 0, 8, 8, 0.5},
        {"slow-uplinks=1:0.5", OP_ALL_GATHER, 6, 4, 8, 0.5}, /* racks 8 and 9: other leaves */
        {"slow-uplinks=0:0.5", OP_ALL_TO_ALL, 0, 8, 1, 1},   /* all below this leaf */
        {"slow-rack=1:0.5", OP_ALL_GATHER, 1, 1, 8, 0.5},
        {"slow-rack=1:0.5", OP_ALL_GATHER, 2, 3, 8, 1},
        {"slow-rack-uplinks=1:0.5", OP_ALL_GATHER, 1, 1, 8, 1},
        {"slow-rack-uplinks=1:0.5", OP_ALL_REDUCE, 1, 2, 8, 0.5},
        {"slow-fabric=0.5", OP_ALL_REDUCE, 0, 10, 8, 0.5},
        {"slow-fabric=0.5", OP_ALL_TO_ALL, 0, 10, 8, 0.5},
        {"lost-uplinks=0:0.5", OP_ALL_TO_ALL, 0, 10, 8, 1}, /* a share tells, see below */
    };
    struct bed b;

    bed_open(&b, "hgx-h100", 10);
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        put(&b, cases[k].fault);
        double is = left(&b, cases[k].op, cases[k].first, cases[k].racks, cases[k].per_host),
               want = cases[k].left, in = b.fabric.tier[0].Bps.value,
               nics = cases[k].per_host * b.fabric.tier[1].Bps.value;
        if (op_table[cases[k].op].links == OP_RING && cases[k].per_host > 1)
            want = fmin(in, nics * want) / fmin(in, nics); /* rings run inside of hosts, too */
        if (fabs(is - want) > 1e-6)
            fail_msg("%s: %s over %d racks at %g", cases[k].fault, op_name(cases[k].op),
                     cases[k].racks, is);
    }
    bed_close(&b);
}

/* --- many flows at once --- */

/* The first `flows` endpoints of leaf 0 send to leaf 8, whose racks come after. */
static double share_of(struct bed *b, int flows)
{
    struct plan plan = {NULL, 0};
    struct round *r = plan_add(&plan, STAGE_SHIFT, OP_PAIR_BW, flows);

    r->id = flows;
    for (int i = 0; i < flows; i++) {
        r->group[i].size = 2;
        r->group[i].members = calloc(2, sizeof(int));
        r->group[i].members[0] = 8 * i;
        r->group[i].members[1] = 32 * 8 + 8 * i;
    }
    double share = sim_share(&b->sim, r, 0, OP_PAIR_BW);
    plan_free(&plan);
    return share;
}

TEST(lost_uplinks_are_shared_by_those_who_climb)
{
    struct bed b;

    bed_open(&b, "hgx-h100", 16);
    put(&b, "lost-uplinks=leaf-00-0:0.25");
    assert_true(fabs(share_of(&b, 1) - 1) < 1e-9);
    assert_true(fabs(share_of(&b, 8) - 1) < 1e-9); /* as many as are left */
    assert_true(fabs(share_of(&b, 16) - 0.5) < 1e-9);
    assert_true(fabs(share_of(&b, 32) - 0.25) < 1e-9);
    put(&b, "slow-uplinks=0:0.25");
    assert_true(fabs(share_of(&b, 32) - 1) < 1e-9); /* each is slow by itself */
    put(&b, "lost-uplinks=9:0.25");
    assert_true(fabs(share_of(&b, 32) - 1) < 1e-9);
    bed_close(&b);
}

/* --- as typed --- */

TEST(ends_are_read_strictly)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"slow-leaf=leaf-09:0.5", "leaf leaf-09: \"leaf-09\" is not a whole number"},
        {"slow-leaf=99:0.5", "leaf 99: 99 is outside 0..3"},
        {"slow-rack=rack-7:0.5", "rack rack-7: \"rack-7\" is not a whole number"},
        {"slow-rack=1", "factor of slow-rack: "},
        {"slow-rack=1:0.5:tx", "\"tx\" is left over"},
        {"slow-uplinks=1:0.5:up", "side \"up\" is neither tx nor rx"},
        {"slow-racks=rack-00-rack-00:0.5", "the two ends are the same, 0"},
        {"slow-fabric=2", "factor of slow-fabric: 2 is outside"},
        {"slow-fabric=0.5:1", "\"1\" is left over"},
        {"slow-cable=0-1:0.5", "no cable lies between 0 and 1: they meet over mnnvl"},
        {"slow-cable=0-x:0.5", "endpoint x: \"x\" is not a whole number"},
    };
    struct bed b;
    struct err err;

    bed_open(&b, "gb200-nvl72", 2);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(sim_fault(&b.sim, bad[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        if (!strstr(err.text, bad[i].message))
            fail_msg("%s", err.text);
    }
    bed_close(&b);
    bed_open(&b, "rtxpro6000-100gbe", 3);
    assert_int_equal(sim_fault(&b.sim, "slow-uplinks=2:0.5", &err), 0);
    bed_close(&b);
}
