/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "step/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "small.h"

struct asked {
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct recipe recipe;
    struct question question;
    struct space space;
    int ranks;
};

/* The tests change matrix, recipe or constraints before they look. */
static struct asked *ask(const char *fabric, int racks, const char *model, int ranks)
{
    struct asked *a = mem_calloc(1, sizeof(*a));

    assert_int_equal(fabric_load(&a->fabric, fabric, NULL), 0);
    assert_int_equal(matrix_from_fabric(&a->matrix, &a->fabric, racks, NULL), 0);
    assert_int_equal(model_load(&a->model, model, NULL), 0);
    assert_int_equal(constants_load(&a->constants, NULL, NULL), 0);
    recipe_defaults(&a->recipe);
    space_open(&a->recipe);
    a->ranks = ranks;
    a->question = (struct question){
        .matrix = &a->matrix, .fabric = &a->fabric, .model = &a->model, .constants = &a->constants};
    space_init(&a->space, ranks, ORDER_MEGATRON, &a->recipe);
    return a;
}

static void done(struct asked *a)
{
    matrix_free(&a->matrix);
    fabric_free(&a->fabric);
    model_free(&a->model);
    constants_free(&a->constants);
    free(a);
}

static void constrain(struct asked *a, const char *text)
{
    struct err err = {0, ""};

    if (space_constrain(&a->space, text, &err) < 0)
        fail_msg("%s", err.text);
}

static void run(struct search *s, struct asked *a, int top)
{
    struct err err = {0, ""};

    if (search_run(s, &a->question, &a->space, top, 0, &err) < 0)
        fail_msg("%s", err.text);
}

static double exact(const struct asked *a, const struct layout *l, const struct recipe *r)
{
    struct question q = a->question;
    struct prediction p;
    struct err err = {0, ""};

    q.layout = l;
    q.recipe = r;
    if (predict_step(&p, &q, &err) < 0)
        fail_msg("%s", err.text);
    double sec = p.sec;
    prediction_free(&p);
    return sec;
}

static const struct search_finalist *fastest(const struct search *s)
{
    int at = 0;

    for (int i = 1; i < s->bests; i++)
        if (s->best[i].candidate.tight != s->best[at].candidate.tight
                ? s->best[at].candidate.tight
                : s->best[i].step.sec < s->best[at].step.sec)
            at = i;
    return &s->best[at];
}

static bool is_equal(const struct search_finalist *f)
{
    return f->alike && f->over >= 1 && f->over <= 1 + SEARCH_EQUAL;
}

/* What fits before what may not.  Of each, equals before the others, the simplest of them first; else by time. */
static bool in_order(const struct search_finalist *a, const struct search_finalist *b)
{
    if (a->candidate.tight != b->candidate.tight)
        return b->candidate.tight;
    if (is_equal(a) != is_equal(b))
        return is_equal(a);
    if (is_equal(a) && a->pains != b->pains)
        return a->pains < b->pains;
    return a->step.sec <= b->step.sec;
}

/* --- all layouts by another road: texts, and every number that could be one --- */

struct every {
    const struct asked *a;
    double best[10]; /* of the fastest meshes */
    double mesh;
    char text[160];
    long count;
};

static void one_layout(struct every *e, const char *text, struct recipe r)
{
    struct layout l;

    r.global_batch = e->a->ranks;
    if (layout_parse(&l, text, (enum strategy)r.strategy, ORDER_MEGATRON, e->a->ranks, NULL) < 0 ||
        layout_check(&l, &e->a->model, &r, NULL) < 0)
        return;
    double sec = exact(e->a, &l, &r);
    e->count++;
    if (sec < fmin(e->mesh, e->best[0]))
        snprintf(e->text, sizeof(e->text), "%s %s", text, recipe_name.strategy[r.strategy]);
    e->mesh = fmin(e->mesh, sec);
}

static void one_mesh(struct every *e)
{
    for (int i = 0; i < 10; i++)
        if (e->mesh < e->best[i]) {
            memmove(&e->best[i + 1], &e->best[i], (size_t)(9 - i) * sizeof(e->mesh));
            e->best[i] = e->mesh;
            return;
        }
}

static void every_recipe(struct every *e, const char *text, int pp, int strategy)
{
    struct recipe r = e->a->recipe;

    r.strategy = strategy;
    e->mesh = INFINITY;
    for (r.recompute = 0; r.recompute < RECOMPUTE_COUNT; r.recompute++)
        for (int v = 1; v <= (e->a->model.layers + 2) / pp; v++) {
            int chunks = v * pp, layers = e->a->model.layers;
            if ((pp == 1 && v > 1) ||
                (layers % chunks && (layers + 2) % chunks && (v & (v - 1)) != 0))
                continue;
            for (r.micro_batch = 1; r.micro_batch <= e->a->ranks; r.micro_batch *= 2) {
                r.stages = v;
                r.schedule = v > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
                one_layout(e, text, r);
            }
        }
    one_mesh(e);
}

