/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay_impl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "transport/mpi/world_mpi.h"

/* --- the side stream --- */

static void *side_main(void *arg)
{
    struct replay_side *s = arg;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->done == s->started && !s->leave)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->done == s->started)
            break;
        int k = s->message[s->done];
        struct replay_lane *l = &s->lane[k];
        pthread_mutex_unlock(&s->lock);
        double from = log_now();
        int code = mpi_ops[l->job.op](&l->ctx, &l->job);
        pthread_mutex_lock(&s->lock);
        s->run[k] += log_now() - from;
        s->done++;
        s->code = s->code == MPI_SUCCESS ? code : s->code;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Start a message; the n-th start has ticket n. */
static void side_start(struct replay_side *s, int message)
{
    pthread_mutex_lock(&s->lock);
    s->message[s->started++] = message;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Wait for the message with this ticket.  Returns the first MPI error of any message so far. */
static int side_wait(struct replay_side *s, int ticket)
{
    pthread_mutex_lock(&s->lock);
    while (s->done < ticket)
        pthread_cond_wait(&s->changed, &s->lock);
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* Start the side stream for at most `tickets` messages of lane[]; 0: no thread is made.
 * EXIT_CONFIG: this MPI lacks MPI_THREAD_MULTIPLE. */
static int side_open(struct replay_side *s, struct replay_lane *lane, int tickets, struct err *err)
{
    int level = MPI_THREAD_SINGLE;

    if (!tickets)
        return 0;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE)
        return err_config(err, "this MPI has no MPI_THREAD_MULTIPLE, which messages beside compute "
                               "need");
    s->message = mem_calloc((size_t)tickets, sizeof(*s->message));
    s->lane = lane;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    int code = pthread_create(&s->thread, NULL, side_main, s);
    if (!code)
        return 0;
    free(s->message);
    s->message = NULL;
    return err_set(err, "no thread for messages beside compute: %s", strerror(code));
}

static void side_close(struct replay_side *s)
{
    if (!s->message)
        return;
    pthread_mutex_lock(&s->lock);
    s->leave = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->message);
}

enum { BURN_SLICE_NS = 200000, ENTER_TAG = 7100 };

static const struct message *message_at(const struct replay_player *p, int i)
{
    return &p->run->step->traffic->message[i];
}

/* --- groups and buffers --- */

/* Round S to whole blocks of whole words. */
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

/* Make a communicator for each message, because two streams may not share one. */
static int enter(struct replay_player *p, const int *members, int n, MPI_Comm *out, struct err *err)
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

