/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/compare.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "topo/host/gpu.h"
#include "topo/host/nic.h"

const char *const part_change_name[PART_CHANGES] = {"new", "gone", "worse", "better", "same"};

/* --- points that measured the same --- */

/* What a point is of, in the ids of the first campaign. */
struct match_key {
    int op, stage, ranks, src, dst, flows, epoch;
    double bytes;
};

struct match_row {
    struct match_key key;
    double sec;
};

static int order_keys(const void *x, const void *y)
{
    const struct match_key *a = x, *b = y;
    const int left[] = {a->op, a->stage, a->ranks, a->src, a->dst, a->flows, a->epoch},
              right[] = {b->op, b->stage, b->ranks, b->src, b->dst, b->flows, b->epoch};

    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* id[] of `other`'s endpoints in `t`, -1 where t has none of that host and number. */
static int *same_endpoints(const struct topo *t, const struct topo *other)
{
    int *id = mem_calloc((size_t)other->endpoints + 1, sizeof(int)),
        *first = mem_calloc((size_t)t->hosts + 1, sizeof(int));

    for (int i = t->endpoints - 1; i >= 0; i--)
        first[t->endpoint[i].place.at[LEVEL_HOST]] = i;
    for (int i = 0; i < other->endpoints; i++) {
        const struct endpoint *e = &other->endpoint[i];
        int host = topo_find_host(t, other->host[e->place.at[LEVEL_HOST]].name);
        int at = host < 0 ? -1 : first[host] + e->local;
        id[i] = at >= 0 && at < t->endpoints && t->endpoint[at].place.at[LEVEL_HOST] == host &&
                        t->endpoint[at].local == e->local
                    ? at
                    : -1;
    }
    free(first);
    return id;
}

/* The good points, sorted; id NULL: as they are. */
static struct match_row *match_rows(const struct points *p, const int *id, int *count)
{
    struct match_row *row = NULL;
    int n = 0;

    for (int i = 0; i < p->count; i++) {
        const struct point *x = &p->point[i];
        int src = id ? id[x->src] : x->src, dst = id ? id[x->dst] : x->dst;
        if (x->stop == STOP_FAILED || x->wrong || stage_is_retest(x->stage) || src < 0 || dst < 0 ||
            !(x->sec.median > 0))
            continue;
        MEM_PUSH(row, n) = (struct match_row){
            {(int)x->op, (int)x->stage, x->ranks, src, dst, x->flows, x->epoch, (double)x->bytes},
            x->sec.median};
    }
    if (n)
        qsort(row, (size_t)n, sizeof(*row), order_keys);
    *count = n;
    return row;
}

/* --- figures --- */

/* Which figure a point belongs to: pairs by tier, collectives by ranks, each by its size's end. */
struct figure_key {
    int op, tier, ranks;
    bool large;
};

struct matched {
    struct figure_key key;
    double before, after; /* s */
    double bytes;
};

static int order_matched(const void *x, const void *y)
{
    const struct matched *a = x, *b = y;
    const int left[] = {op_is_pair((enum op)a->key.op), a->key.tier, a->key.op, a->key.ranks,
                        a->key.large},
              right[] = {op_is_pair((enum op)b->key.op), b->key.tier, b->key.op, b->key.ranks,
                         b->key.large};

    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++)
        if (left[i] != right[i])
            return left[i] > right[i] ? -1 : 1;
    return 0;
}

enum { SMALL = 8 << 10, LARGE = 1 << 20 }; /* up to, from: bytes */

/* Sizes between are neither latency nor bandwidth. */
static bool figure_of(struct figure_key *f, const struct matrix *m, const struct match_key *k)
{
    bool pair = op_is_pair((enum op)k->op);

    int tier =
        pair ? topo_tier_by(&m->topo, k->src, k->dst, stage_by_nic((enum stage)k->stage)) : -1;

    *f = (struct figure_key){k->op, tier, pair ? 0 : k->ranks, k->bytes >= LARGE};
    if (k->op == OP_PAIR_LATENCY)
        return k->bytes <= SMALL;
    return pair ? f->large : f->large || k->bytes <= SMALL;
}

