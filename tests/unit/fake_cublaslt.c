/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for cuBLASLt refuses what the real one does: what it let pass, every test of scaled
 * products would. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "measure/device/cublaslt_api.h"
#include "test.h"

enum { INVALID_VALUE = 7, NOT_SUPPORTED = 15 };

/* One product, as it is described; nothing is run. */
struct asked {
    int type, mode, other_mode;
    int m, n, k;
    int no_scale, shift; /* operand + 1 whose pointer is not set; bytes added to the addresses */
    int transb;
    int want;
};

static struct gpu_buffer scale;

static int set(cublaslt_desc d, int attribute, const void *value, size_t size)
{
    return cublaslt.MatmulDescSetAttribute(d, attribute, value, size);
}

static cublaslt_desc describe(const struct asked *a)
{
    static const int mode_at[2] = {CUBLASLT_DESC_A_SCALE_MODE, CUBLASLT_DESC_B_SCALE_MODE};
    static const int scale_at[2] = {CUBLASLT_DESC_A_SCALE_POINTER, CUBLASLT_DESC_B_SCALE_POINTER};
    const int32_t t = CUBLASLT_OP_T, b = a->transb, mode[2] = {a->mode, a->other_mode};
    const void *at = scale.at + a->shift;
    cublaslt_desc d;

    assert_int_equal(cublaslt.MatmulDescCreate(&d, CUBLASLT_COMPUTE_32F, CUBLASLT_R_32F), 0);
    assert_int_equal(set(d, CUBLASLT_DESC_TRANSA, &t, sizeof(t)), 0);
    assert_int_equal(set(d, CUBLASLT_DESC_TRANSB, &b, sizeof(b)), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(set(d, mode_at[i], &mode[i], sizeof(mode[i])), 0);
        if (a->no_scale != i + 1)
            assert_int_equal(set(d, scale_at[i], &at, sizeof(at)), 0);
    }
    return d;
}

static int heuristic(cublaslt_handle h, const struct asked *a)
{
    cublaslt_layout layout[3];
    cublaslt_preference p;
    struct cublaslt_found found;
    const size_t workspace = 1 << 20;
    cublaslt_desc d = describe(a);
    int count;

    cublaslt.MatrixLayoutCreate(&layout[0], a->type, (uint64_t)a->k, (uint64_t)a->n, a->k);
    cublaslt.MatrixLayoutCreate(&layout[1], a->type, (uint64_t)a->k, (uint64_t)a->m, a->k);
    cublaslt.MatrixLayoutCreate(&layout[2], CUBLASLT_R_16BF, (uint64_t)a->n, (uint64_t)a->m, a->n);
    cublaslt.MatmulPreferenceCreate(&p);
    cublaslt.MatmulPreferenceSetAttribute(p, CUBLASLT_PREF_MAX_WORKSPACE, &workspace,
                                          sizeof(workspace));
    int rc = cublaslt.MatmulAlgoGetHeuristic(h, d, layout[0], layout[1], layout[2], layout[2], p, 1,
                                             &found, &count);
    cublaslt.MatmulPreferenceDestroy(p);
    for (int i = 0; i < 3; i++)
        cublaslt.MatrixLayoutDestroy(layout[i]);
    cublaslt.MatmulDescDestroy(d);
    assert_int_equal(rc == CUBLASLT_SUCCESS, count == 1);
    return rc;
}

static int open_fake(void **state)
{
    static char path[] = "/tmp/railgauge-cublaslt-XXXXXX";
    static cublaslt_handle h;
    struct err err;
    FILE *f = fdopen(mkstemp(path), "w");

    fputs("sm 100\n", f);
    fclose(f);
    setenv("FAKE_GPU", path, 1);
    *state = NULL;
    if (gpu_open(0, &err) < 0 || gpu_alloc(&scale, GPU_PLAIN, 1 << 16, &err) < 0 ||
        cublaslt_load(&err) < 0)
        print_message("%s\n", err.text);
    else if (cublaslt.Create(&h) == CUBLASLT_SUCCESS)
        *state = &h;
    unlink(path);
    return 0;
}

static int close_fake(void **state)
{
    if (*state)
        cublaslt.Destroy(*(cublaslt_handle *)*state);
    gpu_free(&scale);
    gpu_close();
    return 0;
}

TEST(what_the_real_one_refuses_is_refused)
{
    enum { E4M3 = CUBLASLT_R_8F_E4M3, E2M1 = CUBLASLT_R_4F_E2M1, BF16 = CUBLASLT_R_16BF };
    enum { V32 = CUBLASLT_SCALE_VEC32_UE8M0, V16 = CUBLASLT_SCALE_VEC16_UE4M3 };
    static const struct asked asked[] = {
        {E4M3, V32, V32, 128, 128, 128, 0, 0, 0, 0},
        {E2M1, V16, V16, 128, 128, 128, 0, 0, 0, 0},
        {E4M3, 0, 0, 128, 128, 128, 0, 0, 0, 0},
        {E4M3, V32, V32, 128, 128, 128, 1, 0, 0, INVALID_VALUE}, /* no scales of A */
        {E2M1, V16, V16, 128, 128, 128, 2, 0, 0, INVALID_VALUE}, /* ... of B */
        {E2M1, V16, V16, 128, 128, 128, 0, 8, 0, INVALID_VALUE}, /* not a multiple of 16 */
        {E2M1, 0, 0, 128, 128, 128, 0, 0, 0, NOT_SUPPORTED},     /* fp4 without scales */
        {E2M1, V32, V32, 128, 128, 128, 0, 0, 0, NOT_SUPPORTED},
        {E4M3, V16, V16, 128, 128, 128, 0, 0, 0, NOT_SUPPORTED},
        {E4M3, V32, 0, 128, 128, 128, 0, 0, 0, NOT_SUPPORTED}, /* one of them only */
        {BF16, V32, V32, 128, 128, 128, 0, 0, 0, NOT_SUPPORTED},
        {E2M1, V16, V16, 128, 128, 48, 0, 0, 0, NOT_SUPPORTED}, /* lines of 24 bytes */
        {E4M3, V32, V32, 128, 120, 128, 0, 0, 0, NOT_SUPPORTED},
        {E4M3, V32, V32, 128, 128, 128, 0, 0, CUBLASLT_OP_T, NOT_SUPPORTED}, /* not TN */
    };

    if (!*state)
        skip();
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        int got = heuristic(*(cublaslt_handle *)*state, &asked[i]);
        if (got != asked[i].want)
            fail_msg("row %zu: %d where %d was expected", i, got, asked[i].want);
    }
}

TEST(modes_of_scales_came_with_12_8)
{
    const int32_t mode = CUBLASLT_SCALE_VEC32_UE8M0;
    cublaslt_desc d;

    if (!*state)
        skip();
    assert_int_equal(cublaslt.MatmulDescCreate(&d, CUBLASLT_COMPUTE_32F, CUBLASLT_R_32F), 0);
    setenv("FAKE_GEMM", "version=120799", 1);
    assert_int_equal(set(d, CUBLASLT_DESC_A_SCALE_MODE, &mode, sizeof(mode)), INVALID_VALUE);
    setenv("FAKE_GEMM", "version=120800", 1);
    assert_int_equal(set(d, CUBLASLT_DESC_A_SCALE_MODE, &mode, sizeof(mode)), 0);
    assert_int_equal(set(d, CUBLASLT_DESC_A_SCALE_MODE, &mode, 1), INVALID_VALUE);
    unsetenv("FAKE_GEMM");
    cublaslt.MatmulDescDestroy(d);
}

TEST_GROUP(open_fake, close_fake)
