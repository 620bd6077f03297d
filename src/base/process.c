/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

enum { WORDS = 200, CHUNK = 65536 };

/* Both ends of a program's stdout and stderr. */
struct pipes {
    int out[2], said[2];
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int start(pid_t *pid, struct pipes *p, const char *const *argv)
{
    posix_spawn_file_actions_t fa;

    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, p->out[1], 1);
    posix_spawn_file_actions_adddup2(&fa, p->said[1], 2);
    int rc = posix_spawnp(pid, argv[0], &fa, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    close_end(&p->out[1]);
    close_end(&p->said[1]);
    return rc;
}

/* Appends what is there; false at the end of the stream. */
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

/* Both streams until they end; false: time is up, or there is too much. */
static bool collect(struct pipes *p, char **text, size_t *len, char **said, size_t *words,
                    size_t max, double until)
{
    while (p->out[0] >= 0 || p->said[0] >= 0) {
        struct pollfd f[2] = {{p->out[0], POLLIN, 0}, {p->said[0], POLLIN, 0}};
        double left = until - now();
        if (left <= 0 || *len > max)
            return false;
        if (poll(f, 2, (int)(left * 1000) + 1) < 0 && errno != EINTR)
            return false;
        if (f[0].revents && !take(p->out[0], text, len, max))
            close_end(&p->out[0]);
        if (f[1].revents && !take(p->said[0], said, words, WORDS))
            close_end(&p->said[0]);
    }
    return *len <= max;
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

int process_output(char **text, size_t *len, const char *const *argv, size_t max, double seconds,
                   struct err *err)
{
    struct pipes p = {{-1, -1}, {-1, -1}};
    char *said = mem_strdup("");
    size_t words = 0;
    pid_t pid = -1;
    int status = 0, rc = 0;

    *text = mem_strdup("");
    *len = 0;
    if (pipe2(p.out, O_CLOEXEC) < 0 || pipe2(p.said, O_CLOEXEC) < 0) {
        rc = err_io(err, "%s: no pipe: %s", argv[0], strerror(errno));
        goto out;
    }
    int failed = start(&pid, &p, argv);
    if (failed) {
        rc = err_noinput(err, "%s cannot be started: %s", argv[0], strerror(failed));
        goto out;
    }
    bool whole = collect(&p, text, len, &said, &words, max, now() + seconds);
    if (!whole)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    clean(said);
    if (!whole)
        rc = *len > max ? err_noinput(err, "%s prints more than %zu bytes", argv[0], max)
                        : err_noinput(err, "%s is not done after %g s", argv[0], seconds);
    else if (WIFSIGNALED(status))
        rc = err_noinput(err, "%s was ended by signal %d", argv[0], WTERMSIG(status));
    else if (WEXITSTATUS(status))
        rc = err_noinput(err, "%s ends with %d: %.200s", argv[0], WEXITSTATUS(status), said);
out:
    close_end(&p.out[0]);
    close_end(&p.out[1]);
    close_end(&p.said[0]);
    close_end(&p.said[1]);
    free(said);
    if (rc < 0) {
        free(*text);
        *text = NULL;
        *len = 0;
    }
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
