/* plan.c - railgauge plan: topology.json to plan.tsv. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "probe/plan_cost.h"
#include "probe/probe_opts.h"
#include "step/job_plan.h"

enum { DRY_RUN = 0x400, FOR_JOB };

struct args {
    const char *topology, *output;
    bool dry_run;
    const char **job; /* words of --for-job */
    int jobs;
    struct probe_opts probe;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where to write (default plan.tsv)", 1},
    {"dry-run", DRY_RUN, NULL, 0, "only print what the plan would cost", 1},
    {"for-job", FOR_JOB, "WORDS", 0,
     "measure the groups of this job too: options of railgauge predict in one word; may be "
     "repeated",
     1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->probe;
        return 0;
    case 'o':
        a->output = arg;
        return 0;
    case DRY_RUN:
        a->dry_run = true;
        return 0;
    case FOR_JOB:
        MEM_PUSH(a->job, a->jobs) = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (a->topology)
            argp_error(state, "one topology at a time: \"%s\" after \"%s\"", arg, a->topology);
        a->topology = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which topology.json?");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Write plan.tsv, what will be measured and in which order, and print what it will cost."
    "\vExamples:\n"
    "  railgauge plan topology.json\n"
    "  railgauge plan topology.json --op all_reduce,pairs -e 1G --dry-run\n"
    "  railgauge plan topology.json --exact -o exact.tsv\n"
    "  railgauge plan topology.json --for-job '--layout tp=4,dp=2 --strategy zero1'\n\n"
    "plan.tsv is plain text, one line a round, and may be edited.";

static int make(const struct args *a, struct err *err)
{
    struct plan plan = {NULL, 0};
    struct topo topo;
    int rc = topo_load(&topo, a->topology, err);

    if (rc == 0)
        rc = plan_make(&plan, &topo, &a->probe.plan, err);
    for (int i = 0; rc == 0 && i < a->jobs; i++)
        rc = job_plan(&plan, a->job[i], &topo, &a->probe.plan, err);
    if (rc == 0 && !a->dry_run)
        rc = plan_save(&plan, a->output, err);
    if (rc == 0)
        plan_cost_print(stdout, &plan, topo.endpoints, &a->probe.measure);
    plan_free(&plan);
    topo_free(&topo);
    return rc;
}

int cmd_plan(int argc, char **argv)
{
    static const struct argp_child children[] = {{&probe_argp, 0, NULL, 20}, {0}};
    const struct argp argp = {options, parse, "TOPOLOGY", doc, children, NULL, NULL};
    struct args a = {.output = "plan.tsv"};
    struct err err = {0, ""};

    probe_opts_defaults(&a.probe);
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    int rc = make(&a, &err);
    free(a.job);
    return rc < 0 ? cmd_fail("plan", &err) : EXIT_GOOD;
}
