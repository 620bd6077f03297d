/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/place.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/model.h"
#include "step/place_parts.h"
#include "step/pricer.h"

/* A machine and a job on it. */
struct scene {
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct question question;
    int *host, hosts; /* free ones */
};

static void open_scene(struct scene *s, const char *fabric, int racks, const char *model,
                       const char *layout, enum strategy strategy, enum mesh_order order)
{
    struct err err = {0, ""};

    memset(s, 0, sizeof(*s));
    assert_int_equal(fabric_load(&s->fabric, fabric, &err), 0);
    assert_int_equal(matrix_from_fabric(&s->matrix, &s->fabric, racks, &err), 0);
    assert_int_equal(model_load(&s->model, model, &err), 0);
    assert_int_equal(constants_load(&s->constants, NULL, &err), 0);
    recipe_defaults(&s->recipe);
    s->recipe.strategy = strategy;
    assert_int_equal(layout_parse(&s->layout, layout, strategy, order, 0, &err), 0);
    if (layout_check(&s->layout, &s->model, &s->recipe, &err) < 0)
        fail_msg("%s", err.text);
    s->question = (struct question){.matrix = &s->matrix,
                                    .fabric = &s->fabric,
                                    .model = &s->model,
                                    .layout = &s->layout,
                                    .recipe = &s->recipe,
                                    .constants = &s->constants};
}

static void close_scene(struct scene *s)
{
    free(s->host);
    matrix_free(&s->matrix);
    fabric_free(&s->fabric);
    model_free(&s->model);
    constants_free(&s->constants);
}

/* Hosts of rack `rack` of a preset, `from` to `to`, become free. */
static void free_rack(struct scene *s, int rack, int from, int to)
{
    for (int n = from; n <= to; n++) {
        char name[32];
        snprintf(name, sizeof(name), "r%02dn%02d", rack, n);
        int host = topo_find_host(&s->matrix.topo, name);
        assert_true(host >= 0);
        MEM_PUSH(s->host, s->hosts) = host;
    }
}

static void slow_racks(struct scene *s, int a, int b, double factor)
{
    MEM_PUSH(s->matrix.exception, s->matrix.exceptions) =
        (struct exception){.part = PART_RACK_PAIR,
                           .a = a,
                           .b = b,
                           .tier = -1,
                           .factor = factor,
                           .why = mem_strdup("test")};
}

static void slow_host(struct scene *s, int host, double factor)
{
    MEM_PUSH(s->matrix.exception, s->matrix.exceptions) =
        (struct exception){.part = PART_HOST,
                           .a = host,
                           .b = -1,
                           .tier = -1,
                           .factor = factor,
                           .why = mem_strdup("t")};
}

static struct place_ask ask_of(const struct scene *s)
{
    return (struct place_ask){.question = &s->question,
                              .matrix = &s->matrix,
                              .host = s->host,
                              .hosts = s->hosts,
                              .seed = 1};
}

static double step_of(const struct scene *s, const int *order)
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

/* Every rank on an endpoint of a free host, no endpoint twice. */
static void check_order(const struct scene *s, const struct placed *p)
{
    bool *taken = mem_calloc((size_t)s->matrix.topo.endpoints, sizeof(bool));

    for (int r = 0; r < p->ranks; r++) {
        bool is_free = !s->host;
        assert_in_range(p->order[r], 0, s->matrix.topo.endpoints - 1);
        assert_false(taken[p->order[r]]);
        taken[p->order[r]] = true;
        for (int i = 0; i < s->hosts; i++)
            is_free |= s->host[i] == s->matrix.topo.endpoint[p->order[r]].place.at[LEVEL_HOST];
        assert_true(is_free);
    }
    free(taken);
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
        sec[k] = step_of(s, seat);
    }
    free(seat);
    return stats_median(sec, 9);
}

/* --- eight clusters --- */

static void aligned(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 15);
}

/* Each rack begins in the middle of an expert group of four nodes. */
static void misaligned(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 16);
}

static void holes(struct scene *s)
{
    for (int r = 0; r < 6; r++) {
        free_rack(s, r, 0, 2 + r % 3);
        free_rack(s, r, 6, 11);
        free_rack(s, r, 14 + r % 2, 17);
    }
}

static void sixteen_of_eighteen(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 17);
}

static void mixed_racks(struct scene *s)
{
    static const int last[] = {4, 17, 9, 16, 6, 17, 2};

    for (int r = 0; r < 7; r++)
        free_rack(s, r, 0, last[r]);
}

static void slow_rack_pair(struct scene *s)
{
    for (int r = 0; r < 6; r++)
        free_rack(s, r, 0, 15);
    slow_racks(s, 1, 2, 0.3);
}

