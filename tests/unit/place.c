/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "place/place_impl.h"
#include "place_scene.h"
#include "step/pricer.h"
#include "test.h"

static double seconds_of(const struct scene *s, const int *order)
{
    struct question q = s->question;
    struct prediction p;
    struct err err = {0, ""};

    q.order = order;
    if (predict_step(&p, &q, &err) < 0)
        fail_msg("%s", err.text);
    double sec = p.sec;
    prediction_free(&p);
    return sec;
}

static void run_scene(struct scene *s, struct placed *p)
{
    struct place_ask ask = ask_of(s);
    struct err err = {0, ""};

    if (place_run(p, &ask, &err) < 0)
        fail_msg("%s", err.text);
}

/* Ranks scattered over all free seats; median of nine. */
static double scattered_ranks(const struct scene *s)
{
    int *seat = NULL, seats = 0;
    double sec[9];
    struct rng rng;

    rng_seed(&rng, 7);
    for (int e = 0; e < s->matrix.topo.endpoints; e++)
        for (int i = 0; i < s->hosts; i++)
            if (s->matrix.topo.endpoint[e].place.at[LEVEL_HOST] == s->host[i])
                MEM_PUSH(seat, seats) = e;
    for (int k = 0; k < 9; k++) {
        rng_shuffle(&rng, seat, seats);
        sec[k] = seconds_of(s, seat);
    }
    free(seat);
    return stats_median(sec, 9);
}

static void open_scout(struct scene *s, const char *layout)
{
    open_scene(s, "gb200-nvl72", 8, "llama4-scout", layout, STRATEGY_FSDP, ORDER_TORCHTITAN);
    s->recipe.seq = 8192;
    s->recipe.micro_batch = 10;
    s->recipe.global_batch = 10 * s->layout.ranks;
}

TEST(eight_clusters_are_never_worse_than_block_order)
{
    for (size_t i = 0; i < sizeof(clusters) / sizeof(*clusters); i++) {
        struct scene s;
        struct placed p;
        open_scout(&s, "dp_shard=256,ep=16");
        clusters[i].make(&s);
        run_scene(&s, &p);
        check_order(&s, &p);
        print_message("%-22s placed %.3f s, default %.3f, nodes shuffled %.3f, ranks scattered "
                      "%.3f, bound %.3f; %ld tried in %.2f s; %s\n",
                      clusters[i].name, p.sec, p.in_order, p.random, scattered_ranks(&s), p.bound,
                      p.tried, p.took, p.how);
        assert_float_equal(p.sec, seconds_of(&s, p.order), 1e-9 * p.sec);
        assert_float_equal(p.in_order, seconds_of(&s, p.given), 1e-9 * p.sec);
        assert_true(p.sec <= p.in_order && p.sec < p.random && p.bound <= p.sec);
        assert_true(p.sec * clusters[i].gain <= p.in_order);
        /* Compute and all: scattered ranks take 1.3 times the bound, so the bound is what is left.
         */
        assert_true(p.bound >= 0.95 * p.sec);
        placed_free(&p);
        close_scene(&s);
    }
}

/* Whatever the limit: an order that is within it has its own price to the bit, one that is beyond it
 * may have any price that is beyond it, too. */
TEST(a_limit_hides_no_order_that_is_within_it)
{
    struct scene s;
    struct node_pool pool;
    struct placer exact, limited;
    struct host_slots seats;
    struct rng rng;
    struct err err;
    int within = 0, cut = 0;

    open_scene(&s, "gb200-nvl72", 4, "llama3.1-70b", "tp=8,pp=2,dp=8", STRATEGY_ZERO1,
               ORDER_MEGATRON);
    for (int r = 0; r < 4; r++)
        free_rack(&s, r, 0, 8);
    slow_racks(&s, 0, 2, 0.5);
    struct place_ask ask = ask_of(&s);
    host_slots_make(&seats, &s.matrix.topo);
    assert_int_equal(node_pool_make(&pool, &s.matrix, &seats, s.host, s.hosts, 0, &err), 0);
    placer_open(&exact, &ask, &pool);
    placer_open(&limited, &ask, &pool);
    placer_bound(&exact);
    placer_bound(&limited);
    rng_seed(&rng, 11);
    double usual = placer_order(&exact, pool.endpoint).most;
    for (int turn = 0; turn < 200; turn++) {
        int size = 1 << rng_below(&rng, 5), n = pool.slots / size;
        int a = (int)rng_below(&rng, (unsigned)n) * size,
            b = (int)rng_below(&rng, (unsigned)n) * size;
        for (int i = 0; i < size; i++) {
            int keep = pool.endpoint[a + i];
            pool.endpoint[a + i] = pool.endpoint[b + i];
            pool.endpoint[b + i] = keep;
        }
        double limit = usual * (0.7 + rng_uniform(&rng));
        struct place_sec all = placer_order(&exact, pool.endpoint);
        struct place_sec known = placer_within(&limited, pool.endpoint, limit);
        /* means are sums over kinds of groups in the order in which these were met first */
        if (all.most <= limit &&
            (known.most != all.most || fabs(known.mean / all.mean - 1) > 1e-12))
            fail_msg("turn %d: %.17g s, not %.17g s; mean %.17g, not %.17g", turn, known.most,
                     all.most, known.mean, all.mean);
        assert_true(known.most <= all.most * (1 + 1e-9));
        assert_true(all.most <= limit || known.most > limit);
        within += all.most <= limit;
        cut += known.most < all.most;
        usual = all.most;
    }
    print_message("%d within, %d cut short\n", within, cut);
    assert_true(within > 20 && cut > 20);
    placer_close(&exact);
    placer_close(&limited);
    node_pool_free(&pool);
    host_slots_free(&seats);
    close_scene(&s);
}

