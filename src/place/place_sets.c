/* SPDX-License-Identifier: BSD-3-Clause */
/* place_sets.c - the cheapest sets of free hosts, ranks in the order of the list.
 *
 * A set is the positions of its hosts in the pool, ascending.  Its pattern is the sequence of their
 * classes; the leftmost set of a pattern represents it.  If there are too many patterns to price
 * all: groups filled one after the other, equal shares of groups, and moves from one class of host
 * to another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_impl.h"

/* limits of the number of patterns priced */
enum { PATTERNS_MAX = 50000, PATTERNS_MIN = 64 };

struct pattern {
    double sec;
    int left; /* free hosts left in the blocks that the set uses */
    int *at;  /* [need] */
};

struct sets_search {
    struct pricer *pricer; /* shared by all patterns */
    const struct place_step *step;
    const struct node_pool *pool;
    int spread, need;
    struct host_classes classes;
    int level;       /* level of blocks: the finest that groups hosts; -1: none */
    int *block;      /* free hosts of each block, behind those of none */
    struct map memo; /* signature -> index into sec */
    double *sec;
    struct map known; /* sequence of classes -> index of the pattern, or NO_PRICE */
    struct pattern *pattern;
    int patterns;
    int *row, *order, *ids; /* scratch: positions, endpoints, hosts */
    long tried, budget;
    int priced;
    struct err why; /* reason for the last set without a price */
};
enum { NO_PRICE = MAP_NONE - 1 };

static double price(struct sets_search *s, const int *at)
{
    const struct node_pool *p = s->pool;
    int *memo = map_at(&s->memo, host_classes_signature(&s->classes, at, s->need), NULL, NULL);

    if (*memo != MAP_NONE)
        return s->sec[*memo];
    if (s->priced >= s->budget)
        return NAN;
    for (int i = 0; i < s->need; i++)
        s->ids[i] = p->host[at[i]];
    host_slots_deal(p->of, s->ids, s->need, p->asked, s->spread, s->step->ranks, s->order);
    *memo = s->priced;
    int rc = place_reorder(&s->pricer, p->matrix, s->order, s->step->ranks, &s->why);
    MEM_PUSH(s->sec, s->priced) = rc < 0 ? NAN : place_price_by(s->step, s->pricer, NULL, &s->why);
    return s->sec[*memo];
}

/* Returns the number of free hosts in the blocks of this set that it does not use. */
static int left_over(struct sets_search *s, const int *at)
{
    struct host_classes *k = &s->classes;
    int sum = -s->need;

    if (s->level < 0)
        return 0;
    k->stamp++;
    for (int i = 0; i < s->need; i++) {
        int group = host_classes_group(k, k->of[at[i]], s->level);
        struct host_label *l = group < 0 ? NULL : &k->label[k->base[s->level] + group];
        if (l && l->stamp == k->stamp)
            continue;
        if (l)
            l->stamp = k->stamp;
        sum += s->block[group + 1];
    }
    return sum;
}

static void count_blocks(struct sets_search *s)
{
    const struct host_classes *k = &s->classes;

    if (s->level < 0)
        return;
    s->block = mem_calloc((size_t)s->pool->matrix->topo.group[s->level].count + 2, sizeof(int));
    for (int n = 0; n < k->count; n++)
        s->block[host_classes_group(k, n, s->level) + 1] += k->list[n].count;
}

static void keep(struct sets_search *s, const int *at, double sec)
{
    int *copy = mem_calloc((size_t)s->need, sizeof(*copy));

    memcpy(copy, at, (size_t)s->need * sizeof(*copy));
    MEM_PUSH(s->pattern, s->patterns) = (struct pattern){sec, 0, copy};
}

/* Price this set unless its pattern is known; positions may be in any order.  NAN: no price, or
 * budget exhausted (s->priced reached s->budget). */
static double consider(struct sets_search *s, const int *at)
{
    uint64_t row = 0;

    memcpy(s->row, at, (size_t)s->need * sizeof(*s->row));
    qsort(s->row, (size_t)s->need, sizeof(*s->row), stats_by_int);
    host_classes_leftmost(&s->classes, s->row, 0, s->need);
    for (int i = 0; i < s->need; i++)
        row = map_mix(row, (uint64_t)(s->classes.of[s->row[i]] + 1));
    int *known = map_at(&s->known, row, NULL, NULL);
    if (*known != MAP_NONE)
        return *known == NO_PRICE ? NAN : s->pattern[*known].sec;
    double sec = price(s, s->row);
    *known = isnan(sec) ? NO_PRICE : s->patterns;
    s->tried++;
    if (!isnan(sec))
        keep(s, s->row, sec);
    return sec;
}

