/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a channel that stand out, the widest first: a group is claimed if it is low and nearly all of its
 * endpoints are, to nearly all of their partners' groups.  The group's effect is taken off and narrower parts
 * are judged by the residuals that remain. */
#include "noise/noise_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { TWO_MAX = 2048, GROUPS_ALL = 256 };
/* Most racks whose pairs are judged; most groups of a level that are all judged: for speed. */

bool hunt_asks(const struct hunt *h, enum rung rung, int a, int b)
{
    if (!h->asked)
        return true;
    for (int i = 0; i < h->asked->count; i++) {
        const struct claim *q = &h->asked->at[i];

        if (q->rung == rung && q->a == a && q->b == b && q->channel == h->c)
            return true;
    }
    return false;
}

/* --- shares of what a part is made of --- */

struct tally {
    double *total, *run, *weight; /* weights by key; NAN in run: median found */
    int *key, keys, count;
    float *median;
};

static void tally_make(struct tally *t, int n)
{
    *t = (struct tally){.total = mem_calloc((size_t)n + 1, sizeof(double)),
                        .run = mem_calloc((size_t)n + 1, sizeof(double)),
                        .median = mem_calloc((size_t)n + 1, sizeof(float)),
                        .key = mem_ints(n, 0),
                        .keys = n};
}

static void tally_free(struct tally *t)
{
    free(t->total);
    free(t->run);
    free(t->median);
    free(t->key);
}

/* Key of a look of the part: the part's endpoint, or the group of the partner. */
typedef int tally_key(const struct hunt *h, enum rung rung, const struct seen *s);

static int key_self(const struct hunt *h, enum rung rung, const struct seen *s)
{
    (void)h;
    (void)rung;
    return s->self;
}

static int key_other(const struct hunt *h, enum rung rung, const struct seen *s)
{
    return h->places->of[rung][s->other];
}

/* True for a look the lens takes, from both ends within a group. */
static bool tally_takes(const struct lens *l, const struct seen *s)
{
    return l->way == LENS_IN ? s->inside : lens_takes(l, s);
}

/* True if a claimed wider part took more than the limit off an endpoint: the remainder is no
 * evidence. */
static bool is_taken(const struct hunt *h, tally_key *key, const struct seen *s, double limit)
{
    return key == key_self && h->done[s->self] < limit;
}

/* Share of keys whose looks (hunt_quantile()) lie below the limit; *known: number of keys. */
static double tally_share(struct tally *t, const struct hunt *h, enum rung rung,
                          const struct seen *s, int n, const struct lens *l, tally_key *key,
                          double limit, int *known)
{
    const double quantile = hunt_quantile(h) * (1 - 1e-6);
    int low = 0, taken = 0;

    t->count = 0;
    for (int i = 0; i < n; i++) {
        int k = tally_takes(l, &s[i]) ? key(h, rung, &s[i]) : -1;

        if (k >= 0 && t->total[k] == 0)
            t->key[t->count++] = k;
        if (k >= 0)
            t->total[k] += s[i].w;
    }
    for (int i = 0; i < n; i++) {
        int k = tally_takes(l, &s[i]) ? key(h, rung, &s[i]) : -1;

        if (k < 0 || isnan(t->run[k]) || (t->run[k] += s[i].w) < t->total[k] * quantile)
            continue;
        low += s[i].r < limit;
        taken += s[i].r >= limit && is_taken(h, key, &s[i], limit);
        t->run[k] = NAN;
    }
    for (int i = 0; i < t->count; i++)
        t->total[t->key[i]] = t->run[t->key[i]] = 0;
    *known = t->count;
    return t->count > taken ? (double)low / (t->count - taken) : 0;
}

/* --- one rung --- */

struct floor {
    struct hunt *h;
    enum rung rung;
    int parts;
    struct lens lens[LENS_MAX];
    int lenses, at[SIDE_COUNT][TIER_MAX + 1][LENS_ALL + 1]; /* lens index + 1; 0: no lens */
    struct steady s[LENS_MAX];
    struct seen *seen;
    struct tally tally;
};

