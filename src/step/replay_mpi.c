/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "probe/mpi_clock.h"
#include "probe/mpi_ops.h"
#include "probe/world_mpi.h"
#include "step/replay_side.h"

enum { RECEIVES = 4, BURN_SLICE_NS = 200000, ENTER_TAG = 7100 };

/* One rank's part in the replay. */
struct player {
    const struct replay_run *run;
    struct world *world;
    int rank; /* of the job; -1: this process looks on */
    struct replay_plan plan;
    struct lane lane[TRAFFIC_MAX];
    struct side side;
    MPI_Comm all; /* of the job's ranks, by rank */
    enum burn burn;
    double debt;                         /* seconds that compute has taken too long so far */
    unsigned char *buffer[RECEIVES + 1]; /* of messages between stages: received, sent */
    MPI_Request receive[RECEIVES], *send;
    int posted, received, sends; /* receives are posted ahead of their use, in its order */
    int next_receive;            /* action to be posted next */
};

/* What a rank tells of one step. */
struct record {
    double elapsed, compute, message[TRAFFIC_MAX], run[TRAFFIC_MAX];
};

static const struct message *message_at(const struct player *p, int i)
{
    return &p->run->step->traffic->message[i];
}

static int world_rank(const struct replay_run *run, int rank)
{
    return run->order ? run->order[rank] : rank;
}

/* --- groups and buffers --- */

/* S in whole blocks of whole words. */
static size_t whole_bytes(double bytes, enum op op, int n)
{
    size_t unit = 4 * (size_t)op_blocks(op, n), blocks = (size_t)(bytes / (double)unit + 0.5);

    return unit * (blocks ? blocks : 1);
}

static int take(unsigned char **out, size_t bytes, struct err *err)
{
    *out = malloc(bytes);
    if (!*out)
        return err_io(err, "no memory for a message of %zu bytes", bytes);
    memset(*out, 1, bytes);
    return 0;
}

/* A communicator of its own for each message: two streams may not share one. */
static int enter(struct player *p, const int *members, int n, MPI_Comm *out, struct err *err)
{
    void *comm = NULL;

    if (p->world->enter(p->world, members, n, ENTER_TAG, &comm, err) < 0)
        return -1;
    int code = MPI_Comm_dup(*(MPI_Comm *)comm, out);
    if (code == MPI_SUCCESS)
        MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
    p->world->leave(p->world, &comm);
    return world_mpi_error(code, "duplicating a communicator", err);
}

static int open_lane(struct player *p, int k, struct err *err)
{
    const struct message *msg = message_at(p, k);
    struct lane *l = &p->lane[k];
    int n = msg->span.size, *members = mem_calloc((size_t)n, sizeof(*members));
    int stride = msg->span.stride, group = p->rank / (stride * n) * stride + p->rank % stride;
    size_t bytes = whole_bytes(msg->bytes, msg->op, n);

    for (int i = 0; i < n; i++) {
        int rank = span_rank(&msg->span, group, i);
        members[i] = world_rank(p->run, rank);
        l->ctx.self = rank == p->rank ? i : l->ctx.self;
    }
    l->ctx.size = n;
    l->ctx.capacity = bytes;
    l->ctx.room = bytes + 4 * (size_t)n;
    int rc = enter(p, members, n, &l->ctx.comm, err);
    l->open = rc == 0;
    free(members);
    if (rc < 0 || take(&l->ctx.send, l->ctx.room, err) < 0 ||
        take(&l->ctx.recv, l->ctx.room, err) < 0)
        return -1;
    return mpi_job_make(&l->job, &l->ctx, msg->op, bytes, err);
}

static void close_lane(struct lane *l)
{
    if (!l->open)
        return;
    if (l->job.bytes)
        mpi_job_free(&l->job);
    MPI_Comm_free(&l->ctx.comm);
    free(l->ctx.send);
    free(l->ctx.recv);
}

static int open_boundary(struct player *p, struct err *err)
{
    size_t bytes = 0;

    for (int k = 0; k < p->run->step->traffic->messages; k++)
        if (message_at(p, k)->phase == PHASE_BOUNDARY)
            bytes = p->lane[k].job.bytes;
    for (int i = 0; bytes && i <= RECEIVES; i++)
        if (take(&p->buffer[i], bytes, err) < 0)
            return -1;
    p->send = mem_calloc((size_t)p->plan.actions + 1, sizeof(MPI_Request));
    return 0;
}

