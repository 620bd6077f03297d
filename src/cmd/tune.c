/* tune.c - railgauge tune: the best algorithm and protocol per size, for NCCL's tuner plugin. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <stdio.h>

#include "base/file.h"
#include "cmd/cmd.h"
#include "emit/nccl_tuner.h"

enum { CSV = 0x400 };

struct args {
    const char *dir, *csv;
};

static const struct argp_option options[] = {
    {"csv", CSV, "FILE", 0, "write the configuration of NCCL's example tuner plugin", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;

    switch (key) {
    case CSV:
        a->csv = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (a->dir)
            argp_error(state, "one campaign directory, not \"%s\" too", arg);
        a->dir = arg;
        return 0;
    case ARGP_KEY_END:
        if (!a->dir)
            argp_error(state, "a campaign directory is needed (railgauge run --sweep -o DIR)");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Say which algorithm and protocol of NCCL is best at which size, from a sweep."
    "\vExamples:\n"
    "  railgauge run --transport nccl --sweep -o campaign\n"
    "  railgauge tune campaign\n"
    "  railgauge tune campaign --csv nccl_tuner.conf\n"
    "  NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=nccl_tuner.conf ...";

static int write_csv(const struct tuner *t, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    tuner_csv(f.stream, t);
    int rc = file_commit(&f, err);
    file_abort(&f);
    return rc;
}

int cmd_tune(int argc, char **argv)
{
    const struct argp argp = {options, parse, "DIR", doc, NULL, NULL, NULL};
    struct args a = {NULL, NULL};
    struct err err = {0, ""};
    struct tuner t;

    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int rc = tuner_load(&t, a.dir, &err);
    if (rc == 0) {
        tuner_print(stdout, &t);
        rc = a.csv ? write_csv(&t, a.csv, &err) : 0;
        tuner_free(&t);
    }
    return rc < 0 ? cmd_fail("tune", &err) : EXIT_GOOD;
}
