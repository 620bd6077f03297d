/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.c - railgauge tune: best algorithm and protocol per size, for NCCL's tuner plugin. */
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "cmd/command.h"
#include "cmd/input.h"
#include "export/nccl_tuner.h"

struct args {
    const char *dir, *csv;
    bool json;
};

static const struct opt options[] = {
    {"csv", 0, "FILE", "write the configuration of NCCL's example tuner plugin",
     OPT_INTO(struct args, csv)},
    INPUT_JSON(struct args, json),
    {0},
};

static const struct opt words[] = {
    {"campaign", .help = "a campaign directory is needed (railgauge run --sweep -o DIR)",
     OPT_INTO(struct args, dir)},
    {0},
};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "DIR",
    .doc = "Say which algorithm and protocol of NCCL is best at which size, from a sweep."
           "\vExamples:\n"
           "  railgauge run --transport nccl --sweep -o campaign\n"
           "  railgauge tune campaign\n"
           "  railgauge tune campaign --csv nccl_tuner.conf\n"
           "  export NCCL_TUNER_PLUGIN=libnccl-tuner-example.so\n"
           "  export NCCL_TUNER_CONFIG_FILE=nccl_tuner.conf\n\n" EXIT_CODES("", ""),
};

static int write_csv(const struct tuner *t, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    tuner_csv(f.stream, t);
    return file_commit(&f, err);
}

static int cmd_tune(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct tuner t;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = tuner_load(&t, a.dir, err);
    if (rc == 0) {
        json_t *json = tuner_report(a.json ? NULL : stdout, &t);
        rc = json_answer(json_framed("railgauge-tune", "best", json), NULL, a.json, err);
        if (rc == 0 && a.csv)
            rc = write_csv(&t, a.csv, err);
        tuner_free(&t);
    }
    return rc;
}

const struct command tune_command = {&command, cmd_tune};
