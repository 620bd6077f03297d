/* SPDX-License-Identifier: BSD-3-Clause */
/* Join the claims of a part from several channels into one finding with kind, state and evidence. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

/* --- evidence: looks at a part with partners that are fine --- */

struct sum {
    int n, slow;
};
struct evidence {
    struct sum alone[2], end[2]; /* index: alone; direction */
    int partners, blocks;
};

struct index {
    struct lists by; /* codes by endpoint of a claim, both stages */
    bool *partner, *block;
    int blocks;
};

static bool is_claimed(const struct naming *n, const struct claims *c, int endpoint)
{
    int i = 0;

    while (i < c->count && n->places->of[c->at[i].rung][endpoint] != c->at[i].a)
        i++;
    return i < c->count;
}

static void index_make(struct index *x, const struct naming *m, const struct claims *c)
{
    const struct noise_input *in = m->in;
    const int n = m->places->n;
    int *key = mem_ints(2 * in->looks, -1);
    bool *claimed = mem_calloc((size_t)n + 1, sizeof(*claimed));

    *x = (struct index){0};
    for (int i = 0; i < n; i++)
        claimed[i] = is_claimed(m, c, i);
    for (int i = 0; i < in->looks; i++) {
        if (claimed[in->look[i].src])
            key[2 * i] = in->look[i].src;
        if (claimed[in->look[i].dst])
            key[2 * i + 1] = in->look[i].dst;
        x->blocks = in->look[i].block >= x->blocks ? in->look[i].block + 1 : x->blocks;
    }
    lists_make(&x->by, key, NULL, 2 * in->looks, n);
    x->partner = mem_calloc((size_t)n + 1, sizeof(bool));
    x->block = mem_calloc((size_t)x->blocks + 1, sizeof(bool));
    free(claimed);
    free(key);
}

static void index_free(struct index *x)
{
    lists_free(&x->by);
    free(x->partner);
    free(x->block);
}

struct witness {
    const struct naming *n;
    struct index *x;
    const struct claim *c;
    const struct view *v;
    double depth;
    enum side side;
    bool inside; /* looks within the group, where none leaves it */
};

static bool is_member(const struct witness *w, int endpoint)
{
    return w->n->places->of[w->c->rung][endpoint] == w->c->a;
}

/* True if the look from this end counts for the claim. */
static bool counts(const struct witness *w, const struct look *k, int i, int end)
{
    const struct claim *c = w->c;
    int other = w->n->places->of[c->rung][end_of(k, !end)];

    if (isnan(w->v->r[i]) || !channel_has(c->channel, k) ||
        (w->v->fresh && !k->same_pair && !rung_is_two(c->rung) && k->looks_at != end &&
         k->looks_at >= 0))
        return false;
    if (w->side != SIDE_BOTH && (w->side == SIDE_RX) != end)
        return false;
    if (rung_is_two(c->rung))
        return other == c->b;
    if (c->rung == RUNG_NIC)
        return (c->tier < 0 || c->tier == k->tier) && end_is_fine(w->v, k, !end);
    return w->inside ? other == c->a && !end : other != c->a && end_is_fine(w->v, k, !end);
}

/* Count a look; slow only if r is so low that the part surely shows in the look. */
static void add_look(struct evidence *e, const struct witness *w, const struct look *k, int i,
                     int end)
{
    const bool slow = w->v->r[i] < w->depth;
    const struct index *x = w->x;

    e->alone[k->alone].n++;
    e->alone[k->alone].slow += slow;
    e->end[end].n++;
    e->end[end].slow += slow;
    e->partners += !x->partner[end_of(k, !end)];
    x->partner[end_of(k, !end)] = true;
    e->blocks += !x->block[k->block];
    x->block[k->block] = true;
}

typedef void each_look(struct evidence *e, const struct witness *w, const struct look *k, int i,
                       int end);

static void each(const struct witness *w, struct evidence *e, each_look *f)
{
    const struct naming *n = w->n;

    for (int m = 0; m < n->places->n; m++) {
        if (!is_member(w, m))
            continue;
        for (int j = w->x->by.start[m]; j < w->x->by.start[m + 1]; j++) {
            const int end = w->x->by.at[j] & 1, i = w->x->by.at[j] / 2 - w->v->from;

            if (i >= 0 && counts(w, &w->v->in->look[i], i, end))
                f(e, w, &w->v->in->look[i], i, end);
        }
    }
}

static void forget(struct evidence *e, const struct witness *w, const struct look *k, int i,
                   int end)
{
    (void)e;
    (void)i;
    w->x->partner[end_of(k, !end)] = false;
    w->x->block[k->block] = false;
}

