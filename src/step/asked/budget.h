/* budget.h - a whole training run made of predicted steps: time, GPU-hours, cost, what failures and
 * checkpoints take, energy.
 *
 *   steps      N / n, rounded up
 *   wall       steps T / E
 *   GPU-hours  wall G / 3600
 *   energy     wall G P u
 *
 *   E = tau / W, what is left of the time when failures come at random, one every M (Daly 2006, "A
 *   higher order estimate of the optimum checkpoint interval for restart dumps"):
 *
 *       W = M e^(R/M) (e^((tau + d)/M) - 1)
 *
 *   of which d are checkpoints, M (e^((tau + d)/M) - 1) - (tau + d) is work that is done again, and
 *   the rest restarts.  The interval is Daly's, and that of Young 1974 ("A first order approximation to
 *   the optimum checkpoint interval") stands beside it:
 *
 *       tau = sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d,  M where d >= 2 M;  sqrt(2 d M)
 *
 *   symbol   meaning                                                           unit
 *   N, n     tokens of the run, of a step
 *   T        a step, with its interval, which all that follows carries         s
 *   G        GPUs
 *   P, u     power of a GPU, facility power over that (PUE)                    W
 *   M        between two failures of the job: of a GPU or node over their      s
 *            number
 *   d        a checkpoint, during which training stands still                  s
 *   R        from a failure until training goes on                             s
 *   tau      work between two checkpoints                                      s */
#ifndef RG_BUDGET_H
#define RG_BUDGET_H

#include "base/opt.h"
#include "step/predict.h"

enum budget_of { BUDGET_OF_JOB, BUDGET_OF_NODE, BUDGET_OF_GPU, BUDGET_OF_COUNT };

/* What is asked; 0: it is not. */
struct budget_opts {
    double tokens, watts, pue;
    double price;                      /* of a GPU-hour, */
    char coin[16];                     /* in these, or "" */
    double mtbf;                       /* s, */
    int mtbf_of;                       /* enum budget_of */
    double checkpoint, restart, every; /* s */
};
/* --tokens, --price, --mtbf ... as rows of a command line; its struct budget_opts is zeros. */
extern const struct opt budget_options[];
int budget_check(void *into, struct err *err);
#define BUDGET_OPTIONS(type, member)                                                               \
    {                                                                                              \
        .rows = budget_options, .at = offsetof(type, member), .check = budget_check,               \
        .title = "The run that such steps make up:"                                                \
    }

/* A figure and what it is at the ends of the step's interval. */
struct budget_range {
    double is, lo, hi;
};

struct budget {
    const struct budget_opts *asked;
    int gpus, nodes;
    double steps;
    struct budget_range wall, gpu_hours, cost, joules; /* of the run */
    struct budget_range rate;                          /* tokens/s, with what is lost */
    double step_joules;
    double goodput, checkpoints, rework, restarts; /* shares of the time, together 1 */
    double mtbf, interval, young;                  /* s; of the job; interval: tau */
    double failures;                               /* of the run; NAN without tokens */
};

bool budget_asked(const struct budget_opts *o);
/* Of p's steps on so many nodes.  EXIT_UNJUDGED where nothing gets done between two failures;
 * EXIT_USAGE where checkpoints are in the step already. */
int budget_of(struct budget *b, const struct budget_opts *o, const struct prediction *p,
              const struct recipe *r, int nodes, struct err *err);
json_t *budget_json(const struct budget *b); /* new reference */

#endif
