/* case_impl.h - a predicted job as named quantities, what "job.step_s" in a case file means, and
 * what the files of case share. */
#ifndef RG_CASE_IMPL_H
#define RG_CASE_IMPL_H

#include "step/memory.h"
#include "step/score/case.h"

/* --- sums and products of numbers and named quantities: "36 * train.step_s / 3600" --- *
 *
 *   sum     = product { ("+" | "-") product }
 *   product = factor { ("*" | "/") factor }
 *   factor  = NUMBER | NAME "." NAME | "(" sum ")"
 *
 * A NAME is a letter and then letters, digits or "_". */

enum { EXPRESSION_NAME = 64, EXPRESSION_DEPTH = 32 };

/* Who knows what OF.WHAT is: 0 and *out, or -1 with the reason. */
struct expression_names {
    int (*find)(void *ctx, const char *of, const char *what, double *out, struct err *err);
    void *ctx;
};

/* EXIT_DATA with the text, the position and the reason.  The value may be NAN or infinite. */
int expression_value(double *out, const char *text, const struct expression_names *names,
                     struct err *err);
/* A NAME and no more. */
int expression_is_name(const char *text);

/* --- jobs and claims --- */

struct case_value {
    double sec, exposed;  /* of a step; of its messages that are seen */
    double rest_error;    /* share of sec - exposed, one standard deviation */
    double message_error; /* share of exposed */
    double own_error;     /* share of sec that no other job shares: constant "error.anchored" */
    double tokens, flops; /* of a step */
    double peak;          /* FLOP/s of a GPU, 0: unknown */
    double layer_bytes, model_bytes; /* weights on the wire: of the largest layer, of all */
    double eval;                     /* s of a step */
    double params, trained;          /* of the model; with LoRA the adapters alone are trained */
    struct memory memory;            /* of a GPU */
    int gpus;
    char rate[400], fabric[64]; /* jobs with equal ones err together */
};

/* Predict one job; the copy of its options is changed by job_open(). */
int case_value_of(struct case_value *v, const struct case_job *job, struct err *err);

/* All jobs of a file at one combination of unknowns, and factors that one evaluation moves. */
struct case_values {
    const struct casefile *file;
    struct case_value *value;            /* by job */
    bool *mentioned;                     /* by job: find() marks what it was asked for; or NULL */
    bool *asked;                         /* by enum case_kind: the same; or NULL */
    const char *slow_rate, *slow_fabric; /* whose errors are moved by one deviation; or NULL */
    bool more_memory;                    /* that jobs need is moved by one deviation */
    int slow_job;                        /* whose own error is moved: its index + 1; 0: none */
    double *rest_scale; /* by job: what is not messages takes this much longer; or NULL */
    int scaled;         /* job whose messages take `scale` times as long; -1 */
    double scale;
};
/* The names of expressions: JOB.QUANTITY over struct case_values. */
int case_value_find(void *ctx, const char *of, const char *what, double *out, struct err *err);

/* In the unit; fits: share of the capacity. */
int case_value_in(double *out, const char *expression, const struct case_unit *u,
                  struct case_values *s, struct err *err);

/* Kinds, choices, verdicts and reasons of claims whose `at` is filled in.  s: the values of the jobs
 * at each combination. */
int case_judge(struct casefile *c, struct case_values *s, int combinations, struct err *err);

#endif
