/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_step_score.c - predicted against measured steps: points, their groups, and their errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "report/plot/plot_data.h"

static const char *const json_column[] = {"id",         "status",      "model",      "hardware",
                                          "release",    "family",      "layout",     "split",
                                          "measured_s", "predicted_s", "anchored_s", "anchor"};
enum { JSON_COLUMNS = sizeof(json_column) / sizeof(*json_column) };

static void print_cell(FILE *out, json_t *v)
{
    char text[PLOT_TEXT];

    if (json_is_number(v))
        fprintf(out, "%.9g", json_number_value(v));
    else if (json_is_string(v))
        fputs(plot_text(text, json_string_value(v), 110), out);
}

/* Convert the rows of the JSON to the table that `predict --batch` prints without --json. */
static int from_json(struct tsv *t, const char *path, struct err *err)
{
    json_t *root, *list, *row;
    char *text = NULL;
    size_t i, size;
    int rc = -1;

    if (json_open(&root, path, "railgauge-batch", 1, err) < 0)
        return -1;
    list = json_object_get(root, "rows");
    if (!json_is_array(list)) {
        err_data(err, "%s: \"rows\" is no list", path);
        goto out;
    }
    FILE *out = mem_stream(&text, &size);
    for (int c = 0; c < JSON_COLUMNS; c++)
        fprintf(out, "%s%s", c ? "\t" : "", json_column[c]);
    json_array_foreach(list, i, row)
    {
        fputc('\n', out);
        for (int c = 0; c < JSON_COLUMNS; c++) {
            fputs(c ? "\t" : "", out);
            print_cell(out, json_object_get(row, json_column[c]));
        }
    }
    fputc('\n', out);
    mem_stream_end(out);
    rc = tsv_parse(t, path, text, err);
out:
    json_decref(root);
    return rc;
}

int score_table_load(struct tsv *t, const char *path, struct err *err)
{
    return step_is_json(path) ? from_json(t, path, err) : tsv_load(t, path, err);
}

enum { PANELS = 2, COLOURS = 6, NAME_CHARS = 30 };

static const char *const panel_column[PANELS] = {"predicted_s", "anchored_s"};
static const char *const panel_title[PANELS] = {"Without an anchor", "With one measured step"};

struct score_dot {
    int row, panel, group;
    double measured, predicted;
};

struct score_group {
    const char *name;
    int points;
};

struct scatter {
    const struct tsv *t;
    struct score_dot *point;
    int points;
    struct score_group *group; /* most points first; groups from COLOURS on are drawn as one */
    int groups;
    int by, test_column, id;
    int panels, left_out, tests;
    double lo, hi;             /* s, measured */
    double ratio_lo, ratio_hi; /* predicted / measured */
};

/* --- choice of points --- */

static int find_by(const struct tsv *t, const char *by, int *column, struct err *err)
{
    *column = by ? tsv_column(t, by, err) : tsv_find(t, "hardware");
    if (by)
        return *column < 0 ? -1 : 0;
    if (*column < 0)
        *column = tsv_find(t, "family");
    return 0;
}

static int group_of(struct scatter *s, int row)
{
    const char *name = s->by < 0 ? "all" : s->t->row[row].cell[s->by];

    for (int i = 0; i < s->groups; i++)
        if (!strcmp(s->group[i].name, name))
            return i;
    MEM_PUSH(s->group, s->groups) = (struct score_group){name, 0};
    return s->groups - 1;
}

static const char *cell(const struct scatter *s, int row, int column)
{
    return column < 0 ? "" : s->t->row[row].cell[column];
}

static bool is_test(const struct scatter *s, int row)
{
    return !strncmp(cell(s, row, s->test_column), "test_", 5);
}

/* Add a row's point to a panel.  Rows without prediction have none, and an anchor none for
 * itself. */
static int add_point(struct scatter *s, int row, int panel, int measured, int predicted,
                     struct err *err)
{
    int anchor = tsv_find(s->t, "anchor");
    struct score_dot p = {row, panel, 0, 0, 0};

    if (!*cell(s, row, measured) || !*cell(s, row, predicted) ||
        (panel && !strcmp(cell(s, row, anchor), cell(s, row, s->id)))) {
        s->left_out += !panel;
        return 0;
    }
    if (tsv_double(s->t, row, measured, 1e-9, 1e12, &p.measured, err) < 0 ||
        tsv_double(s->t, row, predicted, 1e-9, 1e12, &p.predicted, err) < 0)
        return -1;
    p.group = group_of(s, row);
    s->group[p.group].points += !panel;
    s->tests += !panel && is_test(s, row);
    MEM_PUSH(s->point, s->points) = p;
    s->panels = panel + 1 > s->panels ? panel + 1 : s->panels;
    return 0;
}