static void every_layout(struct every *e)
{
    int n = e->a->ranks;
    char text[128];

    for (int i = 0; i < 10; i++)
        e->best[i] = INFINITY;
    for (int tp = 1; tp <= n; tp++)
        for (int pp = 1; tp * pp <= n; pp++)
            for (int cp = 1; tp * pp * cp <= n; cp++)
                for (int repl = 1; tp * pp * cp * repl <= n; repl++) {
                    if (n % (tp * pp * cp * repl))
                        continue;
                    int shard = n / (tp * pp * cp * repl);
                    snprintf(text, sizeof(text), "tp=%d,pp=%d,cp=%d,dp_replicate=%d,dp_shard=%d",
                             tp, pp, cp, repl, shard);
                    if (repl == 1)
                        every_recipe(e, text, pp, STRATEGY_ZERO1);
                    if (repl == 1 && shard * cp > 1)
                        every_recipe(e, text, pp, STRATEGY_FSDP);
                    if (repl > 1 && shard > 1)
                        every_recipe(e, text, pp, STRATEGY_HSDP);
                }
}

TEST(it_finds_what_asking_for_every_layout_finds)
{
    static const struct {
        const char *fabric;
        int racks, ranks;
    } cases[] = {{"hgx-h100", 1, 16},
                 {"gb200-nvl72", 1, 24},
                 {"rtxpro6000-100gbe", 2, 16},
                 {"gb200-nvl72", 1, 64}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct asked *a = ask(cases[i].fabric, cases[i].racks, "llama3.1-8b", cases[i].ranks);
        struct every e = {.a = a};
        struct search s;
        a->fabric.gpu.memory_bytes.value = 0; /* whatever fits or not */
        small_exception(&a->matrix, PART_ENDPOINT, 5, -1, -1, 0.7);
        run(&s, a, 10);
        every_layout(&e);
        print_message("%s: %ld layouts and recipes, best %s\n", cases[i].fabric, e.count, e.text);
        assert_int_equal(s.priced + s.bounded, e.count);
        assert_int_equal(s.priced + s.bounded, s.count.candidates - s.count.refused_candidates);
        assert_int_equal(s.bests, 10);
        assert_float_equal(fastest(&s)->step.sec / e.best[0], 1, 1e-9);
        for (int k = 0; k < 10; k++) {
            assert_true(s.best[k].step.sec >= e.best[0] && s.best[k].step.sec <= 1.02 * e.best[9]);
            assert_float_equal(s.best[k].candidate.sec / s.best[k].step.sec, 1, 0.005);
            assert_float_equal(exact(a, &s.best[k].candidate.layout, &s.best[k].candidate.recipe),
                               s.best[k].step.sec, 0);
            assert_true(s.best[k].step.lo < s.best[k].step.sec &&
                        s.best[k].step.sec < s.best[k].step.hi);
        }
        search_free(&s);
        done(a);
    }
}

/* Nor does it matter how many threads share the walk. */
TEST(two_searches_are_the_same)
{
    struct asked *a = ask("hgx-h100", 4, "llama3.1-70b", 128);
    struct search s, t;

    run(&s, a, 50);
    assert_int_equal(search_run(&t, &a->question, &a->space, 50, 5, NULL), 0);
    assert_int_equal(s.priced, t.priced);
    assert_int_equal(s.unfit, t.unfit);
    assert_memory_equal(&s.count, &t.count, sizeof(s.count));
    assert_int_equal(s.fronts, t.fronts);
    for (int i = 0; i < s.fronts; i++)
        assert_int_equal(s.front[i].candidate.serial, t.front[i].candidate.serial);
    assert_int_equal(s.bests, 50);
    assert_int_equal(s.rivals, t.rivals);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(s.best[i].candidate.serial, t.best[i].candidate.serial);
        assert_string_equal(s.best[i].step.layout, t.best[i].step.layout);
        assert_true(i == 0 || in_order(&s.best[i - 1], &s.best[i]));
    }
    for (int i = 0; i < s.whys; i++)
        assert_string_equal(s.why[i], t.why[i]);
    search_free(&s);
    search_free(&t);
    done(a);
}

/* Bytes of a step and rank that leave a domain. */
static double bytes_across(const struct asked *a, const struct search_candidate *c)
{
    struct traffic t;
    struct pricer *p;
    struct step step;
    double sum = 0;

    assert_int_equal(pricer_open(&p, &a->matrix, NULL, a->ranks, NULL), 0);
    step_of(&step, &a->model, &c->layout, &c->recipe);
    traffic_of(&t, &step);
    for (int i = 0; i < t.messages; i++) {
        const struct message *m = &t.message[i];
        if (pricer_groups(p, m->span)->kind[0].ring.shape.domains > 1)
            sum += message_wire_bytes(m, m->span.size) * m->count;
    }
    pricer_close(p);
    return sum;
}

