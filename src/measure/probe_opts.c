/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/probe_opts.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/nccl_api.h"
#include "measure/device/gpu_binding.h"

static int no_operation(const char *name, struct err *err)
{
    struct near near = {.word = name};

    op_each(near_try, &near);
    return err_usage(err, "no operation \"%s\"%s%s", name, near_text(&near),
                     nccl_redop_find(name) >= 0 ? "; a reduction is --redop" : "");
}

static int take_ops(void *into, char *list, struct err *err)
{
    unsigned *ops = &((struct probe_opts *)into)->plan.ops;
    char *copy = mem_strdup(list), *save = NULL;
    int rc = 0;

    *ops = 0;
    for (char *t = strtok_r(copy, ",", &save); t && rc == 0; t = strtok_r(NULL, ",", &save)) {
        int op = op_find(t), all = !strcmp(t, "pairs") ? 1 : !strcmp(t, "collectives") ? 0 : -1;
        for (int i = 0; i < OP_COUNT && all >= 0; i++)
            if (op_is_pair((enum op)i) == all)
                *ops |= 1u << i;
        if (op >= 0)
            *ops |= 1u << op;
        else if (all < 0)
            rc = no_operation(t, err);
    }
    free(copy);
    return rc || *ops ? rc : err_usage(err, "no operation in \"%s\"", list);
}

static int take_pairs(void *into, char *text, struct err *err)
{
    struct probe_opts *o = into;

    for (int i = STAGE_CLASS; i <= STAGE_ISOLATED; i++)
        if (!strcmp(text, stage_name[i])) {
            o->plan.pairs = (enum stage)i;
            return 0;
        }
    return err_usage(err, "pair schedule \"%s\" is none of class, tournament, shift, isolated",
                     text);
}

static int take_exact(void *into, char *none, struct err *err)
{
    (void)none, (void)err;
    ((struct probe_opts *)into)->plan.pairs = STAGE_TOURNAMENT;
    return 0;
}

/* Options given explicitly, before or after --quick, take precedence. */
static int take_quick(void *into, char *none, struct err *err)
{
    struct probe_opts *o = into, usual;
    (void)none, (void)err;

    probe_opts_defaults(&usual);
    if (o->plan.ops == usual.plan.ops)
        o->plan.ops = 1u << OP_PAIR_LATENCY | 1u << OP_PAIR_BW;
    if (o->plan.epochs == usual.plan.epochs)
        o->plan.epochs = 1;
    if (!(o->measure.time_cap > 0))
        o->measure.time_cap = QUICK_CAP;
    o->plan.quick = o->measure.quick = true;
    return 0;
}

static int take_hang_after(void *into, char *text, struct err *err)
{
    struct probe_opts *o = into;

    if (units_seconds(&o->measure.hang_after, text, err) < 0)
        return -1;
    return o->measure.hang_after < 0.5 ? err_usage(err, "%s is less than 0.5 s", text) : 0;
}

static int take_bind(void *into, char *text, struct err *err)
{
    static const char *const how[] = {"auto", "device", "none"};

    (void)into;
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, how[i])) {
            gpu_bind_asked = (enum gpu_bind)i;
            return 0;
        }
    return err_usage(err, "\"%s\" is none of auto, device, none", text);
}

static int take_check(void *into, char *text, struct err *err)
{
    struct probe_opts *o = into;
    int check = 0, rc = units_int(&check, text, 0, 1, err);

    o->measure.check = check;
    return rc;
}

