// SPDX-License-Identifier: BSD-3-Clause
// kernels.cu - the kernels behind kernels.h, in the common subset of C and C++.
//
// Memory is accessed in cells of 16 bytes at addresses that are multiples of 16, at any address of
// the buffer: threads load and store whole cells fastest, and neighbouring threads access
// neighbouring cells.  Only the first and last cell of a buffer can be partly outside; these are
// processed by byte.  Every loop advances by the whole grid, so that any grid size works.
#include "kernels/kernels_impl.h"
#include "kernels/pattern.h"

struct cell {
    uint64_t word[2];
} __attribute__((aligned(16)));

// --- where the cells of a buffer lie ---
struct cells {
    unsigned char *base; // cell 0, at or before the buffer
    size_t skip, bytes;  // bytes of cell 0 before the buffer; bytes of the buffer
    size_t count;
};

DEVICE struct cells cells_of(const void *buf, size_t bytes)
{
    struct cells c;

    c.skip = (size_t)buf % 16;
    c.base = (unsigned char *)buf - c.skip;
    c.bytes = bytes;
    c.count = (c.skip + bytes + 15) / 16;
    return c;
}

DEVICE bool cell_is_whole(const struct cells *c, size_t i)
{
    return 16 * i >= c->skip && 16 * (i + 1) <= c->skip + c->bytes;
}

DEVICE bool byte_is_inside(const struct cells *c, size_t at)
{
    return at >= c->skip && at < c->skip + c->bytes;
}

// --- the pattern: eight bytes from any byte offset on ---
DEVICE uint64_t term_word(const struct pattern_args *p, size_t i)
{
    uint64_t w = pattern_word(p->k, i);

    return p->term ? pattern_subtract(w, pattern_word(p->k_before, i)) : w;
}

// Word i is at byte 8 * i.  Callers never use offsets before the start of the buffer.
DEVICE uint64_t pattern_bytes(const struct pattern_args *p, size_t offset)
{
    size_t i = offset / 8;
    unsigned shift = 8 * (unsigned)(offset % 8);
    uint64_t low = term_word(p, i);

    return shift ? low >> shift | term_word(p, i + 1) << (64 - shift) : low;
}

DEVICE struct cell pattern_cell(const struct pattern_args *p, size_t offset)
{
    struct cell c;

    c.word[0] = pattern_bytes(p, offset);
    c.word[1] = pattern_bytes(p, offset + 8);
    return c;
}

DEVICE unsigned char pattern_byte(const struct pattern_args *p, size_t offset)
{
    return (unsigned char)(term_word(p, offset / 8) >> 8 * (offset % 8));
}

KERNEL(256) rg_fill(void *buf, size_t bytes, struct pattern_args p)
{
    struct cells c = cells_of(buf, bytes);

    for (size_t i = thread_index(); i < c.count; i += thread_count()) {
        if (cell_is_whole(&c, i)) {
            ((struct cell *)c.base)[i] = pattern_cell(&p, 16 * i - c.skip);
            continue;
        }
        for (size_t at = 16 * i; at < 16 * i + 16; at++)
            if (byte_is_inside(&c, at))
                c.base[at] = pattern_byte(&p, at - c.skip);
    }
}

// Preset *wrong to "none", before searching threads lower it.
KERNEL(32) rg_preset(uint64_t *wrong)
{
    if (thread_index() == 0)
        *wrong = ~(uint64_t)0;
}

// Lower *wrong to the first wrong byte of cell i; loads are repeated, because this is rare.
DEVICE void locate(const struct cells *c, size_t i, const struct pattern_args *p, uint64_t *wrong)
{
    for (size_t at = 16 * i; at < 16 * i + 16; at++)
        if (byte_is_inside(c, at) && c->base[at] != pattern_byte(p, at - c->skip)) {
            if (at - c->skip < *(volatile uint64_t *)wrong)
                min_shared(wrong, at - c->skip);
            return;
        }
}

DEVICE bool is_wrong(const struct cells *c, size_t i, const struct pattern_args *p,
                     const struct cell *got)
{
    struct cell want = pattern_cell(p, 16 * i - c->skip);

    return ((want.word[0] ^ got->word[0]) | (want.word[1] ^ got->word[1])) != 0;
}

