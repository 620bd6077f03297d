/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions that are one cause become one: sending and receiving side, tiers, the endpoints of a
 * host; and each gets its sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cost/fit/parts.h"

bool parts_alike(const struct exception *x, const struct exception *y, double tolerance)
{
    if (x->wrong || y->wrong) /* each is named by itself */
        return false;
    if (x->factor <= 0 || y->factor <= 0)
        return x->factor <= 0 && y->factor <= 0;
    return fabs(x->factor - y->factor) <= tolerance * fmax(x->factor, y->factor);
}

void parts_fold(struct exception *x, const struct exception *y)
{
    int n = x->evidence + y->evidence;

    x->factor = (x->factor * x->evidence + y->factor * y->evidence) / n;
    x->evidence = n;
}

void parts_keep(struct matrix *m, struct fit *f, const int *into)
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

    if (severity(x) != severity(y))
        return severity(x) > severity(y) ? -1 : 1;
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

/* tx and rx of one endpoint and tier; one way slow stays one way. */
static void merge_sides(struct fit *f, double tolerance)
{
    struct matrix *m = f->m;
    int *into = parts_identity(m);

    for (int i = 1; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i - 1], *y = &m->exception[i];
        if (x->part == PART_ENDPOINT && y->part == PART_ENDPOINT && x->a == y->a &&
            x->tier == y->tier && x->side != y->side && parts_alike(x, y, tolerance)) {
            parts_fold(x, y);
            x->side = SIDE_BOTH;
            into[i] = i - 1;
            i++;
        }
    }
    parts_keep(m, f, into);
    free(into);
}

bool parts_speaks_for(const struct sample *s, const struct exception *e)
{
    return s->explained < 0 && s->residual > (1 + e->factor) / 2;
}

/* A side with nothing to judge it by (measured in one direction only, or slow for other reasons) is
 * no acquittal. */
static void widen_sides(struct fit *f)
{
    for (int k = 0; k < f->m->exceptions; k++) {
        struct exception *e = &f->m->exception[k];
        int other = 0;
        if (e->part != PART_ENDPOINT || e->side == SIDE_BOTH)
            continue;
        for (int i = 0; i < f->samples; i++) {
            const struct sample *s = &f->sample[i];
            bool own = s->explained >= 0 && f->m->exception[s->explained].a == e->a;
            if (s->tier == e->tier && (e->side == SIDE_TX ? s->dst : s->src) == e->a)
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
           t->endpoint[x->a].place.at[LEVEL_HOST] == t->endpoint[y->a].place.at[LEVEL_HOST] &&
           parts_alike(x, y, tolerance);
}

/* Endpoints of x's host that are fine where x is slow. */
static int healthy_on_host(const struct fit *f, const struct exception *x)
{
    const struct topo *t = &f->m->topo;
    int n = 0;

    for (int i = 0; i < t->endpoints; i++) {
        bool fine = false;
        if (t->endpoint[i].place.at[LEVEL_HOST] != t->endpoint[x->a].place.at[LEVEL_HOST])
            continue;
        for (int k = 0; k < t->tiers; k++)
            if (x->tier >= 0 ? k == x->tier : f->m->tier[k].nic)
                fine = fine || fine_in(f, x, i, k);
        n += fine;
    }
    return n;
}

/* Half of a host's endpoints or more say the same and none of the others is fine: the host. */
static void merge_hosts(struct fit *f, double tolerance)
{
    struct matrix *m = f->m;
    int *into = parts_identity(m);

    for (int i = 0; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i];
        int found = 0;
        if (x->part != PART_ENDPOINT || into[i] != i)
            continue;
        int host = m->topo.endpoint[x->a].place.at[LEVEL_HOST], all = m->topo.host[host].endpoints;
        for (int k = i; k < m->exceptions; k++)
            found += same_host(m, x, &m->exception[k], tolerance);
        if (all < 2 || 2 * found < all || found < 2 || healthy_on_host(f, x))
            continue;
        for (int k = i + 1; k < m->exceptions; k++)
            if (same_host(m, x, &m->exception[k], tolerance)) {
                parts_fold(x, &m->exception[k]);
                into[k] = i;
            }
        x->part = PART_HOST;
        x->a = host;
    }
    parts_keep(m, f, into);
    free(into);
}

void parts_merge(struct fit *f, double tolerance)
{
    parts_sort(f);
    merge_sides(f, tolerance);
    widen_sides(f);
    parts_tiers(f, tolerance);
    parts_common(f, tolerance);
    merge_hosts(f, tolerance);
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
    if (e->why) /* said where it was found */
        return;
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
