/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - railgauge plan: make plan.tsv from topology.json. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cmd/command.h"
#include "measure/plan.h"
#include "measure/probe_args.h"
#include "step/job.h"

struct args {
    const char *topology, *output;
    bool dry_run, json;
    const char **job; /* words of --for-job */
    int jobs;
    struct probe_opts probe;
};

static const struct opt options[] = {
    {"output", 'o', "FILE", "file to write (default plan.tsv)", OPT_INTO(struct args, output)},
    {"dry-run", 0, NULL, "only print what the plan would cost", OPT_INTO(struct args, dry_run)},
    {"json", 0, NULL, "print the cost as JSON", OPT_INTO(struct args, json)},
    {"for-job", 0, "WORDS",
     "also measure the groups of this job, given as options of railgauge predict; may be given "
     "again",
     OPT_LIST(struct args, job, jobs)},
    {0},
};

static const struct opt words[] = {
    {"topology", .help = "which topology.json?", OPT_INTO(struct args, topology)}, {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .set = {{.rows = probe_options, .at = offsetof(struct args, probe)}},
    .usage = "TOPOLOGY",
    .doc = "Write plan.tsv, the ordered list of measurements, and print its "
           "cost.\vplan.tsv is plain text, one line per round, and may be edited.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Write plan.tsv", "railgauge plan topology.json"),
            OPT_EXAMPLE("Print the cost of chosen operations up to 1 GiB",
                        "railgauge plan topology.json --op all_reduce,pairs -e 1G --dry-run"),
            OPT_EXAMPLE("Measure every pair", "railgauge plan topology.json --exact -o exact.tsv"),
            OPT_EXAMPLE(
                "Measure the groups of a training job",
                "railgauge plan topology.json --for-job '--layout tp=4,dp=2 --strategy zero1'"),
            {0}},
    .exits = EXIT_CODES("", ", 78 configuration"),
};

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
    if (rc == 0) {
        json_t *json = a->json ? plan_cost_json(&plan, &topo, &a->probe.measure) : NULL;
        if (!a->json)
            plan_cost_print(stdout, &plan, &topo, &a->probe.measure);
        rc = json_answer(json_framed("railgauge-plan", NULL, json), NULL, a->json, err);
    }
    plan_free(&plan);
    topo_free(&topo);
    return rc;
}

static int cmd_plan(int argc, char **argv, struct err *err)
{
    struct args a = {.output = "plan.tsv"};

    probe_opts_defaults(&a.probe);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = make(&a, err);
    free(a.job);
    return rc;
}

const struct command plan_command = {&command, cmd_plan};