/* One NIC at a fiftieth: whatever crosses nodes is slow, so the winner sends less across. */
TEST(a_slow_nic_moves_the_winner_to_layouts_that_cross_nodes_less)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", 16);
    struct search good, bad;

    a->fabric.gpu.memory_bytes.value = 0;
    run(&good, a, 1);
    small_exception(&a->matrix, PART_ENDPOINT, 3, -1, -1, 0.02);
    run(&bad, a, 1);
    const struct search_candidate *was = &good.best[0].candidate, *is = &bad.best[0].candidate;
    print_message("%s %s, then %s %s\n", good.best[0].step.layout, good.best[0].family,
                  bad.best[0].step.layout, bad.best[0].family);
    assert_string_not_equal(good.best[0].step.layout, bad.best[0].step.layout);
    assert_true(bytes_across(a, is) < 0.5 * bytes_across(a, was));
    assert_true(bad.best[0].step.sec < exact(a, &was->layout, &was->recipe));
    assert_true(fastest(&good)->step.sec < fastest(&bad)->step.sec);
    search_free(&good);
    search_free(&bad);
    done(a);
}

/* Experts inside a node where they may be; the reason names the messages and both groups. */
TEST(experts_stay_inside_a_domain)
{
    struct asked *a = ask("hgx-h100", 2, "qwen3-30b-a3b", 64);
    struct search inside, across;
    struct eval e;
    char why[SEARCH_REASON];

    a->fabric.gpu.memory_bytes.value = 0;
    constrain(a, "ep>=8,etp=1,strategy=zero1");
    run(&inside, a, 1);
    assert_int_equal(inside.best[0].candidate.layout.size[AXIS_EP], 8);
    constrain(a, "ep>8");
    run(&across, a, 1);
    print_message("%s, else %s\n", inside.best[0].step.layout, across.best[0].step.layout);
    assert_true(across.best[0].step.sec > 1.05 * inside.best[0].step.sec);
    assert_int_equal(eval_open(&e, &a->question, &a->space.base, a->ranks, NULL), 0);
    search_compare(why, &e, &inside.best[0].candidate, &across.best[0].candidate);
    print_message("%s\n", why);
    assert_non_null(strstr(why, " less all_to_all (ep=8 inside a domain; there ep="));
    assert_non_null(strstr(why, " domains)"));
    eval_close(&e);
    search_free(&inside);
    search_free(&across);
    done(a);
}

/* --- nothing that a walk keeps from one candidate to the next changes a price --- */

/* Each candidate by itself. */
struct plain_walk {
    const struct asked *a;
    const struct eval *eval; /* for its rates and prices */
    double sec, bytes;       /* of the fastest that fits or, without one, that may */
    bool tight;
    long serial;
};

static double sec_alone(const struct plain_walk *w, const struct step *step)
{
    double one[TRAFFIC_MAX];
    struct traffic traffic;
    struct timing t;
    struct work work;

    work_of(&work, step);
    traffic_of(&traffic, step);
    for (int i = 0; i < traffic.messages; i++)
        one[i] = pricer_message(w->eval->pricer, &traffic.message[i]);
    timing_of(&t, &traffic, one, &work, &w->eval->coefficients, step->l, step->r);
    return t.sec;
}

/* First, second and last stage are all that matter. */
static void assert_no_stage_is_fuller(const struct step *s)
{
    double most = 0;

    for (int i = 0; i < s->stages; i++)
        most = fmax(most, s->stage[i].dense + s->stage[i].expert);
    for (int i = 1; i + 1 < s->l->size[AXIS_PP]; i++) {
        struct pipe_stage one;
        step_stage(&one, s, i);
        assert_true(one.layers <= s->stage[1].layers);
        assert_true(one.dense + one.expert <= most * (1 + 1e-12));
    }
}

static bool visit_alone(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct plain_walk *w = context;
    struct memory mem;
    struct step step;

    step_of(&step, &w->a->model, l, r);
    assert_no_stage_is_fuller(&step);
    memory_of(&mem, &step, w->eval->capacity, &w->a->constants);
    if (!memory_fits(&mem))
        return false;
    double sec = sec_alone(w, &step);
    bool tight = memory_fit(&mem) == MEMORY_MAY_NOT_FIT;
    if (w->serial && sec < INFINITY && tight != w->tight ? w->tight : sec < w->sec) {
        w->tight = tight;
        w->sec = sec;
        w->bytes = mem.total;
        w->serial = serial;
    }
    return true;
}

static void random_job(struct asked **a, struct rng *rng)
{
    static const char *const models[] = {"llama3.1-8b", "qwen3-30b-a3b", "deepseek-v3",
                                         "nemotron-h-56b", "gpt-oss-120b"};
    static const char *const constraints[] = {"tp<=8",
                                              "schedule=1f1b|zb-h1|zb-h2|dualpipe",
                                              "strategy=hsdp|zero1",
                                              "cp=1",
                                              "ep<=8",
                                              "recompute=full"};
    static const int ranks[] = {6, 8, 12, 16, 32, 48};
    struct recipe *r;

    *a = ask("hgx-h100", 2, models[rng_below(rng, 5)], ranks[rng_below(rng, 6)]);
    r = &(*a)->recipe;
    r->global_batch = (*a)->ranks * (1 + (int)rng_below(rng, 6));
    r->mtp = rng_below(rng, 2);
    r->dtype = rng_below(rng, 2) ? DTYPE_FP8 : DTYPE_BF16;
    r->dispatch = rng_below(rng, 2) ? DISPATCH_KERNEL : DISPATCH_NCCL;
    r->lora = rng_below(rng, 4) ? LORA_NONE : LORA_ALL;
    space_init(&(*a)->space, (*a)->ranks, ORDER_MEGATRON, r);
    constrain(*a, constraints[rng_below(rng, 6)]);
    if (rng_below(rng, 3) == 0)
        (*a)->fabric.gpu.memory_bytes.value = 0;
    if (rng_below(rng, 2))
        small_exception(&(*a)->matrix, PART_ENDPOINT, 3, -1, -1, 0.3);
}

