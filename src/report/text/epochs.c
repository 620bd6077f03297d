/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/nccl_tests.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static int by_key(const void *x, const void *y)
{
    const struct point *a = *(const struct point *const *)x, *b = *(const struct point *const *)y;

    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->epoch < b->epoch ? -1 : a->epoch > b->epoch;
}

static bool same_key(const struct point *a, const struct point *b)
{
    return a->round == b->round && a->group == b->group && a->bytes == b->bytes;
}

/* Merge n epochs of one key. */
static struct epochs_point merge(const struct point *const *p, int n)
{
    struct epochs_point s = {.first = p[0], .bytes = p[0]->bytes, .sec = NAN, .lo = NAN, .hi = NAN};
    double *median = mem_calloc((size_t)n, sizeof(*median));

    for (int i = 0; i < n; i++) {
        s.checked += p[i]->checked;
        s.wrong += p[i]->wrong;
        if (p[i]->stop == STOP_FAILED || !(p[i]->sec.median > 0))
            continue;
        median[s.epochs++] = p[i]->sec.median;
        s.samples += p[i]->n;
        s.lo = point_sec(p[i]->sec.lo);
        s.hi = point_sec(p[i]->sec.hi);
    }
    if (s.epochs)
        s.sec = stats_median(median, s.epochs);
    if (s.epochs > 1) {
        s.lo = median[0];
        s.hi = median[s.epochs - 1];
    }
    free(median);
    return s;
}

int epochs_merge(struct epochs_point **out, const struct points *p)
{
    const struct point **order = mem_calloc((size_t)p->count + 1, sizeof(*order));
    int count = 0;

    for (int i = 0; i < p->count; i++)
        order[i] = &p->point[i];
    qsort(order, (size_t)p->count, sizeof(*order), by_key);
    *out = mem_calloc((size_t)p->count + 1, sizeof(**out));
    for (int i = 0, n; i < p->count; i += n) {
        for (n = 1; i + n < p->count && same_key(order[i], order[i + n]); n++)
            ;
        (*out)[count++] = merge(order + i, n);
    }
    free(order);
    return count;
}
