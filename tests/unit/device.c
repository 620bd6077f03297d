/* SPDX-License-Identifier: BSD-3-Clause */
/* What one GPU does alone, on the stand-ins, whose rates are set here. */
#include "measure/device/device.h"

#include <math.h>
#include <sched.h>
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

#include "base/mem.h"
#include "fake_gpu.h"
#include "kernels/kernels.h"
#include "measure/device/gpu_binding.h"
#include "measure/measure.h"

static const struct gemm_shape shapes[] = {
    {GEMM_BF16, 1024, 512, 256},  {GEMM_BF16, 512, 512, 512}, {GEMM_FP8, 1024, 512, 256},
    {GEMM_MXFP8, 1024, 576, 288}, /* tiles of scales that are not full */
    {GEMM_NVFP4, 1040, 512, 256},
};
#define RATES "bf16=5e9,fp8=9e9,mxfp8=8e9,nvfp4=2e10,half=256"
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

static struct device_opts opts(void)
{
    struct device_opts o;

    o = DEVICE_DEFAULTS;
    o.bytes = 1 << 20;
    o.time_cap = 1;
    o.half_width = 0.2;
    o.shape = shapes;
    o.shapes = SHAPES;
    return o;
}

static int measure(struct device_row *rows, const struct device_opts *o, struct err *err)
{
    device_begin(rows, o);
    return device_measure(rows, o, DEVICE_HOST_LINK | DEVICE_INSIDE, err);
}

static const struct device_row *find(const struct device_row *rows, int n, enum device_kind kind)
{
    for (int i = 0; i < n; i++)
        if (rows[i].kind == kind)
            return &rows[i];
    fail_msg("no row %s", device_kind_name[kind]);
    return NULL;
}

static int open_fake(void **state)
{
    struct err err;

    /* 1 MiB takes 105 ms to copy, by the clock of the stand-in and not of the wall. */
    fake_gpu("sm 100\nhbm_Bps 2e7\nhost_Bps 1e7\n");
    setenv("FAKE_GEMM", RATES, 1);
    unsetenv("FAKE_FAULT");
    static int ready;
    *state = gpu_open(0, &err) < 0 ? NULL : &ready;
    if (!*state)
        print_message("%s\n", err.text);
    return 0;
}

static int close_fake(void **state)
{
    (void)state;
    gpu_close();
    return 0;
}

#define NEED_FAKE                                                                                  \
    if (!*state)                                                                                   \
    skip()

static void near(double got, double want, double share)
{
    if (!(fabs(got / want - 1) < share))
        fail_msg("%g where %g was expected", got, want);
}

static void rates_are_those_of_the_machine(void **state)
{
    struct device_opts o = opts();
    int n = device_rows(&o);
    struct err err;
    const char *why;

    NEED_FAKE;
    struct device_row *rows = mem_calloc((size_t)n, sizeof(*rows));
    if (measure(rows, &o, &err) < 0)
        fail_msg("%s", err.text);
    near(find(rows, n, DEVICE_HBM_COPY)->value, 2e7, 0.06); /* read and written */
    near(find(rows, n, DEVICE_H2D)->value, 1e7, 0.06);
    near(find(rows, n, DEVICE_D2H)->value, 1e7, 0.06);
    near(find(rows, n, DEVICE_H2D_BOTH)->value, 1e7, 0.06);
    near(find(rows, n, DEVICE_D2H_BOTH)->value, 1e7, 0.06);
    if (kernels_there(&why))
        near(find(rows, n, DEVICE_H2D_BUSY)->value, 1e7, 0.5); /* the load is real */
    assert_true(find(rows, n, DEVICE_HBM_COPY)->limit == gpu_facts()->hbm_Bps);
    for (int i = 0; i < n; i++) {
        bool gemm = rows[i].kind == DEVICE_GEMM;
        bool host =
            rows[i].kind == DEVICE_HBM_COPY ||
            (strstr(device_kind_name[rows[i].kind], "2") && rows[i].kind != DEVICE_H2D_BUSY);
        assert_string_equal(rows[i].gpu, gpu_facts()->name);
        if (gemm || host || kernels_there(&why)) {
            assert_true(rows[i].value > 0 && rows[i].lo <= rows[i].value);
            assert_true(rows[i].hi >= rows[i].value && rows[i].samples >= 2);
        } else {
            assert_true(isnan(rows[i].value) && rows[i].note[0]);
        }
    }
    free(rows);
}

