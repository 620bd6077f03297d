/* SPDX-License-Identifier: BSD-3-Clause */
/* Two stages.  The first suspects; the second decides by fresh looks alone, at a chance that depends only on the
 * number of its tests.  Parts that the first is sure of alone (Holm over all its tests) are named as well. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

enum { CHANNELS_MAX = TIER_MAX * 2 * LOOK_COUNT };

struct noise_court {
    struct noise_input in, late; /* late: from the first look of stage 2 on */
    uint64_t key;                /* hash of the looks of stage 1 */
    struct look *left;           /* looks without those through uplinks that are full; NULL: all */
    struct found *lost;          /* leaves that lost uplinks */
    int losts;
    struct places places;
    struct view view[2][2]; /* stage, spread */
    struct channel *channel;
    int channels;
    struct claims found, suspect; /* stage 1 */
    double loaded[TIER_MAX];      /* as in struct noise */
    bool *selected;
    bool blank;       /* nothing was found: no residuals are kept */
    struct keyed nic; /* used by all views, one at a time */
    float *r;         /* residuals left in the current channel */
};

/* --- channels --- */

/* Tiers in which each kind of look is there, with rates' spread behind them. */
static void kinds_seen(const struct noise_input *in, int from, unsigned *seen)
{
    for (int i = from; i < in->looks; i++) {
        const struct look *k = &in->look[i];

        seen[k->kind] |= 1u << k->tier;
        if (k->kind == LOOK_RATE && !isnan(k->tail))
            seen[LOOK_COUNT] |= 1u << k->tier;
    }
}

/* True if looks of these tiers are of fewer pairs than it takes to tell which of them is odd. */
static bool has_few_pairs(const struct noise_input *in, unsigned tiers)
{
    struct two {
        int lo, hi;
    } *pair = NULL;
    int pairs = 0;

    for (int i = 0; i < in->looks && pairs < noise_constants.pairs_least; i++) {
        const struct look *k = &in->look[i];
        const struct two now =
            k->src < k->dst ? (struct two){k->src, k->dst} : (struct two){k->dst, k->src};
        int at = 0;

        while (at < pairs && (pair[at].lo != now.lo || pair[at].hi != now.hi))
            at++;
        if (tiers >> k->tier & 1 && at == pairs)
            MEM_PUSH(pair, pairs) = now;
    }
    free(pair);
    return pairs < noise_constants.pairs_least;
}

static void add_channel(struct noise_court *c, unsigned tiers, bool nic, int kind, bool tail)
{
    struct channel *x = &c->channel[c->channels];

    if (!tiers)
        return;
    *x = (struct channel){.kind = (enum look_kind)kind, .tail = tail, .nic = nic, .tiers = tiers};
    c->channels++;
}

static void add_scope(struct noise_court *c, const unsigned *seen, unsigned tiers, bool nic)
{
    unsigned any = 0;

    for (int kind = 0; kind < LOOK_COUNT; kind++)
        any |= seen[kind];
    if (!(any & tiers) || has_few_pairs(&c->in, tiers))
        return;
    add_channel(c, seen[LOOK_RATE] & tiers ? tiers : 0, nic, LOOK_RATE, false);
    add_channel(c, seen[LOOK_COUNT] & tiers ? tiers : 0, nic, LOOK_RATE, true);
    for (int kind = LOOK_BOTH_WAYS; kind < LOOK_COUNT; kind++)
        add_channel(c, seen[kind] & tiers ? tiers : 0, nic, kind, false);
}

static void add_channels(struct noise_court *c)
{
    unsigned nic = 0, seen[LOOK_COUNT + 1] = {0};

    kinds_seen(&c->in, 0, seen);
    c->channel = mem_calloc(CHANNELS_MAX, sizeof(*c->channel));
    for (int t = 0; t < TIER_MAX; t++)
        nic |= c->in.crosses[t] ? 1u << t : 0;
    add_scope(c, seen, nic, true);
    for (int t = 0; t < TIER_MAX; t++)
        if (!c->in.crosses[t])
            add_scope(c, seen, 1u << t, false);
}

static void free_channels(struct noise_court *c)
{
    for (int i = 0; i < c->channels; i++) {
        struct channel *x = &c->channel[i];

        for (int r = 0; r < RUNG_COUNT; r++)
            for (int l = 0; l < LENS_MAX; l++)
                free(x->like[r][l].back);
        for (int l = 0; l < LENS_MAX; l++)
            free(x->control[l].back);
        for (int k = 0; k < 4; k++)
            free(x->likely[k / 2][k % 2].factor);
        for (int t = 0; t < 2 * TIER_MAX; t++)
            free(x->base[t / 2][t % 2]);
    }
    free(c->channel);
}