/* Three racks of seven nodes seat three groups of four whole, and there are four: no order has them
 * all inside domains, and the bound knows. */
TEST(a_group_that_must_be_split_is_in_the_bound)
{
    struct scene s;
    struct placed p;

    open_scout(&s, "dp_shard=64,ep=16");
    for (int r = 0; r < 3; r++)
        free_rack(&s, r, 0, 6);
    run_scene(&s, &p);
    print_message("placed %.4f s, bound %.4f s; %s\n", p.sec, p.bound, p.how);
    assert_true(p.bound <= p.sec && p.bound >= 0.95 * p.sec);
    placed_free(&p);
    close_scene(&s);
}

/* --- the published case --- */

/* jobs/training/cases/llama4-scout-gb200.json, whose publication names a loss of over 10 % for 16
 * nodes split over two racks and a gain of 13 % from alignment for 64 nodes in four.  Which nodes
 * were split is not said: groups split 2 + 2 stay below the 13 %, 1 + 3 come nearer.  The stretch is
 * what the case file finds for this job. */
TEST(scout_goes_from_straddling_to_aligned)
{
    static const struct {
        const char *layout;
        int racks, last[4]; /* nodes of each rack that are listed first */
        double low, high;
    } lists[] = {
        {"dp_shard=64,ep=16", 2, {9, 5}, 1.06, 1.15},            /* 10 + 6 nodes: split 2 + 2 */
        {"dp_shard=64,ep=16", 2, {8, 6}, 1.10, 1.21},            /* 9 + 7: 1 + 3 */
        {"dp_shard=256,ep=16", 4, {17, 17, 17, 9}, 1.05, 1.15},  /* racks filled in turn: 2 + 2 */
        {"dp_shard=256,ep=16", 4, {16, 17, 17, 10}, 1.08, 1.21}, /* 1 + 3 */
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct scene s;
        struct placed p;
        open_scout(&s, lists[i].layout);
        s.question.stretch = 1.43;
        for (int r = 0; r < lists[i].racks; r++)
            free_rack(&s, r, 0, lists[i].last[r]);
        assert_int_equal(4 * s.hosts, s.layout.ranks);
        for (int r = 0; r < lists[i].racks; r++) /* the others are free too, and listed last */
            if (lists[i].last[r] < 17)
                free_rack(&s, r, lists[i].last[r] + 1, 17);
        run_scene(&s, &p);
        for (int r = 0; r < p.ranks; r++) /* every expert group ends inside one domain */
            assert_int_equal(s.matrix.topo.endpoint[p.order[r]].place.at[LEVEL_DOMAIN],
                             s.matrix.topo.endpoint[p.order[r / 16 * 16]].place.at[LEVEL_DOMAIN]);
        double gain = p.in_order / p.sec;
        print_message("Scout on %d: %.3f s to %.3f s, x %.3f\n", p.ranks, p.in_order, p.sec, gain);
        assert_true(gain > lists[i].low && gain < lists[i].high);
        placed_free(&p);
        close_scene(&s);
    }
}

/* --- traffic without a model (more of it: place_traffic.c) --- */

/* Ranks of the mesh under names that say nothing, in racks with holes: the answer holds every rank
 * once, is no worse, and is the same again. */
