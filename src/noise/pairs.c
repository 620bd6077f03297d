/* SPDX-License-Identifier: BSD-3-Clause */
/* Single pairs of a large machine: each was measured once or twice, so a stray point looks like a bad cable.
 * Pairs least like strays are measured again.  So are pairs of racks, which are measured in one or two blocks: each
 * pair of their endpoints is one vote. */
#include <math.h>
#include <stdlib.h>

#include "base/distribution.h"
#include "base/map.h"
#include "base/mem.h"
#include "noise/noise_impl.h"

struct pair {
    int a, b, looks, slow;
    double sum; /* residuals of slow looks */
};

struct pairs {
    struct pair *at;
    int count;
    struct map map;
    long looks, slow;
    double collided; /* share of slow ones among looks that may collide; 0: none may */
};

static uint64_t key_of(const struct look *k)
{
    uint64_t lo = (uint64_t)(k->src < k->dst ? k->src : k->dst),
             hi = (uint64_t)(k->src < k->dst ? k->dst : k->src);

    return hi << 32 | lo;
}

static bool is_slow(const struct hunt *h, int class, float r)
{
    const double sigma = h->v->class[class].sigma;

    return r < -fmax(noise_constants.slow, noise_constants.slow_sigma * sigma);
}

/* True for a look between two fine ends outside all claimed parts. */
static bool is_open(const struct hunt *h, const bool *claimed, int i)
{
    const struct look *k = &h->v->in->look[i];

    return !isnan(h->r[i]) && channel_has(h->c, k) && end_is_fine(h->v, k, 0) &&
           end_is_fine(h->v, k, 1) && !claimed[k->src] && !claimed[k->dst];
}

/* Share of slow ones among looks beside others in tiers whose flows are hashed: they are slow by chance. */
static double collided_share(const struct hunt *h, const bool *claimed)
{
    long looks = 0, slow = 0;
    int n;
    const int *of = view_looks(h->v, h->c->kind, h->c->tiers, &n);

    for (int i = 0; i < n; i++) {
        const int class = class_of(&h->v->in->look[of[i]]);

        if (class % 2 || !h->v->hashed[class / 2] || !is_open(h, claimed, of[i]))
            continue;
        looks++;
        slow += is_slow(h, class, h->r[of[i]]);
    }
    return looks ? (double)slow / (double)looks : 0;
}

static void add_pair(struct pairs *p, const struct look *k)
{
    int *at = map_at(&p->map, key_of(k), NULL, NULL);

    if (*at != MAP_NONE)
        return;
    *at = p->count;
    MEM_PUSH(p->at, p->count) = (struct pair){.a = k->src < k->dst ? k->src : k->dst,
                                              .b = k->src < k->dst ? k->dst : k->src};
}

