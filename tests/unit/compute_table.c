/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices do alone: compute.tsv -> matrix -> the rates of a step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/stats.h"
#include "fit/fit.h"
#include "matrix/matrix.h"
#include "small.h"
#include "step/predict.h"
#include "step/search/eval.h"
#include "step/work.h"

static struct device_row row(int endpoint, enum device_kind kind, double value)
{
    struct device_row r = {.endpoint = endpoint,
                           .kind = kind,
                           .value = value,
                           .lo = value * 0.99,
                           .hi = value * 1.01,
                           .samples = 30,
                           .gpu = "NVIDIA H200",
                           .busid = "0000:1b:00.0",
                           .host = "n00"};

    if (kind == DEVICE_GEMM)
        r.shape = (struct gemm_shape){GEMM_BF16, 8192, 4096, 4096};
    return r;
}

static void push(struct device_table *t, struct device_row r)
{
    MEM_PUSH(t->row, t->rows) = r;
}

/* `devices` GPUs of 700 TFLOP/s and 4 TB/s; one of them has its own rate of products. */
static struct device_table table(int devices, int odd, double odd_share)
{
    struct device_table t = {NULL, 0};
    struct rng rng;

    rng_seed(&rng, 7);
    for (int e = 0; e < devices; e++)
        for (int k = 0; k < 5; k++) {
            struct device_row r =
                row(e, DEVICE_GEMM,
                    700e12 * (e == odd ? odd_share : 1) * (1 + 0.004 * rng_normal(&rng)) / (1 + k));
            r.shape.n = 4096 >> k;
            push(&t, r);
        }
    for (int e = 0; e < devices; e++) {
        struct device_row r = row(e, DEVICE_HBM_COPY, 4e12);
        r.limit = 4.8e12;
        push(&t, r);
        push(&t, row(e, DEVICE_LOAD, 600e-9));
    }
    return t;
}

static const struct finding *find(const struct matrix *m, const char *kind)
{
    for (int i = 0; i < m->findings; i++)
        if (!strcmp(m->finding[i].kind, kind))
            return &m->finding[i];
    return NULL;
}

static void a_slow_gpu_is_named_and_left_out(void **state)
{
    static const int devices[] = {2, 3, 8};
    struct err err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct device_table t = table(devices[i], 1, 0.9);
        struct matrix m;
        small_matrix(&m);
        assert_int_equal(fit_compute(&m, &t, NULL, &err), 0);
        const struct finding *f = find(&m, "slow_gpu");
        assert_non_null(f);
        assert_non_null(strstr(f->text, "endpoint 1 (n00:1"));
        assert_non_null(strstr(f->text, "matrix products at 0.9"));
        assert_int_equal(m.findings, 1); /* its memory is as good as the others' */
        assert_int_equal(m.compute.gemms, 5);
        for (int k = 0; k < 5; k++) {
            const struct gemm_rate *g = &m.compute.gemm[4 - k];
            assert_int_equal(g->devices, devices[i] - 1);
            assert_true(fabs(g->flops * (1 + k) / 700e12 - 1) < 0.01);
            assert_true(g->n == (double)(4096 >> k));
        }
        assert_float_equal(m.compute.alone[ALONE_HBM], 4e12, 1);
        assert_float_equal(m.compute.share[ALONE_HBM], 4 / 4.8, 1e-9);
        assert_float_equal(m.compute.alone[ALONE_LATENCY], 600e-9, 1e-15);
        matrix_free(&m);
        device_free(&t);
    }
}

static void what_scatters_is_not_slow(void **state)
{
    struct err err;

    (void)state;
    struct device_table t = table(8, 1, 0.97), one = table(1, -1, 1);
    struct matrix m, alone;
    small_matrix(&m);
    assert_int_equal(fit_compute(&m, &t, NULL, &err), 0);
    assert_int_equal(m.findings, 0);
    assert_int_equal(m.compute.gemm[0].devices, 8);
    small_matrix(&alone); /* with nothing beside it nobody is slow */
    assert_int_equal(fit_compute(&alone, &one, NULL, &err), 0);
    assert_int_equal(alone.findings, 0);
    matrix_free(&m);
    matrix_free(&alone);
    device_free(&t);
    device_free(&one);
}

/* One host launches more slowly than the others. */
static void no_gpu_is_blamed_for_its_hosts_launches(void **state)
{
    struct device_table t = {NULL, 0};
    struct matrix m;
    struct err err;

    (void)state;
    for (int e = 0; e < 4; e++) {
        struct device_row load = row(e, DEVICE_LOAD, 600e-9),
                          launch = row(e, DEVICE_LAUNCH, e == 1 ? 9e-6 : 2e-6);
        MEM_PUSH(t.row, t.rows) = load;
        MEM_PUSH(t.row, t.rows) = launch;
    }
    small_matrix(&m);
    assert_int_equal(fit_compute(&m, &t, NULL, &err), 0);
    assert_int_equal(m.findings, 0);
    matrix_free(&m);
    t.row[2].value = 900e-9; /* but a slow memory is its own */
    small_matrix(&m);
    assert_int_equal(fit_compute(&m, &t, NULL, &err), 0);
    assert_int_equal(m.findings, 1);
    assert_non_null(strstr(m.finding[0].text, "endpoint 1 "));
    assert_non_null(strstr(m.finding[0].text, "latency at 0.67"));
    matrix_free(&m);
    device_free(&t);
}

