/* fake_gpu.h - tests that want a GPU of their own kind: a child process with its own environment,
 * since a driver reads it once.  The stand-in of tests/fake must be on LD_LIBRARY_PATH. */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

struct told { /* by the child */
    int rc, signal;
    struct err err;
};

/* environment: "NAME=VALUE NAME=VALUE"; profile: what FAKE_GPU's file says, or NULL. */
static inline void fake_environment(const char *environment, const char *profile)
{
    static char words[1024], path[64];
    char *word, *rest = words;
    FILE *f;

    snprintf(words, sizeof(words), "%s", environment ? environment : "");
    while ((word = strsep(&rest, " ")) != NULL)
        if (*word)
            putenv(word);
    if (!profile)
        return;
    snprintf(path, sizeof(path), "/tmp/fake_gpu.%d", (int)getpid());
    f = fopen(path, "w");
    if (!f || fputs(profile, f) < 0 || fclose(f))
        abort();
    setenv("FAKE_GPU", path, 1);
}

/* body(arg, err) in a child; what it returned and said.  Nothing of the child's is left. */
static inline struct told fake_child(int (*body)(void *arg, struct err *err), void *arg,
                                     const char *environment, const char *profile)
{
    struct told told = {0};
    char path[64];
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
    snprintf(path, sizeof(path), "/tmp/fake_gpu.%d", (int)pid);
    unlink(path);
    return told;
}

#endif
