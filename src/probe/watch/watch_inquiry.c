/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/watch/watch_inquiry.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

static const double patience = 2; /* s */

static struct {
    char *path;
    char *(*ask)(double sec);
    enum inquiry_state (*look)(const void *context);
    const void *context;
    pthread_t thread;
    bool started; /* there is a thread to join */
    _Atomic bool open;
} inquiry;

void inquiry_set(const char *dir, const char *file, char *(*ask)(double sec))
{
    free(inquiry.path);
    inquiry.path = file_join(dir, file);
    inquiry.ask = ask;
    unlink(inquiry.path);
}

/* Whatever cannot be written is missing: the verdict is worth more than a word about that. */
static void save(const char *text)
{
    FILE *f = fopen(inquiry.path, "we");

    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void *inquire(void *unused)
{
    const struct timespec pause = {0, 20000000};
    char *text = inquiry.ask(patience);
    enum inquiry_state now;

    (void)unused;
    if (text)
        save(text);
    while (text && (now = inquiry.look(inquiry.context)) != INQUIRY_KEEP) {
        if (now == INQUIRY_DROP) {
            unlink(inquiry.path);
            break;
        }
        nanosleep(&pause, NULL);
    }
    free(text);
    atomic_store(&inquiry.open, false);
    return NULL;
}

static void join(void)
{
    if (inquiry.started)
        pthread_join(inquiry.thread, NULL);
    inquiry.started = false;
}

void inquiry_start(enum inquiry_state (*look)(const void *context), const void *context)
{
    sigset_t all, old;

    if (!inquiry.ask || atomic_load(&inquiry.open))
        return;
    join();
    inquiry.look = look;
    inquiry.context = context;
    atomic_store(&inquiry.open, true);
    sigfillset(&all); /* signals are for the thread that measures */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    inquiry.started = pthread_create(&inquiry.thread, NULL, inquire, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!inquiry.started)
        atomic_store(&inquiry.open, false);
}

void inquiry_end(void)
{
    join();
    free(inquiry.path);
    inquiry.path = NULL;
    inquiry.ask = NULL;
}
