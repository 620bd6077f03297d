/* SPDX-License-Identifier: BSD-3-Clause */
/* scaling.c - a collective curve at other numbers of ranks: exact on lines, and 8 ranks from 4 on
 * published curves ($RAILGAUGE_CURVES, else ../shared/datasets/nccl_curves.tsv; skipped without).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#include "base/stats.h"
#include "matrix/algorithm.h"
#include "matrix/ladder.h"
#include "small.h"

static void near(double a, double b, double share)
{
    if (!(fabs(a - b) <= share * fabs(b)))
        fail_msg("%.9g is not within %g of %.9g", a, share, b);
}

/* One host of 16 GPUs. */
static void host_of_gpus(struct matrix *m)
{
    matrix_init(m);
    m->transport = mem_strdup("nccl");
    small_topo(&m->topo, 1, 1, 16, true, ENDPOINT_GPU);
    small_tier(m, "nvlink", 1u << LEVEL_HOST, 7e-6, 370e9, false);
    small_tier(m, "fabric", 0, 6e-6, 49e9, true);
}

static void add(struct matrix *m, enum op op, int ranks, const struct curve *curve)
{
    struct collective c = {.op = op,
                           .shape = {ranks, 1, ranks, 1, ranks, 1},
                           .curve = *curve,
                           .basis = BASIS_MEASURED};

    MEM_PUSH(m->collective, m->collectives) = c;
}

static double ask(const struct matrix *m, enum op op, int ranks, double bytes)
{
    int ids[16];
    struct cost c;

    for (int i = 0; i < ranks; i++)
        ids[i] = i;
    matrix_collective(m, op, ids, ranks, bytes, &c);
    return c.sec;
}

TEST(latency_follows_hops_of_rings_and_peers_of_exchanges)
{
    const double alpha = 9e-6, Bps = 500e9;
    struct matrix m;

    host_of_gpus(&m);
    for (int op = OP_ALL_GATHER; op <= OP_ALL_REDUCE; op++) {
        struct curve line = {0};
        curve_line(&line, alpha, Bps);
        add(&m, op, 4, &line);
    }
    for (double s = 1024; s < 8e9; s *= 4) {
        double busy = s / Bps * (7.0 / 8) / (3.0 / 4);
        near(ask(&m, OP_ALL_GATHER, 8, s), alpha + algorithm_further(4, busy, busy), 1e-6);
        near(ask(&m, OP_REDUCE_SCATTER, 8, s), alpha + algorithm_further(4, busy, busy), 1e-6);
        near(ask(&m, OP_ALL_REDUCE, 8, s), alpha + algorithm_further(8, busy, busy), 1e-6);
        near(ask(&m, OP_ALL_TO_ALL, 8, s), alpha + 4 * PROTOCOL_PEER + busy, 1e-6);
    }
    near(ask(&m, OP_ALL_GATHER, 2, 8), alpha - 2 * PROTOCOL_HOP_LL, 1e-4);
    near(ask(&m, OP_ALL_REDUCE, 2, 8), alpha / 2, 0.2); /* never less than the tree's */
    matrix_free(&m);
}

static double median_error(const struct ladders *l, enum op op)
{
    double *error = NULL, median;
    int n = 0;

    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < l->count; k++) {
            const struct ladder *four = &l->ladder[i], *eight = &l->ladder[k];
            bool nvlink = strstr(four->system, "sxm");
            if (!nvlink || op_find(four->op) != (int)op || four->ranks != 4 || eight->ranks != 8 ||
                strcmp(four->system, eight->system) || strcmp(four->version, eight->version) ||
                strcmp(four->op, eight->op))
                continue;
            struct matrix m;
            struct curve c = {0};
            host_of_gpus(&m);
            for (int p = 0; p < four->curve.points; p++)
                curve_add(&c, four->curve.point[p]);
            curve_summarise(&c);
            add(&m, op, 4, &c);
            for (int p = 0; p < eight->curve.points; p++)
                MEM_PUSH(error, n) = fabs(
                    ask(&m, op, 8, eight->curve.point[p].bytes) / eight->curve.point[p].sec - 1);
            matrix_free(&m);
        }
    assert_true(n > 50);
    median = error ? stats_median(error, n) : NAN;
    print_message("%s of 8 ranks from 4: median error %.1f %% of %d\n", op_name(op), 100 * median,
                  n);
    free(error);
    return median;
}

TEST(eight_ranks_from_four_on_published_curves)
{
    const char *env = getenv("RAILGAUGE_CURVES");
    const char *path = env ? env : "../shared/datasets/nccl_curves.tsv";
    struct ladders l;
    struct err err;

    if (access(path, R_OK) != 0) {
        print_message("skipped: no table of published curves (RAILGAUGE_CURVES)\n");
        skip();
    }
    if (ladders_load(&l, path, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(median_error(&l, OP_ALL_GATHER) < 0.12); /* 9 % */
    assert_true(median_error(&l, OP_ALL_REDUCE) < 0.12); /* 11 % */
    assert_true(median_error(&l, OP_ALL_TO_ALL) < 0.15); /* 23 % with the depth of a tree */
    ladders_free(&l);
}
