/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/mpi/world_mpi.h"

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "transport/mpi/mpi_meet_impl.h"
#include "watch/watch.h"

/* --- one clock for the members of a communicator ---
 *
 * CLOCK_MONOTONIC (log_now, s) plus the offset is the clock of index 0.  Ranks under one kernel
 * share CLOCK_MONOTONIC and get exactly 0.  Other ranks exchange pings and keep the offset of the
 * shortest round trip (Cristian, Distributed Computing 3, 1989), whose error is at most half of
 * that round trip, down a binomial tree: n members take log2 n steps.  Clocks drift apart by some
 * 10 us per second, so measure again before each use that needs better. */

enum { PINGS = 12, CLOCK_TAG = 7001, ALARM_TAG = 7003 /* plus the raised alarm: two tags */ };

uint64_t world_mpi_clock_id(void)
{
    char text[128] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (f) {
        if (!fgets(text, 64, f))
            text[0] = '\0';
        fclose(f);
    }
    size_t used = strlen(text);
    if (!used) /* not visible: treat the clock as unique */
        snprintf(text, sizeof(text), "%ld %.9f", (long)getpid(), log_now());
    else
        (void)!readlink("/proc/self/ns/time", text + used, sizeof(text) - used - 1);
    return map_text(text);
}

/* Exchange clock ids over an edge of the tree.  *pings: 1 if both sides share a clock, else
 * PINGS. */
static int clock_greet(MPI_Comm comm, uint64_t id, int peer, int *pings)
{
    uint64_t theirs = 0;
    int code = MPI_Sendrecv(&id, 1, MPI_UINT64_T, peer, CLOCK_TAG, &theirs, 1, MPI_UINT64_T, peer,
                            CLOCK_TAG, comm, MPI_STATUS_IGNORE);

    *pings = theirs == id ? 1 : PINGS;
    return code;
}

static int clock_ask(MPI_Comm comm, uint64_t id, int parent, double *offset)
{
    double best = INFINITY, reply[2], sent, back;
    int pings, code = clock_greet(comm, id, parent, &pings);

    for (int i = 0; i < pings && code == MPI_SUCCESS; i++) {
        sent = log_now();
        code = MPI_Send(&sent, 1, MPI_DOUBLE, parent, CLOCK_TAG, comm);
        if (code == MPI_SUCCESS)
            code = MPI_Recv(reply, 2, MPI_DOUBLE, parent, CLOCK_TAG, comm, MPI_STATUS_IGNORE);
        back = log_now();
        if (code == MPI_SUCCESS && back - sent < best) {
            best = back - sent;
            *offset = reply[1] + (pings == 1 ? 0 : reply[0] - (sent + back) / 2);
        }
    }
    return code;
}

static int clock_answer(MPI_Comm comm, uint64_t id, int child, double offset)
{
    double reply[2] = {0, offset}, sent;
    int pings, code = clock_greet(comm, id, child, &pings);

    for (int i = 0; i < pings && code == MPI_SUCCESS; i++) {
        code = MPI_Recv(&sent, 1, MPI_DOUBLE, child, CLOCK_TAG, comm, MPI_STATUS_IGNORE);
        reply[0] = log_now();
        if (code == MPI_SUCCESS)
            code = MPI_Send(reply, 2, MPI_DOUBLE, child, CLOCK_TAG, comm);
    }
    return code;
}

/* Collective.  Returns an MPI error code. */
static int clock_offset(MPI_Comm comm, uint64_t id, double *offset)
{
    int self, size = 1, top = 1, code = MPI_Comm_rank(comm, &self);

    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(comm, &size);
    *offset = 0;
    while (code == MPI_SUCCESS && top < size)
        top *= 2;
    for (int step = top / 2; step > 0 && code == MPI_SUCCESS; step /= 2) {
        if (self % (2 * step) == 0 && self + step < size)
            code = clock_answer(comm, id, self + step, *offset);
        else if (self % (2 * step) == step)
            code = clock_ask(comm, id, self - step, offset);
    }
    return code;
}

/* --- the world --- */

