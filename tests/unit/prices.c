/* SPDX-License-Identifier: BSD-3-Clause */
/* prices.c - what holds of every price, on random matrices: measured, scaled and modelled shapes
 * side by side, ladders that end anywhere.  RG_SEED=N repeats one. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#include "base/stats.h"
#include "matrix/collective.h"
#include "place/place.h"
#include "railgauge.h"
#include "small.h"
#include "step/pricer.h"

enum { MATRICES = 60, GROUPS = 8, MEMBERS = 64 };

static const enum op asked[] = {OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_ALL_TO_ALL,
                                OP_ALL_REDUCE, OP_BROADCAST,      OP_SENDRECV};
enum { ASKED = sizeof(asked) / sizeof(*asked) };

/* A machine of racks x hosts x endpoints, and how its parts are numbered. */
struct machine {
    struct matrix m;
    struct rng rng;
    int racks, hosts, per_host, domain; /* endpoints of a domain */
    unsigned long long seed;
};

static double between(struct rng *rng, double low, double high)
{
    return low * pow(high / low, rng_uniform(rng));
}

/* Nearer tiers are the faster ones, in latency and in rate. */
static void add_tiers(struct machine *x)
{
    struct rng *rng = &x->rng;
    bool gpu = x->m.topo.endpoint[0].kind == ENDPOINT_GPU;
    double alpha = between(rng, 0.5e-6, 8e-6), rate = between(rng, 5e9, 900e9);

    small_tier(&x->m, gpu ? "nvlink" : "shm",
               1u << (x->domain > x->per_host ? LEVEL_DOMAIN : LEVEL_HOST), alpha, rate, false);
    alpha *= between(rng, 1, 20);
    rate /= between(rng, 2, 30);
    if (x->racks > 1)
        small_tier(&x->m, "rack", 1u << LEVEL_RACK, alpha, rate, true);
    small_tier(&x->m, "fabric", 0, alpha * between(rng, 1, 3), rate / between(rng, 1, 3), true);
}

/* What a group of these would have shown: the model's times what the library makes of it, with
 * noise, and rising. */
static void measure(struct machine *x, enum op op, const int *ids, int n)
{
    struct collective c = {.op = op, .basis = BASIS_MEASURED, .at_once = 1};
    double first = pow(2, 3 + rng_below(&x->rng, 14)), last = pow(2, 18 + rng_below(&x->rng, 12));
    double eff = between(&x->rng, 0.6, 1.8), add = between(&x->rng, 0.3e-6, 30e-6), before = 0;
    struct ways w;

    ways_of(&w, &x->m, ids, n, op, false);
    c.shape = w.shape;
    c.crossings = w.crossings;
    for (int i = 0; i < x->m.collectives; i++)
        if (x->m.collective[i].op == op && shape_equal(&x->m.collective[i].shape, &c.shape))
            return;
    for (double s = first; s <= last; s *= 2) {
        double sec = (add + eff * model_time(&x->m, &w, op, s)) * (1 + 0.04 * rng_normal(&x->rng));
        before = sec = fmax(sec, before);
        curve_add(&c.curve, (struct curve_point){s, sec, 0.97 * sec, 1.03 * sec, 100});
    }
    curve_summarise(&c.curve);
    MEM_PUSH(x->m.collective, x->m.collectives) = c;
}

/* n members, as many in each of `domains` neighbouring domains from a random one on; 0: they do not
 * fit. */
static int group_of(struct machine *x, int n, int domains, int first, int *ids)
{
    int all = x->m.topo.endpoints / x->domain, per = n / domains;

    if (per < 1 || per > x->domain || domains > all || per * domains != n)
        return 0;
    for (int i = 0; i < n; i++)
        ids[i] = (first + i / per) % all * x->domain + i % per;
    return n;
}

static int any_group(struct machine *x, int *ids)
{
    int all = x->m.topo.endpoints / x->domain, n = 0;

    while (n < 2) {
        int domains = 1 + (int)rng_below(&x->rng, (unsigned)all);
        int per = 1 + (int)rng_below(&x->rng, (unsigned)x->domain);
        if (domains * per <= MEMBERS)
            n = group_of(x, per * domains, domains, (int)rng_below(&x->rng, (unsigned)all), ids);
    }
    return n;
}

