/* timing.h - arithmetic of a step without text: predict.h adds text, and a search calls it a
 * million times per second.
 *
 *   T = T_mb m + bubble + exposed(data parallel) + optimizer + fixed
 *
 *   T_mb of a slow host is its time to start the kernels of a microbatch: the GPU waits for the
 *        rest, which
 *   is counted with the launches.
 *
 *   m, p, v    microbatches, stages, chunks per stage (Narayanan et al. 2021, 2.2)
 *   T_mb       compute and exposed messages of a microbatch on the slowest stage; T_mean on the
 *              mean stage: if stages are equal, T_mb m + bubble is T_mb (m + (p-1)/v)
 *   bubble     recipe.h, enum schedule
 *   exposed    messages inside layers and between stages keep a calibrated share of their time;
 *              data-parallel ones run beside the layers, one layer ahead (Zhao et al. 2023,
 *              3.3): of L in a row, the first all_gather of a forward pass and the last
 *              reduction of a backward pass are not hidden; the exposed time of the others is
 *
 *                  max(exposed.dp c, c - overlap.dp w - overlap.layer i)
 *
 *              of a pass: c its messages, w its compute, i the exposed time inside its layers
 *   optimizer  bytes of the parameters whose states a rank holds / memory rate */
#ifndef RG_TIMING_H
#define RG_TIMING_H

#include <stdint.h>

#include "step/constants.h"
#include "step/rate.h"
#include "step/traffic.h"
#include "step/work.h"

/* Constants and rates resolved once for a machine and a recipe: plain numbers. */
struct coefficients {
    double unit[WORK_PARTS];      /* s per FLOP, per byte, per kernel */
    double stretch;               /* factor on all compute: from a measured step, else 1 */
    double exposed[EXPOSE_COUNT]; /* Exposed share of a message's time; EXPOSE_WINDOW: minimum. */
    double overlap;   /* share of the compute beside data-parallel messages that can hide them */
    double beside;    /* share of the exposed messages inside layers that can hide them */
    double optimizer; /* s per parameter whose states the rank holds; 0: unknown */
    double fixed;     /* s */
    double host;      /* s of the host per kernel */
    double links;     /* factor on messages that leave a domain */
    int domain;       /* number of ranks in a domain */
};
/* Fill c.  stretch: 1 without an anchor. */
void coefficients_of(struct coefficients *c, const struct rate *rate, const struct constants *k,
                     double stretch);

/* Seconds of compute of one microbatch, without the stretch: forward and backward grow with its
 * tokens; the still_ parts do not (passes over the weights, and launches of kernels).  host: time
 * of the host to start the kernels. */
struct stage_pace {
    double forward, backward, still_forward, still_backward, host;
};
struct pace {
    struct stage_pace mean, other, last; /* as in struct work */
    double weights;                      /* weights' gradients, on the mean stage */
};
void pace_of(struct pace *p, const struct work *w, const struct coefficients *c);

/* Seconds for a number of tokens, with the stretch. */
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
/* times: tokens / tokens that the pace was made for. */
static inline void pace_at(struct pace_seconds *s, const struct pace *p, double times,
                           double stretch)
{
    s->mean = stage_seconds(&p->mean, times, stretch);
    s->other = stage_seconds(&p->other, times, stretch);
    s->last = stage_seconds(&p->last, times, stretch);
    s->weights = p->weights * times * stretch;
}

/* Messages of a step as arrays for timing; bit i of a set is message i. */
struct timing_list {
    int messages;
    int layers; /* the first `layers` are inside layers */
    /* the first `apart` are inside layers or between stages, the others are of weights and
     * gradients */
    int apart;
    double count[TRAFFIC_MAX];
    double links[TRAFFIC_MAX]; /* factor on its price */
    double share[TRAFFIC_MAX]; /* exposed share; 0 for messages in a window */
    /* Sets of messages of weights and gradients. */
    uint64_t repeats;   /* in every microbatch, as all other messages are */
    uint64_t window[2]; /* beside forward; beside backward */
    uint64_t edge;      /* one message of the set has nothing beside it */
    uint64_t waits;     /* no message of the set has anything beside it */
};
/* Make the list of a traffic, in the order of its phases as traffic_of() sorts them. */
void timing_list_of(struct timing_list *list, const struct traffic *tr,
                    const struct coefficients *c, const struct recipe *r);
/* Update the list for another micro batch, with `times` as many microbatches. */
static inline void timing_batch(struct timing_list *list, double times)
{
    for (int i = 0; i < list->apart; i++)
        list->count[i] *= times;
    for (uint64_t left = list->repeats; left; left &= left - 1)
        list->count[__builtin_ctzll(left)] *= times;
}

struct timing {
    double sec;     /* the step: compute, and all below except `raw` */
    double compute; /* s per step, all microbatches */
    /* parts of compute by kind; not set by timing_at() */
    double part[WORK_PARTS];
    double forward, backward; /* s, compute of one microbatch, including waits */
    /* part of forward and backward spent waiting for the host */
    double waits;
    /* part of backward: weights' gradients, mean stage */
    double weights;
    double bubble, optimizer, fixed; /* s */
    double eval, checkpoint, other;  /* s, as set in the recipe */
    /* s per step and message; seen: exposed; raw: with nothing hidden */
    double seen[TRAFFIC_MAX], raw[TRAFFIC_MAX];
    bool last; /* slowest stage has the output head */
};

/* A step without its messages. */
struct timing_step {
    const struct pace_seconds *pace;
    double updated;      /* parameters whose optimizer states the rank holds */
    double microbatches; /* m */
    int stages;          /* p */
    const struct coefficients *coefficients;
    const struct recipe *recipe;
};

/* Compute the timing.  one[i]: seconds of one message i on its slowest group (pricer.h).  Allocates
 * nothing. */
void timing_at(struct timing *t, const struct timing_step *s, const struct timing_list *list,
               const double *one);
/* Returns a lower bound of timing_at() for any messages: the step without messages.  The pace of a
 * stage with its messages, max(compute + inside, host), and that of the mean stage grow with the
 * exposed messages, and the step with both, because all factors of T = (m - 1/v) T_mb + p/v T_mean
 * are positive.  DualPipe's bubble is left out, because it may shrink as the host waits less. */
double timing_least(const struct timing_step *s);
void timing_of(struct timing *t, const struct traffic *tr, const double *one, const struct work *w,
               const struct coefficients *c, const struct layout *l, const struct recipe *r);

/* Range searched for a solution (MIN, MAX), and range that software can explain (TRUST). */
#define STRETCH_MIN 0.02
#define STRETCH_MAX 50.0
#define STRETCH_TRUST_MIN 0.3
#define STRETCH_TRUST_MAX 3.0

/* Find the stretch at which seconds(ctx, stretch) equals `measured` within 1e-9 of it.  seconds()
 * grows with stretch (NAN: no result).  EXIT_UNJUDGED: the rest alone takes longer than `measured`,
 * or 50 times the compute is not enough. */
int timing_stretch(double *stretch, double (*seconds)(void *ctx, double stretch), void *ctx,
                   double measured, struct err *err);

#endif
