/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts are slow.  Every sample (a directed pair) is evidence for its sender, its receiver,
 * their hosts, leaves and racks, and for its two racks.
 *
 * The rule: a part is suspect when the median over its samples is low; one that is made of others
 * (a host, a leaf, a rack, uplinks) only when nearly all that passes it is as low, by one factor,
 * whichever of its endpoints is asked.  The suspect that explains most goes first, its samples count
 * as explained, and the rest is judged again; what is much slower still stays for a cause of its
 * own.  So the widest cause that holds takes the line, 72 of 72 ports are one leaf, and a slow NIC
 * below a slow leaf is named beside it.  Of parts that the same samples show the smaller is named,
 * and nothing that was not seen is claimed: where no pair within a leaf or a rack was measured over
 * NICs, it is what leaves it, its uplinks; where all pairs with one other rack are slow and there is
 * no third, it is the two racks.
 *
 * All tiers that cross NICs are judged together first, then each by itself; pairs that nothing
 * explains are exceptions of their own when they were slow alone too.  A fabric that is slow
 * everywhere has nothing to stand out from: that is for a reference to say (verdict/accept.h). */
#include "cost/fit/parts_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

enum { ELEMENT_MIN = 2, PAIRS_MIN = 3, INSIDE_MIN = 1, RACKS_MAX = 2048 };
static const double false_chance = 1e-3; /* of naming a healthy part of a tier */

/* --- parts of a scope --- */

/* Twice the number of the two racks, and 1 for the way from the later one to the earlier. */
static int rack_key(const struct fit *f, const struct fit_sample *s)
{
    int pair =
        f->m->topo.group[LEVEL_RACK].count > RACKS_MAX ? -1 : fit_rack_pair(f, s->src, s->dst);

    return pair < 0 ? -1
                    : 2 * pair + (fit_at(f, s->src, LEVEL_RACK) > fit_at(f, s->dst, LEVEL_RACK));
}

static int key_of(const struct fit *f, const struct fit_sample *s, int what)
{
    return what == 0 ? s->src : what == 1 ? s->dst : rack_key(f, s);
}

static void list_by(struct hunt *h, int what, int keys)
{
    const struct fit *f = h->f;
    int *key = mem_calloc((size_t)f->samples + 1, sizeof(*key));

    for (int i = 0; i < f->samples; i++)
        key[i] = hunt_has(h, f->sample[i].tier) ? key_of(f, &f->sample[i], what) : -1;
    lists_make(&h->by[what], key, NULL, f->samples, keys);
    free(key);
}

static bool is_low(const struct hunt *h, const struct fit_sample *s)
{
    return s->explained < 0 && !(s->best >= 1 - h->f->o.outlier);
}

/* The samples of keys first to last, if there are as many as are asked for.  Most parts have no low
 * one, and can be told by their number alone. */
static void add_element(struct hunt *h, const struct lists *l, struct exception e, int first,
                        int last, int least)
{
    const int *index = l->at + l->start[first];
    int n = l->start[last + 1] - l->start[first], low = 0;

    for (int i = 0; i < n && !low; i++)
        low = h->low[index[i]];
    h->parts += n >= least;
    if (n >= least && low)
        MEM_PUSH(h->element, h->elements) = (struct element){.e = e, .index = index, .samples = n};
}

static void list_groups(struct hunt *h, enum level level)
{
    const struct fit *f = h->f;
    int n = 0, *key = mem_calloc(2 * (size_t)f->samples + 1, sizeof(*key)),
        *item = mem_calloc(2 * (size_t)f->samples + 1, sizeof(*item));

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        int x = fit_at(f, s->src, level), y = fit_at(f, s->dst, level);
        if (!hunt_has(h, s->tier))
            continue;
        if (x >= 0) {
            item[n] = i;
            key[n++] = PASS_COUNT * x + (x == y ? PASS_WITHIN : PASS_OUT);
        }
        if (y >= 0 && x != y) {
            item[n] = i;
            key[n++] = PASS_COUNT * y + PASS_IN;
        }
    }
    lists_make(&h->group[level], key, item, n, PASS_COUNT * f->m->topo.group[level].count);
    free(key);
    free(item);
}

/* All that passes a group, if something was seen within it, or nothing ever is over these tiers. */
static void add_whole(struct hunt *h, enum level level, struct exception e)
{
    const struct lists *l = &h->group[level];
    int k = PASS_COUNT * e.a, before = h->elements,
        within = l->start[k + PASS_COUNT] - l->start[k + PASS_WITHIN];

    if (within >= INSIDE_MIN || level == LEVEL_HOST)
        add_element(h, l, e, k, k + PASS_WITHIN, ELEMENT_MIN);
    if (h->elements > before)
        h->element[before].inside = within;
}

