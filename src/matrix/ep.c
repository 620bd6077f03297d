/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatch and combine of expert-parallel kernels (DeepEP, HybridEP): curves of their own.
 *
 * These kernels move tokens between the ranks of an expert-parallel group over NVLink and RDMA at
 * once and reach other rates than NCCL's all_to_all: a GB200 domain of 8 does 550 GB/s a GPU where
 * all_to_all of as many does 490, of 36 still 480, while a kernel without MNNVL support stays at a
 * third of that.  What is published are rates at one training size, so that an ep_curve is a
 * latency and a rate, not a ladder:
 *
 *   t = alpha + max(inside / Bps inside, across / Bps across)
 *
 *   inside   bytes that a rank receives from its own NVLink domain, itself included
 *   across   from others
 *
 * Between curves of other numbers of ranks rates are interpolated over log ranks, beyond them
 * kept. */
#include "matrix/collective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

/* Published rates of one kernel differ by a quarter with the data type and the share of the GPU
 * that it may use [DeepEP, Hybrid-EP_Implementation.md]. */
static const double ep_error = 0.25;

/* The curves next to n ranks that stay in one domain, or that cross; NULL: none. */
static void around(const struct matrix *m, bool cross, int n, const struct ep_curve **below,
                   const struct ep_curve **above)
{
    *below = *above = NULL;
    for (int i = 0; i < m->eps; i++) {
        const struct ep_curve *e = &m->ep[i];
        if ((e->domains > 1) != cross)
            continue;
        if (e->ranks <= n && (!*below || e->ranks > (*below)->ranks))
            *below = e;
        if (e->ranks >= n && (!*above || e->ranks < (*above)->ranks))
            *above = e;
    }
}

/* B/s of one rank, and the latency; NAN where no curve serves. */
static double ep_rate(const struct matrix *m, bool cross, int n, bool dispatch, double *alpha)
{
    const struct ep_curve *a, *b;

    around(m, cross, n, &a, &b);
    if (!a && !b)
        return *alpha = NAN;
    a = a ? a : b;
    b = b ? b : a;
    double from = a->Bps[!dispatch], to = b->Bps[!dispatch];
    double w =
        b->ranks > a->ranks ? log((double)n / a->ranks) / log((double)b->ranks / a->ranks) : 0;
    *alpha = a->alpha + w * (b->alpha - a->alpha);
    return from * pow(to / from, w);
}

double ep_time(const struct matrix *m, const struct ways *w, double inside, double across,
               bool dispatch)
{
    const struct shape *s = &w->shape;
    const struct ways_slow *slow = &w->slow[SCHEDULE_OWN];
    bool cross = s->domains > 1;
    double alpha, unused;

    if (w->inner_factor <= 0 || slow->outer <= 0)
        return INFINITY;
    double in = ep_rate(m, false, s->per_domain, dispatch, cross ? &unused : &alpha);
    double busy = inside > 0 && s->per_domain > 1 ? inside / (in * w->inner_factor) : 0;
    if (cross) { /* no kernel is faster than the NICs */
        double nic = matrix_rate(m, w->outer, DIR_BI) * fmin(1, (double)s->nics / s->per_domain);
        double out = fmin(ep_rate(m, true, s->ranks, dispatch, &alpha), nic) * slow->outer;
        busy = isnan(alpha) || isnan(busy) ? NAN : fmax(busy, across / out);
    }
    return alpha + slow->add + busy;
}

/* Put before what all_to_all says of itself. */
static void as_all_to_all(struct cost *out)
{
    char source[sizeof(out->source)];

    memcpy(source, out->source, sizeof(source));
    snprintf(out->source, sizeof(out->source), "no EP kernel known, as all_to_all: %.120s", source);
    out->basis = BASIS_ASSUMED;
}

static void words(const struct matrix *m, const struct ways *w, double bytes, bool dispatch,
                  struct cost *out)
{
    const struct ep_curve *a, *b;
    char shape[48], size[UNITS_TEXT], rates[40];

    around(m, w->shape.domains > 1, w->shape.ranks, &a, &b);
    const struct ep_curve *e = a ? a : b;
    if (a && b && a != b)
        snprintf(rates, sizeof(rates), "between %d and %d", a->ranks, b->ranks);
    else
        snprintf(rates, sizeof(rates), "of %d", e->ranks);
    out->basis = e->basis;
    snprintf(out->source, sizeof(out->source), "%s %.40s %s %s at %s, rates %s ranks",
             basis_name[e->basis], e->kernel, dispatch ? "dispatch" : "combine",
             shape_text(shape, &w->shape), units_bytes_text(size, bytes), rates);
}

void matrix_ep(const struct matrix *m, const int *ids, int n, double bytes, double inside,
               double across, bool dispatch, struct cost *out)
{
    struct ways w;

    matrix_collective(m, OP_ALL_TO_ALL, ids, n, bytes, out);
    if (n < 2 || isnan(out->sec)) /* the words say why */
        return;
    ways_of(&w, m, ids, n, OP_ALL_TO_ALL, false);
    if (isnan(inside)) {
        inside = ep_inside(&w.shape, bytes);
        across = bytes - inside;
    }
    double sec = ep_time(m, &w, fmax(0, inside), fmax(0, across), dispatch);
    if (isnan(sec)) {
        as_all_to_all(out);
        return;
    }
    out->sec = sec;
    out->lo = sec / (1 + ep_error);
    out->hi = sec * (1 + ep_error);
    if (isinf(sec))
        return;
    words(m, &w, bytes, dispatch, out);
    if (w.slow[SCHEDULE_OWN].exception >= 0)
        matrix_blame(m, out);
}