/* --- a stage --- */

/* The channel of rates of the same tiers. */
static struct channel *rates_of(const struct noise_court *c, const struct channel *x)
{
    for (int i = 0; i < c->channels; i++)
        if (c->channel[i].tiers == x->tiers && c->channel[i].kind == LOOK_RATE &&
            !c->channel[i].tail)
            return &c->channel[i];
    return NULL;
}

static bool has_base(const struct channel *x)
{
    return x->kind == LOOK_BOTH_WAYS || x->kind == LOOK_SMALL || x->kind == LOOK_LARGE;
}

/* Judge classes other than rates by the part of the effect that rates do not show. */
static void take_base(const struct noise_court *c, const struct channel *x, const struct view *v,
                      float *r)
{
    const struct channel *rates = rates_of(c, x);
    int n;
    const int *at = view_looks(v, x->kind, x->tiers, &n);

    for (int i = 0; i < n && rates; i++) {
        const struct look *k = &v->in->look[at[i]];
        float *const *base = rates->base[k->tier];
        float off = 0;

        if (!channel_has(x, k) || !base[0])
            continue;
        off = fminf(base[0][k->src], base[1][k->dst]);
        if (!channel_has_sides(x))
            off = fminf(off, fminf(base[1][k->src], base[0][k->dst]));
        r[at[i]] -= off;
    }
}

/* Rack pairs with claimed rates are no evidence for the ends at other sizes. */
static void take_racks(const struct noise_court *c, const struct channel *x, const struct view *v,
                       const struct claims *claims, float *r)
{
    const struct channel *rates = rates_of(c, x);
    const int *rack = c->places.of[RUNG_RACK];

    for (int i = 0; i < claims->count; i++) {
        const struct claim *y = &claims->at[i];

        for (int k = 0; y->rung == RUNG_RACK_PAIR && y->channel == rates && k < v->in->looks; k++) {
            int a = rack[v->in->look[k].src], b = rack[v->in->look[k].dst];

            if (channel_has(x, &v->in->look[k]) &&
                ((a == y->a && b == y->b) || (a == y->b && b == y->a)))
                r[k] = NAN;
        }
    }
}

/* What a stage asks of a channel. */
struct scanning {
    double alpha;
    const struct claims *asked;
    enum beside beside;
    bool hasty; /* see struct hunt */
};

/* Returns false if the channel was left. */
static bool scan_channel(struct noise_court *c, struct channel *x, const struct view *v,
                         const struct scanning *how, struct claims *out)
{
    struct hunt h = {.v = v,
                     .places = &c->places,
                     .c = x,
                     .asked = how->asked,
                     .beside = how->beside,
                     .alpha = how->alpha,
                     .hasty = how->hasty,
                     .out = out,
                     .stale = true};

    h.r = memcpy(c->r, v->r, (size_t)v->in->looks * sizeof(*c->r));
    h.done = mem_calloc((size_t)c->places.n + 1, sizeof(*h.done));
    if (has_base(x)) {
        take_base(c, x, v, h.r);
        take_racks(c, x, v, out, h.r);
    }
    const bool done = hunt_parts(&h);
    if (done && x->kind == LOOK_RATE && how->beside == BESIDE_ANY)
        spells_find(&h);
    if (done && !how->asked && x->kind == LOOK_RATE && !x->tail)
        pairs_suspect(&h);
    gather_free(&h);
    free(h.done);
    return done;
}

static bool is_asked(const struct claims *asked, const struct channel *x)
{
    if (!asked)
        return true;
    for (int i = 0; i < asked->count; i++)
        if (asked->at[i].channel == x)
            return true;
    return false;
}

static void scan(struct noise_court *c, int stage, double alpha, const struct claims *asked,
                 enum beside beside, struct claims *out)
{
    struct scanning how = {alpha, asked, beside, .hasty = !asked};
    bool left[CHANNELS_MAX] = {false};

    for (int i = 0; i < c->channels; i++) {
        struct channel *x = &c->channel[i];

        if (is_asked(asked, x) && !(beside == BESIDE_PARALLEL && (x->kind != LOOK_RATE || x->tail)))
            left[i] = !scan_channel(c, x, &c->view[stage][x->tail], &how, out);
    }
    how.hasty = false;
    for (int i = 0; i < c->channels && out->count; i++) /* tests make each claim less sure */
        if (left[i])
            scan_channel(c, &c->channel[i], &c->view[stage][c->channel[i].tail], &how, out);
}

