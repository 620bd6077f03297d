/* SPDX-License-Identifier: BSD-3-Clause */
/* Residuals of a stage.  A turn is first judged by its fast quarter, which slow parts do not touch, then by
 * the median of its looks between fine partners. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

enum { SAMPLE_MAX = 1 << 14 }; /* values per class: location within sigma / 100 */

void view_list(struct view *v)
{
    const struct noise_input *in = v->in;
    int *key = mem_ints(in->looks, -1);

    for (int i = 0; i < in->looks; i++)
        if (!isnan(v->r[i]))
            key[i] = scope_of(in, in->look[i].kind, in->look[i].tier);
    lists_make(&v->of, key, NULL, in->looks, LOOK_COUNT * SCOPES);
    free(key);
}

/* True if the look was not chosen because of earlier looks. */
static bool is_free(const struct view *v, const struct look *k)
{
    const int own = k->looks_at;

    if (k->same_pair)
        return false;
    return !k->fresh || !v->selected ||
           (own < 0 ? !v->selected[k->src] && !v->selected[k->dst] : !v->selected[end_of(k, own)]);
}

static bool is_usual(const struct view *v, const struct look *k)
{
    return is_free(v, k) &&
           (!v->base || (end_is_fine(v->base, k, 0) && end_is_fine(v->base, k, 1)));
}

/* --- crowds: looks of a class in a turn (stage 1) or a block (stage 2) --- */

struct crowds {
    struct lists l;
    int turns;
    double *buffer;
};

static void crowds_make(struct crowds *c, const struct view *v)
{
    const struct noise_input *in = v->in;
    int *key = mem_ints(in->looks, -1), least = 0, most = -1;

    for (int i = 0; i < in->looks; i++) {
        key[i] = isnan(v->r[i]) ? -1 : v->fresh ? v->block[in->look[i].block] : in->look[i].turn;
        most = key[i] > most ? key[i] : most;
        least = key[i] >= 0 && (least > key[i] || most < 0) ? key[i] : least;
    }
    c->turns = most + 1;
    lists_make(&c->l, key, NULL, in->looks, c->turns);
    c->buffer = mem_calloc((size_t)in->looks + 1, sizeof(double));
    free(key);
}

static void crowds_free(struct crowds *c)
{
    lists_free(&c->l);
    free(c->buffer);
}

/* Residuals of a class among the items of a crowd, with `fine` only looks between fine ends. */
static int crowd_values(const struct view *v, double *to, const int *at, int n, int class,
                        bool fine)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        const struct look *k = &v->in->look[at[i]];

        if (class_of(k) == class &&
            (!fine || (is_free(v, k) && end_is_fine(v, k, 0) && end_is_fine(v, k, 1))))
            to[count++] = v->r[at[i]];
    }
    return count;
}

static void crowd_shift(const struct view *v, const int *at, int n, int class, double by)
{
    for (int i = 0; i < n; i++)
        if (class_of(&v->in->look[at[i]]) == class)
            v->r[at[i]] -= (float)by;
}

static bool is_first_of_class(const struct view *v, const int *at, int i, unsigned char *done)
{
    int class = class_of(&v->in->look[at[i]]);

    return !done[class] && ++done[class];
}

/* Shift that was already taken out of the turn. */
static double taken_before(const struct view *v, const int *at, int n, int class)
{
    for (int i = 0; i < n; i++) {
        const struct look *k = &v->in->look[at[i]];

        if (class_of(k) == class && !isnan(v->r[at[i]]))
            return (v->tail ? -k->tail : k->y) - v->class[class].m - v->r[at[i]];
    }
    return 0;
}

/* Shift of a crowd; NAN: too few looks. */
static double crowd_off(const struct view *v, struct crowds *c, const int *at, int n, int class,
                        const double *top)
{
    int count = crowd_values(v, c->buffer, at, n, class, !top);

    double off;

    if (count < noise_constants.turn_looks)
        return NAN;
    off =
        top ? usual_quantile(c->buffer, count, noise_constants.fast) - top[class]
            : usual_quantile(c->buffer, count, v->hashed[class / 2] ? noise_constants.clear : 0.5);
    return v->calm[class] ? fmax(off, -noise_constants.turn_most - taken_before(v, at, n, class))
                          : off;
}

/* Take out turns: by the fast quarter against top[class], or (NULL) by the median between fine ends.
 * Adds what turns of rates did to off[]. */