TEST(renamed_ranks_in_racks_with_holes)
{
    struct scene s;
    struct demand d;
    struct placed p[2];
    struct err err = {0, ""};
    struct rng rng;
    int name[288];

    open_scene(&s, "gb200-nvl72", 8, "mixtral-8x7b", "dp_shard=8", STRATEGY_FSDP, ORDER_MEGATRON);
    for (int r = 0; r < 8; r++)
        free_rack(&s, r, r % 3, 9 + r);
    mesh_demand(&d, (struct mesh_job){8, 9, 4, 3});
    rng_seed(&rng, 11);
    for (int i = 0; i < 288; i++)
        name[i] = i;
    rng_shuffle(&rng, name, 288);
    for (int i = 0; i < d.flows; i++) {
        d.flow[i].src = name[d.flow[i].src];
        d.flow[i].dst = name[d.flow[i].dst];
    }
    for (int k = 0; k < 2; k++) {
        struct place_ask ask = ask_of(&s);
        ask.step = NULL;
        ask.demand = &d;
        assert_int_equal(place_run(&p[k], &ask, &err), 0);
        check_order(&s, &p[k]);
        print_message("busiest %.2f s, default %.2f, bound %.2f, %.2f s; %s\n", p[k].sec,
                      p[k].in_order, p[k].bound, p[k].took, p[k].how);
        assert_true(2 * p[k].sec <= p[k].in_order);
    }
    assert_memory_equal(p[0].order, p[1].order, 288 * sizeof(int));
    for (int k = 0; k < 2; k++)
        placed_free(&p[k]);
    demand_free(&d);
    close_scene(&s);
}

/* --- all orders of few nodes --- */

struct brute {
    const struct scene *scene;
    struct pricer *pricer;
    int *order, nodes, per;
    double best;
    long tried;
};

static void all_orders(struct brute *b, int at, unsigned used)
{
    if (at == b->nodes) {
        assert_int_equal(pricer_reorder(b->pricer, b->order, NULL), 0);
        double sec = place_price_by(&b->scene->step, b->pricer, NULL, NULL);
        b->best = sec < b->best ? sec : b->best;
        b->tried++;
        return;
    }
    for (int i = 0; i < b->scene->hosts; i++) {
        if (used & 1u << i)
            continue;
        for (int k = 0; k < b->per; k++)
            b->order[at * b->per + k] = b->scene->host[i] * b->per + k;
        all_orders(b, at + 1, used | 1u << i);
    }
}

/* After ask_of(). */
static double brute_force(const struct scene *s, int per, long *tried)
{
    int order[128];
    struct brute b = {s, NULL, order, s->layout.ranks / per, per, INFINITY, 0};

    assert_int_equal(pricer_open(&b.pricer, &s->matrix, NULL, s->layout.ranks, NULL), 0);
    all_orders(&b, 0, 0);
    pricer_close(b.pricer);
    *tried = b.tried;
    return b.best;
}

static const struct {
    const char *fabric, *layout;
    struct {
        int rack, from, to;
    } nodes[4];
    int slow_pair[2]; /* racks; equal: none */
    const char *slow; /* host */
} small[] = {
    {"gb200-nvl72", "dp_shard=28,ep=4", {{0, 0, 2}, {1, 3, 6}}, {0, 0}, NULL},
    {"gb200-nvl72", "dp_shard=24,ep=8", {{0, 0, 2}, {1, 3, 6}}, {0, 0}, NULL},
    {"gb200-nvl72", "dp_shard=16,ep=8", {{0, 0, 0}, {1, 3, 5}, {2, 1, 3}}, {1, 2}, NULL},
    {"gb200-nvl72", "dp_shard=24,ep=8", {{0, 0, 1}, {1, 3, 4}, {3, 5, 6}}, {0, 3}, NULL},
    {"gb200-nvl72", "dp_shard=16,ep=8", {{0, 0, 2}, {1, 3, 5}}, {0, 0}, "r00n01"},
    {"gb200-nvl72", "pp=2,dp_shard=4,tp=2,ep=4", {{0, 0, 1}, {1, 3, 5}, {2, 0, 1}}, {0, 2}, NULL},
    {"gb200-nvl72", "dp_shard=32,ep=8", {{0, 0, 2}, {1, 3, 4}, {2, 1, 3}}, {0, 1}, "r02n02"},
    {"hgx-h100", "pp=3,dp_shard=16,ep=8", {{0, 0, 2}, {1, 0, 1}, {9, 0, 0}}, {0, 0}, NULL},
    {"hgx-h100", "pp=2,dp_shard=16,ep=8", {{0, 0, 1}, {1, 0, 1}, {9, 0, 1}}, {0, 1}, NULL},
};

