/* collective.h - the time of a collective on one group.  Three steps resolve a group once: the paths of its traffic
 * and the model of the tiers (model.c), the evidence of curves of other shapes (join.c), the curves of its own shape and
 * the parts that slow it (collective.c).  After that each size costs a few multiplications and no allocation.
 * matrix_collective() adds the words (collective_cost.c).
 *
 * The same rule holds for all groups, measured or not.  Within the sizes of a curve its points give the time.  Beyond
 * the largest size the time grows from the last points with the slope of the tiers' model; the larger the share of the
 * last time that moved bytes, the more weight the slope of the last two octaves gets.  Below the smallest size the
 * ratio to the model is kept.  Intervals widen with the distance from the curve.
 * Median error on 133 NCCL curves that were cut:
 *
 *   cut at      met at     this rule   constant bus bandwidth
 *   16 MiB      128 MiB    18 %        49 %
 *   128 MiB     512 MiB    3 %         9 %
 *
 * Measured and modelled shapes may not contradict the tiers: a group in several domains costs no less than the same
 * number of ranks inside one domain, if one holds them, and little less than in the fewest domains that hold them,
 * unless it was measured at that size or the tiers themselves say so. */
#ifndef RG_COLLECTIVE_H
#define RG_COLLECTIVE_H

#include <stdatomic.h>
#include <stdlib.h>

#include "matrix/algorithm.h"
#include "matrix/matrix.h"

/* --- paths of a group, and the model: used without a measured or published curve, for the expected
 * value, and to apply slow parts to measured curves --- */

/* Slow parts that a schedule of a group crosses. */
struct ways_slow {
    double outer;  /* rate left between domains, share; 1: healthy */
    double add;    /* latency added, s */
    int exception; /* index of the limiting part; -1: none */
    int spared; /* index of the first part inside a group of several domains that is not crossed; -1: none */
};

/* Paths of a group's traffic; O(n) to fill. */
struct ways {
    struct shape shape;
    int inner, outer;       /* slowest tier inside a domain and between domains; -1: none */
    int crossings;          /* consecutive members on tier `outer` that lie in different racks */
    int at_once;            /* groups like this one that run at the same time */
    double share[TIER_MAX]; /* share of the other members by tier, seen from a member with the
                               fewest others in its domain */
    double inner_factor;    /* rate left inside a domain by the slowest part, share; 1: healthy */
    struct ways_slow slow[SCHEDULES]; /* differ only for operations along rings */
};

/* A group in rank order, by its members or by ranges of them. */
struct members {
    const int *ids;
    int n;
    const struct ranges *ranges; /* NULL: ids */
};
/* Like ways_of(), for a caller that knows which exceptions can apply: ascending indices; NULL: the first `exceptions`.
 * Ranges give the same result as their members, bit for bit, in time proportional to the blocks that they touch.
 * Returns -1 if members must be listed. */
int ways_of_some(struct ways *w, const struct matrix *m, const struct members *g, enum op op,
                 const int *exception, int exceptions);
/* Ways of the same group by another operation, whose schedule crosses other parts; arguments and result as above. */
int ways_parts(struct ways *w, const struct matrix *m, const struct members *g, enum op op,
               const int *exception, int exceptions);
/* healthy: exceptions are ignored. */
static inline void ways_of(struct ways *w, const struct matrix *m, const int *ids, int n,
                           enum op op, bool healthy)
{
    ways_of_some(w, m, &(struct members){ids, n, NULL}, op, NULL, healthy ? 0 : m->exceptions);
}
/* Fill near with the paths of the same number of ranks inside one healthy domain; few: in the fewest domains that hold
 * them, at least two.  Returns false if the group has no more domains than that, or if one domain cannot hold it. */