/* A job, and what prices its candidates. */
static void random_eval(struct asked **a, struct eval *e, uint64_t seed)
{
    struct rng rng;

    rng_seed(&rng, seed);
    random_job(a, &rng);
    assert_int_equal(eval_open(e, &(*a)->question, &(*a)->space.base, (*a)->ranks, NULL), 0);
}

TEST(the_winner_is_that_of_candidates_asked_alone)
{
    int compared = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct space_count count;
        struct err err = {0, ""};
        struct search s;
        struct asked *a;
        struct eval e;
        random_eval(&a, &e, seed);
        struct plain_walk w = {a, &e, INFINITY, 0, false, 0};
        space_each(&a->space, &a->model, 0, 1, visit_alone, &w, &count);
        int rc = search_run(&s, &a->question, &a->space, 5, 1, &err);
        assert_int_equal(rc == 0, w.serial > 0);
        const struct search_candidate *best = NULL;
        for (int i = 0; i < s.bests; i++)
            if (!best ||
                (s.best[i].candidate.tight == best->tight && s.best[i].candidate.sec < best->sec))
                best = &s.best[i].candidate;
        /* A variant of its mesh that is as fast, and simpler, stands for it. */
        bool exact = best && fabs(best->sec / w.sec - 1) <= 1e-12;
        if (best && (best->sec < w.sec * (1 - 1e-12) || best->sec > w.sec * (1 + SEARCH_EQUAL) ||
                     best->tight != w.tight || (exact && best->bytes != w.bytes)))
            fail_msg("seed %d: %s: %.17g s of candidate %ld, not %.17g s of %ld", (int)seed,
                     a->model.name, best->sec, best->serial, w.sec, w.serial);
        compared += exact;
        search_free(&s);
        eval_close(&e);
        done(a);
    }
    assert_true(compared > 20);
}

/* The walk's evaluation and one that knows nothing of other candidates. */
struct twice {
    const struct eval *eval;
    struct evaluation walked, fresh;
    long compared;
};

static bool visit_twice(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct twice *t = context;
    const struct evaluation *a = &t->walked, *b = &t->fresh;

    if (serial % 4 == 0) /* not all are priced in a search */
        eval_fits(&t->walked, t->eval, l, r);
    else
        eval_candidate(&t->walked, t->eval, l, r);
    if (serial % 4 == 0 || !a->fits)
        return a->fits;
    memset(&t->fresh, 0, sizeof(t->fresh));
    eval_candidate(&t->fresh, t->eval, l, r);
    if (a->bytes != b->bytes || !(a->timing.sec == b->timing.sec) || a->least != b->least)
        fail_msg("candidate %ld: %.17g s, %.17g B, not %.17g s, %.17g B", serial, a->timing.sec,
                 a->bytes, b->timing.sec, b->bytes);
    for (int i = 0; i < a->traffic.messages; i++)
        assert_true(a->timing.seen[i] == b->timing.seen[i]);
    t->compared++;
    return true;
}

/* Micro batches are powers of two, so that this is so to the bit. */
TEST(what_is_shared_with_the_one_before_changes_nothing)
{
    struct twice *t = mem_calloc(1, sizeof(*t));

    for (uint64_t seed = 100; seed < 112; seed++) {
        struct space_count count;
        struct asked *a;
        struct eval e;
        random_eval(&a, &e, seed);
        t->eval = &e;
        memset(&t->walked, 0, sizeof(t->walked));
        space_each(&a->space, &a->model, 0, 3, visit_twice, t, &count);
        eval_close(&e);
        done(a);
    }
    print_message("%ld candidates\n", t->compared);
    assert_true(t->compared > 2000);
    free(t);
}

/* --- what a bound leaves out is on no list --- */

struct full {
    struct eval *eval;
    struct evaluation now;
    struct search_candidate *at; /* that have a time, in order of the walk */
    int count;
    long dead, unknown;
};

static bool collect_all(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct full *f = context;

    if (!eval_fits(&f->now, f->eval, l, r))
        return false;
    eval_price(&f->now, f->eval);
    double least = f->now.least, sec = f->now.timing.sec;
    f->dead += isinf(sec);
    f->unknown += isnan(sec);
    if (!(sec < INFINITY))
        return true;
    if (!(least > 0 && least <= sec))
        fail_msg("%.17g s are no lower bound of %.17g s", least, sec);
    MEM_PUSH(f->at, f->count) = (struct search_candidate){
        *l, *r, sec, f->now.bytes, eval_may_fit(&f->now, f->eval), serial};
    return true;
}

static int by_sec(const void *x, const void *y)
{
    const struct search_candidate *a = x, *b = y;

    return a->sec != b->sec ? (a->sec < b->sec ? -1 : 1) : a->serial < b->serial ? -1 : 1;
}

