/* noise_impl.h - declarations shared by src/noise: places, channels, residuals, effects of parts.
 *
 * places    the groups of each endpoint
 * channel   looks of one kind in a set of tiers, judged by rate or by spread
 * view      residuals of one stage: value - usual(class) - turn; fine partners
 * keyed     looks by part, in the order of their residuals, so that medians need no sorting
 * steady    effects of all parts of a level through one lens, with their chances
 * claim     a part that stands out in a channel
 *
 * A look is seen from both ends; end 0 is the sender. */
#ifndef RG_NOISE_IMPL_H
#define RG_NOISE_IMPL_H

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "noise/constants.h"
#include "noise/noise.h"

enum { CLASSES = LOOK_COUNT * TIER_MAX * 2 };

/* Kinds of parts, the widest first: the order of the search. */
/* A leaf that is a rack explains its rack pairs, so leaves come before rack pairs. */
enum rung { RUNG_RACK, RUNG_LEAF, RUNG_RACK_PAIR, RUNG_HOST, RUNG_NIC, RUNG_PAIR, RUNG_COUNT };
static inline bool rung_is_group(enum rung r)
{
    return r == RUNG_RACK || r == RUNG_LEAF || r == RUNG_HOST;
}
static inline bool rung_is_two(enum rung r)
{
    return r == RUNG_RACK_PAIR || r == RUNG_PAIR;
}

struct places {
    int n;
    int *of
        [RUNG_COUNT]; /* group of each endpoint; -1: unknown.  Rack pairs: the rack; NIC: itself */
    int count[RUNG_COUNT];           /* groups */
    struct lists member[RUNG_COUNT]; /* endpoints of each group, of rungs of groups */
    bool *
        same[RUNG_COUNT]; /* groups that have the endpoints of one narrower group: judged as that */
};
void places_make(struct places *p, const struct topo *t);
void places_free(struct places *p);
/* The rack with exactly the endpoints of the leaf; -1: no such rack. */
static inline int rack_of_leaf(const struct places *p, int leaf)
{
    const struct lists *l = &p->member[RUNG_LEAF];
    int rack = l->start[leaf] < l->start[leaf + 1] ? p->of[RUNG_RACK][l->at[l->start[leaf]]] : -1;

    return rack >= 0 && p->same[RUNG_RACK][rack] ? rack : -1;
}

/* --- what is usual --- */

/* Location and standard deviation of the fastest cluster that holds a third of v.  Reorders v. */
void usual_find(double *v, int n, double *m, double *sigma);
/* Return the quantile of v at this share, defined as in its weighted twin.  Reorders v. */
double usual_quantile(double *v, int n, double share);

struct view {
    const struct noise_input *in; /* stage 2: without the looks before its first */
    int from;                     /* index of the first look of `in` among all */
    const struct places *places;
    const struct view *base; /* stage 1, for the view of stage 2 */
    const bool *selected;    /* endpoints that stage 2 suspects */
    bool fresh, tail;
    struct keyed
        *nic; /* room for the looks of a channel by endpoint, which is a large part of all memory */
    int blocks, *block; /* index of a block by its number */
    float *r;           /* residual by look; NAN: not in this view */
    struct lists of;    /* looks of this view by kind and scope: those of a channel, in time */
    struct class_fit {
        double m, sigma, weight;
        int looks;
    } class[CLASSES];
    bool calm[CLASSES];         /* no turn is slow as a whole; of stage 1 */
    bool crowded[CLASSES / 2];  /* looks beside others are left out; of stage 1 */
    bool hashed[CLASSES / 2];   /* looks under load collide by chance; of stage 1 */
    unsigned *fine[LOOK_COUNT]; /* mask by endpoint: bit 2 * tier + end */
    double sd_turn;
};
void view_make(struct view *v); /* input: the fields above blocks */
void view_free(struct view *v);
static inline int class_of(const struct look *k)
{
    return (k->kind * TIER_MAX + k->tier) * 2 + k->alone;
}
static inline int end_of(const struct look *k, int end)
{
    return end ? k->dst : k->src;
}
/* True if this end of a look does not slow the other end. */
static inline bool end_is_fine(const struct view *v, const struct look *k, int end)
{
    return v->fine[k->kind][end_of(k, end)] >> (2 * k->tier + end) & 1;
}
enum { SCOPES = TIER_MAX + 1 }; /* all tiers that cross NICs, or one other */

static inline int scope_of(const struct noise_input *in, enum look_kind kind, int tier)
{
    return (int)kind * SCOPES + (in->crosses[tier] ? 0 : tier + 1);
}

void view_list(struct view *v); /* fills v->of; looks without a residual are in no list */
/* Looks of a kind in these tiers, which all cross NICs, or are one. */
static inline const int *view_looks(const struct view *v, enum look_kind kind, unsigned tiers,
                                    int *n)
{
    int tier = 0, scope;

    while (tier < TIER_MAX - 1 && !(tiers >> tier & 1))
        tier++;
    scope = scope_of(v->in, kind, tier);
    *n = v->of.start[scope + 1] - v->of.start[scope];
    return v->of.at + v->of.start[scope];
}

