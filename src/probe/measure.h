/* measure.h - run a plan on a transport: warm-up, stop rule, epochs, verification, retest, points.
 *
 * Stop rule (Hoefler & Belli, SC'15; Le Boudec 2010), of one size of one group in one epoch:
 *
 *   samples   in batches of 16, 32, 64 ...; the group's first member decides and tells the others
 *   ci        until (hi - lo) / 2 <= half_width * median, lo .. hi the 95 % nonparametric interval
 *             of the median (stats.h)
 *   time      or until time_cap seconds were spent; of groups that run in parallel all, always
 *   count     with --iters instead: exactly so many
 *
 * Every point is measured in several epochs spread over the campaign, because consecutive samples
 * are not independent. */
#ifndef RG_MEASURE_H
#define RG_MEASURE_H

#include <signal.h>

#include "base/err.h"
#include "probe/plan.h"
#include "probe/point.h"
#include "probe/transport.h"
#include "probe/world.h"

/* Where the seconds of a campaign go, by rank 0's clock. */
enum spent {
    SPENT_START,   /* until the first turn: MPI, topology, plan */
    SPENT_SAMPLES, /* messages, of the group that took longest in each turn; those that warm up too */
    SPENT_OPENING,   /* the rest of what that group did: communicators, buffers, checks, agreeing */
    SPENT_EXCHANGES, /* the rest of the turns: all ranks meet, points are written */
    SPENT_COUNT
};
struct measure_time {
    double began;     /* log_now() of the program's first line; the caller's */
    double estimated; /* s; made before the first round, by a few turns of each kind */
    double took, warmup /* of the samples */, spent[SPENT_COUNT];
};

struct measure_opts {
    double half_width; /* asked half-width of the CI, share of the median; default 0.05 */
    double time_cap;   /* s per point and epoch; 0: plan_time_cap() */
    int warmup;        /* runs that are not counted, default 16 (fewer when one takes long) */
    int iters;         /* > 0: exactly this many samples instead of the stop rule (-n) */
    bool check;        /* verify data once per (round, group, size), in its first epoch */
    bool retest;       /* suspects again beside controls: schedule_retest() */
    bool quick;        /* at most QUICK_CAP s or, if that is more, QUICK_MESSAGES a point; few
                        * looks at suspects */
    double max_run;    /* s: a size whose message is expected to take longer ends the ladder;
                        * 0: 0.1 between CPUs, 1 between GPUs */
    double hang_after; /* s without any movement until a rank is said to hang, 0: by transport */
    bool nics;         /* the plan's rounds through the NICs, and only those */
    struct measure_time *time; /* what it took, on rank 0; NULL: not asked, nor estimated */
    bool dry;                  /* the estimate is all: no more than its turns is measured */
    double budget; /* s for the whole campaign, 0: none; exceeding it ends with EXIT_CUT */
};
#define MEASURE_DEFAULTS                                                                           \
    ((struct measure_opts){.half_width = 0.05, .warmup = 16, .check = true, .retest = true})

#define QUICK_CAP 5e-3
enum { QUICK_MESSAGES = 10 };

/* Set by a signal handler: the campaign ends after the point in flight with EXIT_CUT. */
extern volatile sig_atomic_t measure_stop;

/* Collective over w.  log is used on rank 0 only (NULL elsewhere).  `topo` is only read (names for
 * the progress line, tiers for the retest, which GPU each rank watches: taint.h).  Returns 0 when
 * everything of this pass of the plan (o->nics) is in the log. */
int measure_plan(struct world *w, const struct transport *tr, const struct topo *topo,
                 struct plan *plan, const struct measure_opts *o, struct points_log *log,
                 struct err *err);

#endif
