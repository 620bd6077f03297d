/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

extern char **environ;

void words_add(struct words *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    MEM_PUSH(w->word, w->count) = mem_vprintf(fmt, ap);
    va_end(ap);
    MEM_PUSH(w->word, w->count) = NULL;
    w->count--;
}

void words_free(struct words *w)
{
    for (int i = 0; i < w->count; i++)
        free(w->word[i]);
    free(w->word);
    *w = (struct words){NULL, 0};
}

/* Path by which to start a program; NULL: it is none, or none for root.  The caller frees. */
static char *start_of(const char *path)
{
    struct stat st;
    bool is = access(path, X_OK) == 0 && stat(path, &st) == 0 && !S_ISDIR(st.st_mode);

    return is ? file_for_root(path, NULL) : NULL;
}

char *process_find(const char *name, bool to_start)
{
    const char *path = secure_getenv("PATH");
    char *list = mem_strdup(path ? path : "/usr/local/bin:/usr/bin:/bin"), *rest = list, *folder;
    char *file = strchr(name, '/') ? mem_strdup(name) : NULL;

    while (!file && (folder = strsep(&rest, ":")) != NULL) {
        char *there = file_join(*folder ? folder : ".", name), *start = start_of(there);
        file = to_start || !start ? start : there;
        free(file == there ? start : there);
    }
    free(list);
    return file;
}

enum { CHUNK = 65536 };

/* Both ends of a program's stdout and stderr; -1: closed. */
struct pipes {
    int out[2], said[2];
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Start this file.  Returns errno, or 0. */
static int start_file(pid_t *pid, struct pipes *pipes, const struct process *p, const char *file)
{
    posix_spawn_file_actions_t fa;

    if (pipe2(pipes->out, O_CLOEXEC) < 0 || (!p->speaks && pipe2(pipes->said, O_CLOEXEC) < 0))
        return errno;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, pipes->out[1], 1);
    if (!p->speaks)
        posix_spawn_file_actions_adddup2(&fa, pipes->said[1], 2);
    int rc = posix_spawn(pid, file, &fa, NULL, (char *const *)p->argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    close_end(&pipes->out[1]);
    close_end(&pipes->said[1]);
    return rc;
}

static int start(pid_t *pid, struct pipes *pipes, const struct process *p)
{
    char *found = process_find(p->argv[0], true), *file = found ? file_for_root(found, NULL) : NULL;
    int rc = file ? start_file(pid, pipes, p, file) : found ? EACCES : ENOENT;

    free(file);
    free(found);
    return rc;
}

/* Append available data; false at the end of the stream. */
static bool take(int fd, char **text, size_t *len, size_t max)
{
    char chunk[CHUNK];
    ssize_t n = read(fd, chunk, sizeof(chunk));

    if (n <= 0)
        return n < 0 && errno == EINTR;
    size_t room = *len > max ? 0 : max + 1 - *len, more = (size_t)n < room ? (size_t)n : room;
    *text = mem_realloc(*text, *len + more + 1, 1);
    memcpy(*text + *len, chunk, more);
    *len += more;
    (*text)[*len] = '\0';
    return true;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Read both streams to their ends; false: time is up, or there is too much output. */
static bool collect(struct process *p, struct pipes *pipes, char **said, double until)
{
    size_t words = 0;

    while (pipes->out[0] >= 0 || pipes->said[0] >= 0) {
        struct pollfd f[2] = {{pipes->out[0], POLLIN, 0}, {pipes->said[0], POLLIN, 0}};
        double left = until - now();
        if (left <= 0 || p->len > p->max)
            return false;
        if (poll(f, 2, (int)(left * 1000) + 1) < 0 && errno != EINTR)
            return false;
        if (f[0].revents && !take(pipes->out[0], &p->text, &p->len, p->max))
            close_end(&pipes->out[0]);
        if (f[1].revents && !take(pipes->said[0], said, &words, sizeof(p->said) - 1))
            close_end(&pipes->said[0]);
    }
    return p->len <= p->max;
}

static void clean(char *said)
{
    size_t end = strlen(said);

    while (end && strchr(" \n", said[end - 1]))
        said[--end] = '\0';
    for (char *c = said; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = ' ';
}

void process_run(struct process *p)
{
    struct pipes pipes = {{-1, -1}, {-1, -1}};
    char *said = mem_strdup("");
    pid_t pid;

    p->text = mem_strdup("");
    p->len = 0;
    p->failed = start(&pid, &pipes, p);
    if (!p->failed) {
        p->whole = collect(p, &pipes, &said, now() + p->seconds);
        if (!p->whole)
            kill(pid, p->end_by);
        while (waitpid(pid, &p->status, 0) < 0 && errno == EINTR)
            ;
    }
    clean(said);
    snprintf(p->said, sizeof(p->said), "%s", said);
    free(said);
    close_end(&pipes.out[0]);
    close_end(&pipes.out[1]);
    close_end(&pipes.said[0]);
    close_end(&pipes.said[1]);
}

int process_output(char **text, size_t *len, const char *const *argv, size_t max, double seconds,
                   struct err *err)
{
    struct process p = {.argv = argv, .max = max, .seconds = seconds, .end_by = SIGKILL};
    int rc = 0;

    process_run(&p);
    if (p.failed)
        rc = err_noinput(err, "%s cannot be started: %s", argv[0], strerror(p.failed));
    else if (!p.whole && p.len > max)
        rc = err_noinput(err, "%s prints more than %zu bytes", argv[0], max);
    else if (!p.whole)
        rc = err_noinput(err, "%s is not done after %g s", argv[0], seconds);
    else if (WIFSIGNALED(p.status))
        rc = err_noinput(err, "%s was ended by signal %d", argv[0], WTERMSIG(p.status));
    else if (WEXITSTATUS(p.status))
        rc = err_noinput(err, "%s ends with %d: %s", argv[0], WEXITSTATUS(p.status), p.said);
    if (rc < 0)
        free(p.text);
    *text = rc < 0 ? NULL : p.text;
    *len = rc < 0 ? 0 : p.len;
    return rc;
}

/* --- signals --- */

static const int ending[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

void signals_catch(struct signals *s, void (*handler)(int sig))
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

    for (int i = 0; i < SIGNALS; i++) {
        sigaction(ending[i], NULL, &s->old[i]);
        if (ending[i] != SIGHUP || s->old[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &act, NULL);
    }
}

void signals_release(const struct signals *s)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(ending[i], &s->old[i], NULL);
}

void signals_hold(sigset_t *before)
{
    sigset_t held;

    sigemptyset(&held);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&held, ending[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}