static void open_machine(struct machine *x, unsigned long long seed)
{
    int ids[MEMBERS];

    memset(x, 0, sizeof(*x));
    x->seed = seed;
    rng_seed(&x->rng, seed);
    matrix_init(&x->m);
    x->m.transport = mem_strdup("sim");
    x->racks = 1 + (int)rng_below(&x->rng, 3);
    x->hosts = 2 * (1 + (int)rng_below(&x->rng, 3));
    x->per_host = 1 << rng_below(&x->rng, 4);
    bool wide = rng_below(&x->rng, 2), gpu = wide || rng_below(&x->rng, 2);
    small_topo(&x->m.topo, x->racks, x->hosts, x->per_host, true,
               gpu ? ENDPOINT_GPU : ENDPOINT_CPU);
    x->domain = wide ? 2 * x->per_host : x->per_host;
    for (int i = 0; wide && i < x->m.topo.endpoints; i++) {
        char name[32];
        snprintf(name, sizeof(name), "d%d", i / x->domain);
        x->m.topo.endpoint[i].place.at[LEVEL_DOMAIN] =
            topo_add_group(&x->m.topo, LEVEL_DOMAIN, name);
    }
    add_tiers(x);
    for (int i = (int)rng_below(&x->rng, 12); i > 0; i--)
        measure(x, asked[rng_below(&x->rng, ASKED)], ids, any_group(x, ids));
}

static unsigned long long first_seed(void)
{
    const char *text = getenv("RG_SEED");

    return text ? strtoull(text, NULL, 10) : 1;
}

static int matrices(void)
{
    return getenv("RG_SEED") ? 1 : MATRICES;
}

static double price(const struct machine *x, enum op op, const int *ids, int n, double bytes)
{
    struct cost c;

    matrix_collective(&x->m, op, ids, n, bytes, &c);
    if (!(c.sec > 0 && c.lo <= c.sec && c.sec <= c.hi))
        fail_msg("seed %llu: %s of %d at %g: %g (%g to %g)", x->seed, op_name(op), n, bytes, c.sec,
                 c.lo, c.hi);
    return c.sec;
}

TEST(time_rises_with_bytes)
{
    for (int k = 0; k < matrices(); k++) {
        struct machine x;
        int ids[MEMBERS];
        open_machine(&x, first_seed() + (unsigned)k);
        for (int g = 0; g < GROUPS; g++) {
            enum op op = asked[rng_below(&x.rng, ASKED)];
            int n = any_group(&x, ids);
            double before = 0;
            for (double s = 1; s <= 0x1p37; s *= between(&x.rng, 1.01, 4)) {
                double sec = price(&x, op, ids, n, s);
                if (sec < before * (1 - 1e-9))
                    fail_msg("seed %llu: %s of %d (from %d) falls to %g at %g bytes from %g",
                             x.seed, op_name(op), n, ids[0], sec, s, before);
                before = sec;
            }
        }
        matrix_free(&x.m);
    }
}

/* Was this group measured at that size, or one that is larger? */
static bool measured_at(const struct machine *x, enum op op, const int *ids, int n, double bytes)
{
    struct shape shape;

    shape_of(&shape, &x->m.topo, ids, n);
    for (int i = 0; i < x->m.collectives; i++) {
        const struct collective *c = &x->m.collective[i];
        if (c->op == op && shape_equal(&c->shape, &shape) &&
            bytes <= c->curve.point[c->curve.points - 1].bytes)
            return true;
    }
    return false;
}

TEST(a_domain_is_no_dearer_than_two)
{
    int compared = 0;

    for (int k = 0; k < matrices(); k++) {
        struct machine x;
        int near[MEMBERS], wide[MEMBERS];
        open_machine(&x, first_seed() + (unsigned)k);
        int all = x.m.topo.endpoints / x.domain;
        for (int g = 0; g < GROUPS && x.domain > 1 && all > 1; g++) {
            enum op op = asked[rng_below(&x.rng, ASKED)];
            int n = 2 * (1 + (int)rng_below(&x.rng, (unsigned)x.domain / 2));
            group_of(&x, n, 1, 0, near);
            group_of(&x, n, 2, (int)rng_below(&x.rng, (unsigned)all), wide);
            for (double s = 64; s <= 0x1p36; s *= between(&x.rng, 1.5, 8)) {
                if (measured_at(&x, op, wide, n, s))
                    continue;
                double in = price(&x, op, near, n, s), out = price(&x, op, wide, n, s);
                compared++;
                if (in > out * (1 + 1e-9))
                    fail_msg("seed %llu: %s of %d at %g: %g in a domain, %g in two", x.seed,
                             op_name(op), n, s, in, out);
            }
        }
        matrix_free(&x.m);
    }
    assert_true(getenv("RG_SEED") || compared > 1000);
}

