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

/* Subject of a point, in the ids of the first campaign.  Small, because there may be millions of
 * points: few numbers stand for what they have in common, in the order of the units. */
struct match_row {
    uint64_t thing; /* number of the operation, then the endpoints: see thing_of() */
    double sec;
    int when; /* number of the moment */
    int round;
    int of; /* index of the point */
};

/* What rows have in common, ascending; numbers are those of all campaigns. */
struct common_words {
    struct word_op {
        int op, stage, ranks;
    } * op;
    struct word_moment {
        int flows, epoch;
        double bytes;
    } * moment;
    int ops, moments, bits; /* bits of an endpoint */
    struct map by_op, by_moment;
    struct topo_tiers tiers; /* of the first campaign's matrix */
};

static int order_ints(int x, int y)
{
    return (x > y) - (x < y);
}

static int order_ops(const struct word_op *a, const struct word_op *b)
{
    int order = order_ints(a->op << 8 | a->stage, b->op << 8 | b->stage);

    return order ? order : order_ints(a->ranks, b->ranks);
}

static int order_moments(const struct word_moment *a, const struct word_moment *b)
{
    int order = order_ints(a->flows, b->flows);

    order = order ? order : order_ints(a->epoch, b->epoch);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Order of the units.  The epochs and sizes of a unit have one place. */
static uint64_t thing_of(const struct common_words *w, int op, int src, int dst)
{
    return ((uint64_t)op << w->bits | (unsigned)src) << w->bits | (unsigned)dst;
}

static const struct word_op *op_of(const struct common_words *w, const struct match_row *r)
{
    return &w->op[r->thing >> 2 * w->bits];
}

static int src_of(const struct common_words *w, const struct match_row *r)
{
    return (int)(r->thing >> w->bits & ((1u << w->bits) - 1));
}

static int dst_of(const struct common_words *w, const struct match_row *r)
{
    return (int)(r->thing & ((1u << w->bits) - 1));
}

static int order_rows(const struct match_row *a, const struct match_row *b)
{
    int order = (a->thing > b->thing) - (a->thing < b->thing);

    return order ? order : order_ints(a->when, b->when);
}

static uint64_t by_moment(const void *row)
{
    return (uint64_t)((const struct match_row *)row)->when;
}

static uint64_t by_thing(const void *row)
{
    return ((const struct match_row *)row)->thing;
}

static int op_number(struct common_words *w, const struct point *p, int last)
{
    const struct word_op x = {(int)p->op, (int)p->stage, p->ranks};

    if (last >= 0 && !order_ops(&w->op[last], &x))
        return last;
    int *at =
        map_at(&w->by_op, (uint64_t)(x.op << 8 | x.stage) << 32 | (unsigned)x.ranks, NULL, NULL);
    if (*at == MAP_NONE) {
        *at = w->ops;
        MEM_PUSH(w->op, w->ops) = x;
    }
    return *at;
}

struct wanted {
    const struct common_words *words;
    struct word_moment moment;
};

static bool is_moment(const void *wanted, int value)
{
    const struct wanted *x = wanted;

    return !order_moments(&x->words->moment[value], &x->moment);
}

static int moment_number(struct common_words *w, const struct point *p, int last)
{
    const struct wanted x = {w, {(int)p->flows, (int)p->epoch, (double)p->bytes}};

    if (last >= 0 && is_moment(&x, last))
        return last;
    int *at = map_at(&w->by_moment,
                     map_mix(p->bytes, (uint64_t)x.moment.flows << 8 | (unsigned)x.moment.epoch),
                     is_moment, &x);
    if (*at == MAP_NONE) {
        *at = w->moments;
        MEM_PUSH(w->moment, w->moments) = x.moment;
    }
    return *at;
}

static int by_word_op(const void *a, const void *b, void *words)
{
    const struct common_words *w = words;

    return order_ops(&w->op[*(const int *)a], &w->op[*(const int *)b]);
}

static int by_word_moment(const void *a, const void *b, void *words)
{
    const struct common_words *w = words;

    return order_moments(&w->moment[*(const int *)a], &w->moment[*(const int *)b]);
}

/* Sort n words of `size` bytes.  Returns the new number of each. */
static int *sort_words(struct common_words *w, void *word, int n, size_t size,
                       int (*order)(const void *, const void *, void *))
{
    int *at = mem_ints(n, 0), *to = mem_ints(n, 0);
    char *old = mem_dup(word, (size_t)n, size);

    for (int i = 0; i < n; i++)
        at[i] = i;
    if (n)
        qsort_r(at, (size_t)n, sizeof(*at), order, w);
    for (int i = 0; i < n; i++) {
        to[at[i]] = i;
        memcpy((char *)word + (size_t)i * size, old + (size_t)at[i] * size, size);
    }
    free(at);
    free(old);
    return to;
}

/* Bits of the numbers below n. */
static int bits_of(int n)
{
    int bits = 1;

    while (n >> bits)
        bits++;
    return bits;
}

/* Number the words in their order, and sort the rows. */
static void sort_rows(struct common_words *w, struct match_row **row, const int *rows, int n)
{
    int *op = sort_words(w, w->op, w->ops, sizeof(*w->op), by_word_op),
        *moment = sort_words(w, w->moment, w->moments, sizeof(*w->moment), by_word_moment);

    const int more = bits_of(w->moments);
    const bool fits = bits_of(w->ops) + 2 * w->bits + more <= 64; /* else in two turns */

    for (int k = 0; k < n; k++) {
        for (int i = 0; i < rows[k]; i++) {
            struct match_row *r = &row[k][i];
            r->thing = thing_of(w, op[r->thing >> 2 * w->bits], src_of(w, r), dst_of(w, r));
            r->when = moment[r->when];
            r->thing = fits ? r->thing << more | (unsigned)r->when : r->thing;
        }
        if (!fits)
            stats_sort_keys(row[k], rows[k], sizeof(**row), by_moment);
        stats_sort_keys(row[k], rows[k], sizeof(**row), by_thing);
        for (int i = 0; i < rows[k] && fits; i++)
            row[k][i].thing >>= more;
    }
    free(op);
    free(moment);
}

static void common_free(struct common_words *w)
{
    free(w->op);
    free(w->moment);
    map_free(&w->by_op);
    free(w->tiers.at);
    map_free(&w->by_moment);
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
static int *number_units(const struct common_words *w, const struct match_row *row, int rows)
{
    int *unit = mem_ints(rows, 0);

    for (int i = 1; i < rows; i++)
        unit[i] =
            unit[i - 1] + (row[i].thing != row[i - 1].thing || row[i].round != row[i - 1].round ||
                           w->moment[row[i].when].flows != w->moment[row[i - 1].when].flows);
    return unit;
}

/* The good points. */
static struct match_row *match_rows(struct common_words *w, const struct topo *t,
                                    const struct campaign *c, int *count)
{
    const struct points *p = c->points;
    int *id = same_endpoints(t, c->topo), n = 0, op = -1, moment = -1;
    struct match_row *row = mem_realloc(NULL, (size_t)p->count + 1, sizeof(*row));

    for (int i = 0; i < p->count; i++) {
        const struct point *x = &p->point[i];
        int src = id[x->src], dst = id[x->dst];
        if (x->stop == STOP_FAILED || x->wrong || stage_is_retest(x->stage) || src < 0 || dst < 0 ||
            !(x->sec.median > 0))
            continue;
        op = op_number(w, x, op);
        moment = moment_number(w, x, moment);
        row[n++] = (struct match_row){.thing = thing_of(w, op, src, dst),
                                      .sec = x->sec.median,
                                      .when = moment,
                                      .round = x->round,
                                      .of = i};
    }
    free(id);
    *count = n;
    return row;
}

/* --- which figure a point is of --- */

static const struct plan_group *group_of(const struct campaign *c, const struct common_words *w,
                                         const struct match_row *r)
{
    const struct plan *p = c->plan;
    const int group = c->points->point[r->of].group;

    for (int i = 0; p && i < p->rounds; i++) {
        const struct round *round = &p->round[i];
        if (round->id != r->round || group >= round->groups)
            continue;
        const struct plan_group *g = &round->group[group];
        if (g->size == op_of(w, r)->ranks && g->members[0] == src_of(w, r) &&
            g->members[g->size - 1] == dst_of(w, r))
            return g;
    }
    return NULL;
}

/* Sizes between are neither latency nor bandwidth. */
static bool figure_of(struct figure_key *f, const struct campaign *c, const struct common_words *w,
                      const struct match_row *r)
{
    const struct word_op *k = op_of(w, r);
    const double bytes = w->moment[r->when].bytes;
    bool pair = op_is_pair((enum op)k->op);

    *f = (struct figure_key){.op = k->op, .tier = -1, .large = bytes >= LARGE};
    if (k->op == OP_PAIR_LATENCY ? bytes > SMALL : !f->large && (pair || bytes > SMALL))
        return false;
    if (pair)
        f->tier = topo_tiers_of(&w->tiers, src_of(w, r), dst_of(w, r),
                                stage_by_nic((enum stage)k->stage));
    const struct plan_group *g = pair ? NULL : group_of(c, w, r);
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

/* Rows of each campaign, sorted. */
struct matched {
    struct common_words words;
    struct match_row **row;
    int *rows;
    int *at; /* by row of the first and campaign: its row, -1: none */
};

/* Row of each campaign for each row of the first; -1: it has none.  Counts them. */
static int *partners(struct figures *f, struct match_row *const *row, const int *rows)
{
    int *at = mem_calloc((size_t)rows[0] * (size_t)f->campaigns + 1, sizeof(int));

    if (f->campaigns == 1) {
        for (int i = 0; i < rows[0]; i++)
            at[i] = i;
        f->matched[0] = rows[0];
        return at;
    }
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

/* Number of the row's figure; -1: none.  pairs: known numbers of pairs by operation, large or not, and tier, because
 * there are millions of pairs. */
static int figure_number(struct common *all, const struct campaign *c, const struct common_words *w,
                         const struct match_row *r, int *pairs, int last)
{
    const struct word_op *op = op_of(w, r);
    const bool large = w->moment[r->when].bytes >= LARGE;
    struct figure_key key;
    int *known = NULL;

    if (op_is_pair((enum op)op->op) && (large || op->op == OP_PAIR_LATENCY)) {
        int tier = topo_tiers_of(&w->tiers, src_of(w, r), dst_of(w, r),
                                 stage_by_nic((enum stage)op->stage));
        known = &pairs[((op - w->op) * 2 + large) * TIER_MAX + tier];
        if (*known >= 0 && op->op != OP_PAIR_LATENCY)
            return *known;
    }
    if (!figure_of(&key, c, w, r))
        return -1;
    int number = number_of(all, &key, last);
    if (known)
        *known = number;
    return number;
}

static int common_rows(struct common *all, const struct figures *f, const struct campaign *c,
                       const struct matched *m)
{
    const struct match_row *row = m->row[0];
    const int rows = m->rows[0], *at = m->at;
    int *of = mem_ints(rows, -1), last = -1, n = 0;
    int *pairs = mem_ints(m->words.ops * 2 * TIER_MAX, -1);

    *all = (struct common){.keys = 0};
    for (int i = 0; i < rows; i++) {
        int k = 0;
        while (k < f->campaigns && at[i * f->campaigns + k] >= 0)
            k++;
        if (k < f->campaigns)
            continue;
        of[i] = last = figure_number(all, c, &m->words, &row[i], pairs, last);
        n += of[i] >= 0;
    }
    free(pairs);
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

static void add_point(struct figures *f, const struct common_words *w, const struct match_row *r,
                      int unit)
{
    const struct word_op *k = op_of(w, r);
    const struct word_moment *m = &w->moment[r->when];
    int ranks = k->ranks > 0 ? k->ranks : 2;

    f->cell[f->points] = (struct figure_cell){m->epoch, m->flows == 1, unit};
    f->amount[f->points++] = m->bytes * op_bus_factor((enum op)k->op, ranks);
}

static void match(struct matched *m, struct figures *f, const struct campaign *c, int n)
{
    *m = (struct matched){.words.bits = bits_of(c[0].topo->endpoints),
                          .row = mem_calloc((size_t)n, sizeof(*m->row)),
                          .rows = mem_calloc((size_t)n, sizeof(*m->rows))};
    topo_tiers_make(&m->words.tiers, &c[0].matrix->topo);
    for (int k = 0; k < n; k++)
        m->row[k] = match_rows(&m->words, c[0].topo, &c[k], &m->rows[k]);
    sort_rows(&m->words, m->row, m->rows, n);
    m->at = partners(f, m->row, m->rows);
}

static void matched_free(struct matched *m, int n)
{
    for (int k = 0; k < n; k++)
        free(m->row[k]);
    common_free(&m->words);
    free(m->at);
    free(m->row);
    free(m->rows);
}

void figures_match(struct figures *f, const struct campaign *c, int n)
{
    struct matched m;
    struct common all;

    *f = (struct figures){.campaigns = n,
                          .matched = mem_calloc((size_t)n, sizeof(int)),
                          .more = mem_calloc((size_t)n, sizeof(int))};
    match(&m, f, c, n);
    int *unit = number_units(&m.words, m.row[0], m.rows[0]), count = common_rows(&all, f, c, &m);

    f->sec = mem_calloc((size_t)count * (size_t)n + 1, sizeof(double));
    f->of = mem_calloc((size_t)count * (size_t)n + 1, sizeof(int));
    f->amount = mem_calloc((size_t)count + 1, sizeof(double));
    f->cell = mem_calloc((size_t)count + 1, sizeof(*f->cell));
    for (int g = 0; g < all.keys; g++) {
        add_figure(f, c[0].matrix, &all.key[g], all.rows.start[g + 1] - all.rows.start[g]);
        for (int i = all.rows.start[g]; i < all.rows.start[g + 1]; i++) {
            int first = all.rows.at[i];
            for (int k = 0; k < n; k++) {
                const struct match_row *r = &m.row[k][m.at[first * n + k]];
                f->of[i * n + k] = r->of;
                f->sec[i * n + k] = r->sec;
            }
            add_point(f, &m.words, &m.row[0][first], unit[first]);
        }
    }
    matched_free(&m, n);
    lists_free(&all.rows);
    free(all.key);
    free(unit);
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
