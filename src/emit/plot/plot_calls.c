/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/plot/plot_calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { NAME_CHARS = 24 };

struct found {
    struct plot_call *call;
    int count;
};

static const char *group_name(const struct topo *t, enum level level, int index)
{
    return index >= 0 && index < t->group[level].count ? t->group[level].name[index] : "?";
}

static void endpoint_text(char buf[PLOT_TEXT], const struct topo *t, int id, int most)
{
    char raw[300];

    if (id < 0 || id >= t->endpoints) {
        snprintf(buf, PLOT_TEXT, "?");
        return;
    }
    snprintf(raw, sizeof(raw), "%.255s:%d", t->host[t->endpoint[id].place.at[LEVEL_HOST]].name,
             t->endpoint[id].local);
    plot_text(buf, raw, most);
}

static void part_text(char buf[PLOT_TEXT], const struct topo *t, const struct exception *e)
{
    char a[PLOT_TEXT], b[PLOT_TEXT];

    switch (e->part) {
    case PART_ENDPOINT:
        endpoint_text(buf, t, e->a, NAME_CHARS);
        return;
    case PART_HOST:
        plot_text(buf, group_name(t, LEVEL_HOST, e->a), NAME_CHARS);
        return;
    case PART_RACK_PAIR:
        plot_text(a, group_name(t, LEVEL_RACK, e->a), 11);
        plot_text(b, group_name(t, LEVEL_RACK, e->b), 11);
        snprintf(buf, PLOT_TEXT, "%.50s × %.50s", a, b);
        return;
    case PART_LEAF:
        plot_text(buf, group_name(t, LEVEL_LEAF, e->a), NAME_CHARS);
        return;
    case PART_RACK:
        plot_text(buf, group_name(t, LEVEL_RACK, e->a), NAME_CHARS);
        return;
    case PART_RACK_UPLINKS:
        plot_text(a, group_name(t, LEVEL_RACK, e->a), 11);
        snprintf(buf, PLOT_TEXT, "%.50s × all", a);
        return;
    default:
        endpoint_text(a, t, e->a, 11);
        endpoint_text(b, t, e->b, 11);
        snprintf(buf, PLOT_TEXT, "%.50s → %.50s", a, b);
    }
}

/* Of a pair the rows are those of its first end. */
static bool belongs(const struct matrix *m, const struct exception *e, int id)
{
    struct exception first = *e;

    first.b = -1;
    return matrix_touches(m, &first, id);
}

/* The middle of the rows that the part has. */
static double part_place(const struct pairs *ps, const struct exception *e, int span)
{
    double sum = 0;
    int n = 0;

    for (int id = 0; id < ps->n; id++)
        if (belongs(ps->m, e, id)) {
            sum += ps->place[id];
            n++;
        }
    return n ? (sum / n + 0.5) / span - 0.5 : NAN;
}

/* One part may be slow on several tiers: its worst is called out once. */
static void add_call(struct found *f, const struct plot_call *c)
{
    for (int i = 0; i < f->count; i++)
        if (!strcmp(f->call[i].name, c->name)) {
            if (c->factor < f->call[i].factor)
                f->call[i] = *c;
            return;
        }
    MEM_PUSH(f->call, f->count) = *c;
}

static void add_exceptions(struct found *f, const struct pairs *ps, int span)
{
    static const char *const way[SIDE_COUNT] = {"", " sending", " receiving"};

    for (int i = 0; i < ps->m->exceptions; i++) {
        const struct exception *e = &ps->m->exception[i];
        struct plot_call c = {.place = part_place(ps, e, span), .factor = e->factor};
        if (isnan(c.place) || (e->factor >= 1 && !(e->alpha_add > 0)))
            continue;
        part_text(c.name, &ps->m->topo, e);
        if (e->factor <= 0)
            snprintf(c.what, sizeof(c.what), e->wrong ? "wrong data" : "no data");
        else if (e->factor < 1)
            snprintf(c.what, sizeof(c.what), "%.0f%% of expected%s", 100 * e->factor, way[e->side]);
        else
            snprintf(c.what, sizeof(c.what), "+%.3g µs", e->alpha_add * 1e6);
        add_call(f, &c);
    }
}

