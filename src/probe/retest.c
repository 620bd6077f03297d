/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured again, alone. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probe/point.h"
#include "probe/schedule.h"

/* One point of a pair with its class and how slow it is against that class. */
struct suspect {
    int tier;
    const struct point *p;
    double excess; /* time / class median */
    double usual;  /* the same of the slowest of its ends and its two racks, in the middle */
    int racks;     /* one number for the two racks, whichever way; -1: not two */
};

static bool of_the_matrix(const struct point *p)
{
    return op_is_pair(p->op) && p->stop != STOP_FAILED && !stage_is_retest(p->stage) &&
           p->stage != STAGE_LADDER && p->stage != STAGE_NIC_LADDER;
}

static bool was_alone(const struct suspect *s)
{
    return s->p->flows == 1;
}

static int class_order(const struct suspect *x, const struct suspect *y)
{
    const double v[] = {was_alone(x), x->p->op, (double)x->p->bytes, x->tier};
    const double w[] = {was_alone(y), y->p->op, (double)y->p->bytes, y->tier};

    return stats_order(v, w, 4);
}

static int by_class(const void *a, const void *b)
{
    const struct suspect *x = a, *y = b;
    int c = class_order(x, y);

    return c ? c : stats_order(&x->p->sec.median, &y->p->sec.median, 1);
}

/* How slow it is beyond what its ends and racks are; 0: no slower. */
static double alone(const struct suspect *s)
{
    double own = s->usual > 0 ? s->excess / s->usual : s->excess;

    return own > 1.1 ? own : 0;
}

/* What nothing else explains comes first: it has no other pairs to be told by. */
static int by_excess(const void *a, const void *b)
{
    const struct suspect *x = a, *y = b;
    const double v[] = {-alone(x), -x->excess, x->p->src, x->p->dst};
    const double w[] = {-alone(y), -y->excess, y->p->src, y->p->dst};

    return stats_order(v, w, 4);
}

/* The times of a class; the caller frees. */
static double *times_of(const struct suspect *s, int n)
{
    double *t = mem_calloc((size_t)n, sizeof(*t));

    for (int i = 0; i < n; i++)
        t[i] = s[i].p->sec.median;
    return t;
}

/* Judge one class (sorted by time): excess stays 0 for those that are not outliers. */
static void judge(struct suspect *s, int n)
{
    double *t = times_of(s, n);
    double median = stats_quantile(t, n, 0.5), mad = stats_mad(t, n, median);
    double limit = 5 * 1.4826 * mad / median;
    if (limit < 0.1)
        limit = 0.1;
    for (int i = 0; i < n; i++)
        s[i].excess = t[i] > median * (1 + limit) ? t[i] / median : 0;
    if (!was_alone(s) && !(s[n / 2].excess > 0))
        s[n / 2].excess = 1; /* the healthy reference */
    free(t);
}

static int by_src(const void *a, const void *b)
{
    const struct suspect *const *x = a, *const *y = b;

    return ((*x)->p->src > (*y)->p->src) - ((*x)->p->src < (*y)->p->src);
}

static int by_dst(const void *a, const void *b)
{
    const struct suspect *const *x = a, *const *y = b;

    return ((*x)->p->dst > (*y)->p->dst) - ((*x)->p->dst < (*y)->p->dst);
}

static int by_racks(const void *a, const void *b)
{
    const struct suspect *const *x = a, *const *y = b;

    return ((*x)->racks > (*y)->racks) - ((*x)->racks < (*y)->racks);
}

/* The pairs of an endpoint, or of two racks, that is slow in the middle though none of its pairs is
 * an outlier.  The deviation of a median of n is 1.25 sigma / sqrt(n). */