static void add_lens(struct floor *f, enum side side, int tier, int way)
{
    f->lens[f->lenses++] = (struct lens){side, tier, way, false};
    f->at[side][tier + 1][way] = f->lenses;
}

static void add_sides(struct floor *f, int tier, int way)
{
    for (int side = SIDE_BOTH; side < (channel_has_sides(f->h->c) ? SIDE_COUNT : SIDE_TX); side++)
        add_lens(f, (enum side)side, tier, way);
}

/* Add a lens of pairs measured alone if flows are hashed: collisions slow half of a group's looks under load. */
static void add_alone(struct floor *f, unsigned seen)
{
    const struct channel *c = f->h->c;
    bool hashed = false;

    for (int t = 0; t < TIER_MAX; t++)
        hashed |= seen >> t & 1 && f->h->v->hashed[c->kind * TIER_MAX + t];
    if (hashed && c->nic && c->kind == LOOK_RATE && !c->tail)
        f->lens[f->lenses++] = (struct lens){SIDE_BOTH, -1, LENS_OUT, true};
}

static void choose_lenses(struct floor *f)
{
    unsigned seen = f->h->v->nic->tiers;

    add_sides(f, -1, rung_is_two(f->rung) ? LENS_ALL : LENS_OUT);
    if (rung_is_group(f->rung)) {
        add_lens(f, SIDE_BOTH, -1, LENS_IN);
        add_alone(f, seen);
    }
    for (int t = 0; f->rung == RUNG_NIC && seen & (seen - 1) && t < TIER_MAX; t++)
        if (seen >> t & 1)
            add_sides(f, t, LENS_OUT);
}

static int lens_at(const struct floor *f, enum side side, int tier, int way)
{
    return f->at[side][tier + 1][way] - 1;
}

static double effect(const struct floor *f, int l, int part)
{
    return f->s[l].got[part] >= 2 ? f->s[l].est[part] - f->s[l].like.centre : NAN;
}

static bool is_sure(const struct floor *f, int l, int part)
{
    return l >= 0 && f->s[l].p[part] <= f->h->alpha;
}

/* The lens among the sides of a tier that shows the part; -1: none. */
static int choose_side(const struct floor *f, int part, int tier, int way)
{
    int both = lens_at(f, SIDE_BOTH, tier, way), tx = lens_at(f, SIDE_TX, tier, way),
        rx = lens_at(f, SIDE_RX, tier, way);
    double e_tx = tx < 0 ? NAN : effect(f, tx, part), e_rx = rx < 0 ? NAN : effect(f, rx, part);

    if (is_sure(f, tx, part) && e_rx > noise_constants.half * e_tx)
        return tx;
    if (is_sure(f, rx, part) && e_tx > noise_constants.half * e_rx)
        return rx;
    return is_sure(f, both, part) ? both : -1;
}

/* A NIC that only one of several tiers shows, on the side of the lens. */
static int choose_tier(const struct floor *f, int part, int all)
{
    int best = -1, fine = 0;

    if (all >= 0)
        for (int l = 0; l < f->lenses; l++)
            fine += f->lens[l].tier >= 0 && f->lens[l].side == f->lens[all].side &&
                    effect(f, l, part) >
                        noise_constants.half * effect(f, all, part) + 2 * f->s[l].sd[part];
    if (all >= 0 && !fine)
        return all;
    for (int t = 0; t < TIER_MAX; t++) {
        int l = lens_at(f, SIDE_BOTH, t, LENS_OUT) < 0 ? -1 : choose_side(f, part, t, LENS_OUT);

        if (l >= 0 && (best < 0 || f->s[l].p[part] < f->s[best].p[part]))
            best = l;
    }
    return best >= 0 ? best : all;
}

/* True for the only group with looks: no other group to compare it with. */
static bool is_only(const struct floor *f, int lens, int part)
{
    for (int p = 0; p < f->parts; p++)
        if (p != part && f->s[lens].got[p] >= 2)
            return false;
    return rung_is_group(f->rung);
}

