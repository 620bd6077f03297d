/* SPDX-License-Identifier: BSD-3-Clause */
/* Each kind of noise of a world has the size that it was asked for and belongs to what it is drawn
 * for; each state of a fault is there where it should be, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "measure/plan.h"
#include "transport/sim/sim.h"

enum { PAIRS_MAX = 64, SAMPLES = 64 };

/* Two units of 32 hosts, 8 leaves each: endpoint 8 h + k is on rail k, units begin at 0 and 256. */
struct bed {
    struct fabric fabric;
    struct topo topo;
    struct sim sim;
    struct sim_world world;
    struct round round;
    struct plan_group group[PAIRS_MAX];
    int member[PAIRS_MAX][2];
};

static double healthy(const void *of, enum op op, const int *ids, int n, double bytes)
{
    (void)of;
    (void)op;
    (void)ids;
    (void)n;
    return bytes / 1e11;
}

static void bed_reset(struct bed *b)
{
    sim_free(&b->sim);
    b->world = (struct sim_world){.sample = 0};
    b->sim = (struct sim){.fabric = &b->fabric,
                          .truth = &b->topo,
                          .healthy = healthy,
                          .world = &b->world,
                          .varies = true,
                          .seed = 7,
                          .machine = 3};
}

static void bed_open(struct bed *b)
{
    struct err err;

    memset(b, 0, sizeof(*b));
    assert_int_equal(fabric_load(&b->fabric, "hgx-h100", &err), 0);
    assert_int_equal(fabric_topo(&b->fabric, 16, false, &b->topo, &err), 0);
    b->round = (struct round){.group = b->group, .epochs = 31, .op = OP_PAIR_BW};
    for (int i = 0; i < PAIRS_MAX; i++)
        b->group[i] = (struct plan_group){b->member[i], 2};
    bed_reset(b);
}

static void bed_close(struct bed *b)
{
    sim_free(&b->sim);
    topo_free(&b->topo);
    fabric_free(&b->fabric);
}

static void put(struct bed *b, const char *fault)
{
    struct err err = {0, ""};

    bed_reset(b);
    b->sim.world = NULL;
    b->sim.varies = false;
    if (sim_fault(&b->sim, fault, &err) < 0)
        fail_msg("%s", err.text);
}

/* One point: what tells it from others. */
struct at {
    enum op op;
    size_t bytes;
    int src, dst, round, index, epoch, turn, groups;
    enum stage stage;
};
static const struct at here = {.op = OP_PAIR_BW,
                               .bytes = 64 << 20,
                               .src = 0,
                               .dst = 256,
                               .round = 5,
                               .index = 1,
                               .epoch = 2,
                               .turn = 40,
                               .groups = 4};

/* The pairs of the round are what its caller has put there; that of the point is src and dst. */
static void run(struct bed *b, const struct at *a, int n, double *sec)
{
    const struct transport_calls *sim = transport_find("sim")->calls;
    struct err err;
    void *ctx;

    b->round.id = a->round;
    b->round.op = a->op;
    b->round.stage = a->stage;
    b->round.groups = a->groups;
    b->member[a->index][0] = a->src;
    b->member[a->index][1] = a->dst;
    struct group g = {.members = b->member[a->index],
                      .size = 2,
                      .comm = &b->sim,
                      .round = &b->round,
                      .index = a->index,
                      .epoch = a->epoch,
                      .turn = a->turn,
                      .turns = 100};
    assert_int_equal(sim->open(&ctx, &g, a->bytes, &err), 0);
    assert_int_equal(sim->run(ctx, a->op, a->bytes, n, sec, &err), 0);
    sim->close(ctx);
}

/* Log of its time over the time without noise. */
static double luck(struct bed *b, const struct at *a)
{
    struct sim quiet = {.fabric = &b->fabric, .truth = &b->topo, .healthy = healthy};
    double sec;

    run(b, a, 1, &sec);
    return log(sec / sim_pair(&quiet, a->op, a->src, a->dst, (double)a->bytes, 1));
}

/* The rate of a point, 1: as without noise; messages are so long that latency is nothing. */
static double rate(struct bed *b, struct at a)
{
    a.bytes = (size_t)1 << 40;
    return exp(-luck(b, &a));
}

/* --- noise by level --- */

