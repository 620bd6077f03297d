/* fake_gpu.h - tests that want a GPU of their own kind: a child process with its own environment,
 * since a driver reads it once.  The stand-in of tests/fake must be on LD_LIBRARY_PATH. */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

struct told { /* by the child */
    int rc, signal;
    struct err err;
};

/* FAKE_GPU's file says this, for this process and its children: one without a name, so that nobody
 * else writes it and nothing is left of it.  Its descriptor. */
static inline int fake_gpu(const char *profile)
{
    int fd = memfd_create("FAKE_GPU", 0);
    size_t n = strlen(profile);
    char path[32];

    if (fd < 0 || write(fd, profile, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    setenv("FAKE_GPU", path, 1);
    return fd;
}

/* environment: "NAME=VALUE NAME=VALUE"; profile: what FAKE_GPU's file says, or NULL. */
static inline void fake_environment(const char *environment, const char *profile)
{
    static char words[1024];
    char *word, *rest = words;

    snprintf(words, sizeof(words), "%s", environment ? environment : "");
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word)
            putenv(word);
    if (profile)
        fake_gpu(profile);
}

/* body(arg, err) in a child; what it returned and said.  Nothing of the child's is left. */
static inline struct told fake_child(int (*body)(void *arg, struct err *err), void *arg,
                                     const char *environment, const char *profile)
{
    struct told told = {0};
    int to[2], status;
    pid_t pid;

    if (pipe(to) || (pid = fork()) < 0)
        abort();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
        signal(SIGABRT, SIG_DFL);
        alarm(120);
        fake_environment(environment, profile);
        told.rc = body(arg, &told.err);
        _exit(write(to[1], &told, sizeof(told)) != sizeof(told));
    }
    close(to[1]);
    if (read(to[0], &told, sizeof(told)) != sizeof(told))
        told.rc = -2;
    close(to[0]);
    waitpid(pid, &status, 0);
    told.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return told;
}

#endif
