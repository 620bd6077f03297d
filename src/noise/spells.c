/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that are slow now and then: k slow looks of m (one look a part and turn) against the share q of their
 * like.  The share of a leaf's own NICs, shrunk to that of all, makes other jobs on a leaf no NIC's fault; how much
 * healthy parts differ beyond chance (rho) comes from the campaign, without those that stand out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/mem.h"
#include "base/stats.h"
#include "noise/noise_impl.h"

enum { DEPTHS = 2, ROUNDS = 4, SORTS = SORTS_OF_RATES };
static const double rho_least = 1e-4, rho_most = 0.5;

struct spell {
    struct hunt *h;
    enum rung rung;
    int n, groups;
    enum {
        ALL_LOOKS,
        CLEAR_LOOKS,
        SENT,
        RECEIVED,
        SETS
    } set;                   /* clear: none that collide by chance */
    int tests;               /* tests of each part */
    int *slow[DEPTHS], *all; /* looks of each part */
    unsigned short (*slow_in[DEPTHS])[SORTS], (*all_in)[SORTS]; /* the same by sort */
    int sort[SORTS], sorts;                                     /* sorts with looks */
    float *depth;                                               /* sum of the slow ones, by part */
    int *deep;
    const int *group;
    double *p;
    float *q;
    bool *keep;
};

static double depth_of(int depth)
{
    return depth ? noise_constants.deep : noise_constants.slow;
}

/* --- looks by turn --- */

struct moment {
    int turn;
    float r, w, sigma;
    unsigned char sort;
};

static unsigned char sort_of(const struct seen *s)
{
    return s->class % SORTS;
}

static int by_turn(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

/* One look of a part: the weighted median of its looks in a turn. */
static void count_turn(struct spell *s, int part, const struct moment *m, int n)
{
    double total = 0, run = 0, sigma = 0;
    int i = 0;

    for (int k = 0; k < n; k++) {
        total += m[k].w;
        sigma = fmax(sigma, m[k].sigma);
    }
    while (i < n - 1 && (run += m[i].w) < total * 0.5 * (1 - 1e-6))
        i++;
    s->all[part]++;
    s->all_in[part][m[i].sort]++;
    for (int d = 0; d < DEPTHS; d++) {
        bool slow = m[i].r < -fmax(depth_of(d), noise_constants.slow_sigma * sigma);

        s->slow[d][part] += slow;
        s->slow_in[d][part][m[i].sort] = (unsigned short)(s->slow_in[d][part][m[i].sort] + slow);
    }
    if (m[i].r < -noise_constants.slow) {
        s->depth[part] += m[i].r;
        s->deep[part]++;
    }
}

static void count_part(struct spell *s, int part, struct moment *m, int n)
{
    if (n > 1)
        qsort(m, (size_t)n, sizeof(*m), by_turn);
    for (int from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && m[to].turn == m[from].turn; to++)
            ;
        count_turn(s, part, m + from, to - from);
    }
}

static bool is_in_set(const struct spell *s, const struct seen *k)
{
    if (s->set == CLEAR_LOOKS)
        return k->alone || !s->h->v->hashed[LOOK_RATE * TIER_MAX + k->tier];
    return s->set == ALL_LOOKS || (s->set == SENT) == !k->end;
}

static int part_moments(const struct spell *s, const struct seen *seen, int n, const bool *skip,
                        const int *turn, struct moment *m, bool *slow)
{
    const struct view *v = s->h->v;
    bool leaves = false;
    int count = 0;

    *slow = false;
    for (int i = 0; i < n && !leaves; i++)
        leaves = !seen[i].inside;
    for (int i = 0; i < n; i++) {
        /* a tier that no look of a host leaves shows the host by the looks within, whose ends are slow alike */
        if (skip[seen[i].self] || !is_in_set(s, &seen[i]) ||
            (leaves ? !seen[i].fine || seen[i].inside : !seen[i].first))
            continue;
        m[count++] = (struct moment){turn[seen[i].look], seen[i].r, seen[i].w,
                                     (float)v->class[seen[i].class].sigma, sort_of(&seen[i])};
        *slow |= seen[i].r < -noise_constants.slow;
    }
    return count;
}

/* Turns of a part without a slow look need no order. */
static void count_turns(struct spell *s, int part, const struct moment *m, int n, int *stamp)
{
    for (int i = 0; i < n; i++) {
        bool first = stamp[m[i].turn] != part + 1;

        s->all[part] += first;
        s->all_in[part][m[i].sort] = (unsigned short)(s->all_in[part][m[i].sort] + first);
        stamp[m[i].turn] = part + 1;
    }
}