/* Up to this world size, communicators are kept for the next epoch.  Ranks of larger worlds have
 * more partners than an MPI library has communicators (16 bits of context id in Open MPI's ob1). */
enum { CACHE_WORLD = 1024, PIECE = 1 << 30 };

struct pooled_comm {
    MPI_Comm comm; /* first, so that a pointer to this struct is a pointer to the communicator */
    double offset; /* clock of index 0 minus own clock, s; measured at each entry */
    MPI_Op larger; /* owned by the world */
    struct pooled_comm *next;
    int size, member[];
};

struct world_mpi {
    struct mpi_meet meet; /* first, for mpi_meet_impl.h */
    MPI_Comm comm;
    MPI_Group group;
    MPI_Op larger;            /* maximum of two doubles, for maximum() */
    struct pooled_comm *pool; /* newest last: every rank frees in the order of creation */
    uint64_t clock_id;
};

static int wait_awake(const struct mpi_meet *m, MPI_Request *request)
{
    (void)m;
    return MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* Lowest rank that failed, with its err, on every rank; -1 if none failed, -2 if MPI itself did.
 * The ranks sleep while waiting if m is given, else they spin. */
static int failed_rank(MPI_Comm comm, int rc, struct err *err, const struct mpi_meet *m)
{
    int (*wait)(const struct mpi_meet *, MPI_Request *) = m ? mpi_meet_wait : wait_awake;
    struct {
        int failed, rank;
    } mine = {rc != 0, 0}, worst;
    struct err first = err ? *err : (struct err){EXIT_UNJUDGED, "no reason given"};
    MPI_Request request;
    int code;

    MPI_Comm_rank(comm, &mine.rank);
    code = MPI_Iallreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, comm, &request);
    if (code == MPI_SUCCESS)
        code = wait(m, &request);
    if (code == MPI_SUCCESS && !worst.failed)
        return -1;
    if (code == MPI_SUCCESS)
        code = MPI_Ibcast(&first, sizeof(first), MPI_BYTE, worst.rank, comm, &request);
    if (code == MPI_SUCCESS)
        code = wait(m, &request);
    if (code != MPI_SUCCESS) {
        world_mpi_error(code, "asking all ranks for errors", err);
        return -2;
    }
    first.text[sizeof(first.text) - 1] = '\0';
    if (err && worst.rank != mine.rank)
        *err = first;
    return worst.rank;
}

int world_mpi_together(void *comm, int rc, struct err *err)
{
    watch_call("MPI_Allreduce");
    int who = failed_rank(*(MPI_Comm *)comm, rc, err, NULL);
    watch_call(NULL);
    return who == -1 ? 0 : -1;
}

/* End of a blocking call among members, which watch_call() began. */
static int returned(int code, const char *what, struct err *err)
{
    watch_call(NULL);
    return world_mpi_error(code, what, err);
}

static int agree(struct world *w, int rc, struct err *err)
{
    struct world_mpi *m = w->ctx;
    int who = failed_rank(m->comm, rc, err, &m->meet);

    if (who >= 0 && who != w->rank)
        err_wrap(err, "rank %d failed", who);
    return who == -1 ? 0 : -1;
}

static int share(struct world *w, void **data, size_t *len, struct err *err)
{
    struct world_mpi *m = w->ctx;
    uint64_t n = w->rank == 0 ? *len : 0;
    MPI_Request request;
    int rc = 0, code = mpi_meet_asleep(
                    &m->meet, MPI_Ibcast(&n, 1, MPI_UINT64_T, 0, m->comm, &request), &request);

    if (code != MPI_SUCCESS)
        return world_mpi_error(code, "sharing a buffer", err);
    if (w->rank != 0) {
        *data = malloc(n + 1);
        if (!*data)
            rc = err_io(err, "no memory for the %llu bytes that rank 0 shares",
                        (unsigned long long)n);
    }
    if (agree(w, rc, err))
        goto out;
    for (uint64_t at = 0; at < n && code == MPI_SUCCESS; at += PIECE) {
        int piece = n - at < PIECE ? (int)(n - at) : PIECE;
        code = mpi_meet_asleep(
            &m->meet, MPI_Ibcast((char *)*data + at, piece, MPI_BYTE, 0, m->comm, &request),
            &request);
    }
    if (code != MPI_SUCCESS) {
        world_mpi_error(code, "sharing a buffer", err);
        goto out;
    }
    if (w->rank != 0)
        ((char *)*data)[n] = '\0'; /* terminated, so that text is usable as a string */
    *len = n;
    return 0;
out:
    if (w->rank != 0) {
        free(*data);
        *data = NULL;
    }
    return -1;
}

