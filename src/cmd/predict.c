/* predict.c - railgauge predict: the step time of a model with a layout on a fabric. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/predict_args.h"
#include "cmd/predict_batch.h"
#include "cmd/predict_case.h"
#include "cmd/predict_text.h"
#include "step/anchor.h"

static int print(const struct job *j, const struct predict_args *a, struct prediction *p,
                 struct err *err)
{
    json_t *json = predict_json(p, &j->matrix);
    int rc = a->output ? json_save(json, a->output, err) : 0;

    if (rc == 0 && a->json) {
        json_print(stdout, json);
    } else if (rc == 0) {
        predict_text(stdout, p, &j->matrix, &a->job.recipe, a->explain);
    }
    json_decref(json);
    return rc;
}

/* p: the prediction from the anchor, with what it changed. */
static int from_anchor(struct prediction *p, struct question *q, const struct predict_args *a,
                       const char *name, struct err *err)
{
    struct anchor anchor;
    int rc = predict_step(p, q, err);
    double without = p->sec;

    if (rc == 0)
        prediction_free(p);
    if (anchor_open(&anchor, name, q->constants, err) < 0 ||
        anchor_apply(&anchor, q, a->release, err) < 0)
        rc = -1;
    if (rc == 0)
        rc = predict_step(p, q, err);
    if (rc == 0)
        anchor_notes(p, &anchor, q, a->release, without);
    anchor_free(&anchor);
    return rc;
}

/* *fits: into the memory of a GPU. */
static int answer(const struct job *j, const struct predict_args *a, bool *fits, struct err *err)
{
    struct question q = job_question(j, &a->job);
    q.release = a->release;
    const char *anchor = a->anchor ? a->anchor : a->save_anchor;
    struct prediction p;

    if (a->save_anchor && anchor_save(&a->job, j, a->measured, a->release, a->save_anchor, err) < 0)
        return -1;
    int rc = anchor ? from_anchor(&p, &q, a, anchor, err) : predict_step(&p, &q, err);
    if (rc == 0)
        rc = print(j, a, &p, err);
    *fits = rc == 0 && memory_fits(&p.memory);
    prediction_free(&p);
    return rc;
}

int cmd_predict(int argc, char **argv)
{
    struct predict_args a;
    struct job j;
    struct err err = {0, ""};

    predict_args(&a, argc, argv);
    if (a.table)
        return predict_batch(&a, &err) < 0 ? cmd_fail("predict", &err) : EXIT_GOOD;
    if (a.case_count > 0) {
        int verdict = predict_cases(&a, &err);
        free(a.cases);
        return verdict < 0 ? cmd_fail("predict", &err) : verdict;
    }
    bool fits = false;
    int rc = job_open(&j, &a.job, &err) < 0 || answer(&j, &a, &fits, &err) < 0;
    job_free(&j);
    return rc ? cmd_fail("predict", &err) : fits ? EXIT_GOOD : EXIT_BELOW;
}
