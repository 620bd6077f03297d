/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_main.c - railgauge-probe, the MPI program: one rank an endpoint.
 *
 * All ranks parse the same words; only rank 0 prints, reads and writes files.  Whatever fails on
 * any rank is agreed on, so that all ranks end with MPI_Finalize and the same exit code. */
#include <libgen.h>
#include <locale.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "emit/text/report.h"
#include "kernels/gpu.h"
#include "kernels/nccl_api.h"
#include "probe/campaign_files.h"
#include "probe/gpu_binding.h"
#include "probe/mpi/world_mpi.h"
#include "probe/nccl/nccl_wait.h"
#include "probe/transport.h"
#include "probe/watch/watch.h"
#include "probe/watch/watch_listen.h"
#include "probe_main.h"
#include "step/replay/replay_mpi.h"

bool probe_is(const struct probe_args *a, const char *transport)
{
    return a->transport && !strcmp(a->transport, transport);
}

bool probe_on_gpus(const struct probe_args *a)
{
    return probe_is(a, "nccl") || probe_is(a, "copy");
}

/* "auto" is nccl where every rank has a GPU and the library, else mpi; why is said and kept. */
static void choose_auto(struct probe_args *a, struct world *w)
{
    struct err why = {0, ""};

    if (!a->transport || strcmp(a->transport, "auto"))
        return;
    int rc = gpu_binding_take(w, a->nccl.share_gpu, NULL, &why);
    if (rc == 0)
        rc = w->agree(w, nccl_load(&why), &why);
    gpu_close();
    a->transport = rc < 0 ? "mpi" : "nccl";
    if (probe_is(a, "nccl"))
        return;
    /* Where no driver of NVIDIA is, nobody expects GPUs: the summary says "over mpi". */
    if (w->rank == 0 && access("/proc/driver/nvidia", F_OK) == 0)
        log_warn("GPUs are left out, transport mpi: %s", why.text);
    else if (w->rank == 0)
        log_debug("transport mpi: %s", why.text);
    json_provenance_add("transport_why", why.text);
}

static bool simulated; /* SimGrid: all ranks are one process, and their time is not ours */

/* From here on ranks that hang or die are named; the verdict lies beside `output`. */
static void start_watch(struct world *w, double hang_after, const char *transport,
                        const char *output)
{
    char *copy = output ? mem_strdup(output) : NULL;

    if (!simulated)
        watch_start(w, hang_after > 0 ? hang_after : watch_hang_default(transport),
                    copy ? dirname(copy) : NULL);
    free(copy);
}