/* --- both --- */

/* Holm (1979) over all parts that were tested.  Where flows collide by chance, only rates have looks enough to tell
 * collisions from a part. */
static void sure_alone(const struct claims *found, const struct view *v, struct claims *out)
{
    struct claims sorted = {NULL, found->count, found->tests};

    if (!found->count)
        return;
    sorted.at = mem_dup(found->at, (size_t)found->count, sizeof(*found->at));
    claims_sort(&sorted);
    for (int i = 0; i < sorted.count; i++) {
        if (sorted.at[i].p > noise_constants.false_part / fmax(1, (double)(sorted.tests - i)))
            break;
        if (sorted.at[i].channel->kind == LOOK_RATE || !channel_collides(v, sorted.at[i].channel))
            MEM_PUSH(out->at, out->count) = sorted.at[i];
    }
    free(sorted.at);
}

static void select_endpoints(struct noise_court *c)
{
    c->selected = mem_calloc((size_t)c->places.n + 1, sizeof(bool));
    for (int s = 0; s < c->suspect.count; s++) {
        const struct claim *x = &c->suspect.at[s];

        for (int i = 0; i < c->places.n; i++)
            c->selected[i] |=
                c->places.of[x->rung][i] == x->a || (x->b >= 0 && c->places.of[x->rung][i] == x->b);
    }
}

/* Fresh looks are mostly of pairs that leave a group: stage 1 knows whether it is slow within, too. */
static void tell_inside(struct claim *to, const struct claim *from)
{
    if (to->rung == from->rung && to->a == from->a && to->b == from->b && to->inside_unknown &&
        !from->inside_unknown) {
        to->inside = from->inside;
        to->inside_unknown = false;
    }
}

static void add_new(struct claims *to, const struct claims *from)
{
    const int n = to->count;

    for (int i = 0; i < from->count; i++) {
        const struct claim *x = &from->at[i];
        bool known = false;

        for (int k = 0; k < n; k++) {
            tell_inside(&to->at[k], x);
            known |= to->at[k].rung == x->rung && to->at[k].a == x->a && to->at[k].b == x->b &&
                     to->at[k].channel == x->channel && to->at[k].now_and_then == x->now_and_then;
        }
        if (!known)
            MEM_PUSH(to->at, to->count) = *x;
    }
}

/* Medians of blocks of looks alone and beside others say little of a part that is slow only beside others: the looks beside
 * others are surer then. */
static void take_surer(struct claims *to, const struct claims *loaded)
{
    for (int i = 0; i < loaded->count; i++)
        for (int k = 0; k < to->count; k++) {
            const struct claim *x = &loaded->at[i], *y = &to->at[k];

            if (x->rung == y->rung && x->a == y->a && x->b == y->b && x->channel == y->channel &&
                x->now_and_then == y->now_and_then && x->p < y->p)
                to->at[k] = *x;
        }
}

/* Number of tests: a suspect's rate is tested twice, as steady and as now and then. */
static int questions(const struct claims *c)
{
    int n = 0;

    for (int i = 0; i < c->count; i++)
        n += c->at[i].channel->kind == LOOK_RATE ? 2 : 1;
    return n > 0 ? n : 1;
}

/* Index of the first look of stage 2; in->looks: none. */
static int first_fresh(const struct noise_input *in)
{
    int n = 0;

    while (n < in->looks && !in->look[n].fresh)
        n++;
    return n;
}

static void second_stage(struct noise_court *c, struct claims *named)
{
    const double alpha = noise_constants.false_part / questions(&c->suspect);
    struct claims loaded = {0};
    const int from = first_fresh(&c->in);

    c->late = c->in;
    c->late.look += from;
    c->late.looks -= from;
    c->r = mem_realloc(c->r, (size_t)c->late.looks + 1, sizeof(*c->r));
    select_endpoints(c);
    for (int tail = 0; tail < 2; tail++) {
        struct view *v = &c->view[1][tail];

        *v = (struct view){.in = &c->late,
                           .from = from,
                           .places = &c->places,
                           .base = &c->view[0][tail],
                           .selected = c->selected,
                           .fresh = true,
                           .tail = tail,
                           .nic = &c->nic};
        view_make(v);
    }
    scan(c, 1, alpha, &c->suspect, BESIDE_ANY, named);
    scan(c, 1, alpha, &c->suspect, BESIDE_PARALLEL,
         &loaded); /* would drown among the looks alone */
    take_surer(named, &loaded);
    add_new(named, &loaded);
    free(loaded.at);
}

