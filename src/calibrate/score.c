/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

const char *const score_with_name[SCORE_WITH_COUNT] = {"no anchor", "one anchor", "naive",
                                                       "same layout", "memory"};
const char *const score_by_name[BY_COUNT] = {"all",      "test",     "rest",      "split",
                                             "model",    "hardware", "publisher", "release",
                                             "left out", "known"};

static bool is_test(const struct batch_row *r)
{
    return !strncmp(r->split, "test_", 5);
}

static const char *value_of(const struct batch_row *r, enum score_by by)
{
    switch (by) {
    case BY_SPLIT:
        return r->split;
    case BY_MODEL:
        return r->model;
    case BY_HARDWARE:
        return r->hardware;
    case BY_PUBLISHER:
        return r->publisher;
    case BY_RELEASE:
        return r->release;
    case BY_KNOWN:
        return known_name[r->known];
    case BY_LEFT:
        return r->group ? r->group : "";
    default:
        return "";
    }
}

static bool score_in(const struct batch_row *r, struct score_cut cut)
{
    switch (cut.by) {
    case BY_ALL:
        return true;
    case BY_TEST:
        return is_test(r);
    case BY_REST:
        return !is_test(r);
    default:
        return !strcmp(value_of(r, cut.by), cut.value);
    }
}

const char **score_values(const struct batch *b, enum score_by by, int *count)
{
    const char **list = NULL;

    *count = 0;
    for (int i = 0; i < b->rows; i++) {
        const char *value = value_of(&b->row[i], by);
        bool known = b->row[i].status != BATCH_PREDICTED || (by == BY_LEFT && !*value);
        for (int k = 0; k < *count && !known; k++)
            known = !strcmp(list[k], value);
        if (!known)
            MEM_PUSH(list, *count) = value;
    }
    return list;
}

static double seconds_of(const struct batch *b, int i, enum score_with with)
{
    const struct batch_row *r = &b->row[i], *a = r->anchor >= 0 ? &b->row[r->anchor] : NULL;

    switch (with) {
    case SCORE_ALONE:
        return r->predicted;
    case SCORE_ANCHORED:
        return r->anchored;
    case SCORE_NAIVE:
        return a ? a->measured * (r->tokens / r->gpus) / (a->tokens / a->gpus) : NAN;
    default:
        return r->same_anchored;
    }
}

double score_error(const struct batch *b, int i, enum score_with with)
{
    const struct batch_row *r = &b->row[i];

    if (r->status != BATCH_PREDICTED)
        return NAN;
    if ((with == SCORE_ANCHORED || with == SCORE_NAIVE) && (r->anchor < 0 || r->anchor == i))
        return NAN;
    if (with == SCORE_SAME &&
        (!r->dense || r->same_anchor < 0 || b->row[r->same_anchor].gpus == r->gpus))
        return NAN;
    if (with == SCORE_MEMORY)
        return r->bytes / r->read_bytes - 1;
    return seconds_of(b, i, with) / r->measured - 1;
}

void score_errors(struct score *s, const struct batch *b, enum score_with with,
                  struct score_cut cut)
{
    double *error = mem_calloc((size_t)b->rows + 1, sizeof(*error)), logs = 0, sum = 0;
    int inside = 0;

    *s = (struct score){0, NAN, NAN, NAN, NAN, NAN, NAN};
    for (int i = 0; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        double e = score_in(r, cut) ? score_error(b, i, with) : NAN;
        if (isnan(e))
            continue;
        error[s->n++] = fabs(e);
        sum += fabs(e);
        logs += log1p(e);
        inside += with == SCORE_MEMORY
                      ? r->bytes_lo <= r->read_bytes && r->read_bytes <= r->bytes_hi
                      : r->lo <= r->measured && r->measured <= r->hi;
    }
    if (s->n) {
        stats_sort(error, s->n);
        s->median = stats_quantile(error, s->n, 0.5);
        s->p90 = stats_quantile(error, s->n, 0.9);
        s->max = error[s->n - 1];
        s->mean = sum / s->n;
        s->bias = expm1(logs / s->n);
        s->inside = with == SCORE_ALONE || with == SCORE_MEMORY ? (double)inside / s->n : NAN;
    }
    free(error);
}

void score_publishers(struct score_publishers *s, const struct batch *b)
{
    const char **name = score_values(b, BY_PUBLISHER, &s->n);
    double *median = mem_calloc((size_t)s->n + 1, sizeof(*median)), inside = 0;

    for (int i = 0; i < s->n; i++) {
        struct score one;
        score_errors(&one, b, SCORE_ALONE, (struct score_cut){BY_PUBLISHER, name[i]});
        median[i] = one.median;
        inside += one.inside;
    }
    stats_sort(median, s->n);
    s->median = s->n ? stats_quantile(median, s->n, 0.5) : NAN;
    s->inside = s->n ? inside / s->n : NAN;
    free(median);
    free(name);
}

/* Returns measured or predicted tokens/s per GPU; NAN if not predicted. */
static double speed(const struct batch *b, int i, enum score_with with, bool measured)
{
    const struct batch_row *r = &b->row[i];
    double sec = measured ? r->measured : seconds_of(b, i, with);

    return r->status == BATCH_PREDICTED ? r->tokens / r->gpus / sec : NAN;
}