static void products_take_what_the_library_does(void **state)
{
    struct device_opts o = opts();
    int n = device_rows(&o);
    struct err err;

    NEED_FAKE;
    struct device_row *rows = mem_calloc((size_t)n, sizeof(*rows));
    assert_int_equal(measure(rows, &o, &err), 0);
    const struct device_row *g = &rows[n - SHAPES];
    near(g[0].value, 5e9 * 256 / 512, 0.06);
    near(g[1].value, 5e9 * 512 / 768, 0.06);
    near(g[2].value, 9e9 * 256 / 512, 0.06);
    near(g[3].value, 8e9 * 288 / 544, 0.06);
    near(g[4].value, 2e10 * 256 / 512, 0.06);
    for (int i = 0; i < SHAPES; i++)
        assert_memory_equal(&g[i].shape, &shapes[i], sizeof(shapes[i]));
    setenv("FAKE_FAULT", "slowgpu:0:1:1.25", 1);
    assert_int_equal(measure(rows, &o, &err), 0);
    near(g[0].value, 5e9 * 256 / 512 / 1.25, 0.06);
    unsetenv("FAKE_FAULT");
    free(rows);
}

/* PyTorch as far as attention.py calls it: cuDNN takes 1 ms forward and 4 ms back, FlashAttention
 * twice as long; heads of 96 have no kernel. */
static const char torch[] =
    "import contextlib, sys, types\n"
    "__version__, bfloat16, clock, by = '2.9', 'bf16', [0.0], [0]\n"
    "class Event:\n"
    "    def __init__(self, enable_timing): pass\n"
    "    def record(self): self.at = clock[0]\n"
    "    def synchronize(self): pass\n"
    "    def elapsed_time(self, end): return end.at - self.at\n"
    "def set_device(i): assert i == 0\n"
    "cuda = types.SimpleNamespace(Event=Event, set_device=set_device)\n"
    "def randn(*shape, **how): return shape\n"
    "def randn_like(x): return x\n"
    "def grad(out, inputs, gradient, retain_graph): clock[0] += 4.0 * by[0]\n"
    "autograd = types.SimpleNamespace(grad=grad)\n"
    "def core(q, k, v, is_causal):\n"
    "    if q[3] == 96: raise RuntimeError('no kernel')\n"
    "    clock[0] += 1.0 * by[0]\n"
    "@contextlib.contextmanager\n"
    "def kernel(backend):\n"
    "    by[0] = backend\n"
    "    yield\n"
    "for name, held in (('nn', {}), ('nn.functional', {'scaled_dot_product_attention': core}),\n"
    "                   ('nn.attention', {'sdpa_kernel': kernel, 'SDPBackend':\n"
    "                    types.SimpleNamespace(CUDNN_ATTENTION=1, FLASH_ATTENTION=2)})):\n"
    "    sys.modules['torch.' + name] = types.SimpleNamespace(**held)\n";

static const struct device_kernel kernels[] = {
    {DEVICE_GROUPED, {GEMM_BF16, 256, 512, 256}}, {DEVICE_NORM, {GEMM_BF16, 64, 512, 1}},
    {DEVICE_ADAM, {GEMM_BF16, 4096, 4096, 1}}, /* more than the buffers hold */
    {DEVICE_ATTENTION, {GEMM_BF16, 2048, 8, 64}}, {DEVICE_ATTENTION_BACK, {GEMM_BF16, 2048, 8, 64}},
    {DEVICE_ATTENTION, {GEMM_BF16, 2048, 8, 96}},
};
enum { MODELS_KERNELS = sizeof(kernels) / sizeof(*kernels) };

/* The kernels of a model with this torch.py; the caller frees the rows. */
static struct device_row *with_torch(const char *text)
{
    char dir[] = "/tmp/rg-torch-XXXXXX", path[64];
    struct device_opts o = opts();
    struct err err;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/torch.py", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    setenv("PYTHONPATH", dir, 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    o.shapes = 0;
    o.kernel = kernels;
    o.kernels = MODELS_KERNELS;
    struct device_row *rows = mem_calloc((size_t)device_rows(&o), sizeof(*rows));
    if (measure(rows, &o, &err) < 0)
        fail_msg("%s", err.text);
    unsetenv("PYTHONPATH");
    unlink(path);
    rmdir(dir);
    memmove(rows, rows + device_rows(&o) - MODELS_KERNELS, MODELS_KERNELS * sizeof(*rows));
    return rows;
}

