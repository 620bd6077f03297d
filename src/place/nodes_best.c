/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/nodes_search.h"

/* Ranks that are priced in about a second, and patterns that are looked at in one. */
#define RANKS_PRICED 1e7
enum { PATTERNS_MAX = 50000, PATTERNS_MIN = 64, BEST_MAX = 1 << 22 };

static double price(struct search *s, const int *at)
{
    uint64_t signature = kinds_signature(&s->kinds, at, s->need);
    int known = map_find(&s->memo, signature, NULL, NULL);

    if (known != MAP_NONE)
        return s->sec[known];
    if (s->priced >= s->budget)
        return NAN;
    for (int i = 0; i < s->need; i++)
        s->ids[i] = s->host[at[i]];
    nodes_deal(s->job, s->ids, s->need, s->order);
    s->priced++;
    double sec = nodes_price(s->job, &s->step, s->order, &s->why);
    *map_at(&s->memo, signature, NULL, NULL) = s->secs;
    MEM_PUSH(s->sec, s->secs) = sec;
    return sec;
}

/* Free hosts in the blocks of this set that it does not take. */
static int left_over(struct search *s, const int *at)
{
    struct kinds *k = &s->kinds;
    int sum = -s->need;

    if (s->level < 0)
        return 0;
    k->stamp++;
    for (int i = 0; i < s->need; i++) {
        int group = kinds_group(k, k->of[at[i]], s->level);
        struct label *l = group < 0 ? NULL : &k->slot[k->base[s->level] + group];
        if (l && l->stamp == k->stamp)
            continue;
        if (l)
            l->stamp = k->stamp;
        for (int n = 0; n < k->count; n++)
            if (kinds_group(k, n, s->level) == group)
                sum += k->kind[n].count;
    }
    return sum;
}

static void keep(struct search *s, const int *at, double sec)
{
    int *copy = mem_calloc((size_t)s->need, sizeof(*copy));

    memcpy(copy, at, (size_t)s->need * sizeof(*copy));
    MEM_PUSH(s->pool, s->pools) = (struct pattern){sec, 0, copy};
}

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

double search_consider(struct search *s, const int *at)
{
    uint64_t row = 0;

    memcpy(s->row, at, (size_t)s->need * sizeof(*s->row));
    qsort(s->row, (size_t)s->need, sizeof(*s->row), ascending);
    kinds_leftmost(&s->kinds, s->row, s->need);
    for (int i = 0; i < s->need; i++)
        row = map_mix(row, (uint64_t)(s->kinds.of[s->row[i]] + 1));
    size_t before = s->known.count;
    int *pattern = map_at(&s->known, row, NULL, NULL);
    if (s->known.count == before)
        return *pattern != MAP_NONE ? s->pool[*pattern].sec : NAN;
    double sec = price(s, s->row);
    s->tried++;
    if (!isnan(sec)) {
        *pattern = s->pools;
        keep(s, s->row, sec);
    }
    return sec;
}

static void all_patterns(struct search *s)
{
    int *at = mem_calloc((size_t)s->need, sizeof(*at));

    for (int i = 0; i < s->need; i++)
        at[i] = i;
    do {
        double sec = price(s, at);
        if (!isnan(sec))
            keep(s, at, sec);
    } while (kinds_next_pattern(&s->kinds, s->hosts, at, s->need));
    free(at);
}

/* The finest level at which every free host has a group and some share one. */
static int block_level(const struct search *s)
{
    static const enum level finest[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};
    const struct kinds *k = &s->kinds;

    for (size_t i = 0; i < sizeof(finest) / sizeof(*finest); i++) {
        int *seen = mem_calloc((size_t)s->job->matrix.topo.group[finest[i]].count + 1, sizeof(int));
        bool all = true, shared = false;
        for (int n = 0; all && n < k->count; n++) {
            int group = kinds_group(k, n, (int)finest[i]);
            all = group >= 0;
            shared |= all && (seen[group]++ || k->kind[n].count > 1);
        }
        free(seen);
        if (all && shared)
            return (int)finest[i];
    }
    return -1;
}

struct ranked {
    struct pattern *p;
    int need;
    bool alive;
};

static int cheaper(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->p->sec != y->p->sec)
        return x->p->sec < y->p->sec ? -1 : 1;
    if (x->p->left != y->p->left)
        return x->p->left < y->p->left ? -1 : 1;
    for (int i = 0; i < x->need; i++)
        if (x->p->at[i] != y->p->at[i])
            return x->p->at[i] < y->p->at[i] ? -1 : 1;
    return 0;
}

static void emit(struct nodes_best *b, const struct search *s, const struct pattern *p)
{
    int *to = b->host + (size_t)b->count * (size_t)s->need;

    for (int i = 0; i < s->need; i++)
        to[i] = s->host[p->at[i]];
    b->sec[b->count++] = p->sec;
}