/* What leaves a group, what enters it, and both. */
static void add_ways(struct hunt *h, enum level level, struct exception e)
{
    static const struct {
        enum side side;
        enum pass first, last;
    } way[] = {
        {SIDE_BOTH, PASS_OUT, PASS_IN}, {SIDE_TX, PASS_OUT, PASS_OUT}, {SIDE_RX, PASS_IN, PASS_IN}};

    for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++) {
        e.side = way[i].side;
        add_element(h, &h->group[level], e, PASS_COUNT * e.a + (int)way[i].first,
                    PASS_COUNT * e.a + (int)way[i].last, ELEMENT_MIN);
    }
}

/* The tier of all that leaves a leaf: the one without leaves; -1: there is none, or several. */
static int beyond_leaves(const struct matrix *m)
{
    int beyond = -1, tiers = 0;
    bool leaves = false;

    for (int i = 0; i < m->tiers; i++) {
        if (!m->tier[i].nic)
            continue;
        bool same = m->tier[i].rule.same & 1u << LEVEL_LEAF;
        leaves = leaves || same;
        if (!same && ++tiers)
            beyond = i;
    }
    return leaves && tiers == 1 ? beyond : -1;
}

/* From the small to the large. */
static void make_groups(struct hunt *h)
{
    static const struct {
        enum level level;
        enum part part;
    } kinds[] = {{LEVEL_HOST, PART_HOST}, {LEVEL_LEAF, PART_LEAF}, {LEVEL_RACK, PART_RACK}};
    const struct matrix *m = h->f->m;
    int beyond = beyond_leaves(m);

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        enum level level = kinds[k].level;
        list_groups(h, level);
        for (int g = 0; g < m->topo.group[level].count; g++) {
            struct exception e = {.part = kinds[k].part, .a = g, .b = -1, .tier = h->scope};
            if (level == LEVEL_LEAF && h->scope == SCOPE_NICS && beyond >= 0) {
                e.tier = beyond;
                add_ways(h, level, e);
                e.tier = h->scope;
            } else if (level == LEVEL_RACK && h->scope == SCOPE_NICS) {
                e.part = PART_RACK_UPLINKS;
                add_ways(h, level, e);
                e.part = PART_RACK;
            }
            if (level != LEVEL_LEAF || hunt_nics(h))
                add_whole(h, level, e);
        }
    }
}

/* What passes between two racks, and each way by itself. */
static void add_racks(struct hunt *h, int pair, int racks)
{
    struct exception e = {
        .part = PART_RACK_PAIR, .a = pair / racks, .b = pair % racks, .tier = h->scope};

    for (e.side = SIDE_BOTH; e.side < SIDE_COUNT; e.side++)
        add_element(h, &h->by[2], e, 2 * pair + (e.side == SIDE_RX), 2 * pair + (e.side != SIDE_TX),
                    PAIRS_MIN);
}

/* Which samples of the scope are low; their number. */
static int find_low(struct hunt *h)
{
    const struct fit *f = h->f;
    int n = 0;

    h->low = mem_calloc((size_t)f->samples + 1, sizeof(*h->low));
    for (int i = 0; i < f->samples; i++)
        n += h->low[i] = hunt_has(h, f->sample[i].tier) && is_low(h, &f->sample[i]);
    return n;
}

static void make_elements(struct hunt *h)
{
    int n = h->f->m->topo.endpoints, racks = h->f->m->topo.group[LEVEL_RACK].count;
    int pairs = racks <= RACKS_MAX ? racks * racks : 0;

    for (int k = 0; k < 3; k++)
        list_by(h, k, k == 2 ? 2 * pairs : n);
    for (int i = 0; i < n; i++)
        for (int in = 0; in < 2; in++)
            if (!h->known || h->known[2 * i + in])
                add_element(h, &h->by[in],
                            (struct exception){.part = PART_ENDPOINT,
                                               .side = in ? SIDE_RX : SIDE_TX,
                                               .a = i,
                                               .b = -1,
                                               .tier = h->scope},
                            i, i, h->known ? 1 : ELEMENT_MIN);
    for (int k = 0; k < pairs && !h->known; k++)
        add_racks(h, k, racks);
    if (!h->known)
        make_groups(h);
}

/* --- judging --- */

/* How much lower than normal a median of n samples must be.  Among M healthy elements one passes z
 * deviations with a chance below M / 2 exp(-z^2 / 2), which is to be FALSE_CHANCE; the deviation
 * of a median is 1.25 sigma / sqrt(n). */
static double margin(const struct hunt *h, int n)
{
    double z = sqrt(2 * log((h->parts + 1) / (2 * false_chance)));

    return fmax(h->f->o.outlier, z * 1.25 * h->sigma / sqrt(n));
}

