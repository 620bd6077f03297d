/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/stats.h"
#include "measure/transports/transport.h"
#include "step/replay/replay_impl.h"
#include "transport/mpi/world_mpi.h"

/* Returns each rank's median over the steps, sorted.  The caller frees. */
static double *of_ranks(const struct replay_record *r, int ranks, int steps, size_t at)
{
    double *of = mem_calloc((size_t)ranks, sizeof(*of)), *v = mem_calloc((size_t)steps, sizeof(*v));

    for (int i = 0; i < ranks; i++) {
        for (int s = 0; s < steps; s++)
            v[s] = *(const double *)(const void *)((const char *)&r[s * ranks + i] + at);
        of[i] = stats_median(v, steps);
    }
    stats_sort(of, ranks);
    free(v);
    return of;
}

static double quantile(const struct replay_record *r, int ranks, int steps, size_t at, double q)
{
    double *of = of_ranks(r, ranks, steps, at), out = stats_quantile(of, ranks, q);

    free(of);
    return out;
}

/* A finished stage waits for the others while the pipeline drains; count this as bubble. */
static void add_drain(struct replay_record *r, int ranks, double step, const struct traffic *t)
{
    for (int k = 0; k < t->messages; k++)
        for (int i = 0; i < ranks && t->message[k].phase == PHASE_BOUNDARY; i++)
            r[i].message[k] += step - r[i].elapsed;
}

/* r: [step][rank], rank 0 only. */
static void conclude(struct replay_result *out, struct replay_record *r, int steps,
                     const struct replay_step *of)
{
    int ranks = of->layout->ranks;

    out->step = mem_calloc((size_t)steps, sizeof(*out->step));
    out->steps = steps;
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < ranks; i++)
            if (r[s * ranks + i].elapsed > out->step[s])
                out->step[s] = r[s * ranks + i].elapsed;
        add_drain(r + s * ranks, ranks, out->step[s], of->traffic);
    }
    double *sorted = mem_calloc((size_t)steps, sizeof(*sorted));
    memcpy(sorted, out->step, (size_t)steps * sizeof(*sorted));
    out->sec = stats_median(sorted, steps);
    free(sorted);
    out->compute = quantile(r, ranks, steps, offsetof(struct replay_record, compute), 1);
    for (size_t k = 0; k < TRAFFIC_MAX; k++) {
        size_t at = sizeof(double) * k;
        out->message[k] =
            quantile(r, ranks, steps, offsetof(struct replay_record, message) + at, 0.5);
        out->run[k] = quantile(r, ranks, steps, offsetof(struct replay_record, run) + at, 0.5);
    }
}

/* Choose by the number of ranks that share this rank's kernel, and so its cores. */
static int choose_burn(struct replay_player *p, struct err *err)
{
    struct world *w = p->world;
    uint64_t mine = world_mpi_clock_id(), *all = mem_calloc((size_t)w->size, sizeof(*all));
    int most = 0, rc = w->gather(w, &mine, sizeof(mine), all, err);

    for (int i = 0; rc == 0 && w->rank == 0 && i < w->size; i++) {
        int same = 0;
        for (int k = 0; k < w->size; k++)
            same += all[k] == all[i];
        most = same > most ? same : most;
    }
    void *shared = &most;
    size_t len = sizeof(most);
    free(all);
    if (rc < 0 || w->share(w, &shared, &len, err) < 0)
        return -1;
    most = *(int *)shared;
    if (w->rank != 0)
        free(shared);
    p->burn = p->run->burn;
    if (p->burn == BURN_AUTO)
        p->burn = most <= sysconf(_SC_NPROCESSORS_ONLN) ? BURN_SPIN : BURN_SLEEP;
    return 0;
}

static int one_step(struct replay_player *p, struct replay_record *all, struct err *err)
{
    struct world *w = p->world;
    struct replay_record mine = {0};
    struct replay_record *by_world = mem_calloc((size_t)w->size, sizeof(*by_world));
    int code = p->rank >= 0 ? player_play(p, &mine) : MPI_SUCCESS;
    int rc = w->agree(w, world_mpi_error(code, "replaying a step", err), err);

    if (rc == 0)
        rc = w->gather(w, &mine, sizeof(mine), by_world, err);
    for (int i = 0; rc == 0 && all && i < p->run->step->layout->ranks; i++)
        all[i] = by_world[replay_world_rank(p->run, i)];
    free(by_world);
    return rc;
}

/* Run the steps, collective over the world.  The result is on rank 0.  World ranks beyond the
 * layout only watch. */
static int run_steps(struct replay_result *out, const struct replay_run *run, struct world *w,
                     struct err *err)
{
    int ranks = run->step->layout->ranks;
    struct replay_player p = {.run = run, .world = w, .rank = -1, .all = MPI_COMM_NULL};
    struct replay_record *all = NULL;

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < ranks; i++)
        if (replay_world_rank(run, i) == w->rank)
            p.rank = i;
    if (w->rank == 0)
        all = mem_calloc((size_t)ranks * (size_t)(run->warmup + run->steps), sizeof(*all));
    int rc = choose_burn(&p, err);
    if (rc == 0)
        rc = w->agree(w, p.rank >= 0 ? player_open(&p, err) : 0, err);
    for (int s = 0; rc == 0 && s < run->warmup + run->steps; s++)
        rc = one_step(&p, all ? all + s * ranks : NULL, err);
    if (rc == 0 && all)
        conclude(out, all + run->warmup * ranks, run->steps, run->step);
    out->burn = p.burn;
    player_close(&p);
    free(all);
    return rc;
}

