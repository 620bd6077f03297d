/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions that are one cause become one: sending and receiving side, tiers, the endpoints of a
 * host; and each gets its sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/fit_state.h"

static bool alike(const struct exception *x, const struct exception *y, double tolerance)
{
    if (x->factor <= 0 || y->factor <= 0)
        return x->factor <= 0 && y->factor <= 0;
    return fabs(x->factor - y->factor) <= tolerance * fmax(x->factor, y->factor);
}

/* Fold y into x: factors weighted by evidence. */
static void fold(struct exception *x, const struct exception *y)
{
    int n = x->evidence + y->evidence;

    x->factor = (x->factor * x->evidence + y->factor * y->evidence) / n;
    x->evidence = n;
}

static void removed(struct matrix *m, struct fit *f, const int *into)
{
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
}

static int *identity(const struct matrix *m)
{
    int *into = mem_calloc((size_t)m->exceptions + 1, sizeof(*into));

    for (int i = 0; i < m->exceptions; i++)
        into[i] = i;
    return into;
}

static int by_place(const void *a, const void *b)
{
    const struct exception *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    return (x->side > y->side) - (x->side < y->side);
}

/* Sort, keeping the samples' references right. */
static void sort_exceptions(struct fit *f)
{
    struct matrix *m = f->m;
    struct exception *old = mem_calloc((size_t)m->exceptions + 1, sizeof(*old));
    int *now = mem_calloc((size_t)m->exceptions + 1, sizeof(*now));

    for (int i = 0; i < m->exceptions; i++) {
        m->exception[i].why = (char *)old + i; /* a tag that survives sorting */
        old[i] = m->exception[i];
    }
    if (m->exceptions)
        qsort(m->exception, (size_t)m->exceptions, sizeof(*old), by_place);
    for (int i = 0; i < m->exceptions; i++) {
        now[m->exception[i].why - (char *)old] = i;
        m->exception[i].why = NULL;
    }
    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].explained >= 0)
            f->sample[i].explained = now[f->sample[i].explained];
    free(old);
    free(now);
}

/* tx and rx of one endpoint and tier; one way slow stays one way. */
static void merge_sides(struct fit *f, double tolerance)
{
    struct matrix *m = f->m;
    int *into = identity(m);

    for (int i = 1; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i - 1], *y = &m->exception[i];
        if (x->part == PART_ENDPOINT && y->part == PART_ENDPOINT && x->a == y->a &&
            x->tier == y->tier && x->side != y->side && alike(x, y, tolerance)) {
            fold(x, y);
            x->side = SIDE_BOTH;
            into[i] = i - 1;
            i++;
        }
    }
    removed(m, f, into);
    free(into);
}

/* A side that has no samples of its own (each pair was measured in one direction) is no acquittal.
 */
static void widen_sides(struct fit *f)
{
    for (int k = 0; k < f->m->exceptions; k++) {
        struct exception *e = &f->m->exception[k];
        int other = 0;
        for (int i = 0; i < f->samples && e->part == PART_ENDPOINT && e->side != SIDE_BOTH; i++)
            other += f->sample[i].tier == e->tier &&
                     (e->side == SIDE_TX ? f->sample[i].dst : f->sample[i].src) == e->a &&
                     f->sample[i].explained != k;
        if (e->part == PART_ENDPOINT && !other)
            e->side = SIDE_BOTH;
    }
}

/* Has this endpoint a sample in the tier that is not explained as slow? */
static bool fine_in(const struct fit *f, int endpoint, int tier)
{
    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].tier == tier && f->sample[i].explained < 0 &&
            (f->sample[i].src == endpoint || f->sample[i].dst == endpoint))
            return true;
    return false;
}