static int by_better(const void *x, const void *y)
{
    const struct search_candidate *a = x, *b = y;

    return a->tight != b->tight ? (a->tight ? 1 : -1) : by_sec(a, b);
}

/* Ascending in time: what is smaller than all before it. */
static int full_front(const struct full *f, long *serial)
{
    double least = INFINITY;
    int n = 0;

    for (int i = 0; i < f->count; i++) {
        const struct search_candidate *c = &f->at[i];
        if (c->bytes >= least)
            continue;
        least = c->bytes;
        serial[n++] = c->serial;
        for (int k = i + 1; k < f->count && f->at[k].sec == c->sec; k++)
            if (f->at[k].bytes < least) { /* as fast, and smaller */
                least = f->at[k].bytes;
                serial[n - 1] = f->at[k].serial;
            }
    }
    return n;
}

static bool same_family(const struct search_candidate *a, const struct search_candidate *b)
{
    static const enum axis axes[] = {AXIS_TP, AXIS_CP, AXIS_PP, AXIS_EP};

    for (int i = 0; i < 4; i++)
        if ((a->layout.size[axes[i]] > 1) != (b->layout.size[axes[i]] > 1))
            return false;
    return a->recipe.strategy == b->recipe.strategy;
}

static bool leads(const struct full *f, int at)
{
    for (int i = 0; i < at; i++)
        if (same_family(&f->at[i], &f->at[at]))
            return false;
    return true;
}

static int extras_of(const struct search_candidate *c)
{
    return (c->recipe.stages > 1) + (c->recipe.schedule > SCHEDULE_INTERLEAVED) +
           (c->recipe.recompute != RECOMPUTE_NONE);
}

/* Number of candidates before `at` of its mesh.  simpler: it has fewer extras than each of them, and
 * is as fast and as sure to fit; equal: one of them has as many. */
static int of_mesh(const struct search_candidate *c, int at, bool *simpler, bool *equal)
{
    int n = 0;

    *simpler = true;
    *equal = false;
    for (int i = 0; i < at; i++)
        if (search_same_mesh(&c[i], &c[at])) {
            n++;
            *equal |= extras_of(&c[i]) == extras_of(&c[at]);
            *simpler &= extras_of(&c[at]) < extras_of(&c[i]) && c[i].tight == c[at].tight &&
                        c[at].sec <= c[i].sec * (1 + SEARCH_EQUAL);
        }
    return n;
}

static void full_add(struct search *s, const struct search_candidate *c, const struct asked *a)
{
    struct search_finalist *one = &MEM_PUSH(s->best, s->bests);
    struct question q = a->question;

    *one = (struct search_finalist){.candidate = *c};
    q.layout = &one->candidate.layout;
    q.recipe = &one->candidate.recipe;
    assert_int_equal(predict_step(&one->step, &q, NULL), 0);
}

/* The first `top` meshes with their simpler variants, and families that are as fast, asked again
 * and ranked.  f: in the order of by_better(). */
static void full_best(struct search *s, const struct full *f, const struct asked *a, int top)
{
    struct search_candidate *kept = mem_calloc((size_t)f->count + 1, sizeof(*kept)), *in;
    struct err err = {0, ""};
    int n = 0, ins = 0, meshes = 0;
    bool simpler, equal;

    for (int i = 0; i < f->count && n < 3 * top; i++) { /* the first of each mesh and extras */
        kept[n] = f->at[i];
        of_mesh(kept, n, &simpler, &equal);
        n += !equal;
    }
    in = mem_calloc((size_t)n + 1, sizeof(*in));
    for (int i = 0; i < n; i++) {
        in[ins] = kept[i];
        int before = of_mesh(kept, i, &simpler, &equal);
        bool there = of_mesh(in, ins, &simpler, &equal) > 0;
        if (before ? there && simpler : meshes < top)
            full_add(s, &in[ins++], a);
        meshes += !before;
    }
    for (int i = 0; i < f->count; i++)
        if (leads(f, i) && f->at[i].sec > kept[n - 1].sec &&
            f->at[i].sec <= kept[0].sec * (1 + SEARCH_EQUAL) && f->at[i].tight <= kept[0].tight)
            full_add(s, &f->at[i], a);
    free(kept);
    free(in);
    if (search_rank(s, &a->question, top, &err) < 0)
        fail_msg("%s", err.text);
}

static void same_lists(const struct search *s, const struct full *f, const struct asked *a, int top)
{
    struct search mine = {0};
    long *front = mem_calloc((size_t)f->count, sizeof(*front));
    int rivals = 0;

    assert_int_equal(s->fronts, full_front(f, front));
    for (int i = 0; i < s->fronts; i++) {
        bool there = false; /* they are in the order of exact times */
        for (int k = 0; k < s->fronts; k++)
            there |= s->front[i].candidate.serial == front[k];
        assert_true(there);
    }
    qsort(f->at, (size_t)f->count, sizeof(*f->at), by_better);
    full_best(&mine, f, a, top);
    assert_int_equal(s->bests, mine.bests);
    for (int i = 0; i < s->bests; i++)
        assert_int_equal(s->best[i].candidate.serial, mine.best[i].candidate.serial);
    long next = s->bests > 1 ? s->best[1].candidate.serial : 0;
    long rival[SEARCH_RIVALS] = {0};
    for (int i = 0; i < f->count && rivals < SEARCH_RIVALS; i++)
        if (leads(f, i) && !same_family(&f->at[i], &s->best[0].candidate) &&
            f->at[i].serial != next)
            rival[rivals++] = f->at[i].serial;
    assert_int_equal(s->rivals, rivals);
    for (int i = 0; i < rivals; i++) {
        bool there = false;
        for (int k = 0; k < rivals; k++)
            there |= s->rival[i].candidate.serial == rival[k];
        assert_true(there);
    }
    free(front);
    search_free(&mine);
}

