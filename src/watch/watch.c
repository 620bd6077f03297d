/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/watch.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "watch/watch_impl.h"
#include "watch/watch_listen.h"

static struct watch_self self = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .wake = -1};
static int depth; /* depth of nested ops */
static double hang_limit = 30;
static char *verdict_dir; /* directory of verdict and reports; NULL: none */

double watch_hang_after(void)
{
    return hang_limit;
}

/* --- watch thread of the rank --- */

static void add_one(_Atomic uint64_t *counter)
{
    watch_put(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1);
}

void watch_step(void)
{
    add_one(&self.steps);
    add_one(&self.moves);
}

void watch_call(const char *what)
{
    atomic_store_explicit(&self.call, what, memory_order_relaxed);
}

static int to_ms(double sec)
{
    return sec < 1e6 ? (int)(1e3 * sec) : 1000000000;
}

void watch_expect(double work, double others)
{
    atomic_store(&self.work_ms, to_ms(work));
    atomic_store(&self.expect_ms, to_ms(work + others));
}

double watch_expected(void)
{
    return 1e-3 * atomic_load(&self.expect_ms);
}

int watch_verdict_now(struct err *err)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < 1000 && self.running && !watch_verdict(NULL) && watch_thread_behind(&self);
         i++)
        nanosleep(&pause, NULL);
    return watch_verdict(err);
}

/* Wake the thread, so that a rank that dies at once is reported with this op. */
static void begin(const char *words)
{
    pthread_mutex_lock(&self.lock);
    snprintf(self.words, sizeof(self.words), "%s", words);
    pthread_mutex_unlock(&self.lock);
    watch_put(&self.steps, 0);
    watch_call(NULL);
    add_one(&self.moves);
    atomic_store(&self.state, WATCH_BUSY);
    atomic_store(&self.news, true);
    watch_thread_wake(&self);
}

void watch_enter(const char *fmt, ...)
{
    char words[WATCH_WORDS];
    va_list ap;

    if (depth++) {
        watch_step();
        return;
    }
    watch_expect(0, 0);
    if (!self.running)
        return;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    watch_clean(words);
    begin(words);
}

void watch_leave(void)
{
    if (depth > 0 && --depth > 0)
        return;
    watch_expect(0, 0);
    if (self.running)
        begin("no operation, between two points");
}

void watch_waiting(bool waits)
{
    if (atomic_load(&self.state) == WATCH_STARTING)
        return;
    add_one(&self.moves);
    atomic_store(&self.state, waits ? WATCH_WAITING : WATCH_BUSY);
}

void watch_symptom(const char *fmt, ...)
{
    const struct timespec pause = {0, 1000000};
    va_list ap;

    pthread_mutex_lock(&self.lock);
    va_start(ap, fmt);
    vsnprintf(self.symptom, sizeof(self.symptom), fmt, ap);
    va_end(ap);
    watch_clean(self.symptom);
    pthread_mutex_unlock(&self.lock);
    for (int i = 0; i < 1000 && self.running && !atomic_load(&self.told); i++)
        nanosleep(&pause, NULL);
}

void watch_points(int kept, int total)
{
    atomic_store(&self.kept, kept);
    atomic_store(&self.total, total);
}

void watch_flush(void)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < 1000 && self.running && atomic_load(&self.said) < atomic_load(&self.moves);
         i++)
        nanosleep(&pause, NULL);
}

int watch_verdict(struct err *err)
{
    if (!atomic_load(&self.told))
        return 0;
    pthread_mutex_lock(&self.lock);
    err_code(err, EXIT_CUT, "%s", self.verdict);
    pthread_mutex_unlock(&self.lock);
    return -1;
}

void watch_stopping(void)
{
    atomic_store(&self.stopping, true);
    watch_thread_wake(&self);
}

bool watch_asked(void)
{
    return atomic_load(&self.asked);
}

/* --- start and end --- */

static int connect_to(const char *text, const struct world *w, struct err *err)
{
    struct watch_where where;
    struct watch_hello hello = {.rank = w->rank,
                                .ranks = w->size,
                                .pid = (int)getpid(),
                                .patience_ms = (int)fmin(1e3 * hang_limit, 1e9)};

    if (watch_where_parse(&where, text) < 0)
        return err_config(err, "RAILGAUGE_WATCH=\"%s\" is neither off nor ADDRESS:PORT:TOKEN",
                          text);
    host_self(hello.host, sizeof(hello.host));
    self.patience = hang_limit;
    return watch_thread_start(&self, &where, &hello, err);
}

/* Rank 0 only: address from the environment, or of a new listener; "" for no listener. */
static char *choose(char *const *hosts, int n, double hang_after, const char *dir, struct err *err)
{
    const char *given = getenv("RAILGAUGE_WATCH"), *address = getenv("RAILGAUGE_WATCH_ADDRESS");
    char where[WATCH_WHERE] = "";

    if (given && *given)
        return mem_strdup(strcmp(given, "off") ? given : "");
    listen_spawn(address, hosts, n, hang_after, dir, where, err);
    return mem_strdup(where);
}

static char *agree_where(struct world *w, double hang_after, const char *dir, struct err *err)
{
    char host[WATCH_HOST] = "", *names = mem_calloc((size_t)w->size, sizeof(host));
    char **list = mem_calloc((size_t)w->size, sizeof(*list));
    void *where = NULL;
    size_t len = 0;

    host_kernel(host, sizeof(host));
    int rc = w->gather(w, host, sizeof(host), names, err);
    for (int i = 0; i < w->size; i++)
        list[i] = names + (size_t)i * sizeof(host);
    if (rc == 0 && w->rank == 0) {
        where = choose(list, w->size, hang_after, dir, err);
        len = strlen(where) + 1;
    }
    if (rc == 0 && w->share(w, &where, &len, err) < 0)
        where = NULL;
    free(names);
    free(list);
    return where;
}

void watch_report(const char *file, char *(*ask)(double sec))
{
    if (!self.running || !verdict_dir)
        return;
    free(self.report.path);
    self.report.path = file_join(verdict_dir, file);
    self.report.ask = ask;
    unlink(self.report.path); /* from an earlier campaign */
}

void watch_start(struct world *w, double hang_after, const char *dir)
{
    struct err err = {0, ""};

    hang_limit = hang_after;
    verdict_dir = dir ? mem_strdup(dir) : NULL;
    if (w->solo || w->size < 2)
        return;
    char *where = agree_where(w, hang_after, dir, &err);
    if (where && *where)
        connect_to(where, w, &err);
    if (err.text[0] && w->rank == 0)
        log_warn("%s: a rank that hangs or dies will not be named", err.text);
    free(where);
}

void watch_stop(const char *why)
{
    snprintf(self.failed, sizeof(self.failed), "%s", why ? why : "");
    watch_clean(self.failed); /* the thread reads it when it ends */
    watch_thread_end(&self);
    free(verdict_dir);
    verdict_dir = NULL;
}
