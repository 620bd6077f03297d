/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "record_file.h"

static char *slurp(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "r");
    char *text = malloc(1 << 20);

    assert_non_null(f);
    *bytes = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static char *made(size_t *bytes)
{
    struct record_file *f = record_file_new(4);
    int comm = record_file_comm(f, 0xabc, 3, 16, 2, "dp");
    char path[] = "/tmp/record-XXXXXX", *text;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    for (int i = 0; i < 6; i++)
        record_file_add(f, RECORD_COLL, comm, "AllReduce", "ncclFloat32")->count =
            100 + (unsigned)i;
    assert_int_equal(record_file_write(f, path), 0);
    text = slurp(path, bytes);
    remove(path);
    return text;
}

TEST(overwritten_ring)
{
    size_t bytes;
    char *text = made(&bytes);
    const struct record_head *h = (const void *)text;

    assert_null(record_wrong(text, bytes));
    assert_int_equal(h->next, 6);
    for (uint64_t seq = 0; seq < 6; seq++) {
        const struct record *r = record_at(h, seq);
        assert_true(record_whole(r, seq % 4, 4));
        assert_int_equal(record_seq(r), seq < 2 ? seq + 4 : seq);
        assert_int_equal(r->count, 100 + record_seq(r));
        assert_string_equal(record_name(h, r->op), "AllReduce");
        assert_int_equal(record_comm_at(h, r->comm)->ranks, 16);
    }
    assert_string_equal(record_name(h, 77), "");
    free(text);
}

/* A record that is being filled, or that was left in the place of another, is none. */
TEST(broken_words)
{
    struct record r = {.word = 6u << 16};

    assert_true(record_whole(&r, 1, 4));
    assert_false(record_whole(&r, 2, 4));
    r.word |= 0x8000;
    assert_false(record_whole(&r, 1, 4));
    r.word = 6u << 16 | 3;
    assert_true(record_whole(&r, 1, 4));
    r.word = 0;
    assert_false(record_whole(&r, 3, 4));
}

TEST(what_is_wrong)
{
    size_t bytes;
    char *text = made(&bytes);
    struct record_head *h = (void *)text, good = *h;

    assert_string_equal(record_wrong(text, 100), "too short for a header");
    assert_string_equal(record_wrong(text, bytes - 1), "its ring is cut short");
#define WRONG(field, value, why)                                                                   \
    do {                                                                                           \
        h->field = (value);                                                                        \
        assert_string_equal(record_wrong(text, bytes), why);                                       \
        *h = good;                                                                                 \
    } while (0)
    WRONG(magic[0], 'X', "no record of NCCL (magic)");
    WRONG(order, 0x04030201, "written by a machine of another byte order");
    WRONG(version, 2, "of another version of the format");
    WRONG(record_bytes, 128, "of another version of the format");
    WRONG(comms, 9, "its tables are damaged");
    WRONG(names, 0, "its tables are damaged");
    WRONG(names, RECORD_NAMES + 1, "its tables are damaged");
    WRONG(comm_at, 1u << 30, "its tables lie outside the file");
    WRONG(comm_at, sizeof(good) - 64, "its tables lie outside the file");
    WRONG(ring_at, good.comm_at, "its tables lie outside the file");
    WRONG(ring_at, UINT64_MAX - 63, "its ring is cut short");
    WRONG(capacity, 0, "its ring is cut short");
    WRONG(capacity, UINT64_MAX / 64, "its ring is cut short");
    free(text);
}
