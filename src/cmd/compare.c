/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.c - railgauge compare: changes between campaigns on the same machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/campaigns_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/text/report.h"
#include "verdict/history.h"

struct args {
    const char **dir, *output;
    int dirs;
    double tolerance;
    bool all, history;
    struct input_args in;
};

static const struct opt options[] = {
    {"tolerance", 0, "SHARE", "ignore smaller changes (default 1%)",
     OPT_SHARE(struct args, tolerance)},
    {"history", 0, NULL,
     "many campaigns: drift of each figure, and the last campaign against all others",
     OPT_INTO(struct args, history)},
    {"all", 0, NULL, "also list collectives without a change", OPT_INTO(struct args, all)},
    {"output", 'o', "FILE", "also write the comparison as JSON", OPT_INTO(struct args, output)},
    INPUT_JSON(struct args, in.json),
    INPUT_QUIET(struct args, in.quiet),
    {0},
};

static const struct opt words[] = {
    {"directory", .help = "give two campaign directories", OPT_LIST(struct args, dir, dirs)}, {0}};

static int count_campaigns(void *args, struct err *err)
{
    const struct args *a = args;

    if (a->history && a->dirs < HISTORY_LEAST)
        return err_usage(err, "--history needs %d campaign directories or more", HISTORY_LEAST);
    if (!a->history && a->dirs != 2)
        return err_usage(err, a->dirs > 2 ? "two campaigns are compared; --history takes more"
                                          : "give two campaign directories");
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = count_campaigns,
    .usage = "BEFORE AFTER\n"
             "--history DIR...",
    .doc = "Compare two campaigns on the same machine, or many: tiers, collectives, "
           "parts and versions, each with its interval.\vPoints of the same measurement "
           "are matched one by one; each epoch of both campaigns is one piece of "
           "evidence. At most 1 in 100 comparisons of an unchanged machine gives a false "
           "alarm; a loss of 2 % of everything is found in 95 of 100 (simulated, with 3 "
           "% noise, stray points, other jobs, hash collisions and drift). What differs "
           "between whole campaigns, such as routes hashed anew, looks like a change; a "
           "history of three or more campaigns estimates it. A history compares the last "
           "campaign, by its own time, with all others. Each drift has an interval; "
           "campaigns that do not match the last one are left out, with the reason.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Compare two campaigns", "railgauge compare last-month today"),
            OPT_EXAMPLE("Ignore changes below 3 %, and print JSON",
                        "railgauge compare last-month today --tolerance 3% --json"),
            OPT_EXAMPLE("Compare the last of many campaigns with the others",
                        "railgauge compare --history campaign-2026-*"),
            {0}},
    .exits = EXIT_CODES("1 a figure or a part is worse or a part is new, 2 could not judge, ", ""),
};

static const char *const change_name[CHANGE_COUNT] = {"same", "worse", "better", "unsure"};

static const struct table_column figure_columns[] = {
    {"change", "change", "text!"}, {"what", "figure", "text"},
    {NULL, "before", "text"},      {NULL, "after", "text"},
    {NULL, "speed", "text"},       {NULL, "95 % interval", "text"},
    {"epochs", "epochs", "count"}, {"points", "points", "count"},
    {"before", NULL, "%.9g"},      {"after", NULL, "%.9g"},
    {"unit", NULL, "text"},        {"speed_ratio", NULL, "%.9g"},
    {"low", NULL, "%.9g"},         {"high", NULL, "%.9g"},
    {"p", NULL, "%.9g"},           {0}};
static const struct table_column part_columns[] = {
    {"change", "change", "text!"}, {"what", "part", "text"},
    {"kind", NULL, "text"},        {NULL, "before", "text"},
    {NULL, "after", "text"},       {"before", NULL, "%.4g"},
    {"after", NULL, "%.4g"},       {0}};
static const struct table_column version_columns[] = {
    {"what", "version", "text"}, {"before", "before", "text"}, {"after", "after", "text"}, {0}};

static const char *value_text(char buf[UNITS_TEXT], bool rate, double x)
{
    return rate ? units_rate_text(buf, x) : units_seconds_text(buf, x);
}

enum { CHANGE_TEXT = 48 };

/* "-" if there were too few epochs for an interval. */
static void interval_text(char buf[CHANGE_TEXT], const struct figure_change *f)
{
    if (isnan(f->lo))
        snprintf(buf, CHANGE_TEXT, "-");
    else
        snprintf(buf, CHANGE_TEXT, "%+.1f to %+.1f %%", 100 * (f->lo - 1), 100 * (f->hi - 1));
}

/* Tiers are few and always shown. */
static bool is_news(const struct figure_change *f)
{
    return f->is == CHANGE_WORSE || f->is == CHANGE_BETTER || f->tier;
}

static void figures(struct table *t, const struct compare *c, bool all)
{
    char before[UNITS_TEXT], after[UNITS_TEXT], change[16], interval[CHANGE_TEXT];

    table_open(t, figure_columns);
    for (int i = 0; i < c->figures; i++) {
        const struct figure_change *f = &c->figure[i];
        if (!all && !is_news(f))
            continue;
        snprintf(change, sizeof(change), "%+.1f %%", 100 * (f->ratio - 1));
        interval_text(interval, f);
        table_add(t, change_name[f->is], f->what, value_text(before, f->rate, f->before),
                  value_text(after, f->rate, f->after), change, interval, f->blocks, f->points,
                  f->before, f->after, f->rate ? "Bps" : "s", f->ratio, f->lo, f->hi, f->p);
    }
}