void score_order(struct score_order *o, const struct batch *b, enum score_with with,
                 struct score_cut cut, double margin)
{
    *o = (struct score_order){0};
    for (int i = 0; i < b->rows; i++) {
        for (int k = 0; k < i; k++) {
            const struct batch_row *x = &b->row[i], *y = &b->row[k];
            if (x->status != BATCH_PREDICTED || y->status != BATCH_PREDICTED ||
                strcmp(x->family, y->family) != 0 || (!score_in(x, cut) && !score_in(y, cut)))
                continue;
            double ratio = log(speed(b, i, with, true) / speed(b, k, with, true));
            double told = log(speed(b, i, with, false) / speed(b, k, with, false));
            if (fabs(ratio) <= margin)
                continue;
            if (!strcmp(x->job, y->job)) {
                o->same++;
                continue;
            }
            if (x->other_dtype >= 0 || y->other_dtype >= 0) {
                o->doubt++;
                continue;
            }
            o->pairs++;
            o->right += ratio * told > 0;
        }
    }
}

/* True if row i is the first of its family, or with `job` the first of its job in the family. */
static bool is_first(const struct batch *b, int i, bool job)
{
    for (int k = 0; k < i; k++)
        if (b->row[k].status == BATCH_PREDICTED && !strcmp(b->row[k].family, b->row[i].family) &&
            (!job || !strcmp(b->row[k].job, b->row[i].job)))
            return false;
    return true;
}

static struct score_best judge_family(const struct batch *b, int first, enum score_with with)
{
    struct score_best s = {b->row[first].family, first, 1, 0, false};

    for (int i = first; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        if (r->status != BATCH_PREDICTED || strcmp(r->family, s.family) != 0)
            continue;
        s.jobs += is_first(b, i, true);
        s.has_test |= is_test(r);
        if (speed(b, i, with, true) > speed(b, s.best, with, true))
            s.best = i;
    }
    for (int i = first; i < b->rows; i++) {
        const struct batch_row *r = &b->row[i];
        if (r->status == BATCH_PREDICTED && !strcmp(r->family, s.family) && is_first(b, i, true) &&
            strcmp(r->job, b->row[s.best].job) != 0)
            s.rank += speed(b, i, with, false) >= speed(b, s.best, with, false);
    }
    return s;
}

struct score_best *score_best(const struct batch *b, enum score_with with, int *count)
{
    struct score_best *list = NULL;

    *count = 0;
    for (int i = 0; i < b->rows; i++) {
        if (b->row[i].status != BATCH_PREDICTED || !is_first(b, i, false))
            continue;
        struct score_best s = judge_family(b, i, with);
        if (s.jobs >= SCORE_BEST_MIN)
            MEM_PUSH(list, *count) = s;
    }
    return list;
}

/* --- targets --- */

static double order_share(const struct batch *b, enum score_with with, int *n)
{
    struct score_order o;

    score_order(&o, b, with, (struct score_cut){BY_ALL, NULL}, 0.05);
    *n = o.pairs;
    return o.pairs ? (double)o.right / o.pairs : NAN;
}

static double best_share(const struct batch *b, enum score_with with, int *n)
{
    struct score_best *list = score_best(b, with, n);
    int hits = 0;

    for (int i = 0; i < *n; i++)
        hits += list[i].rank <= 3;
    free(list);
    return *n ? (double)hits / *n : NAN;
}

void score_targets(struct score_target t[SCORE_TARGETS], const struct batch *b)
{
    struct score alone, one, same;
    int pairs, families;
    double order[2], best[2];
    struct score_publishers each;

    for (int i = 0; i < 2; i++) {
        order[i] = order_share(b, i ? SCORE_ANCHORED : SCORE_ALONE, &pairs);
        best[i] = best_share(b, i ? SCORE_ANCHORED : SCORE_ALONE, &families);
    }
    score_errors(&alone, b, SCORE_ALONE, (struct score_cut){BY_TEST, NULL});
    score_errors(&one, b, SCORE_ANCHORED, (struct score_cut){BY_TEST, NULL});
    score_publishers(&each, b);
    score_errors(&same, b, SCORE_SAME, (struct score_cut){BY_ALL, NULL});
    const struct score_target all[SCORE_TARGETS] = {
        {"test rows, no anchor, median", alone.median, 0.05, false, alone.n},
        {"test rows, no anchor, p90", alone.p90, 0.15, false, alone.n},
        {"test rows, one anchor, median", one.median, 0.03, false, one.n},
        {"test rows, one anchor, p90", one.p90, 0.10, false, one.n},
        {"publishers alike, median of their medians", each.median, 0.12, false, each.n},
        {"publishers alike, inside the interval", each.inside, 0.85, true, each.n},
        {"dense, same layout, other scale, median", same.median, 0.01, false, same.n},
        {"dense, same layout, other scale, max", same.max, 0.03, false, same.n},
        {"pairs > 5 % apart in order, no anchor", order[0], 0.95, true, pairs},
        {"pairs > 5 % apart in order, one anchor", order[1], 0.95, true, pairs},
        {"true best in the top 3, no anchor", best[0], 1, true, families},
        {"true best in the top 3, one anchor", best[1], 1, true, families},
    };
    memcpy(t, all, sizeof(all));
}