static int open_lane(struct replay_player *p, int k, struct err *err)
{
    const struct message *msg = message_at(p, k);
    struct replay_lane *l = &p->lane[k];
    int n = msg->span.size, *members = mem_calloc((size_t)n, sizeof(*members));
    int stride = msg->span.stride, group = p->rank / (stride * n) * stride + p->rank % stride;
    size_t bytes = whole_bytes(msg->bytes, msg->op, n);

    for (int i = 0; i < n; i++) {
        int rank = span_rank(&msg->span, group, i);
        members[i] = replay_world_rank(p->run, rank);
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

static void close_lane(struct replay_lane *l)
{
    if (!l->open)
        return;
    if (l->job.bytes)
        mpi_job_free(&l->job);
    MPI_Comm_free(&l->ctx.comm);
    free(l->ctx.send);
    free(l->ctx.recv);
}

static int open_boundary(struct replay_player *p, struct err *err)
{
    size_t bytes = 0;

    for (int k = 0; k < p->run->step->traffic->messages; k++)
        if (message_at(p, k)->phase == PHASE_BOUNDARY)
            bytes = p->lane[k].job.bytes;
    for (int i = 0; bytes && i <= PLAYER_RECEIVES; i++)
        if (take(&p->buffer[i], bytes, err) < 0)
            return -1;
    p->send = mem_calloc((size_t)p->plan.actions + 1, sizeof(MPI_Request));
    return 0;
}

int player_open(struct replay_player *p, struct err *err)
{
    const struct layout *l = p->run->step->layout;
    int *members = mem_calloc((size_t)l->ranks, sizeof(*members));

    for (int i = 0; i < l->ranks; i++)
        members[i] = replay_world_rank(p->run, i);
    int rc = enter(p, members, l->ranks, &p->all, err);
    free(members);
    replay_make(&p->plan, p->run->step, p->rank);
    for (int k = 0; rc == 0 && k < p->run->step->traffic->messages; k++)
        rc = open_lane(p, k, err);
    if (rc == 0)
        rc = open_boundary(p, err);
    return rc == 0 ? side_open(&p->side, p->lane, p->plan.tickets, err) : -1;
}

void player_close(struct replay_player *p)
{
    side_close(&p->side);
    for (int k = 0; k < TRAFFIC_MAX; k++)
        close_lane(&p->lane[k]);
    for (int i = 0; i <= PLAYER_RECEIVES; i++)
        free(p->buffer[i]);
    free(p->send);
    replay_free(&p->plan);
    if (p->all != MPI_COMM_NULL)
        MPI_Comm_free(&p->all);
}

/* --- main stream --- */

/* Call MPI now and then, because only this moves messages between stages. */
static int progress(struct replay_player *p)
{
    int done;

    if (p->posted == p->received && !p->sends)
        return MPI_SUCCESS;
    int code = MPI_Testall(PLAYER_RECEIVES, p->receive, &done, MPI_STATUSES_IGNORE);
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

/* A sleep always lasts slightly too long; the next one is shortened by the excess. */
static int burn(struct replay_player *p, double sec)
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
static int post_receives(struct replay_player *p)
{
    int code = MPI_SUCCESS;

    while (p->posted - p->received < PLAYER_RECEIVES && code == MPI_SUCCESS) {
        while (p->next_receive < p->plan.actions &&
               p->plan.action[p->next_receive].kind != REPLAY_RECV)
            p->next_receive++;
        if (p->next_receive == p->plan.actions)
            break;
        const struct replay_action *a = &p->plan.action[p->next_receive++];
        const struct replay_lane *l = &p->lane[a->message];
        int slot = p->posted++ % PLAYER_RECEIVES;
        code = MPI_Irecv(p->buffer[slot], l->job.count, l->job.type, a->peer, a->tag, p->all,
                         &p->receive[slot]);
    }
    return code;
}

static int receive(struct replay_player *p)
{
    int code = MPI_Wait(&p->receive[p->received % PLAYER_RECEIVES], MPI_STATUS_IGNORE);

    p->received++;
    return code == MPI_SUCCESS ? post_receives(p) : code;
}

static int send(struct replay_player *p, const struct replay_action *a)
{
    const struct replay_lane *l = &p->lane[a->message];

    return MPI_Isend(p->buffer[PLAYER_RECEIVES], l->job.count, l->job.type, a->peer, a->tag, p->all,
                     &p->send[p->sends++]);
}

static int act(struct replay_player *p, const struct replay_action *a)
{
    struct replay_lane *l = a->message >= 0 ? &p->lane[a->message] : NULL;

    switch (a->kind) {
    case REPLAY_BURN:
        return burn(p, a->sec);
    case REPLAY_CALL:
        return mpi_ops[l->job.op](&l->ctx, &l->job);
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

static void rewind_player(struct replay_player *p)
{
    p->posted = p->received = p->sends = p->next_receive = 0;
    p->side.started = p->side.done = 0;
    memset(p->side.run, 0, sizeof(p->side.run));
    p->debt = 0;
    for (int i = 0; i < PLAYER_RECEIVES; i++)
        p->receive[i] = MPI_REQUEST_NULL;
}

int player_play(struct replay_player *p, struct replay_record *r)
{
    rewind_player(p);
    int code = post_receives(p);
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
