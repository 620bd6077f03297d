/* replay.h - one training step as what each rank does: compute for a while, start, call and await
 * the very messages that traffic_of() lists, in the order in which a step has them.
 *
 * A rank has two streams, as a GPU has.  The main one computes and runs what nothing hides:
 * messages inside layers (tp, cp, ep) block it, what goes between stages is sent beside the next
 * unit and awaited where it is needed.  The side stream runs the messages of weights and gradients,
 * one after another: the main stream starts them one layer ahead and waits before it uses what they
 * bring (FSDP prefetch: Zhao et al. 2023, 3.3; gradient buckets: Li et al. 2020, PyTorch
 * DDP, 3.2.3). Weights of a microbatch's first layer, and the reductions of its last one, have
 * nothing to hide behind.  Nothing here knows MPI or time: replay_mpi.h runs the list. */
#ifndef RG_REPLAY_H
#define RG_REPLAY_H

#include "step/job.h"
#include "step/predict.h"
#include "step/replay/pipeline.h"
#include "step/traffic.h"

enum replay_kind {
    REPLAY_BURN,  /* compute for `sec` */
    REPLAY_CALL,  /* the message now, until it is done */
    REPLAY_START, /* put the message into the side stream */
    REPLAY_WAIT,  /* until the first `ticket` messages of the side stream are done */
    REPLAY_SEND,  /* to rank `peer`, without waiting */
    REPLAY_RECV,  /* from rank `peer`, until it is there */
};

struct replay_action {
    enum replay_kind kind;
    int message; /* index in the traffic: whose time it is; burn: -1 */
    int peer, tag;
    int ticket;
    double sec;
};

/* How ranks compute. */
enum burn {
    BURN_AUTO, /* spin where every rank has a core of its own, else sleep */
    BURN_SLEEP,
    BURN_SPIN,
    BURN_COUNT
};
extern const char *const burn_name[BURN_COUNT];

/* One rank's step. */
struct replay_plan {
    struct replay_action *action;
    int actions;
    int tickets; /* messages that the side stream runs */
};

struct replay_step {
    const struct traffic *traffic;
    const struct layout *layout;
    const struct recipe *recipe; /* after layout_check() */
    struct replay_compute {
        double forward, backward; /* seconds of one microbatch */
    } rest,
        last; /* on a rank of the last pipeline stage, which has the output head, and elsewhere */
};

/* EXIT_USAGE: a schedule that only the prediction knows. */
int replay_check(const struct recipe *r, struct err *err);

static inline struct pipeline replay_pipeline(const struct layout *l, const struct recipe *r)
{
    return (struct pipeline){l->size[AXIS_PP], r->stages, layout_microbatches(l, r)};
}

void replay_make(struct replay_plan *p, const struct replay_step *s, int rank);
void replay_free(struct replay_plan *p);

/* --- the numbers of a replay, and the prediction that it is held against --- *
 *
 * A GPU hides messages by its own rules, which constants.json calibrates.  A replay hides what its
 * two streams hide, so the prediction for it takes what follows from that structure: messages
 * inside layers are seen in full, weights and gradients hide behind a layer's compute in full, and
 * of the messages between stages is seen what the pipeline's order leaves (pipeline.h).  Nothing of
 * it comes from a measured step. */

struct replay_case {
    struct constants constants;   /* shipped ones, with those that replace exposure */
    struct prediction prediction; /* of the shrunken step */
    struct traffic traffic;       /* shrunken messages */
    double shrink;
    double flops; /* compute rate that a share made necessary; 0: the question's own */
    struct replay_compute rest, last; /* as in struct replay_step */
};

/* What is asked of a replay beside the job. */
struct replay_size {
    double shrink;  /* 0: so that the step takes `seconds`, but never less than 1 */
    double seconds; /* of a step */
    double share;   /* of the predicted step without its bubble that compute takes, whatever its
                       rate; 0: as the rate has it */
};

/* q: the job; its constants and shrink are replaced.  A share that compute cannot take: EXIT_USAGE.
 * replay_case_free() also after an error. */
int replay_case_make(struct replay_case *c, const struct question *q,
                     const struct replay_size *size, struct err *err);
void replay_case_free(struct replay_case *c);

/* --- the command line of replay, as railgauge and the MPI program both read it --- */

struct replay_opts {
    struct job_opts job;
    struct replay_size size;
    int steps, warmup;
    int burn; /* enum burn of replay.h */
    bool json;
    const char *output;
    bool done; /* help or version was asked for */
};

void replay_defaults(struct replay_opts *o);
extern const struct opt replay_options[];
extern const char replay_doc[];
/* Of a command line whose struct replay_opts lies at `base`; with opt_help: it never exits. */
#define REPLAY_SETS(base)                                                                          \
    {.rows = replay_options, .at = (base)},                                                        \
        {.make = job_options, .at = (base) + offsetof(struct replay_opts, job), .group = 2},       \
    {                                                                                              \
        .rows = opt_help, .at = (base) + offsetof(struct replay_opts, done), .group = -1           \
    }
extern const struct opt_line replay_line; /* of the MPI program */

#endif
