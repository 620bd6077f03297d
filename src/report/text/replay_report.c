/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/report.h"

#include <math.h>

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"

struct row {
    const char *label;
    double predicted, measured; /* exposed seconds of a step */
    double bubble;           /* pipeline bubble, predicted; part of the above, but not a message */
    double one;              /* measured s of a message; 0: not timed */
    const struct term *term; /* term of the messages */
};

enum { ROWS = TRAFFIC_MAX + 1 };

struct both {
    double predicted, measured;
};

/* Sums that a replay is judged by: all messages of a step. */
struct messages {
    struct both seen;  /* exposed on the main stream, without the bubble */
    struct both calls; /* duration of the timed calls, exposed or hidden */
    struct both timed; /* exposed part of the timed calls */
};

enum { SAYS_NOTHING = 100 }; /* below 1/100 of the step no error is given */

static double bubble(const struct prediction *p)
{
    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_BUBBLE)
            return p->term[i].sec;
    return 0;
}

/* A rank that waits for its pipeline neighbour cannot separate the bubble from the message. */
static int make_rows(struct row row[ROWS], const struct replay_case *c,
                     const struct replay_result *r)
{
    const struct prediction *p = &c->prediction;
    int n = 0;

    row[n++] = (struct row){"compute", p->compute, r->compute, 0, 0, NULL};
    for (int i = 0; i < p->terms && n < ROWS; i++) {
        const struct term *t = &p->term[i];
        if (t->kind != TERM_MESSAGE)
            continue;
        bool boundary = t->phase == PHASE_BOUNDARY;
        row[n] = (struct row){boundary ? "pp sendrecv and bubble" : t->label,
                              t->sec + (boundary ? bubble(p) : 0),
                              r->message[n - 1],
                              boundary ? bubble(p) : 0,
                              r->run[n - 1] / t->count,
                              t};
        n++;
    }
    return n;
}

static struct messages sum_up(const struct row *row, int n)
{
    struct messages m = {.seen = {0, 0}};

    for (const struct row *r = row; n && r < row + n; r++) {
        if (!r->term)
            continue;
        double seen = fmax(0, r->measured - r->bubble);
        m.seen.predicted += r->predicted - r->bubble;
        m.seen.measured += seen;
        if (!(r->one > 0))
            continue;
        m.calls.predicted += r->term->one * r->term->count;
        m.calls.measured += r->one * r->term->count;
        m.timed.predicted += r->predicted;
        m.timed.measured += seen;
    }
    return m;
}

/* predicted / measured - 1; NAN if either is too small a part of the step. */
static double error_of(const struct both *b, double step)
{
    return fmin(b->predicted, b->measured) * SAYS_NOTHING > step ? b->predicted / b->measured - 1
                                                                 : NAN;
}

/* Share of hidden time; NAN: nothing was timed. */
static double hidden(double calls, double seen)
{
    return calls > 0 ? fmax(0, 1 - seen / calls) : NAN;
}