/* What is changed, one at a time. */
enum { SIZE, ROUND, GROUP, MEMBERS, EPOCH, AGAIN, TURN, SEED, MACHINE, CHANGES };

static double changed(struct bed *b, struct at a, int what, int by)
{
    unsigned long long seed = b->sim.seed, machine = b->sim.machine;

    switch (what) {
    case SIZE:
        a.bytes += (size_t)by << 12;
        break;
    case ROUND:
        a.round += by;
        break;
    case GROUP:
        a.index = (a.index + by) % PAIRS_MAX;
        break;
    case MEMBERS: /* other hosts and NICs at both ends */
        a.src = (a.src + 9 * by) % 256;
        a.dst = 256 + (a.dst + 9 * by) % 256;
        break;
    case EPOCH:
        a.epoch = (a.epoch + by) % PLAN_EPOCHS;
        break;
    case AGAIN:
        a.stage = STAGE_RETEST;
        break;
    case TURN:
        a.turn += by;
        break;
    case SEED:
        b->sim.seed += (unsigned)by;
        break;
    case MACHINE:
        b->sim.machine += (unsigned)by;
        break;
    }
    double y = luck(b, &a);
    b->sim.seed = seed;
    b->sim.machine = machine;
    return y;
}

#define BIT(what) (1 << (what))
#define POINT (BIT(ROUND) | BIT(GROUP) | BIT(EPOCH) | BIT(SEED))

static const struct noise_level {
    const char *name;
    size_t at;   /* of its sigma */
    int changes; /* what it depends on */
    int unit;    /* what is changed to see its size */
    enum op op;
    double mean, deviation; /* for a sigma of 1 */
} levels[] = {
    {"point", offsetof(struct sim_world, point), POINT | BIT(SIZE), SIZE, OP_PAIR_BW, 0, 1},
    {"ladder", offsetof(struct sim_world, ladder), POINT, ROUND, OP_PAIR_BIBW, 0, 1},
    {"group-epoch", offsetof(struct sim_world, group_epoch),
     BIT(MEMBERS) | BIT(EPOCH) | BIT(AGAIN) | BIT(SEED), SEED, OP_PAIR_BW, 0, 1},
    {"pair", offsetof(struct sim_world, pair), BIT(MEMBERS) | BIT(SEED), SEED, OP_PAIR_LATENCY, 0,
     1},
    {"turn", offsetof(struct sim_world, turn), BIT(TURN) | BIT(SEED), TURN, OP_PAIR_BW, 0, 1},
    {"host-epoch", offsetof(struct sim_world, host_epoch),
     BIT(MEMBERS) | BIT(EPOCH) | BIT(AGAIN) | BIT(SEED), SEED, OP_PAIR_BW, 0, 1.41421},
    /* The slower of two normals: its mean is 1 / sqrt(pi), its variance 1 - 1 / pi. */
    {"endpoint", offsetof(struct sim_world, endpoint), BIT(MEMBERS) | BIT(MACHINE), MACHINE,
     OP_PAIR_BW, 0.56419, 0.82565},
    {"host", offsetof(struct sim_world, host), BIT(MEMBERS) | BIT(MACHINE), MACHINE, OP_PAIR_BIBW,
     0.56419, 0.82565},
    /* The larger of two half normals: 2 / sqrt(pi), 1 + 2 / pi - 4 / pi. */
    {"host-latency", offsetof(struct sim_world, host_latency), BIT(MEMBERS) | BIT(MACHINE), MACHINE,
     OP_PAIR_LATENCY, 1.12838, 0.60281},
};

static void a_level_is_drawn_for_what_it_belongs_to(void **state)
{
    struct bed b;

    (void)state;
    bed_open(&b);
    for (const struct noise_level *l = levels; l < levels + sizeof(levels) / sizeof(*levels); l++) {
        bed_reset(&b);
        *(double *)(void *)((char *)&b.world + l->at) = 0.01;
        struct at a = here;
        a.op = l->op;
        double y = luck(&b, &a);
        assert_true(fabs(y) > 1e-9);
        for (int k = 0; k < CHANGES; k++)
            if ((fabs(changed(&b, a, k, 1) - y) > 1e-9) != (l->changes >> k & 1))
                fail_msg("%s: change %d", l->name, k);
    }
    bed_close(&b);
}