/* Patterns of equal cost take turns with their sets. */
static void emit_equals(struct nodes_best *b, const struct search *s, struct ranked *from,
                        int patterns, int k)
{
    for (int alive = patterns; alive && b->count < k;) {
        alive = 0;
        for (int i = 0; i < patterns && b->count < k; i++) {
            if (!from[i].alive)
                continue;
            emit(b, s, from[i].p);
            from[i].alive = kinds_next_set(&s->kinds, s->hosts, from[i].p->at, s->need);
            alive += from[i].alive;
        }
    }
}

static void rank_all(struct nodes_best *b, struct search *s, int k)
{
    struct ranked *r = mem_calloc((size_t)s->pools + 1, sizeof(*r));
    int n = 0;

    for (int i = 0; i < s->pools; i++) {
        if (isinf(s->pool[i].sec))
            continue;
        s->pool[i].left = left_over(s, s->pool[i].at);
        r[n++] = (struct ranked){&s->pool[i], s->need, true};
    }
    qsort(r, (size_t)n, sizeof(*r), cheaper);
    for (int from = 0, to; from < n && b->count < k; from = to) {
        for (to = from; to < n && r[to].p->sec == r[from].p->sec; to++)
            ;
        emit_equals(b, s, r + from, to - from, k);
    }
    free(r);
}

static void search_free(struct search *s)
{
    for (int i = 0; i < s->pools; i++)
        free(s->pool[i].at);
    free(s->pool);
    map_free(&s->memo);
    free(s->sec);
    map_free(&s->known);
    free(s->row);
    free(s->order);
    free(s->ids);
    kinds_free(&s->kinds);
}

static int check(const struct search *s, int k, struct err *err)
{
    const struct topo *t = &s->job->matrix.topo;

    if (nodes_check(s->job, s->host, s->hosts, err) < 0)
        return -1;
    if (s->need < 1 || s->need > s->hosts)
        return err_usage(err, "%d hosts of the %d free ones", s->need, s->hosts);
    if (k < 1 || k > BEST_MAX / s->need)
        return err_usage(err, "the best %d sets of %d hosts: 1 to %d are possible", k, s->need,
                         BEST_MAX / s->need);
    for (int i = 1; i < s->hosts; i++)
        if (nodes_room(s->job, s->host[i]) != nodes_room(s->job, s->host[0]))
            return err_usage(err,
                             "host %.80s takes %d ranks and host %.80s %d: the job must say "
                             "per_node=N",
                             t->host[s->host[0]].name, nodes_room(s->job, s->host[0]),
                             t->host[s->host[i]].name, nodes_room(s->job, s->host[i]));
    return 0;
}

static void look(struct search *s, struct nodes_best *b, long patterns)
{
    double fit = RANKS_PRICED / s->step.ranks;
    double most = fmin(fmax(fit, PATTERNS_MIN), PATTERNS_MAX);

    if (patterns > 0)
        most = (double)patterns;
    s->budget = (long)most;
    kinds_make(s);
    s->level = block_level(s);
    b->exact = kinds_patterns(&s->kinds, s->hosts, s->need, most) <= most;
    if (b->exact) {
        all_patterns(s);
        return;
    }
    search_fill(s);
    search_moves(s);
}

int nodes_best_of(struct nodes_best *b, const struct nodes_job *j, const int *free_host, int frees,
                  int need, int k, long patterns, struct err *err)
{
    struct search s = {.job = j, .host = free_host, .hosts = frees, .need = need};

    memset(b, 0, sizeof(*b));
    if (check(&s, k, err) < 0)
        return -1;
    int given = need * nodes_room(j, free_host[0]);
    if (nodes_step(&s.step, j, given, err) < 0 ||
        nodes_fill(j, &s.step, free_host, need, given, err) < 0)
        return -1;
    s.row = mem_calloc((size_t)need, sizeof(int));
    s.ids = mem_calloc((size_t)need, sizeof(int));
    s.order = mem_calloc((size_t)given, sizeof(int));
    look(&s, b, patterns);
    b->host = mem_calloc((size_t)k * (size_t)need, sizeof(int));
    b->sec = mem_calloc((size_t)k, sizeof(double));
    rank_all(b, &s, k);
    b->priced = s.priced;
    search_free(&s);
    return b->count ? 0 : err_set(err, "no set of %d hosts: %.400s", need, s.why.text);
}

int nodes_best(struct nodes_best *b, const struct nodes_job *j, const int *free_host, int frees,
               int need, int k, struct err *err)
{
    return nodes_best_of(b, j, free_host, frees, need, k, 0, err);
}

void nodes_best_free(struct nodes_best *b)
{
    free(b->host);
    free(b->sec);
    memset(b, 0, sizeof(*b));
}