static void add_row(struct table *t, const struct row *row, double step)
{
    char predicted[UNITS_TEXT], measured[UNITS_TEXT], bytes[UNITS_TEXT], error[16] = "";
    double off = error_of(&(struct both){row->predicted, row->measured}, step);
    char count[64] = "", one[UNITS_TEXT] = "", took[UNITS_TEXT] = "";

    if (row->term) {
        snprintf(count, sizeof(count), "%.0f x %s", row->term->count,
                 units_bytes_text(bytes, row->term->bytes));
        units_seconds_text(one, row->term->one);
    }
    if (row->one > 0)
        units_seconds_text(took, row->one);
    if (!isnan(off))
        snprintf(error, sizeof(error), "%+.1f %%", 100 * off);
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

/* Print below the table the hidden share, and how far the figures prove it. */
static void say_hidden(FILE *out, const struct messages *m)
{
    if (m->calls.measured > 0)
        fprintf(out, "of the time in calls %.0f %% is hidden, predicted %.0f %%\n",
                100 * hidden(m->calls.measured, m->timed.measured),
                100 * hidden(m->calls.predicted, m->timed.predicted));
}

static void say_proof(FILE *out, const struct prediction *p)
{
    fprintf(out,
            "compute is a wait of set length, %.0f %% of the step, and right by construction: what "
            "is\nproved are the messages and what the two streams hide of them, not compute, nor "
            "what\na GPU's kernels and messages take from each other\n",
            100 * p->compute / p->sec);
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
    const struct messages m = sum_up(row, n);

    range(r, &from, &to);
    fprintf(out, "%s, %s, %s: %d ranks, %d microbatch%s, shrunk by %.4g, compute by %s\n", p->model,
            p->layout, p->strategy, p->ranks, p->microbatches, p->microbatches == 1 ? "" : "es",
            c->shrink, burn_name[r->burn]);
    fprintf(out, "%d steps from %s to %s\n\n", r->steps, units_seconds_text(lo, from),
            units_seconds_text(hi, to));
    table_open(&table, columns);
    for (int i = 0; i < n; i++)
        add_row(&table, &row[i], r->sec);
    const struct row foot[] = {
        {"messages, seen", m.seen.predicted, m.seen.measured, 0, 0, NULL},
        {"messages, in calls", m.calls.predicted, m.calls.measured, 0, 0, NULL},
        {"step", p->sec, r->sec, 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(foot) / sizeof(*foot); i++)
        add_row(&table, &foot[i], r->sec);
    table_print(out, &table, 0);
    table_free(&table);
    say_hidden(out, &m);
    say_proof(out, p);
}

static json_t *pack_row(const struct row *row)
{
    json_t *out = json_pack("{s:s, s:f, s:f}", "term", row->label, "predicted_s", row->predicted,
                            "measured_s", row->measured);

    if (row->bubble > 0)
        json_object_set_new(out, "bubble_s", json_real(row->bubble));
    if (row->term)
        json_object_update_new(out,
                               json_pack("{s:f, s:f}", "one_predicted_s", row->term->one,
                                         "calls_predicted_s", row->term->one * row->term->count));
    if (row->one > 0)
        json_object_update_new(out, json_pack("{s:f, s:f}", "one_measured_s", row->one,
                                              "calls_measured_s", row->one * row->term->count));
    return out;
}

static json_t *pack_both(const struct both *b, double step)
{
    return json_pack("{s:f, s:f, s:o}", "predicted_s", b->predicted, "measured_s", b->measured,
                     "error", json_finite(error_of(b, step)));
}

static json_t *pack_messages(const struct messages *m, double step)
{
    json_t *share = json_pack(
        "{s:o, s:o}", "predicted", json_finite(hidden(m->calls.predicted, m->timed.predicted)),
        "measured", json_finite(hidden(m->calls.measured, m->timed.measured)));

    return json_pack("{s:o, s:o, s:o}", "seen", pack_both(&m->seen, step), "calls",
                     pack_both(&m->calls, step), "hidden", share);
}

static json_t *replay_json(const struct replay_case *c, const struct replay_result *r,
                           const struct matrix *m)
{
    const struct prediction *p = &c->prediction;
    json_t *steps = json_array(), *terms = json_array();
    struct row row[ROWS];
    int n = make_rows(row, c, r);
    const struct messages sum = sum_up(row, n);

    for (int i = 0; i < r->steps; i++)
        json_array_append_new(steps, json_real(r->step[i]));
    for (int i = 0; i < n; i++)
        json_array_append_new(terms, pack_row(&row[i]));
    return json_pack("{s:s, s:i, s:o, s:f, s:f, s:s, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o}",
                     "format", "railgauge-replay", "version", 1, "provenance", json_provenance(),
                     "shrink", c->shrink, "flops", p->rate.of[WORK_LINEAR], "burn",
                     burn_name[r->burn], "predicted_s", p->sec, "measured_s", r->sec, "error",
                     p->sec / r->sec - 1, "compute_share", p->compute / p->sec, "messages",
                     pack_messages(&sum, r->sec), "steps_s", steps, "terms", terms, "prediction",
                     predict_json(p, m));
}

int replay_report(const struct replay_outcome *o, const char *output, bool json, struct err *err)
{
    json_t *root = replay_json(&o->made, &o->result, &o->job.matrix);
    int rc = json_answer(root, output, json, err);

    if (rc == 0 && !json)
        replay_text(stdout, &o->made, &o->result);
    return rc;
}
