/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_main.c - railgauge-probe, the MPI program: one rank an endpoint.
 *
 * All ranks parse the same words; only rank 0 prints, reads and writes files.  Whatever fails on
 * any rank is agreed on, so that all ranks end with MPI_Finalize and the same exit code. */
#include <libgen.h>
#include <locale.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "emit/nccl_tests.h"
#include "probe/plan_cost.h"
#include "probe/probe_args.h"
#include "probe/world_mpi.h"
#include "topo/gather.h"

static int run_discover(const struct probe_args *a, struct world *w, struct err *err)
{
    struct topo topo;
    int rc = topo_gather(&topo, MPI_COMM_WORLD, a->root ? a->root : "", err);

    if (rc == 0 && w->rank == 0) {
        rc = topo_save(&topo, a->output ? a->output : "topology.json", err);
        if (rc == 0 && !a->quiet)
            topo_print(&topo, stdout);
    }
    topo_free(&topo);
    return w->agree(w, rc, err);
}

/* What a campaign works on. */
struct bed {
    const struct transport *transport;
    struct topo topo; /* whole on rank 0; the others know the number of endpoints */
    struct plan plan;
    struct points_log *log;
    const char *output;
};

static int choose_transport(struct bed *b, const char *name, struct err *err)
{
    b->transport = name ? transport_find(name) : transports[0];
    if (name && !strcmp(name, "sim"))
        return err_usage(err, "transport sim needs no ranks: use railgauge probe --transport sim");
    if (!b->transport)
        return err_usage(err, "no transport \"%s\"; this program has %s", name,
                         transports[0]->name);
    return 0;
}

static int get_topo(struct bed *b, const struct probe_args *a, struct world *w, struct err *err)
{
    int rc = 0;

    if (!a->topology)
        rc = topo_gather(&b->topo, MPI_COMM_WORLD, "", err);
    else if (w->rank == 0)
        rc = topo_load(&b->topo, a->topology, err);
    if (rc == 0 && w->rank == 0 && b->topo.endpoints != w->size)
        rc = err_config(err, "%s has %d endpoints, but %d ranks run: start one rank an endpoint",
                        a->topology, b->topo.endpoints, w->size);
    if (w->agree(w, rc, err) < 0)
        return -1;
    if (w->rank != 0) {
        int host = topo_add_host(&b->topo, "elsewhere");
        for (int i = 0; i < w->size; i++)
            topo_add_endpoint(&b->topo, host, ENDPOINT_CPU);
    }
    return 0;
}

/* Rank 0 reads or makes the plan; everybody parses the same text. */
static int get_plan(struct bed *b, const struct probe_args *a, struct world *w, struct err *err)
{
    void *text = NULL;
    size_t len = 0;
    int rc = 0;

    if (w->rank == 0) {
        rc = a->plan ? plan_load(&b->plan, a->plan, w->size, err)
                     : plan_make(&b->plan, &b->topo, &a->probe.plan, err);
        text = rc == 0 ? plan_text(&b->plan) : NULL;
        len = text ? strlen(text) : 0;
    }
    if (w->agree(w, rc, err) == 0)
        rc = w->share(w, &text, &len, err);
    else
        rc = -1;
    if (rc == 0 && w->rank != 0) {
        rc = plan_parse(&b->plan, "the plan of rank 0", text, w->size, err);
        text = NULL;
    }
    free(text);
    return w->agree(w, rc, err);
}

/* What was found and made here goes beside the points, where fit looks for it. */
static int save_inputs(const struct bed *b, const struct probe_args *a, struct err *err)
{
    char *copy = mem_strdup(b->output), *dir = dirname(copy);
    char *topology = file_join(dir, "topology.json"), *plan = file_join(dir, "plan.tsv");
    int rc = a->topology ? 0 : topo_save(&b->topo, topology, err);

    if (rc == 0 && !a->plan)
        rc = plan_save(&b->plan, plan, err);
    free(plan);
    free(topology);
    free(copy);
    return rc;
}