static void free_room(struct noise_court *c)
{
    keyed_free(&c->nic);
    free(c->r);
    c->r = NULL;
}

static void close_court(struct noise_court *c)
{
    for (int tail = 0; tail < 2; tail++) {
        if (c->selected)
            view_free(&c->view[1][tail]);
        view_free(&c->view[0][tail]);
    }
    free_channels(c);
    free_room(c);
    free(c->found.at);
    free(c->suspect.at);
    free(c->selected);
    free(c->left);
    free(c->lost);
    places_free(&c->places);
    *c = (struct noise_court){.channels = 0};
}

/* --- stage 1 --- */

/* True if looks from this index on have a kind or tier that earlier looks lack. */
static bool has_others(const struct noise_input *in, int from)
{
    const struct noise_input before = {.look = in->look, .looks = from};
    unsigned seen[LOOK_COUNT + 1] = {0}, more[LOOK_COUNT + 1] = {0}, others = 0;

    kinds_seen(&before, 0, seen);
    kinds_seen(in, from, more);
    for (int k = 0; k <= LOOK_COUNT; k++)
        others |= more[k] & ~seen[k];
    return others;
}

/* Number of looks of stage 1; -1: fresh looks are among them. */
static int first_looks(const struct noise_input *in)
{
    const int n = first_fresh(in);

    for (int i = n; i < in->looks; i++)
        if (!in->look[i].fresh)
            return -1;
    return n;
}

