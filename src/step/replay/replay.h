/* replay.h - one training step as a list of actions per rank: compute for a time, and start, call
 * and await the messages of traffic_of() in the order of a step.
 *
 * A rank has two streams, like a GPU.  The main stream computes and runs messages that nothing
 * hides: those inside layers (tp, cp, ep) block it; those between stages are sent beside the next
 * unit and awaited when needed.  The side stream runs messages of weights and gradients one after
 * another.  The main stream starts them one layer ahead and waits before it uses their data (FSDP
 * prefetch: Zhao et al. 2023, 3.3; gradient buckets: Li et al. 2020, PyTorch DDP, 3.2.3).  Weights
 * of a microbatch's first layer, and the reductions of its last one, have nothing to hide behind.
 * replay.c knows neither MPI nor time; replay_world() runs the list over MPI. */
#ifndef RG_REPLAY_H
#define RG_REPLAY_H

#include "step/job.h"
#include "step/predict.h"
#include "step/replay/pipeline.h"
#include "step/traffic.h"
#include "watch/world.h"

enum replay_kind {
    REPLAY_BURN,  /* compute for `sec` */
    REPLAY_CALL,  /* run the message now and wait for it */
    REPLAY_START, /* put the message into the side stream */
    REPLAY_WAIT,  /* wait for the first `ticket` messages of the side stream */
    REPLAY_SEND,  /* send to rank `peer` without waiting */
    REPLAY_RECV,  /* receive from rank `peer` and wait */
};

struct replay_action {
    enum replay_kind kind;
    int message; /* index in the traffic that the time counts for; burn: -1 */
    int peer, tag;
    int ticket;
    double sec;
};

/* Way of computing. */
enum burn {
    BURN_AUTO, /* spin if every rank has a core of its own, else sleep */
    BURN_SLEEP,
    BURN_SPIN,
    BURN_COUNT
};
extern const char *const burn_name[BURN_COUNT];

/* Step of one rank. */
struct replay_plan {
    struct replay_action *action;
    int actions;
    int tickets; /* number of messages in the side stream */
};

struct replay_step {
    const struct traffic *traffic;
    const struct layout *layout;
    const struct recipe *recipe; /* after layout_check() */
    struct replay_compute {
        double forward, backward; /* seconds per microbatch */
    } rest,
        /* last: rank of the last pipeline stage, which has the output head; rest: other ranks */
        last;
};

/* Check the schedule.  EXIT_USAGE: only the prediction supports it. */
int replay_check(const struct recipe *r, struct err *err);

static inline struct pipeline replay_pipeline(const struct layout *l, const struct recipe *r)
{
    return (struct pipeline){l->size[AXIS_PP], r->stages, layout_microbatches(l, r)};
}

void replay_make(struct replay_plan *p, const struct replay_step *s, int rank);
void replay_free(struct replay_plan *p);

/* --- the numbers of a replay, and its prediction --- *
 *
 * A GPU hides messages by its own rules, calibrated in constants.json.  A replay hides what its two
 * streams hide, so its prediction follows from that structure: messages inside layers are fully
 * exposed, weights and gradients hide fully behind a layer's compute, and the exposed part of
 * messages between stages follows from the pipeline's order (pipeline.h).  No measured step
 * enters. */

struct replay_case {
    struct constants constants;   /* shipped ones, with the exposure constants replaced */
    struct prediction prediction; /* prediction for the reduced step */
    struct traffic traffic;       /* messages of reduced size */
    double shrink;
    double flops;                     /* compute rate required by `share`; 0: the question's own */
    struct replay_compute rest, last; /* rest, last: like struct replay_step */
};

/* Size of a replay. */
struct replay_size {
    double shrink;  /* divisor of sizes; 0: chosen for `seconds`, at least 1 */
    double seconds; /* target step time, s */
    /* Share of compute in the predicted step without its bubble, whatever its rate; 0: by the
     * rate. */
    double share;
};

