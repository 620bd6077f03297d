/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"

enum { TIME_TEXT = 24, CHANGE_TEXT = 48 };

static char *time_text(char buf[TIME_TEXT], const char *format, double begun)
{
    time_t t = (time_t)begun;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || !strftime(buf, TIME_TEXT, format, &tm))
        snprintf(buf, TIME_TEXT, "-");
    return buf;
}

static char *day(char buf[TIME_TEXT], const struct history *h, int campaign)
{
    return time_text(buf, "%Y-%m-%d %H:%M", h->campaign[campaign]->begun);
}

/* --- figures --- */

static const char *const change_name[CHANGE_COUNT] = {"same", "worse", "better", "unsure"};
static const char *const drift_name[CHANGE_COUNT] = {"none", "falling", "rising", "unsure"};
static const char *const step_name[CHANGE_COUNT] = {"none", "down", "up", "unsure"};

static const struct table_column figure_columns[] = {{"now", "now", "text"},
                                                     {"drift", "drift", "text"},
                                                     {"what", "figure", "text"},
                                                     {NULL, "baseline", "figure"},
                                                     {NULL, "last", "figure"},
                                                     {NULL, "speed", "figure"},
                                                     {NULL, "spread", "figure"},
                                                     {NULL, "drift of speed", "figure"},
                                                     {NULL, "95 % interval", "figure"},
                                                     {NULL, "step of speed", "figure"},
                                                     {"points", "points", "count"},
                                                     {"unit", NULL, "text"},
                                                     {"baseline", NULL, "%.9g"},
                                                     {"spread", NULL, "%.6g"},
                                                     {"drift_per_week", NULL, "%.6g"},
                                                     {"drift_low", NULL, "%.6g"},
                                                     {"drift_high", NULL, "%.6g"},
                                                     {"p_now", NULL, "%.6g"},
                                                     {"p_slope", NULL, "%.6g"},
                                                     {"p_trend", NULL, "%.6g"},
                                                     {"step", NULL, "text"},
                                                     {"step_share", NULL, "%.6g"},
                                                     {"step_since_utc", NULL, "text?"},
                                                     {"p_step", NULL, "%.6g"},
                                                     {"campaigns", NULL, "json"},
                                                     {0}};

static char *value_text(char buf[UNITS_TEXT], bool rate, double x)
{
    return rate ? units_rate_text(buf, x) : units_seconds_text(buf, x);
}

/* Unit of the drift: a week; a day if the history is shorter than two weeks; the whole if it is
 * shorter than a day, because minutes cannot be extrapolated to a day. */
struct drift_unit {
    double weeks;
    const char *name;
};

static struct drift_unit drift_unit_of(const struct history *h)
{
    double days = (h->campaign[h->campaigns - 1]->begun - h->campaign[0]->begun) / 86400;

    return days < 1    ? (struct drift_unit){days / 7, "in all"}
           : days < 14 ? (struct drift_unit){1 / 7., "a day"}
                       : (struct drift_unit){1, "a week"};
}

static json_t *values(const struct history *h, const struct history_figure *f)
{
    json_t *list = json_array();

    for (int k = 0; k < h->campaigns; k++) {
        const struct history_value *v = &f->at[k];
        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:o, s:o}", "value", json_finite(v->value),
                                        "speed_ratio", json_finite(v->speed), "low",
                                        json_finite(v->lo), "high", json_finite(v->hi)));
    }
    return list;
}

static void add_figure(struct table *t, const struct history *h, const struct history_figure *f,
                       struct drift_unit unit)
{
    const struct history_value *last = &f->at[h->campaigns - 1];
    char before[UNITS_TEXT], now[UNITS_TEXT], speed[CHANGE_TEXT], spread[CHANGE_TEXT],
        drift[CHANGE_TEXT], interval[CHANGE_TEXT], since[TIME_TEXT], utc[TIME_TEXT],
        step[CHANGE_TEXT];
    bool timed = !isnan(f->week),
         stepped = f->stepped == CHANGE_WORSE || f->stepped == CHANGE_BETTER;

    snprintf(speed, CHANGE_TEXT, "%+.1f %%", 100 * (last->speed - 1));
    snprintf(spread, CHANGE_TEXT, "%.1f %%", 100 * f->spread);
    snprintf(drift, CHANGE_TEXT, "%+.2f %% %s", 100 * f->week * unit.weeks, unit.name);
    snprintf(interval, CHANGE_TEXT, "%+.2f to %+.2f %%", 100 * f->week_lo * unit.weeks,
             100 * f->week_hi * unit.weeks);
    snprintf(step, CHANGE_TEXT, "%+.1f %% since %s", 100 * expm1(f->step), day(since, h, f->since));
    time_text(utc, "%Y-%m-%dT%H:%M:%SZ", h->campaign[f->since]->begun);
    table_add(t, change_name[f->now], drift_name[f->drift], f->what,
              value_text(before, f->rate, f->baseline), value_text(now, f->rate, last->value),
              speed, spread, timed ? drift : NULL, timed ? interval : NULL, stepped ? step : NULL,
              f->points, f->rate ? "Bps" : "s", f->baseline, f->spread, f->week, f->week_lo,
              f->week_hi, f->p_now, f->p_slope, f->p_trend, step_name[f->stepped],
              stepped ? expm1(f->step) : NAN, stepped ? utc : NULL, f->p_step, values(h, f));
}

