/* SPDX-License-Identifier: BSD-3-Clause */
/* search_ties.c - layouts that cannot be told apart, and their order.  Each error source moves the
 * time of a step by a certain amount; two layouts are compared by the difference of these amounts,
 * so common errors cancel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "step/search/search.h"

/* Curve that prices a message: operations inside a host, inside a domain and between domains are
 * measured separately. */
enum reach { REACH_HOST, REACH_DOMAIN, REACH_FABRIC, REACHES };
enum { FABRIC_SOURCES = OP_COUNT * 2 * REACHES };

/* One step, by table: prices are fixed, constants are varied. */
struct subject {
    const struct question *q;
    struct step step;
    struct work work;
    struct traffic traffic;
    double one[TRAFFIC_MAX];   /* s of a message on its slowest group */
    double error[TRAFFIC_MAX]; /* share */
    int source[TRAFFIC_MAX];   /* below FABRIC_SOURCES */
};

static int source_of(const struct message *m, const struct groups *g, int group)
{
    enum reach reach = REACH_HOST;

    for (int k = 0; k < g->kinds; k++) {
        const struct shape *s = &g->kind[k].ring.shape;
        if (g->kind[k].index == group)
            reach = s->domains > 1 ? REACH_FABRIC : s->nodes > 1 ? REACH_DOMAIN : REACH_HOST;
    }
    return ((int)m->op * 2 + (m->kernel != EP_NONE)) * REACHES + (int)reach;
}

static int price(struct subject *s, struct pricer *pricer, struct err *err)
{
    struct cost cost;
    int group;

    for (int i = 0; i < s->traffic.messages; i++) {
        const struct message *m = &s->traffic.message[i];
        pricer_message_cost(pricer, m, &cost, &group);
        if (!isfinite(cost.sec))
            return err_set(err, "%s has no price", m->label);
        s->one[i] = cost.sec;
        s->error[i] = predict_message_error(s->q, &cost);
        s->source[i] = source_of(m, pricer_groups(pricer, m->span), group);
    }
    return 0;
}

static int subject_of(struct subject *s, const struct question *q, struct err *err)
{
    struct pricer *pricer = q->pricer;

    s->q = q;
    step_of(&s->step, q->model, q->layout, q->recipe);
    work_of(&s->work, &s->step);
    traffic_of(&s->traffic, &s->step);
    if (!pricer && pricer_open(&pricer, q->matrix, q->order, q->layout->ranks, err) < 0)
        return -1;
    int rc = price(s, pricer, err);
    if (!q->pricer)
        pricer_close(pricer);
    return rc;
}

static double seconds(const struct subject *s, const struct coefficients *c, const double *one)
{
    struct timing t;

    timing_of(&t, &s->traffic, one, &s->work, c, s->q->layout, s->q->recipe);
    return t.sec;
}

/* With an anchor, constants covered by it are the same in both layouts; only the split of compute
 * over them remains. */
static int of_constants(struct doubts *d, const struct subject *s, struct err *err)
{
    struct question q = *s->q;
    struct constants all = *q.constants;
    struct coefficients c;
    double peak;
    int rc = 0;

    all.constant = mem_calloc((size_t)all.count, sizeof(*all.constant));
    memcpy(all.constant, q.constants->constant, (size_t)all.count * sizeof(*all.constant));
    q.constants = &all;
    for (int i = 0; rc == 0 && i < all.count; i++) {
        double value = all.constant[i].value, error = all.constant[i].error;
        if (!(error > 0))
            continue;
        all.constant[i].value = value * (1 + error);
        rc = eval_coefficients(&c, &peak, &q, q.layout, q.recipe, err);
        d->of[i] = rc == 0 ? log(seconds(s, &c, s->one) / d->sec) : 0;
        all.constant[i].value = value;
    }
    free(all.constant);
    return rc;
}

static void of_fabric(struct doubts *d, const struct subject *s, const struct coefficients *c)
{
    double one[TRAFFIC_MAX], *of = d->of + s->q->constants->count;

    for (int source = 0; source < FABRIC_SOURCES; source++) {
        bool any = false;
        memcpy(one, s->one, sizeof(one));
        for (int i = 0; i < s->traffic.messages; i++)
            if (s->source[i] == source) {
                one[i] *= 1 + s->error[i];
                any = true;
            }
        of[source] = any ? log(seconds(s, c, one) / d->sec) : 0;
    }
}

int doubts_of(struct doubts *d, const struct question *q, struct err *err)
{
    struct subject *s = mem_calloc(1, sizeof(*s));
    struct coefficients c;
    double peak;

    *d = (struct doubts){.count = q->constants->count + FABRIC_SOURCES};
    d->of = mem_calloc((size_t)d->count, sizeof(*d->of));
    int rc =
        subject_of(s, q, err) < 0 || eval_coefficients(&c, &peak, q, q->layout, q->recipe, err) < 0;
    if (!rc) {
        d->sec = seconds(s, &c, s->one);
        rc = of_constants(d, s, err) < 0;
        of_fabric(d, s, &c);
    }
    free(s);
    return rc ? -1 : 0;
}

