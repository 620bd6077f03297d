/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "emit/plot/plot_calls.h"

enum {
    CHAR_PIXELS = 14,
    NAME_MAX_CHARS = 16,
    ENDPOINTS_NAMED = 16,
    HOSTS_NAMED = 24,
    LINE_PIXELS = 14
};

/* A run of places that share one coordinate; level -1: single endpoints. */
struct run {
    int first, end;
};

static int coordinate(const struct pairs *ps, int level, int place)
{
    int id = ps->order[place];

    return level < 0 ? id : ps->m->topo.endpoint[id].place.at[level];
}

static int runs_of(const struct pairs *ps, int level, struct run **out)
{
    int count = 0;

    *out = NULL;
    for (int i = 0; i < ps->n; i++)
        if (i == 0 || coordinate(ps, level, i) != coordinate(ps, level, i - 1))
            MEM_PUSH(*out, count) = (struct run){i, i + 1};
        else
            (*out)[count - 1].end = i + 1;
    return count;
}

static bool grouped(const struct pairs *ps, enum level level)
{
    const struct topo *t = &ps->m->topo;

    return t->group[level].count > 1 && (level != LEVEL_LEAF || t->group[LEVEL_RAIL].count == 0);
}

/* Where lines are drawn: the widest groups that there are. */
static int line_level(const struct pairs *ps)
{
    static const enum level order[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_HOST};

    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        if (grouped(ps, order[i]) && ps->m->topo.group[order[i]].count < ps->n)
            return order[i];
    return -1;
}

static int tick_level(const struct pairs *ps)
{
    int lines = line_level(ps);

    if (ps->m->topo.hosts == ps->n)
        return ps->n <= HOSTS_NAMED || lines < 0 ? LEVEL_HOST : lines;
    if (ps->n <= ENDPOINTS_NAMED)
        return -1;
    if (ps->m->topo.hosts > 1 && ps->m->topo.hosts <= HOSTS_NAMED)
        return LEVEL_HOST;
    return lines;
}

static void endpoint_name(char *buf, size_t size, const struct pairs *ps, int id)
{
    const struct topo *t = &ps->m->topo;

    snprintf(buf, size, "%s:%d", t->host[t->endpoint[id].place.at[LEVEL_HOST]].name,
             t->endpoint[id].local);
}

static void run_name(char *buf, size_t size, const struct pairs *ps, int level, const struct run *r)
{
    int at = coordinate(ps, level, r->first);

    if (level < 0)
        endpoint_name(buf, size, ps, at);
    else
        snprintf(buf, size, "%s", at < 0 ? "?" : ps->m->topo.group[level].name[at]);
}

/* Bytes that all names share and that can go: up to the last letter before a number. */
static size_t common_prefix(char (*name)[256], int n)
{
    size_t len = strlen(name[0]);

    for (int i = 1; i < n; i++) {
        size_t k = 0;
        while (k < len && name[i][k] == name[0][k])
            k++;
        len = k;
    }
    while (len &&
           ((name[0][len - 1] >= '0' && name[0][len - 1] <= '9') || (name[0][len] & 0xc0) == 0x80))
        len--;
    return n > 1 && len > 1 ? len : 0;
}

static void add_ticks(struct plot_axis *a, const struct pairs *ps, const struct run *run, int n,
                      int level, int span, int pixels)
{
    char(*name)[256] = mem_calloc((size_t)n, sizeof(*name));
    size_t widest = 1;

    for (int i = 0; i < n; i++)
        run_name(name[i], sizeof(name[i]), ps, level, &run[i]);
    size_t shared = common_prefix(name, n);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(name[i] + shared);
        widest = len > widest ? len : widest;
    }
    if (widest > NAME_MAX_CHARS)
        widest = NAME_MAX_CHARS;
    /* Every k-th name, so that they stay apart. */
    int step = 1;
    while ((double)step * pixels / n < (double)(widest + 1) * CHAR_PIXELS)
        step = (int)plot_nice_up(step + 1);
    for (int i = 0; i < n; i += step) {
        double mid = (run[i].first + run[i].end) / 2.0 / span - 0.5;
        struct plot_tick *t = &MEM_PUSH(a->tick, a->ticks);
        t->place = mid;
        plot_text(t->name, name[i] + shared, NAME_MAX_CHARS);
    }
    name[0][shared] = '\0';
    char text[PLOT_TEXT];
    const char *what = level < 0 ? "rank" : level_name[level];
    plot_text(text, name[0], 40);
    bool says = shared && !strncmp(text, what, strlen(what)); /* "rack-" says what it is */
    snprintf(a->title, sizeof(a->title), "%s%s%.60s%s", says ? "" : what,
             shared && !says ? " " : "", text, shared ? "…" : "");
    free(name);
}

void plot_axis_of(struct plot_axis *a, const struct pairs *ps, int span, int pixels)
{
    struct run *run;
    int level = line_level(ps), n;

    memset(a, 0, sizeof(*a));
    n = level < 0 ? 0 : runs_of(ps, level, &run);
    if (n * LINE_PIXELS > pixels) /* lines so close would hide what they order */
        n = 0;
    for (int i = 1; i < n; i++)
        MEM_PUSH(a->line, a->lines) = (double)run[i].first / span - 0.5;
    if (level >= 0)
        free(run);
    level = tick_level(ps);
    n = runs_of(ps, level, &run);
    int blocks = (ps->n + span - 1) / span, cell = pixels / blocks > 0 ? pixels / blocks : 1;
    add_ticks(a, ps, run, n, level, span, blocks * cell);
    free(run);
}

int plot_axis_write(const struct plot_axis *a, const char *dir, struct err *err)
{
    struct file_out out;

    if (plot_begin(&out, dir, "heat_tick.tsv", "place\tname", err) < 0)
        return -1;
    for (int i = 0; i < a->ticks; i++)
        fprintf(out.stream, "%g\t%s\n", a->tick[i].place, a->tick[i].name);
    if (file_commit(&out, err) < 0)
        return -1;
    if (plot_begin(&out, dir, "heat_line.tsv", "place", err) < 0)
        return -1;
    for (int i = 0; i < a->lines; i++)
        fprintf(out.stream, "%g\n", a->line[i]);
    return file_commit(&out, err);
}

void plot_axis_free(struct plot_axis *a)
{
    free(a->tick);
    free(a->line);
}
