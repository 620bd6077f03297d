/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/mpi/mpi_meet.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "probe/mpi/world_mpi.h"
#include "probe/watch/watch.h"

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

/* What is waited for; an MPI error code. */
typedef int look(void *what, int *done);

static int look_at_request(void *request, int *done)
{
    return MPI_Test(request, done, MPI_STATUS_IGNORE);
}

/* An idle rank sleeps between polls, 20 us first and 1 ms at most: eight spinning ranks on two
 * cores make everybody's latency three times what it is.  A verdict of the watch ends the wait: the
 * others will not come. */
static int sleep_until_done(bool spins, look *at, void *what)
{
    struct timespec pause = {0, 20000};
    double spin_to = spins ? log_now() + SPIN : 0;
    int done = 0, rc;

    for (;;) {
        rc = at(what, &done);
        if (rc != MPI_SUCCESS || done)
            return rc;
        if (watch_verdict(NULL) < 0)
            return MPI_ERR_OTHER;
        if (spins && log_now() < spin_to) {
            sched_yield();
            continue;
        }
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000000)
            pause.tv_nsec = pause.tv_nsec * 2 < 1000000 ? pause.tv_nsec * 2 : 1000000;
    }
}

static int wait_for(const struct mpi_meet *m, look *at, void *what)
{
    watch_waiting(true);
    int rc = sleep_until_done(m->spins, at, what);
    watch_waiting(false);
    return rc;
}

int mpi_meet_wait(const struct mpi_meet *m, MPI_Request *request)
{
    return wait_for(m, look_at_request, request);
}

/* May the ranks of this host run on as many cores as they are?  Bound ranks have one each. */
static bool has_cores(MPI_Comm comm)
{
    MPI_Comm here;
    cpu_set_t mine, all;
    int size = 0;

    if (sched_getaffinity(0, sizeof(mine), &mine) != 0)
        CPU_ZERO(&mine);
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) != MPI_SUCCESS)
        return false;
    MPI_Comm_size(here, &size);
    int code = MPI_Allreduce(&mine, &all, sizeof(mine), MPI_BYTE, MPI_BOR, here);
    MPI_Comm_free(&here);
    return code == MPI_SUCCESS && size <= CPU_COUNT(&all);
}

void mpi_meet_open(struct mpi_meet *m, MPI_Comm comm)
{
    *m = (struct mpi_meet){.comm = comm, .ready = MPI_REQUEST_NULL, .spins = has_cores(comm)};
}

void mpi_meet_close(struct mpi_meet *m)
{
    free(m->report);
}

/* --- one exchange: up a tree of FANOUT branches and down again ---
 *
 * To 17 ranks it is flat: everybody waits for one answer of rank 0.  What a rank sends up are
 * frames: whose, how many bytes, the bytes. */
enum { FANOUT = 16 };

struct frame {
    int rank, bytes;
};

static int last_child(const struct world *w)
{
    long last = (long)FANOUT * w->rank + FANOUT;

    return last < w->size ? (int)last : w->size - 1;
}

static char *report_room(struct mpi_meet *m, int more)
{
    if (m->reported + more > m->room) {
        m->room = 2 * (m->reported + more);
        m->report = mem_realloc(m->report, (size_t)m->room, 1);
    }
    m->reported += more;
    return m->report + m->reported - more;
}

/* Take what one child sent, if it has come. */
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
    for (long i = (long)FANOUT * w->rank + 1; i <= last_child(w) && code == MPI_SUCCESS; i++)
        code = wait_for(m, look_for_report, m);
    if (code == MPI_SUCCESS && w->rank > 0)
        code = mpi_meet_asleep(m,
                               MPI_Isend(m->report, m->reported, MPI_BYTE, (w->rank - 1) / FANOUT,
                                         REPORT_TAG, m->comm, &request),
                               &request);
    else if (code == MPI_SUCCESS)
        hear_all(m, hear, ctx);
    return world_mpi_error(code, "reporting to rank 0", err);
}

int mpi_meet_tell(struct world *w, void *value, size_t bytes, struct err *err)
{
    struct mpi_meet *m = w->ctx;
    MPI_Request request;
    int code = MPI_SUCCESS;

    if (w->rank > 0)
        code = mpi_meet_asleep(m,
                               MPI_Irecv(value, (int)bytes, MPI_BYTE, (w->rank - 1) / FANOUT,
                                         TELL_TAG, m->comm, &request),
                               &request);
    for (long i = (long)FANOUT * w->rank + 1; i <= last_child(w) && code == MPI_SUCCESS; i++)
        code = MPI_Send(value, (int)bytes, MPI_BYTE, (int)i, TELL_TAG, m->comm);
    return world_mpi_error(code, "hearing from rank 0", err);
}

/* A barrier that nobody waits in. */
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
