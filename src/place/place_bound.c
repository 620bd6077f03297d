/* SPDX-License-Identifier: BSD-3-Clause */
/* place_bound.c - lower bound on the time of any order.
 *
 * Steps: the cost of a group falls with K, the fewest members that it has in any domain it touches,
 * because more of its ring then runs inside domains and over more NICs.
 *
 *   bound     least step over all K with  K_1 K_2 ... <= g  for orthogonal axes
 *
 *   symbol    meaning
 *   K_i       every group of axis i has at least K_i members in each domain that it touches;
 *             then a rank of a domain has, along each of several orthogonal axes, K_i ranks of
 *             its line in the domain (by induction over the axes, the domain holds at least the
 *             product)
 *   g         slots of a domain; a line of axis i has at most g / (product of the others)
 *             members in any domain, which fixes the least number of domains that it touches
 *   a message at K   its time on the best group of that K: the fastest tiers inside and between
 *             domains, all NICs, the fewest racks, no slow part, and the actual number of groups at
 *             the same time
 *
 * Not every domain has g slots.  K is possible only if the domains can seat the parts that lines
 * are cut into (place_cut.c), where each member needs the slots of the other orthogonal axes beside
 * it.
 *
 * Slow parts can be avoided only if the ranks fit without them.  If the slots with NICs faster than
 * F do not seat the ranks, some rank has a NIC of factor F or less, and so has one group of each
 * axis.  Unless that group lies inside one domain, it costs at least as much as the best group with
 * its NICs at F.
 *
 * Not modelled, so the bound is lower than it could be: sharing of racks and leaves, slow pairs of
 * racks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* number of distinguished values of K, for domains of up to 128 slots and more */
enum { SHARES = 24 };

struct lines {
    struct span span;
    int few[SHARES], count; /* values of K, ascending */
    /* Least time [K][most members of any domain][message]; 0: not computed yet. */
    double *least;
    double *slow; /* same with NICs at F, for any K: [F][most members][message] */
    int chosen;   /* index of K */
};

struct bound {
    struct placer *pl;
    struct matrix healthy; /* copy without exceptions; shares all other data */
    double outer;          /* factor of the NICs being priced: 1 or F */
    struct room room;
    struct lines *axis;
    int axes;
    double one[TRAFFIC_MAX], best_one[TRAFFIC_MAX], best;
};

/* --- least cost of a group --- */

/* Set a tier inside domains and one between them; -1: none. */
static void set_tiers(struct ways *w, int inner, int outer)
{
    int n = w->shape.ranks, beside = w->shape.per_domain - 1;

    w->inner = inner;
    w->outer = outer;
    memset(w->share, 0, sizeof(w->share));
    if (inner >= 0)
        w->share[inner] += (outer < 0 ? n - 1.0 : beside) / (n - 1);
    if (outer >= 0)
        w->share[outer] += (inner < 0 ? n - 1.0 : n - 1.0 - beside) / (n - 1);
}

/* Returns the least time over the tiers that hops of such a shape can use. */
static double on_any_tier(const struct bound *b, const struct message *msg, struct ways *w)
{
    const struct matrix *m = &b->healthy;
    bool in = w->shape.ranks > w->shape.domains, out = w->shape.domains > 1;
    double least = INFINITY;

    for (int i = in ? 0 : -1; i < (in ? m->tiers : 0); i++)
        for (int o = out ? 0 : -1; o < (out ? m->tiers : 0); o++) {
            if (o >= 0 && !tier_between_domains(&m->tier[o]))
                continue;
            if (!in && w->shape.ranks > b->room.reach[o])
                continue;
            set_tiers(w, i, o);
            double sec = pricer_ways(m, msg, w);
            least = sec < least ? sec : least; /* ignores unknown (NAN) */
        }
    return least;
}

static struct ways ways_at(const struct bound *b, int n, int few, int domains, int nics, int racks)
{
    struct ways w = {.shape = {n, domains, few, domains, nics, racks},
                     .crossings = domains > 1 && racks > 1 ? racks : 0,
                     .at_once = b->pl->ranks / n,
                     .inner_factor = 1};
    double outer = domains > 1 ? b->outer : 1;

    for (int s = 0; s < SCHEDULES; s++)
        w.slow[s] = (struct ways_slow){outer, 0, outer < 1 ? 0 : -1, -1};
    return w;
}