bool ways_near(struct ways *near, const struct matrix *m, const struct ways *w, bool few);
/* Return the same paths without slow parts. */
static inline struct ways ways_healthy(const struct ways *w)
{
    struct ways healthy = *w;

    healthy.inner_factor = 1;
    for (int s = 0; s < SCHEDULES; s++)
        healthy.slow[s] = (struct ways_slow){1, 0, -1, -1};
    return healthy;
}
static inline bool ways_slowed(const struct ways *w)
{
    bool slowed = false;

    for (int s = 0; s < SCHEDULES; s++)
        slowed = slowed || w->slow[s].exception >= 0;
    return slowed;
}
/* Model of these ways for any size.  All tables are looked up here, so that a price is a few operations. */
struct ways_class {
    double share; /* share of the other members that an exchange reaches this way */
    double alpha; /* latency of one hop, s */
    double rate;  /* B/s */
    bool outside;
};
struct ways_model {
    enum op op;
    int ranks;
    bool dead;
    double alpha; /* latency of an exchange or of one hop, s */
    int classes;
    struct ways_class list[TIER_MAX];
    double add[SCHEDULES];        /* latency that slow parts add to the time, s */
    bool nccl;                    /* GPUs and not MPI, which has algorithms of its own */
    struct algorithm_group group; /* set for operations along rings */
    struct algorithm_line line[ALGORITHM_LINES];
    int lines;
};
void ways_model(struct ways_model *x, const struct matrix *m, const struct ways *w, enum op op);
/* Seconds; NAN when a tier that is needed has no curve, INFINITY when a part is dead. */
double ways_time(const struct ways_model *x, double bytes);
/* The schedule that the healthy group runs at this size: only parts that this schedule crosses slow the group. */
static inline enum schedule_kind ways_schedule(const struct ways_model *healthy, double bytes)
{
    double sec;

    if (!healthy->nccl || op_table[healthy->op].links != OP_RING || healthy->dead)
        return SCHEDULE_OWN;
    return algorithm_schedule(
        algorithm_fastest(healthy->line, healthy->lines, bytes, &sec)->algorithm);
}
/* Effect of slow parts on a time: seconds = time * factor + add.  Latency is added as seconds, because a curve that is flat
 * where the model already rises would otherwise get less of it with each size. */
struct ways_slower {
    double factor, add;
};
/* The fastest algorithm counts, be it another than the slowed one, so that more bytes never take
 * less.  factor: INFINITY where the schedule crosses a dead part. */
static inline struct ways_slower ways_slower(const struct ways_model *slow,
                                             const struct ways_model *healthy, double bytes)
{
    double sec, with;

    if (slow->dead)
        return (struct ways_slower){INFINITY, 0};
    if (op_table[slow->op].links != OP_RING) {
        double add = slow->add[SCHEDULE_OWN];
        return (struct ways_slower){(ways_time(slow, bytes) - add) / ways_time(healthy, bytes),
                                    add};
    }
    const struct algorithm_line *line =
        algorithm_fastest(healthy->line, healthy->lines, bytes, &sec);
    if (isinf(algorithm_line_time(&slow->line[line - healthy->line], bytes)))
        return (struct ways_slower){INFINITY, 0};
    line = algorithm_fastest(slow->line, slow->lines, bytes, &with);
    double add = slow->add[algorithm_schedule(line->algorithm)];
    return (struct ways_slower){(with - add) / sec, add};
}
/* The slowest tier inside a host or domain; -1: none. */
int ways_inner(const struct matrix *m);
static inline double model_time(const struct matrix *m, const struct ways *w, enum op op,
                                double bytes)
{
    struct ways_model x;

    ways_model(&x, m, w, op);
    return ways_time(&x, bytes);
}

/* --- expert-parallel kernels (ep.c) --- */

/* Seconds of dispatch, or of combine, for a group with these ways (of OP_ALL_TO_ALL).  NAN where no
 * kernel is known that serves it, INFINITY when a part is dead. */
double ep_time(const struct matrix *m, const struct ways *w, double inside, double across,
               bool dispatch);
/* Return the part of `bytes`, spread evenly over the group, that stays in the domain of a member with the fewest
 * others there. */
static inline double ep_inside(const struct shape *s, double bytes)
{
    return bytes * s->per_domain / s->ranks;
}

/* --- curves resolved --- */

/* Curves that may stand in for the group: same op, same domain pattern; below and above in ranks.
 */
struct curves_found {
    const struct collective *same, *below, *above;
    bool gpus; /* the matrix is of GPUs: rings are pipelined */
    bool
        nccl; /* NCCL model: between domains only the same shape counts; struct join uses the other shapes */
};

/* Correction of the model from curves of other shapes between domains: the error of the model on each curve, compared
 * at equal ratios of the model's time to its latency, not at equal bytes.  The same size is limited by latency on many
 * ranks and by bandwidth on few, but the same number of octaves above the latency is the same regime for all.  A level
 * and a slope over octaves of domains are fitted to the curves; nearer curves weigh more. */
