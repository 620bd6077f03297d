/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "place/rank_files.h"
#include "report/text/report.h"

static struct rank_map rank_map_of(const struct place_answer *a)
{
    return (struct rank_map){&a->matrix->topo, a->placed->order, a->placed->ranks};
}

static int nodes_used(const struct place_answer *a)
{
    const struct topo *t = &a->matrix->topo;
    bool *seen = mem_calloc((size_t)t->hosts + 1, sizeof(bool));
    int n = 0;

    for (int r = 0; r < a->placed->ranks; r++) {
        int h = t->endpoint[a->placed->order[r]].place.at[LEVEL_HOST];
        n += !seen[h];
        seen[h] = true;
    }
    free(seen);
    return n;
}

static void head(FILE *out, const struct place_answer *a)
{
    char *line = a->now ? mem_printf("%s, %s, %s", a->now->model, a->now->layout, a->now->strategy)
                        : mem_printf("traffic of %s", a->traffic);

    line = mem_append(line, ": %d ranks on %d of %d free nodes%s%s", a->placed->ranks,
                      nodes_used(a), a->free_hosts, a->matrix->fabric ? " of " : "",
                      a->matrix->fabric ? a->matrix->fabric : "");
    table_wrap(out, 2, "%s", line);
    fputc('\n', out);
    free(line);
}

static void add_row(struct table *t, const struct place_answer *a, const char *name, double sec,
                    const char *note)
{
    char time[UNITS_TEXT], gain[48] = "", rate[UNITS_TEXT] = "-";
    double base = a->placed->in_order;

    if (sec < INFINITY && base < INFINITY && sec != base)
        snprintf(gain, sizeof(gain), "%+.1f %%", 100 * (base / sec - 1));
    if (a->now && isfinite(sec))
        units_count_text(rate, a->now->tokens / sec / a->placed->ranks, 0);
    table_add(t, name, isinf(sec) ? "never" : units_seconds_text(time, sec), rate, gain, note);
}

static void times(FILE *out, const struct place_answer *a)
{
    const struct table_column columns[] = {{NULL, "rank order", "text"},
                                           {NULL, a->now ? "step" : "busiest endpoint", "figure"},
                                           {NULL, a->now ? "tokens/s per GPU" : NULL, "figure"},
                                           {NULL, "than default", "figure"},
                                           {NULL, "", "text"},
                                           {0}};
    const struct placed *p = a->placed;
    struct table t;

    table_open(&t, columns);
    add_row(&t, a, "placed", p->sec, "");
    add_row(&t, a, "default", p->in_order, "nodes as listed, ranks in order");
    add_row(&t, a, "random", p->random, "median of 9 shuffles of the nodes");
    if (p->bound > 0)
        add_row(&t, a, "bound", p->bound, "no rank order can be faster");
    table_print(out, &t, 0);
    table_free(&t);
}

/* "1 domain, 4 nodes", "4 domains (16+ ranks each), 64 nodes, 4 racks". */
static char *where_text(char buf[96], const struct shape *s)
{
    int n = snprintf(buf, 96, "%d domain%s", s->domains, units_s(s->domains));

    if (s->domains > 1)
        n += snprintf(buf + n, 96 - (size_t)n, " (%d+ ranks each)", s->per_domain);
    n += snprintf(buf + n, 96 - (size_t)n, ", %d node%s", s->nodes, units_s(s->nodes));
    if (s->racks > 1)
        snprintf(buf + n, 96 - (size_t)n, ", %d racks", s->racks);
    return buf;
}

static const struct term *same_term(const struct prediction *p, const struct term *t)
{
    for (int i = 0; p && i < p->terms; i++)
        if (p->term[i].kind == TERM_MESSAGE && !strcmp(p->term[i].label, t->label))
            return &p->term[i];
    return NULL;
}

/* True for the first message of each set of axes. */
static bool is_first(const struct prediction *p, int i)
{
    for (int k = 0; k < i; k++)
        if (p->term[k].kind == TERM_MESSAGE && p->term[k].axes == p->term[i].axes)
            return false;
    return p->term[i].kind == TERM_MESSAGE && p->term[i].shape.ranks > 1;
}

static double seen_of(const struct prediction *p, unsigned axes)
{
    double sec = 0;

    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_MESSAGE && p->term[i].axes == axes)
            sec += p->term[i].sec;
    return sec;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->domains == b->domains && a->per_domain == b->per_domain && a->nodes == b->nodes &&
           a->racks == b->racks;
}

