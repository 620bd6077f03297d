/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithm.c - lines of NCCL's algorithms: what is allowed where, what a double tree sends, and what no line may do. */
#include "matrix/algorithm.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fabs(b)))
        fail_msg("%.15g is not %.15g", a, b);
}

/* --- further hops of a ring inside a domain --- */

TEST(small_messages_hop_fast_large_ones_use_the_whole_rate)
{
    near(algorithm_further(62, 1e-6, 0), 62 * PROTOCOL_HOP_LL + 4e-6);
    near(algorithm_further(62, 500e-6, 0), 62 * 1.9e-6 + 500e-6 / 0.92);
    near(algorithm_further(62, 10e-3, 0), 62 * 3.4e-6 + 10e-3);
    near(algorithm_further(0, 1e-3, 0), 1e-3);
    /* the curve is slower than any protocol's share: the fastest hops cost no bandwidth */
    near(algorithm_further(62, 10e-6, 90e-6), 62 * PROTOCOL_HOP_LL + 90e-6);
}

TEST(more_hops_and_more_bytes_never_take_less)
{
    double before = 0;

    for (double busy = 1e-7; busy < 1; busy *= 1.1) {
        double t = algorithm_further(63, busy, 0);
        assert_true(t > before && t > busy);
        assert_true(algorithm_further(64, busy, 0) > t);
        before = t;
    }
    assert_true(isnan(algorithm_further(3, NAN, 0)));
}

/* --- the double tree --- */

/* NCCL's binary tree of d nodes as trees.cc builds it: the parent of each, node 0 above all. */
static int parent(int r, int d)
{
    int low = r & -r;

    return r / low % 4 == 1 && r + low < d ? r + low : r - low;
}

/* Node of the second tree: mirrored where d is even, turned by one where it is odd. */
static int at(int r, int d, int tree)
{
    return !tree ? r : d % 2 ? (r + 1) % d : d - 1 - r;
}

/* Most buffers that leave a block of so many of d nodes, half of the buffer by each tree, up and down. */
static double leaves(int d, int block)
{
    double *out = calloc((size_t)d, sizeof(*out)), most = 0;

    assert_non_null(out);
    for (int tree = 0; tree < 2; tree++)
        for (int r = 1; r < d; r++) {
            int a = at(r, d, tree) / block, b = at(parent(r, d), d, tree) / block;
            if (a != b) {
                out[a] += 0.5;
                out[b] += 0.5;
            }
        }
    for (int i = 0; i < d; i++)
        most = fmax(most, out[i]);
    free(out);
    return most;
}

TEST(two_buffers_leave_a_node_of_a_double_tree)
{
    for (int d = 2; d < 600; d++)
        near(leaves(d, 1), algorithm_load(d));
}

TEST(two_to_four_buffers_leave_a_block_of_nodes)
{
    for (int block = 2; block <= 16; block *= 2)
        for (int blocks = 2; blocks <= 16; blocks++)
            near(leaves(blocks * block, block), blocks < 4 ? 2 : blocks % 2 ? 4 : 3);
}

/* --- lines --- */

/* Eight NVL72 racks of GB200 in one collective. */
static const struct algorithm_group racks = {.model = "NVIDIA GB200",
                                             .ranks = 576,
                                             .domains = 8,
                                             .widest = 72,
                                             .nvlink = true,
                                             .inside = 770e9,
                                             .ring = 72 * 49.2e9,
                                             .tree = 72 * 49.2e9,
                                             .pat = 72 * 49.2e9,
                                             .hop_in = 9.9e-6,
                                             .hop_out = 5e-6};

static bool has(const struct algorithm_group *g, enum op op, enum algorithm a)
{
    struct algorithm_line line[ALGORITHM_LINES];
    int n = algorithm_lines(line, g, op);

    assert_true(n >= 1 && n <= ALGORITHM_LINES);
    for (int i = 0; i < n; i++)
        if (line[i].algorithm == a)
            return true;
    return false;
}

static double price(const struct algorithm_group *g, enum op op, double bytes,
                    char text[ALGORITHM_WORDS])
{
    struct algorithm_line line[ALGORITHM_LINES];
    double sec;
    int n = algorithm_lines(line, g, op);

    algorithm_words(algorithm_fastest(line, n, bytes, &sec), g, op, "there", text);
    return sec;
}

