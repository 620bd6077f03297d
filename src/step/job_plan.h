/* job_plan.h - what to measure so that a job's prediction rests on its own groups.
 *
 * A campaign measures groups by level: hosts, domains, racks.  A job's mesh cuts other groups, and
 * the groups of one axis run side by side; where they share what lies between racks, that is what
 * they get.  So each (operation, axis) of the job becomes one round with all groups of that axis,
 * in rank order, over the plan's ladder of sizes, which goes on to what the job sends. */
#ifndef RG_JOB_PLAN_H
#define RG_JOB_PLAN_H

#include "probe/plan.h"
#include "step/job.h"

/* The job in the words of the command line ("--model llama3.1-8b --layout tp=4,dp=2 --order FILE"),
 * placed on t; appends its rounds to p, and none that p holds already: those it makes longer. Sizes
 * and epochs are those that plan_make() takes from o. */
int job_plan(struct plan *p, const char *words, const struct topo *t, const struct plan_opts *o,
             struct err *err);

#endif