/* Turns by look, side by side: they are read in the order of parts. */
static int *turns_of(const struct noise_input *in, int *last)
{
    int *turn = mem_calloc((size_t)in->looks + 1, sizeof(*turn));

    *last = 0;
    for (int i = 0; i < in->looks; i++) {
        turn[i] = in->look[i].turn;
        *last = turn[i] > *last ? turn[i] : *last;
    }
    return turn;
}

static void list_sorts(struct spell *s)
{
    for (int t = 0; t < SORTS; t++) {
        bool any = false;

        for (int i = 0; i < s->n && !any; i++)
            any = s->all_in[i][t];
        if (any)
            s->sort[s->sorts++] = t;
    }
}

static void count_all(struct spell *s, const bool *skip)
{
    const size_t most = (size_t)gather_most(s->h, s->rung);
    struct seen *seen = mem_calloc(most + 1, sizeof(*seen));
    struct moment *m = mem_calloc(most + 1, sizeof(*m));
    int last, *turn = turns_of(s->h->v->in, &last), *stamp = mem_ints(last + 1, 0);

    for (int p = 0; p < s->n; p++) {
        bool slow;
        int n = part_moments(s, seen, gather_part(s->h, s->rung, p, seen), skip, turn, m, &slow);

        if (slow)
            count_part(s, p, m, n);
        else
            count_turns(s, p, m, n, stamp);
    }
    free(seen);
    free(m);
    free(turn);
    free(stamp);
    list_sorts(s);
}

/* --- the share of the like --- */

/* Shares of slow looks by sort, of parts that are kept: pairs beside others collide where pairs alone do not, so
 * that parts with more of those looks are slow more often. */
static void sort_shares(const struct spell *s, int depth, double *risk)
{
    double slow[SORTS] = {0}, all[SORTS] = {0}, sums[2] = {0.5, 1}, n = noise_constants.share_looks;

    for (int i = 0; i < s->n; i++)
        for (int k = 0; s->keep[i] && k < s->sorts; k++) {
            slow[s->sort[k]] += s->slow_in[depth][i][s->sort[k]];
            all[s->sort[k]] += s->all_in[i][s->sort[k]];
        }
    for (int t = 0; t < SORTS; t++) {
        sums[0] += slow[t];
        sums[1] += all[t];
    }
    for (int t = 0; t < SORTS; t++)
        risk[t] = (slow[t] + n * sums[0] / sums[1]) / (all[t] + n);
}

/* Slow looks that a part of such looks has by chance. */
static double expected(const struct spell *s, const double *risk, int part)
{
    double sum = 0;

    for (int k = 0; k < s->sorts; k++)
        sum += s->all_in[part][s->sort[k]] * risk[s->sort[k]];
    return sum;
}

/* Slow looks of a group / slow looks expected from all parts, shrunk to 1.  sums: by group, slow and expected. */
static double group_factor(const struct spell *s, const double *sums, int part)
{
    int g = s->group ? s->group[part] : 0;
    double all = sums[2 * s->groups + 1], looks = sums[2 * s->groups + 2],
           prior = noise_constants.share_looks * (all > 0 ? all / looks : 1);

    return g < 0 ? 1 : (sums[2 * g] + prior) / (sums[2 * g + 1] + prior);
}

static void sum_groups(const struct spell *s, const int *k, const double *risk, double *sums)
{
    memset(sums, 0, (size_t)(2 * s->groups + 3) * sizeof(*sums));
    for (int i = 0; i < s->n; i++) {
        int g = s->group ? s->group[i] : 0;
        double e = s->keep[i] ? expected(s, risk, i) : 0;

        if (!s->keep[i])
            continue;
        sums[2 * s->groups] += k[i];
        sums[2 * s->groups + 1] += e;
        sums[2 * s->groups + 2] += s->all[i];
        if (g >= 0) {
            sums[2 * g] += k[i];
            sums[2 * g + 1] += e;
        }
    }
}

/* Correlation of a healthy part's looks beyond binomial (Pearson's chi-square over its degrees of freedom). */
static double correlation(const struct spell *s, const int *k)
{
    double sum = 0, looks = 0;
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        double m = s->all[i], q = s->q[i];

        if (!s->keep[i])
            continue;
        sum += pow(k[i] - m * q, 2) / (m * q * (1 - q));
        looks += m;
        n++;
    }
    if (n < 2)
        return rho_least;
    return fmin(rho_most, fmax(rho_least, (sum / (n - 1) - 1) / fmax(1, looks / n - 1)));
}

