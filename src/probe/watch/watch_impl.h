/* watch_impl.h - the watch thread of a rank: it tells the listener, ten times a second, what the
 * measuring thread left for it, and hears verdicts.  For watch.c; the lines are watch_wire.h's.
 *
 * Each member of watch_self has one writer: numbers are atomics, words are under the lock. */
#ifndef RG_WATCH_IMPL_H
#define RG_WATCH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"
#include "probe/watch/watch_wire.h"

struct watch_self {
    /* the measuring thread's */
    _Atomic uint64_t moves, steps;
    _Atomic int state, kept, total, expect_ms;
    _Atomic bool stopping, ending, news;
    char words[WATCH_WORDS], symptom[WATCH_WORDS];
    /* the watch thread's */
    _Atomic uint64_t said;     /* the moves of the last beat */
    _Atomic uint64_t alive_ms; /* when it had last heard all that there was */
    _Atomic bool told, asked;  /* a verdict; to stop */
    char verdict[WATCH_LINE];
    pthread_mutex_t lock;
    /* set before that thread begins */
    bool running;
    int fd, wake, rank; /* fd and wake: -1 before and after */
    pthread_t thread;
    /* watch_report(): the question and the file of its answer */
    struct {
        char *path;
        char *(*ask)(double sec);
        uint64_t still; /* moves when it was asked */
        pthread_t thread;
        bool started; /* there is a thread to join */
        _Atomic bool open;
    } report;
};

/* A number with one writer: no locked instruction is needed. */
static inline void watch_put(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

/* Connects, says hello with the token of `where` and starts the thread.  watch_thread_end() also
 * after an error. */
int watch_thread_start(struct watch_self *s, const struct watch_where *where,
                       struct watch_hello *hello, struct err *err);
/* Let the thread look at once; allowed in a signal handler. */
void watch_thread_wake(const struct watch_self *s);
/* Has the thread not heard for half a second?  A verdict may be there that it does not know. */
bool watch_thread_behind(const struct watch_self *s);
/* Says goodbye; harmless when nothing was started. */
void watch_thread_end(struct watch_self *s);

#endif
