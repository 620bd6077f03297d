/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_anchor.c - which row anchors which others, and what follows for them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/score/batch_words.h"
#include "step/timing.h"

struct solving {
    const struct batch_row *row;
    const struct constants *constants;
};

static double seconds_with(void *ctx, double stretch)
{
    const struct solving *s = ctx;

    return batch_seconds(s->row, s->constants, stretch, NULL);
}

/* Negative: a is the better anchor. */
static int smaller(const struct batch_row *a, const struct batch_row *b)
{
    bool a_test = !strncmp(a->split, "test", 4), b_test = !strncmp(b->split, "test", 4);

    if (a->gpus != b->gpus)
        return a->gpus < b->gpus ? -1 : 1;
    if (a->recipe.global_batch != b->recipe.global_batch)
        return a->recipe.global_batch < b->recipe.global_batch ? -1 : 1;
    return (int)a_test - (int)b_test;
}

static const char *key_of(const struct batch_row *r, bool same_layout)
{
    return same_layout ? r->same : r->family;
}

bool batch_smaller(const struct batch_row *a, const struct batch_row *b)
{
    return smaller(a, b) < 0;
}

double batch_stretch(const struct batch_row *r, const struct constants *c)
{
    struct solving s = {r, c};
    double stretch;

    return timing_stretch(&stretch, seconds_with, &s, r->measured, NULL) < 0 ? NAN : stretch;
}

/* Rows that may anchor row i: of its key, and none smaller. */
static int *smallest(const struct batch *b, int i, bool same_layout, int *count)
{
    const char *key = key_of(&b->row[i], same_layout);
    int *at = NULL, n = 0;

    for (int k = 0; k < b->rows; k++) {
        const struct batch_row *r = &b->row[k];
        if (r->status != BATCH_PREDICTED || strcmp(key_of(r, same_layout), key) != 0)
            continue;
        int order = n ? smaller(r, &b->row[at[0]]) : 0;
        if (order < 0)
            n = 0;
        if (order <= 0)
            MEM_PUSH(at, n) = k;
    }
    *count = n;
    return at;
}

/* Of n rows the job that was measured most often, moved to the front; how many those are. */
static int most_measured(const struct batch *b, int *at, int n)
{
    int best = 0, most = 0, kept = 0;

    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int k = 0; k < n; k++)
            same += !strcmp(b->row[at[i]].job, b->row[at[k]].job);
        if (same > most) {
            most = same;
            best = at[i];
        }
    }
    for (int i = 0; i < n; i++)
        if (!strcmp(b->row[at[i]].job, b->row[best].job))
            at[kept++] = at[i];
    return kept;
}

/* One machine may be odd, the middle one of several is not. */
static int middle(const struct batch *b, const int *at, int n)
{
    for (int i = 0; i < n; i++) {
        int below = 0;
        for (int k = 0; k < n; k++) {
            double x = b->row[at[k]].measured, y = b->row[at[i]].measured;
            below += x < y || (x == y && k < i);
        }
        if (below == (n - 1) / 2)
            return at[i];
    }
    return at[0];
}

static int anchor_of(const struct batch *b, int i, bool same_layout)
{
    int n, *at = smallest(b, i, same_layout, &n), anchor = i;

    n = most_measured(b, at, n);
    if (n)
        anchor = middle(b, at, n);
    free(at);
    return anchor;
}

/* What solves row k; an anchor that cannot be met by compute alone scales the whole step: -ratio.
 */
static double solve(const struct batch *b, int k, const struct constants *c)
{
    double stretch = batch_stretch(&b->row[k], c);

    return isnan(stretch) ? -b->row[k].measured / b->row[k].predicted : stretch;
}

static double apply(const struct batch_row *r, const struct constants *c, double solved)
{
    return solved > 0 ? batch_seconds(r, c, solved, NULL) : r->predicted * -solved;
}

static void remark_stretch(struct batch_row *r, double solved)
{
    if (solved < 0)
        batch_remark(r, "compute alone cannot meet the anchor: the whole step is scaled by %.3f",
                     -solved);
    else if (solved < STRETCH_TRUST_MIN || solved > STRETCH_TRUST_MAX)
        batch_remark(r, "the anchor stretches compute by %.3g: that is no matter of software",
                     solved);
}

void batch_anchor(struct batch *b, const struct constants *c)
{
    double *solved = mem_calloc((size_t)b->rows + 1, sizeof(*solved)); /* 0: not yet */

    for (int i = 0; i < b->rows; i++) {
        struct batch_row *r = &b->row[i];
        if (r->status != BATCH_PREDICTED)
            continue;
        r->anchor = anchor_of(b, i, false);
        r->same_anchor = anchor_of(b, i, true);
        for (int k = 0; k < 2; k++) {
            int at = k ? r->same_anchor : r->anchor;
            if (!solved[at])
                solved[at] = solve(b, at, c);
            *(k ? &r->same_anchored : &r->anchored) = apply(r, c, solved[at]);
        }
        r->stretch = solved[r->anchor] > 0 ? solved[r->anchor] : NAN;
        remark_stretch(r, solved[r->anchor]);
    }
    free(solved);
}
