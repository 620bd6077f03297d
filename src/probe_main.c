/* SPDX-License-Identifier: BSD-3-Clause */
/* probe_main.c - railgauge-probe, the MPI program with one rank per endpoint.
 *
 * All ranks parse the same command line; only rank 0 prints, reads and writes files.  Ranks agree
 * on every failure, so that all end with MPI_Finalize and the same exit code. */
#include <libgen.h>
#include <locale.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "export/export.h"
#include "kernels/gpu.h"
#include "kernels/kernels.h"
#include "kernels/nccl_api.h"
#include "measure/campaign_files.h"
#include "measure/device/gpu_binding.h"
#include "measure/transports/transport.h"
#include "report/text/nccl_tests.h"
#include "report/text/report.h"
#include "step/replay/replay.h"
#include "step/work.h"
#include "transport/mpi/mpi_readback.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_conn.h"
#include "transport/nccl/nccl_readback.h"
#include "transport/nccl/nccl_wait.h"
#include "transport/nccl/transport_nccl.h"
#include "watch/watch.h"
#include "watch/watch_listen.h"

/* --- railgauge-probe discover --- */

static int no_transport(const char *name, struct err *err)
{
    struct near near = {.word = name};
    char names[TRANSPORT_NAMES];

    transport_each(near_try, &near);
    return err_usage(err, "no transport \"%s\"%s; this program has %s", name, near_text(&near),
                     transport_names(names, false));
}

/* Bind each rank to its GPU; with --nccl also start the library, and read its log back. */
static int start_discovering(const struct probe_args *a, const struct transport *t, struct world *w,
                             struct nccl_readback **r, struct err *err)
{
    *r = NULL;
    if (a->look)
        return transport_nccl_start(r, true, w, err);
    return t->memory == TRANSPORT_GPU ? gpu_binding_take(w, nccl_opts_asked.share_gpu, NULL, err)
                                      : 0;
}

static int discover(const struct probe_args *a, struct world *w, struct err *err)
{
    const struct transport *t = a->transport ? transport_find(a->transport) : transports;
    struct nccl_readback *r;
    struct topo topo;

    if (!t || !t->ranks)
        return no_transport(a->transport, err);
    json_provenance_add("transport", t->name);
    topo_init(&topo);
    int rc = start_discovering(a, t, w, &r, err);
    if (rc == 0)
        rc = world_mpi_topo_gather(w, &topo, a->root, nccl_opts_asked.share_gpu, err);
    if (rc == 0 && a->look)
        rc = nccl_readback_build(r, transport_of_gpus(), w, &topo, err);
    if (rc == 0 && !a->root)
        world_mpi_topo_try(w, &topo, nccl_opts_asked.share_gpu);
    if (rc == 0 && w->rank == 0) {
        rc = a->output ? topo_save(&topo, a->output, err) : 0;
        if (rc == 0)
            rc = discover_report(stdout, &topo,
                                 &(struct discover_report){a->quiet, a->json, a->check}, err);
    }
    topo_free(&topo);
    nccl_conn_close_all();
    nccl_readback_close(r);
    gpu_close();
    return w->agree(w, rc, err);
}

/* --- railgauge-probe probe --compute: each GPU alone --- */

/* Send rank 0's list to all ranks. */
static int share_list(void **list, int *count, size_t size, struct world *w, struct err *err)
{
    size_t len = size * (size_t)*count;

    if (w->share(w, list, &len, err) < 0)
        return -1;
    *count = (int)(len / size);
    return 0;
}

/* The products that a user names, or products and other kernels of the models.  The caller frees
 * both lists. */
static int choose_kernels(void *list[2], int count[2], const struct probe_args *a, struct world *w,
                          struct err *err)
{
    const char *models = a->model ? a->model : a->device.gemm ? NULL : DEVICE_MODELS;
    struct device_kernel *kernel = NULL;
    struct gemm_shape *shape = NULL;
    int rc = 0;