TEST(few_nodes_get_the_best_of_all_orders)
{
    for (size_t i = 0; i < sizeof(small) / sizeof(*small); i++) {
        struct scene s;
        struct placed p;
        long tried;
        open_scene(&s, small[i].fabric, 12, "mixtral-8x7b", small[i].layout, STRATEGY_FSDP,
                   ORDER_MEGATRON);
        for (int k = 0; k < 4 && (k == 0 || small[i].nodes[k].rack); k++)
            free_rack(&s, small[i].nodes[k].rack, small[i].nodes[k].from, small[i].nodes[k].to);
        if (small[i].slow_pair[0] != small[i].slow_pair[1])
            slow_racks(&s, small[i].slow_pair[0], small[i].slow_pair[1], 0.3);
        if (small[i].slow)
            slow_host(&s, topo_find_host(&s.matrix.topo, small[i].slow), 0.3);
        run_scene(&s, &p);
        double best = brute_force(&s, s.fabric.gpus_per_host, &tried);
        print_message("%s %s: %.6f s, best of %ld orders %.6f s, bound %.6f; %s\n", small[i].fabric,
                      small[i].layout, p.sec, tried, best, p.bound, p.how);
        assert_true(p.sec <= best * (1 + 1e-6)); /* ranks of a node may differ, so less is fine */
        assert_true(p.bound > 0 && p.bound <= best * (1 + 1e-9));
        placed_free(&p);
        close_scene(&s);
    }
}

/* Five to eight nodes of three racks, of which a job takes all or all but one; slow nodes, NICs and pairs of
 * racks. */
static void open_few(struct scene *s, struct rng *rng)
{
    static const char *const layouts[] = {"dp_shard=%d,ep=4", "dp_shard=%d,ep=8",
                                          "tp=4,dp_shard=%d", "tp=2,dp_shard=%d",
                                          "pp=2,tp=2,dp_shard=%d,ep=2"};
    static const int others[] = {1, 1, 4, 2, 4};
    int kind = (int)rng_below(rng, 5), nodes = 5 + (int)rng_below(rng, 4), host[54];
    int taken = nodes - (int)rng_below(rng, 2);
    char layout[64];

    taken -= kind == 1 ? taken % 2 : 0; /* whole groups of experts */
    snprintf(layout, sizeof(layout), layouts[kind], 4 * taken / others[kind]);
    open_scene(s, "gb200-nvl72", 3, "mixtral-8x7b", layout, STRATEGY_FSDP, ORDER_MEGATRON);
    for (int h = 0; h < 54; h++)
        host[h] = h;
    rng_shuffle(rng, host, 54);
    for (int i = 0; i < nodes; i++)
        MEM_PUSH(s->host, s->hosts) = host[i];
    for (unsigned n = rng_below(rng, 3); n > 0; n--)
        slow_host(s, host[rng_below(rng, (unsigned)nodes)], 0.2 + 0.7 * rng_uniform(rng));
    if (rng_below(rng, 3) == 0)
        slow_racks(s, 0, 1, 0.5);
}

/* No order of ranks on the free slots is below the bound: not the best of whole nodes, not random ones. */
TEST(few_nodes_lie_between_bound_and_placed)
{
    enum { FEW = 40, RANDOM = 200 };
    int best_found = 0, tight = 0;

    for (uint64_t seed = 1; seed <= FEW; seed++) {
        struct scene s;
        struct placed p;
        struct rng rng;
        long tried;
        int slot[32];
        rng_seed(&rng, seed);
        open_few(&s, &rng);
        run_scene(&s, &p);
        check_order(&s, &p);
        double best = brute_force(&s, 4, &tried);
        for (int i = 0; i < 4 * s.hosts; i++)
            slot[i] = s.host[i / 4] * 4 + i % 4;
        for (int k = 0; k < RANDOM; k++) {
            rng_shuffle(&rng, slot, 4 * s.hosts);
            double sec = place_price(&s.step, &s.matrix, slot, NULL, NULL);
            if (!(p.bound <= sec * (1 + 1e-9)))
                fail_msg("seed %d: an order takes %.9f s, and the bound is %.9f", (int)seed, sec,
                         p.bound);
        }
        if (!(p.bound > 0 && p.bound <= fmin(best, p.sec) * (1 + 1e-9) &&
              p.sec <= best * (1 + 1e-3)))
            fail_msg("seed %d: bound %.9f, best of whole nodes %.9f, placed %.9f", (int)seed,
                     p.bound, best, p.sec);
        best_found += p.sec <= best * (1 + 1e-6);
        tight += p.sec <= p.bound * 1.05;
        placed_free(&p);
        close_scene(&s);
    }
    print_message(
        "of %d: %d as good as the best order of whole nodes, %d within 5 %% of the bound\n", FEW,
        best_found, tight);
    assert_true(best_found >= FEW - 2);
}