static void parts(struct table *t, const struct compare *c)
{
    table_open(t, part_columns);
    for (int i = 0; i < c->parts; i++)
        table_add(t, part_change_name[c->part[i].is], c->part[i].what,
                  part_kind_name[c->part[i].kind], c->part[i].before_text, c->part[i].after_text,
                  c->part[i].before, c->part[i].after);
}

static void versions(struct table *t, const struct compare *c)
{
    table_open(t, version_columns);
    for (int i = 0; i < c->versions; i++)
        table_add(t, c->version[i].what, c->version[i].before, c->version[i].after);
}

enum { TABLES = 3 };

static json_t *together_json(const struct figure_change *f)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:i}", "change", change_name[f->is], "speed_ratio",
                     json_finite(f->ratio), "low", json_finite(f->lo), "high", json_finite(f->hi),
                     "p", json_finite(f->p), "epochs", f->blocks);
}

static json_t *report(const struct compare *c, const char *line, const struct args *a,
                      const struct table *t)
{
    return json_pack("{s:s, s:i, s:o, s:s, s:s, s:s, s:f, s:b, s:i, s:i, s:o, s:O, s:O, s:O}",
                     "format", "railgauge-compare", "version", 1, "provenance", json_provenance(),
                     "line", line, "before", a->dir[0], "after", a->dir[1], "tolerance",
                     a->tolerance, "worse", compare_code(c) == EXIT_BELOW, "matched", c->matched,
                     "unmatched", c->unmatched, "together", together_json(&c->together), "figures",
                     t[0].rows, "parts", t[1].rows, "versions", t[2].rows);
}

static void make(struct table *t, const struct compare *c, bool all)
{
    figures(&t[0], c, all);
    parts(&t[1], c);
    versions(&t[2], c);
}

static void print_text(const char *line, const struct compare *c, const struct table *t)
{
    char interval[CHANGE_TEXT];

    table_wrap(stdout, 2, "%s", line);
    if (c->together.blocks) {
        interval_text(interval, &c->together);
        table_wrap(stdout, 2, "bandwidth of pairs over NICs, all tiers together: %s, %+.1f %% (%s)",
                   change_name[c->together.is], 100 * (c->together.ratio - 1), interval);
    }
    table_wrap(
        stdout, 2,
        "not judged: differences between two whole campaigns, such as routes that are hashed "
        "anew, look like a change; --history of three or more estimates them");
    for (int i = 0; i < TABLES; i++)
        if (json_array_size(t[i].rows)) {
            putchar('\n');
            table_print(stdout, &t[i], 0);
        }
}

static int show(const struct compare *c, const struct args *a, struct err *err)
{
    struct table whole[TABLES], news[TABLES];
    char *line = compare_line(c);

    make(whole, c, true);
    make(news, c, a->all);
    int rc = json_answer(report(c, line, a, whole), a->output, a->in.json, err);
    if (rc == 0 && !a->in.json && !a->in.quiet)
        print_text(line, c, news);
    for (int i = 0; i < TABLES; i++) {
        table_free(&whole[i]);
        table_free(&news[i]);
    }
    free(line);
    return rc;
}

/* --- two campaigns, or many --- */

static int compare_two(const struct campaigns *c, const struct args *a, struct err *err)
{
    struct compare two = {0};
    int rc = compare_campaigns(&two, &c->campaign[0], &c->campaign[1], a->tolerance, err);
    int code = rc == 0 ? compare_code(&two) : 0;

    if (rc == 0)
        rc = show(&two, a, err);
    compare_free(&two);
    return rc < 0 ? -1 : code;
}

static json_t *history_report(const struct history *h, const char *line, const struct args *a)
{
    json_t *report = json_pack("{s:s, s:i, s:o, s:s, s:f, s:b}", "format", "railgauge-history",
                               "version", 1, "provenance", json_provenance(), "line", line,
                               "tolerance", a->tolerance, "worse", history_code(h) == EXIT_BELOW);

    json_t *rest = history_json(h);
    json_object_update(report, rest);
    json_decref(rest);
    return report;
}

static int compare_many(const struct campaigns *c, const struct args *a, struct err *err)
{
    struct history h;
    int rc = history_make(&h, c->campaign, c->count, a->tolerance, err), code = 0;

    if (rc == 0) {
        char *line = history_line(&h);
        code = history_code(&h);
        rc = json_answer(history_report(&h, line, a), a->output, a->in.json, err);
        if (rc == 0 && !a->in.json && !a->in.quiet) {
            table_wrap(stdout, 2, "%s", line);
            putchar('\n');
            history_print(stdout, &h, a->all);
        }
        free(line);
    }
    history_free(&h);
    return rc < 0 ? -1 : code;
}

static int cmd_compare(int argc, char **argv, struct err *err)
{
    struct args a = {.tolerance = 0.01};
    struct campaigns c;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = campaigns_open(&c, a.dir, a.dirs, true, err);
    if (rc == 0)
        rc = a.history ? compare_many(&c, &a, err) : compare_two(&c, &a, err);
    campaigns_free(&c);
    free(a.dir);
    return rc;
}

const struct command compare_command = {&command, cmd_compare};