/* Looks of the pairs with a slow look. */
static void collect(struct pairs *p, const struct hunt *h, const bool *claimed)
{
    const struct look *look = h->v->in->look;
    int n;
    const int *of = view_looks(h->v, h->c->kind, h->c->tiers, &n);

    for (int k = 0; k < n; k++)
        if (is_open(h, claimed, of[k])) {
            bool slow = is_slow(h, class_of(&look[of[k]]), h->r[of[k]]);

            p->looks++;
            p->slow += slow;
            if (slow)
                add_pair(p, &look[of[k]]);
        }
    for (int k = 0; k < n && p->count; k++) {
        int i = of[k], at = MAP_NONE;
        bool slow;

        if (is_open(h, claimed, i))
            at = map_find(&p->map, key_of(&look[i]), NULL, NULL);
        if (at == MAP_NONE)
            continue;
        slow = is_slow(h, class_of(&look[i]), h->r[i]);
        p->at[at].looks++;
        p->at[at].slow += slow;
        p->at[at].sum += slow ? h->r[i] : 0;
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

/* A pair measured again has one look per block: blocks vary, and are stray, as often as looks. */
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

    q = fmax(q, all->collided);
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

/* Partners of an endpoint in racks behind its own, and pairs of its rack with those. */
struct ballot {
    struct pair *partner;
    int partners;
    int *number, *vote; /* index in partner by endpoint; index of the vote by rack; -1: none */
};

static bool is_open_item(const struct hunt *h, const bool *claimed, const struct item *k)
{
    return item_is_fine(k) &&
           h->v->fine[h->c->kind][k->self] >> (2 * item_tier(k) + item_end(k)) & 1 &&
           !claimed[k->self] && !claimed[k->other];
}

static struct pair *partner_of(struct ballot *b, const struct item *k)
{
    if (b->number[k->other] < 0) {
        b->number[k->other] = b->partners;
        MEM_PUSH(b->partner, b->partners) = (struct pair){.a = k->self, .b = k->other};
    }
    return &b->partner[b->number[k->other]];
}

/* The looks of an endpoint, by partner. */
static void list_partners(struct ballot *b, const struct hunt *h, const bool *claimed, int endpoint)
{
    const int rack = rack_of(h, endpoint);

    for (int i = 0; i < b->partners; i++)
        b->number[b->partner[i].b] = -1;
    b->partners = 0;
    for (int i = h->v->nic->start[endpoint]; i < h->v->nic->start[endpoint + 1]; i++) {
        const struct item *k = &h->v->nic->at[i];
        bool slow = is_slow(h, k->class, k->r);
        struct pair *x;

        if (rack_of(h, k->other) <= rack || !is_open_item(h, claimed, k))
            continue;
        x = partner_of(b, k);
        x->looks++;
        x->slow += slow;
        x->sum += slow ? k->r : 0;
    }
}

/* A pair of endpoints is one vote on its racks. */
static void vote(struct pairs *racks, struct ballot *b, const struct hunt *h, const struct pair *x)
{
    const int rack = rack_of(h, x->b);
    const bool slow = x->slow > noise_constants.half * x->looks;
    struct pair *to;

    if (b->vote[rack] < 0) {
        b->vote[rack] = racks->count;
        MEM_PUSH(racks->at, racks->count) = (struct pair){.a = rack_of(h, x->a), .b = rack};
    }
    to = &racks->at[b->vote[rack]];
    to->looks++;
    to->slow += slow;
    to->sum += slow ? x->sum / x->slow : 0;
    racks->looks++;
    racks->slow += slow;
}

static void collect_racks(struct pairs *racks, const struct hunt *h, const bool *claimed)
{
    const int count = h->places->count[RUNG_RACK];
    const struct lists *member = &h->places->member[RUNG_RACK];
    struct ballot b = {.number = mem_ints(h->places->n, -1), .vote = mem_ints(count, -1)};

    for (int r = 0; r < count; r++) {
        const int from = racks->count;

        for (int i = member->start[r]; i < member->start[r + 1]; i++) {
            list_partners(&b, h, claimed, member->at[i]);
            for (int k = 0; k < b.partners; k++)
                vote(racks, &b, h, &b.partner[k]);
        }
        for (int i = from; i < racks->count; i++)
            b.vote[racks->at[i].b] = -1;
    }
    free(b.partner);
    free(b.number);
    free(b.vote);
}

static bool has_racks(const struct hunt *h, int a, int b)
{
    for (int i = 0; i < h->out->count; i++)
        if (h->out->at[i].rung == RUNG_RACK_PAIR && h->out->at[i].a == a && h->out->at[i].b == b &&
            h->out->at[i].channel == h->c)
            return true;
    return false;
}

static void suspect_racks(struct hunt *h, const bool *claimed, double collided)
{
    struct pairs racks = {.collided = collided};

    gather_refresh(h);
    collect_racks(&racks, h, claimed);
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
    free(racks.at);
}

static bool is_of_racks(const struct hunt *h, const struct pair *x)
{
    int a = rack_of(h, x->a), b = rack_of(h, x->b);

    return has_racks(h, a < b ? a : b, a < b ? b : a);
}

/* --- both --- */

/* Pairs picked for being slow prove nothing by their chance: only suspect a pair, never name a pair. */
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
    struct pairs p = {.collided = collided_share(h, claimed)};

    if (!h->quiet && h->c->nic && h->places->count[RUNG_RACK] > 1)
        suspect_racks(h, claimed, p.collided);
    collect(&p, h, claimed);
    tell_likeness(h, &p);
    if (!has_pairs(h))
        suspect(h, &p);
    map_free(&p.map);
    free(p.at);
    free(claimed);
}