/* The lens of looks alone, if it is sure; -1. */
static int alone_lens(const struct floor *f, int part)
{
    return f->lens[f->lenses - 1].alone && is_sure(f, f->lenses - 1, part) ? f->lenses - 1 : -1;
}

/* True if looks that leave the group are faster than looks within: not a fault of the group. */
static bool leaves_freely(const struct floor *f, int part, int in)
{
    return effect(f, lens_at(f, SIDE_BOTH, -1, LENS_OUT), part) >
           noise_constants.half * effect(f, in, part);
}

static int choose_lens(const struct floor *f, int part)
{
    const int way = rung_is_two(f->rung) ? LENS_ALL : LENS_OUT;
    int l = choose_side(f, part, -1, way), in;

    if (f->rung == RUNG_NIC)
        return choose_tier(f, part, l);
    if (l < 0)
        l = alone_lens(f, part);
    in = lens_at(f, SIDE_BOTH, -1, LENS_IN);
    if (l >= 0 || !is_sure(f, in, part) || (!f->h->asked && is_only(f, in, part)))
        return l;
    return leaves_freely(f, part, in) ? -1 : in;
}

/* True if an end of a pair is as slow with others. */
static bool is_slow_with_others(const struct floor *f, int end, int other, double limit)
{
    int n = 0, low = 0;

    for (int i = f->h->v->nic->start[end]; i < f->h->v->nic->start[end + 1]; i++) {
        const struct item *k = &f->h->v->nic->at[i];

        n += k->other != other;
        low += k->other != other && k->r < limit;
    }
    return low > noise_constants.quiet * n;
}

/* Endpoints of a group that must be seen: half of those that have looks in stage 1; in stage 2, where eight of a
 * group are measured, more than one host's, because a host may be suspected beside its rack.  Within a
 * group two endpoints are one pair. */
static int enough_children(const struct floor *f, int part, const struct lens *l)
{
    const int least = l->way == LENS_IN ? 3 : 2;
    const struct lists *member = &f->h->places->member[f->rung];
    int half;

    if (!rung_is_group(f->rung))
        return least;
    half = (int)(noise_constants.half * (member->start[part + 1] - member->start[part]));
    if (f->h->asked && half > noise_constants.fresh_children)
        half = (int)noise_constants.fresh_children;
    return half > least ? half : least;
}

/* True if nearly all of the part shows the effect: only then it is claimed. */
static bool holds_below(struct floor *f, int part, int n, const struct lens *l, double limit)
{
    int known, others;
    const double share = noise_constants.children;

    if (f->rung == RUNG_PAIR)
        return f->h->asked || (!is_slow_with_others(f, f->seen->self, f->seen->other, limit) &&
                               !is_slow_with_others(f, f->seen->other, f->seen->self, limit));
    if (f->rung == RUNG_NIC)
        return tally_share(&f->tally, f->h, RUNG_NIC, f->seen, n, l, key_other, limit, &others) >=
                   share ||
               others > noise_constants.few_partners;
    if (tally_share(&f->tally, f->h, f->rung, f->seen, n, l, key_self, limit, &known) < share ||
        known < enough_children(f, part, l))
        return false;
    if (f->rung == RUNG_RACK_PAIR &&
        tally_share(&f->tally, f->h, RUNG_NIC, f->seen, n, l, key_other, limit, &others) < share)
        return false; /* an endpoint of the other rack is slow */
    return rung_is_two(f->rung) || l->way == LENS_IN || f->h->asked ||
           (tally_share(&f->tally, f->h, f->rung, f->seen, n, l, key_other, limit, &others) >=
                share &&
            others > 1);
}

/* Check if looks within the group are as slow; if not, the uplinks are slow. */
static void look_inside(struct claim *c, const struct floor *f, int n)
{
    int inside = 0, low = 0;

    for (int i = 0; i < n; i++)
        if (f->seen[i].inside && f->seen[i].first) {
            inside++;
            low += f->seen[i].r < noise_constants.half * c->e;
        }
    c->inside_unknown = inside < noise_constants.inside_looks;
    c->inside = !c->inside_unknown && low > noise_constants.half * inside;
}