/* Returns the least time over numbers of racks and NICs. */
static double in_domains(const struct bound *b, const struct message *msg, int few, int domains)
{
    int n = msg->span.size, nics = few < b->room.nics ? few : b->room.nics;
    double least = INFINITY;

    for (int racks = b->room.rack ? 1 : 0; racks <= (b->room.rack ? 2 : 0); racks++)
        for (int k = 1; k <= nics && (racks != 1 || n <= b->room.rack);
             k += nics > 1 ? nics - 1 : 1) {
            struct ways w = ways_at(b, n, few, domains, k, racks);
            least = fmin(least, on_any_tier(b, msg, &w));
        }
    return least;
}

/* Measured shapes with this number of ranks count as measured, whatever the model predicts for
 * others. */
static double as_measured(const struct bound *b, const struct message *msg, int few)
{
    const struct matrix *m = &b->healthy;
    double least = INFINITY;

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->op != msg->op || c->shape.ranks != msg->span.size || c->shape.per_domain != few)
            continue;
        struct ways w =
            ways_at(b, msg->span.size, few, c->shape.domains, c->shape.nics, c->shape.racks);
        w.crossings = c->crossings;
        least = fmin(least, on_any_tier(b, msg, &w));
    }
    return least;
}

/* Returns the least seconds of a message on a group with `few` members in its emptiest domain and
 * at most `many` in any. */
static double least_at(const struct bound *b, const struct message *msg, int few, int many)
{
    int n = msg->span.size, most = n / few;
    int fewest = few == n ? 1 : 1 + (n - few + many - 1) / many;

    if (few < n && fewest < 2)
        fewest = 2;
    if (most > b->room.domains)
        most = b->room.domains;
    double least = as_measured(b, msg, few);
    for (int d = fewest; d <= most; d = d < most && 2 * d > most ? most : 2 * d)
        least = fmin(least, in_domains(b, msg, few, d));
    return least;
}

/* Returns the least over all K from `low` to `few`. */
static double least_between(const struct bound *b, const struct message *msg, int low, int few,
                            int many)
{
    double least = INFINITY;

    for (int k = low; k <= few; k++)
        least = fmin(least, least_at(b, msg, k, many < k ? k : many));
    return least;
}

/* --- the axes --- */

/* Choose the values of K: 1 to 16, 24, 32, 48 ... and the most. */
static void share_out(struct lines *a, int most)
{
    for (int k = 1; k < most && a->count < SHARES - 1; k += k < 16        ? 1
                                                            : k & (k - 1) ? k / 3
                                                                          : k / 2)
        a->few[a->count++] = k;
    a->few[a->count++] = most;
}

static struct lines *lines_of(struct bound *b, struct span span)
{
    for (int i = 0; i < b->axes; i++)
        if (span_equal(b->axis[i].span, span))
            return &b->axis[i];
    struct lines *a = &b->axis[b->axes++];
    *a = (struct lines){.span = span};
    share_out(a, span.size < b->room.slots ? span.size : b->room.slots);
    a->chosen = a->count - 1;
    size_t row = (size_t)a->count * (size_t)b->pl->step->traffic.messages;
    a->least = mem_calloc((size_t)(a->count + SLOWER) * row, sizeof(double));
    a->slow = a->least + (size_t)a->count * row;
    return a;
}

/* Returns the smallest K that the k-th value stands for: it covers all K above the previous value.
 * An uncut line has all its members. */
static int fewest_at(const struct lines *a, int k)
{
    int few = k ? a->few[k - 1] + 1 : 1;

    return 2 * few > a->span.size ? a->span.size : few;
}

static int fewest_of(const struct lines *a)
{
    return fewest_at(a, a->chosen);
}

/* Returns the least time of message i at the k-th value of K or a lower one; many: index of the
 * most in a domain. */
static double least_of(const struct bound *b, const struct lines *a, int k, int many, int i)
{
    const struct message *msg = &b->pl->step->traffic.message[i];
    double least = INFINITY;

    for (; k >= 0; k--) {
        double *at =
            &a->least[((size_t)k * a->count + many) * (size_t)b->pl->step->traffic.messages + i];
        if (*at == 0)
            *at = least_between(b, msg, fewest_at(a, k), a->few[k], a->few[many]);
        least = fmin(least, *at);
    }
    return least;
}

static void set_axis(struct bound *b, const struct lines *a, int k, int many)
{
    for (int i = 0; i < b->pl->step->traffic.messages; i++)
        if (span_equal(b->pl->step->traffic.message[i].span, a->span))
            b->one[i] = least_of(b, a, k, many < k ? k : many, i);
}

