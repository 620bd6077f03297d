/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/watch_impl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

/* Seconds: interval between two beats; minimum interval (when a new op starts); time to connect;
 * from a verdict to the end (asked_grace: when the launcher asked for it); for a goodbye to
 * arrive. */
static const double beat = 0.1, soon = 0.01, connect_sec = 2, grace = 0.5, asked_grace = 0.2,
                    farewell = 0.3;
static const double report_sec = 2; /* limit of a report */
/* Interval between the first looks at the measuring thread, and between later ones. */
static const double glance = 0.01, later_glance = 0.1;
/* Time without progress before the kernel is asked for the state of the measuring thread at each
 * beat; time in which each answer must be "stopped". */
static const double look_after = 0.5, stopped_sec = 1;

/* Looks at the measuring thread since "soon", while it makes no progress. */
struct watch_looks {
    bool open;
    uint64_t still; /* moves at the time of the first look */
    double begun, next;
    int signals, held; /* looks; looks that found the thread held */
};

/* Progress of the measuring thread, as seen at each beat. */
struct watch_still {
    uint64_t moves;
    double since;   /* time at which `moves` was seen first */
    double stopped; /* time of the first of the last answers "stopped" */
    int answers;    /* their number; 0: the last answer was another */
};

struct watch_talk {
    struct watch_self *self;
    struct watch_looks looks;
    struct watch_still still;
    struct watch_stream in;
    bool welcome, led, said_stop, lost;
    enum watch_pulse pulse; /* of the last beat */
    char ill[WATCH_WORDS];  /* symptom already sent */
    double told_at;
};

static uint64_t now_ms(void)
{
    return (uint64_t)(1e3 * log_now());
}

static void set_alive(struct watch_self *s, uint64_t ms)
{
    watch_put(&s->alive_ms, ms);
}

bool watch_thread_behind(const struct watch_self *s)
{
    return atomic_load(&s->alive_ms) + 500 < now_ms();
}

void watch_thread_wake(const struct watch_self *s)
{
    uint64_t one = 1;
    int saved = errno; /* also called in a signal handler */

    if (s->wake >= 0 && write(s->wake, &one, sizeof(one)) < 0)
        errno = saved;
    errno = saved;
}

/* --- looks at the measuring thread ---
 *
 * A rank that hangs and a rank that waits for it look alike in their counters when both are inside
 * the same call of a library.  Their threads differ: one that waits polls, in many places of the
 * library or in system calls.  So some time before a verdict the watch thread sends signals to the
 * measuring thread, whose handler notes the place where it was interrupted.  SIGURG is ignored by
 * default, so that one too many does no harm (Go's scheduler uses it for the same reason). */

/* A thread that spins stays within SPIN_BYTES; FEW looks are no evidence. */
enum { SPIN_BYTES = 64, FEW = 20 };

/* Places of the measuring thread, written by its signal handler only. */
static struct {
    _Atomic unsigned seen, waits; /* interrupted; of these in a system call */
    _Atomic uintptr_t low, high;
} places;

/* The address of the interrupted instruction; 0: unknown.  *waits: it follows a system call. */
static uintptr_t interrupted_at(const void *context, bool *waits)
{
    const ucontext_t *c = context;
    uintptr_t at = 0;

#if defined(__x86_64__)
    at = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    *waits = at % 4096 >= 2 && !memcmp((const void *)(at - 2), "\x0f\x05", 2);
#elif defined(__aarch64__)
    at = (uintptr_t)c->uc_mcontext.pc;
    *waits = at % 4096 >= 4 && !memcmp((const void *)(at - 4), "\x01\x00\x00\xd4", 4);
#else
    (void)c;
    *waits = true;
#endif
    return at;
}

static void note_place(int number, siginfo_t *info, void *context)
{
    bool waits = false;
    uintptr_t at = interrupted_at(context, &waits);

    (void)number, (void)info;
    if (waits)
        atomic_fetch_add(&places.waits, 1);
    if (at < atomic_load(&places.low))
        atomic_store(&places.low, at);
    if (at > atomic_load(&places.high))
        atomic_store(&places.high, at);
    atomic_fetch_add(&places.seen, 1);
}

/* False: the program has a handler of its own. */
static bool take_signal(void)
{
    struct sigaction now, look = {.sa_sigaction = note_place, .sa_flags = SA_SIGINFO | SA_RESTART};

    if (sigaction(SIGURG, NULL, &now) < 0)
        return false;
    if (now.sa_flags & SA_SIGINFO ? now.sa_sigaction == note_place : now.sa_handler == SIG_DFL)
        return sigaction(SIGURG, &look, NULL) == 0;
    return false;
}

