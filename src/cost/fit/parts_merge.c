/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions that are one cause become one: sending and receiving side, tiers, the endpoints of a
 * host; and each gets its sentence. */
#include "cost/fit/fit_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

enum { LEAF_MIN = 3, RACKS_MIN = 2 };

static const double most = 2. / 3;   /* of a rack's partners */
static const double blamed = 1. / 3; /* of a group's endpoints, the others being behind them */
static const double likeness = 0.1;  /* of factors */

struct merge {
    struct fit *f;
    double tolerance;
    enum part part; /* what a step makes */
    int *into;      /* of each exception: the one that it becomes part of */
    int *index, n;  /* candidates for one part: exceptions that it would explain */
    double *v;      /* scratch */
};

/* --- sides, tiers, hosts --- */

/* tx and rx of one endpoint and tier; one way slow stays one way. */
static void merge_sides(struct merge *w)
{
    struct matrix *m = w->f->m;

    for (int i = 1; i < m->exceptions; i++) {
        struct exception *x = &m->exception[i - 1], *y = &m->exception[i];
        if (x->part == PART_ENDPOINT && y->part == PART_ENDPOINT && x->a == y->a &&
            x->tier == y->tier && x->side != y->side && parts_alike(x, y, w->tolerance)) {
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

/* --- above many parts: a leaf, the uplinks of a rack.  All that hangs on a leaf or leaves a rack is
 * as slow: several of its endpoints were blamed with like factors, and nobody else there is fine; or
 * two in three of a rack's pairs with others --- */

/* Those of e[] near the median factor stay; the rest is left as it was. */
static void keep_alike(struct merge *w)
{
    const struct matrix *m = w->f->m;
    int n = 0;

    for (int i = 0; i < w->n; i++)
        w->v[i] = m->exception[w->index[i]].factor;
    struct exception usual = {.factor = w->n ? stats_median(w->v, w->n) : 0};
    for (int i = 0; i < w->n; i++)
        if (parts_alike(&usual, &m->exception[w->index[i]], w->tolerance))
            w->index[n++] = w->index[i];
    w->n = usual.factor > 0 ? n : 0;
}

/* The tier that most candidates have, and the side that all do. */
static void common(const struct merge *w, struct exception *e)
{
    const struct matrix *m = w->f->m;
    int most_of = 0;

    *e = m->exception[w->index[0]];
    for (int i = 0; i < w->n; i++) {
        const struct exception *x = &m->exception[w->index[i]];
        int same = 0;
        for (int k = 0; k < w->n; k++)
            same += m->exception[w->index[k]].tier == x->tier;
        if (same > most_of)
            e->tier = x->tier;
        most_of = same > most_of ? same : most_of;
        if (x->side != e->side)
            e->side = SIDE_BOTH;
    }
}

static bool concerns(const struct fit *f, const struct exception *e, const struct fit_sample *s)
{
    return e->tier >= 0 ? s->tier == e->tier : f->m->tier[s->tier].nic;
}

/* Others that met hardly anybody but this part look slow, too: those whose slow samples all pass it
 * are not. */
static void acquit(struct fit *f, int part, int *into)
{
    struct matrix *m = f->m;
    const struct exception *e = &m->exception[part];
    int *slow = mem_calloc((size_t)m->exceptions + 1, sizeof(*slow)),
        *here = mem_calloc((size_t)m->exceptions + 1, sizeof(*here));

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        if (s->explained < 0 || s->residual > (1 + e->factor) / 2)
            continue;
        slow[s->explained]++;
        here[s->explained] += concerns(f, e, s) && parts_pass(m, e, s);
    }
    for (int i = 0; i < m->exceptions; i++)
        if (i != part && into[i] == i && slow[i] && here[i] == slow[i] &&
            m->exception[i].factor > 0 && m->exception[i].factor >= e->factor * (1 - likeness))
            into[i] = part;
    free(slow);
    free(here);
}

/* Fold the candidates into one exception of this part, whose samples it explains from now on. */
static void fold(struct merge *w, struct exception part)
{
    struct fit *f = w->f;
    struct matrix *m = f->m;
    int first = w->index[0];

    for (int i = 1; i < w->n; i++) {
        parts_fold(&m->exception[first], &m->exception[w->index[i]]);
        w->into[w->index[i]] = first;
    }
    part.factor = m->exception[first].factor;
    part.evidence = m->exception[first].evidence;
    m->exception[first] = part;
    for (int i = 0; i < f->samples; i++) {
        struct fit_sample *s = &f->sample[i];
        if (s->explained < 0 && concerns(f, &part, s) && parts_pass(m, &part, s) &&
            !parts_speaks_for(s, &part))
            s->explained = first;
    }
    acquit(f, first, w->into);
}

/* Who was measured in the tiers of e: bit 1, and who is fine there: bit 2; by endpoint. */
static char *heard(const struct fit *f, const struct exception *e)
{
    char *of = mem_calloc((size_t)f->m->topo.endpoints + 1, 1);

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        if (!concerns(f, e, s))
            continue;
        char bits = (char)(1 | (parts_speaks_for(s, e) ? 2 : 0));
        of[s->src] |= bits;
        of[s->dst] |= bits;
    }
    return of;
}

/* Do most endpoints of the group share the fault, and is nobody else of it fine? */
static bool all_share(const struct merge *w, const struct exception *e, enum level level, int group)
{
    const struct fit *f = w->f;
    const struct topo *t = &f->m->topo;
    char *of = heard(f, e), *has = mem_calloc((size_t)t->endpoints + 1, 1);
    int measured = 0, slow = 0, fine = 0, hosts = 0, last = -1;

    for (int i = 0; i < w->n; i++)
        has[f->m->exception[w->index[i]].a] = 1;
    for (int i = 0; i < t->endpoints; i++) {
        if (topo_at(t, i, level) != group || !of[i])
            continue;
        measured++;
        slow += has[i];
        fine += !has[i] && of[i] & 2;
        hosts += has[i] && topo_at(t, i, LEVEL_HOST) != last;
        last = has[i] ? topo_at(t, i, LEVEL_HOST) : last;
    }
    free(of);
    free(has);
    return slow >= LEAF_MIN && hosts > 1 && slow >= blamed * measured && !fine;
}

/* Median residual of the group's own pairs in the tiers of e; NAN: none was measured. */
static double inside(const struct fit *f, const struct exception *e, enum level level, int group)
{
    const struct topo *t = &f->m->topo;
    double *v = mem_calloc((size_t)f->samples + 1, sizeof(*v)), median = NAN;
    int n = 0;

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        if (concerns(f, e, s) && topo_at(t, s->src, level) == group &&
            topo_at(t, s->dst, level) == group)
            v[n++] = s->residual;
    }
    if (n)
        median = stats_median(v, n);
    free(v);
    return median;
}

