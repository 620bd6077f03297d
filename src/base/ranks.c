/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/ranks.h"

#include <stdio.h>

enum { TAIL = 40 }; /* room for one more range and the count */

char *ranks_text(char *to, size_t size, const bool *set, int n)
{
    int count = 0, i = 0;
    const char *comma = "";

    for (int k = 0; k < n; k++)
        count += set[k];
    size_t len = (size_t)snprintf(to, size, count == 1 ? "rank " : "ranks ");
    for (; i < n && len + TAIL < size; i++) {
        int last = i;
        if (!set[i])
            continue;
        while (last + 1 < n && set[last + 1])
            last++;
        len += (size_t)snprintf(to + len, size - len, "%s%d", comma, i);
        if (last > i)
            len += (size_t)snprintf(to + len, size - len, last == i + 1 ? ", %d" : "-%d", last);
        comma = ", ";
        i = last;
    }
    while (i < n && !set[i])
        i++;
    if (i < n && len < size)
        snprintf(to + len, size - len, " ... (%d in all)", count);
    return to;
}