static int open_log(struct bed *b, const struct probe_args *a, struct world *w, struct err *err)
{
    int rc = 0;

    if (w->rank == 0)
        rc = points_open(&b->log, b->output, plan_crc(&b->plan), w->size, b->transport->name, err);
    if (rc == 0 && w->rank == 0)
        rc = save_inputs(b, a, err);
    return w->agree(w, rc, err);
}

static int run_probe(const struct probe_args *a, struct world *w, struct err *err)
{
    struct bed b = {.output = a->output ? a->output : "points.tsv"};
    int rc = -1;

    topo_init(&b.topo);
    if (choose_transport(&b, a->transport, err) < 0 || get_topo(&b, a, w, err) < 0 ||
        get_plan(&b, a, w, err) < 0)
        goto out;
    if (a->dry_run) {
        if (w->rank == 0)
            plan_cost_print(stdout, &b.plan, w->size, &a->probe.measure);
        rc = 0;
        goto out;
    }
    if (open_log(&b, a, w, err) == 0)
        rc = measure_plan(w, b.transport, &b.topo, &b.plan, &a->probe.measure, b.log, err);
    if (rc == 0 && a->format && w->rank == 0)
        rc = nccl_tests_print(stdout, points_all(b.log), &b.plan, &b.topo, err);
    if (points_close(b.log, rc < 0 ? NULL : err) < 0)
        rc = -1;
    rc = w->agree(w, rc, err);
out:
    plan_free(&b.plan);
    topo_free(&b.topo);
    return rc;
}

static const struct {
    const char *name, *program;
    const struct argp *argp;
    int (*run)(const struct probe_args *a, struct world *w, struct err *err);
} commands[] = {
    {"discover", "railgauge-probe discover", &probe_discover_argp, run_discover},
    {"probe", "railgauge-probe probe", &probe_probe_argp, run_probe},
};

static int run_command(int argc, char **argv, struct world *w, struct err *err)
{
    struct probe_args args;

    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++) {
        if (strcmp(argv[1], commands[i].name))
            continue;
        char *program = mem_strdup(commands[i].program);
        argv[1] = program;
        int rc = probe_args_parse(&args, commands[i].argp, argc - 1, argv + 1, w->rank == 0, err);
        if (rc < 0)
            err->text[0] = '\0'; /* argp has said it */
        else if (!args.done)
            rc = commands[i].run(&args, w, err);
        free(program);
        return rc;
    }
    return err_usage(err,
                     "%s%s%s; the commands are discover and probe (--help after one says more)",
                     argc > 1 ? "no command \"" : "no command", argc > 1 ? argv[1] : "",
                     argc > 1 ? "\"" : " was given");
}

static void stop(int sig)
{
    (void)sig;
    measure_stop = 1;
}

/* mpirun passes SIGUSR1 on to the ranks and waits for them; on SIGTERM it kills them a second
 * later. */
static void catch_signals(void)
{
    static const int caught[] = {SIGTERM, SIGINT, SIGUSR1};
    struct sigaction act = {.sa_handler = stop, .sa_flags = SA_RESTART};

    for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
        sigaction(caught[i], &act, NULL);
}

static void note_library(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;

    MPI_Get_library_version(version, &len);
    version[strcspn(version, "\n")] = '\0';
    json_provenance_add("mpi", version);
}

int main(int argc, char **argv)
{
    struct err err = {0, ""};
    struct world w;

    setlocale(LC_CTYPE, "");
    json_provenance_argv(argc, argv);
    log_setup("railgauge-probe", LOG_INFO);
    MPI_Init(&argc, &argv);
    catch_signals();
    note_library();
    int rc = world_mpi_open(&w, &err);

    if (rc == 0)
        rc = run_command(argc, argv, &w, &err);
    if (rc < 0 && w.rank == 0 && err.text[0])
        log_error("%s", err.text);
    world_mpi_close(&w);
    MPI_Finalize();
    return rc < 0 ? err.code : EXIT_GOOD;
}
