/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/plot/pair_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "report/plot/heat.h"

/* Marks of an endpoint: an exception may slow its pairs; ODD_ROW: differently from its
 * neighbours. */
enum { ODD_PAIRS = 1, ODD_ROW = 2 };

/* Rate of two different endpoints that were not measured; expected: rate of their tier. */
static double modelled(const struct pair_map *ps, int src, int dst, double expected)
{
    bool odd = ps->odd[src] | ps->odd[dst];
    double factor = odd ? matrix_factor(ps->m, src, dst, NULL, NULL) : 1;

    return factor > 0 ? factor * expected : NAN;
}

static void put_pair(double *GBps, double *percent, double Bps, double expected)
{
    *GBps = Bps / 1e9;
    *percent = 100 * (Bps / expected);
}

/* Set the measured values of a sender, for the wanted columns. */
static void put_samples(const struct pair_map *ps, int src, const int *col, int n, double *GBps,
                        double *percent)
{
    for (int i = ps->first[src]; i < ps->first[src + 1]; i++) {
        const struct pair_sample *s = &ps->sample[i];
        const int *at = bsearch(&ps->place[s->dst], col, (size_t)n, sizeof(*col), stats_by_int);
        if (at)
            put_pair(&GBps[at - col], &percent[at - col], s->Bps,
                     ps->expected[pair_map_tier(ps, src, s->dst)]);
    }
}

/* GB/s, and percent of expected. */
static void rates(void *arg, int row, const int *col, int n, double *GBps, double *percent)
{
    const struct pair_map *ps = arg;
    const int src = ps->order[row];
    double rate[TIER_MAX] = {0}, share[TIER_MAX] = {0}; /* values of a pair without exceptions */

    for (int i = 0; i < ps->m->tiers; i++)
        put_pair(&rate[i], &share[i], ps->expected[i], ps->expected[i]);
    for (int i = 0; i < n; i++) {
        int dst = ps->order[col[i]], tier = pair_map_tier(ps, src, dst);
        GBps[i] = rate[tier];
        percent[i] = share[tier];
        if (ps->odd[src] | ps->odd[dst])
            put_pair(&GBps[i], &percent[i], modelled(ps, src, dst, ps->expected[tier]),
                     ps->expected[tier]);
    }
    put_samples(ps, src, col, n, GBps, percent);
}

static void shares(void *arg, int row, const int *col, int n, double *percent, double *GBps)
{
    rates(arg, row, col, n, GBps, percent);
}

static const char *label(void *arg, int row)
{
    const struct pair_map *ps = arg;
    const struct topo *t = &ps->m->topo;
    const int *at = t->endpoint[ps->order[row]].place.at;

    if (t->hosts > 16 && t->group[LEVEL_RACK].count > 1)
        return at[LEVEL_RACK] >= 0 ? t->group[LEVEL_RACK].name[at[LEVEL_RACK]] : "";
    return t->host[at[LEVEL_HOST]].name;
}

static bool special(void *arg, int row)
{
    const struct pair_map *ps = arg;

    return ps->odd[ps->order[row]] & ODD_ROW;
}

struct heat pair_map_heat(const struct pair_map *ps, enum heat_palette palette)
{
    static const struct heat kind[] = {
        [HEAT_AMOUNT] = {.values = rates, .log = true, .unit = "GB/s", .title = "\nbandwidth"},
        [HEAT_SHARE] = {.values = shares,
                        .lo = 50,
                        .hi = 105,
                        .unit = "%",
                        .title = "share of expected bandwidth, row sends to column"}};
    struct heat h = kind[palette];

    h.n = ps->n;
    h.arg = (void *)ps;
    h.palette = palette;
    h.label = label;
    h.special = special;
    return h;
}

void pair_map_print(FILE *out, const struct pair_map *ps, int columns, bool colour)
{
    struct heat share_of = pair_map_heat(ps, HEAT_SHARE), rates = pair_map_heat(ps, HEAT_AMOUNT);

    heat_print(out, &share_of, columns, colour);
    heat_print(out, &rates, columns, colour);
}

