/* SPDX-License-Identifier: BSD-3-Clause */
/* Single pairs of a large machine: each was measured once or twice, so a stray point looks like a bad cable.
 * Those that are least like strays are measured again.  So are pairs of racks, which meet in one or two blocks: each
 * pair of their endpoints is one vote. */
#include <math.h>
#include <stdlib.h>

#include "base/distribution.h"
#include "base/map.h"
#include "base/mem.h"
#include "noise/noise_impl.h"

struct pair {
    int a, b, looks, slow;
    double sum; /* of slow looks */
};

struct pairs {
    struct pair *at;
    int count;
    struct map map;
    long looks, slow;
};

static uint64_t key_of(const struct look *k)
{
    uint64_t lo = (uint64_t)(k->src < k->dst ? k->src : k->dst),
             hi = (uint64_t)(k->src < k->dst ? k->dst : k->src);

    return hi << 32 | lo;
}

static bool is_slow(const struct hunt *h, int i)
{
    const double sigma = h->v->class[class_of(&h->v->in->look[i])].sigma;

    return h->r[i] < -fmax(noise_constants.slow, noise_constants.slow_sigma * sigma);
}

/* Between ends that are fine and of no claimed part. */
static bool is_open(const struct hunt *h, const bool *claimed, int i)
{
    const struct look *k = &h->v->in->look[i];

    return !isnan(h->r[i]) && channel_has(h->c, k) && end_is_fine(h->v, k, 0) &&
           end_is_fine(h->v, k, 1) && !claimed[k->src] && !claimed[k->dst];
}

static void add_pair(struct pairs *p, uint64_t key, int a, int b)
{
    int *at = map_at(&p->map, key, NULL, NULL);

    if (*at != MAP_NONE)
        return;
    *at = p->count;
    MEM_PUSH(p->at, p->count) = (struct pair){.a = a, .b = b};
}

static void add_look(struct pairs *p, const struct look *k)
{
    add_pair(p, key_of(k), k->src < k->dst ? k->src : k->dst, k->src < k->dst ? k->dst : k->src);
}

static void collect(struct pairs *p, const struct hunt *h, const bool *claimed)
{
    const struct look *look = h->v->in->look;
    int n;
    const int *of = view_looks(h->v, h->c->kind, h->c->tiers, &n);

    for (int k = 0; k < n; k++)
        if (is_open(h, claimed, of[k])) {
            p->looks++;
            p->slow += is_slow(h, of[k]);
            if (is_slow(h, of[k]))
                add_look(p, &look[of[k]]);
        }
    for (int k = 0; k < n && p->count; k++) {
        int i = of[k], at = MAP_NONE;

        if (is_open(h, claimed, i))
            at = map_find(&p->map, key_of(&look[i]), NULL, NULL);

        if (at == MAP_NONE)
            continue;
        p->at[at].looks++;
        p->at[at].slow += is_slow(h, i);
        p->at[at].sum += is_slow(h, i) ? h->r[i] : 0;
    }
}

static bool *claimed_endpoints(const struct hunt *h)
{
    bool *claimed = mem_calloc((size_t)h->places->n + 1, sizeof(*claimed));

    for (int c = 0; c < h->out->count; c++) {
        const struct claim *x = &h->out->at[c];

        if (x->channel == h->c && x->rung == RUNG_NIC)
            claimed[x->a] = true;
    }
    return claimed;
}

/* A pair measured again is one look a block: it varies as looks do, and is stray as often. */
static void tell_likeness(const struct hunt *h, const struct pairs *p)
{
    const struct likeness *nic = &h->c->like[RUNG_NIC][0];
    double sigma = 0;

    for (int c = 0; c < CLASSES; c++)
        if (c / 2 / TIER_MAX == (int)h->c->kind && h->c->tiers >> (c / 2 % TIER_MAX) & 1 &&
            h->v->class[c].looks)
            sigma = fmax(sigma, h->v->class[c].sigma);
    for (int l = 0; l < LENS_MAX; l++) {
        struct likeness *like = &h->c->like[RUNG_PAIR][l];

        if (like->s0 > 0)
            continue;
        *like = (struct likeness){.s0 = fmax(nic->s0, sigma * sigma),
                                  .d0 = nic->d0 > 0 ? nic->d0 : noise_constants.prior_few,
                                  .pop = nic->pop,
                                  .limit = -noise_constants.delta,
                                  .least = (double)p->slow + 0.5,
                                  .seen = p->looks,
                                  .blocks = nic->blocks};
    }
}

static struct claim claim_of(const struct hunt *h, const struct pairs *all, const struct pair *p)
{
    double q = ((double)all->slow - p->slow + 0.5) / ((double)all->looks - p->looks + 1);

