/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_case.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/case_text.h"
#include "step/score/case.h"

/* Names as typed, with "all" in full; the caller frees each and the list. */
static int expand(char ***names, const struct predict_args *a)
{
    int n = 0;

    *names = NULL;
    for (int i = 0; i < a->case_count; i++) {
        if (strcmp(a->cases[i], "all") != 0) {
            MEM_PUSH(*names, n) = mem_strdup(a->cases[i]);
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

static int one(const char *name, const struct predict_args *a, json_t *list, int *surprises,
               struct err *err)
{
    struct casefile c;
    int rc = case_load(&c, name, &a->job, err);

    if (rc == 0)
        rc = case_judge(&c, err);
    if (rc == 0) {
        *surprises += case_surprises(&c);
        json_array_append_new(list, case_json(&c));
        if (a->markdown)
            case_markdown(stdout, &c);
        else if (!a->json)
            case_text(stdout, &c);
    }
    case_free(&c);
    return rc;
}

int predict_cases(const struct predict_args *a, struct err *err)
{
    const struct job_opts *o = &a->job;
    char **names;

    if (o->matrix || o->fabric || o->layout || o->gpus || o->racks)
        return err_usage(err, "--case has its own jobs: of the options that say which job, only "
                              "--constants goes with it");
    int n = expand(&names, a), rc = 0, surprises = 0;
    json_t *list = json_array();

    if (a->markdown && !a->json)
        case_markdown_head(stdout);
    for (int i = 0; rc == 0 && i < n; i++)
        rc = one(names[i], a, list, &surprises, err);
    json_t *root = json_pack("{s:s, s:i, s:o, s:o}", "format", "railgauge-verdicts", "version", 1,
                             "provenance", json_provenance(), "cases", list);
    if (rc == 0 && a->output)
        rc = json_save(root, a->output, err);
    if (rc == 0 && a->json) {
        json_print(stdout, root);
    }
    json_decref(root);
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return rc < 0 ? -1 : surprises ? EXIT_BELOW : EXIT_GOOD;
}