    if (w->rank == 0 && models)
        rc = work_shapes(&shape, &kernel, count, models, err);
    if (w->rank == 0 && rc == 0 && a->device.gemm) {
        free(shape);
        rc = gemm_shapes_parse(&shape, &count[0], a->device.gemm, err);
    }
    list[0] = shape;
    list[1] = kernel;
    if (w->agree(w, rc, err) < 0 || share_list(&list[0], &count[0], sizeof(*shape), w, err) < 0)
        return -1;
    return share_list(&list[1], &count[1], sizeof(*kernel), w, err);
}

static int measure_compute(const struct probe_args *a, const struct device_opts *o, struct world *w,
                           struct err *err)
{
    const char *path = a->output ? a->output : "compute.tsv";
    struct device_table t = {NULL, 0};
    int rc = gpu_binding_take(w, nccl_opts_asked.share_gpu, NULL, err);

    if (rc == 0)
        rc = device_measure_all(&t, o, w, err);
    if (rc == 0 && w->rank == 0) {
        json_provenance_add("gpu", gpu_facts()->name);
        rc = device_save(&t, path, err);
        device_text(stdout, &t);
    }
    device_free(&t);
    gpu_close();
    return w->agree(w, rc, err);
}

static int compute(const struct probe_args *a, struct world *w, struct err *err)
{
    struct device_opts o = DEVICE_DEFAULTS;
    void *list[2] = {NULL, NULL};
    int count[2] = {0, 0};

    o.bytes = a->device.bytes;
    o.half_width = a->probe.measure.half_width;
    if (a->probe.measure.time_cap > 0)
        o.time_cap = a->probe.measure.time_cap;
    int rc = choose_kernels(list, count, a, w, err);
    o.shape = list[0];
    o.shapes = count[0];
    o.kernel = list[1];
    o.kernels = count[1];
    if (rc == 0 && !a->dry_run)
        rc = measure_compute(a, &o, w, err);
    else if (rc == 0 && w->rank == 0)
        printf("%d figures of each GPU alone, about %.0f s\n", device_rows(&o), device_seconds(&o));
    free(list[0]);
    free(list[1]);
    return rc;
}

/* --- railgauge-probe probe: a campaign, from plan to files --- */

static int choose_transport(const struct transport **tr, const char *name, struct err *err)
{
    *tr = name ? transport_find(name) : transports;
    if (!*tr)
        return no_transport(name, err);
    return (*tr)->ranks ? 0
                        : err_usage(err,
                                    "transport %s needs no ranks: use railgauge probe --transport "
                                    "%s",
                                    name, name);
}

/* --sweep: write the combinations to their files and print the best ones. */
static int sweep(const struct transport *tr, const struct campaign_files *f,
                 const struct probe_args *a, struct world *w, struct err *err)
{
    int rc = tr->calls->sweep(tr, a, w, &f->topo, &f->plan, f->output, err);
    char *copy = mem_strdup(f->output);
    struct tuner t;

    if (rc == 0 && w->rank == 0 && (rc = tuner_load(&t, dirname(copy), err)) == 0) {
        tuner_report(stdout, &t);
        tuner_free(&t);
    }
    free(copy);
    return w->agree(w, rc, err);
}

/* Record what the library built in the topology beside the points; EXIT_CONFIG if the requested
 * path was not used. */
static int learn(const struct transport *tr, struct campaign_files *f, const struct probe_args *a,
                 struct world *w, struct err *err)
{
    int rc = tr->calls->learn(a, w, &f->topo, f->log ? points_all(f->log) : NULL, err);

    if (w->rank == 0 && (f->topo.nccl || !tr->nics) &&
        !a->probe.measure.nics) /* the NIC pass is not normal use */
        campaign_files_save_topology(f, rc < 0 ? NULL : err);
    return rc;
}

static double began; /* log_now() at the start of this program */

static int measure(struct campaign_files *f, const struct transport *tr, const struct probe_args *a,
                   struct world *w, struct err *err)
{
    struct measure_time time = {.began = began};
    struct measure_opts how = a->probe.measure;
    int rc = tr->calls->prepare ? tr->calls->prepare(tr, a, w, &f->topo, &f->plan, err) : 0;

