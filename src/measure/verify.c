/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/verify.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "kernels/pattern.h"

/* The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t verify_key(int rank, int block, unsigned seed)
{
    return scramble(scramble(((uint64_t)(uint32_t)rank << 32) + (uint32_t)block + PATTERN_GOLDEN) +
                    seed);
}

/* Write W(rank), or with `term` W(rank) - W(rank - 1).  memcpy of 8 bytes is one unaligned load or
 * store; blocks of odd sizes are not aligned. */
static inline void fill(void *buf, size_t bytes, int rank, int block, unsigned seed, bool term)
{
    unsigned char *p = buf;
    uint64_t k = verify_key(rank, block, seed), before = verify_key(rank - 1, block, seed), w;

    size_t words = bytes / 8;

    for (size_t i = 0; i <= words; i++) {
        w = pattern_word(k, i);
        w = term ? pattern_subtract(w, pattern_word(before, i)) : w;
        if (i < words)
            memcpy(p + 8 * i, &w, 8);
        else
            memcpy(p + 8 * i, &w, bytes % 8);
    }
}

void verify_fill(void *buf, size_t bytes, int rank, int block, unsigned seed)
{
    fill(buf, bytes, rank, block, seed, false);
}

void verify_fill_term(void *buf, size_t bytes, int rank, int block, unsigned seed)
{
    fill(buf, bytes, rank, block, seed, rank > 0);
}

bool verify_find(const void *buf, size_t bytes, int rank, int block, unsigned seed, size_t *offset)
{
    const unsigned char *p = buf;
    uint64_t k = verify_key(rank, block, seed), want, got;
    size_t i, words = bytes / 8;

    for (i = 0; i < words; i++) {
        memcpy(&got, p + 8 * i, 8);
        if (got != pattern_word(k, i))
            break;
    }
    size_t left = i < words ? 8 : bytes % 8;

    want = pattern_word(k, i);
    for (size_t b = 0; b < left; b++)
        if (p[8 * i + b] != ((const unsigned char *)&want)[b]) {
            *offset = 8 * i + b;
            return true;
        }
    return false;
}

static unsigned wanted(int rank, int block, unsigned seed, size_t offset)
{
    uint64_t w = pattern_word(verify_key(rank, block, seed), offset / 8);

    return ((const unsigned char *)&w)[offset % 8];
}

void verify_fill_piece(void *buf, const struct verify_piece *p, unsigned seed)
{
    (p->sum ? verify_fill_term : verify_fill)(buf, p->len, p->rank, p->block, seed);
}

int verify_wrong_byte(const struct verify *v, const struct verify_piece *p, size_t off,
                      unsigned char got, struct err *err)
{
    char what[48];

    snprintf(what, sizeof(what), p->sum ? "sum over %d ranks" : "block of rank %d",
             p->sum ? p->rank + 1 : p->rank);
    return err_set(err,
                   "%s of %zu bytes: rank %d (host %s): byte %zu (%s) is 0x%02x, expected 0x%02x",
                   op_name(v->op), v->bytes, v->rank, v->host, p->at + off, what, got,
                   wanted(p->rank, p->block, v->seed, off));
}

int verify_find_piece(const struct verify *v, const void *recv, const struct verify_piece *p,
                      struct err *err)
{
    const unsigned char *at = (const unsigned char *)recv + p->at;
    size_t off;

    if (!verify_find(at, p->len, p->rank, p->block, v->seed, &off))
        return 0;
    return verify_wrong_byte(v, p, off, at[off], err);
}

struct flip {
    int op, rank, bit;
    uint64_t offset;
};

/* Parse OP:RANK:OFFSET:BIT; text is split into its fields. */
static int parse_flip(struct flip *f, char *text, struct err *err)
{
    char *field[4];

    for (int i = 0; i < 4; i++) {
        field[i] = strsep(&text, ":");
        if (!field[i])
            return err_config(err, "not OP:RANK:OFFSET:BIT");
    }
    if (text)
        return err_config(err, "not OP:RANK:OFFSET:BIT");
    f->op = op_find(field[0]);
    if (f->op < 0)
        return err_config(err, "no operation \"%s\"", field[0]);
    if (units_int(&f->rank, field[1], 0, INT_MAX, err) || units_u64(&f->offset, field[2], err) ||
        units_int(&f->bit, field[3], 0, 7, err))
        return -1;
    return 0;
}

