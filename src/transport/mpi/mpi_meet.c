/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/mpi/mpi_meet_impl.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "transport/mpi/world_mpi.h"
#include "watch/watch.h"

enum { REPORT_TAG = 7006, TELL_TAG };
int world_mpi_error(int code, const char *what, struct err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int len;

    if (code == MPI_SUCCESS)
        return 0;
    MPI_Error_string(code, text, &len);
    return err_set(err, "%s: %s", what, text);
}

#define SPIN 2e-4 /* s */

/* --- waiting of an idle rank --- */

/* Wake the rank that sleeps on this bell, because a message to it was sent. */
static void ring(const struct mpi_meet *m, int whose)
{
    if (!m->bell || whose == MPI_UNDEFINED)
        return;
    atomic_fetch_add((_Atomic unsigned *)&m->bell[whose], 1);
    syscall(SYS_futex, &m->bell[whose], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static unsigned rung(const struct mpi_meet *m)
{
    return m->bell ? atomic_load((_Atomic unsigned *)&m->bell[m->own]) : 0;
}

/* Sleep until the bell is rung or its count is no longer `heard`; at most `ns`. */
static void nap(const struct mpi_meet *m, unsigned heard, long ns)
{
    struct timespec pause = {0, ns};

    if (m->bell)
        syscall(SYS_futex, &m->bell[m->own], FUTEX_WAIT, heard, &pause, NULL, 0);
    else
        nanosleep(&pause, NULL);
}

/* Test whether the awaited event has happened.  Returns an MPI error code. */
typedef int look(void *what, int *done);

static int look_at_request(void *request, int *done)
{
    return MPI_Test(request, done, MPI_STATUS_IGNORE);
}

enum { FIRST_NAP = 20000, LAST_NAP = 1000000 }; /* ns */

/* A rank that will be woken by a bell polls less and less often.  Others, whose collective must be
 * progressed, poll soon enough to be late by at most 1/8 of the time waited. */
static long next_nap(long nap, bool rings, double waited)
{
    long next = rings ? 2 * nap : (long)(1e9 * waited / 8);

    return next < FIRST_NAP ? FIRST_NAP : next < LAST_NAP ? next : LAST_NAP;
}

/* An idle rank sleeps between polls, 20 us first and 1 ms at most, because eight spinning ranks on
 * two cores triple the latency of every rank.  A verdict of the watch ends the wait, because the
 * others will not come. */
static int sleep_until_done(const struct mpi_meet *m, look *at, void *what, bool rings)
{
    double since = log_now(), spin_to = m->spins ? since + SPIN : 0;
    long pause = FIRST_NAP;
    int done = 0, rc;

    for (;;) {
        unsigned heard = rung(m);
        rc = at(what, &done);
        if (rc != MPI_SUCCESS || done)
            return rc;
        if (watch_verdict(NULL) < 0)
            return MPI_ERR_OTHER;
        if (m->spins && log_now() < spin_to) {
            sched_yield();
            continue;
        }
        nap(m, heard, pause);
        pause = next_nap(pause, rings, log_now() - since);
    }
}

/* rings: the awaited rank rings the bell if it is on this host. */
static int wait_for(const struct mpi_meet *m, look *at, void *what, bool rings)
{
    watch_waiting(true);
    int rc = sleep_until_done(m, at, what, rings);
    watch_waiting(false);
    return rc;
}

int mpi_meet_wait(const struct mpi_meet *m, MPI_Request *request)
{
    return wait_for(m, look_at_request, request, false);
}

/* --- ranks of this host --- */

/* True if the ranks may use at least as many cores as there are ranks.  Bound ranks have a core
 * each. */
static bool has_cores(MPI_Comm here, int size)
{
    cpu_set_t mine, all;

    if (sched_getaffinity(0, sizeof(mine), &mine) != 0)
        CPU_ZERO(&mine);
    return MPI_Allreduce(&mine, &all, sizeof(mine), MPI_BYTE, MPI_BOR, here) == MPI_SUCCESS &&
           size <= CPU_COUNT(&all);
}

static int parent(int rank)
{
    return (rank - 1) / MEET_FANOUT;
}

static int first_child(int rank)
{
    return MEET_FANOUT * rank + 1;
}

/* Find the bells of the neighbours in the tree. */
static int find_neighbours(struct mpi_meet *m, int rank, MPI_Comm here)
{
    int above = parent(rank), below[MEET_FANOUT];
    MPI_Group all, some;

    for (int i = 0; i < m->children; i++)
        below[i] = first_child(rank) + i;
    MPI_Comm_group(m->comm, &all);
    MPI_Comm_group(here, &some);
    int code = MPI_Group_translate_ranks(all, rank > 0, &above, some, &m->above);
    if (code == MPI_SUCCESS)
        code = MPI_Group_translate_ranks(all, m->children, below, some, m->below);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return code;
}

/* True if ranks are processes.  Ranks that are threads of one process (a simulation) cannot sleep
 * alone: all would sleep. */
static bool are_processes(MPI_Comm here)
{
    int pid[2] = {getpid(), -getpid()}, most[2];

    return MPI_Allreduce(pid, most, 2, MPI_INT, MPI_MAX, here) == MPI_SUCCESS &&
           most[0] != -most[1];
}

static void hang_bells(struct mpi_meet *m, int rank, MPI_Comm here)
{
    unsigned *mine;
    MPI_Aint bytes;
    int unit;

    if (!are_processes(here) || MPI_Win_allocate_shared(sizeof(*mine), sizeof(*mine), MPI_INFO_NULL,
                                                        here, &mine, &m->bells) != MPI_SUCCESS)
        return;
    *mine = 0;
    MPI_Comm_rank(here, &m->own);
    if (find_neighbours(m, rank, here) == MPI_SUCCESS &&
        MPI_Win_shared_query(m->bells, 0, &bytes, &unit, &m->bell) != MPI_SUCCESS)
        m->bell = NULL;
    MPI_Barrier(here); /* no ring before the bells are zeroed */
}

void mpi_meet_open(struct mpi_meet *m, MPI_Comm comm)
{
    MPI_Comm here;
    int rank, size;

    *m = (struct mpi_meet){.comm = comm, .ready = MPI_REQUEST_NULL, .bells = MPI_WIN_NULL};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (long i = first_child(rank); i < size && m->children < MEET_FANOUT; i++)
        m->children++;
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS)
        return;
    MPI_Comm_set_errhandler(here, MPI_ERRORS_RETURN);
    MPI_Comm_size(here, &size);
    m->spins = has_cores(here, size);
    if (size > 1)
        hang_bells(m, rank, here);
    MPI_Comm_free(&here);
}

void mpi_meet_close(struct mpi_meet *m)
{
    free(m->report);
    if (m->bells != MPI_WIN_NULL)
        MPI_Win_free(&m->bells);
}

/* --- one exchange: up a tree of MEET_FANOUT branches and down again ---
 *
 * Up to 17 ranks the tree is flat: every rank waits for one answer of rank 0.  A rank sends frames
 * up: rank, number of bytes, the bytes. */
struct frame {
    int rank, bytes;
};

static char *report_room(struct mpi_meet *m, int more)
{
    if (m->reported + more > m->room) {
        m->room = 2 * (m->reported + more);
        m->report = mem_realloc(m->report, (size_t)m->room, 1);
    }
    m->reported += more;
    return m->report + m->reported - more;
}

/* Take the message of one child, if it has arrived. */
static int look_for_report(void *world, int *done)
{
    struct mpi_meet *m = world;
    MPI_Status from;
    int bytes, code = MPI_Iprobe(MPI_ANY_SOURCE, REPORT_TAG, m->comm, done, &from);

    if (code != MPI_SUCCESS || !*done)
        return code;
    MPI_Get_count(&from, MPI_BYTE, &bytes);
    return MPI_Recv(report_room(m, bytes), bytes, MPI_BYTE, from.MPI_SOURCE, REPORT_TAG, m->comm,
                    MPI_STATUS_IGNORE);
}

static void hear_all(const struct mpi_meet *m, world_hear *hear, void *ctx)
{
    struct frame f;

    for (int at = 0; at < m->reported; at += (int)sizeof(f) + f.bytes) {
        memcpy(&f, m->report + at, sizeof(f));
        hear(ctx, f.rank, m->report + at + sizeof(f), (size_t)f.bytes);
    }
}

int mpi_meet_report(struct world *w, const void *mine, size_t len, world_hear *hear, void *ctx,
                    struct err *err)
{
    struct mpi_meet *m = w->ctx;
    struct frame f = {w->rank, (int)len};
    MPI_Request request;
    int code = MPI_SUCCESS;

    m->reported = 0;
    if (len) {
        char *to = report_room(m, (int)(sizeof(f) + len));
        memcpy(to, &f, sizeof(f));
        memcpy(to + sizeof(f), mine, len);
    }
    for (int i = 0; i < m->children && code == MPI_SUCCESS; i++)
        code = wait_for(m, look_for_report, m, true);
    if (code == MPI_SUCCESS && w->rank > 0) {
        code = MPI_Isend(m->report, m->reported, MPI_BYTE, parent(w->rank), REPORT_TAG, m->comm,
                         &request);
        ring(m, m->above);
        code = mpi_meet_asleep(m, code, &request);
    } else if (code == MPI_SUCCESS)
        hear_all(m, hear, ctx);
    return world_mpi_error(code, "reporting to rank 0", err);
}

int mpi_meet_tell(struct world *w, void *value, size_t bytes, struct err *err)
{
    struct mpi_meet *m = w->ctx;
    MPI_Request request;
    int code = MPI_SUCCESS;

    if (w->rank > 0)
        code = MPI_Irecv(value, (int)bytes, MPI_BYTE, parent(w->rank), TELL_TAG, m->comm, &request);
    if (w->rank > 0 && code == MPI_SUCCESS)
        code = wait_for(m, look_at_request, &request, true);
    for (int i = 0; i < m->children && code == MPI_SUCCESS; i++) {
        code = MPI_Send(value, (int)bytes, MPI_BYTE, first_child(w->rank) + i, TELL_TAG, m->comm);
        ring(m, m->below[i]);
    }
    return world_mpi_error(code, "hearing from rank 0", err);
}

/* A barrier without waiting. */
int mpi_meet_ready(struct world *w, struct err *err)
{
    struct mpi_meet *m = w->ctx;

    return world_mpi_error(MPI_Ibarrier(m->comm, &m->ready), "saying that all is measured", err);
}

bool mpi_meet_all_ready(struct world *w)
{
    struct mpi_meet *m = w->ctx;
    int done = 0;

    return MPI_Test(&m->ready, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}

int mpi_meet_wait_ready(struct world *w, struct err *err)
{
    struct mpi_meet *m = w->ctx;

    return world_mpi_error(mpi_meet_wait(m, &m->ready), "waiting until all have measured", err);
}