static void kernels_of_a_model_are_measured_each_by_what_runs_it(void **state)
{
    const char *why;

    NEED_FAKE;
    struct device_row *k = with_torch(torch);
    near(k[0].value, 5e9 * 256 / 512, 0.06); /* as the library's products of that shape */
    for (int i = 1; i < 3; i++)
        if (kernels_there(&why))
            assert_true(k[i].value > 0 && k[i].lo <= k[i].value && k[i].value <= k[i].hi);
        else
            assert_true(isnan(k[i].value) && k[i].note[0]);
    near(k[3].value, 2.0 * 2048 * 2048 * 8 * 64 / 1e-3, 1e-6);
    near(k[4].value, 2.5 * 2 * 2048.0 * 2048 * 8 * 64 / 4e-3, 1e-6);
    assert_string_equal(k[3].note, "cuDNN by PyTorch 2.9");
    assert_int_equal(k[4].samples, 15);
    assert_true(isnan(k[5].value));
    assert_string_equal(k[5].note, "PyTorch has no kernel for this shape");
    free(k);
    k = with_torch("raise ImportError('no such library')\n");
    assert_true(isnan(k[3].value) && k[0].value > 0);
    assert_non_null(strstr(k[3].note, "PyTorch: no such library"));
    free(k);
}

static void wrong_products_end_it(void **state)
{
    static const char *const fault[] = {"product:0", "scales:0"};
    static const char *const why[] = {"the bf16 product 144x160x256 of this GPU is wrong: row 0, "
                                      "column 5 is 77, expected ",
                                      "the mxfp8 product 144x160x256 of this GPU is wrong: row 0, "
                                      "column 0 is "};
    struct device_opts o = opts();
    struct err err;

    NEED_FAKE;
    struct device_row *rows = mem_calloc((size_t)device_rows(&o), sizeof(*rows));
    for (int i = 0; i < 2; i++) {
        setenv("FAKE_FAULT", fault[i], 1);
        assert_int_equal(measure(rows, &o, &err), -1);
        unsetenv("FAKE_FAULT");
        assert_int_equal(err.code, EXIT_UNJUDGED);
        if (!strstr(err.text, why[i]))
            fail_msg("%s", err.text);
    }
    free(rows);
}

static void shapes_without_an_algorithm_are_told_and_the_others_measured(void **state)
{
    static const struct gemm_shape odd[] = {
        {GEMM_FP8, 100, 16, 16}, {GEMM_NVFP4, 16, 32, 48}, {GEMM_BF16, 100, 64, 64}};
    struct device_opts o = opts();
    struct device_row rows[32];
    struct err err;

    NEED_FAKE;
    o.shape = odd;
    o.shapes = 3;
    assert_true(device_rows(&o) <= 32);
    assert_int_equal(measure(rows, &o, &err), 0);
    const struct device_row *g = &rows[device_rows(&o) - 3];
    assert_true(isnan(g[0].value) && isnan(g[1].value));
    assert_string_equal(g[0].note, "libcublasLt.so.13 has no fp8 product 100x16x16 for this GPU: "
                                   "CUBLAS_STATUS_NOT_SUPPORTED");
    assert_string_equal(g[1].note, "libcublasLt.so.13 has no nvfp4 product 16x32x48 for this GPU: "
                                   "CUBLAS_STATUS_NOT_SUPPORTED");
    assert_true(g[2].value > 0);
}

static void a_library_from_before_scales_of_blocks_is_named(void **state)
{
    struct device_opts o = opts();
    int n = device_rows(&o);
    struct err err;

    NEED_FAKE;
    struct device_row *rows = mem_calloc((size_t)n, sizeof(*rows));
    const struct device_row *g = &rows[n - SHAPES];
    setenv("FAKE_GEMM", "version=120605", 1);
    assert_int_equal(measure(rows, &o, &err), 0);
    setenv("FAKE_GEMM", RATES, 1);
    assert_true(g[0].value > 0 && g[2].value > 0);
    assert_true(isnan(g[3].value) && isnan(g[4].value));
    assert_string_equal(g[3].note, "no mxfp8 products in libcublasLt.so.13, 12.6.5: scales of "
                                   "blocks came with 12.8");
    assert_non_null(strstr(g[4].note, "no nvfp4 products"));
    free(rows);
}