static void begin_looks(struct watch_talk *t)
{
    const struct watch_self *s = t->self;

    if (t->looks.open || !take_signal())
        return;
    t->looks =
        (struct watch_looks){.open = true, .still = atomic_load(&s->moves), .begun = log_now()};
    atomic_store(&places.seen, 0);
    atomic_store(&places.waits, 0);
    atomic_store(&places.low, UINTPTR_MAX);
    atomic_store(&places.high, 0);
}

/* The kernel's letter for the state of a thread (proc_pid_stat(5)); ' ': unknown. */
static char thread_state(int tid)
{
    char path[64], line[256] = "";

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof(line), f))
        line[0] = '\0';
    if (f)
        fclose(f);
    const char *state = strrchr(line, ')'); /* the name before it may contain anything */
    return state && state[1] && state[2] ? state[2] : ' ';
}

/* Called at each beat.  A stopped thread is found without signals, and soon: it does not go on by
 * itself, whatever its step may take.  Several answers are needed, because a tracer of system calls
 * stops a thread for moments. */
static void see_progress(struct watch_talk *t)
{
    struct watch_still *k = &t->still;
    uint64_t moves = atomic_load(&t->self->moves);
    double now = log_now();

    if (moves != k->moves || k->since <= 0)
        *k = (struct watch_still){.moves = moves, .since = now};
    if (now - k->since < look_after)
        return;
    char state = thread_state(t->self->tid);
    if (state != 't' && state != 'T')
        k->answers = 0;
    else if (!k->answers++)
        k->stopped = now;
}

static bool is_stopped(const struct watch_still *k)
{
    return k->answers > 1 && log_now() - k->stopped >= stopped_sec;
}

/* True if the measuring thread has been in one step for longer than its own loops may take.  Before
 * that, one that touches or copies much memory looks like one that spins.  The listener waits for
 * all of --hang-after; with half of it here, it knows by then, however late beats come. */
static bool is_overdue(const struct watch_talk *t)
{
    return log_now() - t->still.since >
           t->self->patience / 2 + 1e-3 * atomic_load(&t->self->work_ms);
}

/* One look, if it is due; the looks end with the first progress. */
static void look(struct watch_talk *t)
{
    struct watch_looks *k = &t->looks;
    const struct watch_self *s = t->self;

    if (!k->open || log_now() < k->next)
        return;
    k->next = log_now() + (k->signals < 4 * FEW ? glance : later_glance);
    k->open = atomic_load(&s->moves) == k->still && pthread_kill(s->measuring, SIGURG) == 0;
    k->signals++;
    k->held += thread_state(s->tid) == 'D';
}

static enum watch_pulse pulse_of(const struct watch_talk *t)
{
    const struct watch_looks *k = &t->looks;
    unsigned seen = atomic_load(&places.seen);

    if (is_stopped(&t->still))
        return WATCH_STOPPED;
    if (!k->open || k->signals < FEW)
        return WATCH_UNSEEN;
    if (!seen)
        return k->held == k->signals ? WATCH_HELD : WATCH_UNSEEN;
    if (seen < FEW / 2)
        return WATCH_UNSEEN;
    if (atomic_load(&places.waits) ||
        atomic_load(&places.high) - atomic_load(&places.low) > SPIN_BYTES)
        return WATCH_LIVE;
    return is_overdue(t) ? WATCH_SPINS : WATCH_UNSEEN;
}

/* --- send --- */

/* Send a whole line, however long the listener takes, because half a line would end the
 * connection.  -1: connection lost. */
