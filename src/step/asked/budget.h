/* budget.h - a whole training run made of predicted steps: time, GPU-hours, cost, energy, and the
 * share of failures and checkpoints.
 *
 *   steps      N / n, rounded up
 *   wall       steps T / E
 *   GPU-hours  wall G / 3600
 *   energy     wall G P u
 *
 * E = tau / W is the share of time left for work if failures come at random, one every M (Daly
 * 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps"):
 *
 *       W = M e^(R/M) (e^((tau + d)/M) - 1)
 *
 * In W, d is checkpoints, M (e^((tau + d)/M) - 1) - (tau + d) is work done again, and the rest is
 * restarts.  The interval tau is Daly's; that of Young 1974 ("A first order approximation to the
 * optimum checkpoint interval") is given for comparison:
 *
 *       tau = sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d,  M if d >= 2 M;  Young:
 *                                                                     sqrt(2 d M)
 *
 *   symbol   meaning                                                           unit
 *   N, n     tokens of the run, of a step
 *   T        time of a step, whose interval carries over to all results       s
 *   G        GPUs
 *   P, u     power of a GPU, facility power / that (PUE)                      W
 *   M        time between failures of the job: that of a GPU or node          s
 *            divided by their number
 *   d        time of a checkpoint, during which training stands still         s
 *   R        time from a failure until training goes on                       s
 *   tau      work between two checkpoints                                     s */
#ifndef RG_BUDGET_H
#define RG_BUDGET_H

#include "base/opt.h"
#include "step/predict.h"

enum budget_of { BUDGET_OF_JOB, BUDGET_OF_NODE, BUDGET_OF_GPU, BUDGET_OF_COUNT };

/* Settings of a run; 0: not given. */
struct budget_opts {
    double tokens, watts, pue;
    double price;                      /* price per GPU-hour */
    char coin[16];                     /* currency of price, or "" */
    double mtbf;                       /* time between failures, s */
    int mtbf_of;                       /* failures of the job, a node or a GPU: enum budget_of */
    double checkpoint, restart, every; /* times in s */
};
/* --tokens, --price, --mtbf ... as rows of a command line, into a struct budget_opts of zeros. */
extern const struct opt budget_options[];
int budget_check(void *into, struct err *err);
#define BUDGET_OPTIONS(type, member)                                                               \
    {                                                                                              \
        .rows = budget_options, .at = offsetof(type, member), .check = budget_check                \
    }

/* A figure and its values at the ends of the step's interval. */
struct budget_range {
    double is, lo, hi;
};

struct budget {
    const struct budget_opts *asked;
    int gpus, nodes;
    double steps;
    struct budget_range wall, gpu_hours, cost, joules; /* totals of the run */
    struct budget_range rate;                          /* tokens/s, including lost time */
    double step_joules;
    double goodput, checkpoints, rework, restarts; /* shares of the time, sum 1 */
    double mtbf, interval, young;                  /* s, for the job; interval: tau */
    double failures;                               /* number in the run; NAN without tokens */
};

bool budget_asked(const struct budget_opts *o);
/* Fill b for a run of p's steps on this number of nodes.  EXIT_UNJUDGED: no work is done between
 * two failures.  EXIT_USAGE: the step already includes checkpoints. */
int budget_of(struct budget *b, const struct budget_opts *o, const struct prediction *p,
              const struct recipe *r, int nodes, struct err *err);
json_t *budget_json(const struct budget *b); /* new reference */

#endif
