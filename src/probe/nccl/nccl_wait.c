/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_wait.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "probe/mpi/world_mpi.h"
#include "probe/watch/watch.h"

static bool gpu_dead; /* found so once; nothing is asked of it any more */

/* A wait in progress. */
struct wait {
    const char *what;
    double from, limit;
    long pause;   /* ns; 0: yield */
    bool asked;   /* whether the GPU answers */
    double heard; /* when another member was heard to suffer; 0: none was */
};

/* Has another member given up, so that there is nothing to wait for?  Who hears one that suffers
 * may be its cause and not know it yet: its own error is given 2 s to show. */
static bool others_left(const struct nccl_conn *c, struct wait *w, double now)
{
    enum world_alarm heard = c->shared ? world_mpi_alarm_heard(c->shared) : ALARM_NONE;

    if (heard == ALARM_VICTIM && !(w->heard > 0))
        w->heard = now;
    return heard == ALARM_CAUSE ||
           (heard == ALARM_VICTIM && now - w->heard >= fmin(2, watch_hang_after() / 4));
}

double nccl_wait_limit(void)
{
    return 3 * watch_hang_after(); /* the watch's verdict comes first */
}

int nccl_wait_gpu(int rank, struct err *err)
{
    return gpu_dead ? err_io(err, "%s: the GPU does not answer", nccl_conn_who(rank)) : 0;
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

    const char *why = code == NCCL_IN_PROGRESS /* which a file may say as well: /etc/nccl.conf */
                          ? ": NCCL_COMM_BLOCKING=0 made the communicator a nonblocking one"
                          : "";

    err_set(&s->err, "%s: %s%s%s%s%s", nccl_conn_who(c->member[c->self]), last && *last ? last : "",
            last && *last ? " (" : "", text, last && *last ? ")" : "", why);
    bool refused = code == NCCL_INVALID_USAGE || code == NCCL_INVALID_ARGUMENT;
    return give_up(c, code == NCCL_REMOTE ? NCCL_VICTIM : refused ? NCCL_REFUSED : NCCL_CAUSE, s);
}

int nccl_wait_fault(struct nccl_conn *c, const struct err *err, struct nccl_step *s)
{
    err_code(&s->err, err->code, "%s: %s", nccl_conn_who(c->member[c->self]), err->text);
    return give_up(c, NCCL_CAUSE, s);
}

/* The GPU is asked when it has been silent for longer than its work may take, or when the others
 * have given up. */
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
    struct err err;

    nccl_wait_gpu(c->member[c->self], &err);
    s->err = err;
    return give_up(c, NCCL_CAUSE, s);
}

/* Something that ends this wait before its time?  -1. */
static int look(struct nccl_conn *c, struct wait *w, struct nccl_step *s)
{
    double now = log_now(), waited = now - w->from;
    double patience = watch_hang_after(), expected = watch_expected();

    if (watch_verdict(&s->err) < 0)
        return give_up(c, NCCL_LATE, s);
    if (others_left(c, w, now)) {
        if (waited > expected + 0.5 && !answers(0.5))
            return silent(c, s);
        err_set(&s->err, "%s: another member gave up", nccl_conn_who(c->member[c->self]));
        return give_up(c, NCCL_LEFT, s);
    }
    if (waited > expected + patience / 2 && !w->asked) {
        w->asked = true;
        if (!answers(fmax(patience / 8, 0.5)))
            return silent(c, s);
    }
    if (waited <= expected + w->limit)
        return 0;
    err_set(&s->err, "%s: %s is not done after %.0f s", nccl_conn_who(c->member[c->self]), w->what,
            waited);
    return give_up(c, NCCL_LATE, s);
}

static void rest(struct wait *w)
{
    if (!w->pause && log_now() - w->from < 1e-3) {
        sched_yield();
        return;
    }
    w->pause = !w->pause ? 20000 : w->pause < 500000 ? w->pause * 2 : 1000000;
    const struct timespec pause = {0, w->pause};
    nanosleep(&pause, NULL);
}

int nccl_wait_until(struct nccl_conn *c, const char *what,
                    int (*done)(struct nccl_conn *c, void *arg, struct nccl_step *s), void *arg,
                    double limit, struct nccl_step *s)
{
    struct wait w = {.what = what, .from = log_now(), .limit = limit};
    int there;

    while ((there = done(c, arg, s)) == 0) {
        if (look(c, &w, s) < 0)
            return -1;
        rest(&w);
    }
    return there < 0 ? -1 : 0;
}

int nccl_wait_state(struct nccl_conn *c, struct nccl_step *s)
{
    int result = NCCL_SUCCESS, code = nccl.CommGetAsyncError(c->comm, &result);

    if (code == NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        code = result;
    return code == NCCL_SUCCESS ? 0 : nccl_wait_failed(c, code, s);
}

static int stream_done(struct nccl_conn *c, void *stream, struct nccl_step *s)
{
    struct err err = {0, ""};
    int done = gpu_done(stream, &err);

    if (done < 0)
        return nccl_wait_fault(c, &err, s);
    return nccl_wait_state(c, s) < 0 ? -1 : done;
}

int nccl_wait_stream(struct nccl_conn *c, gpu_stream stream, struct nccl_step *s)
{
    return nccl_wait_until(c, "the GPU's work", stream_done, stream, nccl_wait_limit(), s);
}

int nccl_wait_alone(gpu_stream stream, double expected, struct err *err)
{
    double limit = expected + nccl_wait_limit();
    struct wait w = {.from = log_now()};
    int done;

    while ((done = gpu_done(stream, err)) == 0) {
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