static void slow_nodes(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 16);
    slow_host(s, topo_find_host(&s->matrix.topo, "r00n05"), 0.4);
    slow_host(s, topo_find_host(&s->matrix.topo, "r02n10"), 0.5);
}

/* Nodes as a scheduler might list them: by their number in the rack. */
static void dealt_out(struct scene *s)
{
    for (int n = 0; n < 16; n++)
        for (int r = 0; r < 4; r++)
            free_rack(s, r, n, n);
}

static const struct {
    const char *name;
    void (*make)(struct scene *s);
    double gain; /* the default takes at least so many times as long */
} clusters[] = {
    {"aligned", aligned, 1},
    {"misaligned", misaligned, 1.05},
    {"holes", holes, 1.05},
    {"16 of 18", sixteen_of_eighteen, 1.05},
    {"mixed racks", mixed_racks, 1.05},
    {"a slow pair of racks", slow_rack_pair, 1.02},
    {"slow nodes", slow_nodes, 1.05},
    {"dealt out", dealt_out, 1.05},
};

static void open_scout(struct scene *s, const char *layout)
{
    open_scene(s, "gb200-nvl72", 8, "llama4-scout", layout, STRATEGY_FSDP, ORDER_TORCHTITAN);
    s->recipe.seq = 8192;
    s->recipe.micro_batch = 10;
    s->recipe.global_batch = 10 * s->layout.ranks;
}

static void eight_clusters_are_never_worse_than_block_order(void **state)
{
    (void)state;
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
        assert_float_equal(p.sec, step_of(&s, p.order), 1e-9 * p.sec);
        assert_float_equal(p.in_order, step_of(&s, p.given), 1e-9 * p.sec);
        assert_true(p.sec <= p.in_order && p.sec < p.random && p.bound <= p.sec);
        assert_true(p.sec * clusters[i].gain <= p.in_order);
        placed_free(&p);
        close_scene(&s);
    }
}

/* --- the published case --- */

/* jobs/training/cases/llama4-scout-gb200.json, whose publication names a loss of over 10 % for 16
 * nodes split over two racks and a gain of 13 % from alignment for 64 nodes in four.  Which nodes
 * were split is not said: groups split 2 + 2 stay below the 13 %, 1 + 3 go beyond it.  The stretch
 * is what the case file finds for this job. */
