/* SPDX-License-Identifier: BSD-3-Clause */
/* claims.c - railgauge-calibrate claims: the step model against the claims of publications. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "calibrate/case.h"
#include "cmd/calibrate/tables_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/text/report.h"
#include "step/job.h"

struct args {
    struct job_opts job; /* only its constants are an option */
    const char **name, *output;
    int names;
    bool json, markdown;
};

static void each_case(name_taker *take, void *to)
{
    char **names;
    int n = case_names(&names);

    for (int i = 0; i < n; i++) {
        take(to, names[i]);
        free(names[i]);
    }
    free(names);
}

static const struct opt options[] = {
    {"markdown", 0, NULL, "print claims and verdicts as a table of Markdown",
     OPT_INTO(struct args, markdown)},
    CONSTANTS_ROW(struct args, job.constants),
    INPUT_JSON(struct args, json),
    {"output", 'o', "FILE", "also write the JSON", OPT_INTO(struct args, output)},
    {0},
};

static const struct opt words[] = {{"case", .help = "give a case, or all",
                                    OPT_LIST(struct args, name, names), .values = each_case},
                                   {0}};

static const struct opt_line command = {
    .options = options,
    .words = words,
    .usage = "CASE|FILE|all...",
    .doc =
        "Predict the jobs of a publication, and judge its claims."
        "\vCASE is a name of jobs/training/cases, and FILE has a \"/\" or \".json\" in its name.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Judge one publication", "railgauge-calibrate claims llama-8b-gb200-h100"),
            OPT_ELSEWHERE("Print all verdicts as a table",
                          "railgauge-calibrate claims all --markdown"),
            {0}},
    .exits = EXIT_CODES(
        "1 a verdict is not the one that the case file expects, 2 could not judge, ", ""),
};

/* Names as typed, with "all" expanded.  The caller frees each name and the list. */
static int expand(char ***names, const struct args *a)
{
    int n = 0;

    *names = NULL;
    for (int i = 0; i < a->names; i++) {
        if (strcmp(a->name[i], "all") != 0) {
            MEM_PUSH(*names, n) = mem_strdup(a->name[i]);
            continue;
        }
        char **shipped;
        int count = case_names(&shipped);
        for (int k = 0; k < count; k++)
            MEM_PUSH(*names, n) = shipped[k];
        free(shipped);
    }
    return n;
}

static int print_cases(const struct args *a, const struct casefile *c, int n, struct err *err)
{
    json_t *root = cases_json(c, n);

    json_object_update_new(root, json_pack("{s:s, s:i, s:o}", "format", "railgauge-verdicts",
                                           "version", 1, "provenance", json_provenance()));
    if (!a->json)
        cases_text(stdout, c, n, a->markdown);
    int rc = json_answer(json_incref(root), a->output, a->json, err);
    json_decref(root);
    return rc;
}

static int claims(const struct args *a, struct err *err)
{
    char **names;
    int n = expand(&names, a), rc = 0;
    struct casefile *c = mem_calloc((size_t)n + 1, sizeof(*c));

    for (int i = 0; rc == 0 && i < n; i++)
        rc = case_load(&c[i], names[i], &a->job, err) < 0 ? -1 : case_evaluate(&c[i], err);
    if (rc == 0)
        rc = print_cases(a, c, n, err);
    int unexpected = rc < 0 ? 0 : cases_count(c, n).unexpected;
    for (int i = 0; i < n; i++) {
        case_free(&c[i]);
        free(names[i]);
    }
    free(c);
    free(names);
    return rc < 0 ? -1 : unexpected ? EXIT_BELOW : EXIT_GOOD;
}

static int cmd_claims(int argc, char **argv, struct err *err)
{
    struct args a = {.name = NULL};

    job_defaults(&a.job);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int verdict = claims(&a, err);
    free(a.name);
    return verdict;
}

const struct command claims_command = {&command, cmd_claims};