static int gather(struct world *w, const void *mine, size_t len, void *out, struct err *err)
{
    struct world_mpi *m = w->ctx;
    MPI_Request request;

    if (len > PIECE)
        return err_set(err, "cannot gather records of %zu bytes, at most %d", len, (int)PIECE);
    int code = mpi_meet_asleep(
        &m->meet,
        MPI_Igather(mine, (int)len, MPI_BYTE, out, (int)len, MPI_BYTE, 0, m->comm, &request),
        &request);
    return world_mpi_error(code, "gathering from all ranks", err);
}

int world_mpi_follow(void *comm, int from, double *sec, int n, struct err *err)
{
    watch_call("MPI_Bcast");
    return returned(MPI_Bcast(sec, n, MPI_DOUBLE, from, *(MPI_Comm *)comm),
                    "following the member that has the clock", err);
}

int world_mpi_trade(void *comm, const void *mine, size_t len, void *all, struct err *err)
{
    watch_call("MPI_Allgather");
    int code = MPI_Allgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, *(MPI_Comm *)comm);

    return returned(code, "trading with the members", err);
}

double world_mpi_clock(void *comm)
{
    return log_now() + ((struct pooled_comm *)comm)->offset;
}

static struct pooled_comm *known_comm(struct world_mpi *m, const int *members, int n)
{
    for (struct pooled_comm *p = m->pool; p; p = p->next)
        if (p->size == n && !memcmp(p->member, members, sizeof(*members) * (size_t)n))
            return p;
    return NULL;
}

static int make_comm(struct world_mpi *m, const int *members, int n, int tag,
                     struct pooled_comm **out)
{
    struct pooled_comm *p = mem_calloc(1, sizeof(*p) + sizeof(*members) * (size_t)n), **last;
    MPI_Group some;
    int code = MPI_Group_incl(m->group, n, members, &some);

    if (code == MPI_SUCCESS) {
        code = MPI_Comm_create_group(m->comm, some, tag, &p->comm);
        MPI_Group_free(&some);
    }
    if (code != MPI_SUCCESS) {
        free(p);
        return code;
    }
    MPI_Comm_set_errhandler(p->comm, MPI_ERRORS_RETURN);
    p->size = n;
    p->larger = m->larger;
    memcpy(p->member, members, sizeof(*members) * (size_t)n);
    for (last = &m->pool; *last; last = &(*last)->next)
        ;
    *last = *out = p;
    return MPI_SUCCESS;
}

static int enter(struct world *w, const int *members, int n, int tag, void **comm, struct err *err)
{
    struct world_mpi *m = w->ctx;
    struct pooled_comm *p = known_comm(m, members, n);
    int code = MPI_SUCCESS;

    watch_call("MPI_Comm_create_group");
    if (!p)
        code = make_comm(m, members, n, tag, &p);
    if (code == MPI_SUCCESS)
        code = clock_offset(p->comm, m->clock_id, &p->offset);
    if (code == MPI_SUCCESS)
        *comm = p;
    return returned(code, "making a communicator", err);
}

static void drop_comm(struct world_mpi *m, struct pooled_comm *p)
{
    struct pooled_comm **at = &m->pool;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    MPI_Comm_free(&p->comm);
    free(p);
}

static void leave(struct world *w, void **comm)
{
    if (*comm && w->size > CACHE_WORLD)
        drop_comm(w->ctx, *comm);
    *comm = NULL;
}

