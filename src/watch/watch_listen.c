/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/watch_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "watch/watch.h"
#include "watch/watch_wire.h"

/* STRANGERS, STRANGER_SEC: limits on connections that have not said hello yet.  LEFT_SEC: before
 * launch.c ends a launcher that is late. */
enum { STRANGERS = 4096, STRANGER_SEC = 5, CROWD = 64, LEFT_SEC = 3 };

struct listen_client {
    int fd, rank; /* rank -1: a stranger */
    double since;
    struct watch_stream in;
};

struct listener {
    int fd;
    char where[WATCH_WHERE];
    struct watch_where self;
    char *dir;
    struct listen_client **client; /* allocated one by one, because streams are large */
    int clients;
    struct pollfd *poll;
    int room;
    struct judge judge;
    double last, met_at; /* end of the last turn; time of the first hello */
    double over_at;      /* time at which all had said goodbye */
    bool told, counted;
    enum judge_need warned;
    bool speaks; /* prints its verdict on stderr itself */
};

static void raise_file_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void forget_verdict(const char *dir)
{
    char *path = file_join(dir, "verdict.json");

    unlink(path);
    free(path);
}

static struct listener *make(int fd, const char *where, double hang_after, const char *dir,
                             bool speaks)
{
    struct listener *l = mem_calloc(1, sizeof(*l));

    l->speaks = speaks;
    l->fd = fd;
    snprintf(l->where, sizeof(l->where), "%s", where);
    watch_where_parse(&l->self, where);
    l->dir = dir ? mem_strdup(dir) : NULL;
    if (dir)
        forget_verdict(dir);
    judge_open(&l->judge, hang_after);
    raise_file_limit();
    l->last = log_now();
    return l;
}

int listen_open(struct listener **l, const char *address, double hang_after, const char *dir,
                struct err *err)
{
    char where[WATCH_WHERE];
    int fd = wire_bind(address, where, err);

    if (fd < 0)
        return -1;
    *l = make(fd, where, hang_after, dir, false);
    return 0;
}

static void drop(struct listener *l, int i)
{
    close(l->client[i]->fd);
    free(l->client[i]);
    l->client[i] = l->client[--l->clients];
}

void listen_close(struct listener *l)
{
    if (!l)
        return;
    while (l->clients)
        drop(l, 0);
    close(l->fd);
    judge_free(&l->judge);
    free(l->client);
    free(l->poll);
    free(l->dir);
    free(l);
}

const char *listen_where(const struct listener *l)
{
    return l->where;
}

const struct verdict *listen_verdict(const struct listener *l)
{
    return l->told ? &l->judge.verdict : NULL;
}

const char *listen_failed(const struct listener *l)
{
    return l->judge.failed;
}

bool listen_over(const struct listener *l, bool ending)
{
    bool over = l->judge.ranks > 0;

    for (int i = 0; i < l->judge.ranks; i++) {
        const struct watched *r = &l->judge.rank[i];
        over = over && ((r->bye && r->gone) || (ending && !strcmp(r->beat.call, WATCH_LAST_CALL)));
    }
    return over;
}

bool listen_met(const struct listener *l)
{
    return l->judge.ranks > 0;
}

