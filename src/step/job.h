/* job.h - a training job as requested: words and numbers, and everything they name, loaded.
 *
 * `predict`, `replay` and `plan --for-job` share these options (job_options) and the rules that
 * follow from them. */
#ifndef RG_JOB_H
#define RG_JOB_H

#include "base/opt.h"
#include "measure/plan.h"
#include "step/placement.h"
#include "step/predict.h"

/* Options as typed; all pointers are borrowed. */
struct job_opts {
    const char *matrix, *fabric, *model, *layout, *constants;
    struct placement place;
    int racks, gpus;
    /* numbers of GPUs if unlike the preset's; 0: as in the preset */
    int gpus_per_node, nvlink_domain;
    int accumulation; /* microbatches per step and data-parallel rank; 0: follows from the batch */
    int mesh;         /* enum mesh_order */
    double flops;
    struct recipe recipe;
    /* the shipped constants, loaded by a caller that opens many jobs; NULL: job_open() loads them */
    const struct constants *shipped;
};

void job_defaults(struct job_opts *o);

/* Members of job_opts except the recipe; an empty row ends the table. */
extern const struct argument job_argument[];
/* Set a row of job_argument or recipe_argument by its key, "mesh-order" or "mesh_order".  Text
 * values are borrowed.  EXIT_USAGE: the message starts with the key, or lists the known ones. */
int job_set(struct job_opts *o, const char *key, const char *value, struct err *err);

/* Rows of job_argument and recipe_argument as options, into a struct job_opts that holds the
 * defaults.  MATRIX is the only word that is no option. */
const struct opt *job_options(void);
/* Same for a command line whose arguments have this struct job_opts member. */
#define JOB_OPTIONS(type, member)                                                                  \
    {                                                                                              \
        .make = job_options, .at = offsetof(type, member)                                          \
    }

/* All data that a question points to, owned. */
struct job {
    struct matrix matrix;
    struct fabric fabric;
    struct model model;
    struct constants constants;
    struct layout layout;
    int *order; /* rank -> endpoint; NULL: rank i is endpoint i */
    int habit;  /* o->place.segment filled in from the preset's jobs; 0: not filled in */
};

/* Load and check everything.  o->place.segment is set by the preset's habit if o has no placement
 * (fabric_segment).  A layout with "auto" fills the endpoints of the matrix or the order.  Chooses
 * o->recipe.global_batch if it is 0.  Call job_free() even after an error. */
int job_open(struct job *j, struct job_opts *o, struct err *err);
/* Same without a layout, for callers that make layouts.  *ranks: o->gpus, else the capacity of the
 * placement or matrix. */
int job_open_ranks(struct job *j, struct job_opts *o, int *ranks, struct err *err);
/* Parse and check the layout for `given` ranks if it leaves their number open.  Chooses
 * o->recipe.global_batch if it is 0. */
int job_layout(struct layout *l, const struct model *m, struct job_opts *o, int given,
               struct err *err);
void job_free(struct job *j);
/* Set the FLOP/s of the matrix' GPUs; 0: unchanged. */
void job_flops(struct matrix *m, double flops);
/* Returns the number of hosts that the job's ranks are on. */
int job_nodes(const struct job *j);
/* Open j, which was opened as `was`, with another placement and mesh order.  Model and constants
 * are shared with j, and so is the matrix unless a preset needs another number of racks.  Call
 * job_close_again() even after an error. */
int job_open_again(struct job *again, const struct job *j, const struct job_opts *was,
                   struct job_opts *o, struct err *err);
void job_close_again(struct job *again, const struct job *j);
/* Set p->faster to the fastest other placement of p's job, with question q: mesh orders of its
 * stack, whole groups in segments of a rack, ranks block by block.  Gains below JOB_HINT_IGNORES,
 * as a share of the step, are not reported. */
#define JOB_HINT_IGNORES 0.01
void job_hint(struct prediction *p, const struct job *j, const struct job_opts *o,
              const struct question *q);
/* Returns the question for predict_step(); it points into j and o. */
struct question job_question(const struct job *j, const struct job_opts *o);

/* --- groups to measure so that a job's prediction uses its own groups --- *
 *
 * A campaign measures groups by level: hosts, domains, racks.  A job's mesh has other groups, and
 * the groups of one axis run at the same time and share the links between racks.  So each
 * (operation, axis) of the job becomes one round with all groups of that axis, in rank order, over
 * the plan's ladder of sizes, extended to the job's sizes. */

/* Append the rounds of a job, in words of the command line ("--model llama3.1-8b --layout tp=4,dp=2
 * --order FILE"), placed on t.  Rounds that p already holds are extended instead.  Sizes and epochs
 * are those that plan_make() takes from o. */
int job_plan(struct plan *p, const char *words, const struct topo *t, const struct plan_opts *o,
             struct err *err);

/* Fill out with the traffic of such a job on t. */
int job_traffic(struct traffic *out, const char *words, const struct topo *t, struct err *err);

#endif