/* Median of what is left of an element; best: of each sample's best epoch. */
static double left_median(const struct hunt *h, const struct element *x, bool best, int *n)
{
    *n = 0;
    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (s->explained < 0)
            h->v[(*n)++] = best ? s->best : s->residual;
    }
    return *n ? stats_median(h->v, *n) : NAN;
}

/* How low a median must be: what no pair showed alone as well may be the crowd's doing, and must
 * stand out twice as far. */
static double limit(const struct hunt *h, const struct element *x, int n)
{
    int alone = 0;

    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        alone += s->alone && hunt_shows(h, s, x->e.factor);
    }
    return 1 - (alone ? 1 : 2) * margin(h, n);
}

/* Is half of what is left of an element low?  Else its median is not: most are told so, unsorted. */
static bool may_be_low(const struct hunt *h, const struct element *x)
{
    int n = 0, low = 0;

    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        n += s->explained < 0;
        low += is_low(h, s);
    }
    return 2 * low >= n;
}

/* Look at what is left of an element; false: nothing wrong with it. */
static bool suspect(struct hunt *h, struct element *x)
{
    int n;

    if (!may_be_low(h, x))
        return false;
    double best = left_median(h, x, true, &n); /* normal in one epoch: no evidence */

    if (n < (h->known ? 1 : ELEMENT_MIN))
        return false;
    x->e.factor = left_median(h, x, false, &n);
    x->e.evidence = n;
    x->score = n * (1 - x->e.factor);
    if (!(best < limit(h, x, n)))
        return false;
    /* rack pairs also need most of their samples low */
    if (x->e.part == PART_RACK_PAIR && !(stats_quantile(h->v, n, 0.75) < 1 - margin(h, n) / 2))
        return false;
    return parts_enough(h, x);
}

static int by_score(const void *a, const void *b)
{
    const struct element *x = *(struct element *const *)a, *y = *(struct element *const *)b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x > y) - (x < y);
}

/* What is much slower than a group, in every epoch, has a cause of its own. */
static void accept(struct hunt *h, const struct element *x)
{
    struct fit *f = h->f;
    double least = part_is_group(x->e.part) ? x->e.factor * (1 - same_factor) - 2.5 * h->sigma : 0;

    MEM_PUSH(f->m->exception, f->m->exceptions) = x->e;
    for (int i = 0; i < x->samples; i++) {
        struct fit_sample *s = &f->sample[x->index[i]];
        if (s->explained < 0 && s->best >= least)
            s->explained = f->m->exceptions - 1;
    }
}

/* One pass: all suspects, the one that explains most first; each is judged again before it is
 * accepted. */
static bool pass(struct hunt *h)
{
    struct element **list = NULL;
    int n = 0;
    bool any = false;

    for (int i = 0; i < h->elements; i++)
        if (suspect(h, &h->element[i]))
            MEM_PUSH(list, n) = &h->element[i];
    if (n)
        qsort(list, (size_t)n, sizeof(struct element *), by_score);
    for (int i = 0; i < n; i++) {
        double score = list[i]->score;
        if (!suspect(h, list[i]) || list[i]->score < 0.5 * score)
            continue; /* others explain most of it; the next pass looks again */
        accept(h, list[i]);
        any = true;
    }
    free(list);
    return any;
}

static void hunt_open(struct hunt *h, struct fit *f, int scope, const bool *known)
{
    const struct topo *t = &f->m->topo;

    *h = (struct hunt){.f = f, .scope = scope, .known = known};
    for (int i = 0; i < f->m->tiers; i++)
        if (hunt_has(h, i))
            h->sigma = fmax(h->sigma, f->baseline[i].sigma);
    h->broken = mem_calloc((size_t)t->endpoints + 1, sizeof(*h->broken));
    for (int i = 0; i < f->m->exceptions; i++)
        for (int k = 0; k < t->endpoints && f->m->exception[i].factor <= 0; k++)
            if (f->m->exception[i].b < 0 && matrix_touches(f->m, &f->m->exception[i], k))
                h->broken[k] = true;
    h->v = mem_calloc((size_t)f->samples + 1, sizeof(*h->v));
    h->stamp = mem_calloc(1 + (size_t)t->hosts + (size_t)t->endpoints, sizeof(*h->stamp));
    if (find_low(h))
        make_elements(h);
}

static void hunt_close(struct hunt *h)
{
    for (int k = 0; k < 3; k++)
        lists_free(&h->by[k]);
    for (int l = 0; l < LEVEL_COUNT; l++)
        lists_free(&h->group[l]);
    free(h->broken);
    free(h->low);
    free(h->element);
    free(h->v);
    free(h->stamp);
}

