/* predict.h - the time of one training step: what a layout costs on a measured or published fabric.
 *
 * work.h says what a rank computes, traffic.h what it sends; every message is priced on the groups
 * that the placement makes, and the slowest group rules; timing.h adds it up, and here it gets its
 * words: what each number rests on, which group is slow and why, and an interval. */
#ifndef RG_PREDICT_H
#define RG_PREDICT_H

#include <jansson.h>

#include "cost/matrix.h"
#include "step/constants.h"
#include "step/layout.h"
#include "step/memory.h"
#include "step/model.h"
#include "step/rate.h"
#include "step/recipe.h"
#include "step/traffic.h"

struct pricer;

/* What is asked; nothing is owned. */
struct question {
    const struct matrix *matrix;
    const struct fabric
        *fabric; /* peak rates of its GPU; NULL: matrix->compute is the compute rate */
    const struct model *model;
    const struct layout *layout;
    const struct recipe *recipe; /* after layout_check() */
    const int *order;            /* rank -> endpoint; NULL: rank i is endpoint i */
    const struct constants *constants;
    double shrink; /* bytes of every message and all compute are divided by this; 0: by nothing */
    struct pricer *pricer; /* of this matrix and order and as many ranks; NULL: one is made */
    double stretch;      /* of an anchor (anchor.h): compute takes this much longer; 0: no anchor */
    const char *release; /* of the software (effects.h); NULL: not stated */
    const char *publisher; /* of the figures; NULL: the release's first word */
    double doubt; /* share by which that anchor fits this question less than one of its own */
};

enum term_kind { TERM_COMPUTE, TERM_MESSAGE, TERM_BUBBLE, TERM_OPTIMIZER, TERM_FIXED, TERM_COUNT };
extern const char *const term_name[TERM_COUNT];

/* One summand of the step. */
struct term {
    enum term_kind kind;
    const char *label;
    double sec;    /* exposed: what it adds to the step */
    double hidden; /* runs behind something else */
    double error;  /* of sec, s, one standard deviation */
    enum basis basis;
    char source[400];
    /* messages only */
    unsigned axes;
    struct span span;
    enum op op;
    enum exposure exposure;
    enum phase phase;
    double bytes, count, rounds; /* S; messages per step and rank; see struct message */
    double one, one_error;       /* seconds of one on the slowest group; share */
    const char *formula;
    struct shape shape;          /* of the slowest group */
    int groups, distinct, index; /* of this axis; unlike each other; the slowest */
    char slowest[240];           /* "group 3 of 8: ranks 24..31 on r00n06 .. r00n07" */
    int exception;               /* of the matrix, that rules the slowest group; -1 */
};

/* Another placement of the same ranks that is faster (job_hint). */
struct faster {
    double sec;       /* of a step; 0: none is known */
    char option[80];  /* that says it: "--segment 16" */
    char groups[128]; /* why: "ep groups of 64 straddle racks" */
    int racks;        /* that it touches, where it needs more; 0: it does not */
};

enum { PREDICT_NOTE = 240 };

struct prediction {
    double sec, lo, hi; /* of a step; about 90 % of published steps fall inside lo..hi */
    double deviation;   /* of its log, one standard deviation */
    double terms_deviation, software_share; /* of its terms' errors; d log(sec) / d log(compute) */
    enum known known;                       /* whose interval it has */
    double compute, exposed,
        hidden; /* s: matrix products; messages that are seen; messages that are not */
    struct {
        double forward, backward, weights; /* s of a microbatch on the slowest stage, compute alone;
                                              weights: their gradients, a part of backward */
        bool last;                         /* that stage is the one with the output head */
    } one;
    double bubble_share;   /* (p-1)/(v m) */
    double tokens;         /* of a step */
    double tokens_per_gpu; /* per second */
    double model_flops;    /* of a step, no recompute, convention as recipe.causal */
    double mfu;            /* of rate.peak; NAN when that is unknown */
    bool causal;           /* convention of model_flops and mfu: half of the attention core */
    int ranks, microbatches;
    bool anchored;
    struct rate rate;
    struct effect_level effect[EFFECT_LEVELS]; /* of what the question says; an anchor's are no
                                                  part of the interval */
    int effects;
    struct memory memory; /* of the GPU that needs the most */
    struct faster faster;
    struct term *term;
    int terms;
    char (*note)[PREDICT_NOTE]; /* whole sentences */
    int notes;
    char model[64], layout[96], strategy[16];
};

/* prediction_free() also after an error. */
int predict_step(struct prediction *p, const struct question *q, struct err *err);
void prediction_free(struct prediction *p);

/* The same from words, with the shipped model and constants and the matrix' own fabric; batch:
 * sequences of a step, 0: one of each data-parallel rank. predict_layout(&p, m, "llama3.1-8b",
 * "dp_shard=72", STRATEGY_FSDP, 0, &err). */
int predict_layout(struct prediction *p, const struct matrix *m, const char *model,
                   const char *layout, enum strategy strategy, int batch, struct err *err);

/* prediction.json; new reference.  `m` names exceptions. */
json_t *predict_json(const struct prediction *p, const struct matrix *m);
/* "NIC mlx5_1 of r00n04 (GPU 1), sending: 0.60 of its tier, WHY" */
char *predict_exception_text(char *buf, int size, const struct matrix *m, int exception);

/* Share by which the time of a message errs, one standard deviation. */
double predict_message_error(const struct question *q, const struct cost *c);
/* Appends a sentence to p->note. */
void predict_note(struct prediction *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