/* Sort groups by size, largest first; points follow. */
static void order_groups(struct scatter *s)
{
    int *place = mem_calloc((size_t)s->groups + 1, sizeof(*place));
    struct score_group *sorted = mem_calloc((size_t)s->groups + 1, sizeof(*sorted));

    for (int i = 0; i < s->groups; i++) {
        for (int k = 0; k < s->groups; k++)
            place[i] += s->group[k].points > s->group[i].points ||
                        (k < i && s->group[k].points == s->group[i].points);
        sorted[place[i]] = s->group[i];
    }
    for (int i = 0; i < s->points; i++)
        s->point[i].group = place[s->point[i].group];
    free(s->group);
    free(place);
    s->group = sorted;
}

/* Equal room for too fast and too slow, at least a quarter. */
static void range_of(struct scatter *s)
{
    double most = 1.25;

    s->lo = INFINITY;
    for (int i = 0; i < s->points; i++) {
        const struct score_dot *p = &s->point[i];
        double ratio = p->predicted / p->measured;
        s->lo = fmin(s->lo, p->measured / 1.25);
        s->hi = fmax(s->hi, p->measured * 1.25);
        most = fmax(most, fmax(ratio, 1 / ratio) * 1.04);
    }
    double more = sqrt(fmax(1, 10 / (s->hi / s->lo))); /* at least a decade */
    s->lo /= more;
    s->hi *= more;
    s->ratio_lo = 1 / most;
    s->ratio_hi = most;
}

static void scatter_free(struct scatter *s)
{
    free(s->point);
    free(s->group);
}

static int scatter_of(struct scatter *s, const struct tsv *t, const char *by, struct err *err)
{
    int measured = tsv_column(t, "measured_s", err);
    int predicted = measured < 0 ? -1 : tsv_column(t, panel_column[0], err);

    *s = (struct scatter){.t = t, .id = tsv_find(t, "id"), .test_column = tsv_find(t, "split")};
    if (predicted < 0 || find_by(t, by, &s->by, err) < 0)
        return -1;
    for (int panel = 0; panel < PANELS; panel++) {
        int column = tsv_find(t, panel_column[panel]);
        for (int i = 0; i < t->rows; i++)
            if (column >= 0 && add_point(s, i, panel, measured, column, err) < 0)
                return -1;
    }
    if (!s->panels)
        return err_data(err, "%s: none of %d rows has both measured_s and predicted_s", t->path,
                        t->rows);
    order_groups(s);
    range_of(s);
    return 0;
}

/* --- figures --- */

static double error_of(const struct score_dot *p)
{
    return fabs(p->predicted / p->measured - 1);
}

/* Colour of a group; those without their own share one. */
static int colour_of(const struct scatter *s, int group)
{
    return s->groups > COLOURS && group >= COLOURS - 1 ? COLOURS - 1 : group;
}

struct score_figure {
    int n, near; /* points; points within 10 % */
    double median;
};

/* colour -1: all colours. */
static struct score_figure figure_of(const struct scatter *s, int panel, int colour)
{
    double *v = mem_calloc((size_t)s->points, sizeof(*v));
    struct score_figure f = {0, 0, NAN};

    for (int i = 0; i < s->points; i++) {
        const struct score_dot *p = &s->point[i];
        if (p->panel != panel || (colour >= 0 && colour_of(s, p->group) != colour))
            continue;
        v[f.n++] = error_of(p);
        f.near += error_of(p) <= 0.1;
    }
    if (f.n)
        f.median = stats_median(v, f.n);
    free(v);
    return f;
}

/* Median error of test rows without an anchor; NAN: none. */
static double test_median(const struct scatter *s)
{
    double *v = mem_calloc((size_t)s->points + 1, sizeof(*v)), median = NAN;
    int n = 0;

    for (int i = 0; i < s->points; i++)
        if (!s->point[i].panel && is_test(s, s->point[i].row))
            v[n++] = error_of(&s->point[i]);
    if (n)
        median = stats_median(v, n);
    free(v);
    return median;
}

static int colours_of(const struct scatter *s)
{
    return s->groups > COLOURS ? COLOURS : s->groups;
}

static void name_of(char out[PLOT_TEXT], const struct scatter *s, int colour)
{
    if (s->groups > COLOURS && colour == COLOURS - 1)
        snprintf(out, PLOT_TEXT, "others");
    else
        plot_text(out, *s->group[colour].name ? s->group[colour].name : "(not said)", NAME_CHARS);
}

/* --- tables --- */

