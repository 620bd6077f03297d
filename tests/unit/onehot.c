/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/pattern.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, N = 4000, K = 12345 };

static uint64_t element(const void *buf, int type, size_t i)
{
    uint64_t v = 0;

    memcpy(&v, (const char *)buf + i * (size_t)onehot_width(type), (size_t)onehot_width(type));
    return v;
}

/* What a reduction of integers yields, written another way than pattern.h does. */
static uint64_t reduced(int type, int redop, uint64_t a, uint64_t b)
{
    int shift = 64 - 8 * onehot_width(type);
    uint64_t all = ~(uint64_t)0 >> shift;
    bool less = onehot_signed(type) ? (int64_t)(a << shift) < (int64_t)(b << shift) : a < b;

    return redop == NCCL_PROD  ? (a * b) & all
           : redop == NCCL_MAX ? (less ? b : a)
           : redop == NCCL_MIN ? (less ? a : b)
                               : (a + b) & all;
}

TEST(integers_come_out_as_one_owner_put_them_in)
{
    static const int types[] = {NCCL_INT8,   NCCL_UINT8, NCCL_INT32,
                                NCCL_UINT32, NCCL_INT64, NCCL_UINT64};
    char *sum = malloc(8 * N), *mine = malloc(8 * N);

    for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++)
        for (int redop = 0; redop < NCCL_REDOPS; redop++) {
            int type = types[t];
            size_t width = (size_t)onehot_width(type), at;
            onehot_fill(sum, N, type, 0, RANKS, K, redop);
            for (int r = 1; r < RANKS; r++) {
                onehot_fill(mine, N, type, r, RANKS, K, redop);
                for (size_t i = 0; i < N; i++) {
                    uint64_t v =
                        reduced(type, redop, element(sum, type, i), element(mine, type, i));
                    memcpy(sum + i * width, &v, width);
                }
            }
            for (size_t i = 0; i < N && redop == NCCL_AVG; i++) {
                uint64_t v = element(sum, type, i) / RANKS;
                memcpy(sum + i * width, &v, width);
            }
            assert_int_equal(width, nccl_dtype_size(type));
            assert_false(onehot_find(sum, 0, N, type, RANKS, K, redop, &at));
            assert_false(onehot_find(sum + 7 * width, 7, N - 7, type, RANKS, K, redop, &at));
            assert_true(onehot_find(sum + 7 * width, 8, N - 7, type, RANKS, K, redop, &at));
            sum[100 * width] ^= 4;
            assert_true(onehot_find(sum, 0, N, type, RANKS, K, redop, &at));
            assert_int_equal(at, 100);
        }
    free(sum);
    free(mine);
}

TEST(numbers_of_floating_point_are_what_the_compiler_says)
{
    float f = -3.7f;
    double d = 0.3;
    uint64_t v = 0;

    memcpy(&v, &f, sizeof(f));
    assert_true(onehot_number(NCCL_FLOAT32, v) == (double)f);
    assert_true(onehot_number(NCCL_BFLOAT16, v >> 16) == -3.6875);
    memcpy(&v, &d, sizeof(d));
    assert_true(onehot_number(NCCL_FLOAT64, v) == d);
    /* OCP 8-bit floating point, table 1: greatest and least values. */
    assert_true(onehot_number(NCCL_FLOAT8E4M3, 0x7e) == 448);
    assert_true(onehot_number(NCCL_FLOAT8E4M3, 0x01) == 0x1p-9);
    assert_true(onehot_number(NCCL_FLOAT8E5M2, 0x7b) == 57344);
    assert_true(onehot_number(NCCL_FLOAT8E5M2, 0x01) == 0x1p-16);
    assert_true(onehot_number(NCCL_FLOAT16, 0x7bff) == 65504);
    assert_true(onehot_number(NCCL_FLOAT16, 0x3c00) == 1);
}

TEST(what_the_others_put_in_changes_no_floating_point_value)
{
    for (int type = NCCL_FLOAT16; type < NCCL_DTYPES; type++) {
        assert_true(onehot_number(type, onehot_other(type, NCCL_SUM)) == 0);
        assert_true(onehot_number(type, onehot_other(type, NCCL_PROD)) == 1);
        for (uint64_t i = 0; i < N; i++) {
            double v = onehot_number(type, onehot_value(type, NCCL_SUM, pattern_word(K, i)));
            assert_true(fabs(v) >= 0.25 && fabs(v) < 16);
            assert_true(v > onehot_number(type, onehot_other(type, NCCL_MAX)));
            assert_true(v < onehot_number(type, onehot_other(type, NCCL_MIN)));
            assert_true(onehot_number(type, onehot_value(type, NCCL_AVG, pattern_word(K, i))) > 0);
        }
    }
    assert_true(onehot_number(NCCL_FLOAT16, onehot_other(NCCL_FLOAT16, NCCL_MIN)) == 65504);
    assert_true(onehot_number(NCCL_FLOAT8E5M2, onehot_other(NCCL_FLOAT8E5M2, NCCL_MAX)) == -57344);
}

TEST(an_average_may_round_but_not_be_wrong)
{
    float f[N];
    size_t at;

    onehot_fill(f, N, NCCL_FLOAT32, 0, 1, K, NCCL_AVG);
    for (int i = 0; i < N; i++)
        f[i] *= 1.0f / 3;
    assert_true(onehot_find(f, 0, N, NCCL_FLOAT32, 1, K, NCCL_AVG, &at));
    for (int i = 0; i < N; i++) { /* owned by whomever: three ranks know the same values */
        uint64_t v = onehot_value(NCCL_FLOAT32, NCCL_AVG, pattern_word(K, (uint64_t)i));
        f[i] = (float)onehot_number(NCCL_FLOAT32, v) * (1.0f / 3);
    }
    assert_false(onehot_find(f, 0, N, NCCL_FLOAT32, 3, K, NCCL_AVG, &at));
    f[17] *= 1.00001f;
    assert_true(onehot_find(f, 0, N, NCCL_FLOAT32, 3, K, NCCL_AVG, &at));
    assert_int_equal(at, 17);
}

TEST(every_rank_owns_its_share)
{
    int owned[RANKS] = {0};

    for (uint64_t i = 0; i < N; i++)
        owned[onehot_owner(pattern_word(K, i), RANKS)]++;
    for (int r = 0; r < RANKS; r++)
        assert_in_range(owned[r], N / RANKS * 8 / 10, N / RANKS * 12 / 10);
}
