/* SPDX-License-Identifier: BSD-3-Clause */
/* place_classes.c - classes of equal free hosts, numbers of slots per domain, and all orders of few
 * hosts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* Returns the index at which the value first occurs. */
static int met(const int *value, int count, int v)
{
    for (int i = 0; i < count; i++)
        if (value[i] == v)
            return i;
    return count;
}

/* Fold one coordinate of each endpoint: the pattern of equal values into the hash, each group once
 * into the keys.  base -1: hash only, because no other host has these values. */
static uint64_t fold(struct host_class *k, uint64_t sum, const int *value, int n, int base)
{
    for (int i = 0; i < n; i++) {
        bool first = met(value, i, value[i]) == i;
        sum = map_mix(sum, value[i] < 0 ? 0 : (uint64_t)met(value, i, value[i]) + 1);
        if (first && value[i] >= 0 && base >= 0)
            MEM_PUSH(k->key, k->keys) = base + value[i];
    }
    return sum;
}

static void describe(struct host_class *k, const struct host_classes *all,
                     const struct node_pool *p, int host, const uint64_t *mark)
{
    const struct topo *t = &p->matrix->topo;
    const int *id = p->endpoint + p->start[host];
    int n = node_pool_slots(p, host), *value = mem_calloc((size_t)n + 1, sizeof(*value));
    uint64_t sum = map_mix(1, (uint64_t)n);

    *k = (struct host_class){0};
    for (int l = 0; l < LEVEL_COUNT; l++) {
        for (int i = 0; i < n; i++)
            value[i] = topo_at(t, id[i], l);
        if (l != LEVEL_HOST)
            sum = fold(k, sum, value, n, all->base[l]);
    }
    for (int i = 0; i < n; i++) {
        value[i] = t->endpoint[id[i]].nic;
        sum = map_mix(map_mix(sum, mark[id[i]]), (uint64_t)t->endpoint[id[i]].kind);
    }
    k->inside = fold(k, sum, value, n, -1);
    free(value);
}

static bool alike(const struct host_class *a, const struct host_class *b)
{
    return a->inside == b->inside && a->keys == b->keys &&
           (a->keys == 0 || !memcmp(a->key, b->key, (size_t)a->keys * sizeof(*a->key)));
}

static uint64_t hash_of(const struct host_class *k)
{
    uint64_t sum = k->inside;

    for (int i = 0; i < k->keys; i++)
        sum = map_mix(sum, (uint64_t)k->key[i]);
    return sum;
}

struct class_asked {
    const struct host_classes *classes;
    const struct host_class *one;
};

static bool same_class(const void *asked, int value)
{
    const struct class_asked *a = asked;

    return alike(&a->classes->list[value], a->one);
}

/* Returns the class equal to *one, which is added or freed. */
static int find_class(struct host_classes *k, struct map *known, struct host_class *one)
{
    int *at = map_at(known, hash_of(one), same_class, &(struct class_asked){k, one});

    if (*at == MAP_NONE) {
        *at = k->count;
        MEM_PUSH(k->list, k->count) = *one;
    } else {
        free(one->key);
    }
    return *at;
}

void host_classes_make(struct host_classes *k, const struct node_pool *p)
{
    const struct topo *t = &p->matrix->topo;
    uint64_t *mark = places_marks(p->matrix);
    size_t n = (size_t)p->hosts + 1;
    struct map known = {0};

    *k = (struct host_classes){.hosts = p->hosts,
                               .of = mem_calloc(n, sizeof(int)),
                               .prev = mem_calloc(n, sizeof(int)),
                               .next = mem_calloc(n, sizeof(int))};
    for (int l = 0; l < LEVEL_COUNT; l++)
        k->base[l + 1] = k->base[l] + (l == LEVEL_HOST ? 0 : t->group[l].count);
    k->label = mem_calloc((size_t)k->base[LEVEL_COUNT] + 1, sizeof(*k->label));
    for (int i = 0; i < p->hosts; i++) {
        struct host_class one;
        describe(&one, k, p, i, mark);
        k->of[i] = find_class(k, &known, &one);
        struct host_class *mine = &k->list[k->of[i]];
        k->prev[i] = mine->count ? mine->at[mine->count - 1] : -1;
        k->next[i] = p->hosts;
        if (mine->count)
            k->next[k->prev[i]] = i;
        MEM_PUSH(mine->at, mine->count) = i;
    }
    map_free(&known);
    free(mark);
}

