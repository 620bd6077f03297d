/* measure.h - run a plan on a transport: warm-up, stop rule, epochs, verification, retest, points.
 *
 * Stop rule (Hoefler & Belli, SC'15; Le Boudec 2010) for one size of one group in one epoch:
 *
 *   samples   in batches of 16, 32, 64 ...; the group's first member decides and sends its decision
 *   ci        until (hi - lo) / 2 <= half_width * median; lo .. hi is the 95 % nonparametric
 *             interval of the median (stats.h)
 *   time      or until time_cap seconds were spent; groups that run in parallel always use all of
 *             it
 *   count     with --iters instead: exactly that many
 *
 * Every point is measured in several epochs spread over the campaign, because consecutive samples
 * are not independent. */
#ifndef RG_MEASURE_H
#define RG_MEASURE_H

#include <signal.h>

#include "base/err.h"
#include "measure/plan.h"
#include "measure/point.h"
#include "measure/transports/transport.h"
#include "watch/world.h"

/* Phases of a campaign whose seconds are counted, by rank 0's clock. */
enum spent {
    SPENT_START,     /* until the first turn: MPI, topology, plan */
    SPENT_SAMPLES,   /* messages, warm-up included, of the slowest group of each turn */
    SPENT_OPENING,   /* other work of that group: communicators, buffers, checks, agreement */
    SPENT_EXCHANGES, /* rest of each turn: exchange between all ranks, writing of points */
    SPENT_COUNT
};
struct measure_time {
    double began;     /* log_now() at the program's first line; set by the caller */
    double estimated; /* s; from a few turns of each kind, made before the first round */
    double took, warmup /* warmup: part of SPENT_SAMPLES */, spent[SPENT_COUNT];
};

struct measure_opts {
    double half_width; /* wanted half-width of the CI, share of the median; default 0.05 */
    double time_cap;   /* s per point and epoch; 0: plan_time_cap() */
    int warmup;        /* runs that are not counted; default 16 (fewer if one run is long) */
    int iters;         /* > 0: exactly this many samples instead of the stop rule (-n) */
    bool check;        /* verify data once per (round, group, size), in its first epoch */
    bool retest;       /* measure suspects again together with controls: schedule_retest() */
    /* per point at most QUICK_CAP s or, if longer, QUICK_MESSAGES; few looks at suspects */
    bool quick;
    /* s; the ladder ends before a size whose message is expected to take longer; 0: 0.1 between
     * CPUs, 1 between GPUs */
    double max_run;
    double hang_after; /* s without progress until a rank counts as hung; 0: by transport */
    bool nics;         /* run the plan's rounds through the NICs, and only those */
    /* result: time taken, on rank 0; NULL: neither counted nor estimated */
    struct measure_time *time;
    bool dry;      /* only estimate: measure nothing beyond the trial turns */
    double budget; /* s for the whole campaign; 0: no limit; EXIT_CUT if exceeded */
};
#define MEASURE_DEFAULTS                                                                           \
    ((struct measure_opts){.half_width = 0.05, .warmup = 16, .check = true, .retest = true})

#define QUICK_CAP 5e-3
enum { QUICK_MESSAGES = 10 };

/* Set by a signal handler: the campaign ends with EXIT_CUT after the current point. */
extern volatile sig_atomic_t measure_stop;

/* Run one pass of the plan (o->nics selects it).  Collective over w.  log is used on rank 0 only
 * (NULL elsewhere).  `topo` is only read (names for the progress line, tiers for the retest, the
 * GPU that each rank watches: taint.h).  Returns 0 when every point of this pass is in the log. */
int measure_plan(struct world *w, const struct transport *tr, const struct topo *topo,
                 struct plan *plan, const struct measure_opts *o, struct points_log *log,
                 struct err *err);

#endif
