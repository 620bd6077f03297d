/* SPDX-License-Identifier: BSD-3-Clause */
/* sent.c - predicted messages find those that were sent, and what is left is said. */
#include <math.h>
#include <string.h>

#include "test.h"

#include "record/job/answers.h"

static struct message message(const char *label, enum op op, int size, int stride, double bytes,
                              double count)
{
    return (struct message){
        .label = label, .op = op, .span = {size, stride}, .bytes = bytes, .count = count};
}

static struct record_row row(enum op op, int axis, int size, int stride, uint64_t bytes,
                             double count)
{
    return (struct record_row){
        .axis = axis, .size = size, .stride = stride, .op = op, .bytes = bytes, .count = count};
}

static void check(const struct sent_row *r, enum sent_is is, double sent_bytes, double sent_count)
{
    assert_string_equal(sent_name[r->is], sent_name[is]);
    assert_true(fabs(r->sent_bytes - sent_bytes) < 1);
    assert_true(fabs(r->sent_count - sent_count) < 1e-9);
}

TEST(test_compare)
{
    struct traffic t = {.messages = 7};
    struct record_row rows[] = {
        row(OP_ALL_GATHER, 0, 8, 4, 1000, 64),     row(OP_ALL_REDUCE, 1, 4, 1, 500, 100),
        row(OP_REDUCE_SCATTER, 0, 8, 4, 3000, 10), row(OP_REDUCE_SCATTER, 0, 8, 4, 1000, 2),
        row(OP_SENDRECV, -1, 2, -32, 77, 6),       row(OP_ALL_REDUCE, 2, 32, 1, 4, 1),
        row(OP_SENDRECV, -1, 2, 32, 77, 6),        row(OP_ALL_GATHER, 3, 8, 1, 1000, 5),
    };
    struct record_steps steps = {.row = rows, .rows = sizeof(rows) / sizeof(*rows)};
    struct sent s;

    t.message[0] = message("gather forward", OP_ALL_GATHER, 8, 4, 1001, 32);
    t.message[1] = message("gather backward", OP_ALL_GATHER, 8, 4, 1001, 32);
    t.message[2] = message("tp", OP_ALL_REDUCE, 4, 1, 500, 128);
    t.message[3] = message("scatter", OP_REDUCE_SCATTER, 8, 4, 1003, 32);
    t.message[4] = message("pp", OP_SENDRECV, 2, 32, 77, 12);
    t.message[5] = message("ep", OP_ALL_TO_ALL, 8, 1, 64, 9);
    t.message[6] = message("more scatter", OP_REDUCE_SCATTER, 8, 4, 9e6, 1);
    sent_compare(&s, &t, &steps);
    assert_int_equal(s.rows, 6 + 2);
    check(&s.row[0], SENT_SAME, 1000, 64);
    check(&s.row[1], SENT_COUNT, 500, 100);
    check(&s.row[2], SENT_COUNT, 1000, 2); /* its size was sent; the other one is somebody else's */
    check(&s.row[3], SENT_SAME, 77, 12);
    check(&s.row[4], SENT_NOT, 0, 0);
    check(&s.row[5], SENT_SIZES, 3000, 10);
    check(&s.row[6], SENT_MORE, 4, 1);
    check(&s.row[7], SENT_MORE, 1000, 5); /* other groups of eight */
    assert_int_equal(s.row[7].span.stride, 1);
    assert_null(s.row[7].label);
    sent_free(&s);
}