/* Fill c.  q: the job; its constants and shrink are replaced.  EXIT_USAGE: compute cannot take this
 * share.  Call replay_case_free() even after an error. */
int replay_case_make(struct replay_case *c, const struct question *q,
                     const struct replay_size *size, struct err *err);
void replay_case_free(struct replay_case *c);

/* --- the command line of replay, for both railgauge and the MPI program --- */

struct replay_opts {
    struct job_opts job;
    struct replay_size size;
    int steps, warmup;
    int burn; /* enum burn of replay.h */
    bool json;
    const char *output;
    bool done; /* help or version was printed */
};

void replay_defaults(struct replay_opts *o);
extern const struct opt replay_options[];
/* Description of the command, in both programs. */
#define REPLAY_ABOUT                                                                               \
    .usage = "MATRIX",                                                                             \
    .doc = "Run the messages of one training step on this machine, and compare them with their "   \
           "prediction."                                                                           \
           "\vMATRIX must have been measured here: one rank per endpoint, in the same order. "     \
           "Groups, sizes, order and overlap are those of the prediction; compute has a set "      \
           "length.",                                                                              \
    .examples =                                                                                    \
        (const struct opt_example[]){                                                              \
            OPT_ELSEWHERE("Replay a step of which compute takes 70 %",                             \
                          "railgauge replay matrix.json --model llama3.1-8b \\\n"                  \
                          "      --layout dp_shard=8 --compute-share 70%"),                        \
            OPT_ELSEWHERE("Replay a step with an order of ranks",                                  \
                          "railgauge replay matrix.json --layout tp=4,dp_shard=2 \\\n"             \
                          "      --strategy zero1 --order straddling"),                            \
            OPT_ELSEWHERE("Start the ranks with a launcher",                                       \
                          "mpirun -n 8 railgauge-probe replay matrix.json \\\n"                    \
                          "      --layout pp=4,dp_shard=2 --batch 16 --json"),                     \
            {0}},                                                                                  \
    .exits = EXIT_CODES("2 could not judge (no compute rate, no curve), ",                         \
                        ", 75 cut short, 78 configuration")
/* Option sets for a struct replay_opts at `base`. */
#define REPLAY_SETS(base)                                                                          \
    {.rows = replay_options, .at = (base)},                                                        \
    {                                                                                              \
        .make = job_options, .at = (base) + offsetof(struct replay_opts, job)                      \
    }
extern const struct opt_line replay_line; /* command line of the MPI program */

/* --- replay mpi ---
 *
 * Run the action lists over MPI and time them.
 *
 * The side stream is a thread of its own (MPI_THREAD_MULTIPLE), so that its messages make progress
 * while the main stream computes, with the calls that a campaign measures.  Compute is a sleep or
 * spin of fixed length; messages between stages move during it.  This header has no MPI types. */

struct replay_run {
    const struct replay_step *step;
    const int *order; /* rank -> world rank; NULL: rank i is world rank i */
    enum burn burn;
    int warmup, steps;
};

struct replay_result {
    double *step; /* seconds of the slowest rank, per step; owned */
    int steps;
    double sec;                  /* median of step */
    double compute;              /* seconds per step, on the rank with the largest value */
    double message[TRAFFIC_MAX]; /* waiting for each message, on the median rank */
    /* inside each message's calls, on either stream, on the median rank */
    double run[TRAFFIC_MAX];
    enum burn burn; /* never BURN_AUTO */
};

/* Results on rank 0. */
struct replay_outcome {
    struct job job;
    struct replay_case made;
    struct replay_result result;
};

/* Run a replay, collective over the world.  Rank 0 reads the files, predicts, checks that each
 * endpoint of the matrix is on the host of its rank (EXIT_CONFIG) and sends the plan to the others.
 * Call replay_world_free() even after an error. */
int replay_world(struct replay_outcome *out, struct replay_opts *o, struct world *w,
                 struct err *err);
void replay_world_free(struct replay_outcome *out);

#endif