TEST(what_is_allowed_depends_on_operation_shape_and_gpu)
{
    struct algorithm_group g = racks;

    assert_true(has(&g, OP_ALL_REDUCE, ALGORITHM_TREE));
    assert_true(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE));
    assert_false(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS));
    assert_false(has(&g, OP_ALL_GATHER, ALGORITHM_TREE));
    assert_false(has(&g, OP_ALL_GATHER, ALGORITHM_NVLS));
    assert_false(has(&g, OP_BROADCAST, ALGORITHM_TREE));
    g.ranks = 24; /* three GPUs a domain */
    assert_false(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE));
    g.ranks = 32;
    assert_true(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE));
    g.model = "NVIDIA A100-SXM4-40GB";
    assert_false(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE));
    g = racks;
    g.nvlink = false;
    assert_false(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE));
    g = racks;
    g.ranks = 72;
    g.domains = 1;
    g.ring = g.tree = g.pat = INFINITY;
    assert_true(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS));
    assert_true(has(&g, OP_ALL_GATHER, ALGORITHM_NVLS));
    assert_false(has(&g, OP_BROADCAST, ALGORITHM_NVLS));
}

TEST(pat_came_with_2_23_and_is_for_one_gpu_a_node)
{
    struct algorithm_group g = racks;

    g.ranks = g.domains = 8;
    g.inside = INFINITY;
    assert_true(has(&g, OP_ALL_GATHER, ALGORITHM_PAT)); /* where no version is known */
    g.nccl = 22304;
    assert_true(has(&g, OP_REDUCE_SCATTER, ALGORITHM_PAT));
    assert_false(has(&g, OP_ALL_REDUCE, ALGORITHM_PAT));
    g.nccl = 22205;
    assert_false(has(&g, OP_REDUCE_SCATTER, ALGORITHM_PAT));
    g.nccl = 0;
    g.ranks = 16;
    assert_false(has(&g, OP_ALL_GATHER, ALGORITHM_PAT));
}

TEST(versions_change_the_trees_of_three_domains_and_more)
{
    struct algorithm_group g = racks, two = racks;
    char text[ALGORITHM_WORDS];

    g.nccl = 22907;
    double before = price(&g, OP_ALL_REDUCE, 4e9, text);
    g.nccl = 23003;
    assert_true(price(&g, OP_ALL_REDUCE, 4e9, text) <= before);
    g.nccl = 22602; /* twice Hopper's tables, and no tables of its own */
    assert_true(price(&g, OP_ALL_REDUCE, 64e6, text) < before);
    two.ranks = 144;
    two.domains = 2;
    two.nccl = 22803; /* hops of an NVLS tree 14 -> 20.9 us */
    double later = price(&two, OP_ALL_REDUCE, 16e6, text);
    two.nccl = 22706;
    near(later - price(&two, OP_ALL_REDUCE, 16e6, text), 2 * 6.9e-6);
}

TEST(eight_racks_take_a_tree_at_64_kib_and_no_flat_ring)
{
    char text[ALGORITHM_WORDS];

    double sec = price(&racks, OP_ALL_REDUCE, 65536, text);
    assert_string_equal(text, "tree, LL, there, 2 x 3 hops, as NCCL 2.28");
    assert_true(sec > 150e-6 && sec < 350e-6); /* a flat ring takes 3.95 ms */
    price(&racks, OP_ALL_GATHER, 16e9, text);
    assert_string_equal(text, "ring, Simple, there, 575 hops, as NCCL 2.28");
}

TEST(three_racks_reach_what_was_measured)
{
    struct algorithm_group g = racks;
    char text[ALGORITHM_WORDS];

    /* NCCL issue #1801: trees over three racks of 4 and of 8 GPUs reach two thirds of what the NICs carry */
    for (int per = 4; per <= 8; per *= 2) {
        g.nccl = 22706;
        g.ranks = 3 * per;
        g.domains = 3;
        g.ring = g.tree = g.pat = per * 49.2e9;
        double algbw = 16e9 / price(&g, OP_ALL_REDUCE, 16e9, text);
        assert_true(fabs(algbw / (per == 4 ? 127.9e9 : 253.4e9) - 1) < 0.05);
    }
}

