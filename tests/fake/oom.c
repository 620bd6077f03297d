/* SPDX-License-Identifier: BSD-3-Clause */
/* oom.c - preloaded (LD_PRELOAD): the OOM_AT-th allocation of the process finds no memory (the
 * first is 1), with OOM_ON all after it neither; OOM_COUNT names a file that gets "N", how many
 * there were, when the process ends. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static atomic_long count;
static long at;
static bool on;

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("OOM_AT");

    on = getenv("OOM_ON") != NULL;
    atomic_store(&count, 0);
    at = text ? strtol(text, NULL, 10) : 0;
}

static bool is_there(void)
{
    long n = atomic_fetch_add(&count, 1) + 1;

    if (at <= 0 || (on ? n < at : n != at))
        return true;
    errno = ENOMEM;
    return false;
}

void *malloc(size_t size)
{
    return is_there() ? __libc_malloc(size) : NULL;
}

void *calloc(size_t n, size_t size)
{
    return is_there() ? __libc_calloc(n, size) : NULL;
}

void *realloc(void *p, size_t size)
{
    return is_there() ? __libc_realloc(p, size) : NULL;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("OOM_COUNT");
    long n = atomic_load(&count);
    FILE *f = path ? fopen(path, "w") : NULL;

    at = 0;
    if (f) {
        fprintf(f, "%ld\n", n);
        fclose(f);
    }
}
