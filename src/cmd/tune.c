/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.c - railgauge tune: best algorithm and protocol per size, for NCCL's tuner plugin. */
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "export/export.h"

struct args {
    const char *dir, *csv;
    bool json;
};

static const struct opt options[] = {
    {"csv", 0, "FILE", "write the configuration file of NCCL's example tuner plugin",
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
    .doc = "Print the best algorithm and protocol of NCCL for each size, from a sweep.",
    .examples =
        (const struct opt_example[]){
            OPT_ELSEWHERE("Measure with every algorithm and protocol",
                          "railgauge run --transport nccl --sweep -o campaign"),
            OPT_ELSEWHERE("Print the best ones", "railgauge tune campaign"),
            OPT_ELSEWHERE("Write them for NCCL's example tuner plugin (NCCL_TUNER_CONFIG_FILE)",
                          "railgauge tune campaign --csv nccl_tuner.conf"),
            {0}},
    .exits = EXIT_CODES("", ""),
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