static void scout_goes_from_straddling_to_aligned(void **state)
{
    static const struct {
        const char *layout;
        int racks, last[4]; /* nodes of each rack that are listed first */
        double low, high;
    } lists[] = {
        {"dp_shard=64,ep=16", 2, {9, 5}, 1.10, 1.13},            /* 10 + 6 nodes: split 2 + 2 */
        {"dp_shard=64,ep=16", 2, {8, 6}, 1.13, 1.18},            /* 9 + 7: 1 + 3 */
        {"dp_shard=256,ep=16", 4, {17, 17, 17, 9}, 1.09, 1.13},  /* racks filled in turn: 2 + 2 */
        {"dp_shard=256,ep=16", 4, {16, 17, 17, 10}, 1.13, 1.18}, /* 1 + 3 */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct scene s;
        struct placed p;
        open_scout(&s, lists[i].layout);
        s.question.stretch = 1.284;
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

/* --- traffic without a model --- */

/* The volumes of a mesh: tp 1000, ep 200 a rank, dp 60, pp 20; ranks are tp fastest, then dp (ep
 * inside it), then pp; GB a step. */
static void mesh_demand(struct demand *d, int tp, int dp, int pp, int ep)
{
    int ranks = tp * dp * pp;

    *d = (struct demand){.ranks = ranks};
    for (int r = 0; r < ranks; r++) {
        int t = r % tp, x = r / tp % dp, p = r / tp / dp;
        MEM_PUSH(d->flow, d->flows) = (struct flow){r, r - t + (t + 1) % tp, 1e12};
        MEM_PUSH(d->flow, d->flows) = (struct flow){r, t + tp * ((x + 1) % dp + dp * p), 60e9};
        if (p + 1 < pp)
            MEM_PUSH(d->flow, d->flows) = (struct flow){r, r + tp * dp, 20e9};
        for (int e = x / ep * ep; e < x / ep * ep + ep; e++)
            if (e != x)
                MEM_PUSH(d->flow, d->flows) =
                    (struct flow){r, t + tp * (e + dp * p), 200e9 / (ep - 1)};
    }
}

/* Seconds of all flows, one after another: what the communication costs. */
static double cost_of(const struct matrix *m, const struct demand *d, const int *order)
{
    struct cost c;
    double sum = 0;

    for (int i = 0; i < d->flows; i++) {
        matrix_pair(m, order[d->flow[i].src], order[d->flow[i].dst], d->flow[i].bytes, &c);
        sum += c.sec;
    }
    return sum;
}

static const struct {
    int tp, dp, pp, ep, racks, per_rack; /* nodes free of each rack */
    double least;                        /* scattered ranks cost at least so many times as much */
} meshes[] = {
    {8, 8, 8, 8, 8, 16, 8}, {8, 8, 8, 8, 10, 15, 6}, /* no rack holds a whole tp x ep block of 64 */
    {8, 8, 8, 8, 9, 18, 8}, {16, 9, 4, 1, 8, 18, 8}, {8, 9, 4, 3, 5, 18, 8},
};

static void traffic_costs_an_eighth_of_what_scattered_ranks_cost(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(meshes) / sizeof(*meshes); i++) {
        struct scene s;
        struct demand d;
        struct placed p;
        struct err err = {0, ""};
        int seats = 0, *seat = NULL;
        double cost[9];
        struct rng rng;
        open_scene(&s, "gb200-nvl72", 12, "mixtral-8x7b", "dp_shard=8", STRATEGY_FSDP,
                   ORDER_MEGATRON);
        for (int r = 0; r < meshes[i].racks; r++)
            free_rack(&s, r, 0, meshes[i].per_rack - 1);
        mesh_demand(&d, meshes[i].tp, meshes[i].dp, meshes[i].pp, meshes[i].ep);
        struct place_ask ask = ask_of(&s);
        ask.question = NULL;
        ask.demand = &d;
        assert_int_equal(place_run(&p, &ask, &err), 0);
        check_order(&s, &p);
        for (int e = 0; e < s.matrix.topo.endpoints; e++)
            for (int k = 0; k < s.hosts; k++)
                if (s.matrix.topo.endpoint[e].place.at[LEVEL_HOST] == s.host[k])
                    MEM_PUSH(seat, seats) = e;
        rng_seed(&rng, 3);
        for (int k = 0; k < 9; k++) {
            rng_shuffle(&rng, seat, seats);
            cost[k] = cost_of(&s.matrix, &d, seat);
        }
        double random = stats_median(cost, 9), placed = cost_of(&s.matrix, &d, p.order);
        double given = cost_of(&s.matrix, &d, p.given);
        print_message("tp%d dp%d pp%d ep%d on %d x %d nodes: cost placed %.0f s, default %.0f, "
                      "scattered %.0f (x %.1f); busiest %.2f s, default %.2f, shuffled %.2f, "
                      "bound %.2f; %ld tried in %.2f s; %s\n",
                      meshes[i].tp, meshes[i].dp, meshes[i].pp, meshes[i].ep, meshes[i].racks,
                      meshes[i].per_rack, placed, given, random, random / placed, p.sec, p.in_order,
                      p.random, p.bound, p.tried, p.took, p.how);
        assert_true(p.sec <= p.in_order && p.bound <= p.sec);
        assert_true(random >= meshes[i].least * placed);
        free(seat);
        placed_free(&p);
        demand_free(&d);
        close_scene(&s);
    }
}

/* Ranks of the mesh under names that say nothing, in racks with holes: with Scotch, where it is
 * installed, and without it the answer holds every rank once, is no worse, and is the same again.
 */
static void renamed_ranks_in_racks_with_holes(void **state)
{
    struct scene s;
    struct demand d;
    struct placed p[4];
    struct err err = {0, ""};
    struct rng rng;
    int name[288];

    (void)state;
    open_scene(&s, "gb200-nvl72", 8, "mixtral-8x7b", "dp_shard=8", STRATEGY_FSDP, ORDER_MEGATRON);
    for (int r = 0; r < 8; r++)
        free_rack(&s, r, r % 3, 9 + r);
    mesh_demand(&d, 8, 9, 4, 3);
    rng_seed(&rng, 11);
    for (int i = 0; i < 288; i++)
        name[i] = i;
    rng_shuffle(&rng, name, 288);
    for (int i = 0; i < d.flows; i++) {
        d.flow[i].src = name[d.flow[i].src];
        d.flow[i].dst = name[d.flow[i].dst];
    }
    for (int k = 0; k < 4; k++) {
        struct place_ask ask = ask_of(&s);
        ask.question = NULL;
        ask.demand = &d;
        ask.scotch = k < 2;
        assert_int_equal(place_run(&p[k], &ask, &err), 0);
        check_order(&s, &p[k]);
        print_message("%s: busiest %.2f s, default %.2f, bound %.2f, %.2f s; %s\n",
                      ask.scotch ? "with Scotch" : "without", p[k].sec, p[k].in_order, p[k].bound,
                      p[k].took, p[k].how);
        assert_true(2 * p[k].sec <= p[k].in_order);
    }
    assert_memory_equal(p[0].order, p[1].order, 288 * sizeof(int));
    assert_memory_equal(p[2].order, p[3].order, 288 * sizeof(int));
    for (int k = 0; k < 4; k++)
        placed_free(&p[k]);
    demand_free(&d);
    close_scene(&s);
}

/* Scotch alone, in racks of ten nodes for groups of two: no rack gets more ranks than seats. */
static void scotch_keeps_to_the_seats(void **state)
{
    struct scene s;
    struct demand d;
    struct err err = {0, ""};
    struct placer pl;
    struct pool pool;
    struct best b = {.how = "none"};

    (void)state;
    open_scene(&s, "gb200-nvl72", 8, "mixtral-8x7b", "dp_shard=8", STRATEGY_FSDP, ORDER_MEGATRON);
    for (int r = 0; r < 8; r++)
        free_rack(&s, r, 0, 8);
    mesh_demand(&d, 8, 9, 4, 3);
    struct place_ask ask = ask_of(&s);
    ask.question = NULL;
    ask.demand = &d;
    assert_int_equal(placer_open(&pl, &ask, &err), 0);
    assert_int_equal(pool_make(&pool, &ask, pl.ranks, &err), 0);
    pl.pool = &pool;
    b.ranks = pl.ranks;
    b.order = mem_calloc((size_t)pl.ranks, sizeof(int));
    memcpy(b.order, pool.endpoint, (size_t)pl.ranks * sizeof(int));
    b.verdict = (struct verdict_of_order){NAN, NAN};
    bool there = place_scotch(&b, &pl, &pool, &err) == 0;
    if (there) {
        struct placed p = {.order = b.order, .ranks = b.ranks};
        struct rng rng;
        rng_seed(&rng, 2);
        rng_shuffle(&rng, pool.endpoint, pool.seats);
        double scattered = placer_order(&pl, pool.endpoint).mean;
        print_message("Scotch: an endpoint sends for %.2f s, scattered %.2f s\n", b.verdict.mean,
                      scattered);
        assert_string_equal(b.how, "Scotch");
        check_order(&s, &p);
        assert_true(2 * b.verdict.mean < scattered);
    }
    free(b.order);
    free(b.seen);
    pool_free(&pool);
    placer_close(&pl);
    demand_free(&d);
    close_scene(&s);
    if (!there) {
        print_message("skipped: %s\n", err.text);
        skip();
    }
}

/* --- all orders of few nodes --- */

struct brute {
    const struct scene *scene;
    int *order, *host, nodes, per;
    double best;
    long tried;
};

static void all_orders(struct brute *b, int at, unsigned used)
{
    if (at == b->nodes) {
        double sec = step_of(b->scene, b->order);
        b->best = sec < b->best ? sec : b->best;
        b->tried++;
        return;
    }
    for (int i = 0; i < b->scene->hosts; i++) {
        if (used & 1u << i)
            continue;
        for (int k = 0, e = 0; k < b->per; e++)
            if (b->scene->matrix.topo.endpoint[e].place.at[LEVEL_HOST] == b->scene->host[i])
                b->order[at * b->per + k++] = e;
        all_orders(b, at + 1, used | 1u << i);
    }
}

static double brute_force(const struct scene *s, int per, long *tried)
{
    int order[128];
    struct brute b = {s, order, s->host, s->layout.ranks / per, per, INFINITY, 0};

    all_orders(&b, 0, 0);
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

static void few_nodes_get_the_best_of_all_orders(void **state)
{
    (void)state;
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
        print_message("%s %s: %.6f s, best of %ld orders %.6f s; %s\n", small[i].fabric,
                      small[i].layout, p.sec, tried, best, p.how);
        assert_true(p.sec <= best * (1 + 1e-6)); /* ranks of a node may differ, so less is fine */
        assert_true(p.bound <= best * (1 + 1e-9));
        placed_free(&p);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scout_goes_from_straddling_to_aligned),
        cmocka_unit_test(traffic_costs_an_eighth_of_what_scattered_ranks_cost),
        cmocka_unit_test(renamed_ranks_in_racks_with_holes),
        cmocka_unit_test(scotch_keeps_to_the_seats),
        cmocka_unit_test(few_nodes_get_the_best_of_all_orders),
        cmocka_unit_test(eight_clusters_are_never_worse_than_block_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
