/* predict.h - time of one training step of a layout on a measured or published fabric.
 *
 * work.h gives the computation of a rank, traffic.h its messages.  Every message is priced on the
 * groups of the placement, and the slowest group decides.  timing.h sums the parts.  This file adds
 * text (basis of each number, the slow group and its reason) and an interval.
 *
 * Other rooms include this header for the nouns of a step too: constants.h, layout.h, memory.h,
 * model.h, rate.h, recipe.h and traffic.h come with it.
 *
 * Example:
 *
 *     struct matrix m;
 *     struct prediction p;
 *     int rc = -1;
 *
 *     if (matrix_load(&m, "campaign", MATRIX_PRICES, err) < 0)
 *         return -1;
 *     if (predict_layout(&p, &m, "llama3.1-8b", "dp_shard=72", STRATEGY_FSDP, 0, err) == 0) {
 *         printf("%g s (%g to %g)\n", p.sec, p.lo, p.hi);
 *         rc = 0;
 *     }
 *     prediction_free(&p);
 *     matrix_free(&m);
 *     return rc; */
#ifndef RG_PREDICT_H
#define RG_PREDICT_H

#include <jansson.h>
#include <stdio.h>

#include "matrix/matrix.h"
#include "step/constants.h"
#include "step/layout.h"
#include "step/memory.h"
#include "step/model.h"
#include "step/rate.h"
#include "step/recipe.h"
#include "step/traffic.h"

struct pricer;

/* Input of a prediction; all pointers are borrowed. */
struct question {
    const struct matrix *matrix;
    /* peak rates of its GPU; NULL: matrix->compute is the compute rate */
    const struct fabric *fabric;
    const struct model *model;
    const struct layout *layout;
    const struct recipe *recipe; /* after layout_check() */
    const int *order;            /* rank -> endpoint; NULL: rank i is endpoint i */
    const struct constants *constants;
    double shrink; /* divisor of all message sizes and all compute; 0: none */
    /* pricer for this matrix, order and number of ranks; NULL: one is made */
    struct pricer *pricer;
    double stretch;        /* factor of an anchor (anchor.h) on compute; 0: no anchor */
    const char *release;   /* software release (effects.h); NULL: not stated */
    const char *publisher; /* publisher of the figures; NULL: first word of release */
    double doubt;          /* share by which the anchor fits this question worse than its own */
};

enum term_kind { TERM_COMPUTE, TERM_MESSAGE, TERM_BUBBLE, TERM_OPTIMIZER, TERM_FIXED, TERM_COUNT };
extern const char *const term_name[TERM_COUNT];

/* One term of the step. */
struct term {
    enum term_kind kind;
    const char *label;
    double sec;    /* exposed time, which it adds to the step */
    double hidden; /* time hidden behind something else */
    double error;  /* standard deviation of sec, s */
    enum basis basis;
    char source[400];
    /* messages only */
    unsigned axes;
    struct span span;
    enum op op;
    enum exposure exposure;
    enum phase phase;
    double bytes, count, rounds; /* S; messages per step and rank; see struct message */
    double one, one_error;       /* seconds of one message on the slowest group; error as a share */
    const char *formula;
    struct shape shape; /* shape of the slowest group */
    /* groups of this axis; number of different ones; index of the slowest */
    int groups, distinct, index;
    char slowest[240]; /* "group 3 of 8: ranks 24..31 on r00n06 .. r00n07" */
    int exception;     /* exception of the matrix that slows this group most; -1: none */
};

/* Another, faster placement of the same ranks (job_hint). */
struct faster {
    double sec;       /* step time; 0: none known */
    char option[80];  /* option that selects it: "--segment 16" */
    char groups[128]; /* reason: "ep groups of 64 straddle racks" */
    int racks;        /* racks touched, if more are needed; 0: no more */
};

enum { PREDICT_NOTE = 240 };