static void hunt_in(struct fit *f, int scope)
{
    struct hunt h;

    hunt_open(&h, f, scope, NULL);
    while (pass(&h))
        ;
    hunt_close(&h);
}

/* --- what is left --- */

/* Noise of the quietest tier that has any; NAN: none has. */
static double quietest(const struct fit *f)
{
    double sigma = NAN;

    for (int t = 0; t < f->m->tiers; t++)
        if (f->baseline[t].sigma > 0)
            sigma = fmin(sigma, f->baseline[t].sigma);
    return sigma;
}

/* Noise of this tier without the pairs of those that are known: in a tier of two pairs a slow one
 * looks like noise. */
static double noise_of_others(struct hunt *h)
{
    const struct fit *f = h->f;
    int n = 0;

    for (int i = 0; i < f->samples; i++) {
        const struct fit_sample *s = &f->sample[i];
        if (hunt_has(h, s->tier) && s->explained < 0 && !h->known[2 * s->src] &&
            !h->known[2 * s->dst + 1])
            h->v[n++] = fabs(s->residual - 1);
    }
    return fmax(quietest(f), n ? 1.4826 * stats_median(h->v, n) : 0);
}

/* Too few partners in this tier to tell from its noise, but another tier told which end is slow. */
static void blame_known(struct fit *f)
{
    int before = f->m->exceptions;
    bool *known = mem_calloc(2 * (size_t)f->m->topo.endpoints, sizeof(*known));

    for (int i = 0; i < before; i++) {
        const struct exception *e = &f->m->exception[i];
        if (e->part == PART_ENDPOINT && e->factor > 0) {
            known[2 * e->a] |= e->side != SIDE_RX;
            known[2 * e->a + 1] |= e->side != SIDE_TX;
        }
    }
    for (int tier = 0; tier < f->m->tiers && before; tier++) {
        struct hunt h;
        hunt_open(&h, f, tier, known);
        h.sigma = noise_of_others(&h);
        while (pass(&h))
            ;
        hunt_close(&h);
    }
    free(known);
}

/* Was it measured alone, and is it, in the middle of its epochs, clearly below what epochs of this
 * tier make of a healthy pair, and even its best one below those that are no more than unlucky? */
static bool bad(const struct fit *f, const struct fit_sample *s)
{
    const struct fit_baseline *l = &f->baseline[s->tier];

    if (s->explained >= 0 || (!s->alone && s->residual > 0))
        return false;
    double far = fmax(l->unrest, 5 * l->sigma);
    return s->residual < 1 - fmax(f->o.outlier, far) && s->best < 1 - fmax(f->o.outlier, far / 2);
}

/* Does the sample pass a part that is named and as slow, in whatever tier that showed? */
static bool of_a_part(const struct fit *f, const struct fit_sample *s, int parts)
{
    bool of = false;

    for (int i = 0; i < parts && !of; i++) {
        struct exception e = f->m->exception[i];
        e.side = SIDE_BOTH;
        of = e.factor <= (1 + same_factor) * s->residual && parts_pass(f->m, &e, s);
    }
    return of;
}

static void blame_pairs(struct fit *f)
{
    int first = f->m->exceptions;

    for (int i = 0; i < f->samples; i++) {
        struct fit_sample *s = &f->sample[i];
        if (!bad(f, s) || of_a_part(f, s, first))
            continue;
        int k = first;
        while (k < f->m->exceptions &&
               !(f->m->exception[k].a == s->dst && f->m->exception[k].b == s->src &&
                 f->m->exception[k].tier == s->tier))
            k++;
        s->explained = k;
        if (k < f->m->exceptions) { /* the way back is slow as well */
            struct exception *e = &f->m->exception[k];
            e->factor = e->side == SIDE_BOTH ? e->factor : (e->factor + s->residual) / 2;
            e->side = SIDE_BOTH;
            e->evidence++;
            continue;
        }
        MEM_PUSH(f->m->exception, f->m->exceptions) = (struct exception){.part = PART_PAIR,
                                                                         .side = SIDE_TX,
                                                                         .a = s->src,
                                                                         .b = s->dst,
                                                                         .tier = s->tier,
                                                                         .factor = s->residual,
                                                                         .evidence = 1};
    }
}

/* Factors above 1 do not occur: suspects are below; a dead part has exactly 0. */
void fit_parts(struct fit *f)
{
    parts_broken(f);
    hunt_in(f, SCOPE_NICS);
    for (int tier = 0; tier < f->m->topo.tiers; tier++)
        hunt_in(f, tier);
    blame_known(f);
    parts_merge(f, same_factor);
    blame_pairs(f);
    parts_sort(f);
    parts_explain(f);
}
