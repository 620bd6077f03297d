/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/replay/replay_opts.h"

#include <errno.h>
#include <string.h>

#include "base/opt.h"
#include "base/units.h"
#include "probe/probe_args.h"
#include "step/replay/replay.h"

enum { SHRINK = 0x400, SECONDS, SHARE, STEPS, WARMUP, BURN, JSON };

static const struct argp_option options[] = {
    {"shrink", SHRINK, "auto|F", 0,
     "divide the bytes of every message and all compute by F (default auto: as --seconds asks)", 1},
    {"seconds", SECONDS, "TIME", 0, "how long a step shall take with --shrink auto (default 2)", 1},
    {"compute-share", SHARE, "SHARE", 0,
     "let compute take this much of the predicted step, whatever its rate: 70%", 1},
    {"steps", STEPS, "N", 0, "steps that are measured (default 5)", 1},
    {"warmup", WARMUP, "N", 0, "steps before them that are not (default 1)", 1},
    {"burn", BURN, "HOW", 0,
     "how ranks compute: sleep, spin, auto (default auto: spin where each has a core of its own)",
     1},
    {"json", JSON, NULL, 0, "print JSON instead of a table", 5},
    {"output", 'o', "FILE", 0, "write the JSON too", 5},
    {0},
};

static const char doc[] =
    "Run the messages of one training step on this machine, beside their prediction.  MATRIX must "
    "have been measured here: one rank an endpoint, in the same order."
    "\vExamples:\n"
    "  railgauge replay matrix.json --model llama3.1-8b \\\n"
    "      --layout dp_shard=8 --compute-share 70%\n"
    "  railgauge replay matrix.json --layout tp=4,dp_shard=2 --strategy zero1 \\\n"
    "      --order straddling\n"
    "  mpirun -n 8 railgauge-probe replay matrix.json \\\n"
    "      --layout pp=4,dp_shard=2 --batch 16 --json\n\n"
    "The same groups, sizes, order and overlap as the prediction, with compute of a set length. "
    " " EXIT_CODES("2 could not judge (no compute rate, no curve), ",
                   ", 75 cut short, 78 configuration");

static int read_shrink(double *out, const char *arg, struct err *err)
{
    *out = 0;
    return strcmp(arg, "auto") ? units_double(out, arg, 1e-6, 1e15, err) : 0;
}

static int read_share(double *out, const char *arg, struct err *err)
{
    if (units_share(out, arg, err) < 0)
        return -1;
    return *out > 0 && *out < 1 ? 0 : err_usage(err, "%s is not between 0 and 100 %%", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct replay_opts *o = state->input;
    struct err err = {0, ""};
    int rc = 0;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->job;
        state->child_inputs[1] = &o->done;
        break;
    case SHRINK:
        rc = read_shrink(&o->size.shrink, arg, &err);
        break;
    case SECONDS:
        rc = units_seconds(&o->size.seconds, arg, &err);
        break;
    case SHARE:
        rc = read_share(&o->size.share, arg, &err);
        break;
    case STEPS:
        rc = units_int(&o->steps, arg, 1, 10000, &err);
        break;
    case WARMUP:
        rc = units_int(&o->warmup, arg, 0, 10000, &err);
        break;
    case BURN:
        o->burn = recipe_word("burn", arg, burn_name, BURN_COUNT, &err);
        rc = o->burn < 0 ? -1 : 0;
        break;
    case JSON:
        o->json = true;
        break;
    case 'o':
        o->output = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

void replay_defaults(struct replay_opts *o)
{
    *o = (struct replay_opts){.size = {.seconds = 2}, .steps = 5, .warmup = 1, .burn = BURN_AUTO};
    job_defaults(&o->job);
}

const struct argp *replay_argp(void)
{
    static struct argp_child children[3];
    static const struct argp argp = {options, parse, "MATRIX", doc, children, NULL, NULL};

    children[0] = job_child(2);
    children[1] = (struct argp_child){&probe_common_argp, 0, NULL, -1};
    return &argp;
}
