/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes_kinds.c - free hosts folded to those that differ, and the patterns that they make. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/nodes_search.h"
#include "step/groups.h"

/* The number that a value gets among those met before it. */
static int met(const int *value, int count, int v)
{
    for (int i = 0; i < count; i++)
        if (value[i] == v)
            return i;
    return count;
}

/* One coordinate of each endpoint: its inner pattern goes into the hash, each group once into the
 * keys. base -1: it is of no other host. */
static uint64_t fold(struct host_kind *k, uint64_t sum, const int *value, int n, int base)
{
    for (int i = 0; i < n; i++) {
        bool first = met(value, i, value[i]) == i;
        sum = map_mix(sum, value[i] < 0 ? 0 : (uint64_t)met(value, i, value[i]) + 1);
        if (first && value[i] >= 0 && base >= 0)
            MEM_PUSH(k->key, k->keys) = base + value[i];
    }
    return sum;
}

static void describe(struct host_kind *k, const struct search *s, int host, const uint64_t *mark)
{
    const struct topo *t = &s->job->matrix.topo;
    const int *id = s->job->endpoint + s->job->first[host];
    int n = nodes_room(s->job, host), *value = mem_calloc((size_t)n, sizeof(*value));
    uint64_t sum = map_mix(1, (uint64_t)n);

    *k = (struct host_kind){0};
    for (int l = 0; l < LEVEL_COUNT; l++) {
        for (int i = 0; i < n; i++)
            value[i] = t->endpoint[id[i]].place.at[l];
        if (l != LEVEL_HOST)
            sum = fold(k, sum, value, n, s->kinds.base[l]);
    }
    for (int i = 0; i < n; i++) {
        value[i] = t->endpoint[id[i]].nic;
        sum = map_mix(map_mix(sum, mark[id[i]]), (uint64_t)t->endpoint[id[i]].kind);
    }
    k->inside = fold(k, sum, value, n, -1);
    free(value);
}

static bool alike(const struct host_kind *a, const struct host_kind *b)
{
    return a->inside == b->inside && a->keys == b->keys &&
           (a->keys == 0 || !memcmp(a->key, b->key, (size_t)a->keys * sizeof(*a->key)));
}

static uint64_t hash_of(const struct host_kind *k)
{
    uint64_t sum = k->inside;

    for (int i = 0; i < k->keys; i++)
        sum = map_mix(sum, (uint64_t)k->key[i]);
    return sum;
}

struct wanted_kind {
    const struct kinds *kinds;
    const struct host_kind *one;
};

static bool is_kind(const void *wanted, int value)
{
    const struct wanted_kind *w = wanted;

    return alike(&w->kinds->kind[value], w->one);
}

/* The kind that is like this one, which is taken over or freed. */
static int find_kind(struct kinds *k, struct map *index, struct host_kind *one)
{
    int *at = map_at(index, hash_of(one), is_kind, &(struct wanted_kind){k, one});

    if (*at != MAP_NONE) {
        free(one->key);
        return *at;
    }
    *at = k->count;
    MEM_PUSH(k->kind, k->count) = *one;
    return *at;
}

static void link_positions(struct kinds *k, int hosts)
{
    k->prev = mem_calloc((size_t)hosts, sizeof(int));
    k->next = mem_calloc((size_t)hosts, sizeof(int));
    for (int i = 0; i < hosts; i++) {
        struct host_kind *one = &k->kind[k->of[i]];
        k->prev[i] = one->count ? one->at[one->count - 1] : -1;
        k->next[i] = hosts;
        if (one->count)
            k->next[k->prev[i]] = i;
        MEM_PUSH(one->at, one->count) = i;
    }
}

void kinds_make(struct search *s)
{
    const struct topo *t = &s->job->matrix.topo;
    uint64_t *mark = places_marks(&s->job->matrix);
    struct kinds *k = &s->kinds;
    struct map index = {0}; /* of kinds */

    for (int l = 0; l < LEVEL_COUNT; l++)
        k->base[l + 1] = k->base[l] + (l == LEVEL_HOST ? 0 : t->group[l].count);
    k->slot = mem_calloc((size_t)k->base[LEVEL_COUNT] + 1, sizeof(*k->slot));
    k->of = mem_calloc((size_t)s->hosts, sizeof(int));
    for (int i = 0; i < s->hosts; i++) {
        struct host_kind one;
        describe(&one, s, s->host[i], mark);
        k->of[i] = find_kind(k, &index, &one);
    }
    link_positions(k, s->hosts);
    map_free(&index);
    free(mark);
}