static void a_level_has_the_size_it_was_given(void **state)
{
    enum { N = 2000 };
    const double sigma = 0.02;
    struct bed b;

    (void)state;
    bed_open(&b);
    for (const struct noise_level *l = levels; l < levels + sizeof(levels) / sizeof(*levels); l++) {
        double sum = 0, squares = 0;
        bed_reset(&b);
        *(double *)(void *)((char *)&b.world + l->at) = sigma;
        struct at a = here;
        a.op = l->op;
        for (int i = 0; i < N; i++) {
            double y = changed(&b, a, l->unit, i) / sigma;
            sum += y;
            squares += y * y;
        }
        double mean = sum / N, deviation = sqrt(squares / N - mean * mean);
        /* Four standard errors: of a mean 1 / sqrt(N), of a deviation 1 / sqrt(2 N). */
        if (fabs(mean - l->mean) > 4 * l->deviation / sqrt(N) ||
            fabs(deviation / l->deviation - 1) > 4 / sqrt(2 * N))
            fail_msg("%s: mean %g, deviation %g", l->name, mean, deviation);
    }
    bed_close(&b);
}

static void noise_of_other_operations_leaves_latency_alone(void **state)
{
    struct bed b;
    struct at a = here;

    (void)state;
    bed_open(&b);
    b.world = (struct sim_world){.endpoint = 0.1, .host = 0.1, .drift = 0.5};
    a.op = OP_PAIR_LATENCY;
    assert_true(fabs(luck(&b, &a)) < 1e-12);
    b.world = (struct sim_world){.host_latency = 0.1};
    a.op = OP_PAIR_BW;
    assert_true(fabs(luck(&b, &a)) < 1e-12);
    bed_close(&b);
}

/* --- shares --- */

/* Within four deviations of a binomial count. */
static bool is_share(int count, int of, double share)
{
    return fabs(count - of * share) <= 4 * sqrt(of * share * (1 - share)) + 1e-9;
}

static void stray_points_have_their_share_and_size(void **state)
{
    enum { N = 4000 };
    struct bed b;
    int many = 0, alone = 0;

    (void)state;
    bed_open(&b);
    b.world.stray.share = 0.05;
    b.world.stray.alone = 0.01;
    b.world.stray.factor = 0.8;
    for (int i = 0; i < N; i++) {
        struct at a = here;
        a.round = i;
        double y = luck(&b, &a);
        assert_true(fabs(y) < 1e-9 || fabs(y + log(0.8)) < 1e-9);
        many += y > 0.1;
        a.groups = 1;
        a.index = 0;
        alone += luck(&b, &a) > 0.1;
    }
    assert_true(is_share(many, N, 0.05));
    assert_true(is_share(alone, N, 0.01));
    bed_close(&b);
}

/* Samples of one point over their time without noise. */
static void ratios(struct bed *b, const struct at *a, int n, double *v)
{
    struct sim quiet = {.fabric = &b->fabric, .truth = &b->topo, .healthy = healthy};

    run(b, a, n, v);
    for (int i = 0; i < n; i++)
        v[i] /= sim_pair(&quiet, a->op, a->src, a->dst, (double)a->bytes, 1);
}

static void samples_have_tails_modes_and_ticks(void **state)
{
    enum { N = 20000 };
    static double v[N];
    struct bed b;
    int slow = 0, far = 0;

    (void)state;
    bed_open(&b);
    b.world.tail.share = 0.25;
    b.world.tail.scale = 0.2;
    b.world.tail.shape = 1.5;
    b.world.tail.most = 50;
    ratios(&b, &here, N, v);
    for (int i = 0; i < N; i++) {
        assert_true(v[i] > 1 - 1e-9 && v[i] < 51 + 1e-9);
        slow += v[i] > 1.2 - 1e-9;
        far += v[i] > 2; /* v > 1: (1 / 0.2)^-1.5 of them */
    }
    assert_true(is_share(slow, N, 0.25));
    assert_true(is_share(far, N, 0.25 * pow(5, -1.5)));
    bed_reset(&b);
    b.world.modes.share = 0.3;
    b.world.modes.factor = 0.9;
    ratios(&b, &here, N, v);
    for (int i = slow = 0; i < N; i++) {
        assert_true(fabs(v[i] - 1) < 1e-9 || fabs(v[i] - 1 / 0.9) < 1e-9);
        slow += v[i] > 1.05;
    }
    assert_true(is_share(slow, N, 0.3));
    bed_reset(&b);
    b.world.tick = 1e-6;
    b.sim.noise = 0.02;
    run(&b, &here, SAMPLES, v);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(fabs(v[i] / 1e-6 - round(v[i] / 1e-6)) < 1e-6 && v[i] >= 1e-6);
    bed_close(&b);
}