/* What trees carry falls from two domains to ten and then no more. */
TEST(more_domains_take_the_columns_of_more_step_by_step)
{
    struct algorithm_group g = racks;
    double rate[14];

    g.nccl = 22907;
    for (int d = 2; d < 14; d++) {
        struct algorithm_line line[ALGORITHM_LINES];
        g.domains = d;
        g.ranks = 72 * d;
        int n = algorithm_lines(line, &g, OP_ALL_REDUCE);
        rate[d] = 0;
        for (int i = 0; i < n; i++)
            if (line[i].algorithm == ALGORITHM_NVLS_TREE)
                rate[d] = line[i].rate;
    }
    near(rate[2], 0.6 * 770e9 * 0.92);
    for (int d = 3; d <= 10; d++)
        assert_true(rate[d] < rate[d - 1] && rate[d] > rate[d - 1] * 0.8);
    near(rate[10], rate[2] * 0.456);
    near(rate[11], rate[10]);
}

static const struct algorithm_line *line_of(struct algorithm_line line[ALGORITHM_LINES],
                                            const struct algorithm_group *g, enum op op,
                                            enum algorithm a, enum protocol p)
{
    int n = algorithm_lines(line, g, op);

    for (int i = 0; i < n; i++)
        if (line[i].algorithm == a && line[i].protocol == p)
            return &line[i];
    fail();
    return NULL;
}

/* A message over InfiniBand takes 5.5 us: what is above is met twice a hop, thrice as often by LL128 and Simple. */
TEST(slower_networks_are_met_by_each_channel)
{
    static const enum algorithm of[] = {ALGORITHM_RING, ALGORITHM_TREE};
    struct algorithm_line line[ALGORITHM_LINES];
    struct algorithm_group g = racks;

    for (int a = 0; a < 2; a++)
        for (int p = 0; p < PROTOCOLS; p++) {
            double hops = 2 * (a ? 3 : 7) * (!a && p == PROTOCOL_SIMPLE ? 1.4 : 1);
            g.hop_out = 5.5e-6;
            double fast = line_of(line, &g, OP_ALL_REDUCE, of[a], (enum protocol)p)->latency;
            g.hop_out = 15.5e-6;
            double slow = line_of(line, &g, OP_ALL_REDUCE, of[a], (enum protocol)p)->latency;
            assert_true(fabs((slow - fast) / (hops * (p ? 60e-6 : 20e-6)) - 1) < 1e-9);
        }
    g.hop_out = 5.4e-6;
    double faster = line_of(line, &g, OP_ALL_REDUCE, ALGORITHM_TREE, PROTOCOL_LL)->latency;
    near(faster, 6.8e-6 + 2 * (71 * 0.6e-6 * 2.2 + 3 * 5e-6));
}

TEST(a_message_that_the_window_holds_takes_two_stages)
{
    assert_true(algorithm_stream(0) == 0);
    near(algorithm_stream(PROTOCOL_WINDOW), 1.5 * PROTOCOL_WINDOW);
    assert_true(algorithm_stream(1000) > 1999 && algorithm_stream(1000) < 2000);
    assert_true(algorithm_stream(1e10) < 1e10 + PROTOCOL_WINDOW &&
                algorithm_stream(1e10) > 1e10 + 0.999 * PROTOCOL_WINDOW);
}

/* Heads of an NVL72 are met once, however many racks there are. */
TEST(heads_count_once)
{
    struct algorithm_line line[ALGORITHM_LINES];
    struct algorithm_group g = racks;

    double eight = line_of(line, &g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE, PROTOCOL_SIMPLE)->latency;
    near(eight, (25 + 0.5 * 64 + 2 * 3 * 20.9 + 2 * 0.8 * 64) * 1e-6);
    g.ranks = 64;
    double narrow = line_of(line, &g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE, PROTOCOL_SIMPLE)->latency;
    assert_true(narrow < eight);
}

