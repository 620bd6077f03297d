/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"
#include "kernels/nccl_api.h"

enum {
    OPS = 0x200,
    PAIRS,
    EXACT,
    MATCHINGS,
    EPOCHS,
    SEED,
    HALF_WIDTH,
    TIME_CAP,
    MAX_RUN,
    BUDGET,
    NO_CHECK,
    NO_RETEST,
    HANG_AFTER,
    PAIR_BYTES,
    FULL
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "What to measure:", 20},
    {"minbytes", 'b', "SIZE", 0, "smallest message (default 8)", 20},
    {"maxbytes", 'e', "SIZE", 0, "largest message (default 4M for CPUs; for GPUs 4G, pairs 256M)",
     20},
    {"stepfactor", 'f', "N", 0, "size ladder factor (default 2)", 20},
    {"op", OPS, "LIST", 0,
     "only these: all_gather,reduce_scatter,all_to_all,all_reduce,broadcast,"
     "reduce,sendrecv,pair_latency,pair_bw,pair_bibw; pairs and collectives stand for all "
     "of their kind (default: all but reduce)",
     20},
    {"pairs", PAIRS, "HOW", 0,
     "pair schedule: class, tournament, shift or isolated (default by size)", 20},
    {"exact", EXACT, NULL, 0, "every pair: all rounds of the tournament, at any size", 20},
    {"matchings", MATCHINGS, "K", 0, "class matchings: partners per endpoint and tier (default 8)",
     20},
    {"pair-bytes", PAIR_BYTES, "SIZE", 0, "message of the pair bandwidth matrix", 20},
    {"full", FULL, NULL, 0, "more groups, larger sizes", 20},
    {"seed", SEED, "N", 0, "seed of the schedules (default 1)", 20},
    {NULL, 0, NULL, 0, "How well to measure it:", 30},
    {"epochs", EPOCHS, "N", 0, "epochs spread over the campaign (default 5)", 30},
    {"half-width", HALF_WIDTH, "SHARE", 0,
     "stop a point when the median's 95 % interval is within (default 5%)", 30},
    {"time-cap", TIME_CAP, "TIME", 0,
     "... or after this long per point and epoch (default: 20ms to 100ms, so that a campaign takes "
     "some 40 s)",
     30},
    {"max-run", MAX_RUN, "TIME", 0,
     "end a ladder when one run would take longer (default 100ms between CPUs, 1s between GPUs)",
     30},
    {"budget", BUDGET, "TIME", 0, "end the campaign after this long, exit 75; --resume continues",
     30},
    {"hang-after", HANG_AFTER, "TIME", 0,
     "without any movement for this long somebody hangs: the rank is named, exit 75 (default 30s "
     "over MPI, 8s between GPUs)",
     30},
    {"iters", 'n', "N", 0, "exactly N samples instead of the stop rule", 30},
    {"warmup_iters", 'w', "N", 0, "runs that are not counted (default 16)", 30},
    {"check", 'c', "0|1", 0, "verify received data (default 1)", 30},
    {"no-check", NO_CHECK, NULL, 0, "same as -c 0", 30},
    {"no-retest", NO_RETEST, NULL, 0, "do not measure outliers again alone", 30},
    {0},
};

void probe_opts_defaults(struct probe_opts *o)
{
    plan_defaults(&o->plan);
    o->measure = MEASURE_DEFAULTS;
}

static int parse_ops(unsigned *ops, const char *list, struct err *err)
{
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
            rc = err_usage(err, "no operation \"%s\"%s", t,
                           nccl_redop_find(t) >= 0 ? "; a reduction is --redop" : "");
    }
    free(copy);
    return rc || *ops ? rc : err_usage(err, "no operation in \"%s\"", list);
}

static int parse_pairs(enum stage *out, const char *text, struct err *err)
{
    for (int i = STAGE_CLASS; i <= STAGE_ISOLATED; i++)
        if (!strcmp(text, stage_name[i])) {
            *out = (enum stage)i;
            return 0;
        }
    return err_usage(err, "pair schedule \"%s\" is none of class, tournament, shift, isolated",
                     text);
}

