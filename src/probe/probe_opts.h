/* probe_opts.h - the options of planning and measuring, shared by plan, probe and run. */
#ifndef RG_PROBE_OPTS_H
#define RG_PROBE_OPTS_H

#include <argp.h>

#include "probe/measure.h"
#include "probe/plan.h"

struct probe_opts {
    struct plan_opts plan;
    struct measure_opts measure;
};

void probe_opts_defaults(struct probe_opts *o);

/* -b -e -f -n -w -c --op --pairs --exact --matchings --epochs --seed --half-width --time-cap
 * --max-run --budget --hang-after --no-check --no-retest --pair-bytes --full, as a child of a
 * command's argp; its input is a struct probe_opts that holds the defaults. */
extern const struct argp probe_argp;

/* The same options as words, for handing them to the MPI program; the words and the array belong to
 * the caller (free each, then the array). */
char **probe_opts_words(const struct probe_opts *o, int *count);

#endif