/* Endpoints of one group that all are as slow: its leaf, or what leaves the rack, where pairs
 * within are not slow too. */
static void merge_group(struct merge *w, int group)
{
    const struct matrix *m = w->f->m;
    enum level level = (enum level)part_level[w->part];
    struct exception e;

    w->n = 0;
    for (int i = 0; i < m->exceptions; i++)
        if (w->into[i] == i && m->exception[i].part == PART_ENDPOINT &&
            topo_at(&m->topo, m->exception[i].a, level) == group)
            w->index[w->n++] = i;
    keep_alike(w);
    if (w->n < LEAF_MIN)
        return;
    common(w, &e);
    e.factor = m->exception[w->index[0]].factor;
    double own = inside(w->f, &e, level, group);
    if (w->part == PART_RACK_UPLINKS && own < (1 + e.factor) / 2)
        return;
    e.part = w->part;
    e.a = group;
    if (all_share(w, &e, level, group))
        fold(w, e);
}

static void merge_groups(struct merge *w)
{
    const struct matrix *m = w->f->m;

    for (int g = 0; g < part_count(m, w->part) && m->exceptions >= LEAF_MIN; g++)
        merge_group(w, g);
}

/* How many racks were measured against this one in the tiers of e. */
static int partners(const struct fit *f, const struct exception *e, int rack)
{
    const struct topo *t = &f->m->topo;
    int racks = t->group[LEVEL_RACK].count, n = 0;
    char *met = mem_calloc((size_t)racks + 1, 1);

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        int x = topo_at(t, s->src, LEVEL_RACK), y = topo_at(t, s->dst, LEVEL_RACK),
            other = x == rack ? y : x;
        if (!concerns(f, e, s) || x == y || x < 0 || y < 0 || (x != rack && y != rack))
            continue;
        n += !met[other];
        met[other] = 1;
    }
    free(met);
    return n;
}