static void judge_ends(struct suspect *s, int n, int (*order)(const void *, const void *))
{
    const struct suspect *middle = &s[n / 2];
    struct suspect **v = mem_calloc((size_t)n, sizeof(struct suspect *));
    double *t = times_of(s, n), median = middle->p->sec.median;

    for (int i = 0; i < n; i++)
        v[i] = &s[i];
    double sigma = 1.4826 * stats_mad(t, n, median) / median;
    qsort(v, (size_t)n, sizeof(struct suspect *), order);
    for (int i = 0, j; i < n; i = j) {
        for (j = i; j < n && order(&v[i], &v[j]) == 0; j++)
            t[j - i] = v[j]->p->sec.median;
        bool few = j - i < RETEST_PARTNERS || (order == by_racks && v[i]->racks < 0);
        double slow = few ? 1 : stats_median(t, j - i) / median;
        for (int k = i; k < j; k++)
            v[k]->usual = fmax(v[k]->usual, slow);
        if (slow > 1 + fmax(0.03, 3 * 1.25 * sigma / sqrt(j - i)))
            for (int k = i; k < i + RETEST_PARTNERS; k++)
                v[k]->excess = fmax(v[k]->excess, slow);
    }
    free(v);
    free(t);
}

static void add_alone(struct plan *out, const struct point *p, enum stage stage, int epochs)
{
    for (int i = 0; i < out->rounds; i++) {
        const struct round *r = &out->round[i];
        if (r->op == p->op && r->first == p->bytes && r->group[0].members[0] == p->src &&
            r->group[0].members[1] == p->dst)
            return;
    }
    struct round *r = plan_add(out, stage, p->op, 1);
    r->first = r->last = p->bytes;
    r->epochs = (1u << epochs) - 1;
    r->group[0].members = mem_calloc(2, sizeof(int));
    r->group[0].members[0] = p->src;
    r->group[0].members[1] = p->dst;
    r->group[0].size = 2;
}

static int racks_of(const struct topo *t, int src, int dst)
{
    int a = topo_at(t, src, LEVEL_RACK), b = topo_at(t, dst, LEVEL_RACK);

    if (a < 0 || b < 0 || a == b)
        return -1;
    return a < b ? a * t->group[LEVEL_RACK].count + b : b * t->group[LEVEL_RACK].count + a;
}

void schedule_retest(struct plan *out, const struct topo *t, const struct points *p, bool by_nic,
                     bool quick)
{
    static int (*const orders[])(const void *, const void *) = {by_src, by_dst, by_racks};
    struct suspect *s = NULL;
    int most = t->endpoints < RETEST_QUICK ? RETEST_QUICK : t->endpoints;
    if (!quick || most > RETEST_MAX)
        most = RETEST_MAX;
    int n = 0, *times = mem_calloc((size_t)t->endpoints, sizeof(*times));

    for (int i = 0; i < p->count; i++)
        if (of_the_matrix(&p->point[i]) && stage_by_nic(p->point[i].stage) == by_nic) {
            const struct point *q = &p->point[i];
            struct suspect one = {.tier = topo_tier_by(t, q->src, q->dst, by_nic),
                                  .p = q,
                                  .racks = racks_of(t, q->src, q->dst)};
            MEM_PUSH(s, n) = one;
        }
    if (n)
        qsort(s, (size_t)n, sizeof(*s), by_class);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && class_order(&s[j], &s[i]) == 0; j++)
            ;
        judge(s + i, j - i);
        for (int k = 0; k < 3 && s[i].p->op == OP_PAIR_BW; k++)
            judge_ends(s + i, j - i, orders[k]);
        for (int k = i; k < j && was_alone(&s[i]); k++)
            s[k].excess = alone(&s[k]);
    }
    int suspects = 0;
    for (int i = 0; i < n; i++)
        if (s[i].excess > 0)
            s[suspects++] = s[i];
    n = suspects;
    if (n)
        qsort(s, (size_t)n, sizeof(*s), by_excess);
    for (int i = 0; i < n && s[i].excess > 0 && out->rounds < most; i++) {
        int *a = &times[s[i].p->src], *b = &times[s[i].p->dst];
        if (s[i].excess > 1 && (*a >= RETEST_PER_ENDPOINT || *b >= RETEST_PER_ENDPOINT))
            continue;
        ++*a;
        ++*b;
        add_alone(out, s[i].p, by_nic ? STAGE_NIC_RETEST : STAGE_RETEST, quick ? 1 : PLAN_EPOCHS);
    }
    free(s);
    free(times);
}
