/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured again, alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "probe/point.h"
#include "probe/schedule.h"

static const double end_step = 0.03; /* an end must be slower by this share at least */

/* One point of a pair that stands out, and how slow it is against its class. */
struct suspect {
    const struct point *p;
    double excess; /* time / class median */
    double usual;  /* the same of the slowest of its ends and its two racks, in the middle */
};

/* The points of one op, size and tier, alone or not, in the order of the file. */
struct class
{
    double key[4]; /* alone, op, bytes, tier: they are judged in this order */
    const struct point **p;
    int n;
    struct suspect *s;    /* the same points, once they are judged */
    double middle, sigma; /* of the times: sorted, the one at n / 2; 1.4826 MAD / middle */
};

struct classes {
    struct class *class;
    int count, last; /* the last: where the point before was */
};

static bool of_the_matrix(const struct point *p)
{
    return op_is_pair(p->op) && p->stop != STOP_FAILED && !stage_is_retest(p->stage) &&
           p->stage != STAGE_LADDER && p->stage != STAGE_NIC_LADDER;
}

static bool was_alone(const struct class *c)
{
    return c->key[0] > 0;
}

static int by_key(const void *a, const void *b)
{
    return stats_order(((const struct class *)a)->key, ((const struct class *)b)->key, 4);
}

/* The class of a point; there are few, and a point is mostly of the one of that before it. */
static struct class *class_of(struct classes *all, const struct point *p, int tier)
{
    struct class c = {.key = {p->flows == 1, p->op, (double)p->bytes, tier}};

    if (all->count && !memcmp(c.key, all->class[all->last].key, sizeof(c.key)))
        return &all->class[all->last];
    for (all->last = 0; all->last < all->count; all->last++)
        if (!memcmp(c.key, all->class[all->last].key, sizeof(c.key)))
            return &all->class[all->last];
    MEM_PUSH(all->class, all->count) = c;
    return &all->class[all->last];
}

static struct classes sort_out(const struct topo *t, const struct points *p, bool by_nic)
{
    struct classes all = {NULL, 0, 0};

    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        if (i + TOPO_AHEAD < p->count)
            topo_fetch(t, q[TOPO_AHEAD].src, q[TOPO_AHEAD].dst);
        if (!of_the_matrix(q) || stage_by_nic(q->stage) != by_nic)
            continue;
        struct class *c = class_of(&all, q, topo_tier_by(t, q->src, q->dst, by_nic));
        MEM_PUSH(c->p, c->n) = q;
    }
    if (all.count)
        qsort(all.class, (size_t)all.count, sizeof(*all.class), by_key);
    return all;
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

/* As stats_quantile() of the sorted values says, in a tenth of the time; *upper: the one at n / 2. */
static double middle_of(double *v, int n, double *upper)
{
    const double hi = stats_select(v, n, n / 2);
    double lo = v[0];

    *upper = hi;
    for (int i = 1; i < n / 2; i++)
        lo = v[i] > lo ? v[i] : lo;
    return n % 2 ? hi : lo + 0.5 * (hi - lo);
}

/* 1.4826 MAD from `from`; v is left in disorder. */
static double deviation(double *v, int n, double from)
{
    double upper;

    for (int i = 0; i < n; i++)
        v[i] = fabs(v[i] - from);
    return 1.4826 * middle_of(v, n, &upper);
}

/* The times of a class; the caller frees. */
static double *times_of(const struct class *c)
{
    double *t = mem_calloc((size_t)c->n, sizeof(*t));

    for (int i = 0; i < c->n; i++)
        t[i] = c->p[i]->sec.median;
    return t;
}

/* The one in the middle of a class, of equal times as they stand in the file. */
static int healthy(const struct class *c, const double *t)
{
    int before = 0, i = 0;

    for (int k = 0; k < c->n; k++)
        before += t[k] < c->middle;
    for (int left = c->n / 2 - before;; i++)
        if (t[i] == c->middle && left-- == 0)
            return i;
}

/* Is none so far from the middle that it, or an end of which all are so, could stand out? */
static bool is_quiet(const struct class *c, const double *t)
{
    double least = INFINITY, most = 0;

    for (int i = 0; i < c->n; i++) {
        least = t[i] < least ? t[i] : least;
        most = t[i] > most ? t[i] : most;
    }
    return least > 0.95 * c->middle && most < (1 + 0.99 * end_step) * c->middle;
}

/* Excess stays 0 for those that are not outliers. */
static void find_outliers(struct class *c, const double *t, double *v, double median)
{
    double limit = fmax(0.1, 5 * deviation(v, c->n, median) / median);

    c->s = mem_calloc((size_t)c->n, sizeof(*c->s));
    for (int i = 0; i < c->n; i++)
        c->s[i] = (struct suspect){c->p[i], t[i] > median * (1 + limit) ? t[i] / median : 0, 0};
    memcpy(v, t, (size_t)c->n * sizeof(*v));
    c->sigma = deviation(v, c->n, c->middle) / c->middle;
}

/* Judge one class; of a quiet one only its middle is of use. */
static void judge(struct class *c)
{
    double *t = times_of(c), *v = mem_dup(t, (size_t)c->n, sizeof(*v));
    double median = middle_of(v, c->n, &c->middle);
    int reference = healthy(c, t);

    if (is_quiet(c, t)) {
        c->p[0] = c->p[reference];
        t[0] = v[0] = c->middle;
        c->n = 1;
        reference = 0;
    }
    find_outliers(c, t, v, median);
    if (!was_alone(c) && !(c->s[reference].excess > 0))
        c->s[reference].excess = 1;
    free(t);
    free(v);
}

