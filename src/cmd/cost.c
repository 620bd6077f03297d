/* SPDX-License-Identifier: BSD-3-Clause */
/* cost.c - railgauge cost: cost of a transfer or a collective. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "matrix/collective.h"
#include "matrix/reference.h"

struct cost_answer {
    const char *op; /* "pair", "all_gather", "ep_dispatch" */
    bool bus;       /* the rate is a bus bandwidth */
    double factor;  /* factor from bytes to the bytes of the rate */
    size_t bytes;
    int ranks;
    struct cost cost, healthy; /* healthy.sec NAN: not known */
    char reference[80];        /* source of healthy, in words */
};

/* NAN: nothing is sent, or source and destination are the same. */
static double rate(const struct cost_answer *a)
{
    return a->bytes > 0 && a->cost.sec > 0 ? (double)a->bytes * a->factor / a->cost.sec : NAN;
}

static double share(const struct cost_answer *a)
{
    return reference_share(&a->healthy, a->cost.sec);
}

/* New reference; m names the slowing part. */
static json_t *cost_json(const struct cost_answer *a, const struct matrix *m)
{
    const struct cost *c = &a->cost;
    char part[256];
    bool known = isfinite(a->healthy.sec);
    json_t *out = json_pack(
        "{s:s, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:b}", "op", a->op,
        "ranks", a->ranks, "bytes", (json_int_t)a->bytes, "seconds", json_finite(c->sec),
        "low_seconds", json_finite(c->lo), "high_seconds", json_finite(c->hi), "expected_seconds",
        json_finite(a->healthy.sec), "of_expected", json_finite(share(a)), "expected_source",
        known ? json_string(a->healthy.source) : json_null(), "expected_from",
        known ? json_string(a->reference) : json_null(), "basis", basis_name[c->basis], "source",
        c->source, "extrapolated_from_bytes",
        c->from > 0 ? json_integer((json_int_t)c->from) : json_null(),
        a->bus ? "busbw_Bps" : "algbw_Bps", json_finite(rate(a)), "dead", isinf(c->sec) != 0);

    if (c->exception >= 0)
        json_object_set_new(out, "slowed_by",
                            json_string(matrix_part(m, &m->exception[c->exception], part)));
    if (c->foreign)
        json_object_set_new(out, "not_modelled", json_string(c->foreign));
    return out;
}

static void cost_text(FILE *out, const struct cost_answer *a, const struct matrix *m)
{
    const struct cost *c = &a->cost;
    char t[4][UNITS_TEXT], part[MATRIX_PART], *line;

    if (isinf(c->sec) && c->exception >= 0)
        line = mem_printf("does not finish: %s is dead",
                          matrix_part(m, &m->exception[c->exception], part));
    else if (isinf(c->sec))
        line = mem_strdup("does not finish: a part on the way is dead");
    else
        line = mem_printf("%s  (%s to %s)", units_seconds_text(t[0], c->sec),
                          units_seconds_text(t[1], c->lo), units_seconds_text(t[2], c->hi));
    if (isfinite(c->sec) && isfinite(rate(a)))
        line = mem_append(line, ", %s %s", a->bus ? "bus bandwidth" : "bandwidth",
                          units_rate_text(t[3], rate(a)));
    table_wrap(out, 2, "%s", line);
    free(line);
    table_wrap(out, 4, "  from: %s", c->source);
    if (!isfinite(share(a)))
        return;
    table_wrap(out, 4, "  expected of a healthy fabric: %s (%s), this is %.0f %% of that speed",
               units_seconds_text(t[0], a->healthy.sec), a->reference, 100 * share(a));
}

/* --- the command --- */

struct args {
    const char *ranks, *src, *dst, *word[4];
    int op;
    const char *kernel; /* expert-parallel kernel, run by all ranks: "ep_dispatch"; NULL */
    int algorithm;      /* 0: as NCCL chooses */
    size_t bytes;
    struct input_args in;
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
    struct near near = {.word = name};
    op_each(near_try, &near);
    return err_usage(err,
                     "no collective \"%s\"%s; known: " OP_COLLECTIVE_WORDS "ep_dispatch ep_combine",
                     name, near_text(&near));
}

static int take_op(void *args, char *name, struct err *err)
{
    return parse_op(args, name, err);
}

