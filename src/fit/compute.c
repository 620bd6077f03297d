/* SPDX-License-Identifier: BSD-3-Clause */
/* Find slow devices and shortfalls from hardware limits.  Pure function of its inputs.
 *
 * A device is slow in a class of figures (products, memory, host link, latency) if the median of its figures, each
 * as a share of the median over devices, is more than 5 % (latency: 25 %) low and outside the scatter of the other
 * devices (4 times their MAD, in standard deviations).  With two devices the faster device is the reference.  Slow
 * devices become findings "slow_gpu" and stay out of the medians.  A shortfall of all devices from the hardware's
 * limit becomes a finding "below_limit". */
#include "fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

static const double deviations = 4 * 1.4826; /* 1.4826: MAD to standard deviation, normal noise */

/* Figures that fail together: one sentence per class, from this loss on.  Launch times depend on the host, so a GPU
 * is never reported for them (the loss cannot exceed 100 %). */
enum figure_class {
    CLASS_GEMM,
    CLASS_MEMORY,
    CLASS_HOST,
    CLASS_LATENCY,
    CLASS_LAUNCH,
    CLASS_COUNT
};
static const char *const class_text[CLASS_COUNT] = {"matrix products", "memory bandwidth",
                                                    "host link", "latency", "launches"};
static const double slow_share[CLASS_COUNT] = {0.05, 0.05, 0.05, 0.25, 1};

static const struct {
    enum figure_class what;
    int alone;    /* enum alone, -1: only compared */
    double least; /* share of the limit below which all devices are called slow, 0: none */
} kinds[DEVICE_KINDS] = {
    /* copies reach nine tenths of the DRAM rate, pinned host copies 86 to 90 % of what PCIe
     * carries (lukealonso/p2pmark README); well below that something is wrong. */
    [DEVICE_HBM_COPY] = {CLASS_MEMORY, ALONE_HBM, 0.7},
    [DEVICE_HBM_KERNEL] = {CLASS_MEMORY, -1, 0},
    [DEVICE_HBM_READ] = {CLASS_MEMORY, ALONE_HBM_READ, 0},
    [DEVICE_FILL] = {CLASS_MEMORY, -1, 0},
    [DEVICE_CHECK] = {CLASS_MEMORY, -1, 0},
    [DEVICE_H2D] = {CLASS_HOST, ALONE_H2D, 0.7},
    [DEVICE_D2H] = {CLASS_HOST, ALONE_D2H, 0.7},
    [DEVICE_H2D_BOTH] = {CLASS_HOST, -1, 0},
    [DEVICE_D2H_BOTH] = {CLASS_HOST, -1, 0},
    [DEVICE_H2D_BUSY] = {CLASS_HOST, -1, 0},
    [DEVICE_LOAD] = {CLASS_LATENCY, ALONE_LATENCY, 0},
    [DEVICE_LAUNCH] = {CLASS_LAUNCH, ALONE_LAUNCH, 0},
    [DEVICE_LAUNCH_GRAPH] = {CLASS_LAUNCH, ALONE_LAUNCH_GRAPH, 0},
    [DEVICE_GEMM] = {CLASS_GEMM, -1, 0},
    [DEVICE_GROUPED] = {CLASS_GEMM, -1, 0},
    [DEVICE_ATTENTION] = {CLASS_GEMM, -1, 0},
    [DEVICE_ATTENTION_BACK] = {CLASS_GEMM, -1, 0},
    [DEVICE_NORM] = {CLASS_MEMORY, -1, 0},
    [DEVICE_GATE] = {CLASS_MEMORY, -1, 0},
    [DEVICE_ROTARY] = {CLASS_MEMORY, -1, 0},
    [DEVICE_CAST] = {CLASS_MEMORY, -1, 0},
    [DEVICE_LOSS] = {CLASS_MEMORY, -1, 0},
    [DEVICE_ADAM] = {CLASS_MEMORY, -1, 0},
};

struct judge {
    const struct device_row **row; /* measured rows, sorted by figure */
    double *of;                    /* each row's figure as a share of its reference */
    int rows, endpoints;
    char *slow; /* [endpoint * CLASS_COUNT + class] */
};

static int by_figure(const void *a, const void *b)
{
    const struct device_row *x = *(struct device_row *const *)a,
                            *y = *(struct device_row *const *)b;

    return stats_order(
        (double[]){x->kind, x->shape.dtype, x->shape.m, x->shape.n, x->shape.k, x->endpoint},
        (double[]){y->kind, y->shape.dtype, y->shape.m, y->shape.n, y->shape.k, y->endpoint}, 6);
}