TEST(what_a_bound_leaves_out_is_on_no_list)
{
    static const int tops[] = {1, 3, 10};
    long bounded = 0, priced = 0;

    for (uint64_t seed = 101; seed <= 160; seed++) {
        struct space_count count;
        struct full f = {0};
        struct search s;
        struct asked *a;
        struct eval e;
        struct rng rng;
        rng_seed(&rng, seed);
        random_job(&a, &rng);
        int top = tops[rng_below(&rng, 3)], endpoints = a->matrix.topo.endpoints;
        for (int i = (int)rng_below(&rng, 4); i > 0; i--)
            small_exception(&a->matrix, i == 1 ? PART_HOST : PART_ENDPOINT,
                            (int)rng_below(&rng, i == 1 ? 8 : (uint32_t)endpoints), -1, -1,
                            0.3 + 0.2 * i);
        assert_int_equal(eval_open(&e, &a->question, &a->space.base, a->ranks, NULL), 0);
        f.eval = &e;
        space_each(&a->space, &a->model, 0, 1, collect_all, &f, &count);
        if (f.count)
            qsort(f.at, (size_t)f.count, sizeof(*f.at), by_sec);
        int rc = search_run(&s, &a->question, &a->space, top, 1 + (int)rng_below(&rng, 3), NULL);
        assert_int_equal(rc == 0, f.count > 0);
        /* every candidate is counted once; those behind a bound may be any of three kinds */
        assert_int_equal(s.priced + s.bounded + s.dead + s.unknown, f.count + f.dead + f.unknown);
        assert_true(s.priced <= f.count && s.dead <= f.dead && s.unknown <= f.unknown);
        if (f.count)
            same_lists(&s, &f, a, top);
        bounded += s.bounded;
        priced += s.priced + s.bounded;
        search_free(&s);
        eval_close(&e);
        free(f.at);
        done(a);
    }
    print_message("%ld of %ld by a bound\n", bounded, priced);
    assert_true(bounded > priced / 10);
}

/* Every candidate that fits, as the search sees it. */
struct heap {
    struct eval *eval;
    struct evaluation now;
    double (*at)[2]; /* seconds, bytes */
    int count;
    long unfit;
};

static bool collect(void *context, const struct layout *l, const struct recipe *r, long serial)
{
    struct heap *h = context;

    assert_true(serial > 0);
    eval_candidate(&h->now, h->eval, l, r);
    h->unfit += !h->now.fits;
    if (h->now.fits) {
        (void)MEM_PUSH(h->at, h->count);
        h->at[h->count - 1][0] = h->now.timing.sec;
        h->at[h->count - 1][1] = h->now.bytes;
    }
    return true;
}

static bool beaten(const struct heap *h, double sec, double bytes)
{
    for (int i = 0; i < h->count; i++)
        if (h->at[i][0] <= sec && h->at[i][1] <= bytes &&
            (h->at[i][0] < sec || h->at[i][1] < bytes))
            return true;
    return false;
}

/* The front is what no other beats in both, and nothing else; what was dropped does not fit. */
TEST(the_front_is_what_no_other_beats)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", 32);
    struct space_count count;
    struct heap h = {0};
    struct eval e;
    struct search s;
    int unbeaten = 0;

    run(&s, a, 10);
    assert_int_equal(eval_open(&e, &a->question, &a->space.base, a->ranks, NULL), 0);
    h.eval = &e;
    space_each(&a->space, &a->model, 0, 1, collect, &h, &count);
    assert_int_equal(h.count, s.priced + s.bounded);
    assert_int_equal(h.unfit, s.unfit);
    assert_true(s.unfit > 0 && s.priced > 0 && s.fronts > 2);
    for (int i = 0; i < s.fronts; i++) {
        const struct search_candidate *c = &s.front[i].candidate;
        assert_false(beaten(&h, c->sec, c->bytes));
        assert_true(c->bytes <= s.capacity);
        assert_true(i == 0 || s.front[i - 1].candidate.bytes > c->bytes);
    }
    for (int i = 0; i < h.count; i++) {
        int twins = 0; /* the first of equal ones stands for all */
        for (int k = 0; k < i; k++)
            twins += h.at[k][0] == h.at[i][0] && h.at[k][1] == h.at[i][1];
        unbeaten += !twins && !beaten(&h, h.at[i][0], h.at[i][1]);
    }
    assert_int_equal(unbeaten, s.fronts);
    assert_true(fastest(&s)->front);
    free(h.at);
    eval_close(&e);
    search_free(&s);
    done(a);
}

