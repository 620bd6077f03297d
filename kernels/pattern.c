/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/pattern.h"

#include <string.h>

/* Copying the lowest bytes of a value needs this order. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian, as CUDA is");

void onehot_fill(void *buf, size_t elements, int type, int rank, int ranks, uint64_t k, int redop)
{
    unsigned char *p = buf;
    size_t width = (size_t)onehot_width(type);

    for (size_t i = 0; i < elements; i++) {
        uint64_t h = pattern_word(k, i);
        uint64_t v = onehot_owner(h, ranks) == rank ? onehot_value(type, redop, h)
                                                    : onehot_other(type, redop);
        memcpy(p + i * width, &v, width);
    }
}

bool onehot_find(const void *buf, size_t first, size_t elements, int type, int ranks, uint64_t k,
                 int redop, size_t *at)
{
    const unsigned char *p = buf;
    size_t width = (size_t)onehot_width(type);

    for (size_t i = 0; i < elements; i++) {
        uint64_t got = 0;
        memcpy(&got, p + i * width, width);
        if (onehot_near(type, redop, ranks, pattern_word(k, first + i), got))
            continue;
        *at = i;
        return true;
    }
    return false;
}
