/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted against published steps: dense models whose whole set-up was published.  The table is
 * not part of this tree ($RAILGAUGE_STEPS, else ../shared/datasets/measured_steps.tsv); without it
 * the test skips. Rows marked test_* took no part in fitting the constants. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/tsv.h"
#include "step/predict.h"
#include "test.h"

static struct tsv table;
static bool have_table;

static const struct {
    const char *hardware, *fabric;
    int per_rack; /* ranks that a job takes of a rack; recipes leave two trays of an NVL72 idle */
} machines[] = {{"H100", "hgx-h100", 0},
                {"H200", "hgx-h200", 0},
                {"B200", "hgx-b200", 0},
                {"GB200", "gb200-nvl72", 64},
                {"GB300", "gb300-nvl72", 64}};

static int load(void **state)
{
    const char *env = getenv("RAILGAUGE_STEPS");
    const char *path = env ? env : "../shared/datasets/measured_steps.tsv";

    (void)state;
    have_table = access(path, R_OK) == 0;
    return have_table ? tsv_load(&table, path, NULL) : 0;
}

static int unload(void **state)
{
    (void)state;
    if (have_table)
        tsv_free(&table);
    return 0;
}

static const char *cell(int row, const char *name)
{
    return table.row[row].cell[tsv_find(&table, name)];
}

static int whole(int row, const char *name)
{
    int x = 0;

    return tsv_int(&table, row, tsv_find(&table, name), 1, 1 << 30, &x, NULL) < 0 ? 1 : x;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Dense pre-training with every setting known, on a stack that the constants were fitted for. */
static bool is_usable(int row)
{
    return begins(cell(row, "model"), "llama3.1-") && begins(cell(row, "layout_known"), "full") &&
           !strchr(cell(row, "dtype"), '?') && !strstr(cell(row, "notes"), "LoRA") &&
           !strstr(cell(row, "source"), "torchtitan") && *cell(row, "tp") &&
           *cell(row, "global_batch") &&
           (!strcmp(cell(row, "metric"), "step_time") ||
            !strcmp(cell(row, "metric"), "tps_per_gpu"));
}

static void take_recipe(struct recipe *r, int row)
{
    const char *dtype = cell(row, "dtype");

    recipe_defaults(r);
    r->strategy = strstr(cell(row, "zero_stage/fsdp"), "FSDP") ? STRATEGY_FSDP : STRATEGY_ZERO1;
    r->dtype = strstr(dtype, "fp4") ? DTYPE_NVFP4 : strstr(dtype, "fp8") ? DTYPE_FP8 : DTYPE_BF16;
    r->recompute = !strcmp(cell(row, "recompute"), "full") ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    r->seq = whole(row, "seq_len");
    r->global_batch = whole(row, "global_batch");
    r->micro_batch = whole(row, "micro_batch");
    if (whole(row, "pp") > 1 && whole(row, "vp") > 1) {
        r->stages = whole(row, "vp");
        r->schedule = SCHEDULE_INTERLEAVED;
    }
}

static double published_seconds(int row, const struct recipe *r)
{
    double x = 0;

    assert_int_equal(tsv_double(&table, row, tsv_find(&table, "value"), 1e-6, 1e9, &x, NULL), 0);
    if (!strcmp(cell(row, "metric"), "step_time"))
        return x;
    return (double)r->global_batch * r->seq / (x * whole(row, "gpus"));
}

static int *racks_of(int gpus, int per_rack)
{
    int *order = mem_calloc((size_t)gpus, sizeof(*order));

    for (int i = 0; i < gpus; i++)
        order[i] = per_rack ? i / per_rack * 72 + i % per_rack : i;
    return order;
}

/* predicted / published - 1, and is the published time in the interval?  NAN: not a machine of
 * ours. */
static double error_of(int row, bool *inside)
{
    int gpus = whole(row, "gpus"), tp = whole(row, "tp"), pp = whole(row, "pp"),
        cp = whole(row, "cp");
    size_t k = 0;

    while (k < sizeof(machines) / sizeof(*machines) &&
           strcmp(machines[k].hardware, cell(row, "hardware")))
        k++;
    if (k == sizeof(machines) / sizeof(*machines))
        return NAN;
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct prediction p;
    take_recipe(&recipe, row);
    char *text = mem_printf("pp=%d,dp=%d,cp=%d,tp=%d", pp, gpus / (tp * pp * cp), cp, tp);
    assert_int_equal(fabric_load(&fabric, machines[k].fabric, NULL), 0);
    int per =
        machines[k].per_rack ? machines[k].per_rack : fabric.gpus_per_host * fabric.hosts_per_rack;
    assert_int_equal(matrix_from_fabric(&matrix, &fabric, (gpus + per - 1) / per, NULL), 0);
    assert_int_equal(model_load(&model, cell(row, "model"), NULL), 0);
    assert_int_equal(constants_load(&constants, NULL, NULL), 0);
    assert_int_equal(layout_parse(&layout, text, recipe.strategy, ORDER_MEGATRON, gpus, NULL), 0);
    assert_int_equal(layout_check(&layout, &model, &recipe, NULL), 0);
    int *order = racks_of(gpus, gpus > 64 ? machines[k].per_rack : 0);
    struct question q = {.matrix = &matrix,
                         .fabric = &fabric,
                         .model = &model,
                         .layout = &layout,
                         .recipe = &recipe,
                         .order = order,
                         .constants = &constants};
    assert_int_equal(predict_step(&p, &q, NULL), 0);
    double published = published_seconds(row, &recipe), error = p.sec / published - 1;
    *inside = p.lo <= published && published <= p.hi;
    prediction_free(&p);
    free(order);
    free(text);
    matrix_free(&matrix);
    fabric_free(&fabric);
    model_free(&model);
    constants_free(&constants);
    return error;
}

/* Median and 90th percentile of |error| over the rows whose split begins so; share inside. */
static void score(const char *split, double *median, double *p90, double *share)
{
    double *error = mem_calloc((size_t)table.rows, sizeof(*error));
    int n = 0, in = 0;

    for (int i = 0; i < table.rows; i++) {
        bool inside = false;
        if (!begins(cell(i, "split"), split) || !is_usable(i))
            continue;
        double e = fabs(error_of(i, &inside));
        if (isfinite(e))
            error[n++] = e;
        in += inside;
    }
    assert_true(n >= 10);
    stats_sort(error, n);
    *median = stats_quantile(error, n, 0.5);
    *p90 = stats_quantile(error, n, 0.9);
    *share = (double)in / n;
    print_message(
        "%s: %d dense steps without an anchor: median error %.1f %%, p90 %.1f %%, %.0f %% "
        "inside the interval\n",
        split, n, 100 * *median, 100 * *p90, 100 * *share);
    free(error);
}

/* Measured 4.6 % and 13.2 %. */
TEST(the_fitted_steps_are_met)
{
    double median, p90, inside;

    if (!have_table) {
        print_message("skipped: no table of published steps (RAILGAUGE_STEPS)\n");
        skip();
    }
    score("calib", &median, &p90, &inside);
    assert_true(median < 0.1);
    assert_true(p90 < 0.18);
    assert_true(inside >= 0.8);
}

/* Measured 3.2 % and 8.2 %. */
TEST(steps_that_were_held_back_are_met)
{
    double median, p90, inside;

    if (!have_table) {
        print_message("skipped: no table of published steps (RAILGAUGE_STEPS)\n");
        skip();
    }
    score("test_", &median, &p90, &inside);
    assert_true(median < 0.1);
    assert_true(p90 < 0.15);
    assert_true(inside >= 0.8);
}

TEST_GROUP(load, unload)