static void all_patterns(struct sets_search *s)
{
    int *at = mem_calloc((size_t)s->need, sizeof(*at));

    for (int i = 0; i < s->need; i++)
        at[i] = i;
    do {
        double sec = price(s, at);
        if (!isnan(sec))
            keep(s, at, sec);
    } while (host_classes_next_pattern(&s->classes, at, s->need));
    free(at);
}

static const int finest[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};
enum { FINEST = sizeof(finest) / sizeof(*finest) };

/* Returns the finest level at which every free host has a group and some share one. */
static int block_level(const struct sets_search *s)
{
    int level[LEVEL_COUNT], levels = node_pool_levels(s->pool, level);

    for (int i = 0; i < FINEST; i++)
        for (int k = 0; k < levels; k++)
            if (level[k] == finest[i])
                return finest[i];
    return -1;
}

struct ranked_set {
    struct pattern *p;
    int need;
    bool alive;
};

static int cheaper(const void *a, const void *b)
{
    const struct ranked_set *x = a, *y = b;

    if (x->p->sec != y->p->sec)
        return x->p->sec < y->p->sec ? -1 : 1;
    if (x->p->left != y->p->left)
        return x->p->left < y->p->left ? -1 : 1;
    for (int i = 0; i < x->need; i++)
        if (x->p->at[i] != y->p->at[i])
            return x->p->at[i] < y->p->at[i] ? -1 : 1;
    return 0;
}

static void emit(struct place_sets *b, const struct sets_search *s, const struct pattern *p)
{
    int *to = b->host + (size_t)b->count * (size_t)s->need;

    for (int i = 0; i < s->need; i++)
        to[i] = s->pool->host[p->at[i]];
    b->sec[b->count++] = p->sec;
}

/* Patterns of equal cost alternate with their sets. */
static void emit_equals(struct place_sets *b, const struct sets_search *s, struct ranked_set *from,
                        int patterns, int k)
{
    for (int alive = patterns; alive && b->count < k;) {
        alive = 0;
        for (int i = 0; i < patterns && b->count < k; i++) {
            if (!from[i].alive)
                continue;
            emit(b, s, from[i].p);
            from[i].alive = host_classes_next_set(&s->classes, from[i].p->at, s->need);
            alive += from[i].alive;
        }
    }
}

static void rank_all(struct place_sets *b, struct sets_search *s, int k)
{
    struct ranked_set *r = mem_calloc((size_t)s->patterns + 1, sizeof(*r));
    int n = 0;

    for (int i = 0; i < s->patterns; i++) {
        if (isinf(s->pattern[i].sec))
            continue;
        s->pattern[i].left = left_over(s, s->pattern[i].at);
        r[n++] = (struct ranked_set){&s->pattern[i], s->need, true};
    }
    qsort(r, (size_t)n, sizeof(*r), cheaper);
    for (int from = 0, to; from < n && b->count < k; from = to) {
        for (to = from; to < n && r[to].p->sec == r[from].p->sec; to++)
            ;
        emit_equals(b, s, r + from, to - from, k);
    }
    free(r);
}

/* --- candidate sets --- */

enum { STARTS_MAX = 64, SEEDS_MAX = 4 };
#define NEAR_BYTES 16e6

/* Free hosts of a group, healthy ones first. */
struct host_group {
    int *at, count;
    double sec; /* time to move NEAR_BYTES from the first group's first host */
    int index;
};

struct host_groups {
    struct host_group *group;
    int count;
};

static void add(struct host_group *c, int position)
{
    MEM_PUSH(c->at, c->count) = position;
}

