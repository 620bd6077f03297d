/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of one stream under the stop rule of measure.h.  What takes less than 20 us is
 * repeated within a sample, because an event costs a microsecond or so of the stream's time. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "probe/gpu/device_own.h"
#include "probe/measure.h"
#include "probe/watch/watch.h"

enum { FIRST = 16, SAMPLES_MAX = 4096, INNER_MAX = 256, WARMUP = 8 };
static const double short_time = 20e-6, sample_time = 50e-6;

int device_cut(struct err *err)
{
    return measure_stop ? err_code(err, EXIT_CUT, "stopped by a signal") : 0;
}

/* n samples of `inner` operations each, appended to b->sec. */
static int batch(struct device_bench *b, device_put put, device_put beside, int inner, int n,
                 struct err *err)
{
    int rc = gpu_mark(b->clock, 0, b->stream[0], err);

    b->sec = mem_realloc(b->sec, (size_t)(b->samples + n), sizeof(*b->sec));
    for (int i = 0; i < n && rc == 0; i++) {
        /* Twice as many beside, so that the last one that is measured has company too. */
        for (int k = 0; k < 2 * inner && beside && rc == 0; k++)
            rc = beside(b, b->stream[1], err);
        for (int k = 0; k < inner && rc == 0; k++)
            rc = put(b, b->stream[0], err);
        if (rc == 0)
            rc = gpu_mark(b->clock, i + 1, b->stream[0], err);
    }
    if (rc < 0 || gpu_wait(b->stream[0], err) < 0 || (beside && gpu_wait(b->stream[1], err) < 0) ||
        gpu_clock_read(b->clock, n, b->sec + b->samples, err) < 0)
        return -1;
    watch_step();
    for (int i = 0; i < n; i++)
        b->sec[b->samples + i] = fmax(b->sec[b->samples + i] / inner, 1e-9);
    b->samples += n;
    return 0;
}

static double total(const struct device_bench *b, int inner)
{
    double sum = 0;

    for (int i = 0; i < b->samples; i++)
        sum += b->sec[i];
    return sum * inner;
}

static bool enough(struct device_bench *b, int inner, struct summary *s)
{
    const struct device_opts *o = b->o;
    double spent = total(b, inner); /* before the samples are put in order */

    stats_summary(s, b->sec, b->samples);
    return (b->samples >= FIRST && (s->hi - s->lo) / 2 <= o->half_width * s->median) ||
           spent >= o->time_cap || b->samples >= SAMPLES_MAX;
}

/* Runs that do not count: code is loaded, clocks rise.  *per: seconds of one. */
static int warm_up(struct device_bench *b, device_put put, device_put beside, double *per,
                   struct err *err)
{
    struct summary s;

    b->samples = 0;
    if (batch(b, put, beside, 1, 1, err) < 0)
        return -1;
    int more = (int)fmin(WARMUP, b->o->time_cap / 4 / b->sec[0]);
    b->samples = more > 0 ? 0 : 1;
    if (more > 0 && batch(b, put, beside, 1, more, err) < 0)
        return -1;
    stats_summary(&s, b->sec, b->samples);
    *per = s.median;
    b->samples = 0;
    return 0;
}

int device_sample(struct device_bench *b, device_put put, device_put beside, struct summary *out,
                  struct err *err)
{
    double per;

    if (warm_up(b, put, beside, &per, err) < 0)
        return -1;
    int inner = per < short_time ? (int)fmin(ceil(sample_time / per), INNER_MAX) : 1;
    for (int n = FIRST;; n = n < DEVICE_BATCH ? 2 * n : n) {
        double left = b->o->time_cap - total(b, inner);
        int fits = (int)fmin(n, fmax(2, left / (per * inner)));
        if (batch(b, put, beside, inner, fits, err) < 0)
            return -1;
        if (enough(b, inner, out))
            return 0;
    }
}
