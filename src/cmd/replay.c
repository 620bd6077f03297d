/* replay.c - railgauge replay: start the MPI program that runs a step's messages. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/command.h"
#include "cmd/launch.h"
#include "step/replay/replay.h"

enum { HOSTS = 0x700, LAUNCH };

static const struct argp_option options[] = {
    {"hosts", HOSTS, "LIST|FILE", 0,
     "run on these hosts: n[01-18]:4,login:1 or a host file (default: this machine)", 4},
    {"launch", LAUNCH, "COMMAND", 0, "put these words before the MPI program instead of mpirun", 4},
    {0},
};

struct args {
    struct replay_opts replay;
    struct launch launch;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->replay;
        return 0;
    case HOSTS:
        a->launch.hosts = arg;
        return 0;
    case LAUNCH:
        a->launch.command = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Are we one rank of many already? */
static bool under_launcher(void)
{
    static const char *const sign[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

    for (size_t i = 0; i < sizeof(sign) / sizeof(*sign); i++)
        if (getenv(sign[i]))
            return true;
    return false;
}

/* The words for the MPI program: "replay" and all but our own options; NULL-terminated. */
static const char **pass_on(int argc, char **argv)
{
    const char **out = mem_calloc((size_t)argc + 1, sizeof(*out));
    int n = 0;

    out[n++] = "replay";
    for (int i = 1; i < argc; i++) {
        bool own = !strncmp(argv[i], "--hosts", 7) || !strncmp(argv[i], "--launch", 8);
        if (own && !strchr(argv[i], '='))
            i++; /* its value is the next word */
        else if (!own)
            out[n++] = argv[i];
    }
    return out;
}

/* One rank for each endpoint up to the last that the job uses. */
static int count_ranks(int *ranks, struct args *a, struct err *err)
{
    struct job job = {.order = NULL};
    int rc = job_open(&job, &a->replay.job, err);

    *ranks = 0;
    for (int i = 0; rc == 0 && i < job.layout.ranks; i++) {
        int id = job.order ? job.order[i] : i;
        *ranks = id >= *ranks ? id + 1 : *ranks;
    }
    job_free(&job);
    return rc;
}

int cmd_replay(int argc, char **argv)
{
    struct args a = {.launch = {.ranks = 0}};
    const struct argp_child children[] = {{replay_argp(), 0, NULL, 0}, {0}};
    const struct argp argp = {options, parse, NULL, NULL, children, NULL, NULL};
    struct err err = {0, ""};
    int code = EXIT_GOOD;

    const char **words = pass_on(argc, argv); /* before argp sorts them */
    replay_defaults(&a.replay);
    int rc = 0;
    if (argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &a) != 0)
        code = EXIT_USAGE;
    else if (!a.replay.done && !a.replay.job.matrix)
        rc = err_usage(&err, "which matrix.json?");
    else if (!a.replay.done && under_launcher()) {
        char **exec = mem_calloc((size_t)argc + 2, sizeof(*exec));
        for (int i = 0; words[i]; i++)
            exec[i + 1] = (char *)(size_t)words[i];
        rc = launch_exec(exec, &err);
        free(exec);
    } else if (!a.replay.done) {
        rc = count_ranks(&a.launch.ranks, &a, &err);
        if (rc == 0)
            rc = launch_run(&a.launch, words, &code, &err);
    }
    free(words);
    return rc < 0 ? cmd_fail("replay", &err) : code;
}
