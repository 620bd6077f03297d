/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/plot/plot_calls_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    CHAR_PIXELS = 14,
    NAME_MAX_CHARS = 16,
    ENDPOINTS_NAMED = 16,
    HOSTS_NAMED = 24,
    LINE_PIXELS = 14
};

/* Consecutive positions with the same coordinate; level -1: single endpoints. */
struct run {
    int first, end;
};

static int coordinate(const struct pair_map *ps, int level, int place)
{
    int id = ps->order[place];

    return level < 0 ? id : ps->m->topo.endpoint[id].place.at[level];
}

static int runs_of(const struct pair_map *ps, int level, struct run **out)
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

static bool grouped(const struct pair_map *ps, enum level level)
{
    const struct topo *t = &ps->m->topo;

    return t->group[level].count > 1 && (level != LEVEL_LEAF || t->group[LEVEL_RAIL].count == 0);
}

/* Level of the lines: the widest groups that exist. */
static int line_level(const struct pair_map *ps)
{
    static const enum level order[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_HOST};

    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
        if (grouped(ps, order[i]) && ps->m->topo.group[order[i]].count < ps->n)
            return order[i];
    return -1;
}

static int tick_level(const struct pair_map *ps)
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

static void endpoint_name(char *buf, size_t size, const struct topo *t, int id)
{
    snprintf(buf, size, "%s:%d", t->host[t->endpoint[id].place.at[LEVEL_HOST]].name,
             t->endpoint[id].local);
}

static void run_name(char *buf, size_t size, const struct pair_map *ps, int level,
                     const struct run *r)
{
    int at = coordinate(ps, level, r->first);

    if (level < 0)
        endpoint_name(buf, size, &ps->m->topo, at);
    else
        snprintf(buf, size, "%s", at < 0 ? "?" : ps->m->topo.group[level].name[at]);
}

/* Length of the common start of all names, up to the last letter before a number. */
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

static void add_ticks(struct plot_axis *a, const struct pair_map *ps, const struct run *run, int n,
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
    /* Every k-th name, so that names do not touch. */
    int step = 1;
    while ((double)step * pixels / n < (double)(widest + 1) * CHAR_PIXELS)
        step = (int)plot_nice(step + 1, true);
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
    bool says = shared && !strncmp(text, what, strlen(what)); /* "rack-" already names the level */
    snprintf(a->title, sizeof(a->title), "%s%s%.60s%s", says ? "" : what,
             shared && !says ? " " : "", text, shared ? "…" : "");
    free(name);
}

void plot_axis_of(struct plot_axis *a, const struct pair_map *ps, int span, int pixels)
{
    struct run *run;
    int level = line_level(ps), n;

    memset(a, 0, sizeof(*a));
    n = level < 0 ? 0 : runs_of(ps, level, &run);
    if (n * LINE_PIXELS > pixels) /* closer lines would hide the map */
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

void plot_axis_free(struct plot_axis *a)
{
    free(a->tick);
    free(a->line);
}

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
    endpoint_name(raw, sizeof(raw), t, id);
    plot_text(buf, raw, most);
}

static void part_text(char buf[PLOT_TEXT], const struct topo *t, const struct exception *e)
{
    static const enum level level[] = {
        [PART_HOST] = LEVEL_HOST, [PART_LEAF] = LEVEL_LEAF, [PART_RACK] = LEVEL_RACK};
    char a[PLOT_TEXT], b[PLOT_TEXT];

    switch (e->part) {
    case PART_ENDPOINT:
        endpoint_text(buf, t, e->a, NAME_CHARS);
        return;
    case PART_HOST:
    case PART_LEAF:
    case PART_RACK:
        plot_text(buf, group_name(t, level[e->part], e->a), NAME_CHARS);
        return;
    case PART_RACK_PAIR:
    case PART_RACK_UPLINKS:
        plot_text(a, group_name(t, LEVEL_RACK, e->a), 11);
        plot_text(b, e->part == PART_RACK_PAIR ? group_name(t, LEVEL_RACK, e->b) : "all", 11);
        snprintf(buf, PLOT_TEXT, "%.50s × %.50s", a, b);
        return;
    default:
        endpoint_text(a, t, e->a, 11);
        endpoint_text(b, t, e->b, 11);
        snprintf(buf, PLOT_TEXT, "%.50s → %.50s", a, b);
    }
}

/* The rows of a pair are those of its first end. */
static bool belongs(const struct matrix *m, const struct exception *e, int id)
{
    struct exception first = *e;

    first.b = -1;
    return matrix_touches(m, &first, id);
}

/* Centre of the rows of a part. */
static double part_place(const struct pair_map *ps, const struct exception *e, int span)
{
    double sum = 0;
    int n = 0;

    for (int id = 0; id < ps->m->topo.endpoints; id++)
        if (ps->place[id] >= 0 && belongs(ps->m, e, id)) {
            sum += ps->place[id];
            n++;
        }
    return n ? (sum / n + 0.5) / span - 0.5 : NAN;
}

/* A part may be slow on several tiers; only its worst is shown. */
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

/* With --only: true if a tier slowed by the exception is in the map. */
static bool tier_shown(const struct pair_map *ps, const struct exception *e)
{
    bool nics = false;

    if (e->tier >= 0)
        return !isnan(ps->expected[e->tier]);
    for (int i = 0; i < ps->m->tiers; i++)
        nics |= ps->m->tier[i].nic && !isnan(ps->expected[i]);
    return nics || e->factor <= 0;
}

static void add_exceptions(struct found *f, const struct pair_map *ps, int span)
{
    static const char *const way[SIDE_COUNT] = {"", " sending", " receiving"};
    char effect[MATRIX_EFFECT];

    for (int i = 0; i < ps->m->exceptions; i++) {
        const struct exception *e = &ps->m->exception[i];
        enum part_state state = matrix_state(e);
        double depth = matrix_depth(e);
        struct plot_call c = {.place = part_place(ps, e, span),
                              .factor = isnan(depth) ? e->factor : depth};
        if (!tier_shown(ps, e) || isnan(c.place))
            continue;
        part_text(c.name, &ps->m->topo, e);
        if (e->factor <= 0)
            snprintf(c.what, sizeof(c.what), e->wrong ? "wrong data" : "no data");
        else if (state == STATE_SLOW)
            snprintf(c.what, sizeof(c.what), "%.0f%% of expected%s", 100 * e->factor, way[e->side]);
        else if (state == STATE_LATE)
            snprintf(c.what, sizeof(c.what), "+%.3g µs", e->alpha_add * 1e6);
        else
            snprintf(c.what, sizeof(c.what), "%s%s", matrix_effect(e, false, effect), way[e->side]);
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

/* Add runs of rows without data that no exception names. */
static void add_silent(struct found *f, const struct pair_map *ps, const float *rate, int blocks,
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

void plot_calls_of(struct plot_calls *c, const struct pair_map *ps, const float *rate, int blocks,
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
    /* Labels have two lines of text; the last one leaves room for "and N more". */
    plot_spread(at, c->count, 0.085 * blocks, -0.5 + 0.03 * blocks, 0.92 * blocks - 0.5);
    for (int i = 0; i < c->count; i++)
        c->call[i].at = at[i];
}