/* The tier of most looks through the lens. */
static int tier_of(const struct floor *f, int n, const struct lens *l)
{
    int count[TIER_MAX] = {0}, best = 0;

    for (int i = 0; i < n; i++)
        if (lens_takes(l, &f->seen[i]))
            count[f->seen[i].tier]++;
    for (int t = 0; t < TIER_MAX; t++)
        best = count[t] > count[best] ? t : best;
    return best;
}

static double done_before(const struct floor *f, int part)
{
    return f->rung == RUNG_NIC ? f->h->done[part] : 0;
}

/* Take the effect off all looks that pass the part as claimed. */
static void take_off(struct floor *f, const struct claim *c, const struct lens *l, int n)
{
    struct hunt *h = f->h;

    for (int i = 0; i < n; i++) {
        struct seen s = f->seen[i];

        s.fine = s.alone = true;
        if (s.inside ? c->inside && s.first : l->way == LENS_IN || lens_takes(l, &s))
            h->r[s.look] -= (float)c->e;
        if (rung_is_group(f->rung) && h->done[s.self] > c->e)
            h->done[s.self] = (float)c->e;
    }
    h->stale = h->taken = true;
}

/* The tier of a claim on a NIC: the tier of the lens only if another tier is known to be fine, else -1. */
static int tier_shown(const struct floor *f, int part, int lens)
{
    for (int l = 0; l < f->lenses; l++)
        if (f->lens[l].tier >= 0 && f->lens[l].tier != f->lens[lens].tier &&
            f->lens[l].side == f->lens[lens].side &&
            f->s[l].got[part] >= noise_constants.narrow_blocks &&
            effect(f, l, part) >
                noise_constants.half * effect(f, lens, part) + 2 * f->s[l].sd[part])
            return f->lens[lens].tier;
    return -1;
}

/* Add the claim.  False if the lens does not show the effect in nearly all of the part. */
static bool claim_by(struct floor *f, int part, int lens)
{
    struct claim c;
    int n;

    c = (struct claim){.rung = f->rung,
                       .a = rung_is_two(f->rung) ? f->h->two.two[part][0] : part,
                       .b = rung_is_two(f->rung) ? f->h->two.two[part][1] : -1,
                       .side = f->lens[lens].side,
                       .tier = f->rung == RUNG_NIC ? tier_shown(f, part, lens) : -1,
                       .channel = f->h->c,
                       .share = 1,
                       .e = effect(f, lens, part),
                       .sd = f->s[lens].sd[part],
                       .p = f->s[lens].p[part]};
    if (!hunt_asks(f->h, c.rung, c.a, c.b) ||
        (f->rung == RUNG_PAIR && f->s[lens].got[part] < noise_constants.pair_blocks))
        return true;
    n = gather_part(f->h, f->rung, part, f->seen);
    if (!holds_below(f, part, n, &f->lens[lens],
                     f->s[lens].like.centre + noise_constants.half * c.e))
        return false;
    if (done_before(f, part) < 0 && c.e > -noise_constants.below)
        return true;
    look_inside(&c, f, n);
    if (rung_is_group(f->rung) || rung_is_two(f->rung)) {
        c.tier = tier_of(f, n, &f->lens[lens]);
        take_off(f, &c, &f->lens[lens], n);
    }
    c.e += done_before(f, part);
    MEM_PUSH(f->h->out->at, f->h->out->count) = c;
    return true;
}

static void claim_part(struct floor *f, int part)
{
    int lens = choose_lens(f, part), alone = alone_lens(f, part);

    if (lens >= 0 && !claim_by(f, part, lens) && alone >= 0 && alone != lens)
        claim_by(f, part, alone);
}

/* True for a group that is judged as a narrower one. */
static bool is_same(const struct floor *f, int part)
{
    return rung_is_group(f->rung) && f->h->places->same[f->rung][part];
}

