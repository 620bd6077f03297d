/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_wait.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "transport/mpi/world_mpi.h"
#include "watch/watch.h"

static bool gpu_dead; /* found dead once; never queried again */

struct nccl_waiting {
    const char *what;
    double from, limit;
    long pause;   /* ns; 0: yield */
    bool asked;   /* the GPU was queried */
    double heard; /* time of the first alarm of a victim; 0: none */
};

/* True if another member has given up, so that the awaited event will not come.  After the alarm of
 * a victim this rank may be the cause without knowing it yet, so its own error has 2 s to
 * appear. */
static bool others_left(const struct nccl_conn *c, struct nccl_waiting *w, double now)
{
    enum world_alarm heard = c->shared ? world_mpi_alarm_heard(c->shared) : ALARM_NONE;

    if (heard == ALARM_VICTIM && !(w->heard > 0))
        w->heard = now;
    return heard == ALARM_CAUSE ||
           (heard == ALARM_VICTIM && now - w->heard >= fmin(2, watch_hang_after() / 4));
}

const char *nccl_wait_who(int rank)
{
    static char text[128];
    char host[64];
    const struct gpu_facts *gpu = gpu_facts();

    snprintf(text, sizeof(text), "rank %d (host %s, GPU %s)", rank, host_self(host, sizeof(host)),
             gpu ? gpu->busid : "?");
    return text;
}

double nccl_wait_limit(void)
{
    return 3 * watch_hang_after(); /* longer, so that the watch decides first */
}

int nccl_wait_gpu(int rank, struct err *err)
{
    return gpu_dead ? err_io(err, "%s: the GPU does not answer", nccl_wait_who(rank)) : 0;
}

static int give_up(struct nccl_conn *c, enum nccl_blame blame, struct nccl_step *s)
{
    s->blame = blame;
    if (blame != NCCL_LEFT && c->shared) {
        s->raised = blame >= NCCL_REFUSED ? ALARM_CAUSE : ALARM_VICTIM;
        world_mpi_alarm_raise(c->shared, s->raised);
    }
    return -1;
}

int nccl_wait_failed(struct nccl_conn *c, int code, struct nccl_step *s)
{
    const char *last = nccl.GetLastError(c->comm), *text = nccl.GetErrorString(code);

    const char *why = code == NCCL_IN_PROGRESS /* a file may set this as well: /etc/nccl.conf */
                          ? ": NCCL_COMM_BLOCKING=0 made the communicator a nonblocking one"
                          : "";

    err_set(&s->err, "%s: %s%s%s%s%s", nccl_wait_who(c->member[c->self]), last && *last ? last : "",
            last && *last ? " (" : "", text, last && *last ? ")" : "", why);
    bool refused = code == NCCL_INVALID_USAGE || code == NCCL_INVALID_ARGUMENT;
    return give_up(c, code == NCCL_REMOTE ? NCCL_VICTIM : refused ? NCCL_REFUSED : NCCL_CAUSE, s);
}

int nccl_wait_fault(struct nccl_conn *c, struct nccl_step *s)
{
    err_wrap(&s->err, "%s", nccl_wait_who(c->member[c->self]));
    return give_up(c, NCCL_CAUSE, s);
}

/* Query the GPU if it is silent for longer than its work may take, or if the others have given
 * up. */
static bool answers(double seconds)
{
    const struct gpu_facts *gpu = gpu_facts();

    if (!gpu_dead && gpu_answers(seconds, NULL) > 0)
        return true;
    if (!gpu_dead)
        watch_symptom("GPU %s does not answer", gpu ? gpu->busid : "?");
    gpu_dead = true;
    return false;
}

static int silent(struct nccl_conn *c, struct nccl_step *s)
{
    nccl_wait_gpu(c->member[c->self], &s->err);
    return give_up(c, NCCL_CAUSE, s);
}

/* Returns -1 if something ends this wait early. */
static int wait_ended(struct nccl_conn *c, struct nccl_waiting *w, struct nccl_step *s)
{
    double now = log_now(), waited = now - w->from;
    double patience = watch_hang_after(), expected = watch_expected();

    if (watch_verdict(&s->err) < 0)
        return give_up(c, NCCL_LATE, s);
    if (others_left(c, w, now)) {
        if (waited > expected + 0.5 && !answers(0.5))
            return silent(c, s);
        err_set(&s->err, "%s: another member gave up", nccl_wait_who(c->member[c->self]));
        return give_up(c, NCCL_LEFT, s);
    }
    if (waited > expected + patience / 2 && !w->asked) {
        w->asked = true;
        if (!answers(fmax(patience / 8, 0.5)))
            return silent(c, s);
    }
    if (waited <= expected + w->limit)
        return 0;
    err_set(&s->err, "%s: %s is not done after %.0f s", nccl_wait_who(c->member[c->self]), w->what,
            waited);
    return give_up(c, NCCL_LATE, s);
}

static void rest(struct nccl_waiting *w)
{
    if (!w->pause && log_now() - w->from < 1e-3) {
        sched_yield();
        return;
    }
    w->pause = !w->pause ? 20000 : w->pause < 500000 ? w->pause * 2 : 1000000;
    const struct timespec pause = {0, w->pause};
    nanosleep(&pause, NULL);
}

