/* probe_opts.h - options of planning and measuring, shared by plan, probe and run. */
#ifndef RG_PROBE_OPTS_H
#define RG_PROBE_OPTS_H

#include "base/opt.h"
#include "measure/measure.h"
#include "measure/plan.h"

struct probe_opts {
    struct plan_opts plan;
    struct measure_opts measure;
};

static inline void probe_opts_defaults(struct probe_opts *o)
{
    plan_defaults(&o->plan);
    o->measure = MEASURE_DEFAULTS;
}

/* -b -e -f -n -w -c --op --pairs --exact --matchings --epochs --seed --half-width --time-cap
 * --max-run --budget --hang-after --no-check --no-retest --pair-bytes --full.  The targets must
 * hold the defaults. */
extern const struct opt probe_options[];

#endif
