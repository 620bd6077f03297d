/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_main.c - railgauge-probe, the MPI program: one rank an endpoint.
 *
 * All ranks parse the same words; only rank 0 prints, reads and writes files.  Whatever fails on
 * any rank is agreed on, so that all ranks end with MPI_Finalize and the same exit code. */
#include <locale.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "emit/nccl_tests.h"
#include "emit/replay_report.h"
#include "probe/files.h"
#include "probe/plan_cost.h"
#include "probe/world_mpi.h"
#include "step/replay_world.h"
#include "topo/gather.h"

static int run_discover(const struct probe_args *a, struct world *w, struct err *err)
{
    struct topo topo;
    int rc = topo_gather(&topo, MPI_COMM_WORLD, a->root ? a->root : "", err);

    if (rc == 0 && w->rank == 0) {
        rc = a->output ? topo_save(&topo, a->output, err) : 0;
        if (rc == 0 && !a->quiet)
            topo_print(&topo, stdout);
    }
    topo_free(&topo);
    return w->agree(w, rc, err);
}

static int choose_transport(const struct transport **tr, const char *name, struct err *err)
{
    *tr = name ? transport_find(name) : transports[0];
    if (name && !strcmp(name, "sim"))
        return err_usage(err, "transport sim needs no ranks: use railgauge probe --transport sim");
    if (!*tr)
        return err_usage(err, "no transport \"%s\"; this program has %s", name,
                         transports[0]->name);
    return 0;
}

static int get_topo(struct topo *t, const struct probe_args *a, struct world *w, struct err *err)
{
    int rc = 0;

    if (!a->topology)
        rc = topo_gather(t, MPI_COMM_WORLD, "", err);
    else if (w->rank == 0)
        rc = topo_load(t, a->topology, err);
    if (rc == 0 && w->rank == 0 && t->endpoints != w->size)
        rc = err_config(err, "%s has %d endpoints, but %d ranks run: start one rank an endpoint",
                        a->topology, t->endpoints, w->size);
    if (w->agree(w, rc, err) < 0)
        return -1;
    if (w->rank != 0) {
        int host = topo_add_host(t, "elsewhere");
        for (int i = 0; i < w->size; i++)
            topo_add_endpoint(t, host, ENDPOINT_CPU);
    }
    return 0;
}

static int measure(struct files *f, const struct transport *tr, const struct probe_args *a,
                   struct world *w, struct err *err)
{
    int rc = files_open(f, a, w, tr->name, err);

    if (rc == 0)
        rc = measure_plan(w, tr, &f->topo, &f->plan, &a->probe.measure, f->log, err);
    char *trouble = w->rank == 0 && f->log ? files_trouble(f) : NULL;
    if (trouble)
        log_warn("%s: %s", f->output, trouble);
    free(trouble);
    if (rc == 0 && a->format && w->rank == 0)
        rc = nccl_tests_print(stdout, points_all(f->log), &f->plan, &f->topo, err);
    if (points_close(f->log, rc < 0 ? NULL : err) < 0)
        rc = -1;
    return w->agree(w, rc, err);
}

static int run_probe(const struct probe_args *a, struct world *w, struct err *err)
{
    const struct transport *tr;
    struct files f = {.output = NULL};
    int rc = choose_transport(&tr, a->transport, err);

    topo_init(&f.topo);
    if (rc == 0)
        rc = get_topo(&f.topo, a, w, err);
    if (rc == 0)
        rc = files_plan(&f, a, w, err);
    if (rc == 0 && !a->dry_run)
        rc = measure(&f, tr, a, w, err);
    else if (rc == 0 && w->rank == 0)
        plan_cost_print(stdout, &f.plan, w->size, &a->probe.measure);
    plan_free(&f.plan);
    topo_free(&f.topo);
    return rc;
}

static int report(struct replay_outcome *out, const struct replay_opts *o, struct err *err)
{
    json_t *json = replay_json(&out->made, &out->result, &out->job.matrix);
    int rc = o->output ? json_save(json, o->output, err) : 0;

    if (rc == 0 && o->json) {
        json_dumpf(json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else if (rc == 0) {
        replay_text(stdout, &out->made, &out->result);
    }
    json_decref(json);
    return rc;
}

static int run_replay(int argc, char **argv, struct world *w, struct err *err)
{
    struct replay_outcome out = {.result = {.step = NULL}};
    struct replay_opts o;

    replay_defaults(&o);
    if (probe_argp_parse(replay_argp(), argc, argv, w->rank == 0, &o, err) < 0) {
        err->text[0] = '\0'; /* argp has said it */
        return -1;
    }
    if (o.done)
        return 0;
    int rc = replay_world(&out, &o, w, err);
    if (rc == 0 && w->rank == 0)
        rc = report(&out, &o, err);
    replay_world_free(&out);
    return w->agree(w, rc, err);
}

static int run_with(const struct argp *argp, int argc, char **argv, struct world *w,
                    int (*run)(const struct probe_args *a, struct world *w, struct err *err),
                    struct err *err)
{
    struct probe_args args;

    int rc = probe_args_parse(&args, argp, argc, argv, w->rank == 0, err);
    if (rc < 0)
        err->text[0] = '\0'; /* argp has said it */
    else if (!args.done)
        rc = run(&args, w, err);
    return rc;
}

static int start_discover(int argc, char **argv, struct world *w, struct err *err)
{
    return run_with(&probe_discover_argp, argc, argv, w, run_discover, err);
}

static int start_probe(int argc, char **argv, struct world *w, struct err *err)
{
    return run_with(&probe_probe_argp, argc, argv, w, run_probe, err);
}

static const struct command {
    const char *name, *program;
    int (*run)(int argc, char **argv, struct world *w, struct err *err);
    int threads; /* how many threads of a rank enter MPI at once; measuring wants no locks */
} commands[] = {
    {"discover", "railgauge-probe discover", start_discover, MPI_THREAD_SINGLE},
    {"probe", "railgauge-probe probe", start_probe, MPI_THREAD_SINGLE},
    {"replay", "railgauge-probe replay", run_replay, MPI_THREAD_MULTIPLE},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; name && i < sizeof(commands) / sizeof(*commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static int run_command(const struct command *c, int argc, char **argv, struct world *w,
                       struct err *err)
{
    if (!c)
        return err_usage(err,
                         "%s%s%s; the commands are discover, probe and replay (--help after one "
                         "says more)",
                         argc > 1 ? "no command \"" : "no command", argc > 1 ? argv[1] : "",
                         argc > 1 ? "\"" : " was given");
    char *program = mem_strdup(c->program);
    argv[1] = program;
    int rc = c->run(argc - 1, argv + 1, w, err);
    free(program);
    return rc;
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
    const struct command *command = find_command(argc > 1 ? argv[1] : NULL);
    int threads;
    MPI_Init_thread(&argc, &argv, command ? command->threads : MPI_THREAD_SINGLE, &threads);
    files_catch_signals();
    note_library();
    int rc = world_mpi_open(&w, &err);

    if (rc == 0)
        rc = run_command(command, argc, argv, &w, &err);
    if (rc < 0 && w.rank == 0 && err.text[0])
        log_error("%s", err.text);
    world_mpi_close(&w);
    MPI_Finalize();
    return rc < 0 ? err.code : EXIT_GOOD;
}
