/* SPDX-License-Identifier: BSD-3-Clause */
/* transport_nccl.c - put a batch of samples into the stream and time it by events; reasons are in
 * transport_nccl.h. */
#include "transport/nccl/transport_nccl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "measure/device/gpu_binding.h"
#include "measure/measure.h"
#include "measure/point.h"
#include "measure/probe_args.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_conn.h"
#include "transport/nccl/nccl_pairs_impl.h"
#include "transport/nccl/nccl_ras_impl.h"
#include "transport/nccl/nccl_readback.h"
#include "transport/nccl/nccl_session_impl.h"
#include "transport/nccl/nccl_wait.h"
#include "watch/watch.h"

extern const struct transport_calls transport_nccl;

static struct nccl_readback *readback; /* readback of the campaign; NULL: nothing is measured */
static bool nic_pass;

enum { MARKS = 257, SLICE = 16, BURST_MOST = 16, GRAPH_MOST = 20 };

/* Operations shorter than burst_sec are timed several at once, because an event between two kernels
 * takes about a microsecond of GPU time.  Before operations longer than lead_sec the launch into an
 * idle stream is negligible. */
static const double burst_sec = 50e-6, lead_sec = 2e-3;

/* The launch of a graph takes several microseconds, so a graph holds operations for this time, at
 * most as many as those of nccl-tests (-G: its 20 iterations). */
static const double graph_sec = 1e-3;

/* Assumed minimum speed before any measurement: large operations are waited for one by one. */
static const double slow_Bps = 25e6;

static int make_marks(struct nccl_session *c, int n, struct nccl_step *s)
{
    int marks = n + 1 > MARKS ? n + 1 : MARKS;

    if (c->clock && c->marks > n)
        return 0;
    gpu_clock_close(c->clock);
    c->clock = NULL;
    c->marks = marks;
    if (gpu_clock_open(&c->clock, marks, &s->err) < 0)
        return nccl_wait_fault(c->conn, s);
    return 0;
}

static int put_next(struct nccl_session *c, const struct nccl_job *j, int times,
                    struct nccl_step *s)
{
    for (int i = 0; i < times; i++) {
        struct nccl_job next = *j;
        nccl_session_turn(c, &next);
        if (nccl_session_enqueue(c, &next, s) < 0)
            return -1;
    }
    return 0;
}

/* Record operations instead of running them. */
static int capture(struct nccl_session *c, const struct nccl_job *j, int times,
                   struct gpu_graph **graph, struct nccl_step *s)
{
    if (gpu_graph_begin(c->side.stream, &s->err) < 0)
        return nccl_wait_fault(c->conn, s);
    int rc = put_next(c, j, times, s);
    if (gpu_graph_end(graph, c->side.stream, rc < 0 ? NULL : &s->err) < 0 && rc == 0)
        rc = nccl_wait_fault(c->conn, s);
    return rc;
}

/* Launch `times` operations, or the graph that holds them. */
static int launch(struct nccl_session *c, const struct nccl_job *j, struct gpu_graph *graph,
                  int times, struct nccl_step *s)
{
    if (!graph)
        return put_next(c, j, times, s);
    if (times && gpu_graph_launch(graph, c->side.stream, &s->err) < 0)
        return nccl_wait_fault(c->conn, s);
    return 0;
}

static int mark(struct nccl_session *c, int i, struct nccl_step *s)
{
    return gpu_clock_record(c->clock, i, c->side.stream, &s->err) < 0 ? nccl_wait_fault(c->conn, s)
                                                                      : 0;
}

/* Shape of a batch in the stream; the same on all members, because `last` is. */
struct batch_shape {
    int slice; /* samples under way at once, few enough that the watch sees progress */
    int burst; /* operations per sample */
    /* operations before the first event, because the stream is idle until they are launched */
    int lead;
};

static int at_most(double n, int most)
{
    return n < 1 ? 1 : n > most ? most : (int)n;
}

/* Without a previous time of this operation, assume the longest possible. */
static struct batch_shape batch_shape_of(const struct nccl_session *c, const struct nccl_job *j)
{
    bool known = c->last_op == j->op && c->last_bytes == j->bytes && c->last > 0;
    bool graph = nccl_opts_now()->graph;
    double per = known ? c->last : (double)(j->bytes + 1) / slow_Bps, patience = watch_hang_after();
    int burst = graph   ? at_most(ceil(graph_sec / per), GRAPH_MOST)
                : known ? at_most(ceil(burst_sec / per), BURST_MOST)
                        : 1;