/* 70B: 2 B of weights and 2 of gradients a parameter are more than a GPU has; sharded they fit. */
TEST(what_does_not_fit_is_dropped)
{
    struct asked *a = ask("hgx-h100", 2, "llama3.1-70b", 64);
    struct err err = {0, ""};
    struct search s;

    constrain(a, "tp=1,pp=1,cp=1,strategy=zero1");
    assert_int_equal(search_run(&s, &a->question, &a->space, 10, 0, &err), -1);
    assert_int_equal(err.code, EXIT_BELOW);
    assert_non_null(strstr(err.text, " layouts and recipes fits in the 85.0 GB of a GPU"));
    assert_int_equal(s.priced, 0);
    search_free(&s);
    assert_int_equal(space_constrain(&a->space, "strategy=fsdp", &err), -1); /* zero1 and fsdp */
    assert_non_null(strstr(err.text, "strategy: no word is left"));
    space_init(&a->space, 64, ORDER_MEGATRON, &a->recipe);
    constrain(a, "tp=1,pp=1,cp=1,strategy=fsdp");
    run(&s, a, 10);
    assert_true(s.unfit > 0);
    for (int i = 0; i < s.bests; i++)
        assert_true(s.best[i].candidate.bytes <= 85.1e9);
    search_free(&s);
    done(a);
}

/* What both layouts share does not tell them apart; the least that a comparison is good for stays. */
TEST(alike_is_what_the_errors_that_are_not_shared_allow)
{
    struct asked *a = ask("hgx-h100", 2, "llama3.1-70b", 64);
    double least = constants_get(&a->constants, CONSTANT_ERROR_COMPARISON)->value;
    struct constant *products;
    struct search s;
    int apart = 0, equals = 0;

    run(&s, a, 1000);
    assert_float_equal(fastest(&s)->over, 1, 0);
    assert_float_equal(fastest(&s)->error, 1.645 * least, 1e-9);
    for (int i = 0; i < s.bests; i++) {
        const struct search_finalist *f = &s.best[i];
        assert_float_equal(f->over, f->step.sec / fastest(&s)->step.sec, 1e-12);
        assert_true(f->error >= 1.645 * least - 1e-12);
        assert_int_equal(f->alike, log(f->over) <= f->error);
        assert_true(i == 0 || in_order(&s.best[i - 1], f));
        equals += is_equal(f);
        apart += !f->alike;
    }
    print_message("%d layouts: %d are equal, %d apart\n", s.bests, equals, apart);
    assert_true(equals > 1 && apart > 0);
    assert_true(s.best[0].pains <= fastest(&s)->pains);
    search_free(&s);

    /* All layouts compute, so the rate of products moves them alike; where nothing errs, the
     * fastest is first. */
    for (int i = 0; i < a->constants.count; i++)
        a->constants.constant[i].error = 0;
    a->constants.constant[a->constants.at[CONSTANT_ERROR_COMPARISON]].value = 1e-6;
    a->constants.constant[a->constants.at[CONSTANT_ERROR_COMPARISON_TIMES]].value = 1;
    products =
        (struct constant *)(uintptr_t)constants_efficiency(&a->constants, "hopper", DTYPE_BF16);
    products->error = 0.3;
    run(&s, a, 10);
    for (int i = 0; i < s.bests; i++)
        assert_true(s.best[i].error < 0.1 * 1.645 * products->error);
    search_free(&s);
    products->error = 0;
    a->constants.constant[a->constants.at[CONSTANT_ERROR_COMPARISON_TIMES]].value = 0;
    run(&s, a, 10);
    for (int i = 0; i < s.bests; i++)
        assert_true(s.best[i].alike == (s.best[i].over < 1 + 1e-5));
    assert_int_equal(s.best[0].candidate.serial, fastest(&s)->candidate.serial);
    search_free(&s);
    done(a);
}

TEST(the_winner_is_compared_with_every_other_family)
{
    struct asked *a = ask("hgx-h100", 2, "llama3.1-70b", 64);
    struct search s;

    run(&s, a, 2);
    assert_true(s.rivals > 2);
    assert_int_equal(s.whys, s.rivals + 1);
    for (int i = 0; i < s.rivals; i++) {
        assert_string_not_equal(s.rival[i].family, s.best[0].family);
        assert_true(s.rival[i].candidate.tight || s.rival[i].step.sec >= fastest(&s)->step.sec);
        assert_non_null(strstr(s.why[i + 1], " less "));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(s.rival[i].family, s.rival[k].family);
    }
    search_free(&s);
    done(a);
}