static void the_rate_drifts_from_the_first_turn_to_the_last(void **state)
{
    struct bed b;
    struct at a = here;

    (void)state;
    bed_open(&b);
    b.world.drift = 0.1;
    a.turn = 0;
    assert_true(fabs(rate(&b, a) - 1) < 1e-9);
    a.turn = 50;
    assert_true(fabs(rate(&b, a) - 0.95) < 1e-9);
    a.turn = 150; /* a retest */
    assert_true(fabs(rate(&b, a) - 0.9) < 1e-9);
    bed_close(&b);
}

/* --- who else is there --- */

static void other_jobs_take_a_leaf_for_some_turns(void **state)
{
    enum { SLOTS = 2000, TURNS = 8 };
    struct bed b;
    int busy = 0;

    (void)state;
    bed_open(&b);
    b.world.jobs.share = 0.1;
    b.world.jobs.least = 0.5;
    b.world.jobs.turns = TURNS;
    for (int i = 0; i < SLOTS; i++) {
        struct at a = here; /* leaf 0 to leaf 8 */
        a.turn = TURNS * i;
        double first = rate(&b, a);
        assert_true(first > 0.25 - 1e-9 && first < 1 + 1e-9);
        busy += first < 1 - 1e-9;
        a.turn += TURNS - 1;
        assert_int_equal(first < 1 - 1e-9, rate(&b, a) < 1 - 1e-9);
        a.dst = 8; /* the same leaf */
        assert_true(fabs(rate(&b, a) - 1) < 1e-9);
        a.dst = 1; /* another leaf, over NVLink */
        assert_true(fabs(rate(&b, a) - 1) < 1e-9);
    }
    assert_true(is_share(busy, SLOTS, 1 - 0.9 * 0.9));
    bed_close(&b);
}

static void adaptive_routing_disturbs_loaded_flows_between_leaves(void **state)
{
    enum { N = 20000 };
    static double v[N];
    struct bed b;
    struct at a = here;
    double sum = 0;

    (void)state;
    bed_open(&b);
    b.world.adaptive.sigma = 0.1;
    b.world.adaptive.least = 0.3;
    ratios(&b, &a, N, v);
    for (int i = 0; i < N; i++)
        sum += 1 - 1 / v[i]; /* |0.1 N(0,1)| */
    assert_true(fabs(sum / N - 0.1 * sqrt(2 / M_PI)) < 4 * 0.1 / sqrt(N));
    a.dst = 8;
    assert_true(fabs(luck(&b, &a)) < 1e-9);
    a.dst = 1;
    assert_true(fabs(luck(&b, &a)) < 1e-9);
    a = here;
    a.groups = 1;
    a.index = 0;
    assert_true(fabs(luck(&b, &a)) < 1e-9);
    a = here;
    a.op = OP_PAIR_LATENCY;
    assert_true(fabs(luck(&b, &a)) < 1e-9);
    bed_close(&b);
}

/* All of leaf 0 to `to` and the others of its rail and unit, 32 pairs. */
static void leaf_to(struct bed *b, int to)
{
    for (int i = 0; i < 32; i++) {
        b->member[i][0] = 8 * i;
        b->member[i][1] = to / 256 * 256 + (to + 8 * i) % 256;
    }
}

static double rate_of(struct bed *b, int index, int epoch, int turn, int groups)
{
    struct at a = here;

    a.src = b->member[index][0];
    a.dst = b->member[index][1];
    a.index = groups > 1 ? index : 0;
    a.epoch = epoch;
    a.turn = turn;
    a.round = a.groups = groups; /* other groups are another round */

    const int first[2] = {b->member[0][0], b->member[0][1]};
    double r = rate(b, a);
    b->member[0][0] = first[0];
    b->member[0][1] = first[1];
    return r;
}

