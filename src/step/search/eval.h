/* eval.h - one candidate of a search: what predict_step() computes, by table and without
 * words. */
#ifndef RG_EVAL_H
#define RG_EVAL_H

#include <stdlib.h>

#include "step/memory.h"
#include "step/predict.h"
#include "step/pricer.h"
#include "step/timing.h"

struct eval {
    const struct question *question; /* layout and recipe are not looked at */
    struct pricer *pricer;
    struct coefficients coefficients;
    bool by_shape;   /* the matrix has rates of products: coefficients depend on the layout */
    double peak;     /* FLOP/s of the data sheet, 0: unknown */
    double capacity; /* bytes of a GPU, 0: unknown */
};

/* What a message's curve is found by. */
struct evaluation_key {
    struct span span;
    enum op op;
    enum ep_kernel kernel;
};

/* Everything that one (layout, recipe) comes to; zero before the first.  What does not depend on the
 * micro batch is kept until something else changes. */
struct evaluation {
    double bytes; /* of a GPU */
    bool fits;
    double least; /* s that timing.sec is never below; of work alone, no message is looked at */
    struct timing timing;
    struct traffic traffic;  /* bytes are of this micro batch, counts of the first one */
    double one[TRAFFIC_MAX]; /* s of a message on its slowest group */
    /* kept */
    struct layout layout;
    struct recipe recipe;
    struct step step; /* of these two */
    struct memory_stage stage[STEP_STAGES];
    int first;        /* micro batch that work and pace were made for, 0: not yet */
    double tokens;    /* of it */
    int layers_first; /* micro batch that these were made for, 0: not yet */
    struct work_layers layers;
    struct work work;
    struct pace pace;
    const struct coefficients *rates; /* of the candidate: those of all, or */
    struct coefficients own;
    struct pace_seconds seconds;      /* of the pace, at the tokens of now */
    bool shares;                      /* it is there but for the schedule */
    bool listed;                      /* the traffic is there, and */
    struct timing_list list;          /* as timing reads it, for */
    double list_tokens, microbatches; /* these of the step */
    uint64_t moving;                  /* messages that grow with tokens */
    double still;                     /* s of one of each of the others */
    struct evaluation_key key[TRAFFIC_MAX];
    struct price_curve *curve[TRAFFIC_MAX];
};

/* A pricer for `ranks` ranks, and the rates of base's precision and software. */
int eval_open(struct eval *e, const struct question *q, const struct recipe *base, int ranks,
              struct err *err);
static inline void eval_close(struct eval *e)
{
    pricer_close(e->pricer);
    *e = (struct eval){0};
}
/* The rates of one layout and recipe, as predict_step() takes them, with the stretch of q's anchor
 * and release.  Measured products have rates of their own at each layout; all else of a rate does
 * not change. */
int eval_coefficients(struct coefficients *c, double *peak, const struct question *q,
                      const struct layout *l, const struct recipe *r, struct err *err);

/* After layout_check(), with the same e as before.  Memory first: what does not fit has no timing, and
 * no v->least.  Allocates nothing but what the pricer keeps. */
bool eval_fits(struct evaluation *v, const struct eval *e, const struct layout *l,
               const struct recipe *r);
/* Of what does not fit: does it at the lower end of what is predicted? */
static inline bool eval_may_fit(const struct evaluation *v, const struct eval *e)
{
    struct memory mem;

    memory_at(&mem, v->stage, &v->step, e->capacity, e->question->constants);
    return memory_fit(&mem) == MEMORY_MAY_NOT_FIT;
}
/* Then the timing of the same.  timing.sec is NAN when a message's cost is unknown, INFINITY when it
 * needs a dead part.  timing.part is not set. */
void eval_price(struct evaluation *v, const struct eval *e);
static inline void eval_candidate(struct evaluation *v, const struct eval *e,
                                  const struct layout *l, const struct recipe *r)
{
    if (eval_fits(v, e, l, r))
        eval_price(v, e);
}

/* --- what two layouts of one job do not share --- *
 *
 * The time of a step rests on constants and on prices of messages, each with an error.  Raised by
 * its error, each moves the logarithm of the time by a share of its own (finite differences); the
 * logarithm of the ratio of two steps moves by the difference, and the sources err independently of
 * each other.  What moves both alike does not tell them apart and cancels. */
struct doubts {
    double sec; /* of the step */
    double *of; /* by source: constants in their order, then (operation, kernel, reach) */
    int count;
};
/* q with layout and recipe; doubts_free() also after an error. */
int doubts_of(struct doubts *d, const struct question *q, struct err *err);
static inline void doubts_free(struct doubts *d)
{
    free(d->of);
    *d = (struct doubts){0};
}
/* One standard deviation of log(a / b), both of the same constants. */
double doubts_between(const struct doubts *a, const struct doubts *b);

#endif