    return (struct claim){.rung = RUNG_PAIR,
                          .a = p->a,
                          .b = p->b,
                          .tier = -1,
                          .channel = h->c,
                          .share = 1,
                          .sd = NAN,
                          .e = p->sum / p->slow,
                          .p = dist_binomial_upper(p->slow, p->looks, fmin(1, q))};
}

/* --- pairs of racks --- */

static int rack_of(const struct hunt *h, int endpoint)
{
    return h->places->of[RUNG_RACK][endpoint];
}

/* All open pairs of endpoints of two racks. */
static void collect_all(struct pairs *p, const struct hunt *h, const bool *claimed)
{
    const struct noise_input *in = h->v->in;

    for (int i = 0; i < in->looks; i++) {
        const struct look *k = &in->look[i];
        struct pair *x;

        if (!is_open(h, claimed, i) || rack_of(h, k->src) < 0 || rack_of(h, k->dst) < 0 ||
            rack_of(h, k->src) == rack_of(h, k->dst))
            continue;
        add_pair(p, key_of(k), k->src < k->dst ? k->src : k->dst,
                 k->src < k->dst ? k->dst : k->src);
        x = &p->at[map_find(&p->map, key_of(k), NULL, NULL)];
        x->looks++;
        x->slow += is_slow(h, i);
        x->sum += is_slow(h, i) ? h->r[i] : 0;
    }
}

/* Votes of pairs of endpoints, by pair of racks. */
static void collect_racks(struct pairs *racks, const struct pairs *p, const struct hunt *h)
{
    for (int i = 0; i < p->count; i++) {
        const struct pair *x = &p->at[i];
        int a = rack_of(h, x->a), b = rack_of(h, x->b), lo = a < b ? a : b, hi = a < b ? b : a;
        const uint64_t key = (uint64_t)hi << 32 | (uint64_t)lo;
        bool slow = x->slow > noise_constants.half * x->looks;
        struct pair *to;

        add_pair(racks, key, lo, hi);
        to = &racks->at[map_find(&racks->map, key, NULL, NULL)];
        to->looks++;
        to->slow += slow;
        to->sum += slow ? x->sum / x->slow : 0;
        racks->looks++;
        racks->slow += slow;
    }
}

static bool has_racks(const struct hunt *h, int a, int b)
{
    for (int i = 0; i < h->out->count; i++)
        if (h->out->at[i].rung == RUNG_RACK_PAIR && h->out->at[i].a == a && h->out->at[i].b == b &&
            h->out->at[i].channel == h->c)
            return true;
    return false;
}

static void suspect_racks(struct hunt *h, const bool *claimed)
{
    struct pairs p = {0}, racks = {0};

    collect_all(&p, h, claimed);
    collect_racks(&racks, &p, h);
    for (int i = 0; i < racks.count; i++) {
        const struct pair *x = &racks.at[i];
        struct claim c;

        if (x->slow < 2 || x->slow < noise_constants.children * x->looks ||
            has_racks(h, x->a, x->b))
            continue;
        c = claim_of(h, &racks, x);
        c.rung = RUNG_RACK_PAIR;
        if (c.p > h->alpha / racks.count)
            continue;
        c.p = noise_constants.false_part;
        MEM_PUSH(h->out->at, h->out->count) = c;
    }
    map_free(&p.map);
    map_free(&racks.map);
    free(p.at);
    free(racks.at);
}

static bool is_of_racks(const struct hunt *h, const struct pair *x)
{
    int a = rack_of(h, x->a), b = rack_of(h, x->b);

    return has_racks(h, a < b ? a : b, a < b ? b : a);
}

/* --- both --- */

/* The chance of a pair that was looked for is no proof: it can be suspected, never sure. */
static void suspect(struct hunt *h, const struct pairs *all)
{
    struct claims c = {0};

    for (int i = 0; i < all->count; i++) {
        struct claim x = claim_of(h, all, &all->at[i]);

        if (x.p <= h->alpha && !is_of_racks(h, &all->at[i]))
            MEM_PUSH(c.at, c.count) = x;
    }
    claims_sort(&c);
    for (int i = 0; i < c.count && i < noise_constants.pair_suspects; i++) {
        c.at[i].p = fmax(c.at[i].p, noise_constants.false_part);
        MEM_PUSH(h->out->at, h->out->count) = c.at[i];
    }
    free(c.at);
}

static bool has_pairs(const struct hunt *h)
{
    for (int i = 0; i < h->out->count; i++)
        if (h->out->at[i].rung == RUNG_PAIR)
            return true;
    return false;
}

void pairs_suspect(struct hunt *h)
{
    bool *claimed = claimed_endpoints(h);
    struct pairs p = {0};

    if (h->c->nic && h->places->count[RUNG_RACK] > 1)
        suspect_racks(h, claimed);
    collect(&p, h, claimed);
    tell_likeness(h, &p);
    if (!has_pairs(h))
        suspect(h, &p);
    map_free(&p.map);
    free(p.at);
    free(claimed);
}