/* Evidence in the looks of a stage, through the claim's lens. */
static void gather(struct evidence *e, struct witness *w, const struct view *v)
{
    w->v = v;
    each(w, e, add_look);
    each(w, NULL, forget);
}

static double share_of(struct sum s)
{
    return s.n ? (double)s.slow / s.n : NAN;
}

/* --- states --- */

struct case_of {
    const struct claim *steady, *spell, *samples, *other; /* best claim by channel; NULL: none */
};

static void add_claim(struct case_of *k, const struct claim *c)
{
    const struct claim **to = c->channel->kind != LOOK_RATE ? &k->other
                              : c->channel->tail            ? &k->samples
                              : c->now_and_then             ? &k->spell
                                                            : &k->steady;

    if (!*to || c->p < (*to)->p)
        *to = c;
}

/* True if messages are slow one by one: the median of a look shows little of it, or seldom. */
static bool is_samples(const struct case_of *k)
{
    const struct claim *rate = k->steady ? k->steady : k->spell;

    return k->samples && (!rate || rate->e > noise_constants.half * k->samples->e ||
                          (!k->steady && rate->share < noise_constants.seldom));
}

static const struct claim *main_claim(const struct case_of *k)
{
    if (is_samples(k))
        return k->samples;
    return k->steady ? k->steady : k->spell ? k->spell : k->samples ? k->samples : k->other;
}

static enum part_state other_state(const struct claim *c)
{
    static const enum part_state state[LOOK_COUNT] = {STATE_SLOW, STATE_BOTH_WAYS, STATE_SMALL,
                                                      STATE_LARGE, STATE_LATE};

    return c->channel->tail ? STATE_SAMPLES : state[c->channel->kind];
}

/* Shares alone and beside others count alike, however many looks there are of each. */
static double time_share(const struct evidence *e)
{
    double alone = share_of(e->alone[1]), beside = share_of(e->alone[0]);

    return isnan(alone) ? beside : isnan(beside) ? alone : (alone + beside) / 2;
}

static bool tells(struct sum quiet, struct sum loud)
{
    return quiet.n >= noise_constants.inside_looks && share_of(quiet) < noise_constants.quiet &&
           share_of(loud) > noise_constants.loud;
}

static bool is_uplinks(const struct claim *c)
{
    return (c->rung == RUNG_LEAF || c->rung == RUNG_RACK) && c->channel->nic && !c->inside;
}

/* States of a rate.  *share: of looks in which it shows. */
static enum part_state rate_state(const struct case_of *k, const struct claim *c,
                                  const struct evidence *last, double *share)
{
    if (tells(last->alone[1], last->alone[0]))
        return STATE_LOADED;
    *share = time_share(last);
    if (isnan(*share))
        *share = k->spell ? k->spell->share : 1;
    if (*share < noise_constants.steady_share &&
        (k->spell ||
         (c->e < -noise_constants.slow && (c->rung == RUNG_NIC || c->rung == RUNG_HOST))))
        return STATE_INTERMITTENT; /* a smaller effect makes no single look slow */
    *share = 1;
    return STATE_SLOW;
}

/* The direction in which looks are slow, however few of them decided. */
static enum side shown_side(const struct claim *c, const struct evidence *e)
{
    double tx = share_of(e->end[0]), rx = share_of(e->end[1]),
           least = c->side == SIDE_BOTH ? noise_constants.quiet : noise_constants.half;

    if (!channel_has_sides(c->channel) || !(tx + rx > 0))
        return c->side;
    return rx < least * tx ? SIDE_TX : tx < least * rx ? SIDE_RX : SIDE_BOTH;
}

/* --- parts --- */

static enum part part_of(const struct claim *c)
{
    static const enum part part[RUNG_COUNT] = {
        [RUNG_RACK] = PART_RACK, [RUNG_LEAF] = PART_LEAF,    [RUNG_RACK_PAIR] = PART_RACK_PAIR,
        [RUNG_HOST] = PART_HOST, [RUNG_NIC] = PART_ENDPOINT, [RUNG_PAIR] = PART_PAIR};

    return c->rung == RUNG_RACK && c->channel && is_uplinks(c) ? PART_RACK_UPLINKS : part[c->rung];
}

static int scope_tier(const struct claim *c)
{
    for (int t = 0; c->channel && t < TIER_MAX; t++)
        if (c->channel->tiers == 1u << t && !c->channel->nic)
            return t;
    if (c->rung == RUNG_NIC)
        return c->tier;
    return c->rung == RUNG_LEAF && is_uplinks(c) ? c->tier : -1;
}