/* Returns the least time for the group of a rank with the f-th factor. */
static double slow_of(struct bound *b, const struct lines *a, int f, int many, int i)
{
    double *at =
        &a->slow[((size_t)f * a->count + many) * (size_t)b->pl->step->traffic.messages + i];

    if (*at == 0) {
        b->outer = b->room.factor[f];
        *at = least_between(b, &b->pl->step->traffic.message[i], 1, a->few[many], a->few[many]);
        b->outer = 1;
    }
    return *at;
}

static void set_slow(struct bound *b, const struct lines *a, int f, int many)
{
    const struct traffic *t = &b->pl->step->traffic;

    for (int i = 0; i < t->messages; i++) /* sendrecv may leave a domain over other NICs */
        if (span_equal(t->message[i].span, a->span) && op_table[t->message[i].op].links != OP_NEXT)
            b->one[i] = fmax(b->one[i], slow_of(b, a, f, many, i));
}

/* True if the slots above the f-th factor can seat the ranks at the axis's K.  Each member needs
 * `beside` slots beside it, `whole` of them in lines that are not cut. */
static bool seated(const struct bound *b, const struct lines *a, long beside, long whole, int f)
{
    const struct cut_lines l = {.ranks = b->pl->ranks,
                                .size = a->span.size,
                                .few = fewest_of(a),
                                .beside = beside > whole ? beside : whole,
                                .whole = whole,
                                .slots = b->room.slots,
                                .of = b->room.of_size + f * (b->room.slots + 1)};

    return cut_possible(&l);
}

/* True if all groups of b cross those of a: the digits of b's ranks are above those of a. */
static bool across(const struct span *a, const struct span *b)
{
    return b->stride % (a->size * a->stride) == 0;
}

/* Returns the largest product of K over orthogonal axes among the first `count`: ranks they need in
 * one domain. */
static long product_of(const struct bound *b, int count)
{
    long product[TRAFFIC_MAX], most = 1;

    for (int i = 0; i < count; i++) {
        product[i] = 1;
        for (int k = 0; k < i; k++)
            if (across(&b->axis[k].span, &b->axis[i].span) && product[k] > product[i])
                product[i] = product[k];
        product[i] *= fewest_of(&b->axis[i]);
        most = product[i] > most ? product[i] : most;
    }
    return most;
}

/* Same over axes orthogonal to axis `at`, excluding it.  whole: only axes with uncut lines, with
 * all their ranks. */
static long beside(const struct bound *b, int at, bool whole)
{
    long product[TRAFFIC_MAX], most = 1;

    for (int i = 0; i < b->axes; i++) {
        const struct lines *a = &b->axis[i];
        const struct span *span = &a->span, *of = &b->axis[at].span;
        bool right = i != at && (across(span, of) || across(of, span));
        long own = !right || (whole && fewest_of(a) < span->size) ? 0 : fewest_of(a);
        product[i] = own;
        for (int k = 0; k < i && own; k++)
            if (across(&b->axis[k].span, span) && product[k] * own > product[i])
                product[i] = product[k] * own;
        most = product[i] > most ? product[i] : most;
    }
    return most;
}

static int by_stride(const void *a, const void *b)
{
    const struct lines *x = a, *y = b;

    return x->span.stride != y->span.stride ? x->span.stride - y->span.stride
                                            : x->span.size - y->span.size;
}

/* Returns the index of the lowest F whose slots, with all slower ones, cannot be left out on some
 * axis; factors: none. */
static int slowest_needed(const struct bound *b)
{
    int f = 0;

    for (bool fits = true; fits && f < b->room.factors; f += fits)
        for (int i = 0; i < b->axes && fits; i++)
            fits = seated(b, &b->axis[i], beside(b, i, false), beside(b, i, true), f);
    return f;
}

/* Every axis has its K, so the members of each that a domain can still hold are known. */
static void take_shares(struct bound *b)
{
    double kept[TRAFFIC_MAX];
    int slow = slowest_needed(b);

    if (slow == 0) /* no seats even with every slot */
        return;
    memcpy(kept, b->one, sizeof(kept));
    for (int i = 0; i < b->axes; i++) {
        const struct lines *a = &b->axis[i];
        long room = b->room.slots / beside(b, i, false);
        int many = 0;
        while (many < a->count - 1 && a->few[many] < room)
            many++;
        set_axis(b, a, a->chosen, many);
        if (slow < b->room.factors)
            set_slow(b, a, slow, many);
    }
    double sec = place_step_sec(b->pl->step, b->one);
    if (sec < b->best) {
        b->best = sec;
        memcpy(b->best_one, b->one, sizeof(kept));
    }
    memcpy(b->one, kept, sizeof(kept));
}