/* Multicast is for Hopper and Blackwell only, PAT or not. */
TEST(names_tell_generations)
{
    static const struct {
        const char *model;
        bool nvls;
        double more; /* us of a tree over eight racks that an LL hop inside takes */
    } of[] = {{"NVIDIA GB200", true, 2.2},
              {"NVIDIA GB300", true, 2.2},
              {"NVIDIA B200", true, 2.2},
              {"NVIDIA H100 80GB HBM3", true, 1},
              {"NVIDIA GH200 480GB", true, 1},
              {"NVIDIA H20", true, 1},
              {"NVIDIA H800", true, 1},
              {"NVIDIA A100-SXM4-40GB", false, 1.6},
              {"NVIDIA L40S", false, 1.6},
              {"Tesla V100-SXM2-32GB", false, 1.6},
              {"AMD Instinct MI300X", false, 1},
              {"", false, 1},
              {"NVIDIA X1", false, 1}};
    char text[ALGORITHM_WORDS];

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct algorithm_group g = racks;
        g.model = of[i].model;
        assert_int_equal(has(&g, OP_ALL_REDUCE, ALGORITHM_NVLS_TREE), of[i].nvls);
        near(price(&g, OP_ALL_REDUCE, 0, text), 6.8e-6 + 2 * (71 * 0.6e-6 * of[i].more + 3 * 5e-6));
    }
}

TEST(versions_are_named)
{
    struct algorithm_group g = racks;
    char text[ALGORITHM_WORDS];

    g.nccl = 22907;
    price(&g, OP_ALL_GATHER, 16e9, text);
    assert_string_equal(text, "ring, Simple, there, 575 hops, NCCL 2.29");
    g.nccl = 23099;
    price(&g, OP_ALL_GATHER, 16e9, text);
    assert_string_equal(text, "ring, Simple, there, 575 hops, NCCL 2.30");
    g.nccl = 23100;
    price(&g, OP_ALL_GATHER, 16e9, text);
    assert_string_equal(text, "ring, Simple, there, 575 hops, NCCL 2.31 by the tables of 2.30");
}

/* CoreWeave/nccl-tests, log of a job with SHARP: bus bandwidth of all_reduce over 64 H100 on 8 hosts. */
TEST(sharp_is_priced_as_measured_and_only_if_asked_for)
{
    static const double busbw[] = {356e9, 366e9, 381e9, 383e9, 387e9};
    struct algorithm_group g = {.model = "NVIDIA H100 80GB HBM3",
                                .ranks = 64,
                                .domains = 8,
                                .widest = 8,
                                .nvlink = true,
                                .inside = 370.8e9,
                                .ring = 8 * 49e9,
                                .tree = 8 * 49e9,
                                .pat = 8 * 49e9,
                                .hop_in = 6.6e-6,
                                .hop_out = 5.5e-6};
    char text[ALGORITHM_WORDS];

    assert_false(has(&g, OP_ALL_REDUCE, ALGORITHM_SHARP));
    g.only = ALGORITHM_SHARP;
    for (int i = 0; i < 5; i++) {
        double bytes = 0x1p29 * (1 << i), sec = price(&g, OP_ALL_REDUCE, bytes, text);
        assert_true(fabs(bytes * 2 * 63 / 64 / sec / busbw[i] - 1) < 0.04);
    }
    assert_string_equal(text, "NVLS and SHARP, there, 2 x 1 hop, as NCCL 2.28");
    near(price(&g, OP_ALL_REDUCE, 0, text), 43e-6);
    assert_true(isnan(price(&g, OP_ALL_GATHER, 1e6, text)));
    g.only = ALGORITHM_TREE;
    price(&g, OP_ALL_REDUCE, 0x1p33, text);
    assert_int_equal(strncmp(text, "tree, ", 6), 0);
    assert_true(isnan(price(&g, OP_BROADCAST, 1e6, text)));
    g.only = ALGORITHM_SHARP;
    g.model = "NVIDIA A100-SXM4-40GB";
    assert_true(isnan(price(&g, OP_ALL_REDUCE, 1e6, text)));
}

TEST(an_unknown_rate_has_no_price)
{
    struct algorithm_group g = racks;
    char text[ALGORITHM_WORDS];

    g.ring = NAN;
    assert_true(isnan(price(&g, OP_ALL_REDUCE, 1e6, text)));
    g = racks;
    g.inside = NAN;
    assert_true(isnan(price(&g, OP_ALL_GATHER, 1e6, text)));
}
