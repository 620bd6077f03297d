/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - railgauge report: a campaign as an HTML file, with a summary on the terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/campaigns_impl.h"
#include "cmd/command.h"
#include "cmd/judged_impl.h"
#include "report/page/page.h"

struct args {
    struct judged_args of;
    const char *output, *title;
    const char **dir;
    int dirs;
    bool history;
};

static const struct opt options[] = {
    {"output", 'o', "FILE", "page to write (default DIR/report.html)",
     OPT_INTO(struct args, output)},
    {"title", 0, "TEXT", "title above the verdict", OPT_INTO(struct args, title)},
    JUDGED_AGAINST(struct args, of),
    JUDGED_LIMITS(struct args, of),
    INPUT_BELOW(struct args, of.in.below),
    {"history", 0, NULL, "show DIR beside earlier campaigns: drift, parts that came and went",
     OPT_INTO(struct args, history)},
    {"json", 0, NULL, "print the data of the page, and write no page",
     OPT_INTO(struct args, of.in.json)},
    {"quiet", 'q', NULL, "write the page and print nothing", OPT_INTO(struct args, of.in.quiet)},
    {0},
};

static const struct opt words[] = {{"campaign", OPT_LIST(struct args, dir, dirs),
                                    .help = "give a campaign's directory or a matrix"},
                                   {0}};

static int take_campaigns(void *args, struct err *err)
{
    struct args *a = args;
    json_t *title = json_string(a->title ? a->title : "");
    bool good = title != NULL;

    json_decref(title);
    if (!good)
        return err_usage(err, "--title is not UTF-8");
    a->of.in.file = a->dir[0];
    if (!a->history && a->dirs > 1)
        return err_usage(err, "one campaign has a page; others are for --history");
    return a->of.in.json && a->output ? err_usage(err, "--json writes no page: no --output") : 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = take_campaigns,
    .usage = "DIR|MATRIX\n--history DIR EARLIER...",
    .doc = "Write a campaign as one HTML page: verdict, parts to act on, checks, racks, "
           "map of pairs, collectives, coverage, environment, checksums.\vThe page needs "
           "no network and no other file, and can be printed or mailed. Its verdict is "
           "that of railgauge accept, and so is the exit code.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Write campaign/report.html", "railgauge report campaign"),
            OPT_EXAMPLE("Choose file and title",
                        "railgauge report campaign -o rack-07.html --title \"Rack 07\""),
            OPT_EXAMPLE("Judge by a preset and own limits",
                        "railgauge report campaign --against hgx-h100 --limits site.json"),
            OPT_EXAMPLE("Print the parts to act on as JSON",
                        "railgauge report campaign --json | jq .parts"),
            {0}},
    .exits = EXIT_CODES("1 a check fails, 2 could not judge, ", ""),
};

/* Path beside the input. */
static char *page_path(const struct args *a)
{
    struct stat st;

    if (a->output)
        return mem_strdup(a->output);
    bool dir = stat(a->of.in.file, &st) == 0 && S_ISDIR(st.st_mode);
    return dir ? file_join(a->of.in.file, "report.html")
               : file_beside(a->of.in.file, "report.html");
}

static int write_page(const struct page_facts *facts, json_t *data, const char *path,
                      struct err *err)
{
    struct file_out out;

    if (file_begin(&out, path, err) < 0)
        return -1;
    page_write(out.stream, facts, data);
    int rc = file_commit(&out, err);
    file_abort(&out);
    return rc;
}

static int show(const struct judged *j, const struct args *a, const struct history *history,
                struct err *err)
{
    json_t *checks = judged_json(&j->accept);
    struct page page = {.path = a->of.in.file,
                        .title = a->title,
                        .m = &j->in.m,
                        .t = &j->in.t,
                        .p = j->in.has & INPUT_POINTS ? &j->in.p : NULL,
                        .accept = &j->accept,
                        .line = j->line,
                        .parts = &j->parts,
                        .checks = checks,
                        .told = parts_json(&j->parts),
                        .against = j->against,
                        .limits_name = j->limits_name,
                        .history = history};
    json_object_set_new(page.told, "seen", judged_seen(j));
    struct page_facts *facts = page_facts(&page);
    json_t *data = page_data(facts);
    char *path = page_path(a);
    int rc = a->of.in.json ? json_answer(json_incref(data), NULL, true, err)
                           : write_page(facts, data, path, err);

    if (rc == 0 && !a->of.in.json && !a->of.in.quiet) {
        judged_print(j, a->of.in.file, false);
        printf("\n%s\n", path);
    }
    json_decref(data);
    json_decref(page.told);
    page_facts_free(facts);
    json_decref(checks);
    free(path);
    return rc;
}

/* --- with a history --- */

/* Keep the campaign only once, whatever its path, and all others. */
static void without_itself(struct args *a)
{
    char *self = realpath(a->dir[0], NULL);
    int kept = 1;

    for (int i = 1; i < a->dirs; i++) {
        char *path = realpath(a->dir[i], NULL);
        if (!self || !path || strcmp(self, path) != 0)
            a->dir[kept++] = a->dir[i];
        free(path);
    }
    a->dirs = kept;
    free(self);
}

static int show_history(const struct judged *j, struct args *a, struct err *err)
{
    static const double tolerance = 0.01;
    struct campaigns c;
    struct history h = {0};

    without_itself(a);
    int rc = a->dirs < HISTORY_LEAST
                 ? err_usage(err, "--history needs %d campaigns or more", HISTORY_LEAST)
                 : 0;
    if (rc == 0)
        rc = campaigns_open(&c, a->dir, a->dirs, true, err);
    else
        return -1;
    if (rc == 0)
        rc = history_make(&h, c.campaign, c.count, tolerance, err);
    if (rc == 0 && h.campaign[h.campaigns - 1] != &c.campaign[0])
        rc = err_data(err, "--history: %s is later than %s, whose page this is",
                      h.campaign[h.campaigns - 1]->path, a->dir[0]);
    if (rc == 0)
        rc = show(j, a, &h, err);
    history_free(&h);
    campaigns_free(&c);
    return rc;
}

static int cmd_report(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    struct judged j;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    judged_init(&j);
    int rc = judged_open(&j, &a.of, err);
    if (rc == 0)
        rc = a.history ? show_history(&j, &a, err) : show(&j, &a, NULL, err);
    if (rc == 0)
        rc = accept_code(&j.accept);
    judged_free(&j);
    free(a.dir);
    return rc;
}

const struct command report_command = {&command, cmd_report};