/* Software by name.  why: reason that there is no price; ALGORITHM_NAMES are those with a price. */
#define ALGORITHM_NAMES "ring, tree, nvls, nvlstree, pat, sharp"
static const struct {
    const char *name;
    enum algorithm algorithm;
    const char *why;
} algorithms[] = {
    {"ring", ALGORITHM_RING, NULL},
    {"tree", ALGORITHM_TREE, NULL},
    {"nvls", ALGORITHM_NVLS, NULL},
    {"nvlstree", ALGORITHM_NVLS_TREE, NULL},
    {"pat", ALGORITHM_PAT, NULL},
    {"sharp", ALGORITHM_SHARP, NULL},
    {"collnet", ALGORITHM_CHAIN, "only SHARP together with NVLS is: sharp"},
    {"symmetric", ALGORITHM_CHAIN, "kernels on registered windows have no public curves"},
    {"copy-engine", ALGORITHM_CHAIN, "collectives by copy engines have no public curves"},
    {"rccl", ALGORITHM_CHAIN, "its tuner chooses otherwise than NCCL's"},
    {"efa", ALGORITHM_CHAIN, "its tuner chooses otherwise than NCCL's"},
    {"gib", ALGORITHM_CHAIN, "its tuner chooses otherwise than NCCL's"},
    {"tcpx", ALGORITHM_CHAIN, "its tuner chooses otherwise than NCCL's"},
    {"ucc", ALGORITHM_CHAIN, "it has algorithms of its own"},
    {"mpi", ALGORITHM_CHAIN, "it has algorithms of its own"},
};
enum { ALGORITHMS = sizeof(algorithms) / sizeof(*algorithms) };

static void algorithm_each(name_taker *take, void *to)
{
    for (int i = 0; i < ALGORITHMS && !algorithms[i].why; i++)
        take(to, algorithms[i].name);
}

static int take_algorithm(void *args, char *name, struct err *err)
{
    struct near near = {.word = name};
    struct args *a = args;

    for (int i = 0; i < ALGORITHMS; i++) {
        if (strcmp(name, algorithms[i].name) != 0)
            continue;
        a->algorithm = (int)algorithms[i].algorithm;
        return !algorithms[i].why
                   ? 0
                   : err_usage(
                         err,
                         "\"%s\" is not modelled: %s (without --algo a price is that of curves "
                         "and of NCCL's ring and trees)",
                         name, algorithms[i].why);
    }
    algorithm_each(near_try, &near);
    return err_usage(err, "no algorithm \"%s\"%s; known: " ALGORITHM_NAMES, name, near_text(&near));
}

static const struct opt options[] = {
    {"algo", 0, "NAME",
     "an algorithm of NCCL, priced by the model without curves: " ALGORITHM_NAMES
     " (default: as NCCL chooses)",
     OPT_CALL(take_algorithm), .values = algorithm_each},
    {"op", 0, "NAME",
     "collective: all_gather, reduce_scatter, all_to_all, all_reduce ..., or the kernels "
     "ep_dispatch, ep_combine",
     OPT_CALL(take_op), .values = op_each},
    {"ranks", 0, "LIST", "endpoints of the collective in rank order: 0-71 or 0,4,8 (default: all)",
     OPT_INTO(struct args, ranks)},
    {"bytes", 0, "SIZE", "largest buffer of one rank, as in nccl-tests: 64M, 1G",
     OPT_INTO(struct args, bytes)},
    INPUT_JSON(struct args, in.json),
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct args, word[0])},
                                   {"what", OPT_INTO(struct args, word[1]), .values = op_each},
                                   {"whom", OPT_INTO(struct args, word[2])},
                                   {"bytes", OPT_INTO(struct args, word[3])},
                                   {0}};

/* Assign the words: [MATRIX] SRC DST BYTES, [MATRIX] OP RANKS BYTES, or [MATRIX] with --op. */
static int sort_words(void *args, struct err *err)
{
    struct args *a = args;
    const char **w = a->word + !a->in.fabric;
    int n = 0;

    while (n < 4 && a->word[n])
        n++;
    n -= !a->in.fabric;
    if (n < 0)
        return err_usage(err, "give a matrix file or --fabric");
    a->in.file = a->in.fabric ? NULL : a->word[0];
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
    return a->algorithm ? err_usage(err, "--algo is for collectives") : 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = sort_words,
    .set = {INPUT_PRESET(struct args, in)},
    .usage = "MATRIX SRC DST BYTES\nMATRIX OP RANKS BYTES\n--fabric NAME [--racks N] ...",
    .doc = "Print the time of one transfer or one collective, and where the number comes "
           "from.\vSRC and DST are HOST:INDEX or endpoint ids. Each answer names its "
           "curve or model, and the part that slows it.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Print the time of a transfer of 1 MiB",
                        "railgauge cost campaign r00n00:0 r00n01:0 1M"),
            OPT_EXAMPLE("Print the time of a collective of eight endpoints",
                        "railgauge cost campaign all_gather 0-7 64M"),
            OPT_EXAMPLE("Print the time of a collective of chosen ranks, as JSON",
                        "railgauge cost campaign --op all_reduce --ranks 0,4,8 --bytes 1G --json"),
            OPT_EXAMPLE("Ask a preset",
                        "railgauge cost --fabric gb200-nvl72 --racks 2 all_to_all 0-143 256M"),
            {0}},
    .exits = EXIT_CODES("", ""),
};

