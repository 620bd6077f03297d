/* cost.c - railgauge cost: what one transfer or one collective costs. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/input.h"

enum { FABRIC = 0x400, RACKS, OP, RANKS, BYTES, JSON };

struct args {
    const char *fabric, *ranks, *src, *dst, *word[4];
    int words, racks, op;
    const char *kernel; /* of expert parallelism, run by all ranks: "ep_dispatch"; NULL */
    size_t bytes;
    bool json;
};

static const struct argp_option options[] = {
    {"op", OP, "NAME", 0,
     "a collective: all_gather, reduce_scatter, all_to_all, all_reduce ..., or the kernels "
     "ep_dispatch, ep_combine",
     0},
    {"ranks", RANKS, "LIST", 0, "its endpoints in rank order: 0-71 or 0,4,8 (default: all)", 0},
    {"bytes", BYTES, "SIZE", 0, "the largest buffer of one rank, as nccl-tests counts it: 64M, 1G",
     0},
    {"fabric", FABRIC, "NAME", 0, "a preset instead of a measured matrix", 0},
    {"racks", RACKS, "N", 0, "racks of the preset (default: as the preset says)", 0},
    {"json", JSON, NULL, 0, "print JSON", 0},
    {0},
};

static bool is_kernel(const char *name)
{
    return !strcmp(name, "ep_dispatch") || !strcmp(name, "ep_combine");
}

static int parse_op(struct args *a, const char *name, struct err *err)
{
    a->kernel = is_kernel(name) ? name : NULL;
    a->op = a->kernel ? OP_ALL_TO_ALL : op_find(name);
    if (a->op >= 0 && !op_is_pair((enum op)a->op))
        return 0;
    return err_usage(err,
                     "no collective \"%s\"; known: all_gather reduce_scatter all_to_all all_reduce "
                     "broadcast reduce sendrecv ep_dispatch ep_combine",
                     name);
}

