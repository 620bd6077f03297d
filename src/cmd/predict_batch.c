/* predict_batch.c - railgauge predict --batch TABLE: every row of a table of steps. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/predict_batch.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "step/score/score.h"

static void cell(FILE *out, double x, const char *format)
{
    fputc('\t', out);
    if (isfinite(x))
        fprintf(out, format, x);
}

static void row(FILE *out, const struct batch *b, int i)
{
    const struct batch_row *r = &b->row[i];

    fprintf(out, "%s\t%s\t%s\t%s", r->id, batch_status_name[r->status], r->family ? r->family : "",
            r->split);
    cell(out, r->measured, "%.6g");
    cell(out, r->predicted, "%.6g");
    cell(out, r->lo, "%.6g");
    cell(out, r->hi, "%.6g");
    cell(out, score_error(b, i, SCORE_ALONE), "%+.4f");
    cell(out, r->anchored, "%.6g");
    cell(out, score_error(b, i, SCORE_ANCHORED), "%+.4f");
    cell(out, r->stretch, "%.4f");
    fprintf(out, "\t%s\t%s\t%s\t%s\n", r->anchor >= 0 ? b->row[r->anchor].id : "", r->model,
            r->hardware, r->reason);
}

static void rows(FILE *out, const struct batch *b)
{
    fputs("id\tstatus\tfamily\tsplit\tmeasured_s\tpredicted_s\tlo_s\thi_s\terror\tanchored_s\t"
          "anchored_error\tstretch\tanchor\tmodel\thardware\treason\n",
          out);
    for (int i = 0; i < b->rows; i++)
        row(out, b, i);
}

static int answer(const struct predict_args *a, const struct batch *b, struct err *err)
{
    json_t *json = a->json || a->output ? score_json(b) : NULL;
    int rc = a->output ? json_save(json, a->output, err) : 0;

    if (rc == 0 && a->json) {
        json_print(stdout, json);
    } else if (rc == 0 && a->score) {
        predict_score(stdout, b);
    } else if (rc == 0) {
        rows(stdout, b);
    }
    json_decref(json);
    return rc;
}

int predict_batch(const struct predict_args *a, struct err *err)
{
    struct constants c;
    struct batch b;
    int rc = batch_load(&b, a->table, err);

    if (rc == 0) {
        for (int i = 0; i < b.notes; i++)
            log_info("%s", b.note[i]);
        rc = constants_load(&c, a->job.constants, err);
        if (rc == 0) {
            batch_ask(&b, &c);
            batch_predict(&b, &c);
            batch_anchor(&b, &c);
            rc = answer(a, &b, err);
        }
        constants_free(&c);
    }
    batch_free(&b);
    return rc;
}
