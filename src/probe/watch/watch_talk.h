/* watch_talk.h - a rank's talk with the listener: a thread that tells, ten times a second, what the
 * measuring thread left for it, and hears verdicts.  For watch.c; the lines are watch_wire.h's.
 *
 * Each member of watch_self has one writer: numbers are atomics, words are under the lock. */
#ifndef RG_WATCH_TALK_H
#define RG_WATCH_TALK_H

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
    /* the talking thread's */
    _Atomic uint64_t said;     /* the moves of the last beat */
    _Atomic uint64_t alive_ms; /* when it had last heard all that there was */
    _Atomic bool told, asked;  /* a verdict; to stop */
    char verdict[WATCH_LINE];
    pthread_mutex_t lock;
    /* set before that thread begins */
    bool running;
    int fd, wake, rank; /* fd and wake: -1 before and after */
    pthread_t thread;
    uint64_t still; /* moves when an inquiry began */
};

/* A number with one writer: no locked instruction is needed. */
static inline void watch_put(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

/* Connects, says hello with the token of `where` and starts the thread.  talk_end() also after an
 * error. */
int talk_start(struct watch_self *s, const struct watch_where *where, struct watch_hello *hello,
               struct err *err);
/* Let the thread look at once; allowed in a signal handler. */
void talk_wake(const struct watch_self *s);
/* Has the thread not heard for half a second?  A verdict may be there that it does not know. */
bool talk_behind(const struct watch_self *s);
/* Says goodbye; harmless when nothing was started. */
void talk_end(struct watch_self *s);

#endif
