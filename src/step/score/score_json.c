/* SPDX-License-Identifier: BSD-3-Clause */
/* score_json.c - a batch and its score for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "step/score/score.h"

static json_t *row_json(const struct batch *b, int i)
{
    const struct batch_row *r = &b->row[i];
    bool anchored = r->anchor >= 0;

    return json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s?, s:s, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:s?, s:s}",
        "id", r->id, "line", r->line, "status", batch_status_name[r->status], "model", r->model,
        "hardware", r->hardware, "split", r->split, "release", r->release, "family", r->family,
        "layout", r->layout, "measured_s", json_finite(r->measured), "predicted_s",
        json_finite(r->predicted), "lo_s", json_finite(r->lo), "hi_s", json_finite(r->hi), "error",
        json_finite(score_error(b, i, SCORE_ALONE)), "anchored_s", json_finite(r->anchored),
        "anchored_error", json_finite(score_error(b, i, SCORE_ANCHORED)), "stretch",
        json_finite(r->stretch), "anchor", anchored ? b->row[r->anchor].id : NULL, "reason",
        r->reason);
}

static void add_errors(json_t *list, const struct batch *b, struct score_cut cut)
{
    for (int with = 0; with < SCORE_WITH_COUNT; with++) {
        struct score s;
        score_errors(&s, b, (enum score_with)with, cut);
        if (s.n)
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:o}", "with",
                                score_with_name[with], "by", score_by_name[cut.by], "value",
                                cut.value ? cut.value : "", "n", s.n, "median", s.median, "mean",
                                s.mean, "p90", s.p90, "max", s.max, "bias", s.bias, "inside",
                                json_finite(s.inside)));
    }
}

static json_t *errors_json(const struct batch *b)
{
    json_t *list = json_array();

    for (int by = 0; by < BY_COUNT; by++) {
        int n = 1;
        const char **value = by < BY_SPLIT ? NULL : score_values(b, (enum score_by)by, &n);
        for (int i = 0; i < n; i++)
            add_errors(list, b, (struct score_cut){(enum score_by)by, value ? value[i] : NULL});
        free(value);
    }
    return list;
}

static json_t *orders_json(const struct batch *b)
{
    json_t *list = json_array();

    for (int with = SCORE_ALONE; with <= SCORE_ANCHORED; with++) {
        for (int by = BY_ALL; by <= BY_TEST; by++) {
            struct score_order o;
            score_order(&o, b, (enum score_with)with, (struct score_cut){(enum score_by)by, NULL},
                        0.05);
            json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i}", "with",
                                                  score_with_name[with], "by", score_by_name[by],
                                                  "pairs", o.pairs, "right", o.right, "same_job",
                                                  o.same, "in_doubt", o.doubt));
        }
    }
    return list;
}

static json_t *bests_json(const struct batch *b)
{
    json_t *list = json_array();

    for (int with = SCORE_ALONE; with <= SCORE_ANCHORED; with++) {
        int n;
        struct score_best *best = score_best(b, (enum score_with)with, &n);
        for (int i = 0; i < n; i++)
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:s, s:i, s:i, s:b}", "with", score_with_name[with],
                                "family", best[i].family, "best", b->row[best[i].best].id, "rank",
                                best[i].rank, "jobs", best[i].jobs, "has_test", best[i].has_test));
        free(best);
    }
    return list;
}

static json_t *targets_json(const struct batch *b)
{
    struct score_target t[SCORE_TARGETS];
    json_t *list = json_array();

    score_targets(t, b);
    for (int i = 0; i < SCORE_TARGETS; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:o, s:f, s:s, s:b}", "what", t[i].what, "n", t[i].n,
                            "figure", json_finite(t[i].figure), "target", t[i].target, "is",
                            t[i].at_least ? "least" : "most", "met", score_met(&t[i])));
    return list;
}

json_t *score_json(const struct batch *b)
{
    int count[BATCH_STATUS_COUNT] = {0};
    json_t *rows = json_array(), *notes = json_array();

    for (int i = 0; i < b->rows; i++) {
        count[b->row[i].status]++;
        json_array_append_new(rows, row_json(b, i));
    }
    for (int i = 0; i < b->notes; i++)
        json_array_append_new(notes, json_string(b->note[i]));
    return json_pack("{s:s, s:i, s:o, s:s, s:{s:i, s:i, s:i, s:i}, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "format", "railgauge-batch", "version", 1, "provenance", json_provenance(),
                     "table", b->table.path, "counts", "rows", b->rows, "predicted",
                     count[BATCH_PREDICTED], "misses", count[BATCH_MISS], "claims",
                     count[BATCH_CLAIM], "targets", targets_json(b), "errors", errors_json(b),
                     "order", orders_json(b), "best", bests_json(b), "notes", notes, "rows", rows);
}
