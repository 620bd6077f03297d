/* SPDX-License-Identifier: BSD-3-Clause */
/* accept.c - railgauge accept: the verdict on a campaign, against limits and a reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/command.h"
#include "cmd/judged_impl.h"

struct args {
    struct judged_args of;
    const char *output, *learn;
    const char **dir;
    int dirs;
    int style; /* enum judged_style */
    bool list, all;
};

static const struct opt options[] = {
    JUDGED_AGAINST(struct args, of),
    JUDGED_LIMITS(struct args, of),
    INPUT_BELOW(struct args, of.in.below),
    {"output", 'o', "FILE", "also write the verdict as JSON", OPT_INTO(struct args, output)},
    JUDGED_STYLE(struct args, style),
    {"all", 0, NULL, "list the checks that passed, too", OPT_INTO(struct args, all)},
    {"list-checks", 0, NULL, "print the checks that a limits file may contain",
     OPT_INTO(struct args, list)},
    {"learn", 0, "FILE",
     "write limits for --limits from three or more good campaigns of one machine",
     OPT_INTO(struct args, learn)},
    INPUT_JSON(struct args, of.in.json),
    INPUT_QUIET(struct args, of.in.quiet),
    {0},
};

static const struct opt words[] = {{"campaign", OPT_LIST(struct args, dir, dirs)}, {0}};

static int need_campaign(void *args, struct err *err)
{
    struct args *a = args;

    if (!a->list && !a->dirs)
        return err_usage(err, "give a campaign's directory or a matrix");
    if (!a->learn && a->dirs > 1)
        return err_usage(err, "%s: one campaign is judged at a time (--learn takes several)",
                         a->dir[1]);
    a->of.in.file = a->dirs ? a->dir[0] : NULL;
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = need_campaign,
    .usage = "DIR|MATRIX\n--learn FILE DIR DIR DIR...",
    .doc = "Judge a campaign: compare each figure and its interval with its limit, and "
           "give one verdict.\vA limit without a measurement or a reference is UNKNOWN, "
           "and sets the exit code.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Judge a campaign by the preset of its GPUs", "railgauge accept campaign"),
            OPT_EXAMPLE("Judge it by a preset", "railgauge accept campaign --against hgx-h100"),
            OPT_EXAMPLE("Judge it by an earlier campaign and by own limits",
                        "railgauge accept campaign --against last-month --limits site.json"),
            OPT_EXAMPLE("Learn the limits of this machine from good campaigns",
                        "railgauge accept --learn site.json campaign-2026-04 campaign-2026-05 "
                        "campaign-2026-06"),
            OPT_EXAMPLE("Print one line for Nagios",
                        "railgauge accept campaign --exit-style nagios"),
            {0}},
    .exits = EXIT_CODES("1 a check fails, 2 could not judge, ", ""),
};

/* --- output --- */

static json_t *report(const struct judged *j, const struct args *args)
{
    const struct accept *a = &j->accept;
    json_t *parts = parts_json(&j->parts);

    json_t *root = json_pack(
        "{s:s, s:i, s:o, s:s, s:s, s:s, s:s?, s:s?, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "format",
        "railgauge-accept", "version", 1, "provenance", json_provenance(), "verdict",
        accept_name[a->verdict], "line", j->line, "campaign", args->of.in.file, "against",
        j->against, "limits_file", args->of.limits, "passed", a->count[ACCEPT_PASS], "warnings",
        a->count[ACCEPT_WARN], "failed", a->count[ACCEPT_FAIL], "unknown", a->count[ACCEPT_UNKNOWN],
        "seen", judged_seen(j), "racks", judged_racks(j), "checks", judged_json(a));
    json_object_update(root, parts);
    json_decref(parts);
    return root;
}

static int show(const struct judged *j, const struct args *args, struct err *err)
{
    bool own = args->style == JUDGED_OWN;
    int rc = json_answer(report(j, args), args->output, own && args->of.in.json, err);

    if (rc == 0 && !own)
        judged_nagios(j->accept.verdict, j->line, &j->accept);
    else if (rc == 0 && !args->of.in.json && !args->of.in.quiet)
        judged_print(j, args->of.in.file, args->all);
    return rc;
}

static void list_checks(void)
{
    for (int i = 0; i < CHECK_COUNT; i++)
        printf("%-15s %-8s %s, %s\n", limit_check[i].name, judged_unit[limit_check[i].unit],
               limit_check[i].what, limit_check[i].least ? "at_least" : "at_most");
}

/* --- limits of this machine --- */

/* A campaign that fails is no good one. */
static int open_good(struct judged *j, const struct args *a, int i, struct err *err)
{
    struct judged_args of = a->of;

    of.in.file = a->dir[i];
    judged_init(j);
    if (judged_open(j, &of, err) < 0)
        return -1;
    if (j->accept.verdict != ACCEPT_FAIL)
        return 0;
    err_set(err, "%s is no good campaign to learn from: %s", a->dir[i], j->line);
    err->code = EXIT_BELOW;
    return -1;
}

static int learn(const struct args *a, struct err *err)
{
    struct judged *j = mem_calloc((size_t)a->dirs + 1, sizeof(*j));
    const struct matrix **m = mem_calloc((size_t)a->dirs + 1, sizeof(*m));
    char *from = mem_printf("learned from %s to %s", a->dir[0], a->dir[a->dirs - 1]);
    json_t *out;
    int rc = 0, opened = 0;

    while (rc == 0 && opened < a->dirs) {
        rc = open_good(&j[opened], a, opened, err);
        m[opened] = &j[opened].in.m;
        opened++;
    }
    if (rc == 0)
        rc = accept_learn(&out, m, a->dirs, from, err);
    if (rc == 0)
        rc = json_answer(out, a->learn, a->of.in.json, err);
    while (opened > 0)
        judged_free(&j[--opened]);
    free(from);
    free(m);
    free(j);
    return rc;
}

static int judge_one(const struct args *a, struct err *err)
{
    struct judged j;

    judged_init(&j);
    int rc = judged_open(&j, &a->of, err);
    if (rc == 0)
        rc = show(&j, a, err);
    if (rc == 0)
        rc = a->style == JUDGED_NAGIOS ? (int)j.accept.verdict : accept_code(&j.accept);
    judged_free(&j);
    return rc;
}

static int cmd_accept(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    int rc = EXIT_GOOD;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (a.list)
        list_checks();
    else
        rc = a.learn ? learn(&a, err) : judge_one(&a, err);
    free(a.dir);
    return rc;
}

const struct command accept_command = {&command, cmd_accept};