static void take_turns(struct view *v, struct crowds *c, const double *top, float *off)
{
    for (int t = 0; t < c->turns; t++) {
        const int *at = c->l.at + c->l.start[t], n = c->l.start[t + 1] - c->l.start[t];
        unsigned char done[CLASSES] = {0};

        for (int i = 0; n >= noise_constants.turn_looks && i < n; i++) {
            int class = class_of(&v->in->look[at[i]]);
            double by =
                is_first_of_class(v, at, i, done) ? crowd_off(v, c, at, n, class, top) : NAN;

            if (isnan(by))
                continue;
            crowd_shift(v, at, n, class, by);
            if (v->in->look[at[0]].kind == LOOK_RATE && i == 0)
                off[t] += (float)by;
        }
    }
}

/* A machine that slows down as a whole slows all pairs that are measured again.  If no other look of the class is
 * in the turn, the fast quartile of the repeated pairs gives the drift, which is never upwards. */
static double drift_of(const struct view *v, struct crowds *c, const int *at, int n, int class)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        if (v->in->look[at[i]].same_pair && class_of(&v->in->look[at[i]]) == class &&
            end_is_fine(v, &v->in->look[at[i]], 0) && end_is_fine(v, &v->in->look[at[i]], 1))
            c->buffer[count++] = v->r[at[i]];
    double off = count > 1 ? fmin(0, usual_quantile(c->buffer, count, noise_constants.fast)) : 0;

    return fmax(off, -noise_constants.turn_most); /* a pair alone there is slow itself */
}

static void take_drift(struct view *v, struct crowds *c)
{
    for (int t = 0; t < c->turns; t++) {
        const int *at = c->l.at + c->l.start[t], n = c->l.start[t + 1] - c->l.start[t];
        unsigned char done[CLASSES] = {0};

        for (int i = 0; i < n; i++) {
            int class = class_of(&v->in->look[at[i]]);

            if (is_first_of_class(v, at, i, done) &&
                crowd_values(v, c->buffer, at, n, class, true) < noise_constants.turn_looks)
                crowd_shift(v, at, n, class, drift_of(v, c, at, n, class));
        }
    }
}

/* --- classes --- */

/* Values of a class, at most SAMPLE_MAX of them evenly spaced. */
static int class_values(const struct view *v, double *to, int class, bool usual, int of)
{
    int n;
    const int *at =
        view_looks(v, (enum look_kind)(class / 2 / TIER_MAX), 1u << class / 2 % TIER_MAX, &n);
    int step = of / SAMPLE_MAX + 1, count = 0, seen = 0;

    step += step > 1 && step % 2 == 0; /* no multiple of what machines are made of */
    for (int i = 0; i < n; i++) {
        const struct look *k = &v->in->look[at[i]];

        if (isnan(v->r[at[i]]) || k->same_pair || class_of(k) != class ||
            (usual && !is_usual(v, k)))
            continue;
        if (seen++ % step == 0)
            to[count++] = v->r[at[i]];
    }
    return count;
}

static void count_classes(const struct view *v, int *count)
{
    for (int i = 0; i < v->in->looks; i++)
        if (!isnan(v->r[i]) && !v->in->look[i].same_pair)
            count[class_of(&v->in->look[i])]++;
}

static void class_tops(const struct view *v, const int *count, double *buffer, double *top)
{
    for (int c = 0; c < CLASSES; c++)
        if (count[c])
            top[c] = usual_quantile(buffer, class_values(v, buffer, c, false, count[c]),
                                    noise_constants.fast);
}

/* Find classes in which pairs are as fast under load as alone: no turn slows all its pairs by much, unless
 * all pairs pass one part. */
static void find_calm(struct view *v, const int *count, const double *top)
{
    for (int c = 0; c < CLASSES; c += 2) {
        v->calm[c] = v->base ? v->base->calm[c]
                             : count[c] && count[c + 1] >= noise_constants.loaded_looks &&
                                   top[c] > top[c + 1] + log(noise_constants.crowded);
        v->calm[c + 1] = true; /* measured alone: no load */
    }
}

/* Fit a class by its unselected looks; if too few, keep the fit of stage 1, else use all looks. */
static void class_fit(struct view *v, int c, const int *count, double *buffer)
{
    struct class_fit *f = &v->class[c];
    int n = class_values(v, buffer, c, true, count[c]);

    if (v->base)
        *f = v->base->class[c];
    if (n < noise_constants.class_looks && !f->looks)
        n = class_values(v, buffer, c, false, count[c]);
    if (n >= noise_constants.class_looks || (!f->looks && n)) {
        usual_find(buffer, n, &f->m, &f->sigma);
        f->looks = n;
    }
}

/* A class without a fit, as of a pair measured again alone, takes the fit of its tier under load, or vice versa. */
static void borrow_class(struct view *v, int c)
{
    struct class_fit *f = &v->class[c];

    if (!f->looks)
        *f = v->class[c ^ 1];
    if (!f->looks)
        f->m = NAN;
    f->weight =
        1 / (f->sigma * f->sigma + noise_constants.weight_floor * noise_constants.weight_floor);
}

