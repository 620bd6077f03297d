/* main.c - railgauge, and by that name railgauge-calibrate: tables of subcommands. */
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

struct row {
    const char *name;
    const struct command *command;
    enum command_group group;
    const char *help;
};
#define ROW(x, name, group, help) {name, &x##_command, COMMAND_##group, help},
static const struct row commands[] = {COMMANDS(ROW)}, of_calibrate[] = {CALIBRATE_COMMANDS(ROW)};
#undef ROW

struct program {
    const char *name;
    const struct row *row;
    int rows;
};
#define TABLE(name, rows)                                                                          \
    {                                                                                              \
        name, rows, sizeof(rows) / sizeof(*(rows))                                                 \
    }
static const struct program railgauge = TABLE("railgauge", commands),
                            calibrate = TABLE(CALIBRATE_PROGRAM, of_calibrate);
#undef TABLE

/* Commands that have moved to railgauge-calibrate; the old names work for one release. */
static const struct {
    const char *was, *is;
} moved[] = {{"calibrate", "refit"}, {"curves", "curves"}};

static const struct program *program_of(const char *path)
{
    const char *name = path ? strrchr(path, '/') : NULL;

    name = name ? name + 1 : path ? path : "";
    return strcmp(name, calibrate.name) ? &railgauge : &calibrate;
}

static const struct row *find(const struct program *p, const char *name)
{
    for (int i = 0; i < p->rows; i++)
        if (!strcmp(name, p->row[i].name))
            return &p->row[i];
    return NULL;
}

static void usage(FILE *out, const struct program *p)
{
#define TITLE(x, title) title,
    static const char *const title[] = {COMMAND_GROUPS(TITLE)};
#undef TITLE

    fprintf(out, "usage: %s COMMAND [OPTION...]\n", p->name);
    for (int g = 0; g < COMMAND_GROUP_COUNT; g++) {
        bool any = false;
        for (int i = 0; i < p->rows; i++) {
            if ((int)p->row[i].group != g)
                continue;
            if (!any)
                fprintf(out, "\n%s:\n", title[g]);
            any = true;
            fprintf(out, "  %-15s %s\n", p->row[i].name, p->row[i].help);
        }
    }
    fprintf(out, "\n%s COMMAND --help prints options and examples; man %s-COMMAND has details.\n",
            p->name, p->name);
}

static int unknown(const struct program *p, const char *name)
{
    struct near near = {.word = name};

    for (int i = 0; i < p->rows; i++)
        near_try(&near, p->row[i].name);
    fprintf(stderr, "%s: no command \"%.60s\"%s; %s --help lists them\n", p->name, name,
            near_text(&near), p->name);
    return EXIT_USAGE;
}

/* True if `name` is an old name: *p and *row are where the command is now. */
static bool find_moved(const struct program **p, const struct row **row, const char *name)
{
    for (size_t i = 0; *p == &railgauge && i < sizeof(moved) / sizeof(*moved); i++)
        if (!strcmp(name, moved[i].was)) {
            *p = &calibrate;
            *row = find(*p, moved[i].is);
            return true;
        }
    return false;
}

static int dispatch(int argc, char **argv)
{
    static char program[64]; /* prefix of messages at exit */
    const struct program *p = program_of(argv[0]);
    struct err err = {0, ""};

    if (argc < 2) {
        usage(stderr, p);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout, p);
        return EXIT_GOOD;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("%s " RG_VERSION "\n", p->name);
        return EXIT_GOOD;
    }
    const struct row *row = find(p, argv[1]);
    bool old = !row && find_moved(&p, &row, argv[1]);
    if (!row)
        return unknown(p, argv[1]);
    snprintf(program, sizeof(program), "%s %s", p->name, row->name);
    log_setup(program, LOG_INFO);
    if (old)
        log_info("railgauge %s is now %s; the old name ends with the next release", argv[1],
                 program);
    argv[1] = program;
    int code = row->command->run(argc - 1, argv + 1, &err);
    if (code < 0)
        log_error("%s", err.text);
    return code < 0 ? err.code : code;
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
    log_info(
        "%s has no checksum (written by hand): changes in it are not found; railgauge seal adds "
        "one",
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
