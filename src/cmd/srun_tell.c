/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/srun_tell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

enum { TEXT_MAX = 64 << 20, NODES_MAX_DIGITS = 8 };

extern char **environ;

/* srun with its words; options of the command line rule over those in the job's environment. */
static int start(pid_t *pid, int out, const char *label, const char *nodes, struct err *err)
{
    char exe[PATH_MAX] = "", *n = mem_printf("--nodes=%s", nodes);
    char *tasks = mem_printf("--ntasks=%s", nodes), *named = NULL;
    char *argv[] = {"srun",
                    n,
                    tasks,
                    "--ntasks-per-node=1",
                    "--cpus-per-task=1",
                    "--overlap",
                    "--mpi=none",
                    "--distribution=block",
                    "--kill-on-bad-exit=0",
                    exe,
                    "check-placement",
                    "--tell",
                    NULL,
                    NULL};
    posix_spawn_file_actions_t files;
    int why;

    if (label)
        argv[sizeof(argv) / sizeof(*argv) - 2] = named = mem_printf("--label=%s", label);
    if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
        why = errno;
    else {
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        why = posix_spawnp(pid, argv[0], &files, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    free(named);
    free(tasks);
    free(n);
    return why ? err_config(err, "cannot start srun: %s", strerror(why)) : 0;
}

/* All that comes until the other end is closed. */
static int take_all(int fd, char **text, double patience, struct err *err)
{
    double end = log_now() + patience;
    size_t used = 0, room = 4096;

    *text = mem_realloc(NULL, room + 1, 1);
    for (;;) {
        double left = end - log_now();
        struct pollfd p = {fd, POLLIN, 0};
        int ready = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return err_set(err, "srun gave no answer within %g s (--patience)", patience);
        ssize_t n = read(fd, *text + used, room - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
        if (used > TEXT_MAX)
            return err_data(err, "srun printed more than %d bytes", TEXT_MAX);
        if (used == room)
            *text = mem_realloc(*text, (room *= 2) + 1, 1);
    }
    (*text)[used] = '\0';
    return strlen(*text) == used ? 0 : err_data(err, "srun printed a byte of 0");
}

int srun_tell(char **text, const char *label, double patience, struct err *err)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    int fd[2], status = 0, rc;
    pid_t pid;

    *text = NULL;
    if (!nodes || !*nodes || strlen(nodes) > NODES_MAX_DIGITS ||
        strspn(nodes, "0123456789") != strlen(nodes))
        return err_config(err, "SLURM_JOB_NUM_NODES is \"%.40s\", not the job's number of nodes",
                          nodes ? nodes : "");
    if (pipe2(fd, O_CLOEXEC) < 0)
        return err_io(err, "pipe: %s", strerror(errno));
    rc = start(&pid, fd[1], label, nodes, err);
    close(fd[1]);
    if (rc == 0) {
        rc = take_all(fd[0], text, patience, err);
        if (rc < 0)
            kill(pid, SIGTERM);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (rc == 0 && status != 0)
            rc = err_config(err, "srun failed (%s %d)", WIFEXITED(status) ? "exit" : "signal",
                            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    close(fd[0]);
    if (rc < 0) {
        free(*text);
        *text = NULL;
    }
    return rc;
}
