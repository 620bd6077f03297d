/* main.c - table of subcommands. */
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
    const struct command *command;
    enum command_group group;
    const char *help;
} commands[] = {
#define ROW(x, name, group, help) {name, &x##_command, COMMAND_##group, help},
    COMMANDS(ROW)
#undef ROW
};

enum { COUNT = sizeof(commands) / sizeof(*commands) };

static void usage(FILE *out)
{
#define TITLE(x, title) title,
    static const char *const title[] = {COMMAND_GROUPS(TITLE)};
#undef TITLE

    fputs("usage: railgauge COMMAND [OPTION...]\n", out);
    for (int g = 0; g < COMMAND_GROUP_COUNT; g++) {
        fprintf(out, "\n%s:\n", title[g]);
        for (int i = 0; i < COUNT; i++)
            if ((int)commands[i].group == g)
                fprintf(out, "  %-15s %s\n", commands[i].name, commands[i].help);
    }
    fputs("\nrailgauge COMMAND --help says more; man railgauge says all.\n", out);
}

static int unknown(const char *name)
{
    struct near near = {.word = name};

    for (int i = 0; i < COUNT; i++)
        near_try(&near, commands[i].name);
    fprintf(stderr, "railgauge: no command \"%.60s\"%s; railgauge --help lists them\n", name,
            near_text(&near));
    return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
    static char program[64]; /* prefix of messages at exit */
    struct err err = {0, ""};

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
    for (int i = 0; i < COUNT; i++)
        if (!strcmp(argv[1], commands[i].name)) {
            snprintf(program, sizeof(program), "railgauge %s", commands[i].name);
            argv[1] = program;
            log_setup(program, LOG_INFO);
            int code = commands[i].command->run(argc - 1, argv + 1, &err);
            if (code < 0)
                log_error("%s", err.text);
            return code < 0 ? err.code : code;
        }
    return unknown(argv[1]);
}

/* Report output that did not reach standard output, at every exit, also after --help. */
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
    signal(SIGXFSZ, SIG_IGN); /* a file that cannot grow (ulimit -f) gives an error of its own */
    json_memory();
    json_on_unsealed(note_unsealed);
    json_provenance_argv(argc, argv);
    if (on_exit(close_stdout, NULL))
        return EXIT_IO;
    return dispatch(argc, argv);
}