/* A slow leaf of four is an end of half of all pairs.  If the few looks alone are usually slow, but the fast ones are
 * as fast as beside others, then those are usual. */
static void settle_alone(struct view *v, int c, const int *count, double *buffer)
{
    struct class_fit *beside = &v->class[c], *alone = &v->class[c + 1];
    const double least = beside->m - noise_constants.slow;

    if (alone->m < least &&
        usual_quantile(buffer, class_values(v, buffer, c + 1, false, count[c + 1]),
                       noise_constants.fast) >= least)
        *alone = *beside;
}

static void take_classes(struct view *v, const int *count, double *buffer)
{
    for (int c = 0; c < CLASSES; c++)
        if (count[c] || v->base)
            class_fit(v, c, count, buffer);
    for (int c = 0; c < CLASSES; c++)
        borrow_class(v, c);
    for (int c = 0; c < CLASSES; c += 2)
        settle_alone(v, c, count, buffer);
    for (int i = 0; i < v->in->looks; i++)
        if (!isnan(v->r[i]))
            v->r[i] -= (float)v->class[class_of(&v->in->look[i])].m;
}

/* Pairs that share a trunk are no evidence for their ends while they run at once.  If as many looks are alone,
 * looks under load are left out. */
static void drop_crowded(struct view *v, const int *count)
{
    for (int c = 0; c < CLASSES && !v->base; c += 2)
        v->crowded[c / 2] = count[c] && count[c + 1] >= count[c] && v->class[c + 1].looks &&
                            v->class[c].m < v->class[c + 1].m + log(noise_constants.crowded);
    for (int i = 0; i < v->in->looks; i++) {
        const struct look *k = &v->in->look[i];
        const bool *crowded = v->base ? v->base->crowded : v->crowded;
        if (!k->alone && crowded[class_of(k) / 2])
            v->r[i] = NAN;
    }
}

/* Share of a class that gets nearly a half of what is usual alone. */
static double halves(const struct view *v, int class, int count, double *buffer)
{
    const double half = log(noise_constants.collided) + v->class[class | 1].m - v->class[class].m;
    int n = class_values(v, buffer, class, false, count), low = 0;

    for (int i = 0; i < n; i++)
        low += buffer[i] < half;
    return n ? (double)low / n : 0;
}

/* How far flows that leave a leaf at once are slow together, beyond what all flows of the turn are: 0 if not, 1 if always.
 * Flows through too few uplinks are, and flows that collide by chance are not. */
static double slow_together(const struct view *v, const struct crowds *c, int class)
{
    const double half = log(noise_constants.collided) + v->class[class | 1].m - v->class[class].m;
    const enum rung rung = v->places->count[RUNG_LEAF] > 1 ? RUNG_LEAF : RUNG_RACK;
    const int *of = v->places->of[rung], groups = v->places->count[rung];
    int *all = mem_ints(groups, 0), *slow = mem_ints(groups, 0);
    double both = 0, most = 0;

    for (int t = 0; t < c->turns; t++) {
        int flows = 0, slows = 0;

        for (int pass = 0; pass < 2; pass++)
            for (int i = c->l.start[t]; i < c->l.start[t + 1]; i++) {
                const struct look *k = &v->in->look[c->l.at[i]];
                int a = of[k->src], low = v->r[c->l.at[i]] < half;

                if (class_of(k) != class || a < 0 || a == of[k->dst])
                    continue;
                if (pass == 0) {
                    all[a]++;
                    slow[a] += low;
                    flows++;
                    slows += low;
                    continue;
                }
                double mates = (double)slow[a] * (all[a] - 1), share = (double)slows / flows;
                both += (double)slow[a] * (slow[a] - 1) - mates * share;
                most += mates * (1 - share);
                all[a] = slow[a] = 0;
            }
    }
    free(all);
    free(slow);
    return most > 0 ? both / most : 0;
}

static bool is_hashed(const struct view *v, const struct crowds *c, int class, const int *count)
{
    return count[class + 1] >= noise_constants.class_looks &&
           halves(v, class, count[class], c->buffer) >
               halves(v, class + 1, count[class + 1], c->buffer) + noise_constants.hashed &&
           slow_together(v, c, class) <= noise_constants.half;
}