/* Print a line for each set of axes, and another if the default order differs. */
static void axes_lines(FILE *out, const struct place_answer *a)
{
    static const struct table_column columns[] = {
        {NULL, "axis", "text"},      {NULL, "groups x ranks", "figure"}, {NULL, "order", "text"},
        {NULL, "exposed", "figure"}, {NULL, "slowest group", "text"},    {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < a->now->terms; i++) {
        const struct term *x = &a->now->term[i];
        const struct term *old = is_first(a->now, i) ? same_term(a->before, x) : NULL;
        char axes[AXES_TEXT], ranks[32], at[96], sec[UNITS_TEXT];
        if (!is_first(a->now, i) || (a->before && !old))
            continue;
        double seen = seen_of(a->now, x->axes), before = old ? seen_of(a->before, x->axes) : NAN;
        bool same =
            !old || (same_shape(&x->shape, &old->shape) && fabs(before - seen) <= 1e-6 * seen);
        snprintf(ranks, sizeof(ranks), "%d x %d", x->groups, x->shape.ranks);
        table_add(&t, axes_text(axes, x->axes), ranks, same ? "both" : "placed",
                  units_seconds_text(sec, seen), where_text(at, &x->shape));
        if (!same)
            table_add(&t, "", "", "default", units_seconds_text(sec, before),
                      where_text(at, &old->shape));
    }
    fputs("\nWhy: communication that compute does not hide, slowest group of each axis\n", out);
    table_print(out, &t, 0);
    table_free(&t);
}

/* Print a line of 80 columns; a list of thousands of nodes needs --write. */
static void nodes_line(FILE *out, const struct place_answer *a)
{
    enum { WHOLE = 72, CUT = 30 };
    struct rank_map s = rank_map_of(a);
    char *nodes = rank_map_list(&s), *comma;

    if (strlen(nodes) > WHOLE) {
        nodes[CUT] = '\0';
        if ((comma = strrchr(nodes, ',')) != NULL)
            *comma = '\0';
        fprintf(out, "nodes: %s,... (%d in all; --write nodes=FILE)\n", nodes, nodes_used(a));
    } else {
        fprintf(out, "nodes: %s\n", nodes);
    }
    free(nodes);
}

/* Print "step: 1.05 s instead of 1.49 s in the default order". */
static void verdict(FILE *out, const struct place_answer *a)
{
    const struct placed *p = a->placed;
    const char *what = a->now ? "step" : "busiest endpoint";
    char now[UNITS_TEXT], before[UNITS_TEXT];
    char *line =
        p->sec >= p->in_order
            ? mem_printf("%s: %s, the default order is as good as any that was tried", what,
                         units_seconds_text(now, p->sec))
            : mem_printf("%s: %s instead of %s in the default order", what,
                         units_seconds_text(now, p->sec),
                         isinf(p->in_order) ? "never" : units_seconds_text(before, p->in_order));

    table_wrap(out, 2, "%s", line);
    free(line);
}

void place_text(FILE *out, const struct place_answer *a)
{
    const struct placed *p = a->placed;
    char count[UNITS_TEXT];

    verdict(out, a);
    head(out, a);
    times(out, a);
    if (a->now)
        axes_lines(out, a);
    fprintf(out, "\nsearch: %s rank orders in %.2f s\n",
            units_count_text(count, (double)p->tried, 0), p->took);
    nodes_line(out, a);
}

static json_t *order_json(const struct place_answer *a)
{
    const struct topo *t = &a->matrix->topo;
    json_t *list = json_array();

    for (int r = 0; r < a->placed->ranks; r++) {
        const struct endpoint *e = &t->endpoint[a->placed->order[r]];
        json_array_append_new(
            list, json_sprintf("%s %d", t->host[e->place.at[LEVEL_HOST]].name, e->local));
    }
    return list;
}

static json_t *shape_json(const struct shape *s)
{
    return json_pack("{s:i,s:i,s:i,s:i}", "domains", s->domains, "per_domain", s->per_domain,
                     "nodes", s->nodes, "racks", s->racks);
}

static json_t *axes_json(const struct place_answer *a)
{
    json_t *list = json_array();

    for (int i = 0; a->now && i < a->now->terms; i++) {
        const struct term *x = &a->now->term[i];
        const struct term *old = is_first(a->now, i) ? same_term(a->before, x) : NULL;
        char axes[AXES_TEXT];
        if (old)
            json_array_append_new(
                list,
                json_pack("{s:s,s:i,s:i,s:o,s:o,s:f,s:f}", "axes", axes_text(axes, x->axes),
                          "groups", x->groups, "ranks", x->shape.ranks, "placed",
                          shape_json(&x->shape), "default", shape_json(&old->shape), "seen_s",
                          seen_of(a->now, x->axes), "default_seen_s", seen_of(a->before, x->axes)));
    }
    return list;
}

json_t *place_json(const struct place_answer *a)
{
    const struct placed *p = a->placed;
    struct rank_map s = rank_map_of(a);
    char *nodes = rank_map_list(&s);
    json_t *root = json_pack(
        "{s:s,s:i,s:o,s:s*,s:s*,s:s*,s:s*,s:i,s:i,s:s,s:i}", "format", "railgauge-place", "version",
        1, "provenance", json_provenance(), "model", a->now ? a->now->model : NULL, "layout",
        a->now ? a->now->layout : NULL, "strategy", a->now ? a->now->strategy : NULL, "traffic",
        a->traffic, "ranks", p->ranks, "free_nodes", a->free_hosts, "nodes", nodes, "segment",
        rank_map_segment(&s));

    json_object_set_new(root, "step_s", json_finite(p->sec));
    json_object_set_new(root, "default_s", json_finite(p->in_order));
    json_object_set_new(root, "random_s", json_finite(p->random));
    json_object_set_new(root, "bound_s", json_finite(p->bound > 0 ? p->bound : NAN));
    json_object_set_new(root, "tokens_per_s_per_gpu",
                        a->now ? json_real(a->now->tokens_per_gpu) : json_null());
    json_object_set_new(root, "default_tokens_per_s_per_gpu",
                        a->before ? json_real(a->before->tokens_per_gpu) : json_null());
    json_object_set_new(root, "how", json_string(p->how));
    json_object_set_new(root, "tried", json_integer(p->tried));
    json_object_set_new(root, "took_s", json_real(p->took));
    json_object_set_new(root, "axes", axes_json(a));
    json_object_set_new(root, "order", order_json(a));
    free(nodes);
    return root;
}
