/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/hot.h"

#include <string.h>

/* Values are moved by their lowest bytes. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian, as CUDA is");

void hot_fill(void *buf, size_t elements, int type, int rank, int ranks, uint64_t k, int redop)
{
    unsigned char *p = buf;
    size_t width = (size_t)hot_width(type);

    for (size_t i = 0; i < elements; i++) {
        uint64_t h = hot_word(k, i);
        uint64_t v =
            hot_owner(h, ranks) == rank ? hot_value(type, redop, h) : hot_other(type, redop);
        memcpy(p + i * width, &v, width);
    }
}

bool hot_find(const void *buf, size_t first, size_t elements, int type, int ranks, uint64_t k,
              int redop, size_t *at)
{
    const unsigned char *p = buf;
    size_t width = (size_t)hot_width(type);

    for (size_t i = 0; i < elements; i++) {
        uint64_t got = 0;
        memcpy(&got, p + i * width, width);
        if (hot_near(type, redop, ranks, hot_word(k, first + i), got))
            continue;
        *at = i;
        return true;
    }
    return false;
}
