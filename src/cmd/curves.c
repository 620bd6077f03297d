/* curves.c - railgauge curves: leave points of measured curves out and predict them from the rest.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/command.h"
#include "cmd/curves_text.h"

struct args {
    struct curves curves;
    bool json;
};

static const struct opt options[] = {
    {"every", 0, "FACTOR",
     "keep only sizes at least FACTOR apart and predict those between them; else each inner size "
     "is left out alone",
     OPT_REAL(struct args, curves.every, 1.0001, 1e9)},
    {"worst", 0, "N", "also list the N points that are missed most",
     OPT_INT(struct args, curves.worst, 1, 1000000)},
    {"json", 0, NULL, "print JSON", OPT_INTO(struct args, json)},
    {0},
};

static const struct opt words[] = {
    {"table", .help = "give a table of measured curves", OPT_INTO(struct args, curves.file)}, {0}};

static const struct command command = {
    .options = options,
    .words = words,
    .usage = "FILE.tsv",
    .doc =
        "Leave points of measured collective curves out, predict them from the rest of the curve "
        "as every prediction does, and print how far off that is."
        "\vFILE.tsv has the columns system, nccl_version, op, ranks, bytes (as nccl-tests counts "
        "them) and latency_us.\n\n"
        "  railgauge curves nccl_curves.tsv\n"
        "  railgauge curves nccl_curves.tsv --every 8 --worst 10\n"
        "  railgauge curves nccl_curves.tsv --json\n\n" EXIT_CODES("", ""),
};

static int by_error(const void *a, const void *b)
{
    const struct miss *x = a, *y = b;
    double d = fabs(y->error) - fabs(x->error);

    return d > 0 ? 1 : d < 0 ? -1 : x->ladder - y->ladder;
}

int cmd_curves(int argc, char **argv)
{
    struct args a = {0};
    struct curves *c = &a.curves;
    struct err err;

    command_parse(&command, argc, argv, &a);
    if (ladders_load(&c->ladders, c->file, &err) < 0)
        return cmd_fail("curves", &err);
    ladders_predict(&c->ladders, c->every, &c->miss, &c->misses);
    if (c->misses)
        qsort(c->miss, (size_t)c->misses, sizeof(*c->miss), by_error);
    json_t *json = a.json ? curves_json(c) : NULL;
    if (json)
        json_print(stdout, json);
    else
        curves_text(stdout, c);
    json_decref(json);
    free(c->miss);
    ladders_free(&c->ladders);
    return EXIT_GOOD;
}