static void count_tests(const struct floor *f)
{
    for (int l = 0; l < f->lenses; l++)
        for (int p = 0; p < f->parts; p++)
            f->h->out->tests += f->s[l].got[p] >= 2 && !is_same(f, p);
}

struct rank {
    double e;
    int part;
};

static int by_effect(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;

    return x->e != y->e ? (x->e > y->e) - (x->e < y->e) : (x->part > y->part) - (x->part < y->part);
}

/* Parts that any lens is sure of, the slowest first. */
static int candidates(const struct floor *f, struct rank **rank)
{
    int n = 0;

    *rank = NULL;
    for (int p = 0; p < f->parts; p++) {
        int l = is_same(f, p) ? -1 : choose_lens(f, p);

        if (l >= 0)
            MEM_PUSH(*rank, n) = (struct rank){effect(f, l, p), p};
    }
    if (n)
        qsort(*rank, (size_t)n, sizeof(**rank), by_effect);
    return n;
}

static int most_keys(const struct places *p)
{
    int most = p->n;

    for (int r = 0; r < RUNG_COUNT; r++)
        most = p->count[r] > most ? p->count[r] : most;
    return most;
}

static struct floor *floor_open(struct hunt *h, enum rung rung, const bool *only)
{
    struct floor *f = mem_calloc(1, sizeof(*f));

    f->h = h;
    f->rung = rung;
    if (rung == RUNG_PAIR)
        gather_renew(h, RUNG_NIC, true);
    else
        gather_refresh(h);
    if (rung_is_two(rung))
        gather_renew(h, rung, rung == RUNG_PAIR);
    f->parts = gather_count(h, rung);
    choose_lenses(f);
    f->seen = mem_calloc((size_t)gather_most(h, rung) + 1, sizeof(*f->seen));
    tally_make(&f->tally, most_keys(h->places));
    steady_make(f->s, h, rung, only, f->lens, f->lenses);
    return f;
}

static void floor_close(struct floor *f)
{
    steady_free(f->s, f->lenses);
    if (rung_is_two(f->rung))
        keyed_free(&f->h->two);
    tally_free(&f->tally);
    free(f->seen);
    free(f);
}

static void claim_all(struct floor *f)
{
    struct rank *rank;
    int n = 0;

    count_tests(f);
    if (f->h->quiet)
        return;
    n = candidates(f, &rank);
    for (int i = 0; i < n; i++)
        claim_part(f, rank[i].part);
    free(rank);
}

/* --- groups worth a look --- */

/* True if some lens shows the endpoint low, or no lens has looks of it. */
static bool may_be_low(const struct floor *nic, int endpoint)
{
    bool known = false;

    for (int l = 0; l < nic->lenses; l++) {
        if (effect(nic, l, endpoint) < -noise_constants.delta * noise_constants.half)
            return true;
        known |= nic->s[l].got[endpoint] >= 2;
    }
    return !known;
}

/* Select groups with half of their endpoints possibly low, and a sample that shows how groups vary.  NULL: all. */
static bool *worth_a_look(const struct floor *nic, enum rung rung)
{
    const struct hunt *h = nic->h;
    const struct lists *member = &h->places->member[rung];
    const int groups = h->places->count[rung];
    bool *only;

    if (groups <= GROUPS_ALL)
        return NULL;
    only = mem_calloc((size_t)groups + 1, sizeof(*only));
    for (int g = 0; g < groups; g++) {
        int low = 0, n = member->start[g + 1] - member->start[g];

        for (int i = member->start[g]; i < member->start[g + 1]; i++)
            low += may_be_low(nic, member->at[i]);
        only[g] = (low && low >= noise_constants.half * n) || g % (groups / GROUPS_ALL) == 0;
    }
    return only;
}

/* The list of looks by pair of racks is a large part of all memory, and no pair is judged. */
static void count_racks(struct hunt *h)
{
    struct floor f = {.h = h, .rung = RUNG_RACK_PAIR};

    choose_lenses(&f);
    h->out->tests += steady_racks(h, f.lens, f.lenses);
}

static struct floor *hunt_groups(struct floor *nic, enum rung rung)
{
    struct hunt *h = nic->h;