static void a_gpu_that_fails_is_not_measured(void **state)
{
    struct device_opts o = opts();
    struct err err;

    NEED_FAKE;
    struct device_row *rows = mem_calloc((size_t)device_rows(&o), sizeof(*rows));
    setenv("FAKE_FAIL", "cuMemAlloc_v2:2", 1);
    assert_int_equal(measure(rows, &o, &err), -1);
    unsetenv("FAKE_FAIL");
    assert_non_null(strstr(err.text, "CUDA_ERROR_OUT_OF_MEMORY"));
    free(rows);
}

static void a_signal_ends_it(void **state)
{
    struct device_opts o = opts();
    struct err err;

    NEED_FAKE;
    struct device_row *rows = mem_calloc((size_t)device_rows(&o), sizeof(*rows));
    measure_stop = 1;
    assert_int_equal(measure(rows, &o, &err), -1);
    measure_stop = 0;
    assert_int_equal(err.code, EXIT_CUT);
    free(rows);
}

static void put_fact(const char *dir, const char *name, const char *text)
{
    char *path = mem_printf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    free(path);
}

/* A rank may use the cores of its device's node that the launcher left to it, and no others. */
static void a_rank_is_bound_to_the_cores_of_its_device(void **state)
{
    char dir[] = "/tmp/rg-sys-XXXXXX";
    cpu_set_t before, now;
    struct err err = {0};

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    int core = 0;
    while (!CPU_ISSET(core, &before))
        core++;
    assert_non_null(mkdtemp(dir));
    char *sub = mem_printf("%s/nic", dir), *list = mem_printf("%d,1000-1010\n", core);
    assert_int_equal(mkdir(sub, 0700), 0);
    put_fact(sub, "numa_node", "0\n");
    put_fact(sub, "local_cpulist", list);
    setenv("RAILGAUGE_SYS", dir, 1);
    gpu_bind_asked = GPU_BIND_NONE;
    assert_int_equal(gpu_binding_place(&world_solo, "nic", &err), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
    assert_true(CPU_EQUAL(&now, &before));
    gpu_bind_asked = GPU_BIND_DEVICE;
    assert_int_equal(gpu_binding_place(&world_solo, "nic", &err), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
    assert_int_equal(CPU_COUNT(&now), 1);
    assert_true(CPU_ISSET(core, &now));
    put_fact(sub, "local_cpulist", "1001\n");
    assert_int_equal(gpu_binding_place(&world_solo, "nic", &err), -1);
    assert_int_equal(err.code, EXIT_CONFIG);
    put_fact(sub, "numa_node", "-1\n");
    assert_int_equal(gpu_binding_place(&world_solo, "nic", &err), -1);
    gpu_bind_asked = GPU_BIND_AUTO;
    assert_int_equal(gpu_binding_place(&world_solo, "nic", &err), 0);
    sched_setaffinity(0, sizeof(before), &before);
    unsetenv("RAILGAUGE_SYS");
    char *all = mem_printf("rm -r %s", dir);
    assert_int_equal(system(all), 0);
    free(all);
    free(list);
    free(sub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_is_bound_to_the_cores_of_its_device),
        cmocka_unit_test(rates_are_those_of_the_machine),
        cmocka_unit_test(products_take_what_the_library_does),
        cmocka_unit_test(kernels_of_a_model_are_measured_each_by_what_runs_it),
        cmocka_unit_test(wrong_products_end_it),
        cmocka_unit_test(shapes_without_an_algorithm_are_told_and_the_others_measured),
        cmocka_unit_test(a_library_from_before_scales_of_blocks_is_named),
        cmocka_unit_test(a_gpu_that_fails_is_not_measured),
        cmocka_unit_test(a_signal_ends_it),
    };

    return cmocka_run_group_tests(tests, open_fake, close_fake);
}
