/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - railgauge replay: start the MPI program that runs the messages of a step. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/campaign/launch_impl.h"
#include "cmd/command.h"
#include "step/replay/replay.h"

struct args {
    struct replay_opts replay;
    struct launch launch;
};

static const struct opt options[] = {
    {"hosts", 0, "LIST|FILE",
     "hosts to run on: n[01-18]:4,login:1 or a host file (default: this machine)",
     OPT_INTO(struct args, launch.hosts)},
    {"launch", 0, "COMMAND", "command that starts the MPI program (default: mpirun)",
     OPT_INTO(struct args, launch.command)},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct args, replay.job.matrix)}, {0}};

static const struct opt_line command = {.options = options,
                                        .words = words,
                                        REPLAY_ABOUT,
                                        .set = {REPLAY_SETS(offsetof(struct args, replay))}};

/* True if this process is already a rank of a launcher. */
static bool under_launcher(void)
{
    static const char *const sign[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};

    for (size_t i = 0; i < sizeof(sign) / sizeof(*sign); i++)
        if (getenv(sign[i]))
            return true;
    return false;
}

/* One rank per endpoint, up to the last one that the job uses. */
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

/* Words for the MPI program: "replay", the matrix and all options except those of this command. */
static void pass_on(struct words *w, int argc, char **argv, const struct args *a)
{
    words_add(w, "replay");
    opt_again(&command, argc, argv, replay_options, w);
    opt_again(&command, argc, argv, job_options(), w);
    words_add(w, "%s", a->replay.job.matrix);
}

static int start(struct args *a, int argc, char **argv, int *code, struct err *err)
{
    struct words w = {NULL, 0};
    int rc = 0;

    pass_on(&w, argc, argv, a);
    if (under_launcher())
        rc = launch_exec(&w, err);
    else if ((rc = count_ranks(&a->launch.ranks, a, err)) == 0)
        rc = launch_run(&a->launch, &w, code, err);
    words_free(&w);
    return rc;
}

static int cmd_replay(int argc, char **argv, struct err *err)
{
    struct args a = {.launch = {.ranks = 0}};
    int code = EXIT_GOOD, rc = 0;

    replay_defaults(&a.replay);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (!a.replay.done && !a.replay.job.matrix)
        rc = err_usage(err, "which matrix.json?");
    else if (!a.replay.done)
        rc = start(&a, argc, argv, &code, err);
    return rc < 0 ? -1 : code;
}

const struct command replay_command = {&command, cmd_replay};