static double chance(const struct spell *s, const int *k, int i, double rho)
{
    double q = s->q[i];

    if (k[i] <= s->all[i] * q || !s->all[i])
        return 1;
    return dist_beta_binomial_upper(k[i], s->all[i], q * (1 / rho - 1), (1 - q) * (1 / rho - 1));
}

/* Stage 2 expects at least the share that stage 1 found. */
static double share_of(const struct spell *s, int part, double factor, const double *risk,
                       const struct likely *old)
{
    double e = factor * expected(s, risk, part);

    if (old)
        e = fmax(e, old->factor[part] * expected(s, old->risk, part));
    return fmin(0.99, e / fmax(1, s->all[part]));
}

static void estimate(struct spell *s, int depth, const bool *like, const struct likely *old,
                     struct likely *now)
{
    const int *k = s->slow[depth];
    double *sums = mem_calloc((size_t)(2 * s->groups + 3), sizeof(*sums));

    for (int i = 0; i < s->n; i++)
        s->keep[i] = (!like || like[i]) && s->all[i];
    for (int round = 0; round < ROUNDS; round++) {
        sort_shares(s, depth, now->risk);
        sum_groups(s, k, now->risk, sums);
        for (int i = 0; i < s->n; i++) {
            now->factor[i] = (float)group_factor(s, sums, i);
            s->q[i] = (float)share_of(s, i, now->factor[i], now->risk, old);
        }
        now->rho = fmax(old ? old->rho : 0,
                        round ? correlation(s, k) : rho_least); /* outliers would raise rho */
        for (int i = 0; i < s->n; i++) {
            s->p[i] = chance(s, k, i, now->rho);
            s->keep[i] = (!like || like[i]) && s->all[i] && s->p[i] > noise_constants.share_out;
        }
    }
    free(sums);
}

/* --- claims --- */

/* NICs of leaves and racks that are claimed: explained. */
static bool *explained(const struct hunt *h)
{
    bool *skip = mem_calloc((size_t)h->places->n + 1, sizeof(*skip));

    for (int c = 0; c < h->out->count; c++) {
        const struct claim *x = &h->out->at[c];

        for (int i = 0; (x->rung == RUNG_RACK || x->rung == RUNG_LEAF) && x->channel == h->c &&
                        i < h->places->n;
             i++)
            skip[i] |= h->places->of[x->rung][i] == x->a;
    }
    return skip;
}

static void claim_spell(struct spell *s, int part, int depth, bool *claimed)
{
    const struct hunt *h = s->h;
    double share = (double)s->slow[depth][part] / fmax(1, s->all[part]), p = s->tests * s->p[part];
    struct claim *old = NULL;
    struct claim c = {.rung = s->rung,
                      .a = part,
                      .b = -1,
                      .tier = -1,
                      .channel = h->c,
                      .now_and_then = true,
                      .p = p,
                      .share = share,
                      .e = s->depth[part] / fmax(1, s->deep[part]),
                      .sd = NAN};

    if (!(p <= h->alpha) || share <= noise_constants.share_least ||
        !hunt_asks(h, s->rung, part, -1))
        return;
    for (int i = 0; claimed[part] && i < h->out->count; i++)
        if (h->out->at[i].now_and_then && h->out->at[i].rung == s->rung &&
            h->out->at[i].a == part && h->out->at[i].channel == h->c)
            old = &h->out->at[i];
    if (!old)
        MEM_PUSH(h->out->at, h->out->count) = c;
    else if (c.p < old->p)
        *old = c;
    claimed[part] = true;
}

static void spell_make(struct spell *s, struct hunt *h, enum rung rung)
{
    *s = (struct spell){.h = h, .rung = rung, .n = h->places->count[rung], .groups = 1};
    if (rung == RUNG_NIC && h->c->nic && h->places->count[RUNG_LEAF]) {
        s->group = h->places->of[RUNG_LEAF];
        s->groups = h->places->count[RUNG_LEAF];
    }
    for (int d = 0; d < DEPTHS; d++) {
        s->slow[d] = mem_ints(s->n, 0);
        s->slow_in[d] = mem_calloc((size_t)s->n + 1, sizeof(*s->slow_in[d]));
    }
    s->all_in = mem_calloc((size_t)s->n + 1, sizeof(*s->all_in));
    s->all = mem_ints(s->n, 0);
    s->deep = mem_ints(s->n, 0);
    s->depth = mem_calloc((size_t)s->n + 1, sizeof(*s->depth));
    s->q = mem_calloc((size_t)s->n + 1, sizeof(*s->q));
    s->p = mem_calloc((size_t)s->n + 1, sizeof(*s->p));
    s->keep = mem_calloc((size_t)s->n + 1, sizeof(*s->keep));
}