/* --- ends: what is slow in the middle though none of its pairs is an outlier --- */

/* Two numbers of an end: an endpoint that sends or receives, or two racks, whichever way, the larger
 * number first; -1: this point is of none. */
typedef void end_fn(const struct topo *t, const struct point *p, int id[2]);

static void end_src(const struct topo *t, const struct point *p, int id[2])
{
    (void)t;
    id[0] = id[1] = p->src;
}

static void end_dst(const struct topo *t, const struct point *p, int id[2])
{
    (void)t;
    id[0] = id[1] = p->dst;
}

static void end_racks(const struct topo *t, const struct point *p, int id[2])
{
    int a = topo_at(t, p->src, LEVEL_RACK), b = topo_at(t, p->dst, LEVEL_RACK);
    bool two = a >= 0 && b >= 0 && a != b;

    id[0] = two ? (a > b ? a : b) : -1;
    id[1] = two ? (a < b ? a : b) : -1;
}

static end_fn *const ends[] = {end_src, end_dst, end_racks};

/* One of a class, with the numbers of its end. */
struct member {
    int id[2], at;
};

/* In the order of one of the numbers, which are below `most`; what has the same stays as it was. */
static void sort_by(struct member *to, const struct member *from, int n, int digit, int most)
{
    int *at = mem_calloc((size_t)most + 1, sizeof(*at));

    for (int i = 0; i < n; i++)
        at[from[i].id[digit] + 1]++;
    for (int i = 0; i < most; i++)
        at[i + 1] += at[i];
    for (int i = 0; i < n; i++)
        to[at[from[i].id[digit]]++] = from[i];
    free(at);
}

/* The pairs of one end.  The deviation of a median of n is 1.25 sigma / sqrt(n).  v: room for n. */
static void judge_end(struct class *c, const struct member *list, int n, double *v)
{
    bool few = n < RETEST_PARTNERS;

    for (int i = 0; i < n; i++)
        v[i] = c->s[list[i].at].p->sec.median;
    double slow = few ? 1 : stats_median(v, n) / c->middle;
    for (int i = 0; i < n; i++)
        c->s[list[i].at].usual = fmax(c->s[list[i].at].usual, slow);
    if (!(slow > 1 + fmax(end_step, 3 * 1.25 * c->sigma / sqrt(n))))
        return;
    double last = v[RETEST_PARTNERS - 1]; /* its fastest pairs: what slows them slows all */
    int left = RETEST_PARTNERS;
    for (int equal = 0; equal < 2; equal++)
        for (int i = 0; i < n && left; i++) {
            struct suspect *s = &c->s[list[i].at];
            if (equal ? s->p->sec.median == last : s->p->sec.median < last) {
                s->excess = fmax(s->excess, slow);
                left--;
            }
        }
}

static void judge_ends(struct class *c, const struct topo *t, end_fn *end)
{
    int most = t->endpoints + t->group[LEVEL_RACK].count, n = 0; /* of any end */
    struct member *list = mem_calloc((size_t)c->n, sizeof(*list)),
                  *spare = mem_calloc((size_t)c->n, sizeof(*spare));
    double *v = mem_calloc((size_t)c->n, sizeof(*v));

    for (int i = 0; i < c->n; i++) {
        list[n].at = i;
        end(t, c->s[i].p, list[n].id);
        if (list[n].id[0] >= 0)
            n++;
        else
            c->s[i].usual = fmax(c->s[i].usual, 1);
    }
    sort_by(spare, list, n, 0, most);
    if (end == end_racks) /* others have one number */
        sort_by(list, spare, n, 1, most);
    else
        memcpy(list, spare, (size_t)n * sizeof(*list));
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && !memcmp(list[i].id, list[j].id, sizeof(list[i].id)); j++)
            ;
        judge_end(c, list + i, j - i, v);
    }
    free(list);
    free(spare);
    free(v);
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

/* Of all classes what stands out; the caller frees. */
static struct suspect *suspects(const struct topo *t, const struct points *p, bool by_nic,
                                int *count)
{
    struct classes all = sort_out(t, p, by_nic);
    struct suspect *out = NULL;

    *count = 0;
    for (struct class *c = all.class; all.count && c < all.class + all.count; c++) {
        judge(c);
        for (size_t k = 0; k < 3 && c->s->p->op == OP_PAIR_BW; k++)
            judge_ends(c, t, ends[k]);
        for (int i = 0; i < c->n; i++) {
            if (was_alone(c))
                c->s[i].excess = alone(&c->s[i]);
            if (c->s[i].excess > 0)
                MEM_PUSH(out, *count) = c->s[i];
        }
        free(c->p);
        free(c->s);
    }
    free(all.class);
    return out;
}

void schedule_retest(struct plan *out, const struct topo *t, const struct points *p, bool by_nic,
                     bool quick)
{
    int most = t->endpoints < RETEST_QUICK ? RETEST_QUICK : t->endpoints;
    if (!quick || most > RETEST_MAX)
        most = RETEST_MAX;
    int n, *times = mem_calloc((size_t)t->endpoints, sizeof(*times));
    struct suspect *s = suspects(t, p, by_nic, &n);

    if (n)
        qsort(s, (size_t)n, sizeof(*s), by_excess);
    for (int i = 0; i < n && out->rounds < most; i++) {
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
