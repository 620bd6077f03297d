/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts are slow.  Every sample (a directed pair) is evidence for its sender, its receiver
 * and its two racks.  A part is suspect when the median over its samples is low: the median over
 * partners keeps a slow part from dragging its peers along.  The part that explains most goes
 * first, its samples count as explained, and the rest is judged again; pairs that nothing explains
 * are exceptions of their own when they were slow alone too. */
#include "cost/fit/fit_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"

enum { ELEMENT_MIN = 2, PARTNERS_MIN = 3, ALONE_MIN = 2, HOSTS_MIN = 2, RACKS_MAX = 2048 };
static const double same_factor = 0.1;   /* factors that differ less belong to one cause */
static const double false_chance = 1e-3; /* of naming a healthy part of a tier */

/* A part of one tier and the samples that cross it. */
struct element {
    struct exception e;
    const int *index;
    int samples;
    double score;
};

/* known: parts that another tier named already are looked for in this one, which has too few pairs
 * to tell by itself; [2 * endpoint + received]. */
struct hunt {
    struct fit *f;
    int tier;
    double sigma; /* of the healthy, share */
    const bool *known;
    struct lists by[3]; /* samples by sender, by receiver, by rack pair */
    struct element *element;
    int elements;
    double *v;  /* scratch */
    int *stamp; /* [0]: the last mark given; [1 + host], [1 + hosts + endpoint]: its mark */
};

/* --- elements of a tier --- */

static int rack_key(const struct fit *f, const struct fit_sample *s)
{
    return f->m->topo.group[LEVEL_RACK].count > RACKS_MAX ? -1 : fit_rack_pair(f, s->src, s->dst);
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
        key[i] = f->sample[i].tier == h->tier ? key_of(f, &f->sample[i], what) : -1;
    lists_make(&h->by[what], key, NULL, f->samples, keys);
    free(key);
}

/* The samples of a key, if there are as many as are asked for. */
static void add_element(struct hunt *h, struct exception e, int what, int key, int least)
{
    const struct lists *l = &h->by[what];
    int n = l->start[key + 1] - l->start[key];

    e.tier = h->tier;
    if (n >= least)
        MEM_PUSH(h->element, h->elements) =
            (struct element){.e = e, .index = l->at + l->start[key], .samples = n};
}

static void make_elements(struct hunt *h)
{
    int n = h->f->m->topo.endpoints, racks = h->f->m->topo.group[LEVEL_RACK].count;
    int pairs = racks <= RACKS_MAX ? racks * racks : 0;

    for (int k = 0; k < 3; k++)
        list_by(h, k, k == 2 ? pairs : n);
    for (int i = 0; i < n; i++)
        for (int in = 0; in < 2; in++)
            if (!h->known || h->known[2 * i + in])
                add_element(
                    h,
                    (struct exception){
                        .part = PART_ENDPOINT, .side = in ? SIDE_RX : SIDE_TX, .a = i, .b = -1},
                    in, i, h->known ? 1 : ELEMENT_MIN);
    for (int k = 0; k < pairs && !h->known; k++)
        add_element(h, (struct exception){.part = PART_RACK_PAIR, .a = k / racks, .b = k % racks},
                    2, k, PARTNERS_MIN);
}

/* --- is the evidence independent?  Else the cause may as well be what all of it shares. --- */

/* A low sample: nearer to the factor than to normal.  What is looked for again must be seen alone,
 * too. */
static bool shows(const struct hunt *h, const struct fit_sample *s, double factor)
{
    return s->explained < 0 && s->residual <= (1 + factor) / 2 && (s->alone || !h->known);
}

/* 1 the first time in this count (mark) that the host, or the endpoint, is seen. */
static int first_time(const struct hunt *h, int mark, int endpoint, bool host)
{
    const struct topo *t = &h->f->m->topo;
    int *seen = &h->stamp[1 + (host ? topo_at(t, endpoint, LEVEL_HOST) : t->hosts + endpoint)];
    int first = *seen != mark;

    *seen = mark;
    return first;
}

/* How many partners, or their hosts, an endpoint could meet in this tier, up to `most`. */
static int could_meet(const struct hunt *h, int own, bool host, int most)
{
    const struct topo *t = &h->f->m->topo;
    int n = 0, mark = ++*h->stamp;

    for (int i = 0; i < t->endpoints && n < most; i++)
        if (i != own && fit_meets(h->f, own, i, h->tier))
            n += first_time(h, mark, i, host);
    return n;
}

/* How many partners, or their hosts, show it; alone: measured alone. */
static int partners(const struct hunt *h, const struct element *x, bool host, bool alone)
{
    int n = 0, mark = ++*h->stamp;

    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (shows(h, s, x->e.factor) && (s->alone || !alone))
            n += first_time(h, mark, s->src == x->e.a ? s->dst : s->src, host);
    }
    return n;
}

static bool enough_partners(const struct hunt *h, const struct element *x, bool host, int wanted)
{
    int n = partners(h, x, host, false);

    return n >= wanted || partners(h, x, host, true) >= ALONE_MIN ||
           (n > 0 && n >= could_meet(h, x->e.a, host, wanted));
}

/* A quantile of what this host has with others than the two racks, or this rack with a third; NAN:
 * nothing. */
static double elsewhere(const struct hunt *h, const struct element *x, enum level level, int at,
                        double share)
{
    const struct topo *t = &h->f->m->topo;
    int n = 0;

    for (int i = 0; i < h->f->samples; i++) {
        const struct fit_sample *s = &h->f->sample[i];
        if (s->tier == h->tier && s->explained < 0 &&
            (level == LEVEL_HOST || rack_key(h->f, s) >= 0) && !parts_pass(h->f->m, &x->e, s) &&
            (topo_at(t, s->src, level) == at || topo_at(t, s->dst, level) == at))
            h->v[n++] = s->residual;
    }
    stats_sort(h->v, n);
    return n ? stats_quantile(h->v, n, share) : NAN;
}

