/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/text/report.h"

#include <math.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

struct row {
    const char *label;
    double predicted, measured; /* seconds of a step that are seen */
    double one;                 /* measured seconds of one message; 0: not timed */
    const struct term *term;    /* of messages */
};

enum { ROWS = TRAFFIC_MAX + 1 };

static double bubble(const struct prediction *p)
{
    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_BUBBLE)
            return p->term[i].sec;
    return 0;
}

/* A rank that waits for its pipeline neighbour cannot tell the bubble from the message. */
static int make_rows(struct row row[ROWS], const struct replay_case *c,
                     const struct replay_result *r)
{
    const struct prediction *p = &c->prediction;
    int n = 0;

    row[n++] = (struct row){"compute", p->compute, r->compute, 0, NULL};
    for (int i = 0; i < p->terms && n < ROWS; i++) {
        const struct term *t = &p->term[i];
        if (t->kind != TERM_MESSAGE)
            continue;
        bool boundary = t->phase == PHASE_BOUNDARY;
        row[n] = (struct row){boundary ? "pp sendrecv and bubble" : t->label,
                              t->sec + (boundary ? bubble(p) : 0), r->message[n - 1],
                              r->run[n - 1] / t->count, t};
        n++;
    }
    return n;
}

static void add_row(struct table *t, const struct row *row, double step)
{
    char predicted[UNITS_TEXT], measured[UNITS_TEXT], bytes[UNITS_TEXT], error[16] = "";
    char count[64] = "", one[UNITS_TEXT] = "", took[UNITS_TEXT] = "";

    if (row->term) {
        snprintf(count, sizeof(count), "%.0f x %s", row->term->count,
                 units_bytes_text(bytes, row->term->bytes));
        units_seconds_text(one, row->term->one);
    }
    if (row->one > 0)
        units_seconds_text(took, row->one);
    if (fmin(row->predicted, row->measured) > 0.01 * step) /* else an error says nothing */
        snprintf(error, sizeof(error), "%+.1f %%", 100 * (row->predicted / row->measured - 1));
    table_add(t, row->label, units_seconds_text(predicted, row->predicted),
              units_seconds_text(measured, row->measured), error, count, one, took);
}

static void range(const struct replay_result *r, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = 0;
    for (int i = 0; i < r->steps; i++) {
        *lo = fmin(*lo, r->step[i]);
        *hi = fmax(*hi, r->step[i]);
    }
}

static void replay_text(FILE *out, const struct replay_case *c, const struct replay_result *r)
{
    static const struct table_column columns[] = {{NULL, "seen", "text"},
                                                  {NULL, "predicted", "figure"},
                                                  {NULL, "measured", "figure"},
                                                  {NULL, "off by", "figure"},
                                                  {NULL, "messages a rank", "figure"},
                                                  {NULL, "one", "figure"},
                                                  {NULL, "took", "figure"},
                                                  {0}};
    const struct prediction *p = &c->prediction;
    char lo[UNITS_TEXT], hi[UNITS_TEXT];
    struct row row[ROWS];
    struct table table;
    double from, to;
    int n = make_rows(row, c, r);

    range(r, &from, &to);
    fprintf(out, "%s, %s, %s: %d ranks, %d microbatch%s, shrunk by %.4g, compute by %s\n", p->model,
            p->layout, p->strategy, p->ranks, p->microbatches, p->microbatches == 1 ? "" : "es",
            c->shrink, burn_name[r->burn]);
    fprintf(out, "%d steps from %s to %s\n\n", r->steps, units_seconds_text(lo, from),
            units_seconds_text(hi, to));
    table_open(&table, columns);
    for (int i = 0; i < n; i++)
        add_row(&table, &row[i], r->sec);
    add_row(&table, &(struct row){"step", p->sec, r->sec, 0, NULL}, r->sec);
    table_print(out, &table, 0);
    table_free(&table);
}

static json_t *pack_row(const struct row *row)
{
    json_t *out = json_pack("{s:s, s:f, s:f}", "term", row->label, "predicted_s", row->predicted,
                            "measured_s", row->measured);

    if (row->term)
        json_object_set_new(out, "one_predicted_s", json_real(row->term->one));
    if (row->one > 0)
        json_object_set_new(out, "one_measured_s", json_real(row->one));
    return out;
}

static json_t *replay_json(const struct replay_case *c, const struct replay_result *r,
                           const struct matrix *m)
{
    const struct prediction *p = &c->prediction;
    json_t *steps = json_array(), *terms = json_array();
    struct row row[ROWS];
    int n = make_rows(row, c, r);

    for (int i = 0; i < r->steps; i++)
        json_array_append_new(steps, json_real(r->step[i]));
    for (int i = 0; i < n; i++)
        json_array_append_new(terms, pack_row(&row[i]));
    return json_pack("{s:s, s:i, s:o, s:f, s:f, s:s, s:f, s:f, s:f, s:o, s:o, s:o}", "format",
                     "railgauge-replay", "version", 1, "provenance", json_provenance(), "shrink",
                     c->shrink, "flops", p->rate.of[WORK_LINEAR], "burn", burn_name[r->burn],
                     "predicted_s", p->sec, "measured_s", r->sec, "error", p->sec / r->sec - 1,
                     "steps_s", steps, "terms", terms, "prediction", predict_json(p, m));
}

int replay_report(const struct replay_outcome *o, const char *output, bool json, struct err *err)
{
    json_t *root = replay_json(&o->made, &o->result, &o->job.matrix);
    int rc = json_answer(root, output, json, err);

    if (rc == 0 && !json)
        replay_text(stdout, &o->made, &o->result);
    return rc;
}
