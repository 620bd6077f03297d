/* SPDX-License-Identifier: BSD-3-Clause */
/* Two stages.  The first suspects; the second decides by fresh looks alone, at a chance that only the number of
 * its questions enters.  What the first is sure of by itself (Holm over all that it asked) is named as well. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

enum { CHANNELS_MAX = TIER_MAX * 2 * LOOK_COUNT };

struct court {
    struct noise_input in;
    struct look *left;  /* looks without those through uplinks that are full; NULL: all */
    struct found *lost; /* leaves that lost uplinks */
    int losts;
    struct places places;
    struct view view[2][2]; /* stage, spread */
    struct channel *channel;
    int channels;
    struct claims suspect;
    bool *selected;
    bool second;
};

/* --- channels --- */

/* Tiers in which each kind of look is there, with rates' spread behind them. */
static void kinds_seen(const struct noise_input *in, unsigned *seen)
{
    for (int i = 0; i < in->looks; i++) {
        const struct look *k = &in->look[i];

        seen[k->kind] |= 1u << k->tier;
        if (k->kind == LOOK_RATE && !isnan(k->tail))
            seen[LOOK_COUNT] |= 1u << k->tier;
    }
}

static void add_channel(struct court *c, unsigned tiers, bool nic, int kind, bool tail)
{
    struct channel *x = &c->channel[c->channels];

    if (!tiers)
        return;
    *x = (struct channel){.kind = (enum look_kind)kind, .tail = tail, .nic = nic, .tiers = tiers};
    c->channels++;
}

static void add_scope(struct court *c, const unsigned *seen, unsigned tiers, bool nic)
{
    add_channel(c, seen[LOOK_RATE] & tiers ? tiers : 0, nic, LOOK_RATE, false);
    add_channel(c, seen[LOOK_COUNT] & tiers ? tiers : 0, nic, LOOK_RATE, true);
    for (int kind = LOOK_BOTH_WAYS; kind < LOOK_COUNT; kind++)
        add_channel(c, seen[kind] & tiers ? tiers : 0, nic, kind, false);
}

static void add_channels(struct court *c)
{
    unsigned nic = 0, seen[LOOK_COUNT + 1] = {0};

    kinds_seen(&c->in, seen);
    c->channel = mem_calloc(CHANNELS_MAX, sizeof(*c->channel));
    for (int t = 0; t < TIER_MAX; t++)
        nic |= c->in.crosses[t] ? 1u << t : 0;
    add_scope(c, seen, nic, true);
    for (int t = 0; t < TIER_MAX; t++)
        if (!c->in.crosses[t])
            add_scope(c, seen, 1u << t, false);
}

static void free_channels(struct court *c)
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
static struct channel *rates_of(const struct court *c, const struct channel *x)
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

