/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/watch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "probe/watch_inquiry.h"
#include "probe/watch_net.h"
#include "probe/watch_serve.h"
#include "probe/watch_wire.h"

/* Seconds between two beats, at least (when a new op begins), to connect, from a verdict to the
 * end (earlier when the launcher wants it), and for a goodbye to arrive. */
static const double beat = 0.1, soon = 0.01, connect_sec = 2, grace = 0.5, asked_grace = 0.2,
                    farewell = 0.3;

/* What the rank's own thread leaves for the watch thread: numbers as atomics with one writer, words
 * under the lock. */
static struct {
    _Atomic uint64_t moves, steps;
    _Atomic uint64_t said;     /* the moves of the last beat */
    _Atomic uint64_t alive_ms; /* when the watch thread last had heard all that there was */
    _Atomic int state, kept, total, expect_ms;
    _Atomic bool stopping, ending, told, news;
    pthread_mutex_t lock;
    char words[WATCH_WORDS], symptom[WATCH_WORDS], verdict[WATCH_LINE];
    /* set before the thread begins */
    bool running;
    int fd, wake, rank;
    int depth; /* of ops inside ops: the measuring thread's */
    pthread_t thread;
    double hang_after;
    char *dir;      /* where the verdict goes; NULL: nowhere */
    uint64_t still; /* moves when an inquiry began */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .wake = -1, .hang_after = 30};

double watch_hang_default(const char *transport)
{
    return transport && !strcmp(transport, "nccl") ? 8 : 30;
}

double watch_hang_after(void)
{
    return self.hang_after;
}

/* --- the rank's own thread --- */

static void put(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static void add_one(_Atomic uint64_t *counter) /* one writer: no locked instruction is needed */
{
    put(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1);
}

void watch_step(void)
{
    add_one(&self.steps);
    add_one(&self.moves);
}

void watch_expect(double sec)
{
    atomic_store(&self.expect_ms, sec < 1e6 ? (int)(1e3 * sec) : 1000000000);
}

static uint64_t now_ms(void)
{
    return (uint64_t)(1e3 * log_now());
}

int watch_verdict_now(struct err *err)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < 1000 && self.running && !watch_verdict(NULL) &&
                    atomic_load(&self.alive_ms) + 500 < now_ms();
         i++)
        nanosleep(&pause, NULL);
    return watch_verdict(err);
}

static void wake_up(void)
{
    uint64_t one = 1;
    int saved = errno; /* also from a signal handler */

    if (self.wake >= 0 && write(self.wake, &one, sizeof(one)) < 0)
        errno = saved;
    errno = saved;
}

/* The thread is woken: who dies at once is to be named with what it died in. */
static void begin(const char *words)
{
    pthread_mutex_lock(&self.lock);
    snprintf(self.words, sizeof(self.words), "%s", words);
    pthread_mutex_unlock(&self.lock);
    put(&self.steps, 0);
    add_one(&self.moves);
    watch_expect(0);
    atomic_store(&self.state, WATCH_BUSY);
    atomic_store(&self.news, true);
    wake_up();
}

void watch_enter(const char *fmt, ...)
{
    char words[WATCH_WORDS];
    va_list ap;

    if (!self.running)
        return;
    if (self.depth++) {
        watch_step();
        return;
    }
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    watch_clean(words);
    begin(words);
}

void watch_leave(void)
{
    if (self.running && (self.depth == 0 || --self.depth == 0))
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
    wake_up();
}

/* --- the watch thread --- */

/* What the thread knows itself. */
struct talk {
    struct watch_stream in;
    bool welcome, said_stop, lost;
    char ill[WATCH_WORDS]; /* the symptom that was told */
    double told_at;
};

/* A whole line, however long the listener takes: half a line would end the connection.  -1: it is
 * gone. */