static void result_free(struct replay_result *r)
{
    free(r->step);
    memset(r, 0, sizeof(*r));
}

/* --- from options to a result, on all ranks --- */

enum { HOST = 256 };

/* Data sent to the other ranks: numbers without pointers. */
struct brief {
    struct traffic traffic;
    struct layout layout;
    struct recipe recipe;
    struct replay_step step;
    int order[]; /* layout.ranks entries */
};

static size_t brief_size(int ranks)
{
    return sizeof(struct brief) + sizeof(int) * (size_t)ranks;
}

/* Check on rank 0 that every endpoint of the job is on the host of its world rank. */
static int check_hosts(const struct replay_outcome *out, const char *host, const struct world *w,
                       struct err *err)
{
    const struct topo *t = &out->job.matrix.topo;

    for (int i = 0; i < out->job.layout.ranks; i++) {
        int id = out->job.order ? out->job.order[i] : i;
        if (id >= w->size)
            return err_config(err,
                              "rank %d of the job runs on endpoint %d, and only %d ranks were "
                              "started: start one an endpoint",
                              i, id, w->size);
        const char *want = t->host[t->endpoint[id].place.at[LEVEL_HOST]].name;
        if (strcmp(want, host + (size_t)id * HOST))
            return err_config(err,
                              "endpoint %d of the matrix is on %s, and rank %d of the world is on "
                              "%s: measure and replay with the same hosts in the same order",
                              id, want, id, host + (size_t)id * HOST);
    }
    return 0;
}

static int prepare(struct replay_outcome *out, struct replay_opts *o, const char *host,
                   const struct world *w, struct err *err)
{
    if (!o->job.matrix)
        return err_usage(err, "which matrix.json?");
    if (job_open(&out->job, &o->job, err) < 0)
        return -1;
    const struct transport *t = transport_find(out->job.matrix.transport);
    if (!t || !t->ranks || t->memory != TRANSPORT_HOST)
        return err_config(err, "%s was measured over %s, and a replay runs over mpi", o->job.matrix,
                          out->job.matrix.transport);
    if (out->job.layout.ranks > out->job.matrix.topo.endpoints)
        return err_usage(err, "the layout needs %d ranks and the matrix has %d endpoints",
                         out->job.layout.ranks, out->job.matrix.topo.endpoints);
    if (check_hosts(out, host, w, err) < 0)
        return -1;
    struct question q = job_question(&out->job, &o->job);
    return replay_case_make(&out->made, &q, &o->size, err);
}

static struct brief *write_brief(const struct replay_outcome *out, const struct replay_opts *o,
                                 size_t *size)
{
    int ranks = out->job.layout.ranks;
    *size = brief_size(ranks);
    struct brief *b = mem_calloc(1, *size);

    b->traffic = out->made.traffic;
    for (int i = 0; i < b->traffic.messages; i++)
        b->traffic.message[i].label = b->traffic.message[i].formula = NULL;
    b->layout = out->job.layout;
    b->recipe = o->job.recipe;
    b->step.rest = out->made.rest;
    b->step.last = out->made.last;
    for (int i = 0; i < ranks; i++)
        b->order[i] = out->job.order ? out->job.order[i] : i;
    return b;
}

int replay_world(struct replay_outcome *out, struct replay_opts *o, struct world *w,
                 struct err *err)
{
    char mine[HOST] = "", *host = w->rank == 0 ? mem_calloc((size_t)w->size, HOST) : NULL;
    struct brief *brief = NULL;
    void *data = NULL;
    size_t size = 0;

    memset(out, 0, sizeof(*out));
    host_self(mine, sizeof(mine));
    int rc = w->gather(w, mine, HOST, host, err);
    if (rc == 0 && w->rank == 0)
        rc = prepare(out, o, host, w, err);
    free(host);
    if (w->agree(w, rc, err) < 0)
        return -1;
    if (w->rank == 0)
        data = brief = write_brief(out, o, &size);
    if (w->share(w, &data, &size, err) < 0) {
        free(brief);
        return -1;
    }
    brief = data;
    brief->step.traffic = &brief->traffic;
    brief->step.layout = &brief->layout;
    brief->step.recipe = &brief->recipe;
    const struct replay_run run = {&brief->step, brief->order, (enum burn)o->burn, o->warmup,
                                   o->steps};
    rc = run_steps(&out->result, &run, w, err);
    free(brief);
    return rc;
}

void replay_world_free(struct replay_outcome *out)
{
    result_free(&out->result);
    replay_case_free(&out->made);
    job_free(&out->job);
}