enum { JOIN_KNOTS = 9 };
#define JOIN_SAME                                                                                  \
    4.33 /* weight of a curve of the very shape: the limit of join.c's at no distance */
struct join {
    enum op op;
    int curves;                /* number of curves */
    double far;                /* octaves of domains, of GPUs and of NICs to the nearest */
    double base;               /* log2 s: the model's latency */
    double miss[JOIN_KNOTS];   /* log2 of measured / modelled */
    double weight[JOIN_KNOTS]; /* weight of the curves at each knot */
};

/* Resolve j.  w: paths of the healthy group; own: their model. */
void join_resolve(struct join *j, const struct matrix *m, enum op op, const struct ways *w,
                  const struct ways_model *own, bool published);
/* Return the corrected time for a time of the model.  error: half-width of the 90 % interval as a share, or NULL. */
double join_at(const struct join *j, double sec, double *error);

/* A size with the time of the curves and the time of the model for the healthy group. */
struct curve_end {
    double bytes, sec, model;
    double
        moving; /* share of sec that grows with the size; at the first size: share that does not */
};

/* A healthy group: its curves, and their continuation beyond the ends. */
struct collective_reading {
    struct ways ways;
    struct ways_model model; /* model of ways */
    struct curves_found found;
    struct join join;             /* curves of other shapes, where none is found */
    struct curve_end first, last; /* ends of all curves in use; not set without curves */
    double alone;                 /* first.model with as many groups at once as the curve had */
    double slope;                 /* factor on the model's slope beyond the last size */
    double slopes;                /* slope of the curves there / slope of the model */
};

/* Returns the curve that answers; NULL: none was found. */
static inline const struct collective *reading_answers(const struct collective_reading *r)
{
    return r->found.same ? r->found.same : r->found.below ? r->found.below : r->found.above;
}
/* The end that a size lies beyond; NULL: the curves hold it, or there are none. */
static inline const struct curve_end *reading_beyond(const struct collective_reading *r,
                                                     double bytes)
{
    return !reading_answers(r)      ? NULL
           : bytes > r->last.bytes  ? &r->last
           : bytes < r->first.bytes ? &r->first
                                    : NULL;
}

/* A group with everything that its price depends on, but for the names of its parts: groups of one shape share it. */
struct collective_priced {
    enum op op;
    bool published;
    struct ways ways;
    struct ways_model model; /* model of ways, if a part is slow */
    /* Reading `near`: the same number of ranks in one domain, or in the fewest that hold them */
    struct collective_reading own, near;
    bool floored; /* near exists */
    double keep;  /* lower bound as a share of near's time */
};

/* Cache of resolved groups of a matrix, for queries by shape from any number of threads: an entry is never changed,
 * moved or removed before known_free().  A cache of zeros is empty.  The matrix must not change meanwhile.  Groups that
 * find no room are resolved for each query. */
enum { KNOWN = 1024, KNOWN_TRIES = 8 };
struct known_shapes {
    _Atomic(struct collective_priced *) slot[KNOWN];
};
static inline void known_free(struct known_shapes *k)
{
    for (int i = 0; i < KNOWN; i++)
        free(k->slot[i]);
}

struct collective_quote {
    struct ways ways;
    const struct collective_priced *known; /* NULL: own */
    struct collective_priced own;
};
static inline const struct collective_priced *collective_of(const struct collective_quote *q)
{
    return q->known ? q->known : &q->own;
}

/* ways: ways_of() of the group and op, at_once set.  A collective of at least two ranks.  The
 * matrix must outlive the quote.  published: measured curves are not looked at.  known: of this matrix, must outlive the
 * quote; NULL: none. */
void collective_resolve(struct collective_quote *q, const struct matrix *m, enum op op,
                        const struct ways *ways, bool published, struct known_shapes *known);
/* Seconds: what matrix_collective_at() says.  NAN when unknown, INFINITY when a part is dead. */
double collective_time(const struct collective_quote *q, double bytes);
/* Seconds of the healthy group; by: the reading that gave them. */
double collective_healthy(const struct collective_priced *q, double bytes,
                          const struct collective_reading **by);
/* The same with interval, basis and words; m: the matrix of the quote. */
void collective_cost(const struct collective_quote *q, const struct matrix *m, double bytes,
                     struct cost *out);

#endif