void kinds_free(struct kinds *k)
{
    for (int i = 0; i < k->count; i++) {
        free(k->kind[i].key);
        free(k->kind[i].at);
    }
    free(k->kind);
    free(k->of);
    free(k->prev);
    free(k->next);
    free(k->slot);
    memset(k, 0, sizeof(*k));
}

int kinds_group(const struct kinds *k, int kind, int level)
{
    const struct host_kind *one = &k->kind[kind];

    for (int i = 0; i < one->keys; i++)
        if (one->key[i] >= k->base[level] && one->key[i] < k->base[level + 1])
            return one->key[i] - k->base[level];
    return -1;
}

/* Groups are numbered by level as they are met. */
uint64_t kinds_signature(struct kinds *k, const int *at, int need)
{
    int next[LEVEL_COUNT] = {0};
    uint64_t sum = 0;

    k->stamp++;
    for (int i = 0; i < need; i++) {
        const struct host_kind *one = &k->kind[k->of[at[i]]];
        int level = 0;
        sum = map_mix(sum, one->inside);
        for (int n = 0; n < one->keys; n++) {
            struct label *l = &k->slot[one->key[n]];
            while (one->key[n] >= k->base[level + 1])
                level++;
            if (l->stamp != k->stamp)
                *l = (struct label){k->stamp, next[level]++};
            sum = map_mix(sum, (uint64_t)l->label + 1);
        }
    }
    return sum;
}

/* Rows of kinds that are part of the free list's row, each counted once: those that end in this
 * kind for the first time are all so far less those that it has ended before. */
double kinds_patterns(const struct kinds *k, int hosts, int need, double most)
{
    size_t width = (size_t)need + 1;
    double *sofar, *ended;

    if (k->count == 1)
        return 1;
    if ((double)hosts * need > 1 << 24 || (double)k->count * need > 1 << 24)
        return INFINITY;
    sofar = mem_calloc(width, sizeof(*sofar));
    ended = mem_calloc(width * (size_t)k->count, sizeof(*ended));
    sofar[0] = 1;
    for (int i = 0; i < hosts; i++) {
        double *mine = ended + width * (size_t)k->of[i];
        for (int n = need; n > 0; n--) {
            double all = sofar[n - 1];
            sofar[n] += all - mine[n];
            mine[n] = all;
        }
    }
    double count = sofar[need];
    free(sofar);
    free(ended);
    return count <= most ? count : INFINITY;
}

bool kinds_next_pattern(const struct kinds *k, int hosts, int *at, int need)
{
    for (int d = need - 1; d >= 0; d--) {
        int after = d ? at[d - 1] : -1;
        for (int p = at[d] + 1; p <= hosts - (need - d); p++) {
            if (k->prev[p] > after)
                continue; /* an earlier one of this kind stands for it */
            for (int e = d; e < need; e++)
                at[e] = p + e - d;
            return true;
        }
    }
    return false;
}

/* at[from..] to the leftmost positions of these kinds behind at[from - 1]. */
static bool pull_left(const struct kinds *k, int *at, int from, int need)
{
    for (int i = from; i < need; i++) {
        const struct host_kind *one = &k->kind[k->of[at[i]]];
        int after = i ? at[i - 1] : -1, lo = 0, hi = one->count;
        while (lo < hi) {
            int mid = (lo + hi) / 2;
            if (one->at[mid] > after)
                hi = mid;
            else
                lo = mid + 1;
        }
        if (lo == one->count)
            return false;
        at[i] = one->at[lo];
    }
    return true;
}

void kinds_leftmost(const struct kinds *k, int *at, int need)
{
    pull_left(k, at, 0, need);
}

bool kinds_next_set(const struct kinds *k, int hosts, int *at, int need)
{
    for (int d = need - 1; d >= 0; d--) {
        int saved = at[d];
        if (k->next[at[d]] == hosts)
            continue;
        at[d] = k->next[at[d]];
        if (pull_left(k, at, d + 1, need))
            return true;
        at[d] = saved;
    }
    return false;
}