/* --- channels --- */

/* Inherited by stage 2 from a lens of stage 1: how parts differ and how blocks vary. */
struct likeness {
    double s0, d0, centre, pop, limit, least;
    double
        *back; /* blocks of parts that are mostly fine, as far as they are below limit; ascending */
    int backs;
    long seen;     /* all such blocks */
    double blocks; /* blocks per part, median */
};

/* Risk that a look of a rate is slow by chance, by sort (tier, alone or not); factor: how much higher near a part. */
enum { SORTS_OF_RATES = 2 * TIER_MAX };
struct likely {
    double risk[SORTS_OF_RATES], rho;
    float *factor;
};

enum { LENS_MAX = 3 * (TIER_MAX + 1) + 2 };
struct channel {
    enum look_kind kind;
    bool tail, nic;
    unsigned tiers; /* bit mask */
    struct likeness like[RUNG_COUNT][LENS_MAX];
    struct likeness control[LENS_MAX]; /* stray blocks of the controls in stage 2 */
    struct likely likely[2][2];        /* hosts, NICs; slow, deep */
    float *base[TIER_MAX][2]; /* rates: effects of endpoints by tier, as sender and as receiver */
};
static inline bool channel_has(const struct channel *c, const struct look *k)
{
    return k->kind == c->kind && c->tiers >> k->tier & 1;
}
/* True if flows of the channel are hashed onto uplinks, where looks beside others collide by chance. */
static inline bool channel_collides(const struct view *v, const struct channel *c)
{
    bool hashed = false;

    for (int t = 0; t < TIER_MAX; t++)
        hashed |= c->tiers >> t & 1 && v->hashed[LOOK_RATE * TIER_MAX + t];
    return hashed && c->kind != LOOK_LATENCY;
}
/* Latency and both ways at once are the same seen from either end. */
static inline bool channel_has_sides(const struct channel *c)
{
    return c->kind == LOOK_RATE || c->kind == LOOK_SMALL || c->kind == LOOK_LARGE;
}

/* Least and most residual of a channel's looks; false: no look. */
static inline bool channel_range(const struct view *v, const struct channel *c, const float *r,
                                 float *lo, float *hi)
{
    int n;
    const int *at = view_looks(v, c->kind, c->tiers, &n);

    *lo = INFINITY;
    *hi = -INFINITY;
    for (int i = 0; i < n; i++)
        if (channel_has(c, &v->in->look[at[i]])) { /* NAN is neither */
            *lo = r[at[i]] < *lo ? r[at[i]] : *lo;
            *hi = r[at[i]] > *hi ? r[at[i]] : *hi;
        }
    return *lo <= *hi;
}

/* --- looks by part --- */

enum beside { BESIDE_ANY, BESIDE_PARALLEL };
struct pick { /* looks of a channel that count, and the remaining residuals */
    const struct view *v;
    const struct channel *c;
    const float *r; /* residual by look */
    enum beside beside;
    bool same_pair;
    bool unsorted; /* items in any order */
};

struct keyed {
    int parts, most; /* most: items of a part */
    size_t room;     /* allocated items of at, kept from one keyed_make() to the next */
    int *start;      /* items of part p: at[start[p]] .. at[start[p + 1] - 1], ascending in r */
    struct item {    /* a look, seen from one of its ends */
        float r;
        int look, self, other;
        unsigned short block;
        unsigned char class, bits; /* bit 0: the end; bit 1: the other end is fine */
    } * at;
    int (*two)[2];  /* rungs of two: the two groups */
    unsigned tiers; /* tiers of the looks; bit mask */
};
static inline int item_tier(const struct item *i)
{
    return i->class / 2 % TIER_MAX;
}
static inline int item_end(const struct item *i)
{
    return i->bits & 1;
}
static inline bool item_is_fine(const struct item *i)
{
    return i->bits >> 1;
}
/* List looks by endpoint, each from both ends; or (rungs of two) by pair, seen from the first end. */
void keyed_make(struct keyed *k, const struct pick *pick, enum rung rung);
void keyed_free(struct keyed *k);

/* Return a number that sorts like r; the lower half of its bits is `at`. */
static inline uint64_t order_rank(float r, int at)
{
    unsigned bits;

    memcpy(&bits, &r, sizeof(bits));
    return (uint64_t)(bits ^ (bits >> 31 ? ~0u : 1u << 31)) << 32 | (unsigned)at;
}
/* Merge ascending runs into one list, in at or spare; start[] has runs + 1 entries and is overwritten. */
const uint64_t *order_merge(uint64_t *at, uint64_t *spare, int *start, int runs);

void fine_find(struct view *v, unsigned tiers);