static bool same_figure(const struct device_row *x, const struct device_row *y)
{
    return x->kind == y->kind && !memcmp(&x->shape, &y->shape, sizeof(x->shape));
}

/* Rows i .. end - 1 are one figure; larger is better. */
static double goodness(const struct device_row *r)
{
    return strcmp(device_unit[r->kind], "s") ? r->value : 1 / r->value;
}

static int figure_end(const struct judge *j, int from)
{
    int end = from;

    while (end < j->rows && same_figure(j->row[from], j->row[end]))
        end++;
    return end;
}

static void compare(struct judge *j)
{
    double *v = mem_calloc((size_t)j->rows + 1, sizeof(*v));

    for (int i = 0, end; i < j->rows; i = end) {
        end = figure_end(j, i);
        for (int r = i; r < end; r++)
            v[r - i] = goodness(j->row[r]);
        double mid = stats_median(v, end - i); /* sorts v */
        double reference = end - i == 2 ? v[1] : mid;
        for (int r = i; r < end; r++)
            j->of[r] = goodness(j->row[r]) / reference;
    }
    free(v);
}

/* One figure of an endpoint, as a share of the reference. */
struct standing {
    int endpoint, figures; /* number of figures, after the shares of the endpoint are merged */
    double of;
};

/* List the median share of each endpoint with figures of this class.  Returns their number.  The caller frees *out. */
static int standings(const struct judge *j, enum figure_class what, struct standing **out)
{
    struct standing *s = mem_calloc((size_t)j->rows + 1, sizeof(*s));
    double *room = mem_calloc((size_t)j->rows + 1, sizeof(*room));
    int n = 0, devices = 0;

    for (int i = 0; i < j->rows; i++)
        if (kinds[j->row[i]->kind].what == what)
            s[n++] = (struct standing){j->row[i]->endpoint, 1, j->of[i]};
    qsort(s, (size_t)n, sizeof(*s), stats_by_int);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && s[end].endpoint == s[i].endpoint; end++)
            room[end - i] = s[end].of;
        s[devices++] = (struct standing){s[i].endpoint, end - i, stats_median(room, end - i)};
    }
    free(room);
    *out = s;
    return devices;
}

static void say_slow(struct matrix *m, int endpoint, enum figure_class what, double of, int figures,
                     int devices)
{
    const struct endpoint *e = &m->topo.endpoint[endpoint];

    matrix_find(m, "slow_gpu",
                "endpoint %d (%.64s:%d %s): %s at %.2f of the %s %d GPUs (%d figures); left out of "
                "the medians",
                endpoint, m->topo.host[e->place.at[LEVEL_HOST]].name, e->local, e->busid,
                class_text[what], of, devices == 2 ? "faster of" : "median of", devices, figures);
}

static void judge_class(struct judge *j, struct matrix *m, enum figure_class what)
{
    struct standing *s;
    int n = standings(j, what, &s);
    double *of = mem_calloc((size_t)n + 1, sizeof(*of));

    for (int i = 0; i < n; i++)
        of[i] = s[i].of;
    double mid = n ? stats_median(of, n) : 1;
    double scatter = n > 3 ? deviations * stats_mad(of, n, mid) : 0;
    for (int i = 0; i < n; i++)
        if (s[i].of < 1 - slow_share[what] && s[i].of < mid - scatter) {
            j->slow[s[i].endpoint * CLASS_COUNT + (int)what] = 1;
            say_slow(m, s[i].endpoint, what, s[i].of, s[i].figures, n);
        }
    free(of);
    free(s);
}

/* Figure over healthy devices. */
struct middle {
    double value, limit, spread;
    int devices;
};

static struct middle middle_of(const struct judge *j, int from, int end, double *room)
{
    struct middle mid = {.devices = 0};

    for (int i = from; i < end; i++) {
        const struct device_row *r = j->row[i];
        if (j->slow[r->endpoint * CLASS_COUNT + (int)kinds[r->kind].what])
            continue;
        room[mid.devices++] = r->value;
        mid.limit = r->limit;
    }
    if (mid.devices) {
        mid.value = stats_median(room, mid.devices);
        mid.spread = stats_mad(room, mid.devices, mid.value) / mid.value;
    }
    return mid;
}

static double peak_of(const struct fabric *f, const char *dtype)
{
    for (int i = 0; f && i < f->gpu.peaks; i++)
        if (!strcmp(f->gpu.peak[i].dtype, dtype))
            return f->gpu.peak[i].flops.value;
    return 0;
}