static void what_all_devices_lack_and_links_below_their_form_are_told(void **state)
{
    struct device_table t = {NULL, 0};
    struct matrix m;
    struct err err;

    (void)state;
    for (int e = 0; e < 4; e++) {
        struct device_row r = row(e, DEVICE_H2D, 25e9);
        r.limit = 63e9;
        if (e == 2)
            snprintf(r.note, sizeof(r.note), "the PCIe link is trained at gen 3 x16 of gen 5 x16");
        push(&t, r);
    }
    small_matrix(&m);
    assert_int_equal(fit_compute(&m, &t, NULL, &err), 0);
    assert_string_equal(find(&m, "below_limit")->text,
                        "h2d of 4 GPUs: 25 GB/s, 0.40 of what the hardware allows");
    assert_non_null(strstr(find(&m, "host_link")->text, "endpoint 2 (n00 0000:1b:00.0): the PCIe"));
    matrix_free(&m);
    device_free(&t);
}

static void rows_of_an_unknown_endpoint_are_refused(void **state)
{
    struct device_table t = {NULL, 0};
    struct matrix m;
    struct err err;

    (void)state;
    push(&t, row(16, DEVICE_HBM_COPY, 1e12));
    small_matrix(&m);
    assert_int_equal(fit_compute(&m, &t, NULL, &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text, "compute figures of endpoint 16: the topology has 16 endpoints");
    matrix_free(&m);
    device_free(&t);
}

static void the_file_gives_back_what_was_saved(void **state)
{
    struct device_table t = table(2, -1, 1), back;
    char path[] = "/tmp/railgauge-compute-XXXXXX";
    struct err err;

    (void)state;
    struct device_row none = row(1, DEVICE_H2D, NAN);
    none.lo = none.hi = NAN;
    none.samples = 0;
    snprintf(none.note, sizeof(none.note), "why\tnot");
    push(&t, none);
    close(mkstemp(path));
    assert_int_equal(device_save(&t, path, &err), 0);
    if (device_load(&back, path, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(back.rows, t.rows);
    for (int i = 0; i < t.rows; i++) {
        assert_int_equal(back.row[i].endpoint, t.row[i].endpoint);
        assert_int_equal(back.row[i].kind, t.row[i].kind);
        assert_memory_equal(&back.row[i].shape, &t.row[i].shape, sizeof(t.row[i].shape));
        assert_string_equal(back.row[i].busid, t.row[i].busid);
        if (i + 1 < t.rows)
            assert_true(fabs(back.row[i].value / t.row[i].value - 1) < 1e-8);
    }
    assert_true(isnan(back.row[t.rows - 1].value));
    assert_string_equal(back.row[t.rows - 1].note, "why not");
    unlink(path);
    device_free(&t);
    device_free(&back);
}

static void bad_files_are_refused_by_line_and_reason(void **state)
{
    static const char head[] = "endpoint\thost\tgpu\tbusid\tkind\tdtype\tm\tn\tk\tunit\tvalue\tlo\t"
                               "hi\tsamples\tlimit\tnote\n";
    static const struct {
        const char *row, *why;
    } bad[] = {
        {"0\tn\tg\tb\thbm\t-\t0\t0\t0\tB/s\t1\t1\t1\t9\t0\t-\n", ":3: column kind: \"hbm\""},
        {"0\tn\tg\tb\tgemm\tfp4\t1\t1\t1\tFLOP/s\t1\t1\t1\t9\t0\t-\n", "gemm of \"fp4\""},
        {"0\tn\tg\tb\th2d\tbf16\t0\t0\t0\tB/s\t1\t1\t1\t9\t0\t-\n", "h2d of \"bf16\""},
        {"0\tn\tg\tb\th2d\t-\t4\t0\t0\tB/s\t1\t1\t1\t9\t0\t-\n", "column m"},
        {"0\tn\tg\tb\tgemm\tbf16\t0\t4\t4\tFLOP/s\t1\t1\t1\t9\t0\t-\n", "column m"},
        {"0\tn\tg\tb\th2d\t-\t0\t0\t0\tGB/s\t1\t1\t1\t9\t0\t-\n", "h2d is in B/s, not in \"GB/s\""},
        {"0\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t5\t6\t7\t9\t0\t-\n", "a median of 5 in 6..7"},
        {"0\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t5\t5\t5\t0\t0\t-\n", "0 samples with a median of 5"},
        {"0\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t0\t0\t0\t0\t0\t-\n", "0 samples with a median of 0"},
        {"0\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t-1\t1\t1\t9\t0\t-\n", "column value"},
        {"x\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t1\t1\t1\t9\t0\t-\n", ":3: column endpoint"},
        {"0\tn\tg\tb\th2d\n", "5 columns where the header has 16"},
        {"0\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t1\t1\t1\t9\t0\t-\n"
         "0\tn\tg\tb\th2d\t-\t0\t0\t0\tB/s\t2\t2\t2\t9\t0\t-\n",
         "endpoint 0 has h2d twice"},
    };
    struct device_table t;
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char *text = mem_printf("# railgauge-compute 1\n%s%s", head, bad[i].row);
        assert_int_equal(device_parse(&t, "c.tsv", text, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].why))
            fail_msg("\"%s\" is not in \"%s\"", bad[i].why, err.text);
        assert_null(t.row);
    }
    assert_int_equal(device_parse(&t, "c.tsv", mem_strdup("# railgauge-points 1\n"), &err), -1);
    assert_string_equal(err.text, "c.tsv:1: the first line is not \"# railgauge-compute 1\"");
    assert_int_equal(device_parse(&t, "c.tsv", mem_strdup("# railgauge-compute 1\na\n"), &err), -1);
    assert_string_equal(err.text, "c.tsv: no column \"endpoint\"");
}

static void the_golden_example_is_read(void **state)
{
    struct device_table t;
    struct err err;

    (void)state;
    if (device_load(&t, "tests/golden/compute.tsv", &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(t.rows, 6);
    assert_true(t.row[0].shape.dtype == GEMM_BF16 && t.row[0].shape.n == 6144);
    assert_true(t.row[1].kind == DEVICE_H2D && t.row[1].limit == 6.3e10);
    assert_true(isnan(t.row[2].value) && t.row[2].endpoint == 1);
    assert_string_equal(t.row[2].note, "no fp8 on this GPU");
    assert_true(t.row[3].shape.dtype == GEMM_MXFP8 && t.row[3].value == 3.6e15);
    assert_true(t.row[4].shape.dtype == GEMM_NVFP4 && t.row[4].value == 6.2e15);
    assert_true(t.row[5].shape.dtype == GEMM_NVFP4 && isnan(t.row[5].value));
    device_free(&t);
}

/* --- rates by shape --- */

static void add_gemm(struct compute_rates *c, const char *dtype, double m, double n, double k,
                     double flops)
{
    struct gemm_rate g = {.m = m, .n = n, .k = k, .flops = flops, .devices = 1};

    snprintf(g.dtype, sizeof(g.dtype), "%s", dtype);
    MEM_PUSH(c->gemm, c->gemms) = g;
    c->devices = 1;
}

/* Of m x 4096 x 4096. */
static double rate_at(const struct compute_rates *c, const char *dtype, double m, double *error)
{
    struct gemm_rate asked = {.m = m, .n = 4096, .k = 4096};

    snprintf(asked.dtype, sizeof(asked.dtype), "%s", dtype);
    return compute_rate(c, &asked, error);
}

static void shapes_between_measured_ones_lie_between_them(void **state)
{
    struct compute_rates c = {.flops = 0};
    double error, wide;

    (void)state;
    add_gemm(&c, "bf16", 4096, 4096, 4096, 600e12);
    add_gemm(&c, "bf16", 8192, 4096, 4096, 700e12);
    add_gemm(&c, "fp8", 8192, 4096, 4096, 1200e12);
    assert_float_equal(rate_at(&c, "bf16", 4096, &error), 600e12, 1);
    assert_float_equal(error, 0.02, 1e-12);
    double mid = rate_at(&c, "bf16", 4096 * sqrt(2), &wide);
    assert_float_equal(mid, sqrt(600e12 * 700e12), 1e6);
    assert_true(wide > 0.07 && wide < 0.09); /* the two differ by 7.7 % from their middle */
    assert_float_equal(rate_at(&c, "fp8", 1, &wide), 1200e12, 1);
    assert_true(wide > 0.15); /* far from anything that was measured */
    assert_true(rate_at(&c, "nvfp4", 1, &error) == 0);
    compute_free(&c);
}

static int products_of_models(struct gemm_shape **shape, int *count, const char *models,
                              struct err *err)
{
    struct device_kernel *kernel;
    int counts[2], rc = work_shapes(shape, &kernel, counts, models, err);

    *count = counts[0];
    free(kernel);
    return rc;
}

static void products_are_the_work_of_linear_layers(void **state)
{
    static const char *const names[] = {"llama3.1-8b", "llama3.1-70b", "gpt3-175b"};
    struct product p[PRODUCTS_MAX];
    struct err err;

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int tp = 1; tp <= 8; tp *= 2) {
            struct model model;
            struct recipe r;
            struct layout l;
            struct step step;
            struct work w;
            char text[32];
            double linear = 0, head = 0;
            if (model_load(&model, names[i], &err) < 0)
                fail_msg("%s", err.text);
            recipe_defaults(&r);
            snprintf(text, sizeof(text), "tp=%d", tp);
            assert_int_equal(layout_parse(&l, text, STRATEGY_FSDP, ORDER_MEGATRON, 0, NULL), 0);
            assert_int_equal(layout_check(&l, &model, &r, NULL), 0);
            step_of(&step, &model, &l, &r);
            work_of(&w, &step);
            int n = products_of(p, &model, r.seq, tp);
            for (int k = 0; k < n; k++)
                *(p[k].part == WORK_HEAD ? &head : &linear) +=
                    2 * p[k].m * p[k].n * p[k].k * p[k].times;
            assert_true(fabs(linear / w.mean.forward[WORK_LINEAR] - 1) < 1e-9);
            assert_true(fabs(head / w.mean.forward[WORK_HEAD] - 1) < 1e-9);
            model_free(&model);
        }
}

/* qkv, o, gate with up, down, head of the 8B model at tp 1: Llama 3 Herd of Models, table 3. */
static void shapes_of_a_model_are_those_that_its_layers_multiply(void **state)
{
    static const int want[][3] = {{8192, 6144, 4096},
                                  {8192, 4096, 4096},
                                  {8192, 28672, 4096},
                                  {8192, 4096, 14336},
                                  {8192, 128256, 4096}};
    int count, heads = 0, of[GEMM_DTYPES] = {0};
    struct gemm_shape *s;
    struct err err;

    (void)state;
    assert_int_equal(products_of_models(&s, &count, "llama3.1-8b", &err), 0);
    for (int i = 0; i < 5; i++) {
        int found = 0;
        for (int k = 0; k < count; k++)
            found += s[k].dtype == GEMM_BF16 && s[k].m == want[i][0] && s[k].n == want[i][1] &&
                     s[k].k == want[i][2];
        assert_int_equal(found, 1);
    }
    for (int k = 0; k < count; k++) {
        heads += s[k].dtype != GEMM_BF16 && (s[k].n == 128256 || s[k].m == 128256);
        of[s[k].dtype]++;
    }
    assert_int_equal(heads, 0);
    assert_true(of[GEMM_BF16] + of[GEMM_FP8] > 60 && of[GEMM_BF16] + of[GEMM_FP8] < 150);
    assert_true(of[GEMM_MXFP8] == of[GEMM_FP8] && of[GEMM_NVFP4] == of[GEMM_FP8]);
    free(s);
    assert_int_equal(products_of_models(&s, &count, "llama3.1-8b,no-such", &err), -1);
    assert_non_null(strstr(err.text, "no-such"));
    assert_int_equal(gemm_shapes_parse(&s, &count, "fp8:16x32x64,bf16:1x2x3", &err), 0);
    assert_true(count == 2 && s[0].dtype == GEMM_FP8 && s[0].k == 64 && s[1].m == 1);
    free(s);
    assert_int_equal(gemm_shapes_parse(&s, &count, "mxfp8:16x32x64,nvfp4:1x2x3", &err), 0);
    assert_true(count == 2 && s[0].dtype == GEMM_MXFP8 && s[1].dtype == GEMM_NVFP4);
    free(s);
    assert_int_equal(gemm_shapes_parse(&s, &count, "fp4:1x2x3", &err), -1);
    assert_string_equal(err.text, "\"fp4\" is not bf16, fp8, mxfp8 or nvfp4");
    assert_int_equal(gemm_shapes_parse(&s, &count, "fp8:1x2", &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_int_equal(gemm_shapes_parse(&s, &count, "fp8:1x2x0", &err), -1);
}

/* Both gradients of every product, in every dtype that layers have, at tp 1 and 8 (70B: hidden
 * 8192, 64 heads of 128 with 8 of k and v, 28672 wide; Llama 3 Herd of Models, table 3). */
static void gradients_of_every_product_are_measured(void **state)
{
    static const struct {
        const char *model;
        int n, k; /* of the forward product of 8192 tokens */
    } product[] = {
        {"llama3.1-8b", 6144, 4096},   {"llama3.1-8b", 4096, 4096},   {"llama3.1-8b", 28672, 4096},
        {"llama3.1-8b", 4096, 14336},  {"llama3.1-70b", 10240, 8192}, {"llama3.1-70b", 8192, 8192},
        {"llama3.1-70b", 57344, 8192}, {"llama3.1-70b", 8192, 28672}, {"llama3.1-70b", 1280, 8192},
        {"llama3.1-70b", 8192, 1024},  {"llama3.1-70b", 7168, 8192},  {"llama3.1-70b", 8192, 3584}};
    enum { TOKENS = 8192 };
    struct gemm_shape *s;
    struct err err;
    int count;

    (void)state;
    for (size_t i = 0; i < sizeof(product) / sizeof(*product); i++) {
        int n = product[i].n, k = product[i].k, found[GEMM_DTYPES] = {0};
        const int pass[3][3] = {{TOKENS, n, k}, {TOKENS, k, n}, {n, k, TOKENS}};
        assert_int_equal(products_of_models(&s, &count, product[i].model, &err), 0);
        for (int j = 0; j < count; j++)
            for (int p = 0; p < 3; p++)
                found[s[j].dtype] |=
                    (s[j].m == pass[p][0] && s[j].n == pass[p][1] && s[j].k == pass[p][2]) << p;
        for (int d = 0; d < GEMM_DTYPES; d++)
            assert_int_equal(found[d], 7);
        free(s);
    }
}

/* --- the step --- */

struct asked {
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct question question;
};

static void ask_on(struct asked *a, const char *fabric, const char *layout, int dtype)
{
    memset(a, 0, sizeof(*a));
    recipe_defaults(&a->recipe);
    a->recipe.dtype = dtype;
    assert_int_equal(fabric_load(&a->fabric, fabric, NULL), 0);
    assert_int_equal(matrix_from_fabric(&a->matrix, &a->fabric, 2, NULL), 0);
    assert_int_equal(model_load(&a->model, "llama3.1-8b", NULL), 0);
    assert_int_equal(constants_load(&a->constants, NULL, NULL), 0);
    assert_int_equal(layout_parse(&a->layout, layout, STRATEGY_FSDP, ORDER_MEGATRON, 0, NULL), 0);
    assert_int_equal(layout_check(&a->layout, &a->model, &a->recipe, NULL), 0);
    a->question = (struct question){.matrix = &a->matrix,
                                    .fabric = &a->fabric,
                                    .model = &a->model,
                                    .layout = &a->layout,
                                    .recipe = &a->recipe,
                                    .constants = &a->constants};
}

static void ask(struct asked *a, const char *layout, int dtype)
{
    ask_on(a, "hgx-h200", layout, dtype);
}

static void done(struct asked *a)
{
    matrix_free(&a->matrix);
    fabric_free(&a->fabric);
    model_free(&a->model);
    constants_free(&a->constants);
}

/* The truth: a rate that depends on the smallest dimension. */
static double truth(const char *dtype, double m, double n, double k)
{
    static const double best[GEMM_DTYPES] = {700e12, 1300e12, 1250e12, 2100e12};
    double least = fmin(m, fmin(n, k));
    int d = 0;

    while (strcmp(gemm_dtype_name[d], dtype))
        d++;
    return best[d] * least / (least + 512);
}

static void measure(struct matrix *m, const char *models, int dtypes)
{
    struct gemm_shape *s;
    int count;

    assert_int_equal(products_of_models(&s, &count, models, NULL), 0);
    for (int i = 0; i < count; i++) {
        const char *dtype = gemm_dtype_name[s[i].dtype];
        if ((int)s[i].dtype < dtypes)
            add_gemm(&m->compute, dtype, s[i].m, s[i].n, s[i].k,
                     truth(dtype, s[i].m, s[i].n, s[i].k));
    }
    free(s);
}

/* Seconds of the linear layers at the truth. */
static double linear_seconds(const struct asked *a, const char *dtype, double tp)
{
    struct product p[PRODUCTS_MAX];
    int n = products_of(p, &a->model, a->recipe.seq, tp);
    double sum = 0;

    for (int i = 0; i < n; i++)
        for (int pass = 0; pass < PASS_COUNT && p[i].part == WORK_LINEAR; pass++) {
            double m, w, k;
            product_pass(&p[i], pass, &m, &w, &k);
            sum += 2 * m * w * k * p[i].times / truth(dtype, m, w, k);
        }
    return sum;
}

static double term(const struct prediction *p, const char *label)
{
    for (int i = 0; i < p->terms; i++)
        if (!strcmp(p->term[i].label, label))
            return p->term[i].sec;
    fail_msg("no term %s", label);
    return 0;
}

static void predictions_take_the_measured_products(void **state)
{
    static const struct {
        const char *fabric, *layout;
        int dtype;
        double tp;
    } want[] = {{"hgx-h200", "dp_shard=16", DTYPE_BF16, 1},
                {"hgx-h200", "dp_shard=4,tp=4", DTYPE_BF16, 4},
                {"hgx-h200", "dp_shard=8,tp=2", DTYPE_FP8, 2},
                {"gb200-nvl72", "dp_shard=72,tp=2", DTYPE_MXFP8, 2},
                {"gb300-nvl72", "dp_shard=144", DTYPE_NVFP4, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct prediction before, after;
        struct asked a;
        struct err err;
        ask_on(&a, want[i].fabric, want[i].layout, want[i].dtype);
        assert_int_equal(predict_step(&before, &a.question, &err), 0);
        measure(&a.matrix, "llama3.1-8b,llama3.1-70b", GEMM_DTYPES);
        if (predict_step(&after, &a.question, &err) < 0)
            fail_msg("%s", err.text);
        double exact = linear_seconds(&a, recipe_name.dtype[want[i].dtype], want[i].tp);
        assert_true(fabs(term(&after, "matrix products") / exact / after.microbatches - 1) < 1e-6);
        assert_true(fabs(term(&before, "matrix products") / exact - 1) > 1e-4);
        assert_non_null(strstr(after.rate.source, "measured GEMM"));
        assert_int_equal(after.rate.basis, BASIS_MEASURED);
        assert_true(after.rate.error[WORK_LINEAR] < before.rate.error[WORK_LINEAR]);
        /* the attention core was not measured */
        assert_float_equal(after.rate.of[WORK_CORE], before.rate.of[WORK_CORE], 1);
        prediction_free(&before);
        prediction_free(&after);
        done(&a);
    }
}

static void shapes_that_were_not_measured_come_close(void **state)
{
    struct prediction p;
    struct asked a;
    struct err err;

    (void)state;
    ask(&a, "dp_shard=16", DTYPE_BF16);
    measure(&a.matrix, "llama3.1-70b", GEMM_DTYPES); /* of another model */
    assert_int_equal(predict_step(&p, &a.question, &err), 0);
    double exact = linear_seconds(&a, "bf16", 1);
    assert_true(fabs(term(&p, "matrix products") / exact / p.microbatches - 1) < 0.05);
    prediction_free(&p);
    done(&a);
}

static void a_machine_without_a_data_sheet_is_predicted_from_what_was_measured(void **state)
{
    struct prediction p;
    struct asked a;
    struct err err;

    (void)state;
    ask(&a, "dp_shard=16", DTYPE_BF16);
    a.question.fabric = NULL;
    assert_int_equal(predict_step(&p, &a.question, &err), -1);
    assert_non_null(strstr(err.text, "no compute rate is known"));
    prediction_free(&p);
    measure(&a.matrix, "llama3.1-8b", GEMM_MXFP8);
    a.matrix.compute.alone[ALONE_HBM] = 4e12;
    a.matrix.compute.share[ALONE_HBM] = 0.8;
    assert_int_equal(predict_step(&p, &a.question, &err), 0);
    assert_float_equal(p.rate.hbm_Bps, 5e12, 1);
    assert_non_null(strstr(p.rate.part_source[WORK_CORE], "best measured bf16 products"));
    assert_non_null(strstr(p.rate.part_source[WORK_MEMORY], "(measured)"));
    assert_true(isnan(p.mfu));
    prediction_free(&p);
    a.recipe.dtype = DTYPE_NVFP4;
    assert_int_equal(predict_step(&p, &a.question, &err), -1);
    assert_non_null(strstr(err.text, "no nvfp4 products were measured"));
    prediction_free(&p);
    measure(&a.matrix, "llama3.1-8b", GEMM_DTYPES); /* on a GPU that has them */
    assert_int_equal(predict_step(&p, &a.question, &err), 0);
    assert_non_null(strstr(p.rate.source, "measured GEMM: nvfp4 products"));
    prediction_free(&p);
    done(&a);
}

static void a_search_prices_each_layout_as_predict_does(void **state)
{
    static const char *const layout[] = {"dp_shard=16", "dp_shard=2,tp=8"};
    struct err err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct evaluation *v = mem_calloc(1, sizeof(*v));
        struct prediction p;
        struct asked a;
        struct eval e;
        ask(&a, layout[i], DTYPE_BF16);
        measure(&a.matrix, "llama3.1-8b", GEMM_MXFP8);
        assert_int_equal(predict_step(&p, &a.question, &err), 0);
        assert_int_equal(eval_open(&e, &a.question, &a.recipe, 16, &err), 0);
        eval_candidate(v, &e, &a.layout, &a.recipe);
        assert_true(v->fits);
        assert_true(fabs(v->timing.sec / p.sec - 1) < 1e-9);
        eval_close(&e);
        prediction_free(&p);
        done(&a);
        free(v);
    }
}

/* --- kernels other than products --- */

static const double kernel_truth[DEVICE_KINDS] = {
    [DEVICE_GROUPED] = 450e12, [DEVICE_ATTENTION] = 500e12, [DEVICE_ATTENTION_BACK] = 350e12,
    [DEVICE_NORM] = 2e12,      [DEVICE_GATE] = 2.2e12,      [DEVICE_ROTARY] = 1.8e12,
    [DEVICE_CAST] = 2e12,      [DEVICE_LOSS] = 2.4e12,      [DEVICE_ADAM] = 2.5e12};

/* One device measures the kernels of the model but those of one kind. */
static void measure_kernels(struct matrix *m, const char *model, int but)
{
    struct device_table t = {NULL, 0};
    struct gemm_shape *products;
    struct device_kernel *list;
    struct err err;
    int counts[2];

    assert_int_equal(work_shapes(&products, &list, counts, model, &err), 0);
    for (int i = 0; i < counts[1]; i++) {
        struct device_row r = row(0, list[i].kind, kernel_truth[list[i].kind]);
        r.shape = list[i].shape;
        if ((int)list[i].kind != but)
            push(&t, r);
    }
    if (fit_compute(m, &t, NULL, &err) < 0)
        fail_msg("%s", err.text);
    device_free(&t);
    free(products);
    free(list);
}

static bool noted(const struct prediction *p, const char *words)
{
    for (int i = 0; i < p->notes; i++)
        if (strstr(p->note[i], words))
            return true;
    return false;
}

/* 8B: 32 layers 4096 wide, 32 heads of 128 with 8 of k and v, 14336, 128256 (Llama 3 Herd of
 * Models, table 3).  A token moves, in elements a layer, 10 widths of norms and residuals, twice
 * queries and keys, three of the gate; 14 bytes a logit. */
static void measured_kernels_price_their_terms(void **state)
{
    double norm = 32 * 10 * 4096 * 2.0, rotary = 32 * 2 * (4096 + 1024) * 2.0;
    double gate = 32 * 3 * 14336 * 2.0, loss = 128256 * 14.0;
    double sec = norm / 2e12 + rotary / 1.8e12 + gate / 2.2e12 + loss / 2.4e12;
    struct prediction before, p;
    struct asked a;
    struct err err;

    (void)state;
    ask(&a, "dp_shard=16", DTYPE_BF16);
    assert_int_equal(predict_step(&before, &a.question, &err), 0);
    measure_kernels(&a.matrix, "llama3.1-8b", -1);
    if (predict_step(&p, &a.question, &err) < 0)
        fail_msg("%s", err.text);
    assert_float_equal(p.rate.of[WORK_MEMORY] / ((norm + rotary + gate + loss) / sec), 1, 1e-9);
    assert_float_equal(p.rate.of[WORK_CORE] / (3.5 / (1 / 500e12 + 2.5 / 350e12)), 1, 1e-9);
    assert_float_equal(p.rate.of[WORK_WEIGHTS], 2.5e12, 1);
    assert_float_equal(term(&p, "optimizer") / (8.0303e9 / 16 * 30 / 2.5e12), 1, 1e-3);
    assert_int_equal(p.rate.part_basis[WORK_CORE], BASIS_MEASURED);
    assert_int_equal(p.rate.part_basis[WORK_LINEAR], BASIS_FITTED);
    assert_int_equal(p.rate.part_basis[WORK_LAUNCH], BASIS_FITTED);
    assert_true(p.rate.error[WORK_CORE] < before.rate.error[WORK_CORE]);
    assert_true(noted(&p, "but for matrix products, output head, kernel launches: these"));
    assert_false(noted(&before, "measured on this machine"));
    prediction_free(&before);
    prediction_free(&p);
    /* separate kernels take longer than a library's, by the same factor as before */
    a.recipe.pointwise = POINTWISE_SEPARATE;
    assert_int_equal(predict_step(&p, &a.question, &err), 0);
    double longer = constants_get(a.question.constants, CONSTANT_POINTWISE_SEPARATE)->value;
    assert_float_equal(p.rate.of[WORK_MEMORY] * longer / ((norm + rotary + gate + loss) / sec), 1,
                       1e-9);
    prediction_free(&p);
    /* scores that are kept are not the core that was measured */
    a.recipe.attention = KERNELS_UNFUSED;
    assert_int_equal(predict_step(&p, &a.question, &err), 0);
    assert_int_equal(p.rate.part_basis[WORK_CORE], BASIS_FITTED);
    assert_int_equal(p.rate.part_basis[WORK_MEMORY], BASIS_FITTED);
    prediction_free(&p);
    done(&a);
}

/* 2 us alone and 0.5 us in a graph: a quarter of a launch, where 0.1 is assumed. */
static void launches_in_graphs_take_their_measured_part(void **state)
{
    static const struct {
        const char *model;
        int graphs;
        double part;
    } want[] = {{"llama3.1-8b", CUDA_GRAPHS_STEP, 0.25},
                {"llama3.1-8b", CUDA_GRAPHS_LAYERS, 0.25},
                {"llama3.1-8b", CUDA_GRAPHS_OFF, 0.1},
                {"mixtral-8x7b", CUDA_GRAPHS_LAYERS, 0.1}, /* kernels of experts are outside */
                {"mixtral-8x7b", CUDA_GRAPHS_STEP, 0.25}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct rate before, after;
        struct asked a;
        struct err err;
        ask(&a, "dp_shard=16", DTYPE_BF16);
        model_free(&a.model);
        assert_int_equal(model_load(&a.model, want[i].model, &err), 0);
        a.recipe.cuda_graphs = want[i].graphs;
        assert_int_equal(rate_of(&before, &a.question, &err), 0);
        measure_kernels(&a.matrix, want[i].model, -1);
        a.matrix.compute.alone[ALONE_LAUNCH] = 2e-6;
        a.matrix.compute.alone[ALONE_LAUNCH_GRAPH] = 0.5e-6;
        assert_int_equal(rate_of(&after, &a.question, &err), 0);
        assert_float_equal(before.of[WORK_LAUNCH] / after.of[WORK_LAUNCH], want[i].part / 0.1,
                           1e-9);
        done(&a);
    }
}

/* A term is measured as a whole or not at all. */
static void a_term_with_a_kind_that_was_not_measured_rests_on_constants(void **state)
{
    static const struct {
        enum device_kind but;
        enum work_part part;
    } want[] = {{DEVICE_GATE, WORK_MEMORY},
                {DEVICE_LOSS, WORK_MEMORY},
                {DEVICE_ATTENTION_BACK, WORK_CORE},
                {DEVICE_ADAM, WORK_WEIGHTS}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct prediction p;
        struct asked a;
        struct err err;
        ask(&a, "dp_shard=16", DTYPE_BF16);
        measure_kernels(&a.matrix, "llama3.1-8b", (int)want[i].but);
        assert_int_equal(predict_step(&p, &a.question, &err), 0);
        for (int k = WORK_CORE; k < WORK_PARTS; k++)
            if (k == WORK_CORE || k == WORK_MEMORY || k == WORK_WEIGHTS)
                assert_int_equal(p.rate.part_basis[k],
                                 k == (int)want[i].part ? BASIS_FITTED : BASIS_MEASURED);
        prediction_free(&p);
        done(&a);
    }
}

/* 8x7B: 8 experts of 14336, two for a token (Jiang et al. 2024, Mixtral of Experts, table 1). */
static void measured_products_of_experts_hold_their_operands(void **state)
{
    struct kernel_work list[KERNELS_MAX];
    struct prediction p;
    struct asked a;
    struct step s;
    struct err err;
    int experts = 0;

    (void)state;
    ask(&a, "dp_shard=16", DTYPE_BF16);
    model_free(&a.model);
    assert_int_equal(model_load(&a.model, "mixtral-8x7b", &err), 0);
    assert_int_equal(
        layout_parse(&a.layout, "dp_shard=16,ep=4", STRATEGY_FSDP, ORDER_MEGATRON, 0, &err), 0);
    assert_int_equal(layout_check(&a.layout, &a.model, &a.recipe, &err), 0);
    step_of(&s, &a.model, &a.layout, &a.recipe);
    int n = kernels_of(list, &s);
    for (int i = 0; i < n; i++)
        if (list[i].kind == DEVICE_GROUPED) {
            assert_float_equal(list[i].m, s.tokens * 2 / 2, 1e-9); /* two experts a rank */
            assert_true(list[i].n + list[i].k == 14336 + 4096 && list[i].times == 2 * 32);
            experts++;
        }
    assert_int_equal(experts, 3);
    measure_kernels(&a.matrix, "mixtral-8x7b", -1);
    assert_int_equal(predict_step(&p, &a.question, &err), 0);
    assert_float_equal(p.rate.of[WORK_EXPERT] / 450e12, 1, 1e-9);
    assert_true(isinf(p.rate.of[WORK_OPERANDS]));
    prediction_free(&p);
    done(&a);
}

static void kernels_are_in_the_file(void **state)
{
    struct matrix m, back;
    struct err err;

    (void)state;
    small_matrix(&m);
    measure_kernels(&m, "mixtral-8x7b", -1);
    m.compute.flops = 1; /* one of the two forms that must be there */
    json_t *root = matrix_pack(&m);
    if (matrix_unpack(&back, root, MATRIX_WHOLE, "m.json", &err) < 0)
        fail_msg("%s", err.text);
    assert_true(m.compute.kernels > 20 && back.compute.kernels == m.compute.kernels);
    json_t *again = matrix_pack(&back);
    assert_true(json_equal(root, again));
    json_decref(root);
    json_decref(again);
    matrix_free(&m);
    matrix_free(&back);
}

/* --- the hardware's limits --- */

static void put(const char *root, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:1b:00.0/%s", root, name);
    assert_non_null(f = fopen(path, "w"));
    fputs(text, f);
    fclose(f);
}

static void pcie_carries_what_its_lanes_do_after_coding(void **state)
{
    char root[] = "/tmp/railgauge-pcie-XXXXXX", note[120], path[256];
    struct err err;

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:1b:00.0", root);
    assert_int_equal(file_mkdir(path, &err), 0);
    assert_true(device_pcie(root, "0000:1b:00.0", note) == 0);
    put(root, "max_link_speed", "32.0 GT/s PCIe\n");
    put(root, "max_link_width", "16\n");
    put(root, "current_link_speed", "32.0 GT/s PCIe\n");
    put(root, "current_link_width", "16\n");
    assert_float_equal(device_pcie(root, "0000:1b:00.0", note) / 1e9, 63.0, 0.05);
    assert_string_equal(note, "");
    put(root, "current_link_speed", "8.0 GT/s PCIe\n");
    put(root, "current_link_width", "8\n");
    assert_float_equal(device_pcie(root, "0000:1b:00.0", note) / 1e9, 63.0, 0.05);
    assert_string_equal(note, "the PCIe link is trained at gen 3 x8 of gen 5 x16");
    put(root, "max_link_speed", "Unknown\n");
    assert_true(device_pcie(root, "0000:1b:00.0", note) == 0);
    for (int i = 0; i < 4; i++) {
        static const char *const name[] = {"max_link_speed", "max_link_width", "current_link_speed",
                                           "current_link_width"};
        snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/0000:1b:00.0/%s", root, name[i]);
        unlink(path);
    }
    static const char *const folder[] = {"/sys/bus/pci/devices/0000:1b:00.0",
                                         "/sys/bus/pci/devices",
                                         "/sys/bus/pci",
                                         "/sys/bus",
                                         "/sys",
                                         ""};
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof(path), "%s%s", root, folder[i]);
        rmdir(path);
    }
}

static void a_gpu_finds_its_preset(void **state)
{
    static const struct {
        const char *device, *preset;
    } want[] = {{"NVIDIA H200", "hgx-h200"},
                {"NVIDIA H200 NVL", "h200-nvl"},
                {"NVIDIA H100 80GB HBM3", "hgx-h100"},
                {"NVIDIA A100-SXM4-80GB", "hgx-a100"},
                {"NVIDIA GB200", "gb200-nvl72"},
                {"NVIDIA H100 PCIe", NULL},
                {"NVIDIA A100-SXM4-40GB", "hgx-a100-40"},
                {"NVIDIA H20", "hgx-h20"},
                {"Tesla V100-SXM2-32GB", "v100-dgx1"},
                {"Tesla V100-SXM2-16GB", NULL},
                {"Tesla V100-PCIE-32GB", NULL},
                {"Tesla T4", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        char *name = fabric_of_gpu(want[i].device);
        if (want[i].preset)
            assert_string_equal(name, want[i].preset);
        else
            assert_null(name);
        free(name);
    }
}

static void the_matrix_keeps_it(void **state)
{
    struct device_table t = table(4, -1, 1);
    struct matrix m, back;
    struct fabric f;
    struct err err;

    (void)state;
    small_matrix(&m);
    assert_int_equal(fabric_load(&f, "hgx-h200", &err), 0);
    assert_int_equal(fit_compute(&m, &t, &f, &err), 0);
    assert_float_equal(m.compute.gemm[4].share, m.compute.gemm[4].flops / 989.4e12, 0.01);
    json_t *root = matrix_pack(&m);
    assert_int_equal(matrix_unpack(&back, root, MATRIX_WHOLE, "m.json", &err), 0);
    json_t *again = matrix_pack(&back);
    assert_true(json_equal(root, again));
    assert_int_equal(back.compute.gemms, 5);
    assert_float_equal(back.compute.alone[ALONE_HBM], 4e12, 1);
    json_decref(root);
    json_decref(again);
    matrix_free(&m);
    matrix_free(&back);
    fabric_free(&f);
    device_free(&t);
}

static void bad_tables_are_refused(void **state)
{
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{\"source\": \"s\"}", "m: compute: neither flops nor gemm is there"},
        {"{\"source\": \"s\", \"gemm\": 3}", "m: compute.gemm is not a list"},
        {"{\"source\": \"s\", \"gemm\": [], \"alone\": {\"pcie\": 3}}", "alone: unknown key: pcie"},
        {"{\"source\": \"s\", \"gemm\": [], \"devices\": -1}", "-1 devices"},
        {"{\"source\": \"s\", \"gemm\": [{\"dtype\": \"bf16\", \"m\": 0, \"n\": 1, \"k\": 1, "
         "\"flops\": 1e12, \"spread\": 0, \"devices\": 1}]}",
         "m: compute.gemm[0]"},
        {"{\"source\": \"s\", \"gemm\": [{\"dtype\": \"bfloat16\", \"m\": 1, \"n\": 1, \"k\": 1, "
         "\"flops\": 1e12, \"spread\": 0, \"devices\": 1}]}",
         "compute.gemm[0].dtype: \"bfloat16\" has not 1..7 characters"},
        {"{\"source\": \"s\", \"gemm\": [{\"dtype\": \"bf16\", \"m\": 1, \"n\": 1, \"k\": 1, "
         "\"flops\": 1e12, \"spread\": 0, \"devices\": 0}]}",
         "0 devices where 1.."},
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct compute_rates c = {.flops = 0};
        json_t *value = json_loads(bad[i].json, 0, NULL);
        assert_non_null(value);
        assert_int_equal(compute_unpack(&c, value, "m: compute", &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].why))
            fail_msg("\"%s\" is not in \"%s\"", bad[i].why, err.text);
        json_decref(value);
        compute_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_gpu_is_named_and_left_out),
        cmocka_unit_test(what_scatters_is_not_slow),
        cmocka_unit_test(no_gpu_is_blamed_for_its_hosts_launches),
        cmocka_unit_test(what_all_devices_lack_and_links_below_their_form_are_told),
        cmocka_unit_test(rows_of_an_unknown_endpoint_are_refused),
        cmocka_unit_test(the_file_gives_back_what_was_saved),
        cmocka_unit_test(the_golden_example_is_read),
        cmocka_unit_test(bad_files_are_refused_by_line_and_reason),
        cmocka_unit_test(shapes_between_measured_ones_lie_between_them),
        cmocka_unit_test(products_are_the_work_of_linear_layers),
        cmocka_unit_test(shapes_of_a_model_are_those_that_its_layers_multiply),
        cmocka_unit_test(gradients_of_every_product_are_measured),
        cmocka_unit_test(predictions_take_the_measured_products),
        cmocka_unit_test(shapes_that_were_not_measured_come_close),
        cmocka_unit_test(a_machine_without_a_data_sheet_is_predicted_from_what_was_measured),
        cmocka_unit_test(a_search_prices_each_layout_as_predict_does),
        cmocka_unit_test(measured_kernels_price_their_terms),
        cmocka_unit_test(launches_in_graphs_take_their_measured_part),
        cmocka_unit_test(a_term_with_a_kind_that_was_not_measured_rests_on_constants),
        cmocka_unit_test(measured_products_of_experts_hold_their_operands),
        cmocka_unit_test(kernels_are_in_the_file),
        cmocka_unit_test(pcie_carries_what_its_lanes_do_after_coding),
        cmocka_unit_test(a_gpu_finds_its_preset),
        cmocka_unit_test(the_matrix_keeps_it),
        cmocka_unit_test(bad_tables_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
