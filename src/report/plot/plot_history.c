/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_history.c - campaigns over time: tiers and collectives as a share of their baseline, changes
 * of versions, and parts over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/units.h"
#include "report/plot/plot_data.h"

enum {
    LINES = 6 /* lines per panel: as many as there are colours */,
    PANELS = 2,
    PARTS = 12,
    NOTES = 4
};

struct history_panel {
    const char *title;
    const struct history_figure *line[LINES];
    int lines, of;
    double lo, hi; /* percent */
};

struct history_note {
    double at;
    char text[PLOT_TEXT];
    int changes;
};

struct history_plot {
    const struct history *h;
    const struct pair_only *only;
    struct history_panel panel[PANELS];
    int panels;
    double from, to; /* s since 1970, with a margin at both ends */
    struct history_note note[NOTES];
    int notes, changes;
    const struct history_part *part[PARTS];
    int parts;
};

/* --- choice of lines --- */

static double change_of(const struct history_figure *f)
{
    return fabs(log(f->at[0].speed)) + (f->now == CHANGE_WORSE || f->now == CHANGE_BETTER) +
           (f->drift == CHANGE_WORSE || f->drift == CHANGE_BETTER);
}

/* Order: rates before times, changed before unchanged, then as in the history. */
static int by_interest(const void *x, const void *y)
{
    const struct history_figure *a = *(const struct history_figure *const *)x,
                                *b = *(const struct history_figure *const *)y;
    bool changed_a = change_of(a) >= 1, changed_b = change_of(b) >= 1;

    if (a->rate != b->rate)
        return a->rate ? -1 : 1;
    if (changed_a != changed_b)
        return changed_a ? -1 : 1;
    return (a > b) - (a < b);
}

/* "tier rail, pair_bw" */
static bool shown(const struct history_plot *p, const struct history_figure *f)
{
    const struct matrix *m = p->h->campaign[p->h->campaigns - 1]->matrix;

    for (int i = 0; i < m->tiers && f->tier; i++) {
        size_t n = strlen(m->tier[i].rule.name);
        if (!strncmp(f->what + 5, m->tier[i].rule.name, n) && f->what[5 + n] == ',')
            return pair_only_tier(p->only, m, i);
    }
    return true;
}

static void add_panel(struct history_plot *p, bool tier, const char *title)
{
    const struct history *h = p->h;
    const struct history_figure **all = mem_calloc((size_t)h->figures + 1, sizeof(*all));
    struct history_panel *panel = &p->panel[p->panels];
    double lo = 98, hi = 102;

    *panel = (struct history_panel){.title = title};
    for (int i = 0; i < h->figures; i++)
        if (h->figure[i].tier == tier && shown(p, &h->figure[i]))
            all[panel->of++] = &h->figure[i];
    qsort(all, (size_t)panel->of, sizeof(*all), by_interest);
    for (int i = 0; i < panel->of && i < LINES; i++) {
        panel->line[panel->lines++] = all[i];
        for (int k = 0; k < h->campaigns; k++) {
            lo = fmin(lo, 100 * all[i]->at[k].lo);
            hi = fmax(hi, 100 * all[i]->at[k].hi);
        }
    }
    panel->lo = fmax(0, floor(lo - 0.06 * (hi - lo)));
    panel->hi = fmin(200, ceil(hi + 0.06 * (hi - lo)));
    p->panels += panel->lines > 0;
    free(all);
}

/* --- versions, parts --- */

/* One mark per campaign: the first change, and the number of others. */
static void add_notes(struct history_plot *p)
{
    const struct versions *v = &p->h->versions;
    char what[PLOT_TEXT], before[PLOT_TEXT], after[PLOT_TEXT];

    for (int k = 1; k < p->h->campaigns; k++) {
        struct history_note n = {.at = p->h->campaign[k]->begun};
        for (int i = 0; i < v->rows; i++) {
            const struct version_row *r = &v->row[i];
            if (!strcmp(r->value[k - 1], r->value[k]) || n.changes++)
                continue;
            snprintf(n.text, PLOT_TEXT, "%.40s: %.34s → %.34s", plot_text(what, r->what, 30),
                     plot_text(before, r->value[k - 1], 24), plot_text(after, r->value[k], 24));
        }
        p->changes += n.changes > 0;
        if (n.changes && p->notes < NOTES)
            p->note[p->notes++] = n;
    }
}

static void add_parts(struct history_plot *p)
{
    for (int pass = 0; pass < 2; pass++) /* parts that are gone come last */
        for (int i = 0; i < p->h->parts && p->parts < PARTS; i++)
            if ((p->h->part[i].is == PART_GONE) == (pass == 1))
                p->part[p->parts++] = &p->h->part[i];
}