struct matches {
    struct matched *row;
    int count;
};

static void match(struct matches *out, struct compare *c, const struct campaign *a,
                  const struct campaign *b)
{
    int *id = same_endpoints(a->topo, b->topo), n, k;
    struct match_row *x = match_rows(a->points, NULL, &n), *y = match_rows(b->points, id, &k);

    for (int i = 0, j = 0; i < n && j < k;) {
        int order = order_keys(&x[i].key, &y[j].key);
        struct matched one = {.before = x[i].sec, .after = y[j].sec, .bytes = x[i].key.bytes};
        if (order == 0) {
            c->matched++;
            c->unmatched--;
            if (figure_of(&one.key, a->matrix, &x[i].key))
                MEM_PUSH(out->row, out->count) = one;
        }
        i += order <= 0;
        j += order >= 0;
    }
    c->unmatched += k;
    free(id);
    free(x);
    free(y);
}

/* Two-sided, of v sorted by size of its values without sign: rank sums, ties share their ranks. */
static int order_sizes(const void *x, const void *y)
{
    double a = fabs(*(const double *)x), b = fabs(*(const double *)y);

    return (a > b) - (a < b);
}

static double signed_rank_p(double *v, int n)
{
    double plus = 0;

    if (n < COMPARE_LEAST)
        return NAN;
    qsort(v, (size_t)n, sizeof(*v), order_sizes);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && fabs(v[j]) == fabs(v[i]);)
            j++;
        for (int k = i; k < j; k++)
            plus += v[k] > 0 ? (i + j + 1) / 2.0 : v[k] < 0 ? 0 : (i + j + 1) / 4.0;
    }
    double mean = n * (n + 1) / 4.0, sd = sqrt(n * (n + 1) * (2.0 * n + 1) / 24);
    return erfc(fmax(0, fabs(plus - mean) - 0.5) / sd / sqrt(2));
}

static char *figure_words(const struct matrix *m, const struct figure_key *k)
{
    const char *op = op_name((enum op)k->op);

    return k->tier >= 0
               ? mem_printf("tier %s, %s", m->tier[k->tier].rule.name, op)
               : mem_printf("%s, %d ranks, %s", op, k->ranks, k->large ? "large" : "small");
}

static struct figure_change make_figure(const struct matrix *m, const struct matched *x, int n)
{
    double *ratio = mem_calloc((size_t)n, sizeof(double)),
           *before = mem_calloc((size_t)n, sizeof(double)),
           *after = mem_calloc((size_t)n, sizeof(double));
    struct figure_change f = {.what = figure_words(m, &x->key),
                              .points = n,
                              .rate = x->key.large,
                              .tier = x->key.tier >= 0};

    for (int i = 0; i < n; i++) {
        double factor =
            f.rate ? op_bus_factor((enum op)x->key.op, x->key.ranks > 0 ? x->key.ranks : 2) : 1;
        ratio[i] = log(x[i].before / x[i].after);
        before[i] = f.rate ? x[i].bytes * factor / x[i].before : x[i].before;
        after[i] = f.rate ? x[i].bytes * factor / x[i].after : x[i].after;
    }
    f.before = stats_median(before, n);
    f.after = stats_median(after, n);
    stats_sort(ratio, n);
    f.ratio = exp(stats_quantile(ratio, n, 0.5));
    stats_median_ci(ratio, n, &f.lo, &f.hi);
    f.lo = exp(f.lo);
    f.hi = exp(f.hi);
    f.p = signed_rank_p(ratio, n);
    free(ratio);
    free(before);
    free(after);
    return f;
}

static void make_figures(struct compare *c, const struct matrix *m, struct matches *all)
{
    struct matched *x = all->row;

    if (all->count)
        qsort(x, (size_t)all->count, sizeof(*x), order_matched);
    for (int i = 0, j; i < all->count; i = j) {
        for (j = i + 1; j < all->count && order_matched(&x[i], &x[j]) == 0;)
            j++;
        MEM_PUSH(c->figure, c->figures) = make_figure(m, x + i, j - i);
    }
}