// Each thread has four loads in flight: a single load would not saturate the memory.
KERNEL(256) rg_find(const void *buf, size_t bytes, struct pattern_args p, uint64_t *wrong)
{
    struct cells c = cells_of(buf, bytes);
    const struct cell *cell = (const struct cell *)c.base;
    size_t n = thread_count(), i = thread_index();
    size_t last = c.count ? c.count - 1 : 0; // first and last cell: by byte
    struct cell got[4];

    if (i == 0 && c.count) {
        locate(&c, 0, &p, wrong);
        locate(&c, last, &p, wrong);
    }
    ROLLED for (i += 1; i + 3 * n < last; i += 4 * n) {
        for (int j = 0; j < 4; j++)
            got[j] = cell[i + j * n];
        for (int j = 0; j < 4; j++)
            if (is_wrong(&c, i + j * n, &p, &got[j])) {
                locate(&c, i + j * n, &p, wrong);
                return; // later errors of this thread are later in the buffer
            }
    }
    ROLLED for (; i < last; i += n) {
        got[0] = cell[i];
        if (is_wrong(&c, i, &p, &got[0])) {
            locate(&c, i, &p, wrong);
            return;
        }
    }
}

// --- one-hot: 16 / width elements per cell; the buffer starts at a multiple of the width ---
DEVICE uint64_t onehot_bits(const struct onehot_args *h, size_t element)
{
    uint64_t word = pattern_word(h->k, element);

    return onehot_owner(word, h->ranks) == h->rank ? onehot_value(h->type, h->redop, word)
                                                : onehot_other(h->type, h->redop);
}

// Elements of one 8-byte word of the buffer.
DEVICE uint64_t onehot_bytes(const struct onehot_args *h, size_t element)
{
    uint64_t out = 0;

    for (int at = 0; at < 8; at += onehot_width(h->type), element++)
        out |= onehot_bits(h, element) << 8 * at;
    return out;
}

DEVICE void fill_onehot(void *buf, size_t bytes, const struct onehot_args *h)
{
    struct cells c = cells_of(buf, bytes);
    size_t width = (size_t)onehot_width(h->type), element;
    struct cell out;

    for (size_t i = thread_index(); i < c.count; i += thread_count()) {
        if (cell_is_whole(&c, i)) {
            element = (16 * i - c.skip) / width;
            out.word[0] = onehot_bytes(h, element);
            out.word[1] = onehot_bytes(h, element + 8 / width);
            ((struct cell *)c.base)[i] = out;
            continue;
        }
        for (size_t at = 16 * i; at < 16 * i + 16; at++)
            if (byte_is_inside(&c, at))
                c.base[at] = (unsigned char)(onehot_bits(h, (at - c.skip) / width) >>
                                             8 * ((at - c.skip) % width));
    }
}

// `average` is a constant at each call: rounded results are checked by element, in doubles.
DEVICE bool onehot_is_wrong(const struct onehot_args *h, bool average, size_t element, uint64_t got)
{
    uint64_t word = pattern_word(h->k, h->first + element);

    return average ? !onehot_near(h->type, NCCL_AVG, h->ranks, word, got)
                   : got != onehot_value(h->type, NCCL_SUM, word);
}

DEVICE uint64_t element_at(const unsigned char *p, size_t width)
{
    uint64_t v = 0;

    for (size_t at = 0; at < width; at++)
        v |= (uint64_t)p[at] << 8 * at;
    return v;
}

// Eight bytes of the result of all reductions except the average: the values of the owners.
DEVICE uint64_t onehot_result(const struct onehot_args *h, size_t element)
{
    uint64_t out = 0;

    for (int at = 0; at < 8; at += onehot_width(h->type), element++)
        out |= onehot_value(h->type, NCCL_SUM, pattern_word(h->k, h->first + element)) << 8 * at;
    return out;
}

DEVICE bool onehot_cell_is_wrong(const struct onehot_args *h, bool average, size_t element,
                                 const struct cell *got)
{
    int each = 8 / onehot_width(h->type), wrong = 0;

    if (!average)
        return ((got->word[0] ^ onehot_result(h, element)) |
                (got->word[1] ^ onehot_result(h, element + each))) != 0;
    for (int w = 0; w < 2; w++)
        for (int at = 0; at < 8; at += onehot_width(h->type), element++)
            wrong |= onehot_is_wrong(h, true, element,
                                     got->word[w] >> 8 * at & onehot_all(h->type));
    return wrong;
}