/* --- words --- */

static char *day_text(char buf[PLOT_TEXT], const char *format, double at)
{
    time_t t = (time_t)at;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || !strftime(buf, PLOT_TEXT, format, &tm))
        *buf = '\0';
    return buf;
}

static const char *line_name(const struct history_figure *f)
{
    return f->tier && strlen(f->what) > 5 ? f->what + 5 /* "tier " */ : f->what;
}

static char *line_words(char buf[PLOT_TEXT], const struct history *h,
                        const struct history_figure *f)
{
    double value = f->at[h->campaigns - 1].value;
    double weeks = (h->campaign[h->campaigns - 1]->begun - h->campaign[0]->begun) / (7 * 86400.0);
    char text[UNITS_TEXT];
    int n = snprintf(buf, PLOT_TEXT, "%s",
                     f->rate ? units_rate_text(text, value) : units_seconds_text(text, value));

    if (f->drift == CHANGE_WORSE || f->drift == CHANGE_BETTER)
        n += snprintf(buf + n, PLOT_TEXT - (size_t)n,
                      weeks < 1 ? ", %+.1f %% in all" : ", %+.1f %% a week",
                      100 * f->week * fmin(1, weeks));
    if (f->now == CHANGE_WORSE || f->now == CHANGE_BETTER)
        snprintf(buf + n, PLOT_TEXT - (size_t)n, ", %s",
                 f->now == CHANGE_WORSE ? "below baseline" : "above baseline");
    return buf;
}

/* --- files --- */

static void put_lines(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;
    char name[PLOT_TEXT];

    for (int i = 0; i < p->panels; i++)
        for (int l = 0; l < p->panel[i].lines; l++)
            for (int k = 0; k < p->h->campaigns; k++) {
                const struct history_figure *f = p->panel[i].line[l];
                fprintf(out, "%d\t%d\t%s\t%.0f", i + 1, l + 1, plot_text(name, f->what, 60),
                        p->h->campaign[k]->begun);
                plot_number(out, 100 * f->at[k].speed);
                plot_number(out, 100 * f->at[k].lo);
                plot_number(out, 100 * f->at[k].hi);
                plot_number(out, f->at[k].value);
                putc('\n', out);
            }
}

static void put_panels(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;

    for (int i = 0; i < p->panels; i++) {
        const struct history_panel *panel = &p->panel[i];
        fprintf(out, "%d\t%s", i + 1, panel->title);
        if (panel->of > panel->lines)
            fprintf(out, " (%d of %d: rates, what changed first)", panel->lines, panel->of);
        fprintf(out, "\t%g\t%g\t%d\n", panel->lo, panel->hi, panel->lines);
    }
}

struct end {
    double at;
    int line;
};

static int by_at(const void *x, const void *y)
{
    const struct end *a = x, *b = y;

    return (a->at > b->at) - (a->at < b->at);
}

static void put_labels(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;
    char name[PLOT_TEXT], words[PLOT_TEXT];

    for (int i = 0; i < p->panels; i++) {
        const struct history_panel *panel = &p->panel[i];
        struct end end[LINES] = {{0}};
        double at[LINES], height = panel->hi - panel->lo;
        for (int l = 0; l < panel->lines; l++)
            end[l] = (struct end){100 * panel->line[l]->at[p->h->campaigns - 1].speed, l};
        qsort(end, (size_t)panel->lines, sizeof(*end), by_at);
        for (int l = 0; l < panel->lines; l++)
            at[l] = (end[l].at - panel->lo) / height;
        plot_spread(at, panel->lines, 0.168, 0.06, 0.94);
        for (int l = 0; l < panel->lines; l++) {
            const struct history_figure *f = panel->line[end[l].line];
            fprintf(out, "%d\t%d\t%s\t%s\t%g\n", i + 1, end[l].line + 1,
                    plot_text(name, line_name(f), 42), line_words(words, p->h, f),
                    panel->lo + at[l] * height);
        }
    }
}

static void put_notes(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;

    for (int i = 0; i < p->notes; i++) {
        const struct history_note *n = &p->note[i];
        fprintf(out, "%d\t%.0f\t%s", i + 1, n->at, n->text);
        if (n->changes > 1)
            fprintf(out, " and %d more", n->changes - 1);
        fprintf(out, "\t%d\n", n->at > p->from + 0.55 * (p->to - p->from));
    }
}

