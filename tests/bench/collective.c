/* SPDX-License-Identifier: BSD-3-Clause */
/* collective.c - what one look-up of a curve and one collective cost; lines "name value unit".
 * Processor time, so that neighbours on the machine do not count. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "matrix/collective.h"

enum { RACKS = 114, RANKS = 8192, LOOKUPS = 2000000 };

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bench_curve(const struct matrix *m, double *sum)
{
    const struct curve *c = &m->collective[0].curve;
    unsigned x = 1;
    double from = cpu();

    for (int i = 0; i < LOOKUPS; i++) {
        x = x * 1664525u + 1013904223u; /* sizes up to 512 MiB */
        *sum += curve_time(c, (double)(x >> 3));
    }
    printf("curve_time,_%d_points %.1f ns\n", c->points, (cpu() - from) / LOOKUPS * 1e9);
}

static void bench_group(const struct matrix *m, const int *ids, int n, double *sum)
{
    int times = 200000 / n + 20;
    struct cost c;
    struct collective_quote q;
    struct ways w;
    double from = cpu();

    for (int i = 0; i < times; i++) {
        matrix_collective(m, OP_ALL_GATHER, ids, n, 1e6 + i, &c);
        *sum += c.sec;
    }
    printf("matrix_collective,_%d_ranks %.2f us\n", n, (cpu() - from) / times * 1e6);
    ways_of(&w, m, ids, n, OP_ALL_GATHER, false);
    collective_resolve(&q, m, OP_ALL_GATHER, &w, false, NULL);
    from = cpu();
    for (int i = 0; i < LOOKUPS; i++)
        *sum += collective_time(&q, 1e6 + 100.0 * i);
    printf("the_same_resolved_once,_%d_ranks %.1f ns\n", n, (cpu() - from) / LOOKUPS * 1e9);
}

int main(void)
{
    const int sizes[] = {8, 64, 512, RANKS};
    struct fabric f;
    struct matrix m;
    struct err err;
    double sum = 0;

    if (fabric_load(&f, "gb200-nvl72", &err) < 0)
        return 1;
    int rc = matrix_from_fabric(&m, &f, RACKS, &err);
    fabric_free(&f);
    if (rc < 0) {
        fprintf(stderr, "collective: %s\n", err.text);
        return 1;
    }
    int *ids = mem_calloc(RANKS, sizeof(*ids));
    for (int i = 0; i < RANKS; i++)
        ids[i] = i;
    bench_curve(&m, &sum);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        bench_group(&m, ids, sizes[i], &sum);
    matrix_free(&m);
    free(ids);
    return sum > 0 ? 0 : 1;
}
