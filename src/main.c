/* main.c - the table of subcommands, nothing else. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "cmd/command.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", cmd_run, "the whole chain: discover, plan, probe, fit, predict, plot"},
    {"discover", cmd_discover, "write topology.json: what this machine is"},
    {"plan", cmd_plan, "write plan.tsv: what will be measured"},
    {"probe", cmd_probe, "write points.tsv: measure the plan"},
    {"import", cmd_import, "points.tsv from what nccl-tests printed"},
    {"fit", cmd_fit, "write matrix.json: the cost matrix"},
    {"show", cmd_show, "print tiers, pairs, collectives and findings of a matrix"},
    {"cost", cmd_cost, "what one transfer or collective costs"},
    {"nodes", cmd_nodes, "what a job costs on a list of nodes, or the best of the free ones"},
    {"predict", cmd_predict, "training step time for a model, layout and placement"},
    {"place", cmd_place, "nodes and the order of ranks with the shortest step"},
    {"check-placement", cmd_check_placement, "are a job's nodes where its segments need them"},
    {"replay", cmd_replay, "run a step's messages here, beside their prediction"},
    {"models", cmd_models, "the model architectures that predict knows"},
    {"search", cmd_search, "the best layouts of a model on so many GPUs"},
    {"calibrate", cmd_calibrate, "refit the constants of the step model to measured steps"},
    {"plot", cmd_plot, "pictures of a campaign or a matrix"},
    {"lint", cmd_lint, "the odd one out among hosts, GPUs, NICs and cables, before any benchmark"},
    {"explain", cmd_explain, "one pair in words: its way, what it should give, what was measured"},
    {"declared", cmd_declared, "what sources declare of the structure, beside what was measured"},
    {"export", cmd_export, "the matrix in formats of other tools"},
    {"tune", cmd_tune, "NCCL's best algorithm and protocol per size, from a sweep"},
    {"seal", cmd_seal, "the checksum of files that were changed by hand"},
    {"curves", cmd_curves, "how well curves are interpolated, against a table of measured ones"},
};

enum { COMMANDS = sizeof(commands) / sizeof(*commands) };

static void usage(FILE *out)
{
    fputs("usage: railgauge COMMAND [OPTION...]\n\ncommands:\n", out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-15s %s\n", commands[i].name, commands[i].help);
    fputs("\nrailgauge COMMAND --help says more; man railgauge says all.\n", out);
}

static int dispatch(int argc, char **argv)
{
    static char program[64]; /* messages at exit begin with it */

    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return EXIT_GOOD;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        puts("railgauge " RG_VERSION);
        return EXIT_GOOD;
    }
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name)) {
            snprintf(program, sizeof(program), "railgauge %s", commands[i].name);
            argv[1] = program;
            log_setup(program, LOG_INFO);
            return commands[i].run(argc - 1, argv + 1);
        }
    fprintf(stderr, "railgauge: no command \"%s\"; railgauge --help lists them\n", argv[1]);
    return EXIT_USAGE;
}

/* At every end, that of argp after --help too: what did not reach standard output is an error. */
static void close_stdout(int rc, void *unused)
{
    (void)unused;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    log_error("cannot write to standard output: %s", strerror(errno));
    _exit(rc ? rc : EXIT_IO);
}

static void note_unsealed(const char *path)
{
    log_info("%s has no checksum (written by hand or by an older version): changes in it are not "
             "found; railgauge seal adds one",
             path);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow (ulimit -f) is an error of its own */
    json_memory();
    json_on_unsealed(note_unsealed);
    json_provenance_argv(argc, argv);
    if (on_exit(close_stdout, NULL))
        return EXIT_IO;
    return dispatch(argc, argv);
}