/* Elementwise maximum.  Open MPI's own MPI_MAX (op/avx) uses 512-bit registers, for which a core
 * may lower its clock and keep it low for 0.65 ms (T. Downs, "Gathering Intel on Intel AVX-512
 * transitions", 2020; also seen here).  Called between batches, it made the next messages of 8
 * bytes to 64 KiB 5 to 12 % slower. */
static void larger(void *in, void *best, int *n, MPI_Datatype *type)
{
    const double *a = in;
    double *b = best;

    (void)type;
    for (int i = 0; i < *n; i++)
        if (a[i] > b[i])
            b[i] = a[i];
}

static int maximum(void *comm, double *v, int n, struct err *err)
{
    const struct pooled_comm *p = comm;

    watch_call("MPI_Allreduce");
    return returned(MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, p->larger, p->comm),
                    "taking the maximum over a group", err);
}

static int lead(void *comm, int *value, struct err *err)
{
    watch_call("MPI_Bcast");
    return returned(MPI_Bcast(value, 1, MPI_INT, 0, *(MPI_Comm *)comm),
                    "following the first rank of a group", err);
}

int world_mpi_open(struct world *w, struct err *err)
{
    struct world_mpi *m = mem_calloc(1, sizeof(*m));
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &m->comm);

    *w = (struct world){.ctx = m,
                        .agree = agree,
                        .share = share,
                        .gather = gather,
                        .report = mpi_meet_report,
                        .tell = mpi_meet_tell,
                        .ready = mpi_meet_ready,
                        .all_ready = mpi_meet_all_ready,
                        .wait_ready = mpi_meet_wait_ready,
                        .enter = enter,
                        .leave = leave,
                        .maximum = maximum,
                        .lead = lead,
                        .clock = world_mpi_clock};
    if (code != MPI_SUCCESS) {
        free(m);
        w->ctx = NULL;
        return world_mpi_error(code, "duplicating MPI_COMM_WORLD", err);
    }
    MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(m->comm, &w->rank);
    MPI_Comm_size(m->comm, &w->size);
    MPI_Comm_group(m->comm, &m->group);
    MPI_Op_create(larger, 1, &m->larger);
    m->clock_id = world_mpi_clock_id();
    mpi_meet_open(&m->meet, m->comm);
    return 0;
}

void world_mpi_close(struct world *w)
{
    struct world_mpi *m = w ? w->ctx : NULL;

    if (!m)
        return;
    while (m->pool)
        drop_comm(m, m->pool);
    MPI_Op_free(&m->larger);
    MPI_Group_free(&m->group);
    MPI_Comm_free(&m->comm);
    mpi_meet_close(&m->meet);
    free(m);
    w->ctx = NULL;
}

/* --- alarms --- */

/* An empty message completes without a receiver, because MPI buffers it. */
int world_mpi_alarm_raise(void *comm, enum world_alarm what)
{
    MPI_Comm c = *(MPI_Comm *)comm;
    int self, size, code = MPI_SUCCESS;

    MPI_Comm_rank(c, &self);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (i != self)
            code = MPI_Send(NULL, 0, MPI_BYTE, i, ALARM_TAG + (int)what, c);
    return code == MPI_SUCCESS ? 0 : -1;
}

enum world_alarm world_mpi_alarm_heard(void *comm)
{
    for (int what = ALARM_CAUSE; what > ALARM_NONE; what--) {
        int there = 0, code = MPI_Iprobe(MPI_ANY_SOURCE, ALARM_TAG + what, *(MPI_Comm *)comm,
                                         &there, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && there)
            return (enum world_alarm)what;
    }
    return ALARM_NONE;
}

int world_mpi_alarm_take(void *comm, const enum world_alarm *raised)
{
    MPI_Comm c = *(MPI_Comm *)comm;
    int self, size, code = MPI_SUCCESS;

    MPI_Comm_rank(c, &self);
    MPI_Comm_size(c, &size);
    for (int i = 0; i < size && code == MPI_SUCCESS; i++)
        if (i != self && raised[i])
            code = MPI_Recv(NULL, 0, MPI_BYTE, i, ALARM_TAG + (int)raised[i], c, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? 0 : -1;
}
