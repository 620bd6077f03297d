/* SPDX-License-Identifier: BSD-3-Clause */
/* Is the evidence for a part independent?  Else the cause may as well be what all of it shares. */
#include "cost/fit/parts_impl.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"

enum {
    PARTNERS_MIN = 3,
    ALONE_MIN = 2,
    HOSTS_MIN = 2,
    CHILDREN_MIN = 3,
    CHILD_MIN = 3,
    SEEN_MIN = 2
};
static const double nearly_all = 0.9; /* of what passes a group */

/* 1 the first time in this count (mark) that the host, or the endpoint, is seen. */
static int first_time(const struct hunt *h, int mark, int endpoint, bool host)
{
    const struct topo *t = &h->f->m->topo;
    int *seen = &h->stamp[1 + (host ? topo_at(t, endpoint, LEVEL_HOST) : t->hosts + endpoint)];
    int first = *seen != mark;

    *seen = mark;
    return first;
}

static bool meets(const struct hunt *h, int a, int b)
{
    for (int t = 0; t < h->f->m->tiers; t++)
        if (hunt_has(h, t) && fit_meets(h->f, a, b, t))
            return true;
    return false;
}

/* How many partners, or their hosts, an endpoint could meet in this tier, up to `most`. */
static int could_meet(const struct hunt *h, int own, bool host, int most)
{
    const struct topo *t = &h->f->m->topo;
    int n = 0, mark = ++*h->stamp;

    for (int i = 0; i < t->endpoints && n < most; i++)
        if (i != own && !h->broken[i] && meets(h, own, i))
            n += first_time(h, mark, i, host);
    return n;
}

/* How many partners, or their hosts, show it; alone: measured alone. */
static int partners(const struct hunt *h, const struct element *x, bool host, bool alone)
{
    int n = 0, mark = ++*h->stamp;

    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (hunt_shows(h, s, x->e.factor) && (s->alone || !alone))
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
    const struct lists *l = &h->group[level];
    int n = 0;

    for (int i = l->start[PASS_COUNT * at]; i < l->start[PASS_COUNT * (at + 1)]; i++) {
        const struct fit_sample *s = &h->f->sample[l->at[i]];
        if (s->explained < 0 && (level == LEVEL_HOST || fit_rack_pair(h->f, s->src, s->dst) >= 0) &&
            !parts_pass(h->f->m, &x->e, s))
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
        if (hunt_shows(h, s, x->e.factor) && first_time(h, mark, own, true))
            n += !own_doing(h, x, rack, topo_at(t, own, LEVEL_HOST));
    }
    mark = ++*h->stamp;
    for (int i = *all = 0; i < t->endpoints; i++)
        if (topo_at(t, i, LEVEL_RACK) == rack && !h->broken[i])
            *all += first_time(h, mark, i, true);
    return n;
}

/* Does an exception of another tier say the same of this endpoint? */
static bool known_factor(const struct hunt *h, const struct element *x)
{
    bool same = false;

    for (int i = 0; i < h->f->m->exceptions && !same; i++) {
        const struct exception *e = &h->f->m->exception[i];
        same = e->part == PART_ENDPOINT && e->a == x->e.a && e->tier != h->scope &&
               parts_alike(e, &x->e, same_factor);
    }
    return same && partners(h, x, false, false);
}

/* --- groups of endpoints: hosts, leaves, racks --- */

/* One endpoint of a group, by the samples that pass it. */
struct child {
    int n, fine;
};

/* The end of a sample that is in the group, and the other. */
static int own_end(const struct hunt *h, const struct element *x, const struct fit_sample *s,
                   int *other)
{
    bool sends = part_at(h->f->m, x->e.part, s->src) == x->e.a;

    *other = sends ? s->dst : s->src;
    return sends ? s->src : s->dst;
}

/* How many endpoints of the group show it, or hosts. */
static int children(const struct hunt *h, const struct element *x, bool host)
{
    int n = 0, other, mark = ++*h->stamp;

    for (int i = 0; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (hunt_shows(h, s, x->e.factor))
            n += first_time(h, mark, own_end(h, x, s, &other), host);
    }
    return n;
}

/* How many endpoints, or hosts, the group has. */
static int all_children(const struct hunt *h, const struct element *x, bool host)
{
    const struct topo *t = &h->f->m->topo;
    int n = 0, mark = ++*h->stamp;

    for (int i = 0; i < t->endpoints; i++)
        if (part_at(h->f->m, x->e.part, i) == x->e.a && !h->broken[i])
            n += first_time(h, mark, i, host);
    return n;
}

/* Is one of the group, or a host of it, fine?  The median of its n samples lies two deviations above
 * halfway to normal; then it is not the group. */