/* Beyond a curve the answer says where it comes from, and is the less sure the farther it is. */
TEST(far_from_the_ladder_intervals_widen)
{
    int met = 0;

    for (int k = 0; k < matrices(); k++) {
        struct machine x;
        int ids[MEMBERS];
        open_machine(&x, first_seed() + (unsigned)k);
        int n = any_group(&x, ids);
        double wide = 0;
        measure(&x, OP_ALL_GATHER, ids, n);
        for (double s = 0x1p30; s <= 0x1p36; s *= 2) {
            struct cost c;
            matrix_collective(&x.m, OP_ALL_GATHER, ids, n, s, &c);
            if (!strncmp(c.source, "no less", 7)) /* a domain's model rules */
                continue;
            if (!(c.from > 0))
                fail_msg("seed %llu: %g bytes: %s", x.seed, s, c.source);
            assert_true(c.from < s && c.basis == BASIS_FITTED);
            assert_non_null(strstr(c.source, ", extrapolated from "));
            if (!(c.hi / c.lo > wide))
                fail_msg("seed %llu: at %g no wider than %g", x.seed, s, wide);
            wide = c.hi / c.lo;
            met++;
        }
        matrix_free(&x.m);
    }
    assert_true(met > 0);
}

/* A truth without noise, measured to 2^22 .. 2^28 only, is met beyond. */
TEST(the_asymptote_is_the_tiers)
{
    for (int k = 0; k < matrices(); k++) {
        struct machine x;
        int ids[MEMBERS];
        struct ways w;
        open_machine(&x, first_seed() + (unsigned)k);
        while (x.m.collectives) /* only this one answers */
            curve_free(&x.m.collective[--x.m.collectives].curve);
        int n = any_group(&x, ids);
        ways_of(&w, &x.m, ids, n, OP_ALL_GATHER, false);
        struct collective c = {
            .op = OP_ALL_GATHER, .shape = w.shape, .crossings = w.crossings, .at_once = 1};
        double last = pow(2, 22 + rng_below(&x.rng, 7)), huge = 0x1p38;
        for (double s = 8; s <= last; s *= 2) {
            double sec = model_time(&x.m, &w, OP_ALL_GATHER, s);
            curve_add(&c.curve, (struct curve_point){s, sec, sec, sec, 100});
        }
        curve_summarise(&c.curve);
        MEM_PUSH(x.m.collective, x.m.collectives) = c;
        double truth = model_time(&x.m, &w, OP_ALL_GATHER, huge);
        if (fabs(price(&x, OP_ALL_GATHER, ids, n, huge) / truth - 1) > 0.01)
            fail_msg("seed %llu: %g s, truth %g", x.seed, price(&x, OP_ALL_GATHER, ids, n, huge),
                     truth);
        matrix_free(&x.m);
    }
}

/* --- one question, one answer --- */

static void same(const struct machine *x, const char *who, double got, double want, double share)
{
    if (!(fabs(got - want) <= share * want))
        fail_msg("seed %llu: %s says %.9g where cost says %.9g", x->seed, who, got, want);
}