static int order_p(const void *x, const void *y)
{
    double a = (*(struct figure_change *const *)x)->p, b = (*(struct figure_change *const *)y)->p;

    return isnan(a) ? !isnan(b) : isnan(b) ? -1 : (a > b) - (a < b);
}

/* Holm: the k-th smallest of n p-values against alpha / (n - k + 1), until the first that fails. */
static void judge_figures(struct compare *c, double tolerance)
{
    struct figure_change **by_p =
        mem_calloc((size_t)c->figures + 1, sizeof(struct figure_change *));
    int judged = 0;
    bool sure = true;

    for (int i = 0; i < c->figures; i++) {
        by_p[i] = &c->figure[i];
        judged += !isnan(c->figure[i].p);
    }
    qsort(by_p, (size_t)c->figures, sizeof(*by_p), order_p);
    for (int i = 0; i < c->figures; i++) {
        struct figure_change *f = by_p[i];
        sure = sure && f->p <= COMPARE_ALPHA / (judged - i);
        f->is = isnan(f->p)                                       ? CHANGE_UNSURE
                : !sure || fabs(log(f->ratio)) < log1p(tolerance) ? CHANGE_NONE
                : f->ratio < 1                                    ? CHANGE_WORSE
                                                                  : CHANGE_BETTER;
    }
    free(by_p);
}

/* --- parts --- */

static char *part_words(const struct matrix *m, const struct exception *e)
{
    char part[256];

    return mem_printf("%s, %s", matrix_part(m, e, part),
                      e->tier >= 0    ? m->tier[e->tier].rule.name
                      : e->factor > 0 ? "all NICs"
                                      : "all tiers");
}

/* What both call by the same words are the same part. */
static void add_part(struct compare *c, char *what, double share, bool after)
{
    for (int i = 0; i < c->parts; i++)
        if (!strcmp(c->part[i].what, what)) {
            *(after ? &c->part[i].after : &c->part[i].before) = share;
            free(what);
            return;
        }
    MEM_PUSH(c->part, c->parts) =
        (struct part_change){what, after ? 1 : share, after ? share : 1, PART_SAME};
}

static void compare_parts(struct compare *c, const struct matrix *a, const struct matrix *b,
                          double tolerance)
{
    for (int i = 0; i < a->exceptions; i++)
        add_part(c, part_words(a, &a->exception[i]), a->exception[i].factor, false);
    for (int i = 0; i < b->exceptions; i++)
        add_part(c, part_words(b, &b->exception[i]), b->exception[i].factor, true);
    for (int i = 0; i < c->parts; i++) {
        struct part_change *p = &c->part[i];
        double change = p->after - p->before;
        p->is = p->before == 1        ? PART_NEW
                : p->after == 1       ? PART_GONE
                : change < -tolerance ? PART_WORSE
                : change > tolerance  ? PART_BETTER
                                      : PART_SAME;
    }
}

/* --- versions --- */

static void add_version(struct compare *c, const char *what, const char *a, const char *b)
{
    if (strcmp(a, b) != 0)
        MEM_PUSH(c->version, c->versions) =
            (struct version_change){mem_strdup(what), mem_strdup(a), mem_strdup(b)};
}

/* Facts of the provenance that are words, all but when, where and how it was begun. */
static void compare_provenance(struct compare *c, json_t *a, json_t *b)
{
    const char *key;
    json_t *value;

    json_object_foreach(b, key, value)
    {
        const char *before = json_string_value(json_object_get(a, key));
        if (json_is_string(value) && strcmp(key, "host") != 0 && strcmp(key, "time_utc") != 0)
            add_version(c, key, before ? before : "not told", json_string_value(value));
    }
}