/* A rack that is slow with two in three of the others or more. */
static void merge_pairs_of(struct merge *w, int rack)
{
    const struct matrix *m = w->f->m;
    struct exception e;

    w->n = 0;
    for (int i = 0; i < m->exceptions; i++)
        if (w->into[i] == i && m->exception[i].part == PART_RACK_PAIR &&
            (m->exception[i].a == rack || m->exception[i].b == rack))
            w->index[w->n++] = i;
    keep_alike(w);
    if (w->n < RACKS_MIN)
        return;
    common(w, &e);
    e.part = PART_RACK_UPLINKS;
    e.side = SIDE_BOTH;
    e.a = rack;
    e.b = -1;
    if (w->n >= most * partners(w->f, &e, rack))
        fold(w, e);
}

/* The rack in most slow pairs first: its partners have one each. */
static void merge_rack_pairs(struct merge *w)
{
    const struct matrix *m = w->f->m;
    int racks = m->topo.group[LEVEL_RACK].count;
    int *pairs = mem_calloc((size_t)racks + 1, sizeof(*pairs)), top = 0;

    for (int i = 0; i < m->exceptions; i++)
        if (m->exception[i].part == PART_RACK_PAIR) {
            int a = ++pairs[m->exception[i].a], b = ++pairs[m->exception[i].b];
            top = a > top ? a : top;
            top = b > top ? b : top;
        }
    for (; top >= RACKS_MIN; top--)
        for (int r = 0; r < racks; r++)
            if (pairs[r] == top)
                merge_pairs_of(w, r);
    free(pairs);
}

/* A rack is its leaf where the leaf has no other endpoints. */
static void name_whole(const struct matrix *m, struct exception *e)
{
    int leaf = -2, rack = e->a;

    for (int i = 0; i < m->topo.endpoints; i++) {
        const int *at = m->topo.endpoint[i].place.at;
        if (at[LEVEL_RACK] == rack)
            leaf = leaf == -2 || leaf == at[LEVEL_LEAF] ? at[LEVEL_LEAF] : -1;
    }
    for (int i = 0; i < m->topo.endpoints && leaf >= 0; i++)
        if (topo_at(&m->topo, i, LEVEL_LEAF) == leaf && topo_at(&m->topo, i, LEVEL_RACK) != rack)
            leaf = -1;
    e->part = leaf >= 0 ? PART_LEAF : PART_RACK;
    e->a = leaf >= 0 ? leaf : rack;
}

/* Where pairs within a rack with slow uplinks are as slow, it is all of the rack. */
static void widen_uplinks(struct merge *w)
{
    const struct matrix *m = w->f->m;

    for (int k = 0; k < m->exceptions; k++) {
        const struct exception *e = &m->exception[k];
        struct exception nic = {.factor = e->factor, .tier = -1};
        if (e->part != PART_RACK_UPLINKS)
            continue;
        struct exception own = {.factor = inside(w->f, &nic, LEVEL_RACK, e->a)};
        if (isnan(own.factor) || !parts_alike(e, &own, w->tolerance))
            continue;
        w->n = 0;
        w->index[w->n++] = k;
        for (int i = 0; i < m->exceptions; i++)
            if (m->exception[i].part == PART_ENDPOINT &&
                parts_alike(e, &m->exception[i], w->tolerance) &&
                topo_at(&m->topo, m->exception[i].a, LEVEL_RACK) == e->a)
                w->index[w->n++] = i;
        struct exception whole = *e;
        whole.tier = -1;
        whole.side = SIDE_BOTH;
        name_whole(m, &whole);
        fold(w, whole);
    }
}

/* --- all of them --- */

void parts_merge(struct fit *f, double tolerance)
{
    static const struct {
        void (*step)(struct merge *w);
        enum part part;
    } steps[] = {{merge_sides, PART_ENDPOINT},      {widen_sides, PART_ENDPOINT},
                 {merge_tiers, PART_ENDPOINT},      {merge_rack_pairs, PART_RACK_UPLINKS},
                 {merge_groups, PART_RACK_UPLINKS}, {widen_uplinks, PART_RACK},
                 {merge_groups, PART_LEAF},         {merge_groups, PART_RACK},
                 {merge_hosts, PART_HOST}};
    struct merge w = {.f = f, .tolerance = tolerance};

    parts_sort(f);
    w.index = mem_calloc((size_t)f->m->exceptions + 1, sizeof(*w.index));
    w.v = mem_calloc((size_t)f->m->exceptions + 1, sizeof(*w.v));
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        w.part = steps[i].part;
        w.into = parts_identity(f->m);
        steps[i].step(&w);
        parts_keep(f, w.into);
    }
    free(w.index);
    free(w.v);
}