/* Hosts without a group at this level form one group. */
static void groups_make(struct host_groups *c, const struct sets_search *s, int level)
{
    int groups = s->pool->matrix->topo.group[level].count;
    struct host_group *all = mem_calloc((size_t)groups + 1, sizeof(*all));

    *c = (struct host_groups){0};
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < s->pool->hosts; i++) {
            int group = host_classes_group(&s->classes, s->classes.of[i], level);
            if (s->pool->slow[i] == (pass == 1))
                add(&all[group < 0 ? groups : group], i);
        }
    for (int g = 0; g <= groups; g++)
        if (all[g].count)
            MEM_PUSH(c->group, c->count) = all[g];
    for (int i = 0; i < c->count; i++)
        c->group[i].index = i;
    free(all);
}

static void groups_free(struct host_groups *c)
{
    for (int i = 0; i < c->count; i++)
        free(c->group[i].at);
    free(c->group);
}

static int endpoint_of(const struct sets_search *s, const struct host_group *c)
{
    return s->pool->endpoint[s->pool->start[c->at[0]]];
}

static int nearest(const void *a, const void *b)
{
    const struct host_group *x = a, *y = b;

    if (x->sec != y->sec)
        return x->sec < y->sec ? -1 : 1;
    if (x->count != y->count)
        return y->count - x->count;
    return x->index - y->index;
}

static int largest(const void *a, const void *b)
{
    const struct host_group *x = a, *y = b;

    return x->count != y->count ? y->count - x->count : x->index - y->index;
}

/* Put group `start` first and sort the others by distance from it. */
static void sort_from(struct host_groups *c, const struct sets_search *s, int start)
{
    struct host_group first = c->group[start];
    int from = endpoint_of(s, &first);
    struct cost cost;

    memmove(c->group + 1, c->group, (size_t)start * sizeof(first));
    c->group[0] = first;
    for (int i = 1; i < c->count; i++) {
        matrix_pair(s->pool->matrix, from, endpoint_of(s, &c->group[i]), NEAR_BYTES, &cost);
        c->group[i].sec = isnan(cost.sec) ? INFINITY : cost.sec;
    }
    qsort(c->group + 1, (size_t)c->count - 1, sizeof(first), nearest);
}

/* Take at most `share` hosts of each group in order. */
static void take(struct sets_search *s, const struct host_groups *c, int share, int *at)
{
    int n = 0;

    for (int i = 0; i < c->count && n < s->need; i++)
        for (int h = 0; h < share && h < c->group[i].count && n < s->need; h++)
            at[n++] = c->group[i].at[h];
    if (n == s->need)
        consider(s, at);
}

/* Take need / 2, need / 3 ... hosts from each group that has that many. */
static void take_shares(struct sets_search *s, const struct host_groups *c, int *at)
{
    for (int parts = 2; parts <= c->count && parts <= s->need; parts++) {
        struct host_groups some = {mem_calloc((size_t)c->count, sizeof(*some.group)), 0};
        int share = s->need / parts;
        for (int i = 0; i < c->count; i++)
            if (c->group[i].count >= share)
                some.group[some.count++] = c->group[i];
        if (s->need % parts == 0 && some.count >= parts)
            take(s, &some, share, at);
        free(some.group);
    }
}

static void fill_level(struct sets_search *s, int level, int *at)
{
    struct host_groups c;

    groups_make(&c, s, level);
    qsort(c.group, (size_t)c.count, sizeof(*c.group), largest);
    take(s, &c, s->pool->hosts, at);
    for (int i = 0; i < c.count; i++)
        c.group[i].index = i;
    int starts = c.count < STARTS_MAX ? c.count : STARTS_MAX;
    for (int start = 0; start < starts && s->priced < s->budget; start++) {
        int i = 0; /* current index of that group */
        while (c.group[i].index != start)
            i++;
        sort_from(&c, s, i);
        take(s, &c, s->pool->hosts, at);
        if (start < SEEDS_MAX)
            take_shares(s, &c, at);
    }
    groups_free(&c);
}

static void fill(struct sets_search *s)
{
    int *at = mem_calloc((size_t)s->need, sizeof(*at)), n = 0;

    for (int i = 0; i < s->need; i++)
        at[i] = i;
    consider(s, at); /* in the order given */
    for (int i = 0; i < s->pool->hosts && n < s->need; i++)
        if (!s->pool->slow[i])
            at[n++] = i;
    if (n == s->need)
        consider(s, at);
    for (int l = 0; l < FINEST; l++)
        if (s->pool->matrix->topo.group[finest[l]].count > 1)
            fill_level(s, finest[l], at);
    free(at);
}

