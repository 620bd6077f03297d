/* job.h - a training job as it is asked for: words and numbers, and everything that they name,
 * loaded.
 *
 * predict, replay and plan --for-job share these options (job_options) and what follows from them. */
#ifndef RG_JOB_H
#define RG_JOB_H

#include "base/opt.h"
#include "probe/plan.h"
#include "step/placement.h"
#include "step/predict.h"

/* As typed; nothing is owned. */
struct job_opts {
    const char *matrix, *fabric, *model, *layout, *constants;
    struct placement place;
    int racks, gpus;
    int gpus_per_node, nvlink_domain; /* GPUs, where unlike the preset's; 0: as it has them */
    int accumulation; /* microbatches of a step and data-parallel rank; 0: follows from the batch */
    int mesh;         /* enum mesh_order */
    double flops;
    struct recipe recipe;
};

void job_defaults(struct job_opts *o);

/* Its members but the recipe; an empty row ends the table. */
extern const struct argument job_argument[];
/* A row of job_argument or recipe_argument by its key, "mesh-order" or "mesh_order"; a text is kept
 * as it is.  EXIT_USAGE: the message starts with the key, or lists the known ones. */
int job_set(struct job_opts *o, const char *key, const char *value, struct err *err);

/* The rows of job_argument and of recipe_argument as options, into a struct job_opts that holds the
 * defaults; MATRIX is the one word that is no option. */
const struct opt *job_options(void);
/* The same for a command line whose struct job_opts is this member of its arguments. */
#define JOB_OPTIONS(type, member)                                                                  \
    {                                                                                              \
        .make = job_options, .at = offsetof(type, member)                                          \
    }

/* Everything that a question points to; owns it. */
struct job {
    struct matrix matrix;
    struct fabric fabric;
    struct model model;
    struct constants constants;
    struct layout layout;
    int *order; /* rank -> endpoint; NULL: rank i is endpoint i */
    int habit;  /* o->place.segment as the preset's jobs have it, filled in; 0: nothing was */
};

/* Load and check all of it, with o->place.segment by the preset's habit where o says nothing of
 * placement (fabric_segment); a layout with "auto" fills the endpoints of the matrix or the order.
 * Chooses o->recipe.global_batch where it is 0.  job_free() also after an error. */
int job_open(struct job *j, struct job_opts *o, struct err *err);
/* The same without a layout, for who makes layouts: *ranks is o->gpus, else what the placement or
 * the matrix holds. */
int job_open_ranks(struct job *j, struct job_opts *o, int *ranks, struct err *err);
/* The layout in words on `given` ranks, where it leaves that open, checked; o->recipe.global_batch
 * is chosen where it is 0. */
int job_layout(struct layout *l, const struct model *m, struct job_opts *o, int given,
               struct err *err);
void job_free(struct job *j);
/* The matrix' GPUs reach so many FLOP/s; 0: as it has it. */
void job_flops(struct matrix *m, double flops);
/* Hosts that its ranks are on. */
int job_nodes(const struct job *j);
/* j, which was asked as `was`, once more with other words for placement and mesh order: model and constants stay j's, and the
 * matrix unless a preset needs another number of racks.  job_close_again() also after an error. */
int job_open_again(struct job *again, const struct job *j, const struct job_opts *was,
                   struct job_opts *o, struct err *err);
void job_close_again(struct job *again, const struct job *j);
/* Sets p->faster to the fastest other placement of p's job, whose question is q: mesh orders that
 * its stack has, whole groups in segments of a rack, ranks block by block.  What is faster by less
 * than this share of the step is not worth a word. */
#define JOB_HINT_IGNORES 0.01
void job_hint(struct prediction *p, const struct job *j, const struct job_opts *o,
              const struct question *q);
/* What to ask predict_step(); it points into j and o. */
struct question job_question(const struct job *j, const struct job_opts *o);

/* --- what to measure so that a job's prediction rests on its own groups --- *
 *
 * A campaign measures groups by level: hosts, domains, racks.  A job's mesh cuts other groups, and
 * the groups of one axis run side by side; where they share what lies between racks, that is what
 * they get.  So each (operation, axis) of the job becomes one round with all groups of that axis,
 * in rank order, over the plan's ladder of sizes, which goes on to what the job sends. */

/* The job in the words of the command line ("--model llama3.1-8b --layout tp=4,dp=2 --order FILE"),
 * placed on t; appends its rounds to p, and none that p holds already: those it makes longer. Sizes
 * and epochs are those that plan_make() takes from o. */
int job_plan(struct plan *p, const char *words, const struct topo *t, const struct plan_opts *o,
             struct err *err);

/* What such a job sends, on t. */
int job_traffic(struct traffic *out, const char *words, const struct topo *t, struct err *err);

#endif