static int report(struct replay_outcome *out, const struct replay_opts *o, struct err *err)
{
    json_t *json = replay_json(&out->made, &out->result, &out->job.matrix);
    int rc = o->output ? json_save(json, o->output, err) : 0;

    if (rc == 0 && o->json) {
        json_print(stdout, json);
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
    start_watch(w, 0, "mpi", o.output);
    int rc = replay_world(&out, &o, w, err);
    if (rc == 0 && w->rank == 0)
        rc = report(&out, &o, err);
    replay_world_free(&out);
    return w->agree(w, rc, err);
}

static int run_with(const struct argp *argp, int argc, char **argv, struct world *w,
                    int (*run)(const struct probe_args *a, struct world *w, struct err *err),
                    const char *output, struct err *err)
{
    struct probe_args args;

    int rc = probe_args_parse(&args, argp, argc, argv, w->rank == 0, err);
    if (rc < 0)
        err->text[0] = '\0'; /* argp has said it */
    if (rc < 0 || args.done)
        return rc;
    if (!args.compute)
        choose_auto(&args, w);
    if (transport_limit(&args.probe.plan.ops, args.transport, err) < 0)
        return -1;
    start_watch(w, args.probe.measure.hang_after, args.transport,
                args.output ? args.output : output);
    return run(&args, w, err);
}

static int start_discover(int argc, char **argv, struct world *w, struct err *err)
{
    return run_with(&probe_discover_argp, argc, argv, w, probe_discover, NULL, err);
}

static int start_probe(int argc, char **argv, struct world *w, struct err *err)
{
    return run_with(&probe_probe_argp, argc, argv, w, probe_campaign, "points.tsv", err);
}

static const struct command {
    const char *name, *program;
    int (*run)(int argc, char **argv, struct world *w, struct err *err);
    const struct argp *argp; /* of a command with a transport, which says how many threads it has */
} commands[] = {
    {"discover", "railgauge-probe discover", start_discover, &probe_discover_argp},
    {"probe", "railgauge-probe probe", start_probe, &probe_probe_argp},
    {"replay", "railgauge-probe replay", run_replay, NULL},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; name && i < sizeof(commands) / sizeof(*commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

/* "auto" can become nccl only where this rank has both the library and a GPU. */
static const char *transport_to_be(const struct probe_args *a)
{
    struct err why;

    if (a->compute || a->look)
        return "nccl";
    if (!a->transport || (probe_is(a, "auto") && (nccl_load(&why) < 0 || gpu_count(&why) < 1)))
        return transports[0]->name;
    return probe_is(a, "auto") ? "nccl" : a->transport;
}

/* What MPI is asked for must be known before it starts: with locks on, which every level but SINGLE
 * brings in Open MPI 4.1, 8 bytes between two ranks of a host take 0.50 us instead of 0.37.  The
 * watch thread is no reason for them: it makes no MPI call. */
static int threads_of(const struct command *c, int argc, char **argv)
{
    struct probe_args a;
    struct err err;

    if (c && !c->argp)
        return MPI_THREAD_MULTIPLE; /* replay's sides enter MPI at once */
    if (!c || probe_args_parse(&a, c->argp, argc - 1, argv + 1, false, &err) < 0 || a.done)
        return MPI_THREAD_SINGLE;
    const struct transport *t = transport_find(transport_to_be(&a));
    return t && t->threads ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE;
}

static const char *threads_name(int level)
{
    return level == MPI_THREAD_SINGLE     ? "single"
           : level == MPI_THREAD_FUNNELED ? "funneled"
           : level == MPI_THREAD_MULTIPLE ? "multiple"
                                          : "serialized";
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

static void note_library(int threads)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;

    MPI_Get_library_version(version, &len);
    version[strcspn(version, "\n")] = '\0';
    json_provenance_add("mpi", version);
    json_provenance_add("mpi_threads", threads_name(threads));
    simulated = strstr(version, "SMPI");
}

int main(int argc, char **argv)
{
    struct err err = {0, ""};
    struct world w;

    setlocale(LC_CTYPE, "");
    json_memory();
    json_provenance_argv(argc, argv);
    log_setup("railgauge-probe", LOG_INFO);
    if (argc > 1 && !strcmp(argv[1], "watch"))
        return listen_main(argc - 1, argv + 1);
    const struct command *command = find_command(argc > 1 ? argv[1] : NULL);
    int threads;
    MPI_Init_thread(&argc, &argv, threads_of(command, argc, argv), &threads);
    campaign_files_catch_signals();
    note_library(threads);
    int rc = world_mpi_open(&w, &err);

    if (rc == 0)
        rc = run_command(command, argc, argv, &w, &err);
    if (watch_verdict(NULL) < 0) { /* said by the listener; MPI_Finalize would wait for the dead */
        fflush(NULL);
        _exit(EXIT_CUT);
    }
    if (rc < 0 && w.rank == 0 && err.text[0])
        log_error("%s", err.text);
    watch_stop();
    world_mpi_close(&w);
    MPI_Finalize();
    int code = rc == 0 || (err.code == EXIT_CUT && watch_asked()) ? EXIT_GOOD : err.code;
    if (nccl_wait_left()) { /* what ends with exit() must not be taken from those calls */
        fflush(NULL);
        _exit(code);
    }
    return code;
}