// Find the first wrong element of cell i, one by one.
DEVICE void locate_onehot(const struct cells *c, size_t i, const struct onehot_args *h, bool average,
                          uint64_t *wrong)
{
    size_t width = (size_t)onehot_width(h->type);

    for (size_t at = 16 * i; at < 16 * i + 16; at += width) {
        size_t element = (at - c->skip) / width;

        if (!byte_is_inside(c, at) ||
            !onehot_is_wrong(h, average, element, element_at(c->base + at, width)))
            continue;
        if (element < *(volatile uint64_t *)wrong)
            min_shared(wrong, element);
        return;
    }
}

// First wrong cell of this thread, between the first and last of the buffer; `last` or more: none.
// Each thread has four loads in flight; averages are limited by arithmetic in doubles.
DEVICE size_t wrong_onehot(const struct cells *c, size_t last, const struct onehot_args *h,
                           bool average)
{
    const struct cell *cell = (const struct cell *)c->base;
    size_t each = 16 / (size_t)onehot_width(h->type), n = thread_count(), i = thread_index() + 1;
    size_t skip = c->skip / (size_t)onehot_width(h->type);
    struct cell got[4];

    ROLLED for (; !average && i + 3 * n < last; i += 4 * n) {
        for (int j = 0; j < 4; j++)
            got[j] = cell[i + j * n];
        for (int j = 0; j < 4; j++)
            if (onehot_cell_is_wrong(h, average, (i + j * n) * each - skip, &got[j]))
                return i + j * n;
    }
    ROLLED for (; i < last; i += n)
        if (onehot_cell_is_wrong(h, average, i * each - skip, &cell[i]))
            return i;
    return last;
}

// Make the type a constant in each branch, so that the compiler resolves tests in pattern.h.
#define OF_EACH_TYPE(CALL)                                                                         \
    switch (h.type) {                                                                              \
        OF_TYPE(NCCL_INT8, CALL)                                                                   \
        OF_TYPE(NCCL_UINT8, CALL)                                                                  \
        OF_TYPE(NCCL_INT32, CALL)                                                                  \
        OF_TYPE(NCCL_UINT32, CALL)                                                                 \
        OF_TYPE(NCCL_INT64, CALL)                                                                  \
        OF_TYPE(NCCL_UINT64, CALL)                                                                 \
        OF_TYPE(NCCL_FLOAT16, CALL)                                                                \
        OF_TYPE(NCCL_FLOAT32, CALL)                                                                \
        OF_TYPE(NCCL_FLOAT64, CALL)                                                                \
        OF_TYPE(NCCL_BFLOAT16, CALL)                                                               \
        OF_TYPE(NCCL_FLOAT8E4M3, CALL)                                                             \
        OF_TYPE(NCCL_FLOAT8E5M2, CALL)                                                             \
    }
#define OF_TYPE(TYPE, CALL)                                                                        \
    case TYPE:                                                                                     \
        h.type = TYPE;                                                                             \
        CALL;                                                                                      \
        break;

KERNEL(256)
rg_fill_onehot(void *buf, size_t bytes, struct onehot_args h)
{
    OF_EACH_TYPE(fill_onehot(buf, bytes, &h));
}

// Check the first and the last cell by element, in one thread.
DEVICE void edges_onehot(const struct cells *c, size_t last, const struct onehot_args *h,
                         bool average, uint64_t *wrong)
{
    if (thread_index() != 0 || !c->count)
        return;
    locate_onehot(c, 0, h, average, wrong);
    locate_onehot(c, last, h, average, wrong);
}

KERNEL(256) rg_find_onehot(const void *buf, size_t bytes, struct onehot_args h, uint64_t *wrong)
{
    struct cells c = cells_of(buf, bytes);
    size_t last = c.count ? c.count - 1 : 0, at = last;

    OF_EACH_TYPE(at = wrong_onehot(&c, last, &h, false));
    if (at < last) // later errors of this thread are later in the buffer
        locate_onehot(&c, at, &h, false, wrong);
    edges_onehot(&c, last, &h, false, wrong);
}