/* Draw a bar from each campaign with the part to the next one, from the last to the end. */
static void put_parts(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;
    char name[PLOT_TEXT], speed[PLOT_TEXT];

    for (int i = 0; i < p->parts; i++) {
        int last = p->h->campaigns - 1;
        while (last > 0 && !strcmp(p->part[i]->speed[last], "-"))
            last--;
        for (int k = 0; k <= last; k++) {
            if (!strcmp(p->part[i]->speed[k], "-"))
                continue;
            double to = k + 1 < p->h->campaigns ? p->h->campaign[k + 1]->begun : p->to;
            bool first = k == 0 || !strcmp(p->part[i]->speed[k - 1], "-");
            fprintf(out, "%d\t%.0f\t%.0f\t%s\t%s\n", i + 1, p->h->campaign[k]->begun, to,
                    k == last ? plot_text(name, p->part[i]->what, 44) : "-",
                    first ? plot_text(speed, p->part[i]->speed[k], 12) : "-");
        }
    }
}

/* At most ten dates, each at a campaign and far enough from the previous one. */
static void put_ticks(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;
    const char *format = p->to - p->from > 3 * 86400 ? "%b %d" : "%b %d %H:%M";
    double last = -INFINITY, apart = (p->to - p->from) / 10;
    char text[PLOT_TEXT];

    for (int k = 0; k < p->h->campaigns; k++) {
        double at = p->h->campaign[k]->begun;
        bool shown = at - last >= apart;
        fprintf(out, "%.0f\t%s\n", at, shown ? day_text(text, format, at) : "");
        last = shown ? at : last;
    }
}

static void put_meta(FILE *out, const void *figure)
{
    const struct history_plot *p = figure;
    const struct history *h = p->h;
    char from[PLOT_TEXT], to[PLOT_TEXT], left[PLOT_TEXT] = "";

    day_text(from, "%Y-%m-%d", h->campaign[0]->begun);
    day_text(to, "%Y-%m-%d", h->campaign[h->campaigns - 1]->begun);
    if (h->lefts)
        snprintf(left, PLOT_TEXT, "; %d left out", h->lefts);
    fprintf(out, "title\t%d campaigns, %s to %s\n", h->campaigns, from, to);
    fprintf(
        out,
        "subtitle\tmedian speed of matched points beside the baseline, with 95%% interval%s%s%s\n",
        p->changes ? "; dashed: versions changed" : "", p->parts ? "; below: parts" : "", left);
    fprintf(out, "from\t%.0f\nto\t%.0f\npanels\t%d\nnotes\t%d\nparts\t%d\nmore_parts\t%d\n",
            p->from, p->to, p->panels, p->notes, p->parts, h->parts - p->parts);
}

static const struct plot_table tables[] = {
    {"history.tsv", "panel\tline\tfigure\tbegun\tspeed_percent\tlo_percent\thi_percent\tvalue",
     put_lines},
    {"history_panel.tsv", "panel\ttitle\tlo\thi\tlines", put_panels},
    {"history_label.tsv", "panel\tline\tname\twords\tat", put_labels}, /* at the end of a line */
    {"history_version.tsv", "row\tbegun\ttext\tleft", put_notes},      /* left of its line */
    {"history_part.tsv", "row\tfrom\tto\tname\tspeed", put_parts},
    {"history_tick.tsv", "begun\ttext", put_ticks},
    {"history_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

/* Figures are of tiers; a single rack has none. */
static int check_only(const struct pair_only *o, const struct matrix *m, struct err *err)
{
    if (pair_only_check(o, m, err) < 0)
        return -1;
    for (int i = 0; i < o->names; i++)
        if (names_find(&m->topo.group[LEVEL_RACK], o->name[i]) >= 0)
            return err_usage(err, "--only %.60s: a history is of tiers, not of racks", o->name[i]);
    return 0;
}

int plot_data_history(const struct plot_source *s, const char *dir, struct err *err)
{
    struct history_plot p = {.h = s->history, .only = &s->only};
    const struct history *h = s->history;

    if (check_only(p.only, h->campaign[h->campaigns - 1]->matrix, err) < 0)
        return -1;
    double first = h->campaign[0]->begun, last = h->campaign[h->campaigns - 1]->begun;
    p.from = first - fmax(0.02 * (last - first), 1);
    p.to = last + fmax(0.06 * (last - first), 1); /* room for a part of the last campaign */
    add_panel(&p, true, "Pairs of each tier");
    add_panel(&p, false, "Collectives");
    add_notes(&p);
    add_parts(&p);
    return p.panels ? plot_tables_write(tables, &p, dir, err)
                    : err_data(err, "no figure to plot: no point is in all campaigns");
}
