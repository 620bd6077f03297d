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
    if (a->now)
        fprintf(out, "%s, %s, %s\n", a->now->model, a->now->layout, a->now->strategy);
    else
        fprintf(out, "traffic of %s\n", a->traffic);
    fprintf(out, "%d ranks on %d of %d free nodes%s%s\n\n", a->placed->ranks, nodes_used(a),
            a->free_hosts, a->matrix->fabric ? " of " : "",
            a->matrix->fabric ? a->matrix->fabric : "");
}

static void add_row(struct table *t, const struct place_answer *a, const char *name, double sec,
                    const char *note)
{
    char time[UNITS_TEXT], gain[48] = "";
    double base = a->placed->in_order;

    if (sec < INFINITY && base < INFINITY)
        snprintf(gain, sizeof(gain), "%+.1f %%", 100 * (base / sec - 1));
    const char *step = isinf(sec) ? "never" : units_seconds_text(time, sec);
    if (a->now)
        table_add(t, name, step, a->now->tokens / sec / a->placed->ranks, gain, note);
    else
        table_add(t, name, step, gain, note);
}

static void times(FILE *out, const struct place_answer *a)
{
    static const struct table_column columns[] = {
        {NULL, "order", "text"},        {NULL, "step", "figure"}, {NULL, "tokens/s/GPU", "%.0f"},
        {NULL, "throughput", "figure"}, {NULL, "", "text"},       {0}};
    static const struct table_column of_traffic[] = {{NULL, "order", "text"},
                                                     {NULL, "busiest endpoint", "figure"},
                                                     {NULL, "throughput", "figure"},
                                                     {NULL, "", "text"},
                                                     {0}};
    const struct placed *p = a->placed;
    struct table t;

    table_open(&t, a->now ? columns : of_traffic);
    add_row(&t, a, "placed", p->sec, "");
    add_row(&t, a, "default", p->in_order, "nodes as given, ranks in order");
    add_row(&t, a, "random", p->random, "nodes shuffled, median of 9");
    if (p->bound > 0)
        add_row(&t, a, "bound", p->bound, "no order is faster");
    table_print(out, &t, 0);
    table_free(&t);
}

/* "1 domain", "4 domains x16", with nodes and racks. */
static char *where_text(char buf[96], const struct shape *s)
{
    int n;

    if (s->domains == 1)
        n = snprintf(buf, 96, "one domain, %d node%s", s->nodes, s->nodes == 1 ? "" : "s");
    else
        n = snprintf(buf, 96, "%d domains, %d or more in each, %d nodes", s->domains, s->per_domain,
                     s->nodes);
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
    static const struct table_column columns[] = {{NULL, "axes", "text"},
                                                  {NULL, "ranks", "figure"},
                                                  {NULL, "seen", "figure"},
                                                  {NULL, "slowest group", "text"},
                                                  {0}};
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < a->now->terms; i++) {
        const struct term *x = &a->now->term[i];
        const struct term *old = is_first(a->now, i) ? same_term(a->before, x) : NULL;
        char axes[AXES_TEXT], ranks[32], at[96], sec[UNITS_TEXT];
        if (!is_first(a->now, i) || (a->before && !old))
            continue;
        double seen = seen_of(a->now, x->axes), before = old ? seen_of(a->before, x->axes) : NAN;
        snprintf(ranks, sizeof(ranks), "%d x %d", x->groups, x->shape.ranks);
        table_add(&t, axes_text(axes, x->axes), ranks, units_seconds_text(sec, seen),
                  where_text(at, &x->shape));
        if (old && (!same_shape(&x->shape, &old->shape) || fabs(before - seen) > 1e-6 * seen))
            table_add(&t, "  default", "", units_seconds_text(sec, before),
                      where_text(at, &old->shape));
    }
    fputc('\n', out);
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

void place_text(FILE *out, const struct place_answer *a)
{
    const struct placed *p = a->placed;

    head(out, a);
    times(out, a);
    if (a->now)
        axes_lines(out, a);
    if (p->sec >= p->in_order)
        fprintf(out, "\nthe default order is as good as any that was tried\n");
    else
        fprintf(out, "\nhow: %s\n", p->how);
    fprintf(out, "%ld orders priced in %.2f s\n", p->tried, p->took);
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
