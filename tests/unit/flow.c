/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/verify.h"
#include "test.h"

#include <stdlib.h>

static const int member[] = {7, 3, 5};

static struct verify_moved moves(enum op_flow flow, int self)
{
    return (struct verify_moved){.flow = flow,
                                 .member = member,
                                 .size = 3,
                                 .self = self,
                                 .block = 40,
                                 .slice = flow == FLOW_SCATTER ? 16 : 40,
                                 .slots = 1};
}

/* Whatever is received as (rank, block) was sent as that by the member with this id. */
TEST(what_arrives_was_sent_by_somebody)
{
    static const enum op_flow flows[] = {FLOW_GATHER, FLOW_EXCHANGE, FLOW_FIRST, FLOW_LEFT};

    for (size_t f = 0; f < sizeof(flows) / sizeof(*flows); f++)
        for (int me = 0; me < 3; me++) {
            struct verify_moved m = moves(flows[f], me);
            int got, sent;
            struct verify_piece *in = verify_received(&m, &got);
            assert_int_equal(got, flows[f] == FLOW_LEFT ? 1 : flows[f] == FLOW_FIRST ? me > 0 : 3);
            for (int i = 0; i < got; i++) {
                int found = 0;
                for (int from = 0; from < 3; from++) {
                    struct verify_moved o = moves(flows[f], from);
                    struct verify_piece *out = verify_sent(&o, &sent);
                    for (int k = 0; k < sent; k++)
                        found += out[k].rank == in[i].rank && out[k].block == in[i].block &&
                                 out[k].len == in[i].len;
                    free(out);
                }
                assert_int_equal(found, 1);
            }
            free(in);
        }
}

/* A sliced sum: pieces cover each buffer once, and the blocks of the sum have the same numbers. */
TEST(slices_of_a_scattered_sum_cover_it_once)
{
    for (int me = 0; me < 3; me++) {
        struct verify_moved m = moves(FLOW_SCATTER, me);
        int sent, got;
        struct verify_piece *out = verify_sent(&m, &sent), *in = verify_received(&m, &got);
        size_t at = 0;
        assert_int_equal(sent, 9);
        for (int i = 0; i < sent; i++) {
            assert_int_equal(out[i].at, at);
            assert_int_equal(out[i].rank, me);
            assert_int_equal(out[i].block, i);
            at += out[i].len;
        }
        assert_int_equal(at, 3 * 40);
        assert_int_equal(got, 3);
        assert_int_equal(in[2].at, 32);
        assert_int_equal(in[2].len, 8);
        for (int i = 0; i < got; i++)
            assert_int_equal(in[i].block, out[i * 3 + me].block);
        free(out);
        free(in);
    }
}

TEST(only_the_root_of_a_reduce_receives)
{
    for (int me = 0; me < 3; me++) {
        struct verify_moved m = moves(FLOW_SUM, me);
        int n;
        m.to_root = true;
        struct verify_piece *p = verify_received(&m, &n);
        assert_int_equal(n, me == 0);
        free(p);
        p = verify_sent(&m, &n);
        assert_int_equal(n, 1);
        assert_true(p[0].sum);
        free(p);
    }
    assert_true(op_adds(OP_REDUCE) && op_adds(OP_ALL_REDUCE) && op_adds(OP_REDUCE_SCATTER));
    assert_false(op_adds(OP_ALL_GATHER) || op_adds(OP_BROADCAST));
}