/* Try all K of axis `at` and the later ones, largest first.  Axes not yet chosen count with their
 * least times. */
static void choose(struct bound *b, int at)
{
    if (at == b->axes) {
        take_shares(b);
        return;
    }
    struct lines *a = &b->axis[at];
    for (a->chosen = a->count - 1; a->chosen >= 0; a->chosen--) {
        /* same as the previous one */
        bool again = a->chosen < a->count - 1 && fewest_of(a) == a->span.size;
        if (again || product_of(b, at + 1) > b->room.slots || !seated(b, a, 1, 1, 0))
            continue;
        set_axis(b, a, a->chosen, a->count - 1);
        if (place_step_sec(b->pl->step, b->one) < b->best)
            choose(b, at + 1);
    }
    a->chosen = a->count - 1;
    set_axis(b, a, a->chosen, a->chosen);
}

static double step_bound(struct placer *pl)
{
    struct bound b = {.pl = pl, .healthy = *pl->ask->matrix, .outer = 1, .best = INFINITY};
    bool priced = true;

    b.healthy.exceptions = 0;
    b.axis = mem_calloc((size_t)pl->step->traffic.messages + 1, sizeof(*b.axis));
    room_make(&b.room, pl->pool);
    for (int i = 0; i < pl->step->traffic.messages; i++)
        if (pl->step->traffic.message[i].span.size > 1)
            lines_of(&b, pl->step->traffic.message[i].span);
    qsort(b.axis, (size_t)b.axes, sizeof(*b.axis), by_stride);
    for (int i = 0; i < b.axes; i++)
        set_axis(&b, &b.axis[i], b.axis[i].chosen, b.axis[i].chosen);
    for (int i = 0; i < pl->step->traffic.messages; i++)
        priced &= b.one[i] < INFINITY;
    if (priced) {
        memcpy(pl->floor_one, b.one, sizeof(b.one));
        choose(&b, 0);
    }
    for (int i = 0; i < b.axes; i++)
        free(b.axis[i].least);
    free(b.axis);
    free(b.room.of_size);
    if (!(b.best < INFINITY))
        return 0; /* unknown */
    memcpy(pl->least_one, b.best_one, sizeof(b.best_one));
    return b.best;
}

/* --- demand --- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* Assign the largest flows to the nearest peers. */
static double busy_bound(const struct matrix *m, double *bytes, int n, const int *peers)
{
    double sec = 0;
    int tier = 0;

    qsort(bytes, (size_t)n, sizeof(*bytes), by_size);
    for (int i = 0; i < n && bytes[i] > 0; i++) {
        while (tier < m->tiers - 1 && i >= peers[tier])
            tier++;
        double least = INFINITY;
        for (int t = tier; t < m->tiers; t++) /* a farther tier may be the faster one */
            least = fmin(least, matrix_tier_time(&m->tier[t], bytes[i], 1));
        sec += least;
    }
    return sec;
}

static double demand_bound(struct placer *pl)
{
    const struct matrix *m = pl->ask->matrix;
    double *bytes = mem_calloc((size_t)pl->ties->start[pl->ranks] + 1, sizeof(double)), most = 0;
    int peers[TIER_MAX];

    for (int t = 0; t < m->tiers; t++) {
        peers[t] = node_pool_peers(pl->pool, t);
        if (t && peers[t] < peers[t - 1])
            peers[t] = peers[t - 1];
    }
    for (int r = 0; r < pl->ranks; r++)
        for (int in = 0; in < 2; in++) {
            const struct tie *t = &pl->ties->tie[pl->ties->start[r]];
            int n = pl->ties->start[r + 1] - pl->ties->start[r];
            for (int i = 0; i < n; i++)
                bytes[i] = in ? t[i].in : t[i].out;
            most = fmax(most, busy_bound(m, bytes, n, peers));
        }
    free(bytes);
    return most;
}

double placer_bound(struct placer *pl)
{
    return pl->least = pl->ask->demand ? demand_bound(pl) : step_bound(pl);
}