/* "570.86.15", or "570.86.15 and others" where hosts differ. */
static char *of_all(const struct topo *t, int n, const char *(*get)(const struct topo *t, int i))
{
    const char *first = n ? get(t, 0) : NULL;

    for (int i = 1; i < n; i++)
        if (first && get(t, i) && strcmp(first, get(t, i)) != 0)
            return mem_printf("%s and others", first);
    return mem_strdup(first && *first ? first : "not told");
}

static const char *driver_of(const struct topo *t, int i)
{
    return t->gpu[i].driver;
}

static void compare_versions(struct compare *c, const struct campaign *a, const struct campaign *b)
{
    char *before = of_all(a->topo, a->topo->gpus, driver_of),
         *after = of_all(b->topo, b->topo->gpus, driver_of);

    add_version(c, "driver", before, after);
    free(before);
    free(after);
    compare_provenance(c, a->matrix->provenance, b->matrix->provenance);
}

/* --- both --- */

static const char *model_of(const struct topo *t)
{
    return t->endpoints ? t->endpoint[0].model : "";
}

static int refuse_unlike(const struct campaign *a, const struct campaign *b, struct err *err)
{
    const struct {
        const char *what, *a, *b;
    } facts[] = {{"transport", a->matrix->transport, b->matrix->transport},
                 {"endpoints", model_of(a->topo), model_of(b->topo)},
                 {"fabric", a->matrix->fabric, b->matrix->fabric}};

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        if (facts[i].a && facts[i].b && strcmp(facts[i].a, facts[i].b) != 0)
            return err_data(err, "%s is of %s \"%s\", %s of \"%s\": they cannot be compared",
                            a->path, facts[i].what, facts[i].a, b->path, facts[i].b);
    return 0;
}

int compare_campaigns(struct compare *c, const struct campaign *a, const struct campaign *b,
                      double tolerance, struct err *err)
{
    struct matches all = {0};

    *c = (struct compare){0};
    if (refuse_unlike(a, b, err) < 0)
        return -1;
    match(&all, c, a, b);
    make_figures(c, a->matrix, &all);
    free(all.row);
    if (!c->matched)
        return err_data(err, "%s and %s have no point in common: other hosts, or another plan",
                        a->path, b->path);
    judge_figures(c, tolerance);
    compare_parts(c, a->matrix, b->matrix, tolerance);
    compare_versions(c, a, b);
    return 0;
}

void compare_free(struct compare *c)
{
    for (int i = 0; i < c->figures; i++)
        free(c->figure[i].what);
    for (int i = 0; i < c->parts; i++)
        free(c->part[i].what);
    for (int i = 0; i < c->versions; i++) {
        free(c->version[i].what);
        free(c->version[i].before);
        free(c->version[i].after);
    }
    free(c->figure);
    free(c->part);
    free(c->version);
    *c = (struct compare){0};
}

static int count_figures(const struct compare *c, enum change is)
{
    int n = 0;

    for (int i = 0; i < c->figures; i++)
        n += c->figure[i].is == is;
    return n;
}

static int count_parts(const struct compare *c, enum part_change_kind is)
{
    int n = 0;

    for (int i = 0; i < c->parts; i++)
        n += c->part[i].is == is;
    return n;
}

int compare_code(const struct compare *c)
{
    if (count_figures(c, CHANGE_WORSE) || count_parts(c, PART_NEW) || count_parts(c, PART_WORSE))
        return EXIT_BELOW;
    return count_figures(c, CHANGE_UNSURE) == c->figures ? EXIT_UNJUDGED : EXIT_GOOD;
}

char *compare_line(const struct compare *c)
{
    char *line = mem_printf("%d of %d figures worse, %d better", count_figures(c, CHANGE_WORSE),
                            c->figures, count_figures(c, CHANGE_BETTER));

    for (int k = 0; k < PART_SAME; k++)
        if (count_parts(c, (enum part_change_kind)k))
            line =
                mem_append(line, "; %d part%s %s", count_parts(c, (enum part_change_kind)k),
                           units_s(count_parts(c, (enum part_change_kind)k)), part_change_name[k]);
    return mem_append(line, "; %d point%s in both", c->matched, units_s(c->matched));
}
