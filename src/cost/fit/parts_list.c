/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions while they are being made: their order, those that are one cause and become one
 * (sending and receiving side, tiers, the endpoints of a host), and their sentences. */
#include "cost/fit/fit_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

bool parts_pass(const struct matrix *m, const struct exception *e, const struct fit_sample *s)
{
    struct exception x = *e;

    if (part_is_two(e->part))
        x.side = SIDE_BOTH;
    return matrix_passes(m, &x, s->src, s->dst);
}

bool parts_alike(const struct exception *x, const struct exception *y, double tolerance)
{
    if (x->wrong || y->wrong) /* each is named by itself */
        return false;
    if (x->factor <= 0 || y->factor <= 0)
        return x->factor <= 0 && y->factor <= 0;
    return fabs(x->factor - y->factor) <= tolerance * fmax(x->factor, y->factor);
}

/* Keeps the exceptions that are their own, and frees into. */
static void keep(struct fit *f, int *into)
{
    struct matrix *m = f->m;
    int *now = mem_calloc((size_t)m->exceptions, sizeof(*now)), n = 0;

    for (int i = 0; i < m->exceptions; i++)
        if (into[i] == i) {
            now[i] = n;
            m->exception[n++] = m->exception[i];
        }
    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].explained >= 0)
            f->sample[i].explained = now[into[f->sample[i].explained]];
    m->exceptions = n;
    free(now);
    free(into);
}

/* into[i] == i for all; the caller changes some. */
static int *identity(const struct matrix *m)
{
    int *into = mem_calloc((size_t)m->exceptions + 1, sizeof(*into));

    for (int i = 0; i < m->exceptions; i++)
        into[i] = i;
    return into;
}

/* What is worse comes first: wrong data, no answer, slow. */
static int severity(const struct exception *e)
{
    return e->wrong ? 2 : e->factor <= 0;
}

static int by_place(const void *a, const void *b)
{
    const struct exception *x = a, *y = b;

    return stats_order((double[]){-severity(x), x->part, x->a, x->b, x->tier, x->side},
                       (double[]){-severity(y), y->part, y->a, y->b, y->tier, y->side}, 6);
}

void parts_sort(struct fit *f)
{
    struct matrix *m = f->m;
    struct exception *old = mem_calloc((size_t)m->exceptions + 1, sizeof(*old));
    int *now = mem_calloc((size_t)m->exceptions + 1, sizeof(*now));

    for (int i = 0; i < m->exceptions; i++) {
        old[i] = m->exception[i];
        m->exception[i].why = (char *)old + i; /* a tag that survives sorting */
    }
    if (m->exceptions)
        qsort(m->exception, (size_t)m->exceptions, sizeof(*old), by_place);
    for (int i = 0; i < m->exceptions; i++) {
        int was = (int)(m->exception[i].why - (char *)old);
        now[was] = i;
        m->exception[i].why = old[was].why;
    }
    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].explained >= 0)
            f->sample[i].explained = now[f->sample[i].explained];
    free(old);
    free(now);
}

/* --- sentences --- */

/* The endpoint is in the part; of two parts, in the first. */
static bool inside(const struct matrix *m, const struct exception *e, int endpoint)
{
    return part_at(m, e->part, endpoint) == e->a;
}

/* Different endpoints at the far ends, and of two parts at the near ones; the fewer. */
static int count_partners(const struct fit *f, int k)
{
    const struct exception *e = &f->m->exception[k];
    bool *seen = mem_calloc(2 * (size_t)f->m->topo.endpoints, sizeof(*seen));
    int n[2] = {0, 0};

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        if (s->explained != k)
            continue;
        bool sends = inside(f->m, e, s->src);
        int end[2] = {sends ? s->dst : s->src, sends ? s->src : s->dst};
        for (int j = 0; j < 2; j++) {
            n[j] += !seen[2 * end[j] + j];
            seen[2 * end[j] + j] = true;
        }
    }
    free(seen);
    return part_is_two(e->part) && n[1] < n[0] ? n[1] : n[0];
}

/* What its samples say of it: how many, alone, with how many others, and how sure the factor is. */
static int weigh(struct fit *f, int k)
{
    struct exception *e = &f->m->exception[k];
    double *v = mem_calloc((size_t)f->samples + 1, sizeof(*v));
    int n = 0;

    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].explained == k) {
            v[n++] = f->sample[i].residual;
            e->alone += f->sample[i].alone;
        }
    e->partners = count_partners(f, k);
    if (n && e->factor > 0) {
        stats_sort(v, n);
        stats_median_ci(v, n, &e->lo, &e->hi);
    }
    free(v);
    return n;
}