static json_t *json_pair(const struct pair_map *ps, int src, int dst)
{
    const struct tier *t = &ps->m->tier[pair_map_tier(ps, src, dst)];
    double add, Bps = pair_map_rate(ps, src, dst), of = pair_map_share(ps, src, dst, Bps);
    double factor = matrix_factor(ps->m, src, dst, NULL, &add), lat = t->curve[DIR_ONEWAY].alpha;

    return json_pack(
        "{s:i, s:i, s:s, s:o, s:o, s:o, s:f, s:f, s:b}", "src", src, "dst", dst, "tier",
        t->rule.name, "latency_s", lat > 0 ? json_real(lat + add) : json_null(), "Bps",
        Bps > 0 ? json_real(Bps) : json_null(), "of_expected", json_finite(of), "factor", factor,
        "bytes", ps->bytes, "measured", pair_map_sample(ps, src, dst) != NULL);
}

json_t *pair_map_json(const struct pair_map *ps)
{
    json_t *out = json_array();

    for (int i = 0; i < ps->n; i++)
        for (int j = 0; j < ps->n; j++)
            if (i != j)
                json_array_append_new(out, json_pair(ps, i, j));
    return out;
}

static const double default_bytes = 64 << 20; /* used if nothing was measured */

/* --- order --- */