/* Return a part that explains the looks equally well; PART_COUNT: no part. */
static enum part also_of(const struct naming *n, const struct claim *c)
{
    const struct places *p = n->places;
    const enum part wide[RUNG_COUNT] = {
        [RUNG_RACK] = PART_RACK, [RUNG_LEAF] = PART_LEAF, [RUNG_RACK_PAIR] = PART_COUNT};

    if (!c->channel)
        return PART_COUNT;
    if (c->channel->nic && is_uplinks(c) && c->inside_unknown)
        return wide[c->rung];
    for (int r = 0; rung_is_group(c->rung) && r < (int)c->rung; r++)
        for (int i = 0; i < p->n && rung_is_group((enum rung)r); i++)
            if (p->of[c->rung][i] == c->a && p->of[r][i] >= 0 && p->same[r][p->of[r][i]])
                return wide[r];
    return PART_COUNT;
}

static double usual_latency(const struct naming *n, const struct claim *c)
{
    const struct class_fit *best = NULL;

    if (c->channel->kind != LOOK_LATENCY)
        return NAN;
    for (int k = 0; k < CLASSES; k++) {
        const struct class_fit *f = &n->first->class[k];

        if (k / 2 / TIER_MAX == LOOK_LATENCY && c->channel->tiers >> (k / 2 % TIER_MAX) & 1 &&
            f->looks && (!best || f->looks > best->looks))
            best = f;
    }
    return best ? exp(-best->m) : NAN;
}

static void fill_evidence(struct found *f, const struct evidence *e)
{
    f->looks = e->alone[0].n + e->alone[1].n;
    f->alone = e->alone[1].n;
    f->partners = e->partners;
    f->blocks = e->blocks;
}

static void add_sum(struct sum *to, const struct sum *from)
{
    to->n += from->n;
    to->slow += from->slow;
}

static void add_evidence(struct evidence *to, const struct evidence *from)
{
    for (int i = 0; i < 2; i++) {
        add_sum(&to->alone[i], &from->alone[i]);
        add_sum(&to->end[i], &from->end[i]);
    }
}

/* last: by fresh looks, where there are any; both: by all. */
static void gather_stages(struct witness *w, struct evidence *last, struct evidence *both)
{
    const struct naming *n = w->n;
    const bool tail = w->c->channel->tail;

    *last = *both = (struct evidence){0};
    w->inside = false;
    gather(both, w, &n->first[tail]);
    if (!both->alone[0].n && !both->alone[1].n) {
        w->inside = true;
        gather(both, w, &n->first[tail]);
    }
    if (n->second)
        gather(last, w, &n->second[tail]);
    if (!last->alone[0].n && !last->alone[1].n)
        *last = *both;
    else
        add_evidence(both, last);
}

static void name_state(struct found *f, const struct case_of *k, struct witness *w)
{
    struct evidence last, both;

    gather_stages(w, &last, &both);
    f->side = shown_side(w->c, &both);
    if (f->side != SIDE_BOTH) {
        w->side = f->side;
        gather_stages(w, &last, &both);
    }
    f->state = !w->c->channel->tail && (k->steady || k->spell)
                   ? rate_state(k, w->c, &last, &f->share)
                   : other_state(w->c);
    if (f->state == STATE_INTERMITTENT && k->spell)
        f->effect = k->spell->e;
    if (w->n->second && f->state == STATE_SAMPLES &&
        time_share(&last) < noise_constants.half * f->share)
        f->share = 0; /* the last looks do not show it */
    fill_evidence(f, &both);
}

/* The tier of a NIC that is slow beside others: another tier is known to be fine only by looks beside others, for
 * alone all of them are. */
static int loaded_tier(const struct witness *one)
{
    struct claim wide = *one->c;
    struct witness w = *one;
    struct evidence last, own, all;
    struct sum others;

    gather_stages(&w, &last, &own);
    wide.tier = -1;
    w.c = &wide;
    gather_stages(&w, &last, &all);
    others = (struct sum){all.alone[0].n - own.alone[0].n, all.alone[0].slow - own.alone[0].slow};
    return others.n >= noise_constants.inside_looks && share_of(others) < noise_constants.half
               ? one->c->tier
               : -1;
}

static struct found name_case(const struct naming *n, struct index *x, const struct case_of *k)
{
    const struct claim *c = main_claim(k);
    struct witness w = {
        .n = n, .x = x, .c = c, .side = SIDE_BOTH, .depth = fmin(c->e, -noise_constants.slow) / 2};
    struct found f = {.a = c->a,
                      .b = c->b,
                      .kind = c->channel->kind,
                      .p = c->p,
                      .share = c->share,
                      .sd = c->sd,
                      .effect = c->e};