static int wait_until(struct nccl_conn *c, const char *what,
                      int (*done)(struct nccl_conn *c, void *arg, struct nccl_step *s), void *arg,
                      double limit, struct nccl_step *s)
{
    struct nccl_waiting w = {.what = what, .from = log_now(), .limit = limit};
    int there;

    while ((there = done(c, arg, s)) == 0) {
        if (wait_ended(c, &w, s) < 0)
            return -1;
        rest(&w);
    }
    return there < 0 ? -1 : 0;
}

static int comm_state(struct nccl_conn *c, struct nccl_step *s)
{
    int result = NCCL_SUCCESS, code = nccl.CommGetAsyncError(c->comm, &result);

    if (code == NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        code = result;
    return code == NCCL_SUCCESS ? 0 : nccl_wait_failed(c, code, s);
}

static int stream_done(struct nccl_conn *c, void *stream, struct nccl_step *s)
{
    int done = gpu_stream_done(stream, &s->err);

    if (done < 0)
        return nccl_wait_fault(c, s);
    return comm_state(c, s) < 0 ? -1 : done;
}

int nccl_wait_stream(struct nccl_conn *c, gpu_stream stream, struct nccl_step *s)
{
    watch_call("stream"); /* its work ends when the other ranks have done theirs */
    int rc = wait_until(c, "the GPU's work", stream_done, stream, nccl_wait_limit(), s);
    watch_call(NULL);
    return rc;
}

int nccl_wait_alone(gpu_stream stream, double expected, struct err *err)
{
    double limit = expected + nccl_wait_limit();
    struct nccl_waiting w = {.from = log_now()};
    int done;

    while ((done = gpu_stream_done(stream, err)) == 0) {
        double waited = log_now() - w.from;
        if (watch_verdict(err) < 0)
            return -1;
        if (waited > expected + watch_hang_after() / 2 &&
            !answers(fmax(watch_hang_after() / 8, 0.5)))
            return err_io(err, "the GPU does not answer");
        if (waited > limit)
            return err_io(err, "the GPU is not done after %.0f s", limit);
        rest(&w);
    }
    return done < 0 ? -1 : 0;
}

/* --- a call that may block, in a thread --- */

/* Owner of the arguments: the last of caller and thread frees them. */
enum owner { BOTH, RETURNED, LEFT };

struct nccl_thread {
    struct nccl_call call;
    int code;
    atomic_int owner;
    max_align_t arg[];
};

static atomic_int calls_left;

static void thread_end(struct nccl_thread *g)
{
    nccl_comm comm = g->call.late ? g->call.late(g->arg) : NULL;

    if (comm)
        nccl.CommAbort(comm);
    free(g);
    atomic_fetch_sub(&calls_left, 1);
}

static void *thread_work(void *arg)
{
    struct nccl_thread *g = arg;
    int both = BOTH;

    g->code = gpu_set_current(NULL) < 0 ? NCCL_UNHANDLED_CUDA : g->call.call(g->arg);
    if (!atomic_compare_exchange_strong(&g->owner, &both, RETURNED))
        thread_end(g);
    return NULL;
}

static struct nccl_thread *thread_start(const struct nccl_call *call)
{
    size_t cells = (call->bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t);
    struct nccl_thread *g = mem_calloc(1, sizeof(*g) + cells * sizeof(max_align_t));
    pthread_attr_t attr;
    pthread_t thread;

    g->call = *call;
    memcpy(g->arg, call->arg, call->bytes);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attr, thread_work, g);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        return g;
    free(g);
    return NULL;
}

static bool thread_returned(struct nccl_thread *g)
{
    return atomic_load(&g->owner) == RETURNED;
}

static int thread_done(struct nccl_conn *c, void *guard, struct nccl_step *s)
{
    if (thread_returned(guard))
        return 1;
    return c->comm ? comm_state(c, s) : 0;
}

/* True if the call has returned after all. */
static bool thread_leave(struct nccl_thread *g)
{
    int both = BOTH;

    if (!atomic_compare_exchange_strong(&g->owner, &both, LEFT))
        return true;
    atomic_fetch_add(&calls_left, 1);
    return false;
}

int nccl_wait_left(void)
{
    return atomic_load(&calls_left);
}

int nccl_wait_call(struct nccl_conn *c, const struct nccl_call *call, double limit,
                   struct nccl_step *s)
{
    struct nccl_thread *g = thread_start(call);

    if (!g) {
        err_io(&s->err, "%s: no thread for it", call->what);
        return nccl_wait_fault(c, s);
    }
    int rc = wait_until(c, call->what, thread_done, g, limit, s);
    if (rc < 0 && !thread_leave(g)) {
        c->inside = true;
        return -1;
    }
    memcpy(call->arg, g->arg, call->bytes);
    if (rc == 0 && g->code != NCCL_SUCCESS)
        rc = nccl_wait_failed(c, g->code, s);
    free(g);
    return rc;
}

static int abort_comm(void *comm)
{
    return nccl.CommAbort(*(nccl_comm *)comm);
}

/* Verdict and alarm do not end this wait, because they are the reason for the abort. */
void nccl_wait_abort(nccl_comm comm)
{
    const struct nccl_call call = {"ncclCommAbort", abort_comm, &comm, sizeof(comm), NULL};
    const struct timespec nap = {0, 1000000};
    struct nccl_thread *g = thread_start(&call);
    double from = log_now();

    while (g && !thread_returned(g) && log_now() - from < 5)
        nanosleep(&nap, NULL);
    if (g && thread_leave(g))
        free(g);
    else
        log_warn("ncclCommAbort does not come back; its communicator is left as it is");
}