static int by_place(const void *x, const void *y, void *arg)
{
    const struct topo *t = arg;
    int a = *(const int *)x, b = *(const int *)y;
    const int *p = t->endpoint[a].place.at, *q = t->endpoint[b].place.at;
    /* Leaves of a rail-optimised fabric cross the hosts; in others they group hosts. */
    bool leaves = t->group[LEVEL_RAIL].count == 0;
    const enum level level[] = {LEVEL_RACK, LEVEL_DOMAIN, leaves ? LEVEL_LEAF : LEVEL_HOST,
                                LEVEL_HOST};

    for (size_t i = 0; i < sizeof(level) / sizeof(*level); i++)
        if (p[level[i]] != q[level[i]])
            return p[level[i]] < q[level[i]] ? -1 : 1;
    if (t->endpoint[a].local != t->endpoint[b].local)
        return t->endpoint[a].local < t->endpoint[b].local ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void put_in_order(struct pair_map *ps)
{
    ps->order = mem_calloc((size_t)ps->n, sizeof(int));
    ps->place = mem_calloc((size_t)ps->n, sizeof(int));
    for (int i = 0; i < ps->n; i++)
        ps->order[i] = i;
    qsort_r(ps->order, (size_t)ps->n, sizeof(int), by_place, (void *)&ps->m->topo);
    for (int i = 0; i < ps->n; i++)
        ps->place[ps->order[i]] = i;
}

static void mark_odd(struct pair_map *ps)
{
    ps->odd = mem_calloc((size_t)ps->n, sizeof(*ps->odd));
    for (int i = 0; i < ps->m->exceptions; i++) {
        const struct exception *e = &ps->m->exception[i];
        bool one = e->part == PART_ENDPOINT || e->part == PART_PAIR;
        bool racks = e->part == PART_RACK_PAIR || e->part == PART_RACK_UPLINKS;
        const int end[] = {e->a, e->part == PART_PAIR ? e->b : -1};
        for (int id = 0; !one && id < ps->n; id++)
            if (matrix_touches(ps->m, e, id))
                ps->odd[id] |= racks ? ODD_PAIRS : ODD_PAIRS | ODD_ROW;
        for (int k = 0; one && k < 2; k++)
            if (end[k] >= 0 && end[k] < ps->n)
                ps->odd[end[k]] |= ODD_PAIRS | ODD_ROW;
    }
}

/* Number shared by endpoints with equal coordinates at all these levels; unique if one is not
 * known. */
static int key_of(const struct topo *t, int id, unsigned same, struct map *numbers)
{
    int key = 0;

    for (unsigned left = same; left; left &= left - 1) {
        int at = topo_at(t, id, __builtin_ctz(left));
        if (at < 0)
            return -1 - id;
        int *n =
            left == same ? &at : map_at(numbers, (uint64_t)key << 32 | (unsigned)at, NULL, NULL);
        key = *n = *n == MAP_NONE ? (int)numbers->count : *n;
    }
    return key;
}

static void make_keys(struct pair_map *ps)
{
    const struct topo *t = &ps->m->topo;
    const int last = t->tiers - 1;

    ps->key = mem_ints(ps->n * last, 0);
    for (int i = 0; i < last; i++) {
        struct map numbers = {0};
        for (int id = 0; id < ps->n; id++)
            ps->key[id * last + i] = key_of(t, id, t->tier[i].same, &numbers);
        map_free(&numbers);
    }
}

/* --- measured values --- */

/* Most frequent size of the op's points, in a tie the larger; 0: none. */
static size_t common_size(const struct points *p, enum op op)
{
    struct map points = {0};
    size_t best = 0, last = 0;
    int most = 0, *n = NULL;

    for (int i = 0; i < p->count; i++) {
        size_t bytes = p->point[i].bytes;
        if (p->point[i].op != op)
            continue;
        if (!n || bytes != last) /* mostly the same size as the previous point */
            n = map_at(&points, last = bytes, NULL, NULL);
        *n = *n == MAP_NONE ? 1 : *n + 1;
        if (*n > most || (*n == most && bytes > best))
            best = bytes;
        most = *n > most ? *n : most;
    }
    map_free(&points);
    return best;
}

static bool same_pair(const struct pair_sample *a, const struct pair_sample *b)
{
    return a->src == b->src && a->dst == b->dst;
}

/* Merge the samples s[0..n) of one pair: the median of those with the best rank. */
static struct pair_sample one_sample(const struct pair_sample *s, int n)
{
    struct pair_sample out = s[0];

    if (n == 1)
        return out;
    double *rate = mem_calloc((size_t)n, sizeof(*rate));
    int good = 0;
    for (int i = 1; i < n; i++)
        out.rank = s[i].rank > out.rank ? s[i].rank : out.rank;
    for (int i = 0; i < n; i++)
        if (s[i].rank == out.rank && !isnan(s[i].Bps))
            rate[good++] = s[i].Bps;
    out.Bps = good ? stats_median(rate, good) : NAN;
    free(rate);
    return out;
}

/* Find the start of each sender's samples. */
static void index_samples(struct pair_map *ps)
{
    int endpoints = ps->m->topo.endpoints;

    free(ps->first);
    ps->first = mem_calloc((size_t)endpoints + 1, sizeof(*ps->first));
    for (int i = 0; i < ps->samples; i++)
        ps->first[ps->sample[i].src + 1]++;
    for (int e = 0; e < endpoints; e++)
        ps->first[e + 1] += ps->first[e];
}

/* Sort the samples of a sender by receiver.  A large machine has few for each of many senders. */
static void sort_samples(struct pair_sample *s, int n)
{
    enum { FEW = 64 };

    if (n > FEW) {
        qsort(s, (size_t)n, sizeof(*s), stats_by_2ints);
        return;
    }
    for (int i = 1, k; i < n; i++) {
        const struct pair_sample x = s[i];
        for (k = i; k > 0 && s[k - 1].dst > x.dst; k--)
            s[k] = s[k - 1];
        s[k] = x;
    }
}

/* Reduce samples, grouped by sender from first[] on, to one per pair in the order of receivers. */
static void reduce(struct pair_map *ps)
{
    int kept = 0;

    for (int e = 0; e < ps->n; e++)
        sort_samples(ps->sample + ps->first[e], ps->first[e + 1] - ps->first[e]);
    for (int i = 0, n; i < ps->samples; i += n) {
        for (n = 1; i + n < ps->samples && same_pair(&ps->sample[i], &ps->sample[i + n]); n++)
            ;
        ps->sample[kept++] = one_sample(&ps->sample[i], n);
    }
    ps->samples = kept;
}

static bool is_sample(const struct pair_map *ps, const struct point *q, enum op op)
{
    return q->op == op && !stage_by_nic(q->stage) && (double)q->bytes == ps->bytes &&
           q->src != q->dst && q->src >= 0 && q->dst >= 0 && q->src < ps->n && q->dst < ps->n;
}

static struct pair_sample sample_of(const struct point *q)
{
    bool alone = q->stage == STAGE_RETEST || q->stage == STAGE_ISOLATED || q->flows == 1;
    bool good = q->stop != STOP_FAILED && !q->wrong && q->sec.median > 0;

    return (struct pair_sample){q->src, q->dst, alone,
                                good ? (double)q->bytes / q->sec.median : NAN};
}

/* Counting sort, because there are millions of samples and room for a single copy. */
static void collect(struct pair_map *ps, const struct points *p, enum op op)
{
    int *next = mem_ints(ps->n, 0);

    for (int i = 0; i < p->count; i++)
        if (is_sample(ps, &p->point[i], op))
            next[p->point[i].src + 1]++;
    for (int e = 0; e < ps->n; e++)
        next[e + 1] += next[e];
    ps->first = mem_dup(next, (size_t)ps->n + 1, sizeof(*next));
    ps->samples = next[ps->n];
    ps->sample = mem_calloc((size_t)ps->samples + 1, sizeof(*ps->sample));
    for (int i = 0; i < p->count; i++)
        if (is_sample(ps, &p->point[i], op))
            ps->sample[next[p->point[i].src]++] = sample_of(&p->point[i]);
    free(next);
    reduce(ps);
}

static void measured(struct pair_map *ps, const struct points *p)
{
    size_t uni = p ? common_size(p, OP_PAIR_BW) : 0;
    size_t both = p && !uni ? common_size(p, OP_PAIR_BIBW) : 0;

    ps->dir = both ? DIR_BI : DIR_UNI;
    ps->bytes = uni ? (double)uni : both ? (double)both : default_bytes;
    if (uni || both)
        collect(ps, p, uni ? OP_PAIR_BW : OP_PAIR_BIBW);
    index_samples(ps);
}

/* --- queries --- */

const struct pair_sample *pair_map_sample(const struct pair_map *ps, int src, int dst)
{
    const int pair[] = {src, dst}, from = ps->first[src], n = ps->first[src + 1] - from;

    return n ? bsearch(pair, ps->sample + from, (size_t)n, sizeof(*ps->sample), stats_by_2ints)
             : NULL;
}

/* Rate of two different endpoints; expected: rate of their tier. */
static double measured_rate(const struct pair_map *ps, int src, int dst, double expected)
{
    const struct pair_sample *s = pair_map_sample(ps, src, dst);

    return s ? s->Bps : modelled(ps, src, dst, expected);
}

double pair_map_rate(const struct pair_map *ps, int src, int dst)
{
    return src == dst ? NAN
                      : measured_rate(ps, src, dst, ps->expected[pair_map_tier(ps, src, dst)]);
}

static double tier_rate(const struct tier *t, enum direction dir, double bytes)
{
    for (int d = dir; d > DIR_ONEWAY; d--)
        if (t->curve[d].points)
            return bytes / curve_time(&t->curve[d], bytes);
    return t->curve[DIR_ONEWAY].points ? bytes / curve_time(&t->curve[DIR_ONEWAY], bytes) : NAN;
}

/* --- selected tiers and racks --- */

static bool named(const struct pair_only *o, const char *name)
{
    for (int i = 0; i < o->names; i++)
        if (!strcmp(o->name[i], name))
            return true;
    return false;
}

static int find_tier(const struct matrix *m, const char *name)
{
    for (int i = 0; i < m->tiers; i++)
        if (!strcmp(m->tier[i].rule.name, name))
            return i;
    return -1;
}

int pair_only_check(const struct pair_only *o, const struct matrix *m, struct err *err)
{
    const struct names *rack = &m->topo.group[LEVEL_RACK];

    for (int i = 0; i < o->names; i++) {
        struct near near = {.word = o->name[i]};
        for (int k = 0; k < m->tiers; k++)
            near_try(&near, m->tier[k].rule.name);
        for (int k = 0; k < rack->count; k++)
            near_try(&near, rack->name[k]);
        if (find_tier(m, o->name[i]) < 0 && names_find(rack, o->name[i]) < 0)
            return err_usage(err, "--only: \"%.60s\" is no tier and no rack here%s", o->name[i],
                             near_text(&near));
    }
    return 0;
}

bool pair_only_tier(const struct pair_only *o, const struct matrix *m, int tier)
{
    bool any = false;

    for (int i = 0; i < o->names; i++)
        any |= find_tier(m, o->name[i]) >= 0;
    return !any || named(o, m->tier[tier].rule.name);
}

static bool keeps_endpoint(const struct pair_only *o, const struct topo *t, int id)
{
    const struct names *rack = &t->group[LEVEL_RACK];
    int at = topo_at(t, id, LEVEL_RACK);
    bool any = false;

    for (int i = 0; i < o->names; i++)
        any |= names_find(rack, o->name[i]) >= 0;
    return !any || (at >= 0 && named(o, rack->name[at]));
}

static int keep(struct pair_map *ps, const struct pair_only *o, struct err *err)
{
    const struct matrix *m = ps->m;
    int n = 0, samples = 0;

    if (pair_only_check(o, m, err) < 0)
        return -1;
    for (int i = 0; i < m->tiers; i++)
        if (!pair_only_tier(o, m, i))
            ps->expected[i] = NAN;
    for (int i = 0; i < ps->n; i++) {
        int id = ps->order[i];
        bool kept = keeps_endpoint(o, &m->topo, id);
        ps->place[id] = kept ? n : -1;
        if (kept)
            ps->order[n++] = id;
    }
    ps->n = n;
    for (int i = 0; i < ps->samples; i++) {
        const struct pair_sample *s = &ps->sample[i];
        if (ps->place[s->src] >= 0 && ps->place[s->dst] >= 0 &&
            !isnan(ps->expected[pair_map_tier(ps, s->src, s->dst)]))
            ps->sample[samples++] = *s;
    }
    ps->samples = samples;
    index_samples(ps);
    return n > 1 ? 0
                 : err_data(err, "no pairs to plot: --only leaves %d endpoint%s", n,
                            n == 1 ? "" : "s");
}

/* --- complete map --- */

int pair_map_init(struct pair_map *ps, const struct matrix *m, const struct points *p,
                  const struct pair_only *only, struct err *err)
{
    bool any = false;

    memset(ps, 0, sizeof(*ps));
    if (m->topo.endpoints < 2)
        return err_data(err, "no pairs to plot: %d endpoint%s", m->topo.endpoints,
                        m->topo.endpoints == 1 ? "" : "s");
    ps->m = m;
    ps->n = m->topo.endpoints;
    measured(ps, p);
    for (int i = 0; i < m->tiers; i++) {
        ps->expected[i] = tier_rate(&m->tier[i], ps->dir, ps->bytes);
        any |= !isnan(ps->expected[i]);
    }
    put_in_order(ps);
    mark_odd(ps);
    make_keys(ps);
    int rc = any ? 0 : err_data(err, "no pairs to plot: no tier has a bandwidth curve");
    if (rc == 0 && only && only->names)
        rc = keep(ps, only, err);
    if (rc < 0)
        pair_map_free(ps);
    return rc;
}

void pair_map_free(struct pair_map *ps)
{
    if (!ps)
        return;
    free(ps->order);
    free(ps->place);
    free(ps->sample);
    free(ps->first);
    free(ps->odd);
    free(ps->key);
    memset(ps, 0, sizeof(*ps));
}
