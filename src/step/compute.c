/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"

enum { N = COMPUTE_SIZE, RUNS_MIN = 5, RUNS_MAX = 4096 };

struct matrices {
    float a[N][N], b[N][N], c[N][N];
};

/* c += a * b, rows of b streamed so that the inner loop is contiguous and vectorises. */
static void multiply(struct matrices *w)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            float x = w->a[i][k];
            for (int j = 0; j < N; j++)
                w->c[i][j] += x * w->b[k][j];
        }
}

/* Every element of the product is N * 0.5 * 0.25 per run; exact in fp32 up to 2^19 runs. */
static int product_is_right(const struct matrices *w, int runs)
{
    float want = (float)N * 0.125f * (float)runs;

    for (int i = 0; i < N; i += 17)
        if (w->c[i][N - 1 - i] != want)
            return 0;
    return 1;
}

int compute_measure(struct compute *c, double seconds, struct err *err)
{
    struct matrices *w;
    struct summary s;
    double *sec, end;
    int n = 0;

    if (!(seconds >= 0.01 && seconds <= 60))
        return err_usage(err, "%g s to measure the compute rate is outside 0.01..60", seconds);
    w = mem_calloc(1, sizeof(*w));
    sec = mem_calloc(RUNS_MAX, sizeof(*sec));
    for (int i = 0; i < N * N; i++) {
        w->a[i / N][i % N] = 0.5f;
        w->b[i / N][i % N] = 0.25f;
    }
    multiply(w); /* touches the pages and raises the clock */
    end = log_now() + seconds;
    while (n < RUNS_MIN || (n < RUNS_MAX && log_now() < end)) {
        double t = log_now();
        multiply(w);
        sec[n++] = fmax(log_now() - t, 1e-9);
    }
    int right = product_is_right(w, n + 1);
    stats_summary(&s, sec, n);
    double work = 2.0 * N * N * N;
    c->flops = work / s.median;
    c->lo = work / s.hi;
    c->hi = work / s.lo;
    c->spread = log(s.p95 / s.p5) / (2 * STATS_Z90);
    c->runs = n;
    snprintf(c->source, sizeof(c->source),
             "fp32 matmul %dx%d measured on this host, 1 core, %d runs", N, N, n);
    free(w);
    free(sec);
    return right ? 0
                 : err_set(err, "the fp32 matmul %dx%d gave a wrong product on this host", N, N);
}