static uint64_t bits_of(float x)
{
    unsigned bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static uint64_t key_of(const struct noise_input *in, int n)
{
    uint64_t key = (uint64_t)n;

    for (int i = 0; i < n; i++) {
        const struct look *k = &in->look[i];
        const int flags = k->alone | k->same_pair << 1 | k->unselected << 2;

        key = map_mix(key, (uint64_t)k->turn << 32 | (unsigned)k->block);
        key = map_mix(key, (uint64_t)k->src << 32 | (unsigned)k->dst);
        key = map_mix(key, bits_of(k->y) << 32 | bits_of(k->tail));
        key = map_mix(key, (uint64_t)(unsigned char)k->looks_at << 24 | (uint64_t)k->kind << 16 |
                               (uint64_t)k->tier << 8 | (uint64_t)flags);
    }
    return key;
}

static void make_views(struct noise_court *c)
{
    for (int tail = 0; tail < 2; tail++) {
        c->view[0][tail] =
            (struct view){.in = &c->in, .places = &c->places, .tail = tail, .nic = &c->nic};
        view_make(&c->view[0][tail]);
    }
}

static void free_views(struct noise_court *c)
{
    for (int tail = 0; tail < 2; tail++)
        view_free(&c->view[0][tail]);
}

/* Judge all other parts without looks through full uplinks. */
static void look_at_uplinks(struct noise_court *c)
{
    bool *full = mem_calloc((size_t)c->in.looks + 1, sizeof(*full));

    free(c->lost);
    c->lost = uplinks_find(&c->view[0][0], full, &c->losts);
    if (c->losts) {
        c->left = mem_dup(c->in.look, (size_t)c->in.looks, sizeof(*c->left));
        for (int i = 0; i < c->in.looks; i++)
            c->left[i].y = full[i] && isfinite(c->left[i].y) ? NAN : c->left[i].y;
        c->in.look = c->left;
        free_views(c);
        make_views(c);
    }
    free(full);
}

static double median_rate(const struct view *v, int tier, bool alone, double *buffer, int *count)
{
    int n;
    const int *at = view_looks(v, LOOK_RATE, 1u << tier, &n);

    *count = 0;
    for (int i = 0; i < n; i++) {
        const struct look *k = &v->in->look[at[i]];

        if (k->kind == LOOK_RATE && k->tier == tier && !k->fresh && k->alone == alone &&
            isfinite(k->y) && (!alone || k->unselected))
            buffer[(*count)++] = k->y;
    }
    return *count ? stats_middle(buffer, *count) : NAN;
}

static void find_loaded(struct noise_court *c)
{
    const struct view *v = &c->view[0][0];
    double *buffer = mem_calloc((size_t)v->in->looks + 1, sizeof(*buffer));

    for (int t = 0; t < TIER_MAX; t++) {
        int alone, many;
        double one = median_rate(v, t, true, buffer, &alone),
               all = median_rate(v, t, false, buffer, &many);

        c->loaded[t] = alone >= noise_constants.loaded_looks && many ? exp(all - one) : NAN;
    }
    free(buffer);
}

/* Ask a host that is slow within over its NICs as well: a host of few looks over NICs, or whose flows are hashed, is not
 * seen there by stage 1 if it is slow now and then. */
static void ask_over_nics(struct noise_court *c)
{
    const int n = c->suspect.count;

    for (int i = 0; i < n && c->suspect.count < noise_constants.suspects; i++) {
        struct claim x = c->suspect.at[i];
        bool known = false;

        for (int k = 0; k < c->channels; k++)
            if (c->channel[k].nic && c->channel[k].kind == LOOK_RATE && !c->channel[k].tail &&
                x.rung == RUNG_HOST && !x.channel->nic && x.channel->kind == LOOK_RATE)
                x.channel = &c->channel[k];
        for (int k = 0; k < c->suspect.count; k++)
            known |= c->suspect.at[k].rung == x.rung && c->suspect.at[k].a == x.a &&
                     c->suspect.at[k].channel == x.channel;
        if (!known)
            MEM_PUSH(c->suspect.at, c->suspect.count) = x;
    }
}

/* Keep only as many suspects as stage 2 has looks for, and few for sizes of which all looks may collide; found keeps all
 * of stage 1. */
static void first_stage(struct noise_court *c, const struct noise_input *in)
{
    int collided = 0;

    c->in = *in;
    c->r = mem_calloc((size_t)in->looks + 1, sizeof(*c->r));
    places_make(&c->places, in->topo);
    add_channels(c);
    make_views(c);
    look_at_uplinks(c);
    find_loaded(c);
    scan(c, 0, noise_constants.suspect, NULL, BESIDE_ANY, &c->found);
    claims_below(&c->found, &c->places);
    claims_sort(&c->found);
    for (int i = 0; i < c->found.count && c->suspect.count < noise_constants.suspects; i++) {
        const struct claim *x = &c->found.at[i];

        collided += x->channel->kind != LOOK_RATE && channel_collides(&c->view[0][0], x->channel);
        if (x->channel->kind == LOOK_RATE || !channel_collides(&c->view[0][0], x->channel) ||
            collided <= noise_constants.pair_suspects)
            MEM_PUSH(c->suspect.at, c->suspect.count) = *x;
    }
    ask_over_nics(c);
}

static bool are_places_of(const struct places *p, const struct topo *t)
{
    struct places now;
    bool same;

    places_make(&now, t);
    same = now.n == p->n;
    for (int r = 0; r < RUNG_COUNT && same; r++)
        same = !memcmp(now.of[r], p->of[r], (size_t)p->n * sizeof(int));
    places_free(&now);
    return same;
}

/* Room for looks behind those of stage 1, whose blocks have numbers of their own. */
static void widen(struct view *v, int before)
{
    int last = 0, *block;

    for (int i = 0; i < v->in->looks; i++)
        last = v->in->look[i].block > last ? v->in->look[i].block : last;
    block = mem_ints(last, -1);
    for (int i = 0; i < before; i++)
        block[v->in->look[i].block] = v->block[v->in->look[i].block];
    free(v->block);
    v->block = block;
    v->r = mem_realloc(v->r, (size_t)v->in->looks + 1, sizeof(*v->r));
    for (int i = before; i < v->in->looks; i++)
        v->r[i] = NAN;
}

/* True if stage 1 would give the same result; the court then uses the looks of `in`. */
static bool is_of(struct noise_court *c, const struct noise_input *in)
{
    const int n = first_looks(in), before = c->in.looks;
    bool same = c->channel && !c->losts && n == before && !(c->blank && n < in->looks) &&
                key_of(in, n) == c->key && !has_others(in, n) &&
                !memcmp(in->crosses, c->in.crosses, sizeof(in->crosses)) &&
                are_places_of(&c->places, in->topo);

    if (!same)
        return false;
    c->in = *in;
    for (int tail = 0; tail < 2 && n < in->looks; tail++)
        widen(&c->view[0][tail], before);
    if (n < in->looks)
        look_at_uplinks(c); /* flows of stage 2 fill the uplinks as well */
    return !c->losts;
}

/* --- what is usual --- */

static void tell_usual(struct noise *n, const struct view *v)
{
    for (int c = 0; c < CLASSES; c++) {
        const struct class_fit *f = &v->class[c];

        if (f->looks && !(isnan(f->m)))
            MEM_PUSH(n->usual, n->usuals) =
                (struct usual){.kind = (enum look_kind)(c / 2 / TIER_MAX),
                               .tier = c / 2 % TIER_MAX,
                               .alone = c % 2,
                               .y = f->m,
                               .sigma = f->sigma,
                               .looks = f->looks};
    }
}

static void tell_noise(struct noise *n, const struct noise_court *c)
{
    const struct view *v = &c->view[0][0];
    int most = 0;

    n->sd_look = n->sd_block = n->sd_part = NAN;
    n->sd_turn = v->sd_turn;
    for (int k = 0; k < CLASSES; k++)
        if (k / 2 / TIER_MAX == LOOK_RATE && v->class[k].looks > most) {
            most = v->class[k].looks;
            n->sd_look = v->class[k].sigma;
        }
    for (int i = 0; i < c->channels; i++)
        if (c->channel[i].kind == LOOK_RATE && !c->channel[i].tail && c->channel[i].nic) {
            n->sd_block = sqrt(c->channel[i].like[RUNG_NIC][0].s0);
            n->sd_part = sqrt(c->channel[i].like[RUNG_NIC][0].pop);
        }
}

static void tell_first(struct noise *n, const struct noise_court *c)
{
    const struct naming naming = {&c->in, &c->places, c->view[0], NULL};

    *n = (struct noise){0};
    n->suspect = naming_make(&naming, &c->suspect, &n->suspects);
    tell_usual(n, &c->view[0][0]);
    memcpy(n->loaded, c->loaded, sizeof(n->loaded));
    for (int t = 0; t < TIER_MAX; t++)
        n->hashed[t] = c->view[0][0].hashed[LOOK_RATE * TIER_MAX + t];
    tell_noise(n, c);
}

static void decide(struct noise *n, struct noise_court *c)
{
    struct naming naming = {&c->in, &c->places, c->view[0], NULL};
    struct claims alone = {0}, named = {0};

    if (first_looks(&c->in) != c->in.looks && c->suspect.count)
        second_stage(c, &named);
    sure_alone(&c->found, &c->view[0][0], &alone);
    add_new(&named, &alone);
    dead_find(&named, &c->in, &c->places);
    claims_below(&named, &c->places);
    naming.second = c->selected ? c->view[1] : NULL;
    n->found = naming_make(&naming, &named, &n->founds);
    for (int i = 0; i < c->losts; i++)
        MEM_PUSH(n->found, n->founds) = c->lost[i];
    free(alone.at);
    free(named.at);
}

void noise_judge(struct noise *n, const struct noise_input *in, struct noise_court *kept)
{
    struct noise_court *own = mem_calloc(1, sizeof(*own)),
                       *c = kept && is_of(kept, in) ? kept : own;

    if (kept && c == own)
        close_court(kept);
    if (c == own)
        first_stage(c, in);
    tell_first(n, c);
    decide(n, c);
    close_court(c);
    free(own);
}

/* Without a claim and a look without an answer, only what is usual is asked for later: the residuals of millions of
 * looks would be held while the fit needs the most memory. */
static void forget(struct noise_court *c)
{
    for (int i = 0; i < c->in.looks; i++)
        if (c->found.count || isinf(c->in.look[i].y))
            return;
    for (int tail = 0; tail < 2; tail++) {
        struct view *v = &c->view[0][tail];

        free(v->r);
        v->r = NULL;
        lists_free(&v->of);
    }
    c->blank = true;
}

struct noise_court *noise_suspects(struct noise *n, const struct noise_input *in)
{
    struct noise_court *c = mem_calloc(1, sizeof(*c));

    first_stage(c, in);
    tell_first(n, c);
    free_room(c);
    c->key = key_of(in, in->looks);
    forget(c);
    if (c->losts)
        close_court(c); /* other looks may fill other uplinks */
    c->in.look = NULL;  /* owned by the caller */
    c->in.topo = NULL;
    return c;
}

void noise_court_free(struct noise_court *c)
{
    if (c)
        close_court(c);
    free(c);
}

void noise_free(struct noise *n)
{
    free(n->found);
    free(n->suspect);
    free(n->usual);
    *n = (struct noise){0};
}