static int parse_more(int key, char *arg, struct probe_opts *o, struct err *err)
{
    int check = 0, rc = 0;

    switch (key) {
    case HALF_WIDTH:
        return units_share(&o->measure.half_width, arg, err);
    case TIME_CAP:
        return units_seconds(&o->measure.time_cap, arg, err);
    case MAX_RUN:
        return units_seconds(&o->measure.max_run, arg, err);
    case BUDGET:
        return units_seconds(&o->measure.budget, arg, err);
    case HANG_AFTER:
        rc = units_seconds(&o->measure.hang_after, arg, err);
        return rc == 0 && o->measure.hang_after < 0.5 ? err_usage(err, "%s is less than 0.5 s", arg)
                                                      : rc;
    case 'n':
        return units_int(&o->measure.iters, arg, 1, 10000000, err);
    case 'w':
        return units_int(&o->measure.warmup, arg, 0, 1000000, err);
    case 'c':
        rc = units_int(&check, arg, 0, 1, err);
        o->measure.check = check;
        return rc;
    case NO_CHECK:
        o->measure.check = false;
        return 0;
    case NO_RETEST:
        o->measure.retest = false;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct probe_opts *o = state->input;
    struct err err = {0, ""};
    uint64_t seed = o->plan.seed;
    int rc = 0;

    switch (key) {
    case 'b':
        rc = units_bytes(&o->plan.min_bytes, arg, &err);
        break;
    case 'e':
        rc = units_bytes(&o->plan.max_bytes, arg, &err);
        break;
    case 'f':
        rc = units_int(&o->plan.factor, arg, 2, 1024, &err);
        break;
    case OPS:
        rc = parse_ops(&o->plan.ops, arg, &err);
        break;
    case PAIRS:
        rc = parse_pairs(&o->plan.pairs, arg, &err);
        break;
    case EXACT:
        o->plan.pairs = STAGE_TOURNAMENT;
        break;
    case MATCHINGS:
        rc = units_int(&o->plan.matchings, arg, 1, 1000, &err);
        break;
    case PAIR_BYTES:
        rc = units_bytes(&o->plan.pair_bytes, arg, &err);
        break;
    case FULL:
        o->plan.full = true;
        break;
    case EPOCHS:
        rc = units_int(&o->plan.epochs, arg, 1, PLAN_EPOCHS, &err);
        break;
    case SEED:
        rc = units_u64(&seed, arg, &err);
        o->plan.seed = seed;
        break;
    default:
        rc = parse_more(key, arg, o, &err);
        if (rc == ARGP_ERR_UNKNOWN)
            return rc;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

const struct argp probe_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

char **probe_opts_words(const struct probe_opts *o, int *count)
{
    const struct measure_opts *m = &o->measure;
    const struct plan_opts *p = &o->plan;
    char **w = NULL, *ops = mem_strdup("");
    int n = 0;

    for (int i = 0; i < OP_COUNT; i++)
        if (p->ops >> i & 1) {
            char *more = mem_printf("%s%s%s", ops, *ops ? "," : "", op_name((enum op)i));
            free(ops);
            ops = more;
        }
    MEM_PUSH(w, n) = mem_printf("--op=%s", ops);
    free(ops);
    MEM_PUSH(w, n) = mem_printf("--minbytes=%zu", p->min_bytes);
    if (p->max_bytes)
        MEM_PUSH(w, n) = mem_printf("--maxbytes=%zu", p->max_bytes);
    if (p->pair_bytes)
        MEM_PUSH(w, n) = mem_printf("--pair-bytes=%zu", p->pair_bytes);
    MEM_PUSH(w, n) = mem_printf("--stepfactor=%d", p->factor);
    MEM_PUSH(w, n) = mem_printf("--matchings=%d", p->matchings);
    MEM_PUSH(w, n) = mem_printf("--epochs=%d", p->epochs);
    MEM_PUSH(w, n) = mem_printf("--seed=%llu", p->seed);
    if (p->pairs <= STAGE_ISOLATED)
        MEM_PUSH(w, n) = mem_printf("--pairs=%s", stage_name[p->pairs]);
    if (p->full)
        MEM_PUSH(w, n) = mem_strdup("--full");
    MEM_PUSH(w, n) = mem_printf("--half-width=%.9f", m->half_width);
    if (m->time_cap > 0)
        MEM_PUSH(w, n) = mem_printf("--time-cap=%.9f", m->time_cap);
    if (m->max_run > 0)
        MEM_PUSH(w, n) = mem_printf("--max-run=%.9f", m->max_run);
    if (m->budget > 0)
        MEM_PUSH(w, n) = mem_printf("--budget=%.9f", m->budget);
    if (m->hang_after > 0)
        MEM_PUSH(w, n) = mem_printf("--hang-after=%.9f", m->hang_after);
    if (m->iters)
        MEM_PUSH(w, n) = mem_printf("--iters=%d", m->iters);
    MEM_PUSH(w, n) = mem_printf("--warmup_iters=%d", m->warmup);
    MEM_PUSH(w, n) = mem_printf("--check=%d", m->check);
    if (!m->retest)
        MEM_PUSH(w, n) = mem_strdup("--no-retest");
    *count = n;
    return w;
}