static bool is_news(const struct history_figure *f)
{
    return f->tier || f->now == CHANGE_WORSE || f->now == CHANGE_BETTER ||
           f->drift == CHANGE_WORSE || f->drift == CHANGE_BETTER || f->stepped == CHANGE_WORSE ||
           f->stepped == CHANGE_BETTER;
}

static void figures(struct table *t, const struct history *h, bool all)
{
    table_open(t, figure_columns);
    for (int i = 0; i < h->figures; i++)
        if (all || is_news(&h->figure[i]))
            add_figure(t, h, &h->figure[i], drift_unit_of(h));
}

/* --- parts --- */

/* "since 2026-10-12 16:01", "until ...", "from ... to ..., again since ...". */
static char *when_there(const struct history *h, const struct history_part *p)
{
    char from[TIME_TEXT], to[TIME_TEXT], *text = NULL;

    for (int k = 0, end; k < h->campaigns; k = end + 1) {
        for (end = k; end < h->campaigns && strcmp(p->speed[end], "-") != 0;)
            end++;
        if (end == k)
            continue;
        const char *comma = text ? ", again " : "";
        day(from, h, k);
        day(to, h, end - 1);
        if (end == h->campaigns)
            text = k ? mem_append(text, "%ssince %s", comma, from)
                     : mem_append(text, "%sfrom the first on", comma);
        else if (k == end - 1)
            text = mem_append(text, "%son %s", comma, from);
        else
            text = mem_append(text, "%sfrom %s to %s", comma, from, to);
    }
    return text;
}

static json_t *speeds(const struct history *h, const struct history_part *p)
{
    json_t *list = json_array();

    for (int k = 0; k < h->campaigns; k++)
        json_array_append_new(list, strcmp(p->speed[k], "-") != 0 ? json_string(p->speed[k])
                                                                  : json_null());
    return list;
}

static void parts(struct table *t, const struct history *h)
{
    static const struct table_column columns[] = {{"change", "change", "text"},
                                                  {"what", "part", "text"},
                                                  {"kind", NULL, "text"},
                                                  {NULL, "last", "figure"},
                                                  {"when", "there", "text"},
                                                  {"campaigns", NULL, "json"},
                                                  {0}};

    table_open(t, columns);
    for (int i = 0; i < h->parts; i++) {
        const struct history_part *p = &h->part[i];
        int last = h->campaigns - 1;
        while (last > 0 && !strcmp(p->speed[last], "-"))
            last--;
        char *when = when_there(h, p);
        table_add(t, p->returned && p->is == PART_NEW ? "returned" : part_change_name[p->is],
                  p->what, part_kind_name[p->kind], p->speed[last], when, speeds(h, p));
        free(when);
    }
}

/* --- versions, campaigns --- */

static void versions(struct table *t, const struct history *h)
{
    static const struct table_column columns[] = {{"begun_utc", NULL, "text"},
                                                  {NULL, "since", "text"},
                                                  {"campaign", NULL, "text"},
                                                  {"what", "version", "text"},
                                                  {"before", "before", "text"},
                                                  {"after", "after", "text"},
                                                  {0}};
    char since[TIME_TEXT], utc[TIME_TEXT];

    table_open(t, columns);
    for (int k = 1; k < h->campaigns; k++)
        for (int i = 0; i < h->versions.rows; i++) {
            const struct version_row *r = &h->versions.row[i];
            if (strcmp(r->value[k - 1], r->value[k]) != 0)
                table_add(t, time_text(utc, "%Y-%m-%dT%H:%M:%SZ", h->campaign[k]->begun),
                          day(since, h, k), h->campaign[k]->path, r->what, r->value[k - 1],
                          r->value[k]);
        }
}

static void left_out(struct table *t, const struct history *h)
{
    static const struct table_column columns[] = {
        {"path", "left out", "text"}, {"why", "because it", "text"}, {0}};

    table_open(t, columns);
    for (int i = 0; i < h->lefts; i++)
        table_add(t, h->left[i].path, h->left[i].why);
}

static json_t *campaigns(const struct history *h)
{
    json_t *list = json_array();
    char utc[TIME_TEXT];

    for (int k = 0; k < h->campaigns; k++)
        json_array_append_new(
            list, json_pack("{s:s, s:s}", "path", h->campaign[k]->path, "begun_utc",
                            time_text(utc, "%Y-%m-%dT%H:%M:%SZ", h->campaign[k]->begun)));
    return list;
}

/* --- combined --- */

enum { TABLES = 4 };

static void make(struct table t[TABLES], const struct history *h, bool all)
{
    figures(&t[0], h, all);
    parts(&t[1], h);
    versions(&t[2], h);
    left_out(&t[3], h);
}

void history_print(FILE *out, const struct history *h, bool all)
{
    struct table t[TABLES];

    make(t, h, all);
    for (int i = 0; i < TABLES; i++) {
        if (json_array_size(t[i].rows)) {
            fputs(i ? "\n" : "", out);
            table_print(out, &t[i], 0);
        }
        table_free(&t[i]);
    }
}

json_t *history_json(const struct history *h)
{
    struct table t[TABLES];

    make(t, h, true);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "campaigns", campaigns(h), "left_out",
                     table_rows(&t[3]), "figures", table_rows(&t[0]), "parts", table_rows(&t[1]),
                     "versions", table_rows(&t[2]));
}