    return (struct batch_shape){.slice =
                                    at_most(patience / 8 / (per * burst), known ? 1000000 : SLICE),
                                .burst = burst,
                                .lead = known && per < lead_sec};
}

static int finish_slice(struct nccl_session *c, struct nccl_step *s)
{
    if (nccl_wait_stream(c->conn, c->side.stream, s) < 0)
        return -1;
    watch_step();
    return 0;
}

static int run_batch(struct nccl_session *c, const struct nccl_job *j, struct batch_shape shape,
                     struct gpu_graph *graph, int n, double *sec, struct nccl_step *s)
{
    int rc = make_marks(c, n, s);

    if (rc == 0)
        rc = launch(c, j, graph, shape.lead, s);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = mark(c, i, s);
        if (rc == 0)
            rc = launch(c, j, graph, shape.burst, s);
        if (rc == 0 && i % shape.slice == shape.slice - 1)
            rc = finish_slice(c, s);
    }
    if (rc == 0)
        rc = mark(c, n, s);
    if (rc == 0)
        rc = finish_slice(c, s);
    if (rc == 0 && gpu_clock_read(c->clock, n, sec, &s->err) < 0)
        rc = nccl_wait_fault(c->conn, s);
    for (int i = 0; i < n && rc == 0; i++)
        sec[i] /= shape.burst;
    return rc;
}

static double mean(const double *sec, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += sec[i];
    return sum / n;
}

static void run_samples(struct nccl_session *c, const struct nccl_job *j, int n, double *sec,
                        struct nccl_step *s)
{
    struct batch_shape shape = batch_shape_of(c, j);
    struct gpu_graph *graph = NULL;

    if ((!nccl_opts_now()->graph || capture(c, j, shape.burst, &graph, s) == 0) &&
        run_batch(c, j, shape, graph, n, sec, s) == 0)
        s->sec = mean(sec, n);
    gpu_graph_free(graph);
}

static int timed(struct nccl_session *c, const struct nccl_job *j, int n, double *sec,
                 struct err *err)
{
    struct nccl_step s = {.blame = NCCL_FINE};
    double longest;

    run_samples(c, j, n, sec, &s);
    if (nccl_session_agree(c, j, &s, &longest, NULL, err) < 0)
        return -1;
    c->last_op = j->op;
    c->last_bytes = j->bytes;
    c->last = longest;
    for (int i = 0; i < n; i++)
        sec[i] /= op_table[j->op].messages;
    return 0;
}

/* The times of a pair are those of the source. */
static int repeat_first(struct nccl_session *c, int n, double *sec, struct err *err)
{
    double *both = mem_calloc(2 * (size_t)n, sizeof(*both));
    int rc = world_mpi_trade(c->conn->shared, sec, (size_t)n * sizeof(*sec), both, err);

    memcpy(sec, both, (size_t)n * sizeof(*sec));
    free(both);
    return rc;
}

static int nccl_run(void *ctx, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct nccl_session *c = ctx;
    struct nccl_job j;

    if (nccl_job_make(&j, &c->side, op, bytes, err) < 0 || nccl_session_ready(c, op, err) < 0)
        return -1;
    nccl_readback_mark(c->side.comm);
    j.stride = 0; /* as in transport_mpi.c, the messages of a window share one buffer */
    watch_enter("%s of %zu bytes on %d ranks", op_name(op), bytes, c->side.size);
    int rc = nccl_session_first(c, &j, err);
    if (rc == 0)
        rc = timed(c, &j, n, sec, err);
    watch_leave();
    return rc == 0 && op_is_pair(op) ? repeat_first(c, n, sec, err) : rc;
}

static int nccl_open(void **ctx, const struct group *g, size_t max_bytes, struct err *err)
{
    struct nccl_session *c = NULL;
    int rc = nccl_session_open(&c, g, nccl_pairs_shared(g), max_bytes, err);

    *ctx = c;
    return rc;
}

static void nccl_close(void *ctx)
{
    nccl_session_close(ctx);
}

/* --- before and after a campaign --- */

