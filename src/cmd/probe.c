/* SPDX-License-Identifier: BSD-3-Clause */
/* probe.c - railgauge probe: measure a plan, for sim in this process, else by railgauge-probe. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd/campaign/launch_impl.h"
#include "cmd/command.h"
#include "measure/campaign_files.h"
#include "report/text/nccl_tests.h"
#include "transport/sim/sim_bed.h"

struct args {
    struct probe_args probe;
    struct sim_opts sim;
};

static const struct opt_line command = {
    .doc = "Measure a plan and write points.tsv; a second run measures only what is "
           "missing.\vAll transports except sim are measured by the MPI program "
           "railgauge-probe, one rank per endpoint. It takes the same options, and this "
           "command becomes that program: start it under mpirun or srun. Other options "
           "of nccl-tests are accepted with the value that changes nothing (-g 1), and "
           "refused with advice otherwise.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Simulate two racks with 3 % noise",
                        "mkdir gb200 && railgauge probe --fabric gb200-nvl72 --racks 2 \\\n"
                        "      --noise 3% -o gb200/points.tsv"),
            OPT_EXAMPLE("Simulate a slow NIC with a plan",
                        "mkdir slow && railgauge probe --fabric hgx-h100 --racks 1 \\\n"
                        "      --fault slow-nic=3:0.6 --plan plan.tsv -o slow/points.tsv"),
            OPT_EXAMPLE("Measure with two ranks over MPI",
                        "mkdir mpi && mpirun -n 2 railgauge-probe probe --op all_reduce \\\n"
                        "      -e 64K --format nccl-tests -o mpi/points.tsv"),
            {0}},
    .exits = EXIT_CODES("2 points failed or data were wrong, ",
                        ", 75 cut short (a second run continues), 78 configuration"),
    .set = {PROBE_SETS(offsetof(struct args, probe)),
            {.rows = sim_options, .at = offsetof(struct args, sim)}},
    .more = transport_options};

static int measure_sim(struct args *a, struct campaign_files *f, struct err *err)
{
    struct measure_opts how = a->probe.probe.measure;
    int rc = campaign_files_open(f, &a->probe, &world_solo, transport_solo()->name, err);

    campaign_files_catch_signals();
    if (rc == 0)
        rc = measure_plan(&world_solo, transport_solo(), &f->topo, &f->plan, &how, f->log, err);
    if (rc == 0 && !how.nics && plan_points(&f->plan, true) > 0) {
        how.nics = true;
        rc = measure_plan(&world_solo, transport_solo(), &f->topo, &f->plan, &how, f->log, err);
    }
    if (rc == 0 && a->probe.format)
        rc = nccl_tests_print(
            stdout, points_all(f->log), &f->plan, &f->topo,
            &(struct nccl_tests_how){a->probe.probe.measure.warmup, &nccl_opts_asked}, err);
    return campaign_files_close(f, rc, err);
}

static int run_sim(struct args *a, struct err *err)
{
    struct campaign_files f = {.output = NULL};
    struct sim_bed bed = {0};
    int rc = 0;

    if (a->probe.topology)
        return err_usage(err, "--topology %s: the simulated fabric is its own topology",
                         a->probe.topology);
    rc = sim_bed_open(&bed, &a->sim, err);
    if (rc == 0) {
        f.topo = bed.seen; /* borrowed */
        rc = campaign_files_plan(&f, &a->probe, &world_solo, err);
    }
    if (rc == 0 && a->probe.dry_run)
        plan_cost_print(stdout, &f.plan, &f.topo, &a->probe.probe.measure);
    else if (rc == 0)
        rc = measure_sim(a, &f, err);
    plan_free(&f.plan);
    sim_bed_free(&bed);
    return rc;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--help", 6) || !strncmp(argv[i], "-?", 2) ||
            !strcmp(argv[i], "--usage"))
            return true;
    return false;
}

/* Parse the words silently to find out if they are for the simulated fabric. */
static bool is_sim(int argc, char **argv)
{
    struct args a = {.probe = {.output = NULL}};
    /* copy, because argp sorts the words */
    char **copy = mem_calloc((size_t)argc + 1, sizeof(*copy));

    memcpy(copy, argv, (size_t)argc * sizeof(*copy));
    probe_args_defaults(&a.probe);
    opt_parse(&command, argc, copy, OPT_SILENT, &a);
    const struct transport *t = transport_find(a.probe.transport);
    bool sim = a.probe.transport ? t && !t->ranks : a.sim.fabric != NULL;
    sim_opts_free(&a.sim);
    free(copy);
    return sim;
}

static int exec_probe(int argc, char **argv, struct err *err)
{
    struct words w = {NULL, 0};

    words_add(&w, "probe");
    for (int i = 1; i < argc; i++)
        words_add(&w, "%s", argv[i]);
    int rc = launch_exec(&w, err);
    words_free(&w);
    return rc;
}

static int cmd_probe(int argc, char **argv, struct err *err)
{
    struct args a = {.probe = {.output = NULL}};
    int rc = 0;

    if (!is_sim(argc, argv) && !asks_for_help(argc, argv))
        return exec_probe(argc, argv, err);
    probe_args_defaults(&a.probe);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (!a.probe.done)
        rc = run_sim(&a, err);
    sim_opts_free(&a.sim);
    return rc;
}

const struct command probe_command = {&command, cmd_probe};