static void keep_gemm(struct compute_rates *c, const struct device_row *r, const struct middle *mid,
                      const struct fabric *f)
{
    bool product = r->kind == DEVICE_GEMM;
    double peak = product ? peak_of(f, gemm_dtype_name[r->shape.dtype]) : 0;
    struct gemm_rate g = {.m = r->shape.m,
                          .n = r->shape.n,
                          .k = r->shape.k,
                          .flops = mid->value,
                          .share = peak > 0 ? mid->value / peak : 0,
                          .spread = mid->spread,
                          .devices = mid->devices};

    snprintf(g.dtype, sizeof(g.dtype), "%s", gemm_dtype_name[r->shape.dtype]);
    if (product) {
        MEM_PUSH(c->gemm, c->gemms) = g;
        return;
    }
    snprintf(g.kind, sizeof(g.kind), "%s", device_kind_name[r->kind]);
    MEM_PUSH(c->kernel, c->kernels) = g;
}

static void keep_alone(struct matrix *m, enum device_kind kind, const struct middle *mid)
{
    struct compute_rates *c = &m->compute;
    double share = mid->limit > 0 ? mid->value / mid->limit : 0;
    int at = kinds[kind].alone;

    if (at >= 0) {
        c->alone[at] = mid->value;
        c->share[at] = share;
    }
    if (share > 0 && share < kinds[kind].least)
        matrix_find(m, "below_limit", "%s of %d GPU%s: %.3g GB/s, %.2f of what the hardware allows",
                    device_kind_name[kind], mid->devices, mid->devices == 1 ? "" : "s",
                    mid->value / 1e9, share);
}

static void keep_all(struct judge *j, struct matrix *m, const struct fabric *f)
{
    double *room = mem_calloc((size_t)j->rows + 1, sizeof(*room));

    for (int i = 0, end; i < j->rows; i = end) {
        end = figure_end(j, i);
        struct middle mid = middle_of(j, i, end, room);
        if (mid.devices > m->compute.devices)
            m->compute.devices = mid.devices;
        if (mid.devices && device_shaped(j->row[i]->kind))
            keep_gemm(&m->compute, j->row[i], &mid, f);
        else if (mid.devices)
            keep_alone(m, j->row[i]->kind, &mid);
    }
    free(room);
}

/* Report links that are slower than they could be, as noted in the rows of their device. */
static void say_links(const struct judge *j, struct matrix *m)
{
    for (int i = 0; i < j->rows; i++)
        if (j->row[i]->kind == DEVICE_H2D && j->row[i]->note[0])
            matrix_find(m, "host_link", "endpoint %d (%s %s): %s", j->row[i]->endpoint,
                        j->row[i]->host, j->row[i]->busid, j->row[i]->note);
}

static int endpoints_exist(const struct matrix *m, const struct device_table *t, struct err *err)
{
    for (int i = 0; i < t->rows; i++)
        if (t->row[i].endpoint >= m->topo.endpoints)
            return err_data(err, "compute figures of endpoint %d: the topology has %d endpoints",
                            t->row[i].endpoint, m->topo.endpoints);
    return 0;
}

int fit_compute(struct matrix *m, const struct device_table *t, const struct fabric *f,
                struct err *err)
{
    struct judge j = {.endpoints = m->topo.endpoints};

    if (endpoints_exist(m, t, err) < 0)
        return -1;
    j.row = mem_calloc((size_t)t->rows + 1, sizeof(*j.row));
    j.of = mem_calloc((size_t)t->rows + 1, sizeof(*j.of));
    j.slow = mem_calloc((size_t)j.endpoints * CLASS_COUNT + 1, 1);
    for (int i = 0; i < t->rows; i++)
        if (t->row[i].value > 0)
            j.row[j.rows++] = &t->row[i];
    qsort(j.row, (size_t)j.rows, sizeof(*j.row), by_figure);
    compare(&j);
    for (int c = 0; c < CLASS_COUNT; c++)
        judge_class(&j, m, (enum figure_class)c);
    keep_all(&j, m, f);
    say_links(&j, m);
    if (m->compute.devices && !m->compute.source)
        m->compute.source =
            mem_printf("cuBLASLt products of %d shapes on %d GPU%s, railgauge probe --compute",
                       m->compute.gemms, m->compute.devices, m->compute.devices == 1 ? "" : "s");
    free(j.row);
    free(j.of);
    free(j.slow);
    return 0;
}
