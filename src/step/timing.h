/* timing.h - the arithmetic of a step without words: predict puts words to it, search calls it a
 * million times a second.
 *
 *   T = T_mb m + bubble + exposed(data parallel) + optimizer + fixed
 *
 *   T_mb of a host that cannot keep up is what the host takes to start the kernels of it: the GPU
 *   waits for the rest, and that is counted with the launches.
 *
 *   m, p, v    microbatches, stages, chunks per stage (Narayanan et al. 2021, 2.2)
 *   T_mb       compute and seen messages of a microbatch on the slowest stage; T_mean on the mean
 *              one: when stages are equal, T_mb m + bubble is T_mb (m + (p-1)/v)
 *   bubble     recipe.h, enum schedule
 *   exposed    messages inside layers and between stages keep a calibrated share of their time;
 *              data-parallel ones run beside the layers, one layer ahead (Zhao et al. 2023, 3.3): of
 *              L in a row, the first all_gather of a forward pass and the last reduction of a
 *              backward pass have nothing to hide behind, the others are seen for
 *
 *                  max(exposed.dp c, c - overlap.dp w - overlap.layer i)
 *
 *              of a pass: c its messages, w its compute, i what is seen inside its layers
 *   optimizer  bytes of the parameters whose states a rank holds, over the memory rate */
#ifndef RG_TIMING_H
#define RG_TIMING_H

#include <stdint.h>

#include "step/constants.h"
#include "step/rate.h"
#include "step/traffic.h"
#include "step/work.h"

/* constants.json and rates resolved once for a machine and a recipe: plain numbers. */
struct coefficients {
    double unit[WORK_PARTS];      /* s per FLOP, per byte, per kernel */
    double stretch;               /* of all compute: a measured step's, else 1 */
    double exposed[EXPOSE_COUNT]; /* share of a message's time that is seen; EXPOSE_WINDOW: least */
    double overlap;   /* of the compute beside it that can hide data-parallel messages */
    double beside;    /* of the seen messages inside layers that can */
    double optimizer; /* s per parameter whose states the rank holds; 0: unknown */
    double fixed;     /* s */
    double host;      /* s of the host per kernel */
    double links;     /* factor on messages that leave */
    int domain;       /* a domain of so many ranks */
};
/* stretch: 1 without an anchor. */
void coefficients_of(struct coefficients *c, const struct rate *rate, const struct constants *k,
                     double stretch);

/* Seconds of compute of one microbatch, without the stretch: what grows with its tokens, and what
 * does not: passes over the weights, and launches of kernels; and what the host takes to start
 * them. */
struct stage_pace {
    double forward, backward, still_forward, still_backward, host;
};
struct pace {
    struct stage_pace mean, other, last; /* as struct work's */
    double weights;                      /* weights' gradients, of the mean stage */
};
void pace_of(struct pace *p, const struct work *w, const struct coefficients *c);

/* Those with so many tokens, and with the stretch. */
struct stage_seconds {
    double forward, backward, host;
};
struct pace_seconds {
    struct stage_seconds mean, other, last;
    double weights;
};
static inline struct stage_seconds stage_seconds(const struct stage_pace *p, double times,
                                                 double stretch)
{
    return (struct stage_seconds){(p->forward * times + p->still_forward) * stretch,
                                  (p->backward * times + p->still_backward) * stretch,
                                  p->host * stretch};
}
/* `times`: the tokens, over those that the pace was made for. */
static inline void pace_at(struct pace_seconds *s, const struct pace *p, double times,
                           double stretch)
{
    s->mean = stage_seconds(&p->mean, times, stretch);
    s->other = stage_seconds(&p->other, times, stretch);
    s->last = stage_seconds(&p->last, times, stretch);
    s->weights = p->weights * times * stretch;
}

/* What timing asks of the messages of a step, side by side; bit i of a set is message i. */
struct timing_list {
    int messages;
    int layers; /* so many at its head are inside layers; */
    int apart;  /* so many are that or between stages, the others of weights and gradients */
    double count[TRAFFIC_MAX];
    double links[TRAFFIC_MAX]; /* factor on its price */
    double share[TRAFFIC_MAX]; /* that is seen; of messages in a window 0 */
    /* of the others */
    uint64_t repeats;   /* in every microbatch, as all are that are not of weights and gradients */
    uint64_t window[2]; /* beside forward, and beside backward */
    uint64_t edge;      /* one of them has nothing beside it */
    uint64_t waits;     /* all of them have nothing beside them */
};
/* The traffic in the order of its phases, as traffic_of() has it. */
void timing_list_of(struct timing_list *list, const struct traffic *tr,
                    const struct coefficients *c, const struct recipe *r);
/* The list of another micro batch, with so many times the microbatches. */
static inline void timing_batch(struct timing_list *list, double times)
{
    for (int i = 0; i < list->apart; i++)
        list->count[i] *= times;
    for (uint64_t left = list->repeats; left; left &= left - 1)
        list->count[__builtin_ctzll(left)] *= times;
}

struct timing {
    double sec;                                 /* the step: compute, and all below but `raw` */
    double compute;                             /* s of the step, all microbatches, */
    double part[WORK_PARTS];                    /* in each kind of it; not of timing_at() */
    double forward, backward;                   /* s, compute of one microbatch, with */
    double waits;                               /* those, of both, for the host */
    double weights;                             /* of backward: weights' gradients, mean stage */
    double bubble, optimizer, fixed;            /* s */
    double eval, checkpoint, other;             /* s, as the recipe gives them */
    double seen[TRAFFIC_MAX], raw[TRAFFIC_MAX]; /* s of the step per message; raw: nothing hidden */
    bool last; /* the slowest stage is the one with the output head */
};

/* All of a step but its messages. */
struct timing_step {
    const struct pace_seconds *pace;
    double updated;      /* parameters whose optimizer states the rank has */
    double microbatches; /* m */
    int stages;          /* p */
    const struct coefficients *coefficients;
    const struct recipe *recipe;
};

/* one[i]: seconds of one message i on its slowest group (pricer.h).  Allocate nothing. */
void timing_at(struct timing *t, const struct timing_step *s, const struct timing_list *list,
               const double *one);
/* s that timing_at() gives at least, whatever the messages are.  The pace of a stage with its messages,
 * max(compute + inside, host), and that of the mean stage grow with what is seen of messages, and the
 * step with both (all factors of T = (m - 1/v) T_mb + p/v T_mean are positive), so it is the step
 * without messages; DualPipe's bubble may shrink as the host waits for less, and is left out. */
double timing_least(const struct timing_step *s);
void timing_of(struct timing *t, const struct traffic *tr, const double *one, const struct work *w,
               const struct coefficients *c, const struct layout *l, const struct recipe *r);

/* Where a solution is looked for, and outside of which it is not the software any more. */
#define STRETCH_MIN 0.02
#define STRETCH_MAX 50.0
#define STRETCH_TRUST_MIN 0.3
#define STRETCH_TRUST_MAX 3.0

/* seconds(ctx, stretch) grows with stretch (NAN: cannot be asked).  *stretch is such that it equals
 * `measured` within 1e-9 of it.  EXIT_UNJUDGED when the rest alone takes longer than `measured`, or
 * 50 times the compute is not enough. */
int timing_stretch(double *stretch, double (*seconds)(void *ctx, double stretch), void *ctx,
                   double measured, struct err *err);

#endif
