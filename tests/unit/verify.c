/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/verify.h"
#include "test.h"

static const struct verify site = {OP_ALL_GATHER, 4096, 2, "h1", 7};

TEST(every_size_is_filled_exactly_and_found_good)
{
    unsigned char buf[80];
    size_t off;

    for (size_t n = 0; n <= 64; n++) {
        memset(buf, 0xEE, sizeof(buf));
        verify_fill(buf + 3, n, 5, 2, 1); /* unaligned, as blocks of odd sizes are */
        assert_false(verify_find(buf + 3, n, 5, 2, 1, &off));
        assert_int_equal(buf[2], 0xEE);
        assert_int_equal(buf[3 + n], 0xEE);
    }
}

TEST(every_single_bit_flip_is_found_at_its_byte)
{
    unsigned char buf[131];
    size_t off;

    verify_fill(buf, sizeof(buf), 1, 0, 9);
    for (size_t bit = 0; bit < 8 * sizeof(buf); bit++) {
        buf[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(verify_find(buf, sizeof(buf), 1, 0, 9, &off));
        assert_int_equal(off, bit / 8);
        buf[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_false(verify_find(buf, sizeof(buf), 1, 0, 9, &off));
}

TEST(data_of_another_rank_block_seed_or_place_is_found)
{
    unsigned char buf[4096 + 8];
    size_t off;

    verify_fill(buf, sizeof(buf), 3, 4, 5);
    assert_true(verify_find(buf, 8, 2, 4, 5, &off));
    assert_true(verify_find(buf, 8, 3, 5, 5, &off));
    assert_true(verify_find(buf, 8, 3, 4, 6, &off));
    for (size_t shift = 1; shift <= 8; shift++)
        assert_true(verify_find(buf + shift, 4096, 3, 4, 5, &off));
    /* Two words swapped. */
    memcpy(buf + 80, buf + 160, 8);
    assert_true(verify_find(buf, 4096, 3, 4, 5, &off));
    assert_in_range(off, 80, 87);
}

TEST(no_word_occurs_twice_in_a_mebibyte)
{
    size_t words = (1 << 20) / 8;
    uint64_t *w = malloc(words * 8);
    size_t same = 0;

    assert_non_null(w);
    verify_fill(w, words * 8, 0, 0, 0);
    for (size_t step = 1; step < 300; step++)
        for (size_t i = 0; i + step < words; i += 97)
            same += w[i] == w[i + step];
    free(w);
    assert_int_equal(same, 0);
}

TEST(the_uint32_sum_of_the_terms_is_the_pattern_of_the_last_rank)
{
    enum { WORDS = 19 }; /* odd: the last 8-byte word is half used */
    uint32_t sum[WORDS] = {0}, term[WORDS];
    size_t off;

    for (int n = 1; n <= 600; n++) {
        verify_fill_term(term, sizeof(term), n - 1, 6, 11);
        for (int i = 0; i < WORDS; i++)
            sum[i] += term[i];
        assert_false(verify_find(sum, sizeof(sum), n - 1, 6, 11, &off));
    }
    /* One contribution left out. */
    verify_fill_term(term, sizeof(term), 250, 6, 11);
    for (int i = 0; i < WORDS; i++)
        sum[i] -= term[i];
    assert_true(verify_find(sum, sizeof(sum), 599, 6, 11, &off));
}

TEST(a_mismatch_names_op_size_rank_host_byte_source_and_both_values)
{
    unsigned char recv[4096];
    struct err err = {0, ""};
    char want[256];
    struct verify_piece piece = {.at = 1024, .len = 1024, .rank = 1};

    verify_fill(recv + 1024, 1024, 1, 0, site.seed);
    assert_int_equal(verify_find_piece(&site, recv, &piece, &err), 0);
    unsigned good = recv[1033];
    recv[1033] ^= 0x08;
    assert_int_equal(verify_find_piece(&site, recv, &piece, &err), -1);
    snprintf(want, sizeof(want),
             "all_gather of 4096 bytes: rank 2 (host h1): byte 1033 (block of rank 1) is 0x%02x, "
             "expected 0x%02x",
             good ^ 0x08, good);
    assert_string_equal(err.text, want);
}

TEST(a_wrong_sum_names_the_number_of_ranks)
{
    struct verify v = {OP_ALL_REDUCE, 16, 0, "h0", 3};
    unsigned char recv[16];
    struct err err = {0, ""};
    char want[256];
    struct verify_piece piece = {.len = 16, .sum = true};

    verify_fill_piece(recv, &piece, 3);
    assert_int_equal(verify_find_piece(&v, recv, &piece, &err), 0);
    unsigned good = recv[15];
    recv[15] ^= 0x80;
    assert_int_equal(verify_find_piece(&v, recv, &piece, &err), -1);
    snprintf(want, sizeof(want),
             "all_reduce of 16 bytes: rank 0 (host h0): byte 15 (sum over 1 ranks) is 0x%02x, "
             "expected 0x%02x",
             good ^ 0x80, good);
    assert_string_equal(err.text, want);
}

TEST(the_flip_hook_flips_one_bit_of_one_rank_in_one_op)
{
    unsigned char recv[8] = {0}, zero[8] = {0};
    struct verify v = site;

    setenv("RAILGAUGE_FLIP", "broadcast:1:0:0,all_gather:2:5:3", 1);
    assert_int_equal(verify_flip(&v, recv, 5, NULL), 0); /* offset 5 is not received */
    v.rank = 1;
    assert_int_equal(verify_flip(&v, recv, 8, NULL), 0);
    v.rank = 2;
    v.op = OP_BROADCAST;
    assert_int_equal(verify_flip(&v, recv, 8, NULL), 0);
    assert_memory_equal(recv, zero, 8);
    v.op = OP_ALL_GATHER;
    assert_int_equal(verify_flip(&v, recv, 8, NULL), 0);
    assert_int_equal(recv[5], 8);
    recv[5] = 0;
    assert_memory_equal(recv, zero, 8);
    unsetenv("RAILGAUGE_FLIP");
    assert_int_equal(verify_flip(&v, recv, 8, NULL), 0);
    assert_memory_equal(recv, zero, 8);
}

TEST(a_malformed_flip_hook_is_refused_with_a_reason)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"", "RAILGAUGE_FLIP=\"\": not OP:RANK:OFFSET:BIT"},
        {"all_gather:1:2", "RAILGAUGE_FLIP=\"all_gather:1:2\": not OP:RANK:OFFSET:BIT"},
        {"all_gather:1:2:3:4", ": not OP:RANK:OFFSET:BIT"},
        {"gather:1:2:3", "no operation \"gather\""},
        {"all_gather:1:2:3,", "RAILGAUGE_FLIP=\"all_gather:1:2:3,\": not OP:RANK:OFFSET:BIT"},
        {"all_gather:x:2:3", "RAILGAUGE_FLIP=\"all_gather:x:2:3\": \"x\""},
        {"all_gather:1:2:8", "RAILGAUGE_FLIP=\"all_gather:1:2:8\": "},
        {"all_gather:1:-2:3", "RAILGAUGE_FLIP=\"all_gather:1:-2:3\": "},
    };
    unsigned char recv[8] = {0};

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0, ""};
        setenv("RAILGAUGE_FLIP", bad[i].text, 1);
        assert_int_equal(verify_flip(&site, recv, 8, &err), -1);
        assert_int_equal(err.code, EXIT_CONFIG);
        if (!strstr(err.text, bad[i].reason))
            fail_msg("\"%s\" does not say \"%s\"", err.text, bad[i].reason);
    }
    unsetenv("RAILGAUGE_FLIP");
}