/* Classes of their own are judged by what rates do not show. */
static void take_base(const struct court *c, const struct channel *x, const struct view *v,
                      float *r)
{
    const struct channel *rates = rates_of(c, x);
    int n;
    const int *at = view_looks(v, x->kind, x->tiers, &n);

    for (int i = 0; i < n && rates; i++) {
        const struct look *k = &c->in.look[at[i]];
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

/* Pairs of racks whose rates are claimed say nothing of their ends at other sizes. */
static void take_racks(const struct court *c, const struct channel *x, const struct claims *claims,
                       float *r)
{
    const struct channel *rates = rates_of(c, x);
    const int *rack = c->places.of[RUNG_RACK];

    for (int i = 0; i < claims->count; i++) {
        const struct claim *y = &claims->at[i];

        for (int k = 0; y->rung == RUNG_RACK_PAIR && y->channel == rates && k < c->in.looks; k++) {
            int a = rack[c->in.look[k].src], b = rack[c->in.look[k].dst];

            if (channel_has(x, &c->in.look[k]) &&
                ((a == y->a && b == y->b) || (a == y->b && b == y->a)))
                r[k] = NAN;
        }
    }
}

static void scan_channel(struct court *c, struct channel *x, const struct view *v, double alpha,
                         const struct claims *asked, enum beside beside, struct claims *out)
{
    struct hunt h = {.v = v,
                     .places = &c->places,
                     .c = x,
                     .asked = asked,
                     .beside = beside,
                     .alpha = alpha,
                     .out = out,
                     .stale = true};
    float *r = mem_dup(v->r, (size_t)c->in.looks + 1, sizeof(*r));

    h.r = r;
    h.done = mem_calloc((size_t)c->places.n + 1, sizeof(*h.done));
    if (has_base(x)) {
        take_base(c, x, v, r);
        take_racks(c, x, out, r);
    }
    hunt_parts(&h);
    if (x->kind == LOOK_RATE && beside == BESIDE_ANY)
        spells_find(&h);
    if (!asked && x->kind == LOOK_RATE && !x->tail)
        pairs_suspect(&h);
    gather_free(&h);
    free(h.done);
    free(r);
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

static void scan(struct court *c, int stage, double alpha, const struct claims *asked,
                 enum beside beside, struct claims *out)
{
    for (int i = 0; i < c->channels; i++) {
        struct channel *x = &c->channel[i];

        if (is_asked(asked, x) && !(beside == BESIDE_PARALLEL && (x->kind != LOOK_RATE || x->tail)))
            scan_channel(c, x, &c->view[stage][x->tail], alpha, asked, beside, out);
    }
}

/* --- both --- */

/* Holm (1979) over all parts that were asked about. */
static void sure_alone(const struct claims *found, struct claims *out)
{
    struct claims sorted = {NULL, found->count, found->tests};

    if (!found->count)
        return;
    sorted.at = mem_dup(found->at, (size_t)found->count, sizeof(*found->at));
    claims_sort(&sorted);
    for (int i = 0; i < sorted.count; i++) {
        if (sorted.at[i].p > noise_constants.false_part / fmax(1, (double)(sorted.tests - i)))
            break;
        MEM_PUSH(out->at, out->count) = sorted.at[i];
    }
    free(sorted.at);
}

static void select_endpoints(struct court *c)
{
    c->selected = mem_calloc((size_t)c->places.n + 1, sizeof(bool));
    for (int s = 0; s < c->suspect.count; s++) {
        const struct claim *x = &c->suspect.at[s];

        for (int i = 0; i < c->places.n; i++)
            c->selected[i] |=
                c->places.of[x->rung][i] == x->a || (x->b >= 0 && c->places.of[x->rung][i] == x->b);
    }
}

static bool has_second(const struct noise_input *in)
{
    for (int i = 0; i < in->looks; i++)
        if (in->look[i].fresh)
            return true;
    return false;
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

/* Chances of a suspect: steady and now and then are both asked. */
static int questions(const struct claims *c)
{
    int n = 0;

    for (int i = 0; i < c->count; i++)
        n += c->at[i].channel->kind == LOOK_RATE ? 2 : 1;
    return n > 0 ? n : 1;
}

static void second_stage(struct court *c, struct claims *named)
{
    const double alpha = noise_constants.false_part / questions(&c->suspect);
    struct claims loaded = {0};

    select_endpoints(c);
    for (int tail = 0; tail < 2; tail++)
        view_make(&c->view[1][tail], &c->in, &c->places, &c->view[0][tail], true, tail,
                  c->selected);
    scan(c, 1, alpha, &c->suspect, BESIDE_ANY, named);
    scan(c, 1, alpha, &c->suspect, BESIDE_PARALLEL,
         &loaded); /* would drown among the looks alone */
    add_new(named, &loaded);
    free(loaded.at);
}

static void make_views(struct court *c)
{
    for (int tail = 0; tail < 2; tail++)
        view_make(&c->view[0][tail], &c->in, &c->places, NULL, false, tail, NULL);
}

/* Nothing else is judged by looks through uplinks that are full. */
static void look_at_uplinks(struct court *c)
{
    bool *full = mem_calloc((size_t)c->in.looks + 1, sizeof(*full));

    c->lost = uplinks_find(&c->view[0][0], full, &c->losts);
    if (c->losts) {
        c->left = mem_dup(c->in.look, (size_t)c->in.looks, sizeof(*c->left));
        for (int i = 0; i < c->in.looks; i++)
            c->left[i].y = full[i] && isfinite(c->left[i].y) ? NAN : c->left[i].y;
        c->in.look = c->left;
        for (int tail = 0; tail < 2; tail++)
            view_free(&c->view[0][tail]);
        make_views(c);
    }
    free(full);
}

static void open_court(struct court *c, const struct noise_input *in)
{
    *c = (struct court){.in = *in, .second = has_second(in)};
    places_make(&c->places, in->topo);
    add_channels(c);
    make_views(c);
    look_at_uplinks(c);
}

static void close_court(struct court *c)
{
    for (int tail = 0; tail < 2; tail++) {
        if (c->selected)
            view_free(&c->view[1][tail]);
        view_free(&c->view[0][tail]);
    }
    free_channels(c);
    free(c->suspect.at);
    free(c->selected);
    free(c->left);
    free(c->lost);
    places_free(&c->places);
}

/* Suspects are cut to those that stage 2 has looks for; all that stage 1 found stays in found. */
static void first_stage(struct court *c, struct claims *found)
{
    scan(c, 0, noise_constants.suspect, NULL, BESIDE_ANY, found);
    claims_below(found, &c->places);
    claims_sort(found);
    for (int i = 0; i < found->count && i < noise_constants.suspects; i++)
        MEM_PUSH(c->suspect.at, c->suspect.count) = found->at[i];
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

static void tell_loaded(struct noise *n, const struct view *v)
{
    double *buffer = mem_calloc((size_t)v->in->looks + 1, sizeof(*buffer));

    for (int t = 0; t < TIER_MAX; t++) {
        int alone, many;
        double one = median_rate(v, t, true, buffer, &alone),
               all = median_rate(v, t, false, buffer, &many);

        n->loaded[t] = alone >= noise_constants.loaded_looks && many ? exp(all - one) : NAN;
    }
    free(buffer);
}

static void tell_noise(struct noise *n, const struct court *c)
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

static void judge(struct noise *n, const struct noise_input *in, bool decide)
{
    struct court c;
    struct claims found = {0}, named = {0};
    struct naming naming;

    *n = (struct noise){0};
    open_court(&c, in);
    first_stage(&c, &found);
    naming = (struct naming){&c.in, &c.places, c.view[0], NULL};
    n->suspect = naming_make(&naming, &c.suspect, &n->suspects);
    if (decide) {
        struct claims alone = {0};

        if (c.second && c.suspect.count)
            second_stage(&c, &named);
        sure_alone(&found, &alone);
        add_new(&named, &alone);
        dead_find(&named, &c.in, &c.places);
        claims_below(&named, &c.places);
        naming.second = c.selected ? c.view[1] : NULL;
        n->found = naming_make(&naming, &named, &n->founds);
        for (int i = 0; i < c.losts; i++)
            MEM_PUSH(n->found, n->founds) = c.lost[i];
        free(alone.at);
    }
    tell_usual(n, &c.view[0][0]);
    tell_loaded(n, &c.view[0][0]);
    tell_noise(n, &c);
    free(found.at);
    free(named.at);
    close_court(&c);
}

void noise_judge(struct noise *n, const struct noise_input *in)
{
    judge(n, in, true);
}

void noise_suspects(struct noise *n, const struct noise_input *in)
{
    judge(n, in, false);
}

void noise_free(struct noise *n)
{
    free(n->found);
    free(n->suspect);
    free(n->usual);
    *n = (struct noise){0};
}