/* Other sizes, and both ways at once, have no looks alone: what the fast ones get is usual. */
static double shift_of_kind(struct view *v, const struct crowds *c, int class, const int *count)
{
    int n = class_values(v, c->buffer, class, false, count[class]);
    double top =
        n >= noise_constants.class_looks ? usual_quantile(c->buffer, n, noise_constants.clear) : 0;

    if (!(top > noise_constants.slow) || v->base)
        return 0;
    v->class[class].m += top;
    v->class[class].sigma = v->class[class % (2 * TIER_MAX) | 1].sigma; /* of rates alone */
    if (!count[class + 1])
        v->class[class + 1] = v->class[class];
    return top;
}

/* Pairs that get a half beside others far oftener than alone share an uplink by chance.  The others get as much as
 * alone: that is usual, however many collide. */
static void find_hashed(struct view *v, const struct crowds *c, const int *count)
{
    double off[CLASSES] = {0};

    for (int k = 0; k < CLASSES && !v->tail; k += 2) {
        v->hashed[k / 2] = v->base ? v->base->hashed[k / 2] : is_hashed(v, c, k, count);
        if (!v->hashed[k / 2])
            continue;
        off[k] = v->class[k + 1].m - v->class[k].m;
        v->class[k] = v->class[k + 1];
    }
    for (int k = 2 * TIER_MAX; k < CLASSES && !v->tail; k += 2)
        if (v->hashed[k / 2 % TIER_MAX] && k / 2 / TIER_MAX != LOOK_LATENCY && count[k])
            off[k] = shift_of_kind(v, c, k, count);
    for (int i = 0; i < v->in->looks; i++)
        v->r[i] -= (float)off[class_of(&v->in->look[i])];
}

/* --- the whole --- */

static void number_blocks(struct view *v)
{
    int most = 0;

    for (int i = 0; i < v->in->looks; i++)
        most = v->in->look[i].block > most ? v->in->look[i].block : most;
    v->block = mem_ints(most + 1, -1);
    for (int i = 0; i < v->in->looks; i++)
        if (!isnan(v->r[i]))
            v->block[v->in->look[i].block] = 0;
    for (int b = 0; b <= most; b++)
        if (!v->block[b])
            v->block[b] = v->blocks++;
}

/* Only rates are judged by their spread. */
static void read_values(struct view *v)
{
    const struct noise_input *in = v->in;

    v->r = mem_calloc((size_t)in->looks + 1, sizeof(*v->r));
    for (int i = 0; i < in->looks; i++) {
        const struct look *k = &in->look[i];
        float y = v->tail ? -k->tail : k->y;

        v->r[i] = k->fresh == v->fresh && isfinite(y) && isfinite(k->y) &&
                          (!v->tail || k->kind == LOOK_RATE)
                      ? y
                      : NAN;
    }
}

static void take_fine(struct view *v)
{
    unsigned nic = 0, seen = 0;

    for (int i = 0; i < v->in->looks; i++)
        seen |= 1u << v->in->look[i].tier;
    for (int k = 0; k < LOOK_COUNT; k++)
        v->fine[k] =
            v->base ? v->base->fine[k] : mem_calloc((size_t)v->places->n + 1, sizeof(unsigned));
    if (v->base)
        return;
    for (int t = 0; t < TIER_MAX; t++) {
        if (v->in->crosses[t])
            nic |= 1u << t;
        else
            fine_find(v, seen & 1u << t);
    }
    fine_find(v, seen & nic);
}

static double spread_of(const float *off, int n)
{
    double *v = mem_calloc((size_t)n + 1, sizeof(*v)), sd;
    int count = 0;

    for (int i = 0; i < n; i++)
        if (off[i] != 0)
            v[count++] = off[i];
    sd = count > 2 ? stats_spread(v, count) : NAN;
    free(v);
    return sd;
}

void view_make(struct view *v)
{
    int count[CLASSES] = {0};
    double top[CLASSES] = {0};
    struct crowds c;
    float *off;

    read_values(v);
    view_list(v);
    number_blocks(v);
    count_classes(v, count);
    crowds_make(&c, v);
    off = mem_calloc((size_t)c.turns + 1, sizeof(*off));
    if (!v->base)
        class_tops(v, count, c.buffer, top);
    find_calm(v, count, top);
    if (!v->base)
        take_turns(v, &c, top, off);
    take_classes(v, count, c.buffer);
    find_hashed(v, &c, count);
    drop_crowded(v, count);
    take_fine(v);
    take_turns(v, &c, NULL, off);
    if (v->base)
        take_drift(v, &c);
    v->sd_turn = spread_of(off, c.turns);
    free(off);
    crowds_free(&c);
}

void view_free(struct view *v)
{
    for (int k = 0; k < LOOK_COUNT && !v->base; k++)
        free(v->fine[k]);
    lists_free(&v->of);
    free(v->r);
    free(v->block);
}