double doubts_between(const struct doubts *a, const struct doubts *b)
{
    double var = 0;

    for (int i = 0; i < a->count; i++)
        var += (a->of[i] - b->of[i]) * (a->of[i] - b->of[i]);
    return sqrt(var);
}

/* --- ranks --- */

/* Sequence length that one GPU holds without context parallelism in the published runs of
 * jobs/training/cases: cp begins at 16k (Llama 3 405B: 131,072 tokens with cp 16; NVIDIA's 8,192
 * recipes have none or 2). */
enum { SHORT_SEQUENCE = 8192 };

static int pains_of(const struct search_finalist *f)
{
    const struct search_candidate *c = &f->candidate;
    const struct layout *l = &c->layout;
    const struct recipe *r = &c->recipe;
    int pains = 0;

    for (int i = 0; i < AXIS_COUNT; i++)
        pains += i != AXIS_EDP && l->size[i] > 1;
    pains += l->size[AXIS_CP] > 1 && r->seq <= SHORT_SEQUENCE;
    pains += r->stages > 1;
    pains += r->schedule > SCHEDULE_INTERLEAVED;
    pains += r->recompute != RECOMPUTE_NONE;
    pains += memory_fit(&f->step.memory) == MEMORY_MAY_NOT_FIT;
    return pains;
}

/* Layouts that need a dead part or an unknown rate were dropped before.  A layout that fails here
 * has no interval and counts as distinct. */
static void compare(struct search_finalist *f, const struct doubts *fastest, double sec,
                    const struct question *q)
{
    double least = constants_get(q->constants, CONSTANT_ERROR_COMPARISON)->value;
    double times = constants_get(q->constants, CONSTANT_ERROR_COMPARISON_TIMES)->value;
    struct question own = *q;
    struct doubts d;

    own.layout = &f->candidate.layout;
    own.recipe = &f->candidate.recipe;
    f->pains = pains_of(f);
    f->over = f->step.sec / sec;
    f->error = INFINITY;
    if (doubts_of(&d, &own, NULL) == 0)
        f->error = STATS_Z90 * hypot(least, times * doubts_between(&d, fastest));
    f->alike = log(f->over) <= f->error;
    doubts_free(&d);
}

static bool is_equal(const struct search_finalist *f)
{
    return f->alike && f->over >= 1 && f->over <= 1 + SEARCH_EQUAL;
}

static int by_rank(const void *x, const void *y)
{
    const struct search_finalist *a = x, *b = y;

    if (a->candidate.tight != b->candidate.tight)
        return a->candidate.tight ? 1 : -1;
    if (is_equal(a) != is_equal(b))
        return is_equal(a) ? -1 : 1;
    if (is_equal(a) && a->pains != b->pains)
        return a->pains - b->pains;
    if (a->step.sec != b->step.sec)
        return a->step.sec < b->step.sec ? -1 : 1;
    return (a->candidate.serial > b->candidate.serial) -
           (a->candidate.serial < b->candidate.serial);
}

static const struct search_finalist *fastest_of(const struct search *s)
{
    const struct search_finalist *first = &s->best[0];

    for (int i = 1; i < s->bests; i++)
        if (s->best[i].candidate.tight != first->candidate.tight
                ? first->candidate.tight
                : s->best[i].step.sec < first->step.sec)
            first = &s->best[i];
    return first;
}

int search_tell(struct search_finalist *f, int n, const struct search *s, const struct question *q,
                struct err *err)
{
    const struct search_candidate *first = &fastest_of(s)->candidate;
    double sec = fastest_of(s)->step.sec;
    struct question own = *q;
    struct doubts fastest;

    own.layout = &first->layout;
    own.recipe = &first->recipe;
    int rc = doubts_of(&fastest, &own, err);
    for (int i = 0; rc == 0 && i < n; i++)
        compare(&f[i], &fastest, sec, q);
    doubts_free(&fastest);
    return rc;
}

int search_rank(struct search *s, const struct question *q, int top, struct err *err)
{
    if (search_tell(s->best, s->bests, s, q, err) < 0)
        return -1;
    qsort(s->best, (size_t)s->bests, sizeof(*s->best), by_rank);
    int kept = 0;
    for (int i = 0; i < s->bests; i++) {
        bool again = kept == top;
        for (int k = 0; k < kept && !again; k++)
            again = search_same_mesh(&s->best[i].candidate, &s->best[k].candidate);
        if (again)
            prediction_free(&s->best[i].step);
        else
            s->best[kept++] = s->best[i];
    }
    s->bests = kept;
    return 0;
}

int search_equals(const struct search *s)
{
    int n = 0;

    while (n < s->bests && is_equal(&s->best[n]))
        n++;
    return n;
}