static bool has_a_fine_one(const struct hunt *h, const struct element *x, bool host)
{
    struct child *of = mem_calloc((size_t)h->f->m->topo.endpoints, sizeof(*of));
    int other;
    bool found = false;

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < x->samples; i++) {
            const struct fit_sample *s = &h->f->sample[x->index[i]];
            int end = own_end(h, x, s, &other);
            struct child *c = &of[host ? fit_at(h->f, end, LEVEL_HOST) : end];
            if (s->explained >= 0)
                continue;
            c->n += !k;
            c->fine += k && s->residual > (1 + x->e.factor) / 2 + 2.5 * h->sigma / sqrt(c->n);
        }
    for (int i = 0; i < h->f->m->topo.endpoints && !found; i++)
        found = of[i].n >= CHILD_MIN && 2 * of[i].fine > of[i].n;
    free(of);
    return found;
}

/* Do those who show it lie in two other hosts, or racks, or in all that there are? */
static bool has_partners(const struct hunt *h, const struct element *x)
{
    int first = -1, other, rack, mine;
    bool racks = x->e.part == PART_RACK || x->e.part == PART_RACK_UPLINKS;

    for (int i = 0; i < x->samples - x->inside; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (!hunt_shows(h, s, x->e.factor))
            continue;
        mine = own_end(h, x, s, &other);
        rack = fit_at(h->f, other, racks ? LEVEL_RACK : LEVEL_HOST);
        if (fit_at(h->f, mine, LEVEL_HOST) == rack && !racks)
            continue;
        if (first >= 0 && rack != first)
            return true;
        first = rack;
    }
    return x->inside == x->samples;
}

static bool enough_of_group(const struct hunt *h, const struct element *x)
{
    bool alone = x->inside == x->samples; /* two ends with nobody else: the pair */

    for (int host = 0; host < 2; host++) {
        int n = children(h, x, host), wanted = host ? HOSTS_MIN : CHILDREN_MIN;
        if (n < wanted && ((alone && !host) || n < all_children(h, x, host)))
            return false;
    }
    return children(h, x, false) > 1 && has_partners(h, x) && !has_a_fine_one(h, x, false) &&
           !has_a_fine_one(h, x, true);
}

/* --- is it one cause? --- */

/* Of samples that are left: how slow all but a few are, of all or of those within the group, or of
 * one tier (-1: any); NAN: there are fewer than `least`. */
static double quantile_of(struct hunt *h, const struct element *x, int first, int tier, int least,
                          double share)
{
    int n = 0;

    for (int i = first; i < x->samples; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (s->explained < 0 && (tier < 0 || s->tier == tier))
            h->v[n++] = s->residual;
    }
    stats_sort(h->v, n);
    return n >= least ? stats_quantile(h->v, n, share) : NAN;
}

/* Median of what leaves a group, or enters it, and of how many; NAN: nothing is left. */
static double way_median(struct hunt *h, const struct element *x, bool leaves, int *of)
{
    int n = 0;

    for (int i = 0; i < x->samples - x->inside; i++) {
        const struct fit_sample *s = &h->f->sample[x->index[i]];
        if (s->explained < 0 && (part_at(h->f->m, x->e.part, s->src) == x->e.a) == leaves)
            h->v[n++] = s->residual;
    }
    *of = n;
    return n ? stats_median(h->v, n) : NAN;
}

/* Is nearly all that passes the group as slow, either way, and what is within it, too? */
static bool is_one_cause(struct hunt *h, const struct element *x)
{
    double fine = hunt_fine(h, x->e.factor);

    if (!(quantile_of(h, x, 0, -1, SEEN_MIN, nearly_all) <= fine))
        return false;
    int leave, enter;
    double apart = way_median(h, x, true, &leave) - way_median(h, x, false, &enter);
    if (fabs(apart) > same_factor * x->e.factor + 4 * h->sigma / sqrt(fmin(leave, enter)))
        return false;
    if (x->inside == 0 || x->inside == x->samples)
        return true;
    double within = quantile_of(h, x, x->samples - x->inside, -1, 1, 0.5);
    return within <= fine && within >= 2 * x->e.factor - fine;
}

/* Is it as slow in every tier of the scope where it was measured?  One pair alone says no where it
 * is clearly fine, or clearly slower: what passes between racks may be hardly more than a slow NIC
 * is. */
static bool in_every_tier(struct hunt *h, const struct element *x)
{
    double off = same_factor * x->e.factor + 1.5 * h->sigma,
           fine = hunt_fine(h, x->e.factor) + 2.5 * h->sigma,
           slower = x->e.factor - off - 2.5 * h->sigma;

    for (int t = 0; t < h->f->m->tiers && h->scope == SCOPE_NICS; t++) {
        double one = quantile_of(h, x, 0, t, 1, 0.5);
        if (fabs(quantile_of(h, x, 0, t, SEEN_MIN, 0.5) - x->e.factor) > off || one > fine ||
            one < slower)
            return false;
    }
    return true;
}

bool parts_enough(struct hunt *h, const struct element *x)
{
    int all;

    if (!in_every_tier(h, x))
        return false;
    if (part_is_group(x->e.part))
        return is_one_cause(h, x) && enough_of_group(h, x);
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
