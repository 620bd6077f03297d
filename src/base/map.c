/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SLOTS_FIRST = 64 };

static const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio (Knuth 6.4), odd */

/* Slot of the key, or the free slot for it. */
static struct map_slot *slot_of(const struct map *m, uint64_t key, map_same *same,
                                const void *wanted)
{
    size_t mask = m->slots - 1, at = (size_t)(key * golden >> 32) & mask;

    while (m->slot[at].used &&
           (m->slot[at].key != key || (same && !same(wanted, m->slot[at].value))))
        at = (at + 1) & mask;
    return &m->slot[at];
}

static void grow(struct map *m)
{
    struct map more = {.slots = m->slots ? 2 * m->slots : SLOTS_FIRST, .count = m->count};
    size_t mask = more.slots - 1;

    more.slot = mem_calloc(more.slots, sizeof(*more.slot));
    for (size_t i = 0; i < m->slots; i++) {
        size_t at = (size_t)(m->slot[i].key * golden >> 32) & mask;
        while (m->slot[i].used && more.slot[at].used) /* no comparison: all keys differ */
            at = (at + 1) & mask;
        if (m->slot[i].used)
            more.slot[at] = m->slot[i];
    }
    free(m->slot);
    *m = more;
}

int *map_at(struct map *m, uint64_t key, map_same *same, const void *wanted)
{
    struct map_slot *s = m->slots ? slot_of(m, key, same, wanted) : NULL;

    if (s && s->used)
        return &s->value;
    if (2 * (m->count + 1) > m->slots) {
        grow(m);
        s = slot_of(m, key, same, wanted);
    }
    m->count++;
    *s = (struct map_slot){key, MAP_NONE, true};
    return &s->value;
}

int map_find(const struct map *m, uint64_t key, map_same *same, const void *wanted)
{
    const struct map_slot *s = m->slots ? slot_of(m, key, same, wanted) : NULL;

    return s && s->used ? s->value : MAP_NONE;
}

void map_free(struct map *m)
{
    free(m->slot);
    *m = (struct map){0};
}

uint64_t map_mix(uint64_t hash, uint64_t x)
{
    hash = (hash ^ x) * golden;
    return hash ^ hash >> 29;
}

/* FNV-1a, 64 bits (draft-eastlake-fnv). */
uint64_t map_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* --- numbered names --- */

struct wanted {
    char *const *name;
    const char *text;
};

static bool is_name(const void *wanted, int value)
{
    const struct wanted *w = wanted;

    return !strcmp(w->name[value], w->text);
}

int names_add(struct names *n, const char *name)
{
    struct wanted w = {n->name, name};
    int *at = map_at(&n->index, map_text(name), is_name, &w);

    if (*at == MAP_NONE) {
        *at = n->count;
        MEM_PUSH(n->name, n->count) = mem_strdup(name);
    }
    return *at;
}

int names_find(const struct names *n, const char *name)
{
    struct wanted w = {n->name, name};

    return map_find(&n->index, map_text(name), is_name, &w);
}

void names_free(struct names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    map_free(&n->index);
    *n = (struct names){.name = NULL};
}

/* --- items grouped by a small key --- */

void lists_make(struct lists *l, const int *key, const int *item, int n, int keys)
{
    l->start = mem_calloc((size_t)keys + 2, sizeof(*l->start));
    l->at = mem_calloc((size_t)n + 1, sizeof(*l->at));
    for (int i = 0; i < n; i++)
        if (key[i] >= 0)
            l->start[key[i] + 2]++;
    for (int k = 2; k <= keys + 1; k++)
        l->start[k] += l->start[k - 1];
    for (int i = 0; i < n; i++)
        if (key[i] >= 0)
            l->at[l->start[key[i] + 1]++] = item ? item[i] : i;
}

void lists_free(struct lists *l)
{
    free(l->start);
    free(l->at);
    *l = (struct lists){NULL, NULL};
}