static void spell_free(struct spell *s)
{
    for (int d = 0; d < DEPTHS; d++) {
        free(s->slow[d]);
        free(s->slow_in[d]);
    }
    free(s->all_in);
    free(s->all);
    free(s->deep);
    free(s->depth);
    free(s->q);
    free(s->p);
    free(s->keep);
}

/* Stage 2: leave parts with a suspected endpoint out of the healthy share. */
static bool *alike(const struct spell *s)
{
    const struct hunt *h = s->h;
    bool *like = h->v->selected ? mem_calloc((size_t)s->n + 1, sizeof(*like)) : NULL, any = false;

    for (int i = 0; like && i < s->n; i++)
        like[i] = true;
    for (int i = 0; like && i < h->places->n; i++)
        if (h->v->selected[i] && h->places->of[s->rung][i] >= 0)
            like[h->places->of[s->rung][i]] = false;
    for (int i = 0; like && i < s->n; i++)
        any |= like[i] && s->all[i];
    if (like && !any) { /* a suspected rail is in all hosts */
        free(like);
        like = NULL;
    }
    return like;
}

static void judge_depth(struct spell *s, int depth, const bool *like, bool *claimed)
{
    const bool fresh = s->h->asked != NULL;
    struct likely *known = &s->h->c->likely[s->rung == RUNG_NIC][depth],
                  now = {.factor = mem_calloc((size_t)s->n + 1, sizeof(*now.factor))};

    estimate(s, depth, like, fresh && known->factor ? known : NULL, &now);
    if (!fresh && s->set == ALL_LOOKS) {
        free(known->factor);
        *known = now;
    }
    for (int i = 0; i < s->n; i++) {
        claim_spell(s, i, depth, claimed);
        s->h->out->tests += s->all[i] > 0 && !depth;
    }
    if (fresh || s->set != ALL_LOOKS)
        free(now.factor);
}

static bool is_most(int n, int of)
{
    return n >= 2 && n >= noise_constants.half * of;
}

/* A host is intermittent only if half of its endpoints are slow half as often as the worst, beyond chance, because one
 * slow NIC or GPU makes its host slow in some looks; and if so many of its NICs are claimed in any state, two at least
 * (stage 2 asks the host only).  Beside NVLink or PCIe, whose looks stay within the host, an endpoint has too few looks
 * to be claimed.
 * often: share of slow looks beyond that of healthy endpoints, by endpoint. */
static void drop_hosts(struct hunt *h, int from, const float *often)
{
    const int *host = h->places->of[RUNG_HOST], hosts = h->places->count[RUNG_HOST];
    int *many = mem_ints(hosts, 0), *claimed = mem_ints(hosts, 0), *seen = mem_ints(hosts, 0),
        kept = from;
    float *worst = mem_calloc((size_t)hosts + 1, sizeof(*worst));
    bool *is = mem_calloc((size_t)h->places->n + 1, sizeof(*is));

    for (int i = 0; i < h->places->n; i++)
        if (host[i] >= 0) {
            seen[host[i]]++;
            worst[host[i]] = fmaxf(worst[host[i]], often[i]);
        }
    for (int i = 0; i < h->places->n; i++)
        if (host[i] >= 0)
            many[host[i]] += often[i] >= noise_constants.half * worst[host[i]];
    for (int i = 0; i < h->out->count; i++) {
        const struct claim *c = &h->out->at[i];

        if (c->rung == RUNG_NIC && c->channel == h->c && host[c->a] >= 0 && !is[c->a])
            claimed[host[c->a]] += is[c->a] = true;
    }
    for (int i = from; i < h->out->count; i++) {
        const struct claim *c = &h->out->at[i];

        if (c->rung == RUNG_NIC || (is_most(many[c->a], seen[c->a]) &&
                                    (!h->c->nic || h->asked || is_most(claimed[c->a], seen[c->a]))))
            h->out->at[kept++] = *c;
    }
    h->out->count = kept;
    free(worst);
    free(is);
    free(claimed);
    free(many);
    free(seen);
}

/* Where flows collide by chance, a NIC whose looks are nearly all beside others may be slow in each block, by chance.
 * So stage 1 doubts a NIC whose share of slow looks is usual for such looks.  Collisions cost more than `slow`.
 * chance: of that share, by endpoint. */