    name_state(&f, k, &w);
    f.part = part_of(c);
    f.tier = scope_tier(c);
    if (f.state == STATE_INTERMITTENT && k->spell && c->rung == RUNG_NIC && c->channel->nic)
        f.tier = k->spell->tier; /* intermittent: too few slow looks per tier to compare tiers */
    if (f.state == STATE_LOADED && c->rung == RUNG_NIC && c->channel->nic && c->tier >= 0)
        f.tier = loaded_tier(&w);
    f.also = also_of(n, c);
    if (f.part == PART_LEAF && is_uplinks(c) && rack_of_leaf(n->places, c->a) >= 0) {
        f.part = PART_RACK_UPLINKS; /* no tier separates its uplinks from pairs within */
        f.a = rack_of_leaf(n->places, c->a);
        f.tier = -1;
        f.also = c->inside_unknown ? PART_RACK : PART_COUNT;
    }
    f.usual_s = usual_latency(n, c);
    return f;
}

/* --- the list --- */

static bool is_same_part(const struct claim *x, const struct claim *y)
{
    return x->rung == y->rung && x->a == y->a && x->b == y->b && x->dead == y->dead &&
           (x->dead || x->channel->tiers == y->channel->tiers);
}

static struct found name_dead(const struct claim *c)
{
    return (struct found){.part = part_of(c),
                          .a = c->a,
                          .b = c->b,
                          .tier = -1,
                          .state = STATE_DEAD,
                          .effect = -INFINITY,
                          .share = 1,
                          .also = PART_COUNT,
                          .sd = NAN,
                          .usual_s = NAN};
}

/* The least step between latencies where they repeat, s; 0: the clock is fine.  It is the clock's, or half of it:
 * medians of an even number of samples lie half way between. */
static double clock_tick(const struct noise_input *in)
{
    double *v = mem_calloc((size_t)in->looks + 1, sizeof(*v)), least = INFINITY;
    int n = 0, distinct = 0;

    for (int i = 0; i < in->looks; i++)
        if (in->look[i].kind == LOOK_LATENCY && isfinite(in->look[i].y))
            v[n++] = exp(-in->look[i].y);
    stats_sort(v, n);
    for (int i = 1; i < n; i++)
        if (v[i] > v[i - 1] * (1 + 1e-5)) {
            distinct++;
            least = fmin(least, v[i] - v[i - 1]);
        }
    free(v);
    return distinct && noise_constants.repeats * (distinct + 1) <= n ? least : 0;
}

static bool is_late(const struct claims *c)
{
    for (int i = 0; i < c->count; i++)
        if (!c->at[i].dead && c->at[i].channel->kind == LOOK_LATENCY)
            return true;
    return false;
}

/* A part that is later by no more than its clock's step may be on time. */
static bool is_one_tick(const struct found *f, double tick)
{
    return f->state == STATE_LATE && tick > 0 &&
           f->usual_s * expm1(-f->effect) < noise_constants.ticks * tick;
}

/* True if fresh looks show no effect, or all looks too small an effect: stage 1 saw other parts' slow looks.  A part
 * with slow blocks but under half slow looks is judged by its looks: one slow look of two makes a block slow. */
static bool is_nothing(const struct found *f, const struct case_of *k, bool second)
{
    if (f->state == STATE_INTERMITTENT)
        return !(f->share >=
                 (k->spell || !second ? noise_constants.share_least / 2 : noise_constants.half));
    return f->state == STATE_SAMPLES ? f->share == 0
                                     : f->state == STATE_SLOW && f->effect > -noise_constants.delta;
}

struct found *naming_make(const struct naming *n, const struct claims *c, int *founds)
{
    struct found *found = NULL;
    bool *said = mem_calloc((size_t)c->count + 1, sizeof(*said));
    const double tick = is_late(c) ? clock_tick(n->in) : 0; /* rarely needed: sorts all latencies */
    struct index x = {0};

    *founds = 0;
    if (c->count)
        index_make(&x, n, c);
    for (int i = 0; i < c->count; i++) {
        struct case_of k = {0};

        for (int j = i; j < c->count && !said[i]; j++)
            if (!said[j] && j > i && is_same_part(&c->at[i], &c->at[j])) {
                said[j] = true;
                if (!c->at[i].dead)
                    add_claim(&k, &c->at[j]);
            }
        if (said[i])
            continue;
        if (!c->at[i].dead)
            add_claim(&k, &c->at[i]);
        struct found f = c->at[i].dead ? name_dead(&c->at[i]) : name_case(n, &x, &k);
        if (!is_nothing(&f, &k, n->second) && !is_one_tick(&f, tick))
            MEM_PUSH(found, *founds) = f;
    }
    index_free(&x);
    free(said);
    return found;
}