/* Replace one host of class `from` by one of class `to`.  False: none is available. */
static bool swap(const struct sets_search *s, const int *at, int from, int to, int *out)
{
    const struct host_class *t = &s->classes.list[to];
    int last = -1, have = 0;

    for (int i = 0; i < s->need; i++) {
        if (s->classes.of[at[i]] == from)
            last = i;
        have += s->classes.of[at[i]] == to;
    }
    if (last < 0 || have == t->count)
        return false;
    memcpy(out, at, (size_t)s->need * sizeof(*out));
    for (int i = 0; i < t->count; i++) {
        bool taken = false;
        for (int n = 0; n < s->need && !taken; n++)
            taken = at[n] == t->at[i];
        if (!taken) {
            out[last] = t->at[i];
            break;
        }
    }
    return true;
}

/* Take the first move that improves the set, until none does. */
static void improve(struct sets_search *s, int *at, double sec)
{
    int *out = mem_calloc((size_t)s->need, sizeof(*out)), classes = s->classes.count;

    for (bool better = true; better;) {
        better = false;
        for (int from = 0; from < classes && !better; from++)
            for (int to = 0; to < classes && !better && s->priced < s->budget; to++) {
                if (to == from || !swap(s, at, from, to, out))
                    continue;
                double now = consider(s, out);
                if (!(now < sec))
                    continue;
                sec = now;
                better = true;
                memcpy(at, out, (size_t)s->need * sizeof(*at));
            }
    }
    free(out);
}

static void moves(struct sets_search *s)
{
    int *at = mem_calloc((size_t)s->need, sizeof(*at));
    bool *used = mem_calloc((size_t)s->patterns + 1, sizeof(*used));
    int pools = s->patterns;

    for (int seed = 0; seed < SEEDS_MAX; seed++) {
        int best = -1;
        for (int i = 0; i < pools; i++)
            if (!used[i] && (best < 0 || s->pattern[i].sec < s->pattern[best].sec))
                best = i;
        if (best < 0)
            break;
        used[best] = true;
        memcpy(at, s->pattern[best].at, (size_t)s->need * sizeof(*at));
        improve(s, at, s->pattern[best].sec);
    }
    free(used);
    free(at);
}

/* --- complete search --- */

static void sets_search_free(struct sets_search *s)
{
    for (int i = 0; i < s->patterns; i++)
        free(s->pattern[i].at);
    free(s->pattern);
    free(s->sec);
    pricer_close(s->pricer);
    map_free(&s->memo);
    map_free(&s->known);
    free(s->block);
    free(s->row);
    free(s->order);
    free(s->ids);
    host_classes_free(&s->classes);
}

static void search(struct sets_search *s, struct place_sets *out, long patterns)
{
    double most = fmin(fmax(SETS_RANKS_PRICED / s->step->ranks, PATTERNS_MIN), PATTERNS_MAX);

    if (patterns > 0)
        most = (double)patterns;
    s->budget = (long)most;
    host_classes_make(&s->classes, s->pool);
    s->level = block_level(s);
    count_blocks(s);
    out->exact = host_classes_patterns(&s->classes, s->need, most) <= most;
    if (out->exact) {
        all_patterns(s);
        return;
    }
    fill(s);
    moves(s);
}

int place_sets_find(struct place_sets *out, const struct place_step *step,
                    const struct node_pool *p, int spread, int need, int k, long patterns,
                    struct err *err)
{
    struct sets_search s = {.step = step, .pool = p, .spread = spread, .need = need};
    size_t n = (size_t)need + 1;

    s.row = mem_calloc(n, sizeof(int));
    s.ids = mem_calloc(n, sizeof(int));
    s.order = mem_calloc((size_t)step->ranks + 1, sizeof(int));
    *out = (struct place_sets){.host = mem_calloc((size_t)k * (size_t)need, sizeof(int)),
                               .sec = mem_calloc((size_t)k, sizeof(double))};
    search(&s, out, patterns);
    rank_all(out, &s, k);
    out->priced = s.priced;
    sets_search_free(&s);
    return out->count ? 0 : err_set(err, "no set of %d hosts: %.400s", need, s.why.text);
}

void place_sets_free(struct place_sets *b)
{
    free(b->host);
    free(b->sec);
    *b = (struct place_sets){.host = NULL};
}