static void doubt_collided(struct hunt *h, const double *chance)
{
    struct claims *out = h->out;
    int kept = 0;

    for (int i = 0; i < out->count; i++) {
        struct claim *c = &out->at[i];

        if (c->channel == h->c && c->rung == RUNG_NIC && !c->now_and_then &&
            c->e < -noise_constants.slow)
            c->p = fmax(c->p, chance[c->a]);
        if (c->channel != h->c || c->p <= h->alpha)
            out->at[kept++] = *c;
    }
    out->count = kept;
}

static bool is_of(const struct hunt *h, const struct claim *c, const struct look *k)
{
    int a = h->places->of[c->rung][k->src], b = h->places->of[c->rung][k->dst];

    return (a == c->a && b == c->b) || (a == c->b && b == c->a);
}

/* All residuals again, but for pairs that are claimed. */
static void take_pairs(struct hunt *h)
{
    int n;
    const int *of = view_looks(h->v, h->c->kind, h->c->tiers, &n);

    if (!h->taken)
        return;
    h->stale = true;
    memcpy(h->r, h->v->r, (size_t)h->v->in->looks * sizeof(*h->r));
    for (int c = 0; c < h->out->count; c++)
        for (int i = 0; rung_is_two(h->out->at[c].rung) && h->out->at[c].channel == h->c && i < n;
             i++)
            if (is_of(h, &h->out->at[c], &h->v->in->look[of[i]]))
                h->r[of[i]] = NAN;
}

/* Share of slow looks beyond that of healthy endpoints, and the chance of it. */
static void tell_often(const struct spell *s, float *often, double *chance)
{
    for (int i = 0; i < s->n; i++) {
        if (s->set == ALL_LOOKS)
            chance[i] = s->p[i];
        if (s->set == ALL_LOOKS ||
            (s->set == CLEAR_LOOKS && s->all[i] >= noise_constants.inside_looks))
            often[i] = (float)s->slow[0][i] / fmaxf(1, (float)s->all[i]) - s->q[i];
    }
}

/* True if a look of the part counts, as in part_moments(). */
static bool is_looked_at(const struct hunt *h, enum rung rung, int part)
{
    const int *group = rung_is_group(rung) ? h->places->of[rung] : NULL;
    const struct item *at;
    bool leaves = false, alone = false;
    int n;

    for (int i = 0; (at = hunt_run(h, rung, part, i, &n)) != NULL; i++)
        for (int k = 0; k < n; k++) {
            const bool inside = group && group[at[k].other] == part;

            if (!inside && item_is_fine(&at[k]))
                return true;
            leaves |= !inside;
            alone |= !item_end(&at[k]);
        }
    return !leaves && alone;
}

/* Parts of a quiet channel are never slow, and each was tested. */
static void count_quiet(struct hunt *h)
{
    for (int nic = 0; nic < 2; nic++)
        for (int i = 0; i < h->places->count[nic ? RUNG_NIC : RUNG_HOST]; i++)
            h->out->tests += is_looked_at(h, nic ? RUNG_NIC : RUNG_HOST, i);
}

void spells_find(struct hunt *h)
{
    const int from = h->out->count, sets = !h->asked && channel_collides(h->v, h->c) ? SETS : 1;
    bool *skip;
    float *often;
    double *chance;

    take_pairs(h);
    gather_refresh(h);
    if (h->quiet) {
        count_quiet(h);
        return;
    }
    skip = explained(h);
    often = mem_calloc((size_t)h->places->n + 1, sizeof(*often));
    chance = mem_calloc((size_t)h->places->n + 1, sizeof(*chance));
    for (int nic = 0; nic < 2; nic++) {
        const enum rung rung = nic ? RUNG_NIC : RUNG_HOST;
        bool *claimed = mem_calloc((size_t)h->places->count[rung] + 1, sizeof(*claimed));

        for (int set = 0; set < sets && (nic || set <= CLEAR_LOOKS); set++) {
            struct spell s;
            bool *like;

            spell_make(&s, h, rung);
            s.set = set;
            s.tests = DEPTHS * sets;
            count_all(&s, skip);
            like = alike(&s);
            for (int d = DEPTHS - 1; d >= 0; d--)
                judge_depth(&s, d, like, claimed);
            if (nic)
                tell_often(&s, often, chance);
            free(like);
            spell_free(&s);
        }
        free(claimed);
    }
    drop_hosts(h, from, often);
    if (sets > 1)
        doubt_collided(h, chance);
    free(chance);
    free(often);
    free(skip);
}