static void hashed_flows_collide_as_often_as_chance_says(void **state)
{
    enum { SEEDS = 40, N = 32, K = 32 };
    struct bed b;
    int free_way = 0, halves = 0, other = 0;

    (void)state;
    bed_open(&b);
    leaf_to(&b, 256);
    for (int s = 0; s < SEEDS; s++) {
        bed_reset(&b);
        b.world.hashing.uplinks = K;
        b.sim.seed = (unsigned)s;
        for (int i = 0; i < N; i++) {
            double left = rate_of(&b, i, 0, 2 * s, N), one = 1 / left;
            assert_true(fabs(one - round(one)) < 1e-6); /* flows that share an uplink evenly */
            free_way += left > 0.99;
            halves += fabs(left - 0.5) < 1e-6;
            other += fabs(left - rate_of(&b, i, 1, 2 * s + 1, N)) > 1e-9;
            assert_true(rate_of(&b, i, 0, 1000, 1) > 0.99); /* alone */
        }
    }
    /* Alone on both its uplink and its downlink: (1 - 1/K)^(2 (N - 1)); draws are not independent,
     * hence twice the deviations. */
    double alone = pow(1 - 1.0 / K, 2 * (N - 1));
    assert_true(fabs(free_way - SEEDS * N * alone) < 8 * sqrt(SEEDS * N * alone * (1 - alone)));
    assert_true(halves > SEEDS * N / 4);
    assert_true(other > SEEDS * N / 3);
    b.world.hashing.rehash = REHASH_CAMPAIGN;
    for (int i = 0; i < N; i++)
        assert_true(fabs(rate_of(&b, i, 0, 0, N) - rate_of(&b, i, 1, 1, N)) < 1e-9);
    bed_close(&b);
}

static void pxn_takes_the_nic_of_a_rail_mate(void **state)
{
    struct bed b;
    struct err err;
    struct at a = here; /* 0 is on rail 0, 9 the next host's on rail 1, whose rail-mate is 1 */

    (void)state;
    bed_open(&b);
    a.dst = 9;
    a.groups = 1;
    a.index = 0;
    assert_int_equal(sim_fault(&b.sim, "slow-nic=0:0.5", &err), 0);
    assert_true(fabs(rate(&b, a) - 0.5) < 1e-6);
    b.world.pxn = 1;
    assert_true(fabs(rate(&b, a) - 1) < 1e-6);
    a.dst = 8;
    assert_true(fabs(rate(&b, a) - 0.5) < 1e-6);
    assert_int_equal(sim_fault(&b.sim, "slow-nic=1:0.25", &err), 0);
    a.dst = 9;
    assert_true(fabs(rate(&b, a) - 0.25) < 1e-6);
    /* Two flows over one NIC share it. */
    bed_reset(&b);
    b.world.pxn = 1;
    b.member[0][0] = 0;
    b.member[0][1] = 9;
    b.member[1][0] = 1;
    b.member[1][1] = 17;
    assert_true(fabs(rate_of(&b, 0, 0, 1, 2) - 0.5) < 1e-6);
    assert_true(fabs(rate_of(&b, 1, 0, 1, 2) - 0.5) < 1e-6);
    bed_close(&b);
}

static void oversubscription_shows_when_many_flows_cross(void **state)
{
    static const struct {
        struct sim_taper taper;
        int to;          /* where leaf 0 sends */
        double all, few; /* rate of 32 flows and of 8 */
    } cases[] = {
        {{TAPER_LEAF, 1, 2}, 256, 0.5, 1},
        {{TAPER_LEAF, 1, 8}, 256, 0.125, 0.5},
        {{TAPER_LEAF, 8, 64}, 256, 0.125, 0.5}, /* a unit's leaves together: 256 NICs */
        {{TAPER_UNIT, 1, 64}, 256, 0.125, 0.5},
        {{TAPER_UNIT, 1, 64}, 9, 1, 1}, /* another rail of the unit */
        {{TAPER_LEAF, 1, 8}, 9, 0.125, 0.5},
        {{TAPER_UNIT, 2, 64}, 256, 1, 1}, /* both units are one */
        {{TAPER_RACK, 8, 64}, 256, 0.125, 0.5},
    };
    struct bed b;

    (void)state;
    bed_open(&b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        bed_reset(&b);
        b.world.taper[0] = cases[i].taper;
        b.world.tapers = 1;
        leaf_to(&b, cases[i].to);
        if (fabs(rate_of(&b, 0, 0, 0, 32) - cases[i].all) > 1e-6 ||
            fabs(rate_of(&b, 0, 0, 1, 8) - cases[i].few) > 1e-6)
            fail_msg("case %zu: %g, %g", i, rate_of(&b, 0, 0, 0, 32), rate_of(&b, 0, 0, 1, 8));
        assert_true(fabs(rate_of(&b, 0, 0, 2, 1) - 1) < 1e-9);
    }
    bed_close(&b);
}

