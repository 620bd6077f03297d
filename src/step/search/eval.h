/* eval.h - evaluation of one candidate of a search: the results of predict_step(), by table and
 * without text. */
#ifndef RG_EVAL_H
#define RG_EVAL_H

#include <stdlib.h>

#include "step/memory.h"
#include "step/predict.h"
#include "step/pricer.h"
#include "step/timing.h"

struct eval {
    const struct question *question; /* layout and recipe are ignored */
    struct pricer *pricer;
    struct coefficients coefficients;
    bool by_shape;   /* the matrix has rates of products, so coefficients depend on the layout */
    double peak;     /* FLOP/s of the data sheet, 0: unknown */
    double capacity; /* bytes of a GPU, 0: unknown */
};

/* Key of a message's curve. */
struct evaluation_key {
    struct span span;
    enum op op;
    enum ep_kernel kernel;
};

/* Evaluation of one (layout, recipe); zero before the first.  Results independent of the micro
 * batch are kept until another setting changes. */
struct evaluation {
    double bytes; /* memory of a GPU */
    bool fits;
    double least; /* lower bound of timing.sec, s, from work alone without messages */
    struct timing timing;
    struct traffic traffic;  /* bytes for this micro batch, counts for the first one */
    double one[TRAFFIC_MAX]; /* s per message on its slowest group */
    /* Kept between candidates. */
    struct layout layout;
    struct recipe recipe;
    struct step step; /* step of layout and recipe */
    struct memory_stage stage[STEP_STAGES];
    int first;        /* micro batch of work and pace; 0: not made yet */
    double tokens;    /* tokens of that micro batch */
    int layers_first; /* micro batch of layers; 0: not made yet */
    struct work_layers layers;
    struct work work;
    struct pace pace;
    const struct coefficients *rates; /* rates of the candidate: those of eval, or `own` */
    struct coefficients own;
    struct pace_seconds seconds;      /* pace at the current tokens */
    bool shares;                      /* traffic is complete except for the schedule */
    bool listed;                      /* traffic and list are complete */
    struct timing_list list;          /* traffic as arrays for timing */
    double list_tokens, microbatches; /* values of the step that the list was made for */
    uint64_t moving;                  /* set of messages that grow with tokens */
    double still;                     /* s, sum over one of each other message */
    struct evaluation_key key[TRAFFIC_MAX];
    struct price_curve *curve[TRAFFIC_MAX];
};

/* Open a pricer for `ranks` ranks, and the rates for base's precision and software. */
int eval_open(struct eval *e, const struct question *q, const struct recipe *base, int ranks,
              struct err *err);
static inline void eval_close(struct eval *e)
{
    pricer_close(e->pricer);
    *e = (struct eval){0};
}
/* Set the rates of one layout and recipe as predict_step() does, with the stretch of q's anchor and
 * release.  Measured products have different rates for each layout; other rates are constant. */
int eval_coefficients(struct coefficients *c, double *peak, const struct question *q,
                      const struct layout *l, const struct recipe *r, struct err *err);

/* Evaluate memory, after layout_check(), always with the same e.  Returns false if the candidate
 * does not fit; then v has no timing and no least.  Allocates nothing except in the pricer. */
bool eval_fits(struct evaluation *v, const struct eval *e, const struct layout *l,
               const struct recipe *r);
/* True if the capacity lies within the interval of the predicted memory. */
static inline bool eval_may_fit(const struct evaluation *v, const struct eval *e)
{
    struct memory mem;

    memory_at(&mem, v->stage, &v->step, e->capacity, e->question->constants);
    return memory_fit(&mem) == MEMORY_MAY_NOT_FIT;
}
/* Evaluate the timing after eval_fits().  timing.sec: NAN if a message's cost is unknown, INFINITY
 * if it needs a dead part.  timing.part is not set. */
void eval_price(struct evaluation *v, const struct eval *e);
static inline void eval_candidate(struct evaluation *v, const struct eval *e,
                                  const struct layout *l, const struct recipe *r)
{
    if (eval_fits(v, e, l, r))
        eval_price(v, e);
}

/* --- uncertainty of the ratio of two layouts of one job --- *
 *
 * The time of a step depends on constants and message prices, each with an error.  Raising one by
 * its error moves the log of the time by a share of its own (finite differences).  The log of the
 * ratio of two steps moves by the difference of these shares, and the sources err independently.
 * Errors that move both equally cancel. */
struct doubts {
    double sec; /* time of the step */
    /* shift of log(sec) per source: constants in their order, then (operation, kernel, reach) */
    double *of;
    int count;
};
/* Fill d for q with layout and recipe.  Call doubts_free() even after an error. */
int doubts_of(struct doubts *d, const struct question *q, struct err *err);
static inline void doubts_free(struct doubts *d)
{
    free(d->of);
    *d = (struct doubts){0};
}
/* Returns one standard deviation of log(a / b), both with the same constants. */
double doubts_between(const struct doubts *a, const struct doubts *b);

#endif