void host_classes_free(struct host_classes *k)
{
    for (int i = 0; i < k->count; i++) {
        free(k->list[i].key);
        free(k->list[i].at);
    }
    free(k->list);
    free(k->of);
    free(k->prev);
    free(k->next);
    free(k->label);
    *k = (struct host_classes){0};
}

/* --- sets of hosts, by the classes of their hosts --- */

/* Groups are numbered by level in order of appearance. */
uint64_t host_classes_signature(struct host_classes *k, const int *at, int need)
{
    int next[LEVEL_COUNT] = {0};
    uint64_t sum = 0;

    k->stamp++;
    for (int i = 0; i < need; i++) {
        const struct host_class *one = &k->list[k->of[at[i]]];
        int level = 0;
        sum = map_mix(sum, one->inside);
        for (int n = 0; n < one->keys; n++) {
            struct host_label *l = &k->label[one->key[n]];
            while (one->key[n] >= k->base[level + 1])
                level++;
            if (l->stamp != k->stamp)
                *l = (struct host_label){k->stamp, next[level]++};
            sum = map_mix(sum, (uint64_t)l->label + 1);
        }
    }
    return sum;
}

/* Count the distinct subsequences of classes in the free list's row.  Sequences that end in this
 * class for the first time: all so far minus those that it ended before. */