static double by_nodes(const struct machine *x, enum op op, int first, int hosts, double bytes)
{
    char text[96];
    int host[MEMBERS];
    struct place_job job;
    struct err err = {0, ""};

    snprintf(text, sizeof(text), "%s %.0f", op_name(op), bytes);
    for (int i = 0; i < hosts; i++)
        host[i] = first + i;
    if (place_job_open(&job, &x->m, text, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    double sec = place_job_cost(&job, host, hosts, &err);
    place_job_close(&job);
    return sec;
}

/* What a message of any operation takes; tokens of a kernel spread evenly. */
static double pricer_time(struct pricer *p, struct span span, enum op op, enum ep_kernel kernel,
                          double bytes)
{
    return pricer_message(
        p, &(struct message){.span = span, .op = op, .kernel = kernel, .bytes = bytes});
}

static double by_pricer(const struct machine *x, enum op op, const int *ids, int n, double bytes)
{
    struct pricer *p;
    struct err err = {0, ""};

    assert_int_equal(pricer_open(&p, &x->m, ids, n, &err), 0);
    double sec = pricer_time(p, (struct span){n, 1}, op, EP_NONE, bytes);
    pricer_close(p);
    return sec;
}

static double by_library(const struct machine *x, enum op op, const int *ids, int n, double bytes)
{
    struct railgauge *r;
    char path[64], text[256];
    struct err err = {0, ""};

    snprintf(path, sizeof(path), "/tmp/rg_prices.%d.json", (int)getpid());
    if (matrix_save(&x->m, path, &err) < 0)
        fail_msg("%s", err.text);
    int rc = railgauge_open(&r, path, text);
    unlink(path);
    if (rc < 0)
        fail_msg("%s", text);
    double sec = railgauge_collective(r, op_name(op), ids, n, (size_t)bytes);
    railgauge_close(r);
    return sec;
}

/* Whole hosts, so that nodes can be asked too; sizes inside, beyond and below every ladder. */
TEST(all_who_price_agree)
{
    for (int k = 0; k < matrices(); k++) {
        struct machine x;
        int ids[MEMBERS];
        open_machine(&x, first_seed() + (unsigned)k);
        int hosts = 1 + (int)rng_below(&x.rng, (unsigned)x.m.topo.hosts), n = hosts * x.per_host;
        int first = (int)rng_below(&x.rng, (unsigned)(x.m.topo.hosts - hosts + 1));
        for (; n > 1 && n <= MEMBERS; n = 0) {
            enum op op = asked[rng_below(&x.rng, ASKED)];
            double bytes = floor(between(&x.rng, 1024, 0x1p36));
            for (int i = 0; i < n; i++)
                ids[i] = first * x.per_host + i;
            double want = price(&x, op, ids, n, bytes);
            same(&x, "nodes", by_nodes(&x, op, first, hosts, bytes), want, 1e-9);
            same(&x, "predict's pricer", by_pricer(&x, op, ids, n, bytes), want, 0.004);
            same(&x, "the library", by_library(&x, op, ids, n, bytes), want, 1e-6);
        }
        matrix_free(&x.m);
    }
}

/* --- no order beats the bound --- */

/* A job of as many ranks as the machine can take of the layouts below. */
struct job_of {
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct question question;
};

static bool open_job(struct job_of *j, struct machine *x)
{
    static const char *const layouts[] = {"dp_shard=%d",      "dp_shard=%d,tp=2",
                                          "dp_shard=%d,tp=4", "dp_shard=%d,pp=2,tp=2",
                                          "dp_shard=%d,cp=2", "pp=4,dp_shard=%d"};
    static const int others[] = {1, 2, 4, 4, 2, 4};
    int which = (int)rng_below(&x->rng, 6), seats = x->m.topo.endpoints;
    int dp = seats / others[which] - (int)rng_below(&x->rng, 3);
    char text[64];
    struct err err;

    memset(j, 0, sizeof(*j));
    if (dp < 1)
        return false;
    assert_int_equal(model_load(&j->model, "llama3.1-8b", &err), 0);
    assert_int_equal(constants_load(&j->constants, NULL, &err), 0);
    recipe_defaults(&j->recipe);
    j->recipe.strategy = STRATEGY_FSDP;
    snprintf(text, sizeof(text), layouts[which], dp);
    if (layout_parse(&j->layout, text, STRATEGY_FSDP, ORDER_TORCHTITAN, 0, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    j->recipe.global_batch = j->layout.ranks * 8;
    x->m.compute.source = "test";
    x->m.compute.flops = 300e12;
    j->question = (struct question){.matrix = &x->m,
                                    .model = &j->model,
                                    .layout = &j->layout,
                                    .recipe = &j->recipe,
                                    .constants = &j->constants};
    return true;
}

static double seconds_of(struct job_of *j, const int *order)
{
    struct prediction p;
    struct err err = {0, ""};

    j->question.order = order;
    if (predict_step(&p, &j->question, &err) < 0)
        fail_msg("%s", err.text);
    j->question.order = NULL;
    double sec = p.sec;
    prediction_free(&p);
    return sec;
}

static void beats_no_bound(const struct machine *x, const struct placed *p, const char *who,
                           double sec)
{
    if (!(p->bound > 0 && sec >= p->bound * (1 - 2e-6)))
        fail_msg("seed %llu: %s takes %.9g, and no order is said to be faster than %.9g", x->seed,
                 who, sec, p->bound);
}

TEST(no_order_beats_the_bound)
{
    int met = 0;

    for (int k = 0; k < matrices(); k++) {
        struct machine x;
        struct job_of j;
        struct placed p;
        struct err err = {0, ""};
        open_machine(&x, first_seed() + (unsigned)k);
        if (open_job(&j, &x)) {
            struct place_step step;
            struct place_ask ask = {.step = &step, .matrix = &x.m, .limit = 0.02, .seed = 1};
            int *seat = mem_calloc((size_t)x.m.topo.endpoints, sizeof(int));
            if (place_step_of(&step, &j.question, &err) < 0 || place_run(&p, &ask, &err) < 0)
                fail_msg("seed %llu: %s", x.seed, err.text);
            beats_no_bound(&x, &p, "the placed order", p.sec);
            beats_no_bound(&x, &p, "the default order", p.in_order);
            beats_no_bound(&x, &p, "the random order", p.random);
            for (int i = 0; i < x.m.topo.endpoints; i++)
                seat[i] = i;
            for (int i = 0; i < 4; i++, met++) {
                rng_shuffle(&x.rng, seat, x.m.topo.endpoints);
                beats_no_bound(&x, &p, "an order", seconds_of(&j, seat));
            }
            free(seat);
            placed_free(&p);
        }
        model_free(&j.model);
        constants_free(&j.constants);
        x.m.compute.source = NULL;
        matrix_free(&x.m);
    }
    assert_true(getenv("RG_SEED") || met > 100);
}

/* --- shapes that are known --- */

/* More groups than find room, each twice: what was resolved before, and what is resolved anew, say the same. */
TEST(a_known_shape_costs_the_same)
{
    static const enum op ops[] = {OP_ALL_REDUCE, OP_ALL_GATHER, OP_ALL_TO_ALL, OP_SENDRECV};
    struct known_shapes *known = calloc(1, sizeof(*known));
    int kept = 0, met = 0;
    struct matrix m;
    struct err err;

    assert_non_null(known);
    assert_int_equal(matrix_open(&m, NULL, "gb200-nvl72", 20, &err), 0);
    m.exception = calloc(1, sizeof(*m.exception));
    m.exceptions = 1;
    m.exception[0] =
        (struct exception){.part = PART_ENDPOINT, .a = 5, .b = -1, .tier = -1, .factor = 0.5};
    int *ids = calloc(1440, sizeof(*ids));
    for (int i = 0; i < 1440; i++)
        ids[i] = i;
    for (int n = 2; n < 2 * 1400; n += 3)
        for (int k = 0; k < 4; k++) {
            struct collective_quote plain, quote;
            struct ways w;
            int first = n % 2 ? 0 : 6, ranks = 2 + n / 2; /* with the slow one, and without */
            ways_of(&w, &m, ids + first, ranks, ops[k], false);
            collective_resolve(&plain, &m, ops[k], &w, false, NULL);
            for (int again = 0; again < 2; again++) {
                collective_resolve(&quote, &m, ops[k], &w, false, known);
                met += quote.known != NULL;
                for (double bytes = 64; bytes < 1e10; bytes *= 37)
                    assert_true(collective_time(&quote, bytes) == collective_time(&plain, bytes));
            }
        }
    for (int i = 0; i < KNOWN; i++)
        kept += known->slot[i] != NULL;
    assert_true(kept == KNOWN && met > KNOWN && met < 2 * 4 * 1400 / 3 * 2);
    known_free(known);
    free(known);
    free(ids);
    matrix_free(&m);
}

/* --- one optimiser, one price --- */

static const char *const jobs[] = {
    "all_gather 16M",
    "all_reduce 256M; spread=cyclic",
    "all_reduce 64M x 3; all_to_all 8M groups of 2",
    "model=llama3.1-8b layout=dp_shard=auto strategy=fsdp flops=3e14",
    "model=llama3.1-8b layout=tp=2,dp_shard=auto strategy=fsdp flops=3e14 spread=cyclic",
};
enum { JOBS = sizeof(jobs) / sizeof(*jobs) };

/* One question in every mouth: hosts of a machine in some order, `need` of them for the job. */
struct asked_job {
    const struct machine *x;
    const char *text;
    struct place_job job;
    int host[MEMBERS], hosts, need;
};

static void agree(const struct asked_job *a, const char *who, double got, double want, double share)
{
    if (!(fabs(got - want) <= share * want))
        fail_msg("seed %llu: %s on %d of %d hosts: %s says %.12g, not %.12g", a->x->seed, a->text,
                 a->need, a->hosts, who, got, want);
}

static void no_dearer(const struct asked_job *a, const char *who, double sec, double other)
{
    if (!(sec <= other * (1 + 1e-9)))
        fail_msg("seed %llu: %s on %d of %d hosts: %.12g s, and %s has %.12g", a->x->seed, a->text,
                 a->need, a->hosts, sec, who, other);
}

/* Listed hosts, at most `need` of them, each rank on an endpoint of its own. */
static void keeps_to_the_hosts(const struct asked_job *a, const int *order, int ranks)
{
    const struct topo *t = &a->x->m.topo;
    bool taken[MEMBERS * 8] = {false}, used[MEMBERS] = {false};
    int hosts = 0;

    for (int r = 0; r < ranks; r++) {
        int host = t->endpoint[order[r]].place.at[LEVEL_HOST], listed = 0;
        for (int i = 0; i < a->hosts; i++)
            listed += a->host[i] == host;
        assert_int_equal(listed, 1);
        assert_false(taken[order[r]]);
        taken[order[r]] = true;
        hosts += !used[host];
        used[host] = true;
    }
    assert_true(hosts <= a->need);
}

/* predict for a model, cost for a lone collective. */
static double elsewhere(const struct asked_job *a, const struct place_step *s, const int *order)
{
    struct place_job *j = (struct place_job *)&a->job;
    struct err err = {0, ""};

    if (!s->trains) {
        const struct message *m = &s->traffic.message[0];
        return s->traffic.messages == 1 && s->ranks > 1
                   ? price(a->x, m->op, order, s->ranks, m->bytes) * m->count
                   : NAN;
    }
    struct prediction p;
    struct question q = {.matrix = &j->matrix,
                         .model = &j->model,
                         .layout = &s->layout,
                         .recipe = &s->recipe,
                         .order = order,
                         .constants = &j->constants};
    if (predict_step(&p, &q, &err) < 0)
        fail_msg("%s", err.text);
    double sec = p.sec;
    prediction_free(&p);
    return sec;
}

static void by_railgauge_place(const struct asked_job *a, struct railgauge *r)
{
    struct railgauge_job *job;
    struct railgauge_placed placed = {0};
    int order[MEMBERS * 8], host[MEMBERS], hosts = 0;
    char why[256];

    if (railgauge_job_open(&job, r, a->text, why) < 0 ||
        railgauge_place(job, a->host, a->hosts, a->need, 0.01, order, MEMBERS * 8, &placed, why) <
            0)
        fail_msg("seed %llu: %s: %s", a->x->seed, a->text, why);
    keeps_to_the_hosts(a, order, placed.ranks);
    agree(a, "railgauge_nodes_cost() of the listed hosts", placed.as_listed,
          railgauge_nodes_cost(job, a->host, a->need, why), 1e-12);
    no_dearer(a, "the list", placed.seconds, placed.as_listed);
    no_dearer(a, "the order", placed.bound, placed.seconds);
    /* An order that fills one host after the other is a list of hosts. */
    const struct topo *t = &a->x->m.topo;
    bool lists = placed.ranks == a->need * a->x->per_host && !strstr(a->text, "cyclic");
    for (int k = 0; k < placed.ranks && lists; k++) {
        int h = t->endpoint[order[k]].place.at[LEVEL_HOST];
        if (k % a->x->per_host == 0)
            host[hosts++] = h;
        lists = h == host[hosts - 1];
    }
    if (lists)
        agree(a, "railgauge_nodes_cost() of its order", placed.seconds,
              railgauge_nodes_cost(job, host, hosts, why), 1e-9);
    assert_int_equal(railgauge_place(job, a->host, a->hosts, a->need, 0.01, order, placed.ranks - 1,
                                     &placed, why),
                     -1);
    assert_non_null(strstr(why, "there is room for"));
    railgauge_job_close(job);
}

/* *gain: the list over what was found. */
static void one_question(const struct asked_job *a, double *gain)
{
    struct place_step step;
    struct place_sets sets;
    struct placed p;
    struct err err = {0, ""};

    if (place_job_run(&p, &a->job, a->host, a->hosts, a->need, 0.02, &err) < 0 ||
        place_job_sets(&sets, &a->job, a->host, a->hosts, a->need, 1, 0, &err) < 0 ||
        place_job_step(&step, &a->job, a->need * a->x->per_host, &err) < 0)
        fail_msg("seed %llu: %s: %s", a->x->seed, a->text, err.text);
    double listed = place_job_cost(&a->job, a->host, a->need, &err);
    keeps_to_the_hosts(a, p.order, p.ranks);
    agree(a, "nodes, of the list,", listed, p.in_order, 1e-12);
    agree(a, "nodes, of its best set,", sets.sec[0],
          place_job_cost(&a->job, sets.host, a->need, &err), 1e-12);
    agree(a, "the price", place_price(&step, &a->job.matrix, p.order, NULL, &err), p.sec, 1e-12);
    double other = elsewhere(a, &step, p.order);
    if (!isnan(other))
        agree(a, step.trains ? "predict" : "cost", other, p.sec, step.trains ? 1e-9 : 0.004);
    no_dearer(a, "the list", p.sec, listed);
    no_dearer(a, "the best set", p.sec, sets.sec[0]);
    no_dearer(a, "the order found", p.bound, p.sec);
    *gain = listed / p.sec;
    place_sets_free(&sets);
    placed_free(&p);
}

static bool ask_job(struct asked_job *a, struct machine *x, int which)
{
    struct err err = {0, ""};
    struct place_step step;

    *a = (struct asked_job){.x = x, .text = jobs[which], .hosts = x->m.topo.hosts};
    for (int i = 0; i < a->hosts; i++)
        a->host[i] = i;
    rng_shuffle(&x->rng, a->host, a->hosts);
    a->hosts -= (int)rng_below(&x->rng, (unsigned)a->hosts / 2);
    a->need = 1 + (int)rng_below(&x->rng, (unsigned)a->hosts);
    if (place_job_open(&a->job, &x->m, a->text, &err) < 0)
        fail_msg("%s: %s", a->text, err.text);
    return place_job_step(&step, &a->job, a->need * x->per_host, &err) == 0 && step.ranks > 1;
}

/* place, nodes, cost, predict and the library say the same of the same hosts and order; what place
 * chooses is never dearer than the list, nor than the best set of nodes. */
TEST(one_optimiser_one_price)
{
    int met = 0, cheaper = 0;

    for (int k = 0; k < matrices(); k++) {
        char path[64], why[256];
        struct railgauge *r;
        struct machine x;
        struct err err = {0, ""};
        open_machine(&x, first_seed() + (unsigned)k);
        snprintf(path, sizeof(path), "/tmp/rg_place.%d.json", (int)getpid());
        if (matrix_save(&x.m, path, &err) < 0 || railgauge_open(&r, path, why) < 0)
            fail_msg("seed %llu: %s%s", x.seed, err.text, why);
        unlink(path);
        for (int which = 0; which < JOBS; which++) {
            struct asked_job a;
            double gain = 1;
            if (ask_job(&a, &x, which)) {
                one_question(&a, &gain);
                by_railgauge_place(&a, r);
                met++;
            }
            cheaper += gain > 1.01;
            place_job_close(&a.job);
        }
        railgauge_close(r);
        matrix_free(&x.m);
    }
    print_message("%d questions, %d of them cheaper than the list\n", met, cheaper);
    assert_true(getenv("RG_SEED") || (met > 100 && cheaper > 20));
}

/* Messages of more than 10 us are those of a network with a plugin. */
TEST(slow_messages_are_a_plugin_s)
{
    static const double alpha[] = {9.9e-6, 10.1e-6};
    struct fabric f;
    struct err err;
    int ids[128];

    for (int i = 0; i < 128; i++)
        ids[i] = i;
    assert_int_equal(fabric_load(&f, "hgx-h100", &err), 0);
    for (int k = 0; k < 2; k++) {
        struct matrix m;
        struct cost c;
        for (int t = 0; t < f.tiers; t++)
            f.tier[t].alpha.value = alpha[k];
        assert_int_equal(matrix_from_fabric(&m, &f, 4, &err), 0);
        matrix_collective(&m, OP_ALL_TO_ALL, ids, 128, 1e6, &c);
        assert_int_equal(c.foreign != NULL, k);
        assert_int_equal(strstr(c.source, "; the network plugin's tuner is not modelled") != NULL,
                         k);
        matrix_free(&m);
    }
    fabric_free(&f);
}