/* The same factor in every NIC tier that was measured: the NIC.  Dead in all tiers: dead. */
static void merge_tiers(struct fit *f, double tolerance)
{
    struct matrix *m = f->m;
    int *into = identity(m);

    for (int i = 0, j; i < m->exceptions; i = j) {
        struct exception *x = &m->exception[i];
        bool same = x->part == PART_ENDPOINT && (m->tier[x->tier].nic || x->factor <= 0);
        for (j = i + 1; j < m->exceptions && m->exception[j].part == x->part &&
                        m->exception[j].a == x->a && m->exception[j].b == x->b;
             j++)
            same = same && alike(x, &m->exception[j], tolerance) &&
                   m->exception[j].side == x->side &&
                   (m->tier[m->exception[j].tier].nic || x->factor <= 0);
        for (int t = 0; t < m->tiers && same; t++)
            same = !(m->tier[t].nic || x->factor <= 0) || !fine_in(f, x->a, t);
        if (!same)
            continue;
        for (int k = i + 1; k < j; k++) {
            fold(x, &m->exception[k]);
            into[k] = i;
        }
        x->tier = -1;
    }
    removed(m, f, into);
    free(into);
}

/* All endpoints of a host, the same tier, side and factor: the host. */
static void merge_hosts(struct fit *f, double tolerance)
{
    struct matrix *m = f->m;
    const struct topo *t = &m->topo;
    int *into = identity(m);

    for (int i = 0; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i];
        if (x->part != PART_ENDPOINT || into[i] != i)
            continue;
        int host = t->endpoint[x->a].place.at[LEVEL_HOST], found = 0;
        for (int k = i; k < m->exceptions; k++) {
            const struct exception *y = &m->exception[k];
            found += y->part == PART_ENDPOINT && t->endpoint[y->a].place.at[LEVEL_HOST] == host &&
                     y->tier == x->tier && y->side == x->side && alike(x, y, tolerance);
        }
        if (t->host[host].endpoints < 2 || found < t->host[host].endpoints)
            continue;
        for (int k = i + 1; k < m->exceptions; k++) {
            const struct exception *y = &m->exception[k];
            if (y->part == PART_ENDPOINT && t->endpoint[y->a].place.at[LEVEL_HOST] == host &&
                y->tier == x->tier && y->side == x->side && alike(x, y, tolerance)) {
                fold(x, y);
                into[k] = i;
            }
        }
        x->part = PART_HOST;
        x->a = host;
    }
    removed(m, f, into);
    free(into);
}

void parts_merge(struct fit *f, double tolerance)
{
    sort_exceptions(f);
    widen_sides(f);
    merge_sides(f, tolerance);
    merge_tiers(f, tolerance);
    merge_hosts(f, tolerance);
    for (int i = 0; i < f->m->exceptions; i++)
        if (f->m->exception[i].factor > 1)
            f->m->exception[i].factor = 1;
}

/* --- sentences --- */

/* How many samples show it, how many of them alone, and how many are all there are. */
static void count_evidence(const struct fit *f, int k, int *shown, int *alone)
{
    *shown = *alone = 0;
    for (int i = 0; i < f->samples; i++)
        if (f->sample[i].explained == k) {
            ++*shown;
            *alone += f->sample[i].alone;
        }
}

static void explain(struct fit *f, int k)
{
    struct exception *e = &f->m->exception[k];
    const char *tier =
        e->tier >= 0 ? f->m->tier[e->tier].rule.name : "every tier that crosses NICs";
    int shown, alone;

    count_evidence(f, k, &shown, &alone);
    if (e->factor <= 0)
        e->why = mem_printf("no answer in %d of %d pairs", shown, shown);
    else if (e->part == PART_PAIR)
        e->why = mem_printf(
            "%.2f of %s alone as well: the link; what its ends have with others is as usual, or "
            "there is no other in this tier",
            e->factor, tier);
    else
        e->why = mem_printf("%d pairs see %.2f of %s%s", shown, e->factor, tier,
                            alone ? ", alone as well: no contention" : "");
}

void parts_explain(struct fit *f)
{
    for (int k = 0; k < f->m->exceptions; k++)
        explain(f, k);
}
