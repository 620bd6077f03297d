/* SPDX-License-Identifier: BSD-3-Clause */
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

void parts_keep(struct fit *f, int *into)
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

int *parts_identity(const struct matrix *m)
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