static void put_points(FILE *out, const void *figure)
{
    const struct scatter *s = figure;
    char id[PLOT_TEXT], group[PLOT_TEXT];

    for (int i = 0; i < s->points; i++) {
        const struct score_dot *p = &s->point[i];
        bool test = is_test(s, p->row);
        fprintf(out, "%d\t%s\t%d\t%s\t%d\t%.6g\t%.6g\n", p->panel + 1,
                plot_text(id, cell(s, p->row, s->id), 100), colour_of(s, p->group) + 1,
                plot_text(group, s->group[p->group].name, 100), test, p->measured, p->predicted);
    }
}

static void put_groups(FILE *out, const void *figure)
{
    const struct scatter *s = figure;
    char name[PLOT_TEXT];

    for (int p = 0; p < s->panels; p++)
        for (int c = 0; c < colours_of(s); c++) {
            struct score_figure f = figure_of(s, p, c);
            name_of(name, s, c);
            if (f.n)
                fprintf(out, "%d\t%d\t%s\t%d, median %.1f%%\n", p + 1, c + 1, name, f.n,
                        100 * f.median);
        }
}

static void put_panels(FILE *out, const void *figure)
{
    const struct scatter *s = figure;

    for (int p = 0; p < s->panels; p++) {
        struct score_figure all = figure_of(s, p, -1);
        fprintf(out, "%d\t%s\tmedian error %.1f%%, %.0f%% of %d within 10%%\t%d\n", p + 1,
                panel_title[p], 100 * all.median, 100. * all.near / all.n, all.n, all.n);
    }
}

static void put_meta(FILE *out, const void *figure)
{
    const struct scatter *s = figure;
    struct score_figure all = figure_of(s, 0, -1);
    char count[PLOT_TEXT];

    double tests = test_median(s);

    fprintf(out, "title\tPredicted against measured: %s, median error %.1f%%",
            plot_count(count, all.n, "step"), 100 * all.median);
    if (isfinite(tests))
        fprintf(out, ", of test rows %.1f%%", 100 * tests);
    putc('\n', out);
    fprintf(out,
            "subtitle\tpredicted / measured: 1 is right, above is too slow; shade: within 10%%%s",
            s->tests ? "; triangles: test rows, never fitted"
                     : "; rows that were fitted are among them");
    if (s->left_out)
        fprintf(out, "; %s without one of both left out", plot_count(count, s->left_out, "row"));
    fprintf(out,
            "\npanels\t%d\ncolours\t%d\nothers\t%d\ntests\t%d\nlo\t%.6g\nhi\t%.6g\n"
            "ratio_lo\t%.6g\nratio_hi\t%.6g\n",
            s->panels, colours_of(s), s->groups > COLOURS, s->tests, s->lo, s->hi, s->ratio_lo,
            s->ratio_hi);
}

static const struct plot_table tables[] = {
    /* panel 2: with an anchor */
    {"score.tsv", "panel\tid\tcolour\tgroup\ttest\tmeasured_s\tpredicted_s", put_points},
    {"score_group.tsv", "panel\tcolour\tname\ttext", put_groups},
    {"score_panel.tsv", "panel\ttitle\ttext\tpoints", put_panels},
    {"score_meta.tsv", "key\tvalue", put_meta},
    {NULL, NULL, NULL},
};

int plot_data_score(const struct plot_source *from, const char *dir, struct err *err)
{
    struct scatter s;
    int rc = scatter_of(&s, from->score, from->by, err);

    if (rc == 0)
        rc = plot_tables_write(tables, &s, dir, err);
    scatter_free(&s);
    return rc;
}

int plot_text_score(FILE *out, const struct tsv *t, const char *by, struct err *err)
{
    static const struct table_column columns[] = {{NULL, "predicted", "text"},
                                                  {NULL, "of", "text"},
                                                  {NULL, "steps", "count"},
                                                  {NULL, "median error", "100*%.1f %%"},
                                                  {NULL, "within 10 %", "100*%.0f %%"},
                                                  {0}};
    char name[PLOT_TEXT];
    struct table table;
    struct scatter s;

    if (scatter_of(&s, t, by, err) < 0) {
        scatter_free(&s);
        return -1;
    }
    table_open(&table, columns);
    for (int p = 0; p < s.panels; p++)
        for (int c = -1; c < colours_of(&s); c++) {
            struct score_figure f = figure_of(&s, p, c);
            if (!f.n)
                continue;
            snprintf(name, sizeof(name), "all");
            if (c >= 0)
                name_of(name, &s, c);
            table_add(&table, c < 0 ? panel_title[p] : "", name, f.n, f.median,
                      (double)f.near / f.n);
        }
    table_print(out, &table, 0);
    table_free(&table);
    scatter_free(&s);
    return 0;
}
