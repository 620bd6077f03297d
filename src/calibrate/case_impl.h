/* case_impl.h - shared by the files of case.h: a predicted job as named quantities, and the meaning
 * of "job.step_s" in a case file. */
#ifndef RG_CASE_IMPL_H
#define RG_CASE_IMPL_H

#include "calibrate/case.h"
#include "step/predict.h"

/* --- sums and products of numbers and named quantities: "36 * train.step_s / 3600" --- *
 *
 *   sum     = product { ("+" | "-") product }
 *   product = factor { ("*" | "/") factor }
 *   factor  = NUMBER | NAME "." NAME | "(" sum ")"
 *
 * A NAME is a letter and then letters, digits or "_". */

enum { EXPRESSION_NAME = 64, EXPRESSION_DEPTH = 32 };

/* Lookup of OF.WHAT: returns 0 and *out, or -1 with the reason. */
struct expression_names {
    int (*find)(void *ctx, const char *of, const char *what, double *out, struct err *err);
    void *ctx;
};

/* Evaluate an expression.  EXIT_DATA with the text, the position and the reason.  The value may be
 * NAN or infinite. */
int expression_value(double *out, const char *text, const struct expression_names *names,
                     struct err *err);
/* True if the text is a single NAME. */
int expression_is_name(const char *text);

/* --- jobs and claims --- */

struct case_value {
    double sec, exposed;  /* s per step; exposed messages in it */
    double rest_error;    /* share of sec - exposed, one standard deviation */
    double message_error; /* share of exposed */
    double own_error;     /* share of sec not shared with other jobs: constant "error.anchored" */
    double tokens, flops; /* per step */
    double peak;          /* FLOP/s of a GPU, 0: unknown */
    double layer_bytes, model_bytes; /* weights on the wire: largest layer; all layers */
    double eval;                     /* s per step */
    /* parameters of the model; trained ones (with LoRA only the adapters) */
    double params, trained;
    struct memory memory; /* memory of a GPU */
    int gpus;
    char rate[400], fabric[64]; /* jobs with equal texts have common errors */
};

/* Predict one job.  job_open() changes a copy of its options. */
int case_value_of(struct case_value *v, const struct case_job *job, struct err *err);

/* All jobs of a file at one combination of unknowns, and the error sources that one evaluation
 * moves. */
struct case_values {
    const struct casefile *file;
    struct case_value *value; /* per job */
    /* per job: set by case_value_find() when its value is used; or NULL */
    bool *mentioned;
    /* per enum case_kind: set when a figure of the kind is used; or NULL */
    bool *asked;
    /* errors of jobs with this rate or fabric move by one deviation; or NULL */
    const char *slow_rate, *slow_fabric;
    bool more_memory;   /* memory that jobs need moves by one deviation */
    int slow_job;       /* index + 1 of the job whose own error moves; 0: none */
    double *rest_scale; /* per job: factor on all time except messages; or NULL */
    int scaled;         /* job whose messages take `scale` times as long; -1: none */
    double scale;
};
/* Look up names of expressions, JOB.QUANTITY, in a struct case_values. */
int case_value_find(void *ctx, const char *of, const char *what, double *out, struct err *err);

/* Evaluate in a unit; fits: share of the capacity. */
int case_value_in(double *out, const char *expression, const struct case_unit *u,
                  struct case_values *s, struct err *err);

/* Set kinds, choices, verdicts and reasons of claims whose `at` is filled.  s: the values of the
 * jobs at each combination. */
int case_judge(struct casefile *c, struct case_values *s, int combinations, struct err *err);

#endif