static void explain(struct fit *f, int k)
{
    struct exception *e = &f->m->exception[k];
    int shown = weigh(f, k);

    if (e->why) /* said where it was found */
        return;
    const char *tier =
        e->tier >= 0 ? f->m->tier[e->tier].rule.name : "every tier that crosses NICs";
    if (e->factor <= 0)
        e->why = mem_printf("no answer in %d of %d pairs", shown, shown);
    else if (e->part == PART_PAIR)
        e->why = mem_printf(
            "%.2f of %s alone as well: the link; what its ends have with others is as usual, or "
            "there is no other in this tier",
            e->factor, tier);
    else
        e->why = mem_printf("%d pairs see %.2f of %s%s", shown, e->factor, tier,
                            e->alone ? ", alone as well: no contention" : "");
}

void parts_explain(struct fit *f)
{
    for (int k = 0; k < f->m->exceptions; k++)
        explain(f, k);
}

/* --- one cause, one exception --- */

struct merge {
    struct fit *f;
    double tolerance;
    int *into; /* of each exception: the one that it becomes part of */
};

static bool concerns(const struct fit *f, const struct exception *e, const struct fit_sample *s)
{
    return e->tier >= 0 ? s->tier == e->tier : f->m->tier[s->tier].nic;
}

/* --- sides, tiers, hosts --- */

/* tx and rx of one endpoint and tier; one way slow stays one way. */
static void merge_sides(struct merge *w)
{
    struct matrix *m = w->f->m;

    for (int i = 1; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i - 1], *y = &m->exception[i];
        if (x->part == y->part && x->b < 0 && x->a == y->a && x->tier == y->tier &&
            x->side != y->side && parts_alike(x, y, w->tolerance)) {
            parts_fold(x, y);
            x->side = SIDE_BOTH;
            w->into[i] = i - 1;
            i++;
        }
    }
}

/* A side with nothing to judge it by (measured in one direction only, or slow for other reasons) is
 * no acquittal. */
static void widen_sides(struct merge *w)
{
    const struct fit *f = w->f;

    for (int k = 0; k < f->m->exceptions; k++) {
        struct exception *e = &f->m->exception[k];
        int other = 0;
        if (e->part != PART_ENDPOINT || e->side == SIDE_BOTH)
            continue;
        for (int i = 0; i < f->samples; i++) {
            const struct fit_sample *s = &f->sample[i];
            bool own = s->explained >= 0 && f->m->exception[s->explained].a == e->a;
            if (concerns(f, e, s) && (e->side == SIDE_TX ? s->dst : s->src) == e->a)
                other += parts_speaks_for(s, e) || own;
        }
        if (!other)
            e->side = SIDE_BOTH;
    }
}

/* Has this endpoint a sample in the tier that speaks for it? */
static bool fine_in(const struct fit *f, const struct exception *e, int endpoint, int tier)
{
    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].tier == tier && parts_speaks_for(&f->sample[i], e) &&
            (f->sample[i].src == endpoint || f->sample[i].dst == endpoint))
            return true;
    return false;
}

/* Does y say of another endpoint of the same host what x says? */
static bool same_host(const struct matrix *m, const struct exception *x, const struct exception *y,
                      double tolerance)
{
    const struct topo *t = &m->topo;

    return y->part == PART_ENDPOINT && y->tier == x->tier && y->side == x->side &&
           topo_at(t, x->a, LEVEL_HOST) == topo_at(t, y->a, LEVEL_HOST) &&
           parts_alike(x, y, tolerance);
}

/* Endpoints of x's host that are fine where x is slow. */
static int healthy_on_host(const struct fit *f, const struct exception *x)
{
    const struct topo *t = &f->m->topo;
    int n = 0;

    for (int i = 0; i < t->endpoints; i++) {
        bool fine = false;
        if (topo_at(t, i, LEVEL_HOST) != topo_at(t, x->a, LEVEL_HOST))
            continue;
        for (int k = 0; k < t->tiers; k++)
            if (x->tier >= 0 ? k == x->tier : f->m->tier[k].nic)
                fine = fine || fine_in(f, x, i, k);
        n += fine;
    }
    return n;
}