/* What the words mean: [MATRIX] SRC DST BYTES, [MATRIX] OP RANKS BYTES, or [MATRIX] with --op. */
static int sort_words(struct args *a, struct err *err)
{
    const char **w = a->word + !a->fabric;
    int n = a->words - !a->fabric;

    if (n < 0)
        return err_usage(err, "give a matrix file or --fabric");
    if (n == 0 && a->op >= 0)
        return a->bytes ? 0 : err_usage(err, "--bytes is missing");
    if (n != 3 || a->op >= 0)
        return err_usage(err,
                         "after the matrix: SRC DST BYTES, or OP RANKS BYTES, or --op, --ranks and "
                         "--bytes");
    if (units_bytes(&a->bytes, w[2], err) < 0)
        return -1;
    if (op_find(w[0]) >= 0 || is_kernel(w[0])) {
        a->ranks = w[1];
        return parse_op(a, w[0], err);
    }
    a->src = w[0];
    a->dst = w[1];
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err = {0, ""};
    int rc = 0;

    switch (key) {
    case FABRIC:
        a->fabric = arg;
        break;
    case RACKS:
        rc = units_int(&a->racks, arg, 1, 1 << 20, &err);
        break;
    case OP:
        rc = parse_op(a, arg, &err);
        break;
    case RANKS:
        a->ranks = arg;
        break;
    case BYTES:
        rc = units_bytes(&a->bytes, arg, &err);
        break;
    case JSON:
        a->json = true;
        break;
    case ARGP_KEY_ARG:
        if (a->words == 4)
            argp_error(state, "what is \"%s\"?", arg);
        a->word[a->words++] = arg;
        break;
    case ARGP_KEY_END:
        rc = sort_words(a, &err);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        argp_error(state, "%s", err.text);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MATRIX SRC DST BYTES\nMATRIX OP RANKS BYTES\n--fabric NAME [--racks N] ...",
    .doc = "Print what one transfer, or one collective, costs."
           "\vSRC and DST are HOST:INDEX or endpoint ids.  Every answer says which curve or model "
           "it comes "
           "from, and names the part that slows it.\n\n"
           "  railgauge cost matrix.json r00n00:0 r01n00:0 1M\n"
           "  railgauge cost matrix.json all_gather 0-71 64M\n"
           "  railgauge cost matrix.json --op all_reduce --ranks 0,4,8,12 --bytes 1G --json\n"
           "  railgauge cost --fabric gb200-nvl72 --racks 2 all_to_all 0-143 256M\n",
};

/* "0-7,16-23"; NULL: all. */
static int read_ranks(const struct topo *t, const char *text, int **ids, int *n, struct err *err)
{
    char *copy = mem_strdup(text ? text : ""), *save = NULL;
    int rc = 0, lo, hi;

    *ids = NULL;
    *n = 0;
    for (int i = 0; !text && i < t->endpoints; i++)
        MEM_PUSH(*ids, *n) = i;
    for (char *one = strtok_r(copy, ",", &save); one && rc == 0; one = strtok_r(NULL, ",", &save)) {
        char *dash = strchr(one, '-');
        if (dash)
            *dash = '\0';
        rc = units_int(&lo, one, 0, t->endpoints - 1, err);
        hi = lo;
        if (rc == 0 && dash)
            rc = units_int(&hi, dash + 1, lo, t->endpoints - 1, err);
        if (rc == 0 && *n + hi - lo >= t->endpoints)
            rc = err_usage(err, "more ranks than the %d endpoints", t->endpoints);
        for (int i = lo; rc == 0 && i <= hi; i++)
            MEM_PUSH(*ids, *n) = i;
    }
    free(copy);
    if (rc < 0)
        return err_wrap(err, "ranks \"%s\"", text);
    return *n > 1 ? 0 : err_usage(err, "ranks \"%s\": a collective needs two", text);
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void print_json(const struct matrix *m, const struct args *a, int n, double factor,
                       const struct cost *c, const struct cost *healthy)
{
    char part[256];
    json_t *out = json_pack("{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:b}", "op",
                            a->kernel   ? a->kernel
                            : a->op < 0 ? "pair"
                                        : op_name((enum op)a->op),
                            "ranks", n, "bytes", (json_int_t)a->bytes, "seconds", number(c->sec),
                            "low_seconds", number(c->lo), "high_seconds", number(c->hi),
                            "expected_seconds", number(healthy->sec), "basis", basis_name[c->basis],
                            "source", c->source, a->op < 0 || a->kernel ? "algbw_Bps" : "busbw_Bps",
                            number((double)a->bytes * factor / c->sec), "dead", isinf(c->sec) != 0);

    if (c->exception >= 0)
        json_object_set_new(out, "slowed_by",
                            json_string(matrix_part(m, &m->exception[c->exception], part)));
    json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(out);
}

static void print_text(const struct args *a, double factor, const struct cost *c,
                       const struct cost *healthy)
{
    char t[4][UNITS_TEXT];

    if (isinf(c->sec))
        printf("for ever: a part on the way does not answer\n");
    else
        printf("%s  (%s to %s), %s %s\n", units_seconds_text(t[0], c->sec),
               units_seconds_text(t[1], c->lo), units_seconds_text(t[2], c->hi),
               a->op < 0 || a->kernel ? "bandwidth" : "bus bandwidth",
               units_rate_text(t[3], (double)a->bytes * factor / c->sec));
    printf("  from: %s\n", c->source);
    if (healthy->sec > 0 && isfinite(c->sec))
        printf("  expected of a healthy fabric: %s, this is %.0f %% of that speed\n",
               units_seconds_text(t[0], healthy->sec), 100 * healthy->sec / c->sec);
}

static int answer(const struct matrix *m, const struct args *a, struct err *err)
{
    struct cost c, healthy;
    double factor = 1;
    int src, dst, *ids = NULL, n = 2;

    if (a->op < 0) {
        if (input_endpoint(&m->topo, a->src, &src, err) < 0 ||
            input_endpoint(&m->topo, a->dst, &dst, err) < 0)
            return -1;
        matrix_pair(m, src, dst, (double)a->bytes, &c);
        matrix_pair_healthy(m, src, dst, (double)a->bytes, &healthy);
    } else {
        if (read_ranks(&m->topo, a->ranks, &ids, &n, err) < 0) {
            free(ids);
            return -1;
        }
        if (a->kernel) {
            matrix_ep(m, ids, n, (double)a->bytes, !strcmp(a->kernel, "ep_dispatch"), &c);
            healthy = (struct cost){.sec = NAN};
        } else {
            matrix_collective(m, (enum op)a->op, ids, n, (double)a->bytes, &c);
            matrix_expected(m, (enum op)a->op, ids, n, (double)a->bytes, &healthy);
            factor = op_bus_factor((enum op)a->op, n);
        }
        free(ids);
    }
    if (isnan(c.sec))
        return err_data(err, "not known: %s", c.source);
    if (a->json)
        print_json(m, a, n, factor, &c, &healthy);
    else
        print_text(a, factor, &c, &healthy);
    return 0;
}

int cmd_cost(int argc, char **argv)
{
    struct args a = {.op = -1};
    struct matrix m;
    struct err err;

    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    if (matrix_open(&m, a.word[0], a.fabric, a.racks, &err) < 0)
        return cmd_fail("cost", &err);
    int rc = answer(&m, &a, &err);
    matrix_free(&m);
    return rc < 0 ? cmd_fail("cost", &err) : EXIT_GOOD;
}