double host_classes_patterns(const struct host_classes *k, int need, double most)
{
    size_t width = (size_t)need + 1;
    double *sofar, *ended;

    if (k->count == 1)
        return 1;
    if ((double)k->hosts * need > 1 << 24 || (double)k->count * need > 1 << 24)
        return INFINITY;
    sofar = mem_calloc(width, sizeof(*sofar));
    ended = mem_calloc(width * (size_t)k->count, sizeof(*ended));
    sofar[0] = 1;
    for (int i = 0; i < k->hosts; i++) {
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

bool host_classes_next_pattern(const struct host_classes *k, int *at, int need)
{
    for (int d = need - 1; d >= 0; d--) {
        int after = d ? at[d - 1] : -1;
        for (int p = at[d] + 1; p <= k->hosts - (need - d); p++) {
            if (k->prev[p] > after)
                continue; /* an earlier host of this class represents it */
            for (int e = d; e < need; e++)
                at[e] = p + e - d;
            return true;
        }
    }
    return false;
}

bool host_classes_leftmost(const struct host_classes *k, int *at, int from, int need)
{
    for (int i = from; i < need; i++) {
        const struct host_class *one = &k->list[k->of[at[i]]];
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

bool host_classes_next_set(const struct host_classes *k, int *at, int need)
{
    for (int d = need - 1; d >= 0; d--) {
        int saved = at[d];
        if (k->next[at[d]] == k->hosts)
            continue;
        at[d] = k->next[at[d]];
        if (host_classes_leftmost(k, at, d + 1, need))
            return true;
        at[d] = saved;
    }
    return false;
}

/* --- slots per domain --- */

struct domain_slot {
    int domain, id;
};

static void rack_room(struct room *r, const struct node_pool *p)
{
    const struct topo *t = &p->matrix->topo;
    int *slots = mem_calloc((size_t)t->group[LEVEL_RACK].count + 1, sizeof(int)), most = 0;

    for (int i = 0; i < p->slots && most >= 0; i++) {
        int rack = topo_at(t, p->endpoint[i], LEVEL_RACK);
        most = rack < 0 ? -1 : ++slots[rack] > most ? slots[rack] : most;
    }
    r->rack = most > 0 ? most : 0;
    free(slots);
}

/* Returns the factor of the slot's NICs over the tier between domains that its slow parts affect
 * least. */
static double nic_factor(const struct matrix *m, int id)
{
    double most = 0;

    for (int t = 0; t < m->tiers; t++) {
        double factor = 1;
        for (int i = 0; i < m->exceptions; i++)
            if (matrix_crosses(m, &m->exception[i], id, id,
                               t)) /* single parts: the slot belongs to them */
                factor = fmin(factor, m->exception[i].factor);
        most = tier_between_domains(&m->tier[t]) ? fmax(most, factor) : most;
    }
    return most;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the factor per endpoint; 1 if not slow.  The room gets the lowest distinct factors below
 * 1. */
static double *nic_factors(struct room *r, const struct node_pool *p)
{
    double *of = mem_calloc((size_t)p->matrix->topo.endpoints + 1, sizeof(double)), *slow = NULL;
    int slows = 0;

    for (int i = 0; i < p->slots; i++) {
        int id = p->endpoint[i];
        of[id] = p->slow[p->row_of[id]] ? nic_factor(p->matrix, id) : 1;
        if (of[id] < 1)
            MEM_PUSH(slow, slows) = of[id];
    }
    if (slows)
        qsort(slow, (size_t)slows, sizeof(*slow), ascending);
    /* every slot, because a line may lie inside one domain even if NICs are dead */
    r->factor[0] = -1;
    r->factors = 1;
    for (int i = 1; i <= slows && r->factors < SLOWER; i++)
        if (slow[i - 1] > r->factor[r->factors - 1])
            r->factor[r->factors++] = slow[i - 1];
    free(slow);
    return of;
}

/* Returns the tier that joins most ranks in a ring whose slowest hop between domains is of tier
 * `outer`: all other hops are of that tier or nearer.  -1: no such tier. */
static int joins_most(const struct matrix *m, int outer)
{
    int most = outer;

    for (int t = 0; t < m->tiers; t++) {
        double rate = matrix_rate(m, t, DIR_BI), slowest = matrix_rate(m, outer, DIR_BI);
        bool may =
            tier_between_domains(&m->tier[t]) && (rate > slowest || (rate == slowest && t < outer));
        unsigned same = m->tier[t].rule.same, kept = m->tier[most].rule.same;
        if (may && (same & kept) == same)
            most = t;
        else if (may && (same & kept) != kept)
            return -1;
    }
    return most;
}

/* Returns the most ranks that rings over this tier can join with one member per domain. */
static int reach_of(const struct node_pool *p, const struct matrix *m, int outer)
{
    int tier = tier_between_domains(&m->tier[outer]) ? joins_most(m, outer) : -1;

    return tier < 0 ? p->slots : node_pool_peers(p, tier) + 1;
}

/* Count the slots of each domain, and those faster than each factor. */
static void fold_domains(struct room *r, const struct node_pool *p, const struct domain_slot *slot)
{
    double *factor = nic_factors(r, p);

    r->of_size = mem_calloc((size_t)r->factors * (size_t)(r->slots + 1), sizeof(int));
    for (int f = 0; f < r->factors; f++)
        for (int i = 0, j; i < p->slots; i = j) {
            int faster = 0;
            for (j = i; j < p->slots && slot[j].domain == slot[i].domain; j++)
                faster += factor[slot[j].id] > r->factor[f];
            r->of_size[f * (r->slots + 1) + faster]++;
        }
    free(factor);
}

void room_make(struct room *r, const struct node_pool *p)
{
    const struct topo *t = &p->matrix->topo;
    struct domain_slot *slot = mem_calloc((size_t)p->slots + 1, sizeof(*slot));
    int *ids = mem_calloc((size_t)p->slots + 1, sizeof(*ids));

    *r = (struct room){0};
    for (int i = 0; i < p->slots; i++)
        slot[i] = (struct domain_slot){topo_domain(t, p->endpoint[i]), p->endpoint[i]};
    qsort(slot, (size_t)p->slots, sizeof(*slot), stats_by_2ints);
    for (int i = 0, j; i < p->slots; i = j, r->domains++) {
        struct shape s;
        for (j = i; j < p->slots && slot[j].domain == slot[i].domain; j++)
            ids[j - i] = slot[j].id;
        shape_of(&s, t, ids, j - i);
        r->slots = j - i > r->slots ? j - i : r->slots;
        r->nics = s.nics > r->nics ? s.nics : r->nics;
    }
    fold_domains(r, p, slot);
    rack_room(r, p);
    for (int tier = 0; tier < p->matrix->tiers; tier++)
        r->reach[tier] = reach_of(p, p->matrix, tier);
    free(ids);
    free(slot);
}

/* --- all ways to assign ranks to hosts, if few --- */

enum { HOSTS_MAX = 64 };

struct deal {
    struct place_best *best;
    struct placer *placer;
    struct host_classes classes;
    int *order, *used; /* used: hosts taken from each class */
};

/* Returns the number of ways to assign `ranks` to the hosts; stops at `most`. */
static double ways(struct deal *d, int ranks, double most)
{
    const struct node_pool *p = d->placer->pool;
    double sum = 0;

    if (ranks <= 0)
        return 1;
    for (int k = 0; k < d->classes.count && sum < most; k++) {
        const struct host_class *one = &d->classes.list[k];
        if (d->used[k] == one->count)
            continue;
        d->used[k]++;
        sum += ways(d, ranks - node_pool_slots(p, one->at[0]), most - sum);
        d->used[k]--;
    }
    return sum;
}

static void deal(struct deal *d, int rank)
{
    const struct node_pool *p = d->placer->pool;

    if (rank >= d->placer->ranks) {
        place_try(d->best, d->placer, d->order, "all ways to deal nodes were tried", NULL);
        return;
    }
    for (int k = 0; k < d->classes.count; k++) {
        const struct host_class *one = &d->classes.list[k];
        int n = 0;
        if (d->used[k] == one->count)
            continue;
        int host = one->at[d->used[k]++];
        for (int s = p->start[host]; s < p->start[host + 1] && rank + n < d->placer->ranks; s++)
            d->order[rank + n++] = p->endpoint[s];
        deal(d, rank + n);
        d->used[k]--;
    }
}

void place_exhaust(struct place_best *b, struct placer *pl)
{
    struct deal d = {.best = b, .placer = pl};
    double room = (0.5 * pl->budget - pl->spent) / pl->unit;

    if (pl->pool->hosts > HOSTS_MAX)
        return;
    host_classes_make(&d.classes, pl->pool);
    d.order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    d.used = mem_calloc((size_t)d.classes.count + 1, sizeof(int));
    if (ways(&d, pl->ranks, room + 1) <= room)
        deal(&d, 0);
    host_classes_free(&d.classes);
    free(d.order);
    free(d.used);
}

/* Among alike hosts, give lower ranks to the earlier one. */
void place_normalise(struct place_best *b, struct placer *pl)
{
    const struct node_pool *p = pl->pool;
    const struct endpoint *endpoint = p->matrix->topo.endpoint;
    int *stand_in = mem_calloc((size_t)p->hosts + 1, sizeof(int));
    int *order = mem_calloc((size_t)pl->ranks + 1, sizeof(int));
    struct host_classes k;

    host_classes_make(&k, p);
    int *used = mem_calloc((size_t)k.count + 1, sizeof(int));
    for (int i = 0; i < p->hosts; i++)
        stand_in[i] = -1;
    for (int r = 0; r < pl->ranks; r++) {
        int host = p->row[endpoint[b->order[r]].place.at[LEVEL_HOST]], of = k.of[host];
        if (stand_in[host] < 0)
            stand_in[host] = k.list[of].at[used[of]++];
        order[r] = p->endpoint[p->start[stand_in[host]]]; /* any slot of the host; sorted later */
    }
    node_pool_in_slot_order(p, order, pl->ranks);
    struct place_sec sec = placer_order(pl, order);
    if (sec.most <= b->sec.most) {
        b->sec = sec;
        memcpy(b->order, order, (size_t)pl->ranks * sizeof(int));
    }
    host_classes_free(&k);
    free(used);
    free(stand_in);
    free(order);
}