static int say(const char *line, size_t n)
{
    double end = log_now() + 1;

    while (n) {
        ssize_t sent = send(self.fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (sent > 0) {
            line += sent;
            n -= (size_t)sent;
        } else if (log_now() > end && atomic_load(&self.ending)) {
            return -1;
        } else {
            poll(&(struct pollfd){.fd = self.fd, .events = POLLOUT}, 1, 100);
            put(&self.alive_ms, now_ms());
        }
    }
    return 0;
}

static int say_beat(struct talk *t)
{
    struct watch_beat b = {.moves = atomic_load(&self.moves),
                           .steps = atomic_load(&self.steps),
                           .state = (enum watch_state)atomic_load(&self.state),
                           .expect = 1e-3 * atomic_load(&self.expect_ms),
                           .kept = atomic_load(&self.kept),
                           .total = atomic_load(&self.total)};
    char line[WATCH_LINE], ill[WATCH_WORDS];

    pthread_mutex_lock(&self.lock);
    memcpy(b.words, self.words, sizeof(b.words));
    memcpy(ill, self.symptom, sizeof(ill));
    pthread_mutex_unlock(&self.lock);
    if (say(line, (size_t)watch_beat_format(line, &b)) < 0)
        return -1;
    put(&self.said, b.moves);
    if (!strcmp(ill, t->ill))
        return 0;
    memcpy(t->ill, ill, sizeof(ill));
    return say(line, (size_t)snprintf(line, sizeof(line), "symptom %s\n", ill));
}

static void take_verdict(struct talk *t, const char *text)
{
    pthread_mutex_lock(&self.lock);
    snprintf(self.verdict, sizeof(self.verdict), "%s", text);
    watch_clean(self.verdict);
    pthread_mutex_unlock(&self.lock);
    t->told_at = log_now();
    atomic_store(&self.told, true);
}

static void lose(struct talk *t)
{
    if (self.rank == 0 && !t->told_at)
        log_warn(t->welcome ? "the watch is gone: from here on a rank that hangs or dies is not "
                              "named"
                            : "the watch does not know us (RAILGAUGE_WATCH): a rank that hangs or "
                              "dies will not be named");
    t->lost = true;
}

/* What became of the hang that an inquiry is about. */
static enum inquiry_state look_still(void)
{
    if (atomic_load(&self.told))
        return INQUIRY_KEEP;
    return atomic_load(&self.ending) || atomic_load(&self.moves) != self.still ? INQUIRY_DROP
                                                                               : INQUIRY_OPEN;
}

static void start_inquiry(void)
{
    self.still = atomic_load(&self.moves);
    inquiry_start(look_still);
}

static void hear(struct talk *t)
{
    char line[WATCH_LINE];
    int open = watch_stream_read(&t->in, self.fd), got;

    while ((got = watch_stream_line(&t->in, line)) > 0) {
        if (!strcmp(line, "welcome"))
            t->welcome = true;
        else if (!strcmp(line, "soon"))
            start_inquiry();
        else if (!strncmp(line, "verdict ", 8) && !t->told_at)
            take_verdict(t, line + 8);
    }
    if (open < 0 || got < 0)
        lose(t);
}

static void say_goodbye(void)
{
    double end = log_now() + farewell;
    char rest[64];

    if (say("bye\n", 4) < 0 || shutdown(self.fd, SHUT_WR) < 0)
        return;
    while (log_now() < end && poll(&(struct pollfd){.fd = self.fd, .events = POLLIN}, 1, 50) >= 0)
        if (recv(self.fd, rest, sizeof(rest), MSG_DONTWAIT) == 0)
            return;
}

static void pause_until(struct talk *t, double due)
{
    struct pollfd p[2] = {{.fd = self.wake, .events = POLLIN},
                          {.fd = t->lost ? -1 : self.fd, .events = POLLIN}};
    double left = due - log_now();
    uint64_t count;

    if (poll(p, 2, left > 0 ? (int)(1e3 * left) + 1 : 0) <= 0)
        return;
    if (p[0].revents && read(self.wake, &count, sizeof(count)) < 0)
        return;
    if (p[1].revents)
        hear(t);
}

static void say_stop(struct talk *t)
{
    t->said_stop = true;
    if (say("stop\n", 5) < 0)
        lose(t);
}

/* Once the listener is gone only a verdict that was told keeps the thread. */
static void *watch(void *unused)
{
    struct talk *t = mem_calloc(1, sizeof(*t));
    double last = 0;

    (void)unused;
    while (!atomic_load(&self.ending) && (!t->lost || t->told_at > 0)) {
        pause_until(t, last + (atomic_load(&self.news) ? soon : beat));
        put(&self.alive_ms, t->lost ? UINT64_MAX / 2 : now_ms());
        if (!t->lost && !t->said_stop && atomic_load(&self.stopping))
            say_stop(t);
        if (log_now() >= last + (atomic_load(&self.news) ? soon : beat)) {
            atomic_store(&self.news, false);
            if (!t->lost && say_beat(t) < 0)
                lose(t);
            last = log_now();
        }
        if (t->told_at > 0 &&
            log_now() - t->told_at > (atomic_load(&self.stopping) ? asked_grace : grace))
            _exit(EXIT_CUT);
    }
    if (!t->lost)
        say_goodbye();
    free(t);
    return NULL;
}

/* --- start and end --- */

/* Signals are for the thread that measures. */
static int start_thread(struct err *err)
{
    sigset_t all, old;

    self.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int why = self.wake < 0 ? errno : pthread_create(&self.thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    self.running = !why;
    put(&self.alive_ms, now_ms());
    return why ? err_io(err, "cannot start a thread: %s", strerror(why)) : 0;
}

static int connect_to(const char *text, const struct world *w, struct err *err)
{
    struct watch_where where;
    struct watch_hello hello = {.rank = w->rank,
                                .ranks = w->size,
                                .pid = (int)getpid(),
                                .patience_ms = (int)fmin(1e3 * self.hang_after, 1e9)};
    char line[WATCH_LINE];

    if (watch_where_parse(&where, text) < 0)
        return err_config(err, "RAILGAUGE_WATCH=\"%s\" is neither off nor ADDRESS:PORT:TOKEN",
                          text);
    memcpy(hello.token, where.token, sizeof(hello.token));
    host_self(hello.host, sizeof(hello.host));
    self.fd = net_connect(&where, connect_sec, err);
    if (self.fd < 0)
        return -1;
    self.rank = w->rank;
    snprintf(self.words, sizeof(self.words), "the start");
    if (say(line, (size_t)watch_hello_format(line, &hello)) < 0)
        return err_io(err, "%s:%s hung up", where.address, where.port);
    if (start_thread(err) == 0)
        return 0;
    say("bye\n", 4); /* a rank without beats would be taken for a silent one */
    return -1;
}

/* Rank 0 alone: what the environment says, or a listener of our own; "" when there is to be none.
 */
static char *choose(char *const *hosts, int n, double hang_after, const char *dir, struct err *err)
{
    const char *given = getenv("RAILGAUGE_WATCH"), *address = getenv("RAILGAUGE_WATCH_ADDRESS");
    char where[WATCH_WHERE] = "";

    if (given && *given)
        return mem_strdup(strcmp(given, "off") ? given : "");
    serve_spawn(address, hosts, n, hang_after, dir, where, err);
    return mem_strdup(where);
}

static char *agree_where(struct world *w, double hang_after, const char *dir, struct err *err)
{
    char host[WATCH_HOST] = "", *names = mem_calloc((size_t)w->size, sizeof(host));
    char **list = mem_calloc((size_t)w->size, sizeof(*list));
    void *where = NULL;
    size_t len = 0;

    host_self(host, sizeof(host));
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

void watch_inquire(const char *file, char *(*ask)(double sec))
{
    if (self.running && self.dir)
        inquiry_set(self.dir, file, ask);
}

void watch_start(struct world *w, double hang_after, const char *dir)
{
    struct err err = {0, ""};

    self.hang_after = hang_after;
    self.dir = dir ? mem_strdup(dir) : NULL;
    if (w->solo || w->size < 2)
        return;
    char *where = agree_where(w, hang_after, dir, &err);
    if (where && *where)
        connect_to(where, w, &err);
    if (err.text[0] && w->rank == 0)
        log_warn("%s: a rank that hangs or dies will not be named", err.text);
    free(where);
}

void watch_stop(void)
{
    if (self.running) {
        atomic_store(&self.ending, true);
        wake_up();
        pthread_join(self.thread, NULL);
    }
    self.running = false;
    inquiry_end();
    free(self.dir);
    self.dir = NULL;
    if (self.fd >= 0)
        close(self.fd);
    if (self.wake >= 0)
        close(self.wake);
    self.fd = self.wake = -1;
}
