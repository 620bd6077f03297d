/* SPDX-License-Identifier: BSD-3-Clause */
/* mem_held.c - linked into librailgauge.so only, with --wrap for the functions below: records the
 * memory of a thread inside mem_guarded(), to free it if memory is exhausted. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t len);
json_t *__real_json_loadb(const char *text, size_t len, size_t flags, json_error_t *e);
void __real_json_delete(json_t *json);
DIR *__real_opendir(const char *path);
int __real_closedir(DIR *dir);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t len);
json_t *__wrap_json_loadb(const char *text, size_t len, size_t flags, json_error_t *e);
void __wrap_json_delete(json_t *json);
DIR *__wrap_opendir(const char *path);
int __wrap_closedir(DIR *dir);

/* Open hash table: a power of two slots, at most half of them used. */
struct held {
    struct slot {
        void *p;
        void (*end)(void *p);
    } * slot;
    size_t slots, count;
};
/* A library's thread-local block is allocated on first use, which can fail; initial-exec reserves
 * the pointer at load time. */
static __thread struct held *held __attribute__((tls_model("initial-exec")));

/* Neighbours in memory, usually allocated in sequence, are neighbours here in groups of 16. */
static size_t home(const struct held *h, const void *p)
{
    uintptr_t at = (uintptr_t)p >> 4;

    return (size_t)((at >> 4) * 0x9E3779B97F4A7C15u >> 20 << 4 | (at & 15)) & (h->slots - 1);
}

static size_t find(const struct held *h, const void *p)
{
    size_t i = home(h, p);

    while (h->slot[i].p && h->slot[i].p != p)
        i = (i + 1) & (h->slots - 1);
    return i;
}

static bool grow(struct held *h)
{
    struct held more = {.slots = h->slots ? 2 * h->slots : 256, .count = h->count};

    more.slot = __real_calloc(more.slots, sizeof(*more.slot));
    if (!more.slot)
        return false;
    for (size_t i = 0; i < h->slots; i++)
        if (h->slot[i].p)
            more.slot[find(&more, h->slot[i].p)] = h->slot[i];
    __real_free(h->slot);
    *h = more;
    return true;
}

static void end_json(void *json)
{
    __real_json_delete(json);
}

static void end_dir(void *dir)
{
    __real_closedir(dir);
}

/* Return p after recording it; NULL if there is no memory for the record, and p is freed. */
static void *keep(void *p, void (*end)(void *p))
{
    if (!p || !held)
        return p;
    if (2 * (held->count + 1) > held->slots && !grow(held)) {
        end(p);
        errno = ENOMEM;
        return NULL;
    }
    held->slot[find(held, p)] = (struct slot){p, end};
    held->count++;
    return p;
}

/* Remove p; following entries move up, so that no search ends early. */
static void forget(const void *p)
{
    if (!p || !held || !held->slots)
        return;
    size_t mask = held->slots - 1, gap = find(held, p);
    if (!held->slot[gap].p)
        return; /* allocated earlier or elsewhere */
    held->count--;
    for (size_t i = (gap + 1) & mask; held->slot[i].p; i = (i + 1) & mask)
        if (((i - home(held, held->slot[i].p)) & mask) >= ((i - gap) & mask)) {
            held->slot[gap] = held->slot[i];
            gap = i;
        }
    held->slot[gap].p = NULL;
}

bool mem_hold(void)
{
    return held || (held = __real_calloc(1, sizeof(*held))) != NULL;
}

void mem_release(bool failed)
{
    struct held *h = held;

    held = NULL;
    for (size_t i = 0; failed && i < h->slots; i++)
        if (h->slot[i].p)
            h->slot[i].end(h->slot[i].p);
    __real_free(h->slot);
    __real_free(h);
}

void *__wrap_malloc(size_t size)
{
    return keep(__real_malloc(size), __real_free);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return keep(__real_calloc(n, size), __real_free);
}

/* Forget the old block only after success: if it cannot grow it still exists. */
void *__wrap_realloc(void *p, size_t size)
{
    void *moved = __real_realloc(p, size);

    if (!moved || moved == p)
        return moved;
    forget(p);
    return keep(moved, __real_free);
}

void __wrap_free(void *p)
{
    forget(p);
    __real_free(p);
}

char *__wrap_strdup(const char *s)
{
    return keep(__real_strdup(s), __real_free);
}

char *__wrap_strndup(const char *s, size_t len)
{
    return keep(__real_strndup(s, len), __real_free);
}

json_t *__wrap_json_loadb(const char *text, size_t len, size_t flags, json_error_t *e)
{
    return keep(__real_json_loadb(text, len, flags, e), end_json);
}

void __wrap_json_delete(json_t *json)
{
    forget(json);
    __real_json_delete(json);
}

DIR *__wrap_opendir(const char *path)
{
    return keep(__real_opendir(path), end_dir);
}

int __wrap_closedir(DIR *dir)
{
    forget(dir);
    return __real_closedir(dir);
}
