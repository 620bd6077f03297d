/* watch_impl.h - watch thread of a rank: sends the state left by the measuring thread to the
 * listener, ten times per second, and receives verdicts.  For watch.c; the protocol is in
 * watch_wire.h.
 *
 * Each member of watch_self has one writer: numbers are atomics, text is under the lock. */
#ifndef RG_WATCH_IMPL_H
#define RG_WATCH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "watch/watch_wire.h"

struct watch_self {
    /* written by the measuring thread */
    _Atomic uint64_t moves, steps;
    _Atomic int state, kept, total, expect_ms, work_ms; /* expect_ms: with work_ms */
    _Atomic bool stopping, ending, news;
    const char *_Atomic call; /* entered call that waits for other ranks; NULL: none */
    char words[WATCH_WORDS], symptom[WATCH_WORDS], failed[512];
    /* written by the watch thread */
    _Atomic uint64_t said;     /* moves at the last beat */
    _Atomic uint64_t alive_ms; /* time at which everything pending had been received */
    _Atomic bool told, asked;  /* told: a verdict arrived; asked: to stop */
    char verdict[WATCH_LINE];
    pthread_mutex_t lock;
    /* set before the thread starts */
    bool running;
    int fd, wake, rank; /* fd and wake: -1 while closed */
    double patience;    /* --hang-after */
    pthread_t thread, measuring;
    int tid; /* of the measuring thread */
    /* function and file of watch_report() */
    struct {
        char *path;
        char *(*ask)(double sec);
        uint64_t still; /* moves at the time of the call */
        pthread_t thread;
        bool started; /* there is a thread to join */
        _Atomic bool open;
    } report;
};

/* Store a number that has one writer, so that no locked instruction is needed. */
static inline void watch_put(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

/* Connect, say hello with the token of `where` and start the thread.  Call watch_thread_end() also
 * after an error. */
int watch_thread_start(struct watch_self *s, const struct watch_where *where,
                       struct watch_hello *hello, struct err *err);
/* Wake the thread; allowed in a signal handler. */
void watch_thread_wake(const struct watch_self *s);
/* True if the thread has received nothing for half a second, so that it may not know of a
 * verdict. */
bool watch_thread_behind(const struct watch_self *s);
/* Say goodbye; allowed if nothing was started. */
void watch_thread_end(struct watch_self *s);

#endif