struct prediction {
    double sec, lo, hi; /* step time; about 90 % of published steps fall inside lo..hi */
    double deviation;   /* standard deviation of log(sec) */
    /* deviation from the terms' errors; d log(sec) / d log(compute) */
    double terms_deviation, software_share;
    enum known known;                /* familiarity class that gives the interval */
    double compute, exposed, hidden; /* s: matrix products; exposed messages; hidden messages */
    struct {
        /* Seconds of compute of a microbatch on the slowest stage; weights: their gradients, a part
         * of backward. */
        double forward, backward, weights;
        bool last; /* that stage has the output head */
    } one;
    double bubble_share;   /* (p-1)/(v m) */
    double tokens;         /* tokens per step */
    double tokens_per_gpu; /* per second */
    double model_flops;    /* per step, without recompute; convention: recipe.causal */
    double mfu;            /* relative to rate.peak; NAN if that is unknown */
    bool causal;           /* convention of model_flops and mfu: half of the attention core */
    int ranks, microbatches;
    bool anchored;
    struct rate rate;
    /* Effects for the levels of the question; with an anchor they do not enter the interval. */
    struct effect_level effect[EFFECT_LEVELS];
    int effects;
    struct memory memory; /* memory of the GPU that needs most */
    struct faster faster;
    struct term *term;
    int terms;
    char (*note)[PREDICT_NOTE]; /* whole sentences */
    int notes;
    char model[64], layout[96], strategy[16];
};

/* Predict a step.  Call prediction_free() even after an error. */
int predict_step(struct prediction *p, const struct question *q, struct err *err);
void prediction_free(struct prediction *p);

/* Same from words, with the shipped model and constants and the matrix' own fabric.  batch:
 * sequences per step; 0: one per data-parallel rank.  Example: predict_layout(&p, m, "llama3.1-8b",
 * "dp_shard=72", STRATEGY_FSDP, 0, &err). */
int predict_layout(struct prediction *p, const struct matrix *m, const char *model,
                   const char *layout, enum strategy strategy, int batch, struct err *err);

/* Returns prediction.json as a new reference.  `m` names exceptions. */
json_t *predict_json(const struct prediction *p, const struct matrix *m);
/* Returns "NIC mlx5_1 of r00n04 (GPU 1), sending: 0.60 of its tier, WHY". */
char *predict_exception_text(char *buf, int size, const struct matrix *m, int exception);

/* Returns the error of a message's time, as a share, one standard deviation. */
double predict_message_error(const struct question *q, const struct cost *c);
/* Append a sentence to p->note. */
void predict_note(struct prediction *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- timeline ---
 *
 * A predicted step drawn over time: Chrome trace events for Perfetto and
 * chrome://tracing ("Trace Event Format": complete events "X", microseconds, and names "M").
 *
 * A process is a pipeline stage, shown by the rank that the prediction is for.  Its first thread is
 * the work of the device without gaps, in categories like the prediction's terms: compute, message
 * (exposed waits), bubble, optimizer and fixed.  On the slowest stage each adds up to the predicted
 * time.  The other threads are messages by axis, and those of data parallelism in a stream of their
 * own: categories "seen" (exposed) and "hidden".  Messages of all layers of a microbatch are one
 * event per pass.  Hidden time is drawn beside the compute and cut to its length ("hidden_s" has
 * the real value).
 *
 * Order of work and waits between stages come from pipeline.h.  Stages of zb-h2 begin and end one
 * after another, so each has its own step there.
 *
 * Stages other than the slowest run at the mean pace that the predicted bubble leaves.  The drawn
 * bubble equals the predicted one except where the formulas differ from the schedule (weights'
 * gradients slower than inputs'; dualpipe with unequal forward and backward).  Missing time is drawn as bubble;
 * if the schedule takes longer, so does the timeline, which "drawn_s" beside "predicted_s" in
 * otherData shows. */

/* Write the file atomically.  *drawn: length of the drawn step, s.  EXIT_USAGE: more than two
 * million pieces of work. */
int timeline_save(const struct prediction *p, const struct layout *l, const struct recipe *r,
                  const char *path, double *drawn, struct err *err);

/* --- flags ---
 *
 * A layout and its recipe as settings of the framework that would run it.
 *
 *   megatron    arguments of Megatron-LM's pretrain_*.py: megatron/training/arguments.py, and
 *               the fields of megatron/core/model_parallel_config.py,
 *               transformer/transformer_config.py and megatron/training/config, which become
 *               arguments of their name; d98e8a64
 *   torchtitan  TOML of torchtitan v0.2.2: torchtitan/config/job_config.py */

enum framework { FRAMEWORK_MEGATRON, FRAMEWORK_TORCHTITAN, FRAMEWORK_COUNT };
extern const char *const framework_name[FRAMEWORK_COUNT];

/* Write one line per setting; settings that the framework lacks are lines "# cannot: ...".  After
 * layout_check().  Returns the number of these lines. */
int framework_flags(FILE *out, enum framework framework, const struct model *m,
                    const struct layout *l, const struct recipe *r);

#endif