    how.time = &time;
    if (rc == 0)
        rc = campaign_files_open(f, a, w, tr->name, err);
    if (rc == 0)
        rc = measure_plan(w, tr, &f->topo, &f->plan, &how, f->log, err);
    if (rc == 0 && w->rank == 0)
        rc = campaign_files_note_time(f, &time, err);
    if (rc == 0 && tr->calls->sweep && nccl_opts_asked.sweep && !a->probe.measure.nics)
        rc = sweep(tr, f, a, w, err);
    if (rc == 0 && tr->calls->learn)
        rc = learn(tr, f, a, w, err);
    if (rc == 0 && a->format && w->rank == 0)
        rc = nccl_tests_print(
            stdout, points_all(f->log), &f->plan, &f->topo,
            &(struct nccl_tests_how){.warmup = a->probe.measure.warmup, .nccl = &nccl_opts_asked},
            err);
    return w->agree(w, campaign_files_close(f, rc, err), err);
}

/* True if restarted ranks measure nothing. */
static bool only_discovers(const struct probe_args *a, const struct transport *t)
{
    return a->discover && (!strcmp(a->discover, "all") || t->memory == TRANSPORT_GPU);
}

static int discover_beside(const char *points, const struct probe_args *a, struct world *w,
                           struct err *err)
{
    char *path = file_beside(points, "topology.json");
    struct probe_args alone = *a;

    alone.output = path;
    alone.quiet = true;
    int rc = discover(&alone, w, err);
    free(path);
    return rc;
}

/* Estimate the duration on this machine: measure a few turns, into a temporary file. */
static int estimate(struct campaign_files *f, const struct transport *tr,
                    const struct probe_args *a, struct world *w, struct err *err)
{
    char path[] = "/tmp/railgauge-XXXXXX", text[UNITS_TEXT];
    struct measure_time time = {.began = began};
    struct measure_opts how = a->probe.measure;
    int rc = 0, fd = w->rank == 0 ? mkstemp(path) : -1;

    how.time = &time;
    how.dry = true;
    if (w->rank == 0)
        rc = points_open(&f->log, path, plan_crc(&f->plan), &f->topo, tr->name, err);
    if (fd >= 0) {
        unlink(path);
        close(fd);
    }
    rc = w->agree(w, rc, err);
    if (rc == 0)
        rc = measure_plan(w, tr, &f->topo, &f->plan, &how, f->log, err);
    if (rc == 0 && w->rank == 0)
        printf("about %s here, by %d of its points\n", units_seconds_text(text, time.estimated),
               points_all(f->log)->count);
    points_close(f->log, NULL);
    return w->agree(w, rc, err);
}

static int campaign(const struct probe_args *a, struct world *w, struct err *err)
{
    const struct transport *tr;
    struct campaign_files f = {.output = NULL};

    if (a->compute)
        return compute(a, w, err);
    int rc = choose_transport(&tr, a->transport, err);

    if (rc == 0 && only_discovers(a, tr))
        return discover_beside(a->output, a, w, err);
    if (rc == 0)
        json_provenance_add("transport", tr->name);
    topo_init(&f.topo);
    if (rc == 0 && tr->calls->start)
        rc = tr->calls->start(a, w, err);
    if (rc == 0)
        rc = world_mpi_topo(w, &f.topo, a->topology, nccl_opts_asked.share_gpu, err);
    if (rc == 0)
        rc = campaign_files_plan(&f, a, w, err);
    if (rc == 0 && !a->dry_run) {
        rc = measure(&f, tr, a, w, err);
        if (tr->calls->finish)
            rc = tr->calls->finish(w, f.output, rc, err);
    } else if (rc == 0) {
        if (w->rank == 0)
            plan_cost_print(stdout, &f.plan, &f.topo, &a->probe.measure);
        if (tr->memory == TRANSPORT_HOST)
            rc = estimate(&f, tr, a, w, err);
    }
    gpu_close();
    plan_free(&f.plan);
    topo_free(&f.topo);
    return rc;
}

/* --- the commands --- */