    if (h->quiet && rung == RUNG_RACK_PAIR) {
        count_racks(h);
        return nic;
    }
    bool *only = rung_is_group(rung) ? worth_a_look(nic, rung) : NULL;
    struct floor *f = floor_open(h, rung, only);

    claim_all(f);
    floor_close(f);
    free(only);
    if (!h->stale)
        return nic;
    floor_close(nic);
    return floor_open(h, RUNG_NIC, NULL);
}

static float *base_of(const struct floor *f, int tier, int end)
{
    enum side side = end ? SIDE_RX : SIDE_TX;
    int l = lens_at(f, side, tier, LENS_OUT), n = f->h->places->n;
    float *base = mem_calloc((size_t)n + 1, sizeof(*base));

    if (l < 0 || f->h->v->hashed[LOOK_RATE * TIER_MAX + tier])
        l = lens_at(f, side, -1, LENS_OUT); /* few looks that collide tell little */
    for (int i = 0; i < n; i++)
        base[i] = (float)fmin(0, isnan(effect(f, l, i)) ? 0 : effect(f, l, i));
    return base;
}

static void keep_base(const struct floor *f)
{
    unsigned seen = f->h->v->nic->tiers;

    for (int t = 0; t < TIER_MAX; t++)
        for (int end = 0; end < 2 && seen >> t & 1; end++)
            if (!f->h->c->base[t][end])
                f->h->c->base[t][end] = base_of(f, t, end);
}

/* True if each group of the rung is judged as a narrower one. */
static bool are_same(const struct places *p, enum rung rung)
{
    for (int g = 0; g < p->count[rung]; g++)
        if (!p->same[rung][g])
            return false;
    return rung_is_group(rung);
}

static bool is_hunted(const struct hunt *h, enum rung rung)
{
    if (are_same(h->places, rung))
        return false;
    if (rung == RUNG_RACK_PAIR)
        return h->c->nic && !h->c->tail &&
               (h->c->kind == LOOK_RATE || h->c->kind == LOOK_LATENCY) &&
               h->places->count[RUNG_RACK] > 1 && h->places->count[RUNG_RACK] <= TWO_MAX;
    if (rung == RUNG_LEAF)
        return h->c->nic;
    return rung != RUNG_PAIR || h->asked || h->places->n <= noise_constants.pairs_to;
}

/* Stage 1: true if all looks are so alike that no median of some is below the middle of such medians, nor below 0, by
 * what makes a group worth a look.  Such a channel has no claim and no suspect, and is never asked in stage 2. */
static bool is_quiet(const struct hunt *h)
{
    const double most = noise_constants.delta * noise_constants.half * (1 - 1e-6);
    float lo, hi;

    return !h->asked && h->beside == BESIDE_ANY &&
           (!channel_range(h->v, h->c, h->r, &lo, &hi) || (hi - lo < most && lo > -most));
}

bool hunt_parts(struct hunt *h)
{
    /* A leaf may be a whole rack, so leaves come before rack pairs. */
    static const enum rung order[RUNG_NIC] = {RUNG_RACK, RUNG_LEAF, RUNG_RACK_PAIR, RUNG_HOST};
    const bool base = !h->asked && h->c->kind == LOOK_RATE && !h->c->tail, quiet = is_quiet(h);
    struct floor *nic;

    if (quiet && !base && h->hasty)
        return false;
    h->quiet = quiet && !base;
    nic = floor_open(h, RUNG_NIC, NULL);
    if (base)
        keep_base(nic);
    if (quiet && h->hasty) {
        floor_close(nic);
        return false;
    }
    h->quiet = quiet;
    for (int i = 0; i < RUNG_NIC; i++)
        if (is_hunted(h, order[i]))
            nic = hunt_groups(nic, order[i]);
    claim_all(nic);
    floor_close(nic);
    if (is_hunted(h, RUNG_PAIR)) {
        struct floor *f = floor_open(h, RUNG_PAIR, NULL);

        claim_all(f);
        floor_close(f);
    }
    return true;
}
