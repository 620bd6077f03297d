/* SPDX-License-Identifier: BSD-3-Clause */
/* Does the GPU still answer?  A thread of its own asks, since a GPU that fell off its bus may keep
 * even a call that is said to be asynchronous; whoever wants to know waits for the thread, and not
 * longer than asked. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda_api.h"
#include "kernels/gpu.h"
#include "kernels/gpu_own.h"

enum answer { UNASKED, ASKED, ANSWERED, FAULT, SILENT }; /* ASKED: the thread runs */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    enum answer answer;
    bool closing;
    struct err why; /* of FAULT */
    gpu_stream stream;
    struct gpu_buffer bytes;
} ask = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A clock that nobody sets. */
static void prepare(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ask.moved, &attr);
    pthread_condattr_destroy(&attr);
}

/* The highest priority: a stream full of long kernels must not look like a GPU that is gone. */
int gpu_answers_open(struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int least, greatest = 0;
    int rc = cuda.CtxGetStreamPriorityRange(&least, &greatest);

    pthread_once(&once, prepare);
    if (rc == CUDA_GOOD)
        rc = cuda.StreamCreateWithPriority(&ask.stream, CUDA_STREAM_NON_BLOCKING, greatest);
    if (rc) {
        ask.stream = NULL;
        return cuda_error(err, rc, "stream");
    }
    ask.closing = false;
    ask.answer = UNASKED;
    return gpu_alloc(&ask.bytes, GPU_PLAIN, 4096, err);
}

static struct timespec after(double seconds)
{
    struct timespec t;
    double whole;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)(1e9 * modf(seconds, &whole));
    t.tv_sec += (time_t)whole + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Wait for the thread until `until`; the lock is held. */
static bool wait_for_answer(const struct timespec *until)
{
    while (ask.answer == ASKED)
        if (pthread_cond_timedwait(&ask.moved, &ask.lock, until) == ETIMEDOUT)
            break;
    return ask.answer != ASKED;
}

static bool closing(void)
{
    bool yes;

    pthread_mutex_lock(&ask.lock);
    yes = ask.closing;
    pthread_mutex_unlock(&ask.lock);
    return yes;
}

static int fill_and_wait(struct err *err)
{
    struct timespec nap = {0, 20000};
    int done;

    if (gpu_enter(err) < 0 || gpu_set(ask.bytes.at, 0, ask.bytes.bytes, ask.stream, err))
        return -1;
    while ((done = gpu_done(ask.stream, err)) == 0 && !closing()) {
        nanosleep(&nap, NULL);
        nap.tv_nsec += nap.tv_nsec < 10000000 ? nap.tv_nsec / 8 : 0;
    }
    return done;
}

static void *look(void *unused)
{
    struct err why = {EXIT_IO, "the context of the GPU cannot be used"};
    int done = fill_and_wait(&why);

    pthread_mutex_lock(&ask.lock);
    ask.answer = done < 0 ? FAULT : done ? ANSWERED : SILENT;
    ask.why = why;
    pthread_cond_broadcast(&ask.moved);
    pthread_mutex_unlock(&ask.lock);
    return unused;
}

static int begin(struct err *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    ask.answer = ASKED;
    rc = pthread_create(&thread, &attr, look, NULL);
    pthread_attr_destroy(&attr);
    if (rc == 0)
        return 0;
    ask.answer = UNASKED;
    return err_io(err, "no thread that asks the GPU: %s", strerror(rc));
}

/* A question that nobody got an answer to is asked no second time: its thread still waits. */
int gpu_answers(double seconds, struct err *err)
{
    struct timespec until = after(seconds);
    int rc = -1;

    pthread_mutex_lock(&ask.lock);
    if (!ask.stream)
        err_config(err, "no GPU is open");
    else if (ask.answer == ASKED || begin(err) == 0)
        rc = wait_for_answer(&until) ? (ask.answer == FAULT ? -1 : 1) : 0;
    if (rc < 0 && ask.answer == FAULT && err)
        *err = ask.why;
    pthread_mutex_unlock(&ask.lock);
    return rc;
}

/* Whether it does is asked first, since memory is not freed before the GPU has done all it has. */
bool gpu_answers_close(void)
{
    pthread_mutex_lock(&ask.lock);
    bool doubted = ask.answer == ASKED;
    pthread_mutex_unlock(&ask.lock);
    /* Without a question that waits already, it may be the host that is busy. */
    bool silent = ask.stream && gpu_answers(doubted ? 1.0 : 10.0, NULL) == 0;
    struct timespec until = after(1.0);

    pthread_mutex_lock(&ask.lock);
    ask.closing = true;
    silent = !wait_for_answer(&until) || silent;
    pthread_mutex_unlock(&ask.lock);
    if (silent)
        return true;
    gpu_free(&ask.bytes);
    gpu_stream_close(ask.stream);
    ask.stream = NULL;
    return false;
}
