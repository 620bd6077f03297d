/* variants.h - one question asked of several GPU counts and machines, and what changed between the
 * answers.
 *
 * With other GPU counts the data-parallel axis grows: dp_replicate of ddp and hsdp, else dp_shard,
 * or the axis that the layout has as "auto".  The batch stays: the one given, or where none is the
 * one that the largest count runs with as layout_check() chooses it; or tokens per GPU stay, that of
 * the first count (weak).  A batch that follows from the accumulation does so for each count. */
#ifndef RG_VARIANTS_H
#define RG_VARIANTS_H

#include "step/asked/budget.h"
#include "step/asked/what_if.h"

struct variants_asked {
    int *gpus, counts;    /* in the order of the answers; none: as the job has it */
    struct what_if *what; /* beside the machine as it is */
    int whats;
    bool weak;
};
/* --gpus, --weak and --what-if as rows of a command line, before those of a job. */
extern const struct opt variants_options[];
#define VARIANTS_OPTIONS(type, member)                                                             \
    {                                                                                              \
        .rows = variants_options, .at = offsetof(type, member)                                     \
    }
void variants_asked_free(struct variants_asked *a);

struct variants_opts {
    const struct job_opts *job;
    const struct budget_opts *budget;
    const struct variants_asked *asked;
    /* predict_step() or more (an anchor). */
    int (*ask)(void *ctx, struct prediction *p, struct question *q, struct err *err);
    void *ctx;
};

/* What one term is in two answers. */
struct moved {
    const char *label;
    double before, after; /* s; 0: not there */
};

enum { MOVED_MAX = 3 };
struct variant {
    const struct what_if *what; /* NULL: as it is */
    int gpus, batch;
    struct prediction step;
    struct budget budget;
    bool budgeted;
    char *why;         /* it has no step: the reason; NULL: it has */
    double efficiency; /* tokens/s of a GPU, of the first count's on the same machine; NAN */
    double gain;       /* step of the machine as it is over this one's; NAN */
    struct moved moved[MOVED_MAX]; /* that differ most from the machine as it is */
    int moves;
};

struct variants {
    struct variant *row;
    int rows, steps; /* steps: rows that have one */
    int fitting;     /* rows that fit into the memory of a GPU */
    int code;        /* of err.h, why the last row without a step has none; 0: all have one */
    char note[PREDICT_NOTE]; /* how the batch was chosen; "" */
};

/* variants_free() also after an error. */
int variants_make(struct variants *v, const struct variants_opts *o, struct err *err);
void variants_free(struct variants *v);
json_t *variants_json(const struct variants *v); /* "railgauge-variants"; new reference */

#endif