TEST(constraints_hold)
{
    struct asked *a = ask("hgx-h100", 4, "llama3.1-70b", 128);
    struct search s;

    constrain(a, "tp<=8,tp!=4, pp>1,dp=4|8|16");
    constrain(a, "strategy=fsdp|hsdp,recompute!=none,micro-batch<4");
    constrain(a, "dp!=8,stages_per_rank=1|2|4|5");
    run(&s, a, 1000);
    assert_true(s.bests > 8);
    for (int i = 0; i < s.bests; i++) {
        const struct recipe *r = &s.best[i].candidate.recipe;
        const int *n = s.best[i].candidate.layout.size;
        int dp = n[AXIS_DP_SHARD] * n[AXIS_DP_REPLICATE];
        assert_true(n[AXIS_TP] <= 8 && n[AXIS_TP] != 4 && n[AXIS_PP] > 1);
        assert_true(dp == 4 || dp == 16);
        assert_true(r->strategy == STRATEGY_FSDP || r->strategy == STRATEGY_HSDP);
        assert_int_not_equal(r->recompute, RECOMPUTE_NONE);
        assert_true(r->micro_batch < 4);
        assert_true(r->stages == 1 || r->stages == 2 || r->stages == 4 || r->stages == 5);
    }
    search_free(&s);
    done(a);
}

/* What is given as an option is fixed; a constraint that names it comes first. */
TEST(options_fix_and_constraints_open)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", 16);
    struct search s;
    bool seen[STRATEGY_COUNT] = {false};

    a->recipe.strategy = STRATEGY_DDP;
    a->recipe.micro_batch = 2;
    a->recipe.global_batch = 64;
    space_init(&a->space, 16, ORDER_TORCHTITAN, &a->recipe);
    run(&s, a, 1000);
    for (int i = 0; i < s.bests; i++) {
        const struct search_candidate *c = &s.best[i].candidate;
        assert_int_equal(c->recipe.strategy, STRATEGY_DDP);
        assert_int_equal(c->recipe.micro_batch, 2);
        assert_int_equal(c->recipe.global_batch, 64);
        assert_int_equal(c->layout.order, ORDER_TORCHTITAN);
    }
    search_free(&s);
    constrain(a, "strategy=zero1|zero2|zero3,reshard=on|off");
    run(&s, a, 1000);
    for (int i = 0; i < s.bests; i++)
        seen[s.best[i].candidate.recipe.strategy] = true;
    assert_true(seen[STRATEGY_ZERO1] && seen[STRATEGY_ZERO2] && seen[STRATEGY_ZERO3]);
    assert_false(seen[STRATEGY_DDP] || seen[STRATEGY_FSDP]);
    search_free(&s);
    done(a);
}

TEST(constraints_that_are_wrong_say_where)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"tp", "constraint \"tp\": at 1: \"tp\" is not KEY=VALUE (or != < <= > >=)"},
        {"tp<=8,pq=1", "constraint \"tp<=8,pq=1\": at 7: key \"pq\" is not known (known: tp, cp, "
                       "ep, etp, dp_shard, dp_replicate, pp, dp, micro-batch, stages-per-rank, "
                       "strategy, recompute, schedule, context,"},
        {"tp<=", "at 1: tp<= has no value"},
        {"tp<=x", "at 1: tp: \"x\" is not a whole number"},
        {"tp<=4|8", "at 1: tp<= takes one number, not \"4|8\""},
        {"tp=0", "at 1: tp: 0 is"},
        {"pp=1, strategy<=fsdp", "at 7: strategy is a word: = or !=, not <="},
        {"strategy=fsdp|zero9", "at 1: strategy \"zero9\" is not known (known: ddp, zero1"},
        {"recompute!=none|selective|full", "at 1: recompute: no word is left"},
        {"dtype=fp8", "at 1: dtype is the same for all layouts of a search: give it as --dtype"},
        {"=4", "at 1: \"=4\" is not KEY=VALUE"},
        {"tp!8", "at 1: \"tp!8\" has no operator of = != < <= > >="},
        {"", "at 1: \"\" is not KEY=VALUE"},
    };
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", 16);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err err = {0, ""};
        assert_int_equal(space_constrain(&a->space, rows[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        if (!strstr(err.text, rows[i].says))
            fail_msg("\"%s\" is not in: %s", rows[i].says, err.text);
    }
    done(a);
}

static void refuses(struct asked *a, int code, const char *says)
{
    struct search s;
    struct err err = {0, ""};

    assert_int_equal(search_run(&s, &a->question, &a->space, 10, 0, &err), -1);
    assert_int_equal(err.code, code);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" is not in: %s", says, err.text);
    search_free(&s);
}

TEST(what_cannot_run_is_said)
{
    struct asked *a = ask("hgx-h100", 1, "llama3.1-8b", 16);

    constrain(a, "tp=3");
    refuses(a, EXIT_USAGE, "no layout of 16 GPUs meets the constraints");
    space_init(&a->space, 7, ORDER_MEGATRON, &a->recipe);
    constrain(a, "tp=7");
    refuses(a, EXIT_USAGE,
            "no layout of 7 GPUs divides the model: of 1 most, 1, are refused "
            "because tp does not divide heads, width or sequence");
    space_init(&a->space, 16, ORDER_MEGATRON, &a->recipe);
    small_exception(&a->matrix, PART_ENDPOINT, 3, -1, -1, 0);
    refuses(a, EXIT_UNJUDGED, "no layout of 16 GPUs runs: ");
    space_init(&a->space, 640, ORDER_MEGATRON, &a->recipe);
    refuses(a, EXIT_USAGE, "the layout needs 640 ranks and the matrix has 32 endpoints");
    done(a);
}