int verify_flip(const struct verify *v, void *recv, size_t len, struct err *err)
{
    const char *text = getenv("RAILGAUGE_FLIP");
    char *copy = text ? mem_strdup(text) : NULL, *next = copy, *one;
    struct err why = {0, ""};
    struct flip f;
    int rc = 0;

    while (rc == 0 && (one = strsep(&next, ",")) != NULL) {
        rc = parse_flip(&f, one, &why);
        if (rc == 0 && f.op == (int)v->op && f.rank == v->rank && f.offset < len)
            ((unsigned char *)recv)[f.offset] ^= (unsigned char)(1u << f.bit);
    }
    free(copy);
    return rc ? err_config(err, "RAILGAUGE_FLIP=\"%s\": %s", text, why.text) : 0;
}

struct verify_moved verify_moves(enum op op, const int *member, int size, int self, size_t block)
{
    return (struct verify_moved){.flow = op_table[op].flow,
                                 .to_root = op_table[op].root == OP_TO_ROOT,
                                 .member = member,
                                 .size = size,
                                 .self = self,
                                 .block = block,
                                 .slice = block,
                                 .slots = 1};
}

/* Bytes of every block in the slice that starts at `at`. */
static size_t slice_at(const struct verify_moved *m, size_t at)
{
    return m->block - at < m->slice ? m->block - at : m->slice;
}

/* Blocks are numbered through the slices: slice * size + index. */
static struct verify_piece *scattered(const struct verify_moved *m, int *count)
{
    struct verify_piece *p = NULL;
    size_t n = (size_t)m->size;

    for (size_t at = 0; at < m->block; at += m->slice)
        for (size_t to = 0; to < n; to++) {
            size_t len = slice_at(m, at);
            MEM_PUSH(p, *count) = (struct verify_piece){at * n + to * len, len, m->self,
                                                        (int)(at / m->slice * n + to), true};
        }
    return p;
}

struct verify_piece *verify_sent(const struct verify_moved *m, int *count)
{
    struct verify_piece *p = NULL;
    int me = m->member[m->self];

    *count = 0;
    switch (m->flow) {
    case FLOW_SCATTER:
        return scattered(m, count);
    case FLOW_SUM:
        MEM_PUSH(p, *count) = (struct verify_piece){0, m->block, m->self, 0, true};
        break;
    case FLOW_GATHER:
        MEM_PUSH(p, *count) = (struct verify_piece){0, m->block, me, 0, false};
        break;
    case FLOW_EXCHANGE:
        for (int to = 0; to < m->size; to++)
            MEM_PUSH(p, *count) =
                (struct verify_piece){(size_t)to * m->block, m->block, me, m->member[to], false};
        break;
    case FLOW_FIRST:
    case FLOW_LEFT:
        for (int i = 0; i < m->slots; i++)
            MEM_PUSH(p, *count) =
                (struct verify_piece){(size_t)i * m->stride, m->block, me, i, false};
        break;
    }
    return p;
}

struct verify_piece *verify_received(const struct verify_moved *m, int *count)
{
    struct verify_piece *p = NULL;
    int n = m->size, left = (m->self + n - 1) % n;
    int from = m->member[m->flow == FLOW_FIRST ? 0 : left];

    *count = 0;
    if (m->self == 0 ? m->flow == FLOW_FIRST : m->to_root)
        return NULL;
    switch (m->flow) {
    case FLOW_SCATTER:
        for (size_t at = 0; at < m->block; at += m->slice)
            MEM_PUSH(p, *count) = (struct verify_piece){at, slice_at(m, at), n - 1,
                                                        (int)(at / m->slice) * n + m->self, true};
        break;
    case FLOW_SUM:
        MEM_PUSH(p, *count) = (struct verify_piece){0, m->block, n - 1, 0, true};
        break;
    case FLOW_GATHER:
    case FLOW_EXCHANGE:
        for (int i = 0; i < n; i++)
            MEM_PUSH(p, *count) =
                (struct verify_piece){(size_t)i * m->block, m->block, m->member[i],
                                      m->flow == FLOW_GATHER ? 0 : m->member[m->self], false};
        break;
    case FLOW_FIRST:
    case FLOW_LEFT:
        for (int i = 0; i < m->slots; i++)
            MEM_PUSH(p, *count) =
                (struct verify_piece){(size_t)i * m->stride, m->block, from, i, false};
        break;
    }
    return p;
}