/* --- states of faults --- */

static void a_state_is_there_where_it_holds(void **state)
{
    static const struct {
        const char *fault;
        struct at on, off; /* what is not 0 is unlike `here` */
    } cases[] = {
        {"slow-nic=0:0.5@load", {.groups = 2}, {.groups = 1}},
        {"slow-nic=0:0.5@both", {.op = OP_PAIR_BIBW}, {.op = OP_PAIR_BW}},
        {"slow-nic=0:0.5@from=128M", {.bytes = 128 << 20}, {.bytes = 64 << 20}},
        {"slow-nic=0:0.5@to=64K", {.bytes = 64 << 10}, {.bytes = 128 << 10}},
        {"slow-nic=0:0.5@since=0.5", {.turn = 50}, {.turn = 49}},
        {"slow-nic=0:0.5@since=50%,load", {.turn = 50, .groups = 2}, {.turn = 50, .groups = 1}},
        {"slow-leaf=0:0.5@load", {.src = 8}, {.src = 1}},
    };
    struct bed b;

    (void)state;
    bed_open(&b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        put(&b, cases[i].fault);
        for (int on = 0; on < 2; on++) {
            const struct at *w = on ? &cases[i].on : &cases[i].off;
            struct at a = here;
            a.op = w->op ? w->op : a.op;
            a.bytes = w->bytes ? w->bytes : a.bytes;
            a.turn = w->turn ? w->turn : a.turn;
            a.src = w->src ? w->src : a.src;
            a.groups = w->groups ? w->groups : a.groups;
            a.index = a.groups == 1 ? 0 : 1;
            double y = luck(&b, &a);
            if (on ? y < 0.2 : fabs(y) > 1e-9) /* latency is a part of short messages */
                fail_msg("%s: %s: %g", cases[i].fault, on ? "on" : "off", y);
        }
    }
    bed_close(&b);
}

static void a_duty_cycle_holds_for_some_turns(void **state)
{
    enum { SLOTS = 2000 };
    struct bed b;
    int on = 0;

    (void)state;
    bed_open(&b);
    put(&b, "slow-nic=0:0.6@time=0.4");
    for (int i = 0; i < SLOTS; i++) {
        struct at a = here;
        a.turn = FAULT_SLOT * i;
        double first = rate(&b, a);
        assert_true(fabs(first - 1) < 1e-6 || fabs(first - 0.6) < 1e-6);
        on += first < 0.8;
        a.turn += FAULT_SLOT - 1;
        a.src = 256; /* the same fault, the other way */
        a.dst = 0;
        assert_true(fabs(first - rate(&b, a)) < 1e-6);
    }
    assert_true(is_share(on, SLOTS, 0.4));
    bed_close(&b);
}

static void some_samples_are_slow(void **state)
{
    enum { N = 20000 };
    static double v[N];
    struct bed b;
    struct at a = here;
    int slow = 0;

    (void)state;
    bed_open(&b);
    put(&b, "slow-nic=0:0.5@samples=10%");
    a.bytes = (size_t)1 << 40;
    ratios(&b, &a, N, v);
    for (int i = 0; i < N; i++) {
        assert_true(fabs(v[i] - 1) < 1e-6 || fabs(v[i] - 2) < 1e-6);
        slow += v[i] > 1.5;
    }
    assert_true(is_share(slow, N, 0.1));
    a.src = 8;
    ratios(&b, &a, SAMPLES, v);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(fabs(v[i] - 1) < 1e-6);
    bed_close(&b);
}