static bool row_empty(const float *rate, int blocks, int row)
{
    for (int k = 0; k < blocks; k++)
        if (!isnan(rate[(size_t)row * (size_t)blocks + (size_t)k]) ||
            !isnan(rate[(size_t)k * (size_t)blocks + (size_t)row]))
            return false;
    return true;
}

static bool known(const struct found *f, double from, double to)
{
    for (int i = 0; i < f->count; i++)
        if (f->call[i].factor <= 0 && f->call[i].place > from && f->call[i].place < to)
            return true;
    return false;
}

/* Runs of rows without any data that no exception names. */
static void add_silent(struct found *f, const struct pairs *ps, const float *rate, int blocks,
                       int span)
{
    const struct topo *t = &ps->m->topo;

    for (int r = 0, n; r < blocks; r += n) {
        for (n = 0; r + n < blocks && row_empty(rate, blocks, r + n); n++)
            ;
        if (n == 0) {
            n = 1;
            continue;
        }
        if (known(f, r - 0.5, r + n - 0.5))
            continue;
        struct plot_call c = {.place = r + (n - 1) / 2.0, .factor = 0};
        int last = (r + n) * span - 1 < ps->n ? (r + n) * span - 1 : ps->n - 1;
        int a = ps->order[r * span], b = ps->order[last];
        int host = t->endpoint[a].place.at[LEVEL_HOST];
        bool one_host = host == t->endpoint[b].place.at[LEVEL_HOST];
        char name[PLOT_TEXT];
        if (a != b && one_host)
            plot_text(name, t->host[host].name, NAME_CHARS);
        else
            endpoint_text(name, t, a, NAME_CHARS - 2);
        snprintf(c.name, sizeof(c.name), "%.100s%s", name, one_host ? "" : " …");
        snprintf(c.what, sizeof(c.what), "no data");
        add_call(f, &c);
    }
}

static int by_factor(const void *x, const void *y)
{
    const struct plot_call *a = x, *b = y;

    return a->factor < b->factor ? -1 : a->factor > b->factor;
}

static int by_place(const void *x, const void *y)
{
    const struct plot_call *a = x, *b = y;

    return a->place < b->place ? -1 : a->place > b->place;
}

void plot_calls_of(struct plot_calls *c, const struct pairs *ps, const float *rate, int blocks,
                   int span)
{
    struct found f = {0};
    double at[CALLS_MAX];

    memset(c, 0, sizeof(*c));
    add_exceptions(&f, ps, span);
    add_silent(&f, ps, rate, blocks, span);
    if (!f.count)
        return;
    qsort(f.call, (size_t)f.count, sizeof(*f.call), by_factor);
    c->count = f.count < CALLS_MAX ? f.count : CALLS_MAX;
    c->more = f.count - c->count;
    memcpy(c->call, f.call, (size_t)c->count * sizeof(*f.call));
    free(f.call);
    qsort(c->call, (size_t)c->count, sizeof(*c->call), by_place);
    for (int i = 0; i < c->count; i++)
        at[i] = c->call[i].place;
    /* Two lines of text each; the last label leaves room for "and N more". */
    plot_spread(at, c->count, 0.085 * blocks, -0.5 + 0.03 * blocks, 0.92 * blocks - 0.5);
    for (int i = 0; i < c->count; i++)
        c->call[i].at = at[i];
}

int plot_calls_write(const struct plot_calls *c, const char *dir, struct err *err)
{
    struct file_out out;

    if (plot_begin(&out, dir, "heat_call.tsv", "place\tlabel_place\tname\twhat", err) < 0)
        return -1;
    for (int i = 0; i < c->count; i++)
        fprintf(out.stream, "%g\t%g\t%s\t%s\n", c->call[i].place, c->call[i].at, c->call[i].name,
                c->call[i].what);
    return file_commit(&out, err);
}