KERNEL(256) rg_find_average(const void *buf, size_t bytes, struct onehot_args h, uint64_t *wrong)
{
    struct cells c = cells_of(buf, bytes);
    size_t last = c.count ? c.count - 1 : 0, at = last;

    OF_EACH_TYPE(at = wrong_onehot(&c, last, &h, true));
    if (at < last)
        locate_onehot(&c, at, &h, true, wrong);
    edges_onehot(&c, last, &h, true, wrong);
}

// --- measuring ---
// Both addresses are multiples of 16; the first threads copy the bytes after the whole cells.
KERNEL(256) rg_copy(void *to, const void *from, size_t bytes)
{
    struct cell *out = (struct cell *)to;
    const struct cell *in = (const struct cell *)from;
    size_t n = thread_count(), i = thread_index(), count = bytes / 16;
    struct cell c[4];

    for (size_t at = 16 * count + i; at < bytes; at += n)
        ((unsigned char *)to)[at] = ((const unsigned char *)from)[at];
    ROLLED for (; i + 3 * n < count; i += 4 * n) {
        for (int j = 0; j < 4; j++)
            c[j] = in[i + j * n];
        for (int j = 0; j < 4; j++)
            out[i + j * n] = c[j];
    }
    ROLLED for (; i < count; i += n)
        out[i] = in[i];
}

// Copy for any alignment, at the speed of single bytes.
KERNEL(256) rg_copy_bytes(void *to, const void *from, size_t bytes)
{
    for (size_t i = thread_index(); i < bytes; i += thread_count())
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}

DEVICE uint64_t tail_sum(const unsigned char *p, size_t bytes)
{
    uint64_t sum = 0;

    for (size_t at = 0; at < bytes; at++)
        sum += (uint64_t)p[at] << 8 * (at % 8);
    return sum;
}

KERNEL(256) rg_read(const void *from, size_t bytes, uint64_t *out)
{
    const struct cell *in = (const struct cell *)from;
    size_t n = thread_count(), i = thread_index(), count = bytes / 16;
    uint64_t sum = 0;
    struct cell c[4];

    if (i == 0)
        sum = tail_sum((const unsigned char *)from + 16 * count, bytes % 16);
    ROLLED for (; i + 3 * n < count; i += 4 * n) {
        for (int j = 0; j < 4; j++)
            c[j] = in[i + j * n];
        for (int j = 0; j < 4; j++)
            sum += c[j].word[0] + c[j].word[1];
    }
    ROLLED for (; i < count; i += n)
        sum += in[i].word[0] + in[i].word[1];
    if (warp_sum(&sum))
        add_shared(out, sum);
}

// Neighbouring threads access neighbouring cells of each array.
KERNEL(256) rg_pass(void *to, const void *from, size_t count, size_t reads, size_t writes)
{
    struct cell *out = (struct cell *)to, sum;
    const struct cell *in = (const struct cell *)from;

    ROLLED for (size_t i = thread_index(); i < count; i += thread_count()) {
        sum = in[i];
        for (size_t r = 1; r < reads; r++) {
            sum.word[0] += in[r * count + i].word[0];
            sum.word[1] += in[r * count + i].word[1];
        }
        for (size_t w = 0; w < writes; w++)
            out[w * count + i] = sum;
    }
}

KERNEL(256) rg_chain(uint64_t *at, size_t words, size_t step)
{
    for (size_t i = thread_index(); i < words; i += thread_count())
        at[i] = i + step < words ? i + step : i + step - words;
}

// Volatile loads bypass the multiprocessor's cache, which never holds memory of peers.
KERNEL(32) rg_chase(const uint64_t *at, uint64_t from, size_t steps, uint64_t *out)
{
    uint64_t i = from;

    if (thread_index() != 0)
        return;
    for (; steps > 0; steps--)
        i = ((const volatile uint64_t *)at)[i];
    *out = i;
}

// A long chain of multiplications between two readings of the clock.  The branch that would write
// is never taken, but the compiler cannot know this and keeps the arithmetic.
KERNEL(1024) rg_load(uint64_t duration, float *never)
{
    uint64_t start = nanoseconds();
    float x = 1.0f + 1e-3f * (float)(thread_index() % 1024);

    while (nanoseconds() - start < duration)
        for (int i = 0; i < 4096; i++)
            x = x * 0.999f + 1e-3f;
    if (x < 0)
        *never = x;
}
