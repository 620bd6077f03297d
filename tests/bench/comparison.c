/* comparison.c - how far off ratios of two layouts' times are, and the constants that say so.
 *
 *   comparison STEPS.tsv GROUPS.tsv
 *
 * STEPS is a table of railgauge predict --batch, GROUPS says in its columns "id" and "group" which
 * of its rows differ in nothing but the layout.  Every two rows of a group with different layouts
 * are a pair: does the measured ratio lie inside the interval of the predicted one?  Rows of more
 * than 8 tensor-parallel ranks or of a pipeline whose group begins with "nt" are left out: of those
 * the publication holds readings of other things than steps.  Printed: what the shipped constants
 * hold, by the first letters of a group, and the floor and factor that hold 90 % with the least mean
 * interval score (Gneiting and Raftery 2007, 6.2). */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "calibrate/batch.h"
#include "step/search/eval.h"

static const double z90 = 1.645;

struct pair {
    const char *group;
    double off, sd; /* |log| of predicted over measured ratio; what doubts_between says */
};

struct pairs {
    struct pair *pair;
    int count;
};

static double half(const struct pair *p, double floor, double times)
{
    return z90 * hypot(floor, times * p->sd);
}

static double held(const struct pairs *all, const char *source, double floor, double times)
{
    int in = 0, n = 0;

    for (int i = 0; i < all->count; i++) {
        const struct pair *p = &all->pair[i];
        if (source && strncmp(p->group, source, 2) != 0)
            continue;
        n++;
        in += p->off <= half(p, floor, times);
    }
    return n ? (double)in / n : NAN;
}

static double score(const struct pairs *all, double floor, double times)
{
    double sum = 0;

    for (int i = 0; i < all->count; i++) {
        double h = half(&all->pair[i], floor, times), miss = all->pair[i].off - h;
        sum += 2 * h + 2 / 0.1 * fmax(0, miss);
    }
    return sum / all->count;
}

static double floor_for(const struct pairs *all, double times)
{
    double lo = 0, hi = 2;

    for (int i = 0; i < 40; i++) {
        double mid = (lo + hi) / 2;
        *(held(all, NULL, mid, times) < 0.9 ? &lo : &hi) = mid;
    }
    return hi;
}

static void report(const struct pairs *all, const struct constants *c)
{
    double floor = constants_get(c, CONSTANT_ERROR_COMPARISON)->value, best = INFINITY;
    double times = constants_get(c, CONSTANT_ERROR_COMPARISON_TIMES)->value, at = 0;
    char source[3] = "";

    printf("pairs %d\nshipped floor %.3f times %.3g holds %.3f score %.3f\n", all->count, floor,
           times, held(all, NULL, floor, times), score(all, floor, times));
    for (int i = 0; i < all->count; i++)
        if (strncmp(source, all->pair[i].group, 2) != 0) {
            snprintf(source, sizeof(source), "%s", all->pair[i].group);
            printf("  %s holds %.3f\n", source, held(all, source, floor, times));
        }
    for (double x = 0; x <= 40; x += 0.5) {
        double s = score(all, floor_for(all, x), x);
        at = s < best ? x : at;
        best = fmin(best, s);
    }
    printf("best floor %.3f times %.3g holds 0.9 score %.3f\n", floor_for(all, at), at, best);
}

static bool same_layout(const struct question *a, const struct question *b)
{
    const struct recipe *x = a->recipe, *y = b->recipe;

    return !memcmp(a->layout->size, b->layout->size, sizeof(a->layout->size)) &&
           x->micro_batch == y->micro_batch && x->strategy == y->strategy &&
           x->recompute == y->recompute && x->stages == y->stages;
}

static bool is_core(const char *group, const struct question *q)
{
    return strncmp(group, "nt", 2) != 0 ||
           (q->layout->size[AXIS_TP] <= 8 && q->layout->size[AXIS_PP] == 1);
}

/* By row; NULL: not a row of a group, not priced, or not to be judged. */
static const char **groups_of(const struct batch *b, const struct tsv *groups,
                              const struct constants *c)
{
    const char **group = mem_calloc((size_t)b->rows, sizeof(*group));
    int id = tsv_find(groups, "id"), name = tsv_find(groups, "group");

    for (int i = 0; i < b->rows; i++)
        for (int k = 0; k < groups->rows && b->row[i].status == BATCH_PREDICTED; k++) {
            struct question q = batch_question(&b->row[i], c);
            if (!strcmp(groups->row[k].cell[id], b->row[i].id) &&
                is_core(groups->row[k].cell[name], &q))
                group[i] = groups->row[k].cell[name];
        }
    return group;
}

static void pair_all(struct pairs *all, const struct batch *b, const char *const *group,
                     const struct constants *c)
{
    struct doubts *d = mem_calloc((size_t)b->rows, sizeof(*d));

    for (int i = 0; i < b->rows; i++) {
        if (!group[i])
            continue;
        struct question q = batch_question(&b->row[i], c);
        if (doubts_of(&d[i], &q, NULL) < 0)
            d[i].sec = NAN;
        for (int k = 0; k < i; k++) {
            if (!group[k] || strcmp(group[i], group[k]) != 0)
                continue;
            struct question other = batch_question(&b->row[k], c);
            double off = log(d[i].sec / d[k].sec) - log(b->row[i].measured / b->row[k].measured);
            if (isfinite(off) && !same_layout(&q, &other))
                MEM_PUSH(all->pair, all->count) =
                    (struct pair){group[i], fabs(off), doubts_between(&d[i], &d[k])};
        }
    }
    for (int i = 0; i < b->rows; i++)
        doubts_free(&d[i]);
    free(d);
}

int main(int argc, char **argv)
{
    struct constants c = {0};
    struct pairs all = {0};
    struct tsv groups = {0};
    struct batch b = {0};
    struct err err;

    if (argc != 3) {
        fprintf(stderr, "usage: comparison STEPS.tsv GROUPS.tsv\n");
        return 64;
    }
    int rc = batch_load(&b, argv[1], &err) < 0 || tsv_load(&groups, argv[2], &err) < 0 ||
             tsv_column(&groups, "id", &err) < 0 || tsv_column(&groups, "group", &err) < 0 ||
             constants_load(&c, NULL, &err) < 0;
    if (!rc) {
        batch_resolve(&b, &c);
        const char **group = groups_of(&b, &groups, &c);
        pair_all(&all, &b, group, &c);
        report(&all, &c);
        free(group);
    } else
        fprintf(stderr, "comparison: %s\n", err.text);
    free(all.pair);
    constants_free(&c);
    tsv_free(&groups);
    batch_free(&b);
    return rc ? err.code : 0;
}