/* Selects the looks by which a part is judged. */
struct lens {
    enum side side;
    int tier;                                 /* -1: all */
    enum { LENS_OUT, LENS_IN, LENS_ALL } way; /* LENS_OUT: to fine partners outside */
    bool alone;                               /* only looks alone */
};
struct seen {
    float r, w;
    int look, self, other;
    unsigned short block;
    unsigned char class, tier, end;
    bool inside, fine, alone,
        first; /* first: true for one of the two ends of a look within a group */
};
bool lens_takes(const struct lens *l, const struct seen *s);

struct steady {
    int parts;
    float *est, *sd, *var;
    double *p;
    unsigned short *got, *deep; /* blocks; blocks that show most of the effect */
    struct likeness like;
};

struct claim {
    enum rung rung;
    int a, b;
    enum side side;
    int tier;
    const struct channel *channel;
    bool now_and_then, inside, inside_unknown, dead;
    double e, sd, p, share;
};
struct claims {
    struct claim *at;
    int count;
    long tests;
};

/* --- looking for parts --- */

struct hunt {
    const struct view *v;
    const struct places *places;
    struct channel *c;
    const struct claims *asked; /* stage 2: suspects; NULL: stage 1 */
    enum beside beside;
    double alpha;
    bool quiet;  /* looks differ by so little that no part can stand out */
    bool hasty;  /* a quiet channel is left: its tests count only if another channel has a claim */
    float *r;    /* residuals that are left */
    float *done; /* effect of named groups, by endpoint */
    bool stale;  /* r has changed since v->nic was made */
    bool taken;  /* effects were taken off r */
    struct keyed two; /* looks by pair of the current rung */
    uint64_t *rank;   /* buffer for the current group: twice `ranks` */
    int *run, ranks, runs;
    struct claims *out;
};
/* Looks of a part by run: of member i of a group, else one run of all; NULL: no more runs. */
static inline const struct item *hunt_run(const struct hunt *h, enum rung rung, int part, int i,
                                          int *n)
{
    const struct keyed *k = rung_is_two(rung) ? &h->two : h->v->nic;
    const struct lists *member = &h->places->member[rung];
    int id = i ? -1 : part;

    if (rung_is_group(rung))
        id = member->start[part] + i < member->start[part + 1] ? member->at[member->start[part] + i]
                                                               : -1;
    if (id < 0)
        return NULL;
    *n = k->start[id + 1] - k->start[id];
    return k->at + k->start[id];
}
/* List the current residuals by endpoint (RUNG_NIC; also if that list is stale) or by pair of a rung of two. */
void gather_renew(struct hunt *h, enum rung rung, bool same_pair);
static inline void gather_refresh(struct hunt *h)
{
    if (h->stale)
        gather_renew(h, RUNG_NIC, false);
}
void gather_free(struct hunt *h);
/* Store the looks of a part in seen[], ordered by r; returns their number.  gather_most(): maximum over the rung. */
int gather_part(struct hunt *h, enum rung rung, int part, struct seen *seen);
int gather_most(const struct hunt *h, enum rung rung);
int gather_count(const struct hunt *h, enum rung rung); /* parts */
/* Add claims of all rungs; for rates also set c->base, before any claim is taken off.  Returns false if the channel
 * was left. */
bool hunt_parts(struct hunt *h);
bool hunt_asks(const struct hunt *h, enum rung rung, int a, int b);
/* Quantile of the looks of a block that shows a part: the median, or a high one if flows collide by chance. */
static inline double hunt_quantile(const struct hunt *h)
{
    return (!h->asked || h->beside == BESIDE_PARALLEL) && channel_collides(h->v, h->c)
               ? noise_constants.clear
               : 0.5;
}

/* only: parts to judge; NULL: all. */
void steady_make(struct steady *s, struct hunt *h, enum rung rung, const bool *only,
                 const struct lens *lens, int lenses);
/* Number of tests of rack pairs in a quiet channel. */
long steady_racks(const struct hunt *h, const struct lens *lens, int lenses);
/* The same as steady_make() for parts with known blocks: z[part * blocks + block], NAN: not seen.  The caller frees like.back. */
void steady_cells(struct steady *s, const float *z, int parts, int blocks, double least);
void steady_free(struct steady *s, int lenses);

/* Leaves that lost uplinks, by stage 1; the caller frees.  full[]: by look, true through uplinks that are full. */
struct found *uplinks_find(const struct view *v, bool *full, int *founds);

/* Suspect single pairs that stand out between fine ends.  Records for stage 2 how often pairs do. */
void pairs_suspect(struct hunt *h);

/* Parts that are slow in some of their turns. */
void spells_find(struct hunt *h);
/* Find endpoints, hosts and pairs without an answer. */
void dead_find(struct claims *out, const struct noise_input *in, const struct places *places);

/* Drop claims that a named group explains. */
void claims_below(struct claims *c, const struct places *places);
void claims_sort(struct claims *c); /* by chance */

/* Claims of one part become one finding. */
struct naming {
    const struct noise_input *in;
    const struct places *places;
    const struct view *first, *second; /* second: NULL without stage 2 */
};
struct found *naming_make(const struct naming *n, const struct claims *c, int *founds);

#endif