/* "auto" is nccl if every rank has a GPU and the library, else the default.  Records why. */
static void choose_auto(struct probe_args *a, struct world *w)
{
    struct err why = {0, ""};

    if (!a->transport || strcmp(a->transport, "auto"))
        return;
    int rc = gpu_binding_take(w, nccl_opts_asked.share_gpu, NULL, &why);
    if (rc == 0)
        rc = w->agree(w, nccl_load(&why), &why);
    gpu_close();
    a->transport = rc < 0 ? transports[0].name : transport_of_gpus()->name;
    if (rc == 0)
        return;
    /* Without NVIDIA's driver GPUs are not expected: the summary says "over mpi". */
    if (w->rank == 0 && access("/proc/driver/nvidia", F_OK) == 0)
        log_warn("GPUs are left out, transport %s: %s", a->transport, why.text);
    else if (w->rank == 0)
        log_debug("transport %s: %s", a->transport, why.text);
    json_provenance_add("transport_why", why.text);
}

/* Time that a launcher may take to meet all ranks in MPI_Finalize; thousands need seconds. */
static const double FINALIZE_SEC = 20;

/* Time for the goodbyes of the other ranks, behind MPI_Finalize; without it they look killed. */
enum { GOODBYE_USEC = 300000 };

static bool simulated; /* SimGrid: all ranks are in one process, with simulated time */

/* From here on ranks that hang or die are named; the verdict is written beside `output`. */
static void start_watch(struct world *w, double hang_after, const struct transport *t,
                        const char *output)
{
    char *copy = output ? mem_strdup(output) : NULL;

    if (!simulated)
        watch_start(w, hang_after > 0 ? hang_after : (t ? t : transports)->patience,
                    copy ? dirname(copy) : NULL);
    free(copy);
}

/* Parse the options on every rank; only rank 0 reports errors. */
static int read_words(const struct opt_line *line, int argc, char **argv, const struct world *w,
                      void *args, struct err *err)
{
    if (opt_parse(line, argc, argv, w->rank == 0 ? OPT_RETURNS : OPT_SILENT, args) == 0)
        return 0;
    err_usage(err, "%s", ""); /* reported already */
    return -1;
}

static int run_replay(int argc, char **argv, struct world *w, struct err *err)
{
    struct replay_outcome out = {.result = {.step = NULL}};
    struct replay_opts o;

    replay_defaults(&o);
    if (read_words(&replay_line, argc, argv, w, &o, err) < 0)
        return -1;
    if (o.done)
        return 0;
    start_watch(w, 0, transports, o.output);
    int rc = replay_world(&out, &o, w, err);
    if (rc == 0 && w->rank == 0)
        rc = replay_report(&out, o.output, o.json, err);
    replay_world_free(&out);
    return w->agree(w, rc, err);
}

static const struct probe_command {
    const char *name;
    const struct opt_line *line; /* NULL: replay, which takes no transport */
    int (*run)(const struct probe_args *a, struct world *w, struct err *err);
    const char *output; /* directory of the verdict, unless -o gives another */
    const char *help;
} commands[] = {
    {"discover", &probe_discover_line, discover, NULL, "write topology.json of all ranks"},
    {"probe", &probe_probe_line, campaign, "points.tsv", "measure a plan, write points.tsv"},
    {"replay", NULL, NULL, NULL, "run the messages of a predicted step"},
};

/* A program started by the launcher of another MPI, or by srun with another --mpi, is alone in its
 * world, and so is each of its siblings: they would all write the same points.  Launchers that
 * start launchers leave their variables behind, so that the innermost is asked first. */
static int check_launcher(const struct world *w, struct err *err)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *by = NULL;
    int n;

    for (size_t i = 0; !by && i < sizeof(sizes) / sizeof(*sizes); i++)
        by = getenv(sizes[i]) ? sizes[i] : NULL;
    if (w->size > 1 || !by || atoi(getenv(by)) < 2)
        return 0;
    MPI_Get_library_version(version, &n);
    return err_config(err,
                      "the launcher started %.12s processes (%s), but each is alone in its MPI "
                      "(%.*s): start it with the mpirun of that MPI, with srun --mpi=pmix "
                      "(Open MPI), pmi2 (MPICH, Intel MPI) or cray_shasta, or build it with the "
                      "mpicc of the launcher (RAILGAUGE_MPI)",
                      getenv(by), by, (int)strcspn(version, "\n,") % 60, version);
}