/* Half of a host's endpoints or more say the same and none of the others is fine: the host. */
static void merge_hosts(struct merge *w)
{
    struct matrix *m = w->f->m;

    for (int i = 0; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i];
        int found = 0;
        if (x->part != PART_ENDPOINT || w->into[i] != i)
            continue;
        int host = topo_at(&m->topo, x->a, LEVEL_HOST), all = m->topo.host[host].endpoints;
        for (int k = i; k < m->exceptions; k++)
            found += same_host(m, x, &m->exception[k], w->tolerance);
        if (all < 2 || 2 * found < all || found < 2 || healthy_on_host(w->f, x))
            continue;
        for (int k = i + 1; k < m->exceptions; k++)
            if (same_host(m, x, &m->exception[k], w->tolerance)) {
                parts_fold(x, &m->exception[k]);
                w->into[k] = i;
            }
        x->part = PART_HOST;
        x->a = host;
    }
}

/* Has the part a sample which speaks for it: in a tier that crosses NICs, of a dead one in any? */
static bool part_fine(const struct fit *f, const struct exception *e)
{
    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        if ((f->m->tier[s->tier].nic || e->factor == 0) && parts_speaks_for(s, e) &&
            parts_pass(f->m, e, s))
            return true;
    }
    return false;
}

/* The same factor in every NIC tier that was measured: the NIC, or all that joins two racks.  Other
 * tiers keep their own exception. */
static void merge_tiers(struct merge *w)
{
    struct matrix *m = w->f->m;

    for (int i = 0, j; i < m->exceptions; i = j) {
        struct exception *x = NULL;
        bool same = m->exception[i].part == PART_ENDPOINT || m->exception[i].part == PART_RACK_PAIR;
        for (j = i;
             j < m->exceptions && m->exception[j].part == m->exception[i].part &&
             m->exception[j].a == m->exception[i].a && m->exception[j].b == m->exception[i].b;
             j++) {
            struct exception *y = &m->exception[j];
            if (y->tier < 0 || !m->tier[y->tier].nic)
                continue;
            same = same && (!x || (parts_alike(x, y, w->tolerance) && x->side == y->side));
            x = x ? x : y;
        }
        if (!same || !x || part_fine(w->f, x))
            continue;
        for (int k = (int)(x - m->exception) + 1; k < j; k++)
            if (m->exception[k].tier >= 0 && m->tier[m->exception[k].tier].nic) {
                parts_fold(x, &m->exception[k]);
                w->into[k] = (int)(x - m->exception);
            }
        x->tier = -1;
    }
}

/* Is all of y in x, which is slow whichever way y is? */
static bool has_within(const struct matrix *m, const struct exception *x, const struct exception *y)
{
    bool tier = x->tier == y->tier || (x->tier < 0 && m->tier[y->tier].nic);
    bool within = x->part == PART_HOST || x->part == PART_LEAF || x->part == PART_RACK;

    if (!within || y->b >= 0 || !tier || (x->side != SIDE_BOTH && x->side != y->side))
        return false;
    for (int i = 0; i < m->topo.endpoints && within; i++)
        within = !matrix_touches(m, y, i) || matrix_touches(m, x, i);
    return within;
}

/* What was left for a second look at a host, or at one of its endpoints, is that host's. */
static void merge_within(struct merge *w)
{
    struct matrix *m = w->f->m;

    for (int i = 0; i < m->exceptions; i++)
        for (int k = 0; k < m->exceptions; k++) {
            struct exception *x = &m->exception[i], *y = &m->exception[k];
            if (i == k || w->into[i] != i || w->into[k] != k || !parts_alike(x, y, w->tolerance) ||
                !has_within(m, x, y))
                continue;
            parts_fold(x, y);
            w->into[k] = i;
        }
    for (int i = 0; i < m->exceptions; i++) /* a host of which there was more went to its leaf */
        while (w->into[w->into[i]] != w->into[i])
            w->into[i] = w->into[w->into[i]];
}

/* --- all of them --- */

void parts_merge(struct fit *f, double tolerance)
{
    static void (*const step[])(struct merge * w) = {merge_sides, widen_sides, merge_tiers,
                                                     merge_hosts, merge_within};
    struct merge w = {.f = f, .tolerance = tolerance};

    parts_sort(f);
    for (size_t i = 0; i < sizeof(step) / sizeof(*step); i++) {
        w.into = identity(f->m);
        step[i](&w);
        keep(f, w.into);
    }
}