static void throttling_begins_after_a_while_of_sending(void **state)
{
    static double v[SAMPLES];
    struct bed b;
    double busy = 0;

    (void)state;
    bed_open(&b);
    put(&b, "slow-nic=0:0.5@after=10ms");
    run(&b, &here, SAMPLES, v);
    for (int i = 0; i < SAMPLES; i++) {
        double want = busy >= 10e-3 ? v[0] * 2 : v[0];
        assert_true(fabs(v[i] / want - 1) < 0.01);
        busy += v[i];
    }
    assert_true(busy > 20e-3);
    bed_close(&b);
}

static void one_uplink_of_some_is_bad(void **state)
{
    enum { N = 64, EPOCHS = 5 };
    struct bed b;
    int slow = 0, changed = 0, all = 0;

    (void)state;
    bed_open(&b);
    put(&b, "slow-uplinks=0:0.3@one-of=4");
    for (int i = 0; i < N; i++)
        for (int dst = 256; dst < 512; dst += 16) {
            struct at a = here;
            double first = 0;
            a.src = 8 * (i % 32);
            a.dst = dst + i / 32;
            for (a.epoch = 0; a.epoch < EPOCHS; a.epoch++) {
                double left = rate(&b, a);
                assert_true(fabs(left - 1) < 1e-6 || fabs(left - 0.3) < 1e-6);
                first = a.epoch ? first : left;
                slow += left < 0.5;
                changed += fabs(left - first) > 0.1;
                all++;
            }
        }
    assert_true(is_share(slow, all, 0.25));
    assert_true(is_share(changed, all * (EPOCHS - 1) / EPOCHS, 2 * 0.25 * 0.75));
    struct at a = here;
    a.dst = 8; /* below the leaf */
    assert_true(fabs(rate(&b, a) - 1) < 1e-6);
    bed_close(&b);
}

static void late_parts_add_their_time(void **state)
{
    static const struct {
        const char *fault;
        int src, dst;
        double added;
    } cases[] = {
        {"late-nic=0:3us", 0, 256, 3e-6},   {"late-nic=0:3us", 256, 0, 3e-6},
        {"late-nic=0:3us", 0, 1, 0},        {"late-leaf=0:2us", 8, 256, 2e-6},
        {"late-leaf=0:2us", 8, 16, 2e-6},   {"late-leaf=0:2us", 1, 257, 0},
        {"late-rack=1:5us", 32, 256, 5e-6}, {"late-rack=1:5us", 0, 256, 0},
    };
    struct bed b;

    (void)state;
    bed_open(&b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct at a = here;
        struct sim quiet = {.fabric = &b.fabric, .truth = &b.topo, .healthy = healthy};
        double sec;
        put(&b, cases[i].fault);
        a.op = OP_PAIR_LATENCY;
        a.bytes = 8;
        a.src = cases[i].src;
        a.dst = cases[i].dst;
        run(&b, &a, 1, &sec);
        sec -= sim_pair(&quiet, a.op, a.src, a.dst, 8, 1);
        if (fabs(sec - cases[i].added) > 1e-12)
            fail_msg("%s: %d to %d: %g s", cases[i].fault, a.src, a.dst, sec);
        a.op = OP_PAIR_BW;
        assert_true(fabs(rate(&b, a) - 1) < 1e-6); /* no rate is lost */
    }
    int ids[] = {0, 256};
    put(&b, "late-nic=0:3us");
    double whole = healthy(NULL, OP_ALL_REDUCE, ids, 2, 8);
    assert_true(fabs(sim_collective(&b.sim, OP_ALL_REDUCE, ids, 2, 8, 1) - whole - 3e-6) < 1e-12);
    bed_close(&b);
}

/* Verifications of a pair whose receiver is endpoint 256, one a turn. */
static int wrong_of(struct bed *b, int turns)
{
    const struct transport_calls *sim = transport_find("sim")->calls;
    int wrong = 0, members[] = {0, 256};

    b->round.groups = 1;
    for (int i = 0; i < turns; i++) {
        struct group g = {.members = members,
                          .size = 2,
                          .comm = &b->sim,
                          .round = &b->round,
                          .turn = i,
                          .turns = turns};
        struct err err;
        void *ctx;
        assert_int_equal(sim->open(&ctx, &g, 8, &err), 0);
        wrong += sim->check(ctx, OP_PAIR_BW, 8, &err) < 0;
        sim->close(ctx);
    }
    return wrong;
}