/* Ranks with different libraries cannot communicate: report it before they try. */
static int same_library(struct world *w, struct err *err)
{
    int *each = mem_calloc((size_t)w->size, sizeof(*each)), rc = 0;
    char a[24], b[24];

    rc = w->gather(w, &nccl.version, sizeof(int), each, err);
    for (int r = 1; r < w->size && rc == 0 && w->rank == 0; r++)
        if (each[r] != each[0])
            rc = err_config(err, "rank 0 has NCCL %s, but rank %d has NCCL %s",
                            nccl_version_text(each[0], a), r, nccl_version_text(each[r], b));
    free(each);
    return w->agree(w, rc, err);
}

static void note_versions(void)
{
    char text[sizeof(nccl.path) + 32], version[24];

    snprintf(text, sizeof(text), "%s (%s)", nccl_version_text(nccl.version, version), nccl.path);
    json_provenance_add("nccl", text);
    snprintf(text, sizeof(text), "%d.%d", gpu_facts()->driver / 1000,
             gpu_facts()->driver % 1000 / 10);
    json_provenance_add("cuda_driver", text);
    json_provenance_add("gpu", gpu_facts()->name);
    if (nccl_opts_asked.config)
        json_provenance_add("nccl_config", nccl_opts_asked.config);
}

/* Warn of external settings that change NCCL's behaviour. */
static void warn_of_settings(const struct world *w)
{
    int count;
    char **list = nccl_env_set("", &count);

    for (int i = 0; i < count; i++) {
        if (w->rank == 0)
            log_warn("%s", list[i]);
        free(list[i]);
    }
    free(list);
}

int transport_nccl_start(struct nccl_readback **r, bool tuning, struct world *w, struct err *err)
{
    const struct nccl_opts *o = &nccl_opts_asked;
    bool one_host;

    warn_of_settings(w);
    if (w->rank == 0)
        watch_report("ras.txt", nccl_ras_ask);
    if ((r && nccl_readback_open(r, w, tuning, err) < 0) ||
        gpu_binding_take(w, o->share_gpu, &one_host, err) < 0 ||
        w->agree(w, nccl_opts_apply(o, w->rank, one_host, err), err) < 0 ||
        w->agree(w, nccl_load(err), err) < 0 || same_library(w, err) < 0 ||
        nccl_opts_check(o, nccl.version, err) < 0)
        return -1;
    note_versions();
    return 0;
}

static int nccl_start(const struct probe_args *a, struct world *w, struct err *err)
{
    nic_pass = a->probe.measure.nics;
    if (nic_pass && nccl_opts_on_nvlink())
        return err_usage(err, "--nic-pass needs --path ib or roce");
    if (nic_pass)
        nccl_opts_leave_nvlink();
    return transport_nccl_start(a->dry_run ? NULL : &readback,
                                nccl_opts_asked.registration != NCCL_REG_NONE, w, err);
}

static int nccl_prepare(const struct transport *tr, const struct probe_args *a, struct world *w,
                        const struct topo *topo, const struct plan *plan, struct err *err)
{
    return nccl_pairs_prepare(tr, w, topo, plan, a->probe.measure.nics, err);
}

static int nccl_learn(const struct probe_args *a, struct world *w, struct topo *t,
                      const struct points *p, struct err *err)
{
    (void)a;
    return nccl_readback_campaign(readback, w, t, nccl_opts_asked.path, p, err);
}

/* Write the cost of connecting to connections.tsv beside the points, and print it even if the
 * campaign was interrupted. */
static int nccl_finish(struct world *w, const char *points, int rc, struct err *err)
{
    char *path = file_beside(points, nic_pass ? "connections-nics.tsv" : "connections.tsv"),
         *words = NULL;
    int end = nccl_conn_finish(w, path, &words, rc < 0 ? NULL : err);

    if (words && *words)
        log_info("%s", words);
    free(words);
    free(path);
    nccl_readback_close(readback);
    readback = NULL;
    return rc < 0 ? rc : end;
}

/* --- --sweep: measure the plan's collectives that have a choice again with each algorithm and
 * protocol, into sweep/ALGO-PROTO.tsv beside the points.  A combination that NCCL refuses is a
 * failed point with its reason.  sweep/plan.tsv is the plan of the sweep.  Existing files are
 * continued --- */

