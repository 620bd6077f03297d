/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - a command on another machine of the tests: what ssh does, without keys and accounts.
 *
 *   remote --serve               answer on this machine until killed
 *   remote HOST COMMAND...       run the words, joined, by sh there, in a folder of this one's name
 *
 * Input, output, errors and the exit code are carried, 128 + n for a signal; signals that would end
 * this program go to the command's process group, and so does SIGKILL when this program is gone.
 * It ends when the command's output is closed by all that have it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7422, WAIT_SECONDS = 60, MOST = 1 << 16 };

/* What goes over the wire, in both directions. */
enum kind { FOLDER, COMMAND, INPUT, SIGNAL, OUTPUT, ERRORS, EXIT };
struct frame {
    uint32_t kind, bytes;
    char data[MOST];
};

static void stop(const char *what)
{
    fprintf(stderr, "remote: %s: %s\n", what, strerror(errno));
    exit(255);
}

static int write_all(int fd, const void *data, size_t bytes)
{
    for (const char *p = data; bytes;) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int read_all(int fd, void *data, size_t bytes)
{
    for (char *p = data; bytes;) {
        ssize_t n = read(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int send_frame(int fd, enum kind kind, const void *data, size_t bytes)
{
    uint32_t head[2] = {kind, (uint32_t)bytes};

    return write_all(fd, head, sizeof(head)) < 0 ? -1 : write_all(fd, data, bytes);
}

static int receive_frame(int fd, struct frame *f)
{
    if (read_all(fd, f, 2 * sizeof(uint32_t)) < 0 || f->bytes > MOST)
        return -1;
    return read_all(fd, f->data, f->bytes);
}

/* Pass on what is there to be read; at its end tell so by nothing and forget it. */
static void pass(int *from, int to, enum kind kind)
{
    char data[MOST];
    ssize_t n = read(*from, data, sizeof(data));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        n = 0;
        close(*from);
        *from = -1;
    }
    if (n > 0 || kind == INPUT)
        send_frame(to, kind, data, (size_t)n);
}

static struct pollfd reads(int fd)
{
    return (struct pollfd){.fd = fd, .events = POLLIN};
}

/* --- the machine where the command runs --- */

struct child {
    pid_t pid;
    int in, out, err;
};

static void start(struct child *c, const char *folder, const char *command)
{
    int in[2], out[2], err[2];

    if (pipe(in) < 0 || pipe(out) < 0 || pipe(err) < 0 || (c->pid = fork()) < 0)
        stop("cannot start a command");
    if (c->pid == 0) {
        setsid();
        signal(SIGPIPE, SIG_DFL);
        signal(SIGCHLD, SIG_DFL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        if (chdir(folder) < 0 && chdir("/") < 0)
            _exit(255);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    c->in = in[1];
    c->out = out[0];
    c->err = err[0];
}

/* Input or a signal of who asked; -1: gone. */
static int obey(int wire, struct child *c, struct frame *f)
{
    if (receive_frame(wire, f) < 0)
        return -1;
    if (f->kind == SIGNAL)
        kill(-c->pid, f->data[0]);
    if (f->kind == INPUT && c->in >= 0 && (!f->bytes || write_all(c->in, f->data, f->bytes) < 0)) {
        close(c->in);
        c->in = -1;
    }
    return 0;
}

static void serve_one(int wire)
{
    static struct frame folder, f;
    struct child c = {0, -1, -1, -1};
    int status = 0;

    if (receive_frame(wire, &folder) < 0 || receive_frame(wire, &f) < 0)
        exit(1);
    folder.data[MOST - 1] = f.data[MOST - 1] = '\0';
    start(&c, folder.data, f.data);
    while (c.out >= 0 || c.err >= 0) {
        struct pollfd p[] = {reads(wire), reads(c.out), reads(c.err)};
        if (poll(p, 3, -1) < 0)
            continue;
        if (p[1].revents)
            pass(&c.out, wire, OUTPUT);
        if (p[2].revents)
            pass(&c.err, wire, ERRORS);
        if (p[0].revents && obey(wire, &c, &f) < 0) {
            kill(-c.pid, SIGKILL);
            exit(1);
        }
    }
    waitpid(c.pid, &status, 0);
    char code = (char)(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    send_frame(wire, EXIT, &code, 1);
}

_Noreturn static void serve(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int on = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (s < 0 || bind(s, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(s, 64) < 0)
        stop("cannot listen");
    for (;;) {
        int wire = accept(s, NULL, NULL);
        if (wire >= 0 && fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            close(s);
            serve_one(wire);
            exit(0);
        }
        close(wire);
    }
}

/* --- the machine that asks --- */

static volatile sig_atomic_t caught;
static void on_signal(int sig)
{
    caught = sig;
}

static int try_once(const char *host)
{
    struct addrinfo want = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *a = NULL;
    char port[8];
    int s = -1, on = 1;

    snprintf(port, sizeof(port), "%d", PORT);
    if (getaddrinfo(host, port, &want, &a) != 0) {
        fprintf(stderr, "remote: no machine of the name \"%s\" is known here\n", host);
        exit(255);
    }
    s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen) < 0) {
        close(s);
        s = -1;
    }
    freeaddrinfo(a);
    if (s >= 0)
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return s;
}

/* A machine that still starts is waited for. */
static int reach(const char *host)
{
    time_t end = time(NULL) + WAIT_SECONDS;
    int s;

    while ((s = try_once(host)) < 0) {
        if (time(NULL) > end)
            stop(host);
        poll(NULL, 0, 100);
    }
    return s;
}

static void ask(int wire, char **word)
{
    static char folder[MOST], command[MOST];
    size_t used = 0;

    if (!getcwd(folder, sizeof(folder)))
        strcpy(folder, "/");
    for (; *word; word++) {
        int n = snprintf(command + used, sizeof(command) - used, "%s%s", used ? " " : "", *word);
        used += (size_t)n;
        if (used >= sizeof(command) - 1) {
            fprintf(stderr, "remote: a command of more than %d bytes\n", MOST - 2);
            exit(255);
        }
    }
    if (send_frame(wire, FOLDER, folder, strlen(folder) + 1) < 0 ||
        send_frame(wire, COMMAND, command, used + 1) < 0)
        stop("cannot ask");
}

/* One frame of the other machine; the exit code ends us. */
static void hear(int wire)
{
    static struct frame f;

    if (receive_frame(wire, &f) < 0) {
        fprintf(stderr, "remote: the other machine is gone\n");
        exit(255);
    }
    if (f.kind == EXIT)
        exit((unsigned char)f.data[0]);
    (void)write_all(f.kind == OUTPUT ? 1 : 2, f.data, f.bytes);
}

_Noreturn static void run_there(const char *host, char **word)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t held, before;
    int wire = reach(host), in = 0;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        sigaction(ends[i], &act, NULL);
        sigaddset(&held, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &held, &before);
    ask(wire, word);
    for (;;) {
        struct pollfd p[] = {reads(wire), reads(in)};
        int n = ppoll(p, 2, NULL, &before);
        if (caught) {
            char sig = (char)caught;
            caught = 0;
            send_frame(wire, SIGNAL, &sig, 1);
        }
        if (n > 0 && p[0].revents)
            hear(wire);
        if (n > 0 && p[1].revents)
            pass(&in, wire, INPUT);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--serve"))
        serve();
    if (argc < 3) {
        fprintf(stderr, "usage: remote --serve | remote HOST COMMAND...\n");
        return 64;
    }
    run_there(argv[1], argv + 2);
}