static int run_over_transport(const struct probe_command *c, int argc, char **argv, struct world *w,
                              struct err *err)
{
    struct probe_args args;

    probe_args_defaults(&args);
    int rc = read_words(c->line, argc, argv, w, &args, err);
    if (rc < 0 || args.done)
        return rc;
    if (c->output && check_launcher(w, err) < 0)
        return -1;
    if (!args.compute)
        choose_auto(&args, w);
    const struct transport *t = transport_find(args.transport);
    if (transport_limit(&args.probe.plan.ops, t, err) < 0)
        return -1;
    if (args.probe.measure.nics && !(t ? t : transports)->nics)
        return err_usage(err, "transport %s has no --nic-pass", (t ? t : transports)->name);
    args.probe.plan.nics &= t && t->nics && (args.probe.measure.nics || args.dry_run);
    start_watch(w, args.probe.measure.hang_after, t, args.output ? args.output : c->output);
    return c->run(&args, w, err);
}

static const struct probe_command *find_command(const char *name)
{
    for (size_t i = 0; name && i < sizeof(commands) / sizeof(*commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static int print_help(void)
{
    puts("Usage: railgauge-probe COMMAND [OPTION...]\n"
         "The MPI program of railgauge: a process per endpoint, started by mpirun or srun.\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        printf("  %-9s  %s\n", commands[i].name, commands[i].help);
    puts("\nrailgauge-probe COMMAND --help lists the options of a command.");
    return EXIT_GOOD;
}

/* Transport by the options: "auto" becomes nccl only if this rank has the library and a GPU. */
static const struct transport *transport_to_be(const struct probe_args *a)
{
    bool automatic = a->transport && !strcmp(a->transport, "auto");
    struct err why;

    if (a->compute || a->look)
        return transport_of_gpus();
    if (!a->transport || (automatic && (nccl_load(&why) < 0 || gpu_count(&why) < 1)))
        return transports;
    return automatic ? transport_of_gpus() : transport_find(a->transport);
}

/* MPI must be told its thread level before it starts.  Every level except SINGLE enables locks in
 * Open MPI 4.1, with which 8 bytes between two ranks of a host take 0.50 us instead of 0.37.  The
 * watch thread does not need them: it makes no MPI call. */
static int threads_of(const struct probe_command *c, int argc, char **argv)
{
    struct probe_args a;

    if (c && !c->line)
        return MPI_THREAD_MULTIPLE; /* both sides of replay call MPI at once */
    probe_args_defaults(&a);
    if (!c || opt_parse(c->line, argc - 1, argv + 1, OPT_SILENT, &a) < 0 || a.done)
        return MPI_THREAD_SINGLE;
    const struct transport *t = transport_to_be(&a);
    return t && t->threads ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE;
}

static const char *threads_name(int level)
{
    return level == MPI_THREAD_SINGLE     ? "single"
           : level == MPI_THREAD_FUNNELED ? "funneled"
           : level == MPI_THREAD_MULTIPLE ? "multiple"
                                          : "serialized";
}

static int run_named(const struct probe_command *c, int argc, char **argv, struct world *w,
                     struct err *err)
{
    if (!c && argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        if (w->rank == 0)
            puts("railgauge-probe COMMAND [OPTION]...: what railgauge run starts under mpirun or "
                 "srun\n\n"
                 "  discover   which hosts, GPUs and NICs the ranks have\n"
                 "  probe      measure a plan into points.tsv\n"
                 "  replay     the messages of a predicted step\n\n"
                 "railgauge-probe COMMAND --help lists its options.");
        return 0;
    }
    if (!c)
        return err_usage(err,
                         "%s%s%s; the commands are discover, probe and replay (--help after one "
                         "says more)",
                         argc > 1 ? "no command \"" : "no command", argc > 1 ? argv[1] : "",
                         argc > 1 ? "\"" : " was given");
    char *program = mem_printf("railgauge-probe %s", c->name);
    argv[1] = program;
    int rc = c->line ? run_over_transport(c, argc - 1, argv + 1, w, err)
                     : run_replay(argc - 1, argv + 1, w, err);
    free(program);
    return rc;
}

static void note_library(int threads)
{
    static char words[MPI_MAX_LIBRARY_VERSION_STRING + 300];
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", built[200];
    int len;

    MPI_Get_library_version(version, &len);
    version[strcspn(version, "\n")] = '\0';
    json_provenance_add("mpi", version);
    json_provenance_add("mpi_threads", threads_name(threads));
    simulated = strstr(version, "SMPI");
    kernels_built(built, sizeof(built));
    snprintf(words, sizeof(words), "%s\n%s\nGPU kernels: %s", opt_version, version, built);
    opt_version = words;
}

/* In a pod the launcher cannot look at the ranks' /dev/shm, and MPI_Init() dies of it silently.
 * 4 MiB: what Open MPI maps for one rank. */
static void warn_of_shared_memory(void)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    char host[256], left[UNITS_TEXT];
    struct statvfs s;

    if ((local && strcmp(local, "0")) || statvfs("/dev/shm", &s) != 0)
        return;
    double bytes = (double)s.f_bavail * (double)s.f_frsize;
    if (bytes < 4 << 20)
        log_warn(
            "%s: /dev/shm has %s left, less than MPI maps for one rank: if ranks die of signal "
            "7, mount an emptyDir of medium Memory there",
            host_self(host, sizeof(host)), units_bytes_text(left, bytes));
}

int main(int argc, char **argv)
{
    struct err err = {0, ""};
    struct world w;

    began = log_now();
    setlocale(LC_CTYPE, "");
    json_memory();
    json_provenance_argv(argc, argv);
    log_setup("railgauge-probe", LOG_INFO);
    opt_version = "railgauge-probe " RG_VERSION;
    if (argc > 1 && !strcmp(argv[1], "watch"))
        return listen_main(argc - 1, argv + 1);
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?")))
        return print_help(); /* without MPI, so that it works where no launcher does */
    char *asks[] = {argv[0], "probe", "--version", NULL};
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        argv = asks;
        argc = 3;
    }
    const struct probe_command *command = find_command(argc > 1 ? argv[1] : NULL);
    int threads;
    warn_of_shared_memory();
    mpi_readback_open();
    MPI_Init_thread(&argc, &argv, threads_of(command, argc, argv), &threads);
    mpi_readback_opened();
    campaign_files_catch_signals();
    note_library(threads);
    int rc = world_mpi_open(&w, &err);

    if (rc == 0)
        rc = run_named(command, argc, argv, &w, &err);
    /* The listener reported it.  MPI_Finalize would wait for dead ranks. */
    if (watch_verdict(NULL) < 0) {
        fflush(NULL);
        _exit(EXIT_CUT);
    }
    if (rc < 0 && w.rank == 0 && err.text[0])
        log_error("%s", err.text);
    const char *why = rc < 0 && w.rank == 0 ? err.text : NULL;
    /* A rank that is stopped or dies now would leave the others here for ever. */
    watch_enter("the end (" WATCH_LAST_CALL ")");
    watch_expect(0, FINALIZE_SEC);
    watch_call(WATCH_LAST_CALL);
    world_mpi_close(&w);
    MPI_Finalize();
    watch_stop(why);
    int code = rc == 0 || (err.code == EXIT_CUT && watch_asked()) ? EXIT_GOOD : err.code;
    if (code != EXIT_GOOD &&
        !simulated) /* mpirun ends all ranks then: let them say goodbye before */
        usleep(GOODBYE_USEC);
    if (nccl_wait_left()) { /* exit() must not destroy objects that these calls use */
        fflush(NULL);
        _exit(code);
    }
    return code;
}
