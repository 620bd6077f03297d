/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/launch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/mem.h"

extern char **environ;

char *launch_probe_path(struct err *err)
{
    char exe[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    const char *path = getenv("PATH");

    if (n > 0) {
        exe[n] = '\0';
        char *beside = mem_printf("%.*s/railgauge-probe", (int)(strrchr(exe, '/') - exe), exe);
        if (access(beside, X_OK) == 0)
            return beside;
        free(beside);
    }
    for (const char *p = path; p && *p;) {
        size_t len = strcspn(p, ":");
        char *there = mem_printf("%.*s/railgauge-probe", (int)len, p);
        if (access(there, X_OK) == 0)
            return there;
        free(there);
        p += len + (p[len] == ':');
    }
    err_config(err, "railgauge-probe is neither beside railgauge nor in PATH (it needs MPI: build "
                    "it with make)");
    return NULL;
}

int launch_exec(char **argv, struct err *err)
{
    char *program = launch_probe_path(err);

    if (!program)
        return -1;
    argv[0] = program;
    execv(program, argv);
    err_config(err, "%s: %s", program, strerror(errno));
    free(program);
    return -1;
}

/* A growing argument vector that owns its words. */
struct words {
    char **word;
    int count;
};

static void add(struct words *w, const char *word)
{
    MEM_PUSH(w->word, w->count) = mem_strdup(word);
}

static void free_words(struct words *w)
{
    for (int i = 0; i < w->count; i++)
        free(w->word[i]);
    free(w->word);
}

static void add_split(struct words *w, const char *text)
{
    char *copy = mem_strdup(text), *save = NULL;

    for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save))
        add(w, t);
    free(copy);
}

/* mpirun of Open MPI.  Ranks may outnumber cores: they yield while they wait and are not bound. */
static int add_mpirun(struct words *w, const struct launch *l, struct err *err)
{
    static const char *const fixed[] = {"--oversubscribe",     "--bind-to", "none", "--mca",
                                        "mpi_yield_when_idle", "1",         NULL};
    char **host = NULL, number[16];
    int hosts = 0, ranks = l->ranks;

    if (l->hosts && hostlist_expand(&host, &hosts, l->hosts, err) < 0)
        return -1;
    if (!ranks)
        ranks = l->hosts ? hosts : 4;
    add(w, "mpirun");
    snprintf(number, sizeof(number), "%d", ranks);
    add(w, "-n");
    add(w, number);
    for (int i = 0; fixed[i]; i++)
        add(w, fixed[i]);
    if (geteuid() == 0)
        add(w, "--allow-run-as-root");
    if (hosts) {
        char *list = mem_strdup("");
        int slots = (ranks + hosts - 1) / hosts;
        for (int i = 0; i < hosts; i++) {
            char *more = mem_printf("%s%s%s:%d", list, i ? "," : "", host[i], slots);
            free(list);
            list = more;
        }
        add(w, "-H");
        add(w, list);
        free(list);
    }
    hostlist_free(host, hosts);
    return 0;
}

static int make_words(struct words *w, const struct launch *l, const char *const *args,
                      struct err *err)
{
    char *program = launch_probe_path(err);

    if (!program)
        return -1;
    if (l->command)
        add_split(w, l->command);
    else if (add_mpirun(w, l, err) < 0) {
        free(program);
        return -1;
    }
    add(w, program);
    for (int i = 0; args[i]; i++)
        add(w, args[i]);
    MEM_PUSH(w->word, w->count) = NULL;
    free(program);
    return 0;
}

int launch_print(const struct launch *l, const char *const *args, void *stream, struct err *err)
{
    struct words w = {NULL, 0};
    int rc = make_words(&w, l, args, err);

    for (int i = 0; rc == 0 && w.word[i]; i++)
        fprintf(stream, "%s%s", i ? " " : "", w.word[i]);
    if (rc == 0)
        fputc('\n', stream);
    free_words(&w);
    return rc;
}

static volatile pid_t child;
static volatile sig_atomic_t stopped;

static void pass_on(int sig)
{
    stopped = 1;
    if (child > 0)
        kill(child, sig);
}

int launch_run(const struct launch *l, const char *const *args, int *code, struct err *err)
{
    struct words w = {NULL, 0};
    struct sigaction pass = {.sa_handler = pass_on}, old_term, old_int;
    pid_t pid;
    int status = 0, rc = -1;

    if (make_words(&w, l, args, err) < 0)
        goto out;
    int why = posix_spawnp(&pid, w.word[0], NULL, NULL, w.word, environ);
    if (why) {
        err_config(err, "cannot start %s: %s", w.word[0], strerror(why));
        goto out;
    }
    child = pid;
    stopped = 0;
    sigaction(SIGTERM, &pass, &old_term);
    sigaction(SIGINT, &pass, &old_int);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGTERM, &old_term, NULL);
    sigaction(SIGINT, &old_int, NULL);
    child = 0;
    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (stopped && *code) /* mpirun says 1 where the ranks said 75 */
        *code = EXIT_CUT;
    rc = 0;
out:
    free_words(&w);
    return rc;
}