static void data_are_wrong_in_some_checks(void **state)
{
    struct bed b;

    (void)state;
    bed_open(&b);
    put(&b, "corrupt=256");
    assert_int_equal(wrong_of(&b, 200), 200);
    put(&b, "corrupt=256@checks=0.1");
    assert_true(is_share(wrong_of(&b, 4000), 4000, 0.1));
    put(&b, "corrupt=256@since=0.9");
    assert_int_equal(wrong_of(&b, 200), 20);
    bed_close(&b);
}

static void states_are_read_strictly(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"slow-nic=1:0.5@", "unknown state \"\" of slow-nic; known: time samples since after load"},
        {"slow-nic=1:0.5@tim=0.4", "unknown state \"tim\" of slow-nic (did you mean \"time\"?)"},
        {"slow-nic=1:0.5@time=1.4", "state time: \"1.4\" is not a share"},
        {"slow-nic=1:0.5@time", "state time: \"\" is not a share"},
        {"slow-nic=1:0.5@load=1", "state load: it takes no value"},
        {"slow-nic=1:0.5@load,load", "state \"load\" is given twice"},
        {"slow-nic=1:0.5@one-of=4", "unknown state \"one-of\" of slow-nic"},
        {"slow-nic=1:0.5@checks=0.1", "unknown state \"checks\" of slow-nic"},
        {"slow-uplinks=1:0.5@one-of=0", "state one-of: 0 is outside 1..4096"},
        {"lost-uplinks=1:0.5@load", "unknown state \"load\" of lost-uplinks"},
        {"late-nic=1:0.5x", "time of late-nic: \"0.5x\" is not a duration"},
        {"slow-nic=1:0.5@load,", "unknown state \"\" of slow-nic"},
        {"slow-nic=1@load", "factor of slow-nic: "},
    };
    struct bed b;
    struct err err;

    (void)state;
    bed_open(&b);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(sim_fault(&b.sim, bad[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        if (!strstr(err.text, bad[i].message))
            fail_msg("%s", err.text);
    }
    bed_close(&b);
}

/* --- shipped worlds --- */

static void take(void *to, const char *name)
{
    struct sim_world w;
    struct err err;

    if (sim_world_load(&w, name, &err) < 0)
        fail_msg("%s", err.text);
    if (!(w.sample > 0))
        fail_msg("%s: samples without noise", name);
    ++*(int *)to;
}

static void every_shipped_world_is_read_and_listed(void **state)
{
    struct err err;
    int count = 0, listed = 0;

    (void)state;
    sim_world_each(take, &count);
    assert_true(count >= 14);
    char *list = sim_world_list(&err);
    assert_non_null(list);
    for (const char *at = list; at && *at; at = strchr(at, '\n') + 1)
        listed += *at != ' ' && *at != '\n';
    assert_int_equal(listed, count);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_level_is_drawn_for_what_it_belongs_to),
        cmocka_unit_test(a_level_has_the_size_it_was_given),
        cmocka_unit_test(noise_of_other_operations_leaves_latency_alone),
        cmocka_unit_test(stray_points_have_their_share_and_size),
        cmocka_unit_test(samples_have_tails_modes_and_ticks),
        cmocka_unit_test(the_rate_drifts_from_the_first_turn_to_the_last),
        cmocka_unit_test(other_jobs_take_a_leaf_for_some_turns),
        cmocka_unit_test(adaptive_routing_disturbs_loaded_flows_between_leaves),
        cmocka_unit_test(hashed_flows_collide_as_often_as_chance_says),
        cmocka_unit_test(pxn_takes_the_nic_of_a_rail_mate),
        cmocka_unit_test(oversubscription_shows_when_many_flows_cross),
        cmocka_unit_test(a_state_is_there_where_it_holds),
        cmocka_unit_test(a_duty_cycle_holds_for_some_turns),
        cmocka_unit_test(some_samples_are_slow),
        cmocka_unit_test(throttling_begins_after_a_while_of_sending),
        cmocka_unit_test(one_uplink_of_some_is_bad),
        cmocka_unit_test(late_parts_add_their_time),
        cmocka_unit_test(data_are_wrong_in_some_checks),
        cmocka_unit_test(states_are_read_strictly),
        cmocka_unit_test(every_shipped_world_is_read_and_listed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