/* A rank in the list twice would be two ranks that share everything. */
static int check_once(const int *ids, int n, int endpoints, struct err *err)
{
    bool *seen = mem_calloc((size_t)endpoints + 1, sizeof(*seen));
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        if (seen[ids[i]])
            rc = err_usage(err, "endpoint %d is there twice", ids[i]);
        seen[ids[i]] = true;
    }
    free(seen);
    return rc;
}

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
    if (rc == 0)
        rc = check_once(*ids, *n, t->endpoints, err);
    if (rc < 0)
        return err_wrap(err, "ranks \"%s\"", text);
    return *n > 1 ? 0 : err_usage(err, "ranks \"%s\": a collective needs two", text);
}

static int price_pair(struct cost_answer *x, const struct matrix *m, const struct args *a,
                      struct err *err)
{
    int src, dst;

    if (input_endpoint(&m->topo, a->src, &src, err) < 0 ||
        input_endpoint(&m->topo, a->dst, &dst, err) < 0)
        return -1;
    matrix_pair(m, src, dst, (double)a->bytes, &x->cost);
    matrix_pair_healthy(m, src, dst, (double)a->bytes, &x->healthy);
    snprintf(x->reference, sizeof(x->reference), "healthy pairs of its tier");
    return 0;
}

static void of_reference(struct cost_answer *x, const struct matrix *m, enum op op, const int *ids)
{
    struct reference r;

    reference_open(&r, m);
    reference_collective(&r, op, ids, x->ranks, 1, (double)x->bytes, &x->healthy);
    reference_words(&r, &x->healthy, x->reference);
    reference_free(&r);
}

static int price_group(struct cost_answer *x, const struct matrix *m, const struct args *a,
                       struct err *err)
{
    int *ids, rc = read_ranks(&m->topo, a->ranks, &ids, &x->ranks, err);
    enum op op = (enum op)a->op;

    if (rc == 0 && a->kernel)
        matrix_ep(m, ids, x->ranks, (double)a->bytes, NAN, NAN, !strcmp(a->kernel, "ep_dispatch"),
                  &x->cost);
    if (rc == 0 && !a->kernel) {
        matrix_collective(m, op, ids, x->ranks, (double)a->bytes, &x->cost);
        of_reference(x, m, op, ids);
        x->factor = op_bus_factor(op, x->ranks);
    }
    free(ids);
    return rc;
}

static int answer(const struct matrix *m, const struct args *a, struct err *err)
{
    struct cost_answer x = {.op = a->kernel   ? a->kernel
                                  : a->op < 0 ? "pair"
                                              : op_name((enum op)a->op),
                            .bus = a->op >= 0 && !a->kernel,
                            .factor = 1,
                            .bytes = a->bytes,
                            .ranks = 2,
                            .healthy = {.sec = NAN}};

    if ((a->op < 0 ? price_pair(&x, m, a, err) : price_group(&x, m, a, err)) < 0)
        return -1;
    if (isnan(x.cost.sec))
        return err_data(err, "not known: %s", x.cost.source);
    if (a->in.json)
        return json_answer(json_framed("railgauge-cost", NULL, cost_json(&x, m)), NULL, true, err);
    cost_text(stdout, &x, m);
    return 0;
}

static int cmd_cost(int argc, char **argv, struct err *err)
{
    struct args a = {.op = -1};
    struct matrix m;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (matrix_open(&m, a.in.file, a.in.fabric, a.in.racks, err) < 0)
        return -1;
    m.algorithm = a.algorithm;
    int rc = answer(&m, &a, err);
    matrix_free(&m);
    return rc;
}

const struct command cost_command = {&command, cmd_cost};