/* all_to_all and sendrecv consist of sends and receives, without a choice. */
static bool has_algorithms(const struct round *r)
{
    return r->stage == STAGE_COLLECTIVE && op_table[r->op].tuner;
}

static void copy_round(struct plan *out, const struct round *r)
{
    struct round *to = plan_add(out, r->stage, r->op, r->groups);

    to->first = r->first;
    to->last = r->last;
    to->factor = r->factor;
    to->epochs = 1;
    for (int g = 0; g < r->groups; g++) {
        const struct plan_group *from = &r->group[g];
        to->group[g].size = from->size;
        to->group[g].members = mem_dup(from->members, (size_t)from->size, sizeof(int));
    }
}

static int save_sweep_plan(const struct plan *p, const char *points, struct err *err)
{
    char *dir = file_beside(points, "sweep"), *path = file_join(dir, "plan.tsv");
    int rc = file_mkdir(dir, err);

    if (rc == 0)
        rc = plan_save(p, path, err);
    free(path);
    free(dir);
    return rc;
}

/* Measure one combination into its file. */
static int measure_pair(const struct transport *tr, struct world *w, const struct topo *topo,
                        struct plan *plan, const struct measure_opts *m, const char *path,
                        struct err *err)
{
    struct points_log *log = NULL;
    int rc = 0;

    if (w->rank == 0)
        rc = points_open(&log, path, plan_crc(plan), topo, tr->name, err);
    rc = w->agree(w, rc, err);
    if (rc == 0)
        rc = measure_plan(w, tr, topo, plan, m, log, err);
    if (points_close(log, rc < 0 ? NULL : err) < 0)
        rc = -1;
    return w->agree(w, rc, err);
}

static int sweep_pair(const struct transport *tr, const struct nccl_opts *o, struct world *w,
                      const struct topo *topo, struct plan *plan, const struct measure_opts *m,
                      const char *points, struct err *err)
{
    char *name = mem_printf("sweep/%s-%s.tsv", o->algo, o->proto),
         *path = file_beside(points, name);

    if (w->rank == 0)
        log_info("sweep: %s with %s", o->algo, o->proto);
    nccl_conn_close_all();
    int rc = w->agree(w, nccl_opts_apply(o, w->rank, false, err), err);
    if (rc == 0)
        rc = measure_pair(tr, w, topo, plan, m, path, err);
    free(path);
    free(name);
    return rc;
}

static int nccl_sweep(const struct transport *tr, const struct probe_args *a, struct world *w,
                      const struct topo *topo, const struct plan *plan, const char *points,
                      struct err *err)
{
    struct nccl_opts one = nccl_opts_asked;
    struct measure_opts how = a->probe.measure;
    struct plan some = {NULL, 0};
    int rc;

    how.retest = false;
    for (int i = 0; i < plan->rounds; i++)
        if (has_algorithms(&plan->round[i]))
            copy_round(&some, &plan->round[i]);
    rc = w->agree(w, w->rank == 0 ? save_sweep_plan(&some, points, err) : 0, err);
    for (int k = 0; nccl_algo_name[k] && rc == 0; k++)
        for (int p = 0; nccl_proto_name[p] && rc == 0; p++) {
            one.algo = nccl_algo_name[k];
            one.proto = nccl_proto_name[p];
            rc = sweep_pair(tr, &one, w, topo, &some, &how, points, err);
        }
    nccl_conn_close_all();
    nccl_opts_apply(&nccl_opts_asked, w->rank, false, NULL);
    plan_free(&some);
    return rc;
}

static void nccl_kind(struct point *p)
{
    const struct nccl_opts *o = nccl_opts_now();

    p->dtype = 1 + (unsigned)(op_adds(p->op) ? nccl_opts_sums(o) : o->dtype);
    p->redop = op_adds(p->op) ? 1 + (unsigned)o->redop : 0;
    p->registration = 1 + o->registration;
}

const struct transport_calls transport_nccl = {
    .kind = nccl_kind,
    .open = nccl_open,
    .run = nccl_run,
    .check = nccl_check,
    .close = nccl_close,
    .start = nccl_start,
    .prepare = nccl_prepare,
    .round = nccl_pairs_round,
    .sweep = nccl_sweep,
    .learn = nccl_learn,
    .finish = nccl_finish,
};
