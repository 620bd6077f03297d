/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static void *must(void *p)
{
    if (!p) {
        fputs("railgauge: out of memory\n", stderr);
        _Exit(EXIT_IO);
    }
    return p;
}

void *mem_calloc(size_t n, size_t size)
{
    return must(calloc(n ? n : 1, size ? size : 1));
}

void *mem_realloc(void *p, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        return must(NULL);
    return must(realloc(p, n && size ? n * size : 1));
}

char *mem_strdup(const char *s)
{
    return must(strdup(s));
}

char *mem_printf(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return must(n < 0 ? NULL : s);
}

void *mem_grow(void *p, size_t count, size_t size)
{
    if (count && (count < 8 || (count & (count - 1))))
        return p;
    return mem_realloc(p, count ? count * 2 : 8, size);
}