static int say(struct watch_self *s, const char *line, size_t n)
{
    double end = log_now() + 1;

    while (n) {
        ssize_t sent = send(s->fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (sent > 0) {
            line += sent;
            n -= (size_t)sent;
        } else if (log_now() > end && atomic_load(&s->ending)) {
            return -1;
        } else {
            poll(&(struct pollfd){.fd = s->fd, .events = POLLOUT}, 1, 100);
            set_alive(s, now_ms());
        }
    }
    return 0;
}

static int say_beat(struct watch_talk *t)
{
    struct watch_self *s = t->self;
    struct watch_beat b = {.moves = atomic_load(&s->moves),
                           .steps = atomic_load(&s->steps),
                           .state = (enum watch_state)atomic_load(&s->state),
                           .expect = 1e-3 * atomic_load(&s->expect_ms),
                           .kept = atomic_load(&s->kept),
                           .total = atomic_load(&s->total),
                           .pulse = t->pulse = pulse_of(t)};
    char line[WATCH_LINE], ill[WATCH_WORDS];
    const char *call = atomic_load(&s->call);

    snprintf(b.call, sizeof(b.call), "%s", call ? call : "");
    pthread_mutex_lock(&s->lock);
    memcpy(b.words, s->words, sizeof(b.words));
    memcpy(ill, s->symptom, sizeof(ill));
    pthread_mutex_unlock(&s->lock);
    if (say(s, line, (size_t)watch_beat_format(line, &b)) < 0)
        return -1;
    watch_put(&s->said, b.moves);
    if (!strcmp(ill, t->ill))
        return 0;
    memcpy(t->ill, ill, sizeof(ill));
    return say(s, line, (size_t)snprintf(line, sizeof(line), "symptom %s\n", ill));
}

static void take_verdict(struct watch_talk *t, const char *text)
{
    struct watch_self *s = t->self;

    pthread_mutex_lock(&s->lock);
    snprintf(s->verdict, sizeof(s->verdict), "%s", text);
    watch_clean(s->verdict);
    pthread_mutex_unlock(&s->lock);
    t->told_at = log_now();
    atomic_store(&s->told, true);
}

/* If the listener leads the campaign, its loss ends the campaign; a listener that only watches is
 * no reason to stop. */
static void lose(struct watch_talk *t)
{
    static const char led[] =
        "railgauge run is gone: what was measured is kept, --resume continues";

    t->lost = true;
    if (t->told_at > 0)
        return;
    if (t->self->rank == 0)
        log_warn("%s",
                 t->led ? led
                 : t->welcome
                     ? "the watch is gone: from here on a rank that hangs or dies is not named"
                     : "the watch does not know us (RAILGAUGE_WATCH): a rank that hangs or "
                       "dies will not be named");
    if (t->led)
        take_verdict(t, led);
}

static void say_stop(struct watch_talk *t)
{
    t->said_stop = true;
    if (say(t->self, "stop\n", 5) < 0)
        lose(t);
}

static void say_goodbye(struct watch_self *s)
{
    double end = log_now() + farewell;
    char rest[64], line[WATCH_LINE];

    if (s->failed[0] &&
        say(s, line, (size_t)snprintf(line, sizeof(line), "failed %s\n", s->failed)) < 0)
        return;
    if (say(s, "bye\n", 4) < 0 || shutdown(s->fd, SHUT_WR) < 0)
        return;
    while (log_now() < end && poll(&(struct pollfd){.fd = s->fd, .events = POLLIN}, 1, 50) >= 0)
        if (recv(s->fd, rest, sizeof(rest), MSG_DONTWAIT) == 0)
            return;
}

/* --- report: requested when a verdict is near, and written to a file --- */

/* Errors are ignored, because the verdict is more important than a message about them. */
static void save_report(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

/* The file is written as soon as the report is known, so that a verdict does not wait; it is
 * removed if the ranks move on. */
static void *ask_for_report(void *self)
{
    const struct timespec pause = {0, 20000000};
    struct watch_self *s = self;
    char *text = s->report.ask(report_sec);

    if (text)
        save_report(s->report.path, text);
    while (text && !atomic_load(&s->told)) {
        if (atomic_load(&s->ending) || atomic_load(&s->moves) != s->report.still) {
            unlink(s->report.path);
            break;
        }
        nanosleep(&pause, NULL);
    }
    free(text);
    atomic_store(&s->report.open, false);
    return NULL;
}

static void join_report(struct watch_self *s)
{
    if (s->report.started)
        pthread_join(s->report.thread, NULL);
    s->report.started = false;
}

/* Start a thread without signals; they are for the measuring thread. */
static int start_deaf(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int why = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return why;
}

/* Start it unless nothing is registered or a request is pending. */
static void start_report(struct watch_self *s)
{
    if (!s->report.ask || atomic_load(&s->report.open))
        return;
    join_report(s);
    s->report.still = atomic_load(&s->moves);
    atomic_store(&s->report.open, true);
    s->report.started = start_deaf(&s->report.thread, ask_for_report, s) == 0;
    if (!s->report.started)
        atomic_store(&s->report.open, false);
}

/* --- receive --- */

static void hear(struct watch_talk *t)
{
    char line[WATCH_LINE];
    int open = watch_stream_read(&t->in, t->self->fd), got;

    while ((got = watch_stream_line(&t->in, line)) > 0) {
        if (!strcmp(line, "welcome") || !strcmp(line, "welcome led")) {
            t->welcome = true;
            t->led = line[7] != '\0';
        } else if (!strcmp(line, "stop")) {
            atomic_store(&t->self->asked, true);
            kill(getpid(), SIGTERM); /* handled by the measuring thread */
        } else if (!strcmp(line, "look")) {
            begin_looks(t);
        } else if (!strcmp(line, "soon")) {
            /* A thread that moved about before it began to spin: its old places do not count. */
            t->looks.open &= log_now() - t->looks.begun < 1;
            begin_looks(t);
            start_report(t->self);
        } else if (!strncmp(line, "verdict ", 8) && !t->told_at)
            take_verdict(t, line + 8);
    }
    if (open < 0 || got < 0)
        lose(t);
}

/* --- the thread --- */

static void pause_until(struct watch_talk *t, double due)
{
    struct pollfd p[2] = {{.fd = t->self->wake, .events = POLLIN},
                          {.fd = t->lost ? -1 : t->self->fd, .events = POLLIN}};
    double left = due - log_now();
    uint64_t count;

    if (poll(p, 2, left > 0 ? (int)(1e3 * left) + 1 : 0) <= 0)
        return;
    if (p[0].revents && read(t->self->wake, &count, sizeof(count)) < 0)
        return;
    if (p[1].revents)
        hear(t);
}

static double until_next(const struct watch_self *s)
{
    return atomic_load(&s->news) ? soon : beat;
}

static double next_turn(const struct watch_talk *t, double last)
{
    double due = last + until_next(t->self);

    return t->looks.open && t->looks.next < due ? t->looks.next : due;
}

/* Seconds from a verdict to the end of this rank.  A measuring thread that gives up its wait has
 * left its call by then; one that is stopped or spins cannot end at all. */
static double time_to_end(const struct watch_talk *t)
{
    const struct watch_self *s = t->self;

    if (t->pulse == WATCH_STOPPED || t->pulse == WATCH_SPINS)
        return 0;
    return atomic_load(&s->stopping) || atomic_load(&s->call) ? asked_grace : grace;
}

/* After the listener is lost, the thread stays only to enforce a verdict. */
static void *talk(void *self)
{
    struct watch_self *s = self;
    struct watch_talk *t = mem_calloc(1, sizeof(*t));
    double last = 0;

    t->self = s;
    while (!atomic_load(&s->ending) && (!t->lost || t->told_at > 0)) {
        pause_until(t, next_turn(t, last));
        set_alive(s, t->lost ? UINT64_MAX / 2 : now_ms());
        if (!t->lost && !t->said_stop && atomic_load(&s->stopping))
            say_stop(t);
        if (!t->lost && !t->told_at)
            look(t);
        if (log_now() >= last + until_next(s)) {
            atomic_store(&s->news, false);
            see_progress(t);
            if (!t->lost && say_beat(t) < 0)
                lose(t);
            last = log_now();
        }
        if (t->told_at > 0 && log_now() - t->told_at > time_to_end(t))
            _exit(EXIT_CUT);
    }
    if (!t->lost)
        say_goodbye(s);
    free(t);
    return NULL;
}

static int start_thread(struct watch_self *s, struct err *err)
{
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int why = s->wake < 0 ? errno : start_deaf(&s->thread, talk, s);
    s->running = !why;
    set_alive(s, now_ms());
    return why ? err_io(err, "cannot start a thread: %s", strerror(why)) : 0;
}

int watch_thread_start(struct watch_self *s, const struct watch_where *where,
                       struct watch_hello *hello, struct err *err)
{
    char line[WATCH_LINE];

    memcpy(hello->token, where->token, sizeof(hello->token));
    s->fd = wire_connect(where, connect_sec, err);
    if (s->fd < 0)
        return -1;
    s->rank = hello->rank;
    s->measuring = pthread_self();
    s->tid = (int)syscall(SYS_gettid);
    snprintf(s->words, sizeof(s->words), "the start");
    if (say(s, line, (size_t)watch_hello_format(line, hello)) < 0)
        return err_io(err, "%s:%s hung up", where->address, where->port);
    if (start_thread(s, err) == 0)
        return 0;
    say(s, "bye\n", 4); /* leave, because a rank without beats would be judged silent */
    return -1;
}

void watch_thread_end(struct watch_self *s)
{
    if (s->running) {
        atomic_store(&s->ending, true);
        watch_thread_wake(s);
        pthread_join(s->thread, NULL);
    }
    s->running = false;
    join_report(s);
    free(s->report.path);
    s->report.path = NULL;
    s->report.ask = NULL;
    if (s->fd >= 0)
        close(s->fd);
    if (s->wake >= 0)
        close(s->wake);
    s->fd = s->wake = -1;
}