const struct opt probe_options[] = {
    {.help = "operations, sizes and pairs to measure", .group = "measuring"},
    {"op", 0, "LIST",
     "measure only these operations: " OP_LIST
     "; pairs and collectives select all of their kind (default: all but reduce)",
     OPT_CALL(take_ops), .values = op_each, .group = "measuring"},
    {"minbytes", 'b', "SIZE", "smallest message (default 8)",
     OPT_INTO(struct probe_opts, plan.min_bytes), .group = "measuring"},
    {"maxbytes", 'e', "SIZE",
     "largest message (default: 4M between CPUs, 4G between GPUs, 256M for pairs of GPUs)",
     OPT_INTO(struct probe_opts, plan.max_bytes), .group = "measuring"},
    {"pair-bytes", 0, "SIZE",
     "message size of the pair bandwidth matrix (default: 64M between GPUs, 256K between CPUs)",
     OPT_INTO(struct probe_opts, plan.pair_bytes), .group = "measuring"},
    {"stepfactor", 'f', "N", "ratio of each message size to the one before (default 2)",
     OPT_INT(struct probe_opts, plan.factor, 2, 1024), .group = "measuring"},
    {"matchings", 0, "K", "partners per endpoint and tier (default 8, with many endpoints 4)",
     OPT_INT(struct probe_opts, plan.matchings, 1, 1000), .group = "measuring"},
    {"seed", 0, "N", "seed of the schedule (default 1)", OPT_INTO(struct probe_opts, plan.seed),
     .group = "measuring"},
    {"pairs", 0, "HOW",
     "schedule of pairs: class, tournament, shift or isolated (default: by number of endpoints)",
     OPT_CALL(take_pairs), .group = "measuring"},
    {"cables", 0, "TIME",
     "also measure as many pairs of NICs as fit into this time, all endpoints at once, to find bad "
     "cables",
     OPT_SECONDS(struct probe_opts, plan.cables), .group = "measuring"},
    {"exact", 0, NULL, "measure every pair, of up to 4,608 endpoints", OPT_CALL(take_exact),
     .group = "measuring"},
    {"quick", 0, NULL,
     "measure latency and one bandwidth of every pair (of more than 4,608 endpoints: of a few "
     "partners each) in one epoch, 5ms or 10 messages a point, and a few suspects again",
     OPT_CALL(take_quick), .group = "measuring"},
    {"no-nic-pass", 0, NULL, "skip the second pass, which bypasses NVLink to measure the NICs",
     OPT_UNSET(struct probe_opts, plan.nics), .group = "measuring"},
    {"full", 0, NULL, "measure more groups and larger sizes",
     OPT_INTO(struct probe_opts, plan.full), .group = "measuring"},
    {.help = "samples, repetitions and time limits", .group = "measuring"},
    {"epochs", 0, "N", "passes over the plan (default 8; curves and collectives take at most 5)",
     OPT_INT(struct probe_opts, plan.epochs, 1, PLAN_EPOCHS), .group = "measuring"},
    {"half-width", 0, "SHARE",
     "stop a point when the 95 % interval of its median is this narrow (default 5%)",
     OPT_SHARE(struct probe_opts, measure.half_width), .group = "measuring"},
    {"time-cap", 0, "TIME",
     "stop a point after this long per epoch (default: 20ms to 100ms, so that a campaign takes "
     "some 40 s; between CPUs 5ms to 20ms, for 10 s)",
     OPT_SECONDS(struct probe_opts, measure.time_cap), .group = "measuring"},
    {"max-run", 0, "TIME",
     "end the ladder of sizes when one run would take longer (default: 100ms between CPUs, 1s "
     "between GPUs)",
     OPT_SECONDS(struct probe_opts, measure.max_run), .group = "measuring"},
    {"budget", 0, "TIME",
     "end the campaign after this long with exit code 75; --resume continues it",
     OPT_SECONDS(struct probe_opts, measure.budget), .group = "measuring"},
    {"hang-after", 0, "TIME",
     "name the rank that hangs after this long without progress, and exit with 75 (default: 30s "
     "over MPI, 8s between GPUs)",
     OPT_CALL(take_hang_after), .group = "measuring"},
    {"bind", 0, "HOW",
     "bind each rank to the NUMA node of its GPU or NIC: auto, device (an error where that is not "
     "possible) or none (default auto)",
     OPT_CALL(take_bind), .group = "measuring"},
    HOST_MAP_ROW(OPT_CALL(host_map), .group = "measuring"),
    {"iters", 'n', "N", "take exactly N samples per point, instead of the stop rule",
     OPT_INT(struct probe_opts, measure.iters, 1, 10000000), .group = "measuring"},
    {"warmup_iters", 'w', "N", "runs before the first sample (default 16)",
     OPT_INT(struct probe_opts, measure.warmup, 0, 1000000), .group = "measuring"},
    {"check", 'c', "0|1", "verify received data (default 1)", OPT_CALL(take_check),
     .group = "measuring"},
    {"no-check", 0, NULL, "same as --check 0", OPT_UNSET(struct probe_opts, measure.check),
     .group = "measuring"},
    {"no-retest", 0, NULL, "do not measure suspects again beside controls",
     OPT_UNSET(struct probe_opts, measure.retest), .group = "measuring"},
    {0},
};