/* Is this host as slow with others, and not all of its rack is?  Then it says nothing of two
 * racks. */
static bool own_doing(const struct hunt *h, const struct element *x, int rack, int host)
{
    double halfway = (1 + x->e.factor) / 2;

    return elsewhere(h, x, LEVEL_HOST, host, 0.5) <= halfway &&
           !(elsewhere(h, x, LEVEL_RACK, rack, 0.8) <= halfway);
}

/* How many hosts of one of the two racks show it; all: how many there are. */
static int rack_hosts(const struct hunt *h, const struct element *x, int rack, int *all)
{
    const struct topo *t = &h->f->m->topo;
    int n = 0, mark = ++*h->stamp;

    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        bool sends = topo_at(t, s->src, LEVEL_RACK) == rack;
        int own = sends ? s->src : s->dst;
        if (shows(h, s, x->e.factor) && first_time(h, mark, own, true))
            n += !own_doing(h, x, rack, topo_at(t, own, LEVEL_HOST));
    }
    mark = ++*h->stamp;
    for (int i = *all = 0; i < t->endpoints; i++)
        if (topo_at(t, i, LEVEL_RACK) == rack)
            *all += first_time(h, mark, i, true);
    return n;
}

/* Does an exception of another tier say the same of this endpoint? */
static bool known_factor(const struct hunt *h, const struct element *x)
{
    bool same = false;

    for (int i = 0; i < h->f->m->exceptions && !same; i++) {
        const struct exception *e = &h->f->m->exception[i];
        same = e->part == PART_ENDPOINT && e->a == x->e.a && e->tier != h->tier &&
               parts_alike(e, &x->e, same_factor);
    }
    return same && partners(h, x, false, false);
}

/* Three partners, or two alone, on two hosts (rack pairs: two hosts on either side), or all that
 * there are; fewer do where the same factor is known from another tier. */
static bool enough(const struct hunt *h, const struct element *x)
{
    int all;

    if (x->e.part == PART_RACK_PAIR)
        for (int end = 0; end < 2; end++) {
            int n = rack_hosts(h, x, end ? x->e.b : x->e.a, &all);
            if (n < HOSTS_MIN && n < all)
                return false;
        }
    else if (!enough_partners(h, x, false, PARTNERS_MIN) || !enough_partners(h, x, true, HOSTS_MIN))
        return h->known && known_factor(h, x);
    return true;
}

/* --- judging --- */

/* How much lower than normal a median of n samples must be.  Among M healthy elements one passes z
 * deviations with a chance below M / 2 exp(-z^2 / 2), which is to be FALSE_CHANCE; the deviation
 * of a median is 1.25 sigma / sqrt(n). */
static double margin(const struct hunt *h, int n)
{
    double z = sqrt(2 * log((h->elements + 1) / (2 * false_chance)));

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
        alone += s->alone && shows(h, s, x->e.factor);
    }
    return 1 - (alone ? 1 : 2) * margin(h, n);
}

/* Look at what is left of an element; false: nothing wrong with it. */
static bool suspect(struct hunt *h, struct element *x)
{
    int n;
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
    return enough(h, x);
}

static int by_score(const void *a, const void *b)
{
    const struct element *x = *(struct element *const *)a, *y = *(struct element *const *)b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x > y) - (x < y);
}

static void accept(struct hunt *h, const struct element *x)
{
    struct fit *f = h->f;

    MEM_PUSH(f->m->exception, f->m->exceptions) = x->e;
    for (int i = 0; i < x->samples; i++)
        if (f->sample[x->index[i]].explained < 0)
            f->sample[x->index[i]].explained = f->m->exceptions - 1;
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

static void hunt_open(struct hunt *h, struct fit *f, int tier, const bool *known)
{
    const struct topo *t = &f->m->topo;

    *h = (struct hunt){.f = f, .tier = tier, .sigma = f->baseline[tier].sigma, .known = known};
    h->v = mem_calloc((size_t)f->samples + 1, sizeof(*h->v));
    h->stamp = mem_calloc(1 + (size_t)t->hosts + (size_t)t->endpoints, sizeof(*h->stamp));
    make_elements(h);
}

static void hunt_close(struct hunt *h)
{
    for (int k = 0; k < 3; k++)
        lists_free(&h->by[k]);
    free(h->element);
    free(h->v);
    free(h->stamp);
}

static void hunt_tier(struct fit *f, int tier)
{
    struct hunt h;

    hunt_open(&h, f, tier, NULL);
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
        if (s->tier == h->tier && s->explained < 0 && !h->known[2 * s->src] &&
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

/* Was it measured alone, and is even its best epoch clearly below what epochs of this tier make of
 * a healthy pair? */
static bool bad(const struct fit *f, const struct fit_sample *s)
{
    const struct fit_baseline *l = &f->baseline[s->tier];

    if (s->explained >= 0 || (!s->alone && s->residual > 0))
        return false;
    return s->best < 1 - fmax(fmax(f->o.outlier, l->unrest), 5 * l->sigma);
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
    for (int tier = 0; tier < f->m->topo.tiers; tier++)
        hunt_tier(f, tier);
    blame_known(f);
    parts_merge(f, same_factor);
    blame_pairs(f);
    parts_sort(f);
    parts_explain(f);
}