static void let_in(struct listener *l, double now)
{
    int fd, strangers = 0;

    for (int i = 0; i < l->clients; i++)
        strangers += l->client[i]->rank < 0;
    while (strangers++ < STRANGERS &&
           (fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        struct listen_client *c = mem_calloc(1, sizeof(*c));
        *c = (struct listen_client){.fd = fd, .rank = -1, .since = now};
        MEM_PUSH(l->client, l->clients) = c;
    }
}

/* Compare every byte, so that the time does not depend on how many were right. */
static bool same_token(const char *a, const char *b)
{
    unsigned differ = 0;

    if (strlen(a) != WATCH_TOKEN - 1 || strlen(b) != WATCH_TOKEN - 1)
        return false;
    for (int i = 0; i < WATCH_TOKEN - 1; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return !differ;
}

static int take_hello(struct listener *l, struct listen_client *c, const struct watch_hello *h,
                      double now)
{
    const char *welcome = l->speaks ? "welcome\n" : "welcome led\n";

    if (!same_token(h->token, l->self.token) || judge_hello(&l->judge, h, now) < 0)
        return -1;
    c->rank = h->rank;
    l->met_at = l->met_at > 0 ? l->met_at : now;
    send(c->fd, welcome, strlen(welcome), MSG_NOSIGNAL | MSG_DONTWAIT);
    return 0;
}

/* Receive from a connection; -1: it is over. */
static int hear(struct listener *l, struct listen_client *c, double now)
{
    char text[WATCH_LINE];
    struct watch_line line;
    int open = watch_stream_read(&c->in, c->fd), got;

    while ((got = watch_stream_line(&c->in, text)) > 0) {
        if (watch_line_parse(&line, text) < 0 || (line.kind == WATCH_HELLO) != (c->rank < 0))
            return -1;
        if (line.kind == WATCH_HELLO && take_hello(l, c, &line.hello, now) < 0)
            return -1;
        if (line.kind != WATCH_HELLO)
            judge_line(&l->judge, c->rank, &line, now);
    }
    return got < 0 || open < 0 ? -1 : 0;
}

static void hear_all(struct listener *l, int polled, double now)
{
    for (int i = polled - 1; i >= 0; i--) { /* backwards, because drop() moves the last one here */
        struct listen_client *c = l->client[i];
        bool over = l->poll[i + 1].revents && hear(l, c, now) < 0;
        /* Check for lateness only now: a hello may have waited while the listener was delayed. */
        if (!over && (c->rank >= 0 || now - c->since <= STRANGER_SEC))
            continue;
        if (c->rank >= 0)
            judge_closed(&l->judge, c->rank, now);
        drop(l, i);
    }
}

/* Send a line to all ranks. */
static void say(struct listener *l, const char *line)
{
    for (int i = 0; i < l->clients; i++)
        if (l->client[i]->rank >= 0)
            send(l->client[i]->fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The ranks come last: they end when they know, and the launcher then ends this process before
 * other output is done. */
static void tell(struct listener *l, double now)
{
    struct err err = {0, ""};
    char line[WATCH_LINE];

    snprintf(line, sizeof(line), "verdict %s\n", l->judge.verdict.text);
    l->told = true;
    if (l->dir && judge_save(&l->judge, l->dir, now, &err) < 0)
        log_warn("%s", err.text);
    if (l->speaks)
        log_error("%s", l->judge.verdict.text);
    say(l, line);
}

void listen_stop(struct listener *l)
{
    say(l, "stop\n");
}

/* Warn the ranks once, before a hang becomes a verdict: each looks at its measuring thread, and
 * rank 0 can collect more information. */
static void warn_of_hang(struct listener *l, double now)
{
    enum judge_need need = judge_soon(&l->judge, now);

    if (need > l->warned)
        say(l, need == JUDGE_SOON ? "soon\n" : "look\n");
    l->warned = need;
}

/* Warn once of ranks that cannot reach the listener, because their faults could not be
 * attributed. */
static void count_in(struct listener *l, double now)
{
    int here = 0;

    if (l->counted || !l->judge.ranks || now - l->met_at < 2 * STRANGER_SEC)
        return;
    l->counted = true;
    for (int i = 0; i < l->judge.ranks; i++)
        here += l->judge.rank[i].known;
    if (here < l->judge.ranks)
        log_warn("only %d of %d ranks have reached the watch at %s:%s", here, l->judge.ranks,
                 l->self.address, l->self.port);
}

/* True if this process is (still) a rank of the campaign; its pid may have been reused. */
static bool is_probe(int pid)
{
    char path[64], name[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    f = fopen(path, "re");
    if (f && !fgets(name, sizeof(name), f))
        name[0] = '\0';
    if (f)
        fclose(f);
    return !strcmp(name, "railgauge-probe\n");
}

/* True if a process of this host is still there. */
static bool is_there(const struct watched *r)
{
    char self[WATCH_HOST] = "";

    host_self(self, sizeof(self));
    return r->known && r->pid > 1 && !strcmp(r->host, self) && is_probe(r->pid);
}

/* Long after all goodbyes: find the process that the launcher waits for, if it is one.  All of them:
 * the launcher itself is stopped. */
static void look_for_left(struct listener *l, double now)
{
    int found = -1, n = 0;

    if (!listen_over(l, false))
        l->over_at = now;
    if (l->told || now - l->over_at < LEFT_SEC)
        return;
    for (int i = 0; i < l->judge.ranks; i++)
        if (is_there(&l->judge.rank[i])) {
            found = i;
            n++;
        }
    if (n == 1)
        l->judge.rank[found].left = true;
    l->over_at = now;
}

int listen_turn(struct listener *l, int ms)
{
    int n = l->clients;

    if (n + 1 > l->room) {
        l->room = 2 * (n + 8);
        l->poll = mem_realloc(l->poll, (size_t)l->room, sizeof(*l->poll));
    }
    l->poll[0] = (struct pollfd){.fd = l->fd, .events = POLLIN};
    for (int i = 0; i < n; i++)
        l->poll[i + 1] = (struct pollfd){.fd = l->client[i]->fd, .events = POLLIN};
    bool any = poll(l->poll, (nfds_t)n + 1, ms) > 0;
    double now = log_now(), held_up = now - l->last - 1e-3 * ms;
    if (held_up > 0.25)
        judge_excuse(&l->judge, held_up);
    for (int i = 0; !any && i <= n; i++)
        l->poll[i].revents = 0;
    hear_all(l, n, now);
    if (l->poll[0].revents)
        let_in(l, now);
    count_in(l, now);
    look_for_left(l, now);
    if (!l->told)
        warn_of_hang(l, now);
    if (!l->told && judge_look(&l->judge, now))
        tell(l, now);
    if (n > CROWD) /* wait, so that one poll of many connections serves many lines */
        poll(NULL, 0, 5);
    l->last = now;
    return judge_left(&l->judge);
}

/* Continue until no rank is connected (each ends within a second of a verdict), at most `sec`. */
static void drain(struct listener *l, double sec)
{
    double end = log_now() + sec;

    while (listen_turn(l, 20) && log_now() < end)
        ;
}

void listen_kill(const struct listener *l)
{
    for (int i = 0; i < l->judge.ranks; i++)
        if (is_there(&l->judge.rank[i]))
            kill(l->judge.rank[i].pid, SIGKILL);
}

void listen_address(char *const *host, int hosts, char out[64])
{
    char self[WATCH_HOST] = "";
    int other = 0;

    host_kernel(self, sizeof(self));
    while (other < hosts && (!strcmp(host[other], self) || !strcmp(host[other], "localhost")))
        other++;
    if (hosts && other == hosts)
        snprintf(out, 64, "127.0.0.1");
    else if ((!hosts || wire_address(host[other], out) < 0) && wire_address("", out) < 0)
        snprintf(out, 64, "127.0.0.1");
}

/* --- a listener in its own process --- */

extern char **environ;

enum { SOCKET = 3 }; /* descriptor on which the listener finds its socket */

/* Environment with RAILGAUGE_WATCH, because a token must not be visible on a command line. */
static char **listener_environment(const char *where)
{
    char **env = NULL;
    int n = 0;

    for (char **e = environ; *e; e++)
        if (strncmp(*e, "RAILGAUGE_WATCH=", 16))
            MEM_PUSH(env, n) = *e;
    MEM_PUSH(env, n) = mem_printf("RAILGAUGE_WATCH=%s", where);
    MEM_PUSH(env, n) = NULL;
    return env;
}

static int spawn_listener(int fd, char **argv, char **env)
{
    char exe[PATH_MAX] = "";
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    pid_t pid;

    if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
        return errno;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fd, SOCKET);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    int why = posix_spawn(&pid, exe, &files, &how, argv, env);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return why;
}

int listen_spawn(const char *address, char *const *hosts, int n, double hang_after, const char *dir,
                 char where[WATCH_WHERE], struct err *err)
{
    char chosen[64], *patience = mem_printf("%.3f", hang_after);
    char *argv[] = {(char *)"railgauge-probe", (char *)"watch", patience, (char *)dir, NULL};

    listen_address(hosts, n, chosen);
    int fd = wire_bind(address ? address : chosen, where, err), rc = fd < 0 ? -1 : 0;
    if (rc == 0) {
        char **env = listener_environment(where);
        int count = 0, why = spawn_listener(fd, argv, env);
        while (env[count + 1])
            count++;
        free(env[count]);
        free(env);
        close(fd);
        if (why) {
            where[0] = '\0';
            rc = err_config(err, "cannot start the watch: %s", strerror(why));
        }
    }
    free(patience);
    return rc;
}

/* Close rank 0's descriptors: otherwise its MPI sockets would stay open when it dies. */
static void close_others(void)
{
    long max = sysconf(_SC_OPEN_MAX);

    for (int fd = SOCKET + 1; fd < (max < 65536 ? max : 65536); fd++)
        close(fd);
    fcntl(SOCKET, F_SETFD, FD_CLOEXEC);
    fcntl(SOCKET, F_SETFL, O_NONBLOCK);
}

/* Listen until all ranks have come and gone.  Ranks that died together with the last one still get
 * their verdict. */
static void listen_to_all(struct listener *l)
{
    double begun = log_now(), alone = 0;

    while (!listen_verdict(l)) {
        double now = log_now();
        alone = listen_turn(l, 50) ? 0 : alone > 0 ? alone : now;
        if (listen_over(l, false))
            return;
        if (listen_met(l) ? alone > 0 && now - alone > 0.5 : now - begun > 60)
            return;
    }
    drain(l, 5);
}

int listen_main(int argc, char **argv)
{
    static const int deaf[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1};
    const char *where = getenv("RAILGAUGE_WATCH");
    struct err err = {0, ""};
    double hang_after;
    int listens = 0;
    socklen_t len = sizeof(listens);

    if (argc < 2 || argc > 3 || !where ||
        getsockopt(SOCKET, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || !listens) {
        log_error("watch is for rank 0, which starts it");
        return EXIT_USAGE;
    }
    if (units_seconds(&hang_after, argv[1], &err) < 0) {
        log_error("%s", err.text);
        return err.code;
    }
    for (size_t i = 0; i < sizeof(deaf) / sizeof(*deaf); i++)
        signal(deaf[i], SIG_IGN);
    close_others();
    struct listener *l = make(SOCKET, where, hang_after, argc > 2 ? argv[2] : NULL, true);
    listen_to_all(l);
    listen_close(l);
    return EXIT_GOOD;
}