static int open_player(struct player *p, struct err *err)
{
    const struct layout *l = p->run->step->layout;
    int *members = mem_calloc((size_t)l->ranks, sizeof(*members));

    for (int i = 0; i < l->ranks; i++)
        members[i] = world_rank(p->run, i);
    int rc = enter(p, members, l->ranks, &p->all, err);
    free(members);
    replay_make(&p->plan, p->run->step, p->rank);
    for (int k = 0; rc == 0 && k < p->run->step->traffic->messages; k++)
        rc = open_lane(p, k, err);
    if (rc == 0)
        rc = open_boundary(p, err);
    return rc == 0 ? side_open(&p->side, p->lane, p->plan.tickets, err) : -1;
}

static void close_player(struct player *p)
{
    side_close(&p->side);
    for (int k = 0; k < TRAFFIC_MAX; k++)
        close_lane(&p->lane[k]);
    for (int i = 0; i <= RECEIVES; i++)
        free(p->buffer[i]);
    free(p->send);
    replay_free(&p->plan);
    if (p->all != MPI_COMM_NULL)
        MPI_Comm_free(&p->all);
}

/* --- main stream --- */

/* Entering the library now and then is what moves messages between stages. */
static int progress(struct player *p)
{
    int done;

    if (p->posted == p->received && !p->sends)
        return MPI_SUCCESS;
    int code = MPI_Testall(RECEIVES, p->receive, &done, MPI_STATUSES_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_Testall(p->sends, p->send, &done, MPI_STATUSES_IGNORE);
    if (code == MPI_SUCCESS && done)
        p->sends = 0;
    return code;
}

static void rest_until(double at)
{
    struct timespec t = {(time_t)at, (long)((at - (double)(time_t)at) * 1e9)};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* A sleep always lasts a little longer; the next one makes up for it. */
static int burn(struct player *p, double sec)
{
    double from = log_now(), end = from + sec - p->debt;
    int code = MPI_SUCCESS;

    for (double t = from; t < end && code == MPI_SUCCESS; t = log_now()) {
        double slice = t + 1e-9 * BURN_SLICE_NS;
        if (p->burn == BURN_SLEEP)
            rest_until(slice < end && p->send ? slice : end);
        while (p->burn == BURN_SPIN && t < slice && t < end)
            t = log_now();
        code = progress(p);
    }
    p->debt += log_now() - from - sec;
    return code;
}

/* Keep some receives posted ahead of their use. */
static int post_receives(struct player *p)
{
    int code = MPI_SUCCESS;

    while (p->posted - p->received < RECEIVES && code == MPI_SUCCESS) {
        while (p->next_receive < p->plan.actions &&
               p->plan.action[p->next_receive].kind != REPLAY_RECV)
            p->next_receive++;
        if (p->next_receive == p->plan.actions)
            break;
        const struct replay_action *a = &p->plan.action[p->next_receive++];
        const struct lane *l = &p->lane[a->message];
        int slot = p->posted++ % RECEIVES;
        code = MPI_Irecv(p->buffer[slot], l->job.count, l->job.type, a->peer, a->tag, p->all,
                         &p->receive[slot]);
    }
    return code;
}

static int receive(struct player *p)
{
    int code = MPI_Wait(&p->receive[p->received % RECEIVES], MPI_STATUS_IGNORE);

    p->received++;
    return code == MPI_SUCCESS ? post_receives(p) : code;
}

static int send(struct player *p, const struct replay_action *a)
{
    const struct lane *l = &p->lane[a->message];

    return MPI_Isend(p->buffer[RECEIVES], l->job.count, l->job.type, a->peer, a->tag, p->all,
                     &p->send[p->sends++]);
}

static int act(struct player *p, const struct replay_action *a)
{
    struct lane *l = a->message >= 0 ? &p->lane[a->message] : NULL;

    switch (a->kind) {
    case REPLAY_BURN:
        return burn(p, a->sec);
    case REPLAY_CALL:
        return mpi_ops[l->job.op].once(&l->ctx, &l->job);
    case REPLAY_START:
        side_start(&p->side, a->message);
        return MPI_SUCCESS;
    case REPLAY_WAIT:
        return side_wait(&p->side, a->ticket);
    case REPLAY_SEND:
        return send(p, a);
    case REPLAY_RECV:
        return receive(p);
    }
    return MPI_SUCCESS;
}

static int play(struct player *p, struct record *r)
{
    int code;

    p->posted = p->received = p->sends = p->next_receive = 0;
    p->side.started = p->side.done = 0;
    memset(p->side.run, 0, sizeof(p->side.run));
    p->debt = 0;
    for (int i = 0; i < RECEIVES; i++)
        p->receive[i] = MPI_REQUEST_NULL;
    code = post_receives(p);
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(p->all);
    double begin = log_now(), from = begin, to;
    for (int i = 0; i < p->plan.actions && code == MPI_SUCCESS; i++) {
        const struct replay_action *a = &p->plan.action[i];
        code = act(p, a);
        to = log_now();
        *(a->message < 0 ? &r->compute : &r->message[a->message]) += to - from;
        if (a->kind == REPLAY_CALL)
            r->run[a->message] += to - from;
        from = to;
    }
    if (code == MPI_SUCCESS)
        code = MPI_Waitall(p->sends, p->send, MPI_STATUSES_IGNORE);
    r->elapsed = log_now() - begin;
    for (int k = 0; k < TRAFFIC_MAX; k++)
        r->run[k] += p->side.run[k];
    return code;
}

/* --- the world --- */

/* Each rank's median over the steps, sorted; the caller frees. */
static double *of_ranks(const struct record *r, int ranks, int steps, size_t at)
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

static double quantile(const struct record *r, int ranks, int steps, size_t at, double q)
{
    double *of = of_ranks(r, ranks, steps, at), out = stats_quantile(of, ranks, q);

    free(of);
    return out;
}

/* Where a pipeline drains, a stage that is done waits for the others: that is bubble too. */
static void add_drain(struct record *r, int ranks, double step, const struct traffic *t)
{
    for (int k = 0; k < t->messages; k++)
        for (int i = 0; i < ranks && t->message[k].phase == PHASE_BOUNDARY; i++)
            r[i].message[k] += step - r[i].elapsed;
}

/* r: [step][rank], rank 0 only. */
static void conclude(struct replay_result *out, struct record *r, int steps,
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
    out->compute = quantile(r, ranks, steps, offsetof(struct record, compute), 1);
    for (size_t k = 0; k < TRAFFIC_MAX; k++) {
        size_t at = sizeof(double) * k;
        out->message[k] = quantile(r, ranks, steps, offsetof(struct record, message) + at, 0.5);
        out->run[k] = quantile(r, ranks, steps, offsetof(struct record, run) + at, 0.5);
    }
}

/* Ranks that share this one's kernel, and so its cores. */
static int choose_burn(struct player *p, struct err *err)
{
    struct world *w = p->world;
    uint64_t mine = mpi_clock_id(), *all = mem_calloc((size_t)w->size, sizeof(*all));
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

static int one_step(struct player *p, struct record *all, struct err *err)
{
    struct world *w = p->world;
    struct record mine = {0};
    struct record *by_world = mem_calloc((size_t)w->size, sizeof(*by_world));
    int code = p->rank >= 0 ? play(p, &mine) : MPI_SUCCESS;
    int rc = w->agree(w, world_mpi_error(code, "replaying a step", err), err);

    if (rc == 0)
        rc = w->gather(w, &mine, sizeof(mine), by_world, err);
    for (int i = 0; rc == 0 && all && i < p->run->step->layout->ranks; i++)
        all[i] = by_world[world_rank(p->run, i)];
    free(by_world);
    return rc;
}

int replay_mpi_run(struct replay_result *out, const struct replay_run *run, struct world *w,
                   struct err *err)
{
    int ranks = run->step->layout->ranks;
    struct player p = {.run = run, .world = w, .rank = -1, .all = MPI_COMM_NULL};
    struct record *all = NULL;

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < ranks; i++)
        if (world_rank(run, i) == w->rank)
            p.rank = i;
    if (w->rank == 0)
        all = mem_calloc((size_t)ranks * (size_t)(run->warmup + run->steps), sizeof(*all));
    int rc = choose_burn(&p, err);
    if (rc == 0)
        rc = w->agree(w, p.rank >= 0 ? open_player(&p, err) : 0, err);
    for (int s = 0; rc == 0 && s < run->warmup + run->steps; s++)
        rc = one_step(&p, all ? all + s * ranks : NULL, err);
    if (rc == 0 && all)
        conclude(out, all + run->warmup * ranks, run->steps, run->step);
    out->burn = p.burn;
    close_player(&p);
    free(all);
    return rc;
}

void replay_result_free(struct replay_result *r)
{
    free(r->step);
    memset(r, 0, sizeof(*r));
}
