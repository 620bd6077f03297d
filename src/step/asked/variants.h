/* variants.h - one question for several GPU counts and machines, and the differences between the
 * answers.
 *
 * With other GPU counts the data-parallel axis grows: dp_replicate for ddp and hsdp, else dp_shard,
 * or the axis that the layout has as "auto".  The batch stays the same: the given one, or by
 * default the one that layout_check() chooses for the largest count.  With `weak`, tokens per GPU
 * stay those of the first count.  A batch that follows from the accumulation follows for each
 * count. */
#ifndef RG_VARIANTS_H
#define RG_VARIANTS_H

#include "step/asked/budget.h"
#include "step/asked/what_if.h"

struct variants_asked {
    int *gpus, counts;    /* in the order of the answers; none: as in the job */
    struct what_if *what; /* machines to compare with the given one */
    int whats;
    bool weak;
};
/* --weak and --what-if as rows of a command line, behind the first row, --gpus with several counts, which
 * has to stand before the rows of a job. */
extern const struct opt variants_options[];
#define VARIANTS_OPTIONS(type, member)                                                             \
    {                                                                                              \
        .rows = variants_options + 1, .at = offsetof(type, member)                                 \
    }
void variants_asked_free(struct variants_asked *a);

struct variants_opts {
    const struct job_opts *job;
    const struct budget_opts *budget;
    const struct variants_asked *asked;
    /* predict_step(), or a function that also applies an anchor. */
    int (*ask)(void *ctx, struct prediction *p, struct question *q, struct err *err);
    void *ctx;
};

/* One term in two answers. */
struct moved {
    const char *label;
    double before, after; /* s; 0: missing */
};

enum { MOVED_MAX = 3 };
struct variant {
    const struct what_if *what; /* NULL: the given machine */
    int gpus, batch;
    struct prediction step;
    struct budget budget;
    bool budgeted;
    char *why; /* reason if there is no step; NULL: there is one */
    /* tokens/s per GPU / that of the first count on the same machine; NAN: unknown */
    double efficiency;
    double gain;                   /* step on the given machine / step on this one; NAN: unknown */
    struct moved moved[MOVED_MAX]; /* terms that differ most from the given machine */
    int moves;
};

struct variants {
    struct variant *row;
    int rows, steps;         /* number of rows with a step */
    int fitting;             /* number of rows that fit into GPU memory */
    int code;                /* exit code of the last row without a step; 0: all have one */
    char note[PREDICT_NOTE]; /* rule by which the batch was chosen; "" */
};

/* Fill v.  Call variants_free() even after an error. */
int variants_make(struct variants *v, const struct variants_opts *o, struct err *err);
void variants_free(struct variants *v);
json_t *variants_json(const struct variants *v); /* "railgauge-variants"; new reference */

#endif
