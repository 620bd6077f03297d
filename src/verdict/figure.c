/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/figure.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"

enum { SMALL = 8 << 10, LARGE = 1 << 20 }; /* up to, from: bytes */

/* --- points that measured the same --- */

/* Subject of a point, in the ids of the first campaign.  Small, because there may be millions of points. */
struct match_row {
    double bytes;
    int ranks, src, dst, flows, epoch;
    unsigned char op, stage;
    int round;
    int of; /* index of the point */
};

static int order_ints(int x, int y)
{
    return (x > y) - (x < y);
}

/* Order of the units.  The epochs and sizes of a unit have one place. */
static int order_units(const struct match_row *a, const struct match_row *b)
{
    int order = order_ints(a->op << 8 | a->stage, b->op << 8 | b->stage);

    order = order ? order : order_ints(a->ranks, b->ranks);
    order = order ? order : order_ints(a->src, b->src);
    order = order ? order : order_ints(a->dst, b->dst);
    return order ? order : order_ints(a->flows, b->flows);
}

static int order_rows(const struct match_row *a, const struct match_row *b)
{
    int order = order_units(a, b);

    order = order ? order : order_ints(a->epoch, b->epoch);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* The order of rows in parts, the last first: each is sorted by in turn. */
static uint64_t by_bytes(const void *row)
{
    return (uint64_t)(*(struct match_row *const *)row)->bytes;
}

static uint64_t by_time(const void *row)
{
    const struct match_row *r = *(struct match_row *const *)row;

    return (uint64_t)r->flows << 32 | (unsigned)r->epoch;
}

static uint64_t by_ends(const void *row)
{
    const struct match_row *r = *(struct match_row *const *)row;

    return (uint64_t)r->src << 32 | (unsigned)r->dst;
}

static uint64_t by_kind(const void *row)
{
    const struct match_row *r = *(struct match_row *const *)row;

    return (uint64_t)r->op << 40 | (uint64_t)r->stage << 32 | (unsigned)r->ranks;
}

/* Pointers are sorted, because rows are five times as long and would be copied in each of the four turns. */
static struct match_row *sort_rows(struct match_row *row, int n)
{
    stats_key *const part[] = {by_bytes, by_time, by_ends, by_kind};
    struct match_row **at = mem_calloc((size_t)n + 1, sizeof(*at)), *sorted;

    for (int i = 0; i < n; i++)
        at[i] = &row[i];
    for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
        stats_sort_keys(at, n, sizeof(*at), part[i]);
    sorted = mem_calloc((size_t)n + 1, sizeof(*sorted));
    for (int i = 0; i < n; i++)
        sorted[i] = *at[i];
    free(at);
    free(row);
    return sorted;
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

/* Numbers of the rows' units.  Another round is another unit, because it opens its own connections. */
static int *number_units(const struct match_row *row, int rows)
{
    int *unit = mem_ints(rows, 0);

    for (int i = 1; i < rows; i++)
        unit[i] =
            unit[i - 1] + (order_units(&row[i], &row[i - 1]) || row[i].round != row[i - 1].round);
    return unit;
}

/* The good points, sorted. */
static struct match_row *match_rows(const struct topo *t, const struct campaign *c, int *count)
{
    const struct points *p = c->points;
    int *id = same_endpoints(t, c->topo), n = 0;
    struct match_row *row = mem_calloc((size_t)p->count + 1, sizeof(*row));

    for (int i = 0; i < p->count; i++) {
        const struct point *x = &p->point[i];
        int src = id[x->src], dst = id[x->dst];
        if (x->stop == STOP_FAILED || x->wrong || stage_is_retest(x->stage) || src < 0 || dst < 0 ||
            !(x->sec.median > 0))
            continue;
        row[n++] = (struct match_row){.op = (unsigned char)x->op,
                                      .stage = (unsigned char)x->stage,
                                      .ranks = x->ranks,
                                      .src = src,
                                      .dst = dst,
                                      .flows = x->flows,
                                      .epoch = x->epoch,
                                      .bytes = (double)x->bytes,
                                      .of = i,
                                      .round = x->round};
    }
    free(id);
    *count = n;
    return sort_rows(row, n);
}

/* --- which figure a point is of --- */

static const struct plan_group *group_of(const struct campaign *c, const struct match_row *r)
{
    const struct plan *p = c->plan;
    const int group = c->points->point[r->of].group;

    for (int i = 0; p && i < p->rounds; i++) {
        const struct round *round = &p->round[i];
        if (round->id != r->round || group >= round->groups)
            continue;
        const struct plan_group *g = &round->group[group];
        if (g->size == r->ranks && g->members[0] == r->src && g->members[g->size - 1] == r->dst)
            return g;
    }
    return NULL;
}

/* Sizes between are neither latency nor bandwidth. */
static bool figure_of(struct figure_key *f, const struct campaign *c, const struct match_row *k)
{
    bool pair = op_is_pair((enum op)k->op);

    *f = (struct figure_key){.op = k->op, .tier = -1, .large = k->bytes >= LARGE};
    if (pair)
        f->tier =
            topo_tier_by(&c->matrix->topo, k->src, k->dst, stage_by_nic((enum stage)k->stage));
    if (k->op == OP_PAIR_LATENCY ? k->bytes > SMALL : !f->large && (pair || k->bytes > SMALL))
        return false;
    const struct plan_group *g = pair ? NULL : group_of(c, k);
    if (g)
        shape_of(&f->shape, c->topo, g->members, g->size);
    else
        f->shape.ranks = pair ? 0 : k->ranks;
    f->shape.nics = f->shape.domains > 1 ? f->shape.nics : 0;
    return true;
}

/* Pairs first, of the widest tier first; then by operation and size of group. */
static int order_figures(const struct figure_key *a, const struct figure_key *b)
{
    const struct shape *x = &a->shape, *y = &b->shape;

    return -stats_order((double[]){a->tier, a->op, x->ranks, x->domains, x->per_domain, x->racks,
                                   x->nics, a->large},
                        (double[]){b->tier, b->op, y->ranks, y->domains, y->per_domain, y->racks,
                                   y->nics, b->large},
                        8);
}

/* True if order_figures() is 0, in a tenth of its time. */
static bool is_figure(const struct figure_key *a, const struct figure_key *b)
{
    const struct shape *x = &a->shape, *y = &b->shape;

    return a->tier == b->tier && a->large == b->large && a->op == b->op && x->ranks == y->ranks &&
           x->domains == y->domains && x->per_domain == y->per_domain && x->racks == y->racks &&
           x->nics == y->nics;
}

static char *figure_words(const struct matrix *m, const struct figure_key *k, bool nics)
{
    const char *op = op_name((enum op)k->op);
    char shape[48];

    if (k->tier >= 0)
        return mem_printf("tier %s, %s", m->tier[k->tier].rule.name, op);
    char *text = k->shape.domains ? mem_printf("%s, %s", op, shape_text(shape, &k->shape))
                                  : mem_printf("%s, %d ranks", op, k->shape.ranks);
    if (k->shape.racks > 1)
        text = mem_append(text, ", %d racks", k->shape.racks);
    if (nics)
        text = mem_append(text, ", %d NIC%s", k->shape.nics, units_s(k->shape.nics));
    return mem_append(text, ", %s", k->large ? "large" : "small");
}

/* --- the points that all have --- */

/* Figures and the rows of the first campaign that are of them, both in order. */
struct common {
    struct figure_key *key;
    int keys;
    struct lists rows;
};

struct numbered {
    struct figure_key key;
    int number;
};

static int order_numbered(const void *x, const void *y)
{
    return order_figures(&((const struct numbered *)x)->key, &((const struct numbered *)y)->key);
}

/* Row of each campaign for each row of the first; -1: it has none.  Counts them. */
static int *partners(struct figures *f, struct match_row *const *row, const int *rows)
{
    int *at = mem_calloc((size_t)rows[0] * (size_t)f->campaigns + 1, sizeof(int));

    for (int k = 0; k < f->campaigns; k++)
        for (int i = 0, j = 0; i < rows[0]; i++) {
            int *to = &at[i * f->campaigns + k], order = 1;
            while (j < rows[k] && (order = order_rows(&row[k][j], &row[0][i])) < 0)
                j++;
            *to = j < rows[k] && order == 0 ? j++ : -1;
            f->matched[k] += *to >= 0;
        }
    for (int k = 0; k < f->campaigns; k++)
        f->more[k] = rows[k] - f->matched[k];
    return at;
}

/* Its number; mostly it is that of the row before.  They are few. */
static int number_of(struct common *all, const struct figure_key *key, int last)
{
    int i = 0;

    if (last >= 0 && is_figure(&all->key[last], key))
        return last;
    while (i < all->keys && !is_figure(&all->key[i], key))
        i++;
    if (i == all->keys)
        MEM_PUSH(all->key, all->keys) = *key;
    return i;
}

/* Numbers in the order of the figures. */
static void renumber(struct common *all, int *of, int rows)
{
    struct numbered *sorted = mem_calloc((size_t)all->keys + 1, sizeof(*sorted));
    int *to = mem_ints(all->keys, 0);

    for (int i = 0; i < all->keys; i++)
        sorted[i] = (struct numbered){all->key[i], i};
    if (all->keys)
        qsort(sorted, (size_t)all->keys, sizeof(*sorted), order_numbered);
    for (int i = 0; i < all->keys; i++) {
        all->key[i] = sorted[i].key;
        to[sorted[i].number] = i;
    }
    for (int i = 0; i < rows; i++)
        of[i] = of[i] < 0 ? -1 : to[of[i]];
    free(to);
    free(sorted);
}

static int common_rows(struct common *all, const struct figures *f, const struct campaign *c,
                       const struct match_row *row, int rows, const int *at)
{
    int *of = mem_ints(rows, -1), last = -1, n = 0;
    struct figure_key key;

    *all = (struct common){.keys = 0};
    for (int i = 0; i < rows; i++) {
        int k = 0;
        while (k < f->campaigns && at[i * f->campaigns + k] >= 0)
            k++;
        if (k < f->campaigns || !figure_of(&key, c, &row[i]))
            continue;
        of[i] = last = number_of(all, &key, last);
        n++;
    }
    renumber(all, of, rows);
    lists_make(&all->rows, of, NULL, rows, all->keys);
    free(of);
    return n;
}

static void add_figure(struct figures *f, const struct matrix *m, const struct figure_key *key,
                       int points)
{
    struct figure *last = f->figures ? &f->figure[f->figures - 1] : NULL;
    char *what = figure_words(m, key, false);

    if (last && !strcmp(last->what, what)) {
        free(what);
        what = figure_words(m, key, true);
    }
    MEM_PUSH(f->figure, f->figures) =
        (struct figure){.key = *key,
                        .what = what,
                        .rate = key->large,
                        .nic = key->tier >= 0 ? m->tier[key->tier].nic : key->shape.domains > 1,
                        .first = f->points,
                        .points = points};
}

static void add_point(struct figures *f, const struct match_row *r, int unit)
{
    int ranks = r->ranks > 0 ? r->ranks : 2;

    f->cell[f->points] = (struct figure_cell){r->epoch, r->flows == 1, unit};
    f->amount[f->points++] = r->bytes * op_bus_factor((enum op)r->op, ranks);
}

void figures_match(struct figures *f, const struct campaign *c, int n)
{
    struct match_row **row = mem_calloc((size_t)n, sizeof(*row));
    int *rows = mem_calloc((size_t)n, sizeof(*rows)), count;

    *f = (struct figures){.campaigns = n,
                          .matched = mem_calloc((size_t)n, sizeof(int)),
                          .more = mem_calloc((size_t)n, sizeof(int))};
    for (int k = 0; k < n; k++)
        row[k] = match_rows(c[0].topo, &c[k], &rows[k]);
    int *at = partners(f, row, rows);
    int *unit = number_units(row[0], rows[0]);
    struct common all;

    count = common_rows(&all, f, c, row[0], rows[0], at);
    f->sec = mem_calloc((size_t)count * (size_t)n + 1, sizeof(double));
    f->of = mem_calloc((size_t)count * (size_t)n + 1, sizeof(int));
    f->amount = mem_calloc((size_t)count + 1, sizeof(double));
    f->cell = mem_calloc((size_t)count + 1, sizeof(*f->cell));
    for (int g = 0; g < all.keys; g++) {
        add_figure(f, c[0].matrix, &all.key[g], all.rows.start[g + 1] - all.rows.start[g]);
        for (int i = all.rows.start[g]; i < all.rows.start[g + 1]; i++) {
            int first = all.rows.at[i];
            for (int k = 0; k < n; k++) {
                f->of[i * n + k] = row[k][at[first * n + k]].of;
                f->sec[i * n + k] = c[k].points->point[f->of[i * n + k]].sec.median;
            }
            add_point(f, &row[0][first], unit[first]);
        }
    }
    for (int k = 0; k < n; k++)
        free(row[k]);
    lists_free(&all.rows);
    free(all.key);
    free(at);
    free(unit);
    free(rows);
    free(row);
}

void figures_free(struct figures *f)
{
    for (int i = 0; i < f->figures; i++)
        free(f->figure[i].what);
    free(f->figure);
    free(f->sec);
    free(f->of);
    free(f->amount);
    free(f->cell);
    free(f->matched);
    free(f->more);
    *f = (struct figures){0};
}

double figures_median(const struct figures *f, const struct figure *g, int campaign)
{
    double *v = mem_calloc((size_t)g->points, sizeof(*v));

    for (int i = 0; i < g->points; i++) {
        double sec = f->sec[(g->first + i) * f->campaigns + campaign];
        v[i] = g->rate ? f->amount[g->first + i] / sec : sec;
    }
    double median = stats_median(v, g->points);
    free(v);
    return median;
}

/* --- which can be compared at all --- */

static const char *model_of(const struct topo *t)
{
    return t->endpoints ? t->endpoint[0].model : "";
}

/* What reductions added, where both campaigns know it and differ: returns the operation, else -1. */
static int other_data(const struct matrix *a, const struct matrix *b, const char **of_a,
                      const char **of_b)
{
    for (int i = 0; i < a->collectives; i++)
        for (int k = 0; k < b->collectives; k++) {
            const struct collective *x = &a->collective[i], *y = &b->collective[k];
            if (x->op == y->op && x->data && y->data && strcmp(x->data, y->data) != 0) {
                *of_a = x->data;
                *of_b = y->data;
                return (int)x->op;
            }
        }
    return -1;
}

char *figures_unlike(const struct campaign *a, const struct campaign *b)
{
    const struct {
        const char *what, *a, *b;
    } facts[] = {{"transport", a->matrix->transport, b->matrix->transport},
                 {"endpoints", model_of(a->topo), model_of(b->topo)},
                 {"fabric", a->matrix->fabric, b->matrix->fabric}};

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        if (facts[i].a && facts[i].b && strcmp(facts[i].a, facts[i].b) != 0)
            return mem_printf("is of %s \"%s\", %s of \"%s\"", facts[i].what, facts[i].a, b->path,
                              facts[i].b);
    const char *of_a, *of_b;
    int op = other_data(a->matrix, b->matrix, &of_a, &of_b);
    if (op >= 0)
        return mem_printf("has %s of %s, %s of %s", op_name((enum op)op), of_a, b->path, of_b);
    return NULL;
}
