/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/text/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"

static const char *const what[DEVICE_KINDS] = {
    [DEVICE_HBM_COPY] = "memory, copy engine (read + written)",
    [DEVICE_HBM_KERNEL] = "memory, kernel (read + written)",
    [DEVICE_HBM_READ] = "memory, kernel that reads",
    [DEVICE_FILL] = "pattern written",
    [DEVICE_CHECK] = "pattern checked",
    [DEVICE_H2D] = "host to GPU",
    [DEVICE_D2H] = "GPU to host",
    [DEVICE_H2D_BOTH] = "host to GPU, both ways at once",
    [DEVICE_D2H_BOTH] = "GPU to host, both ways at once",
    [DEVICE_H2D_BUSY] = "host to GPU beside compute",
    [DEVICE_LOAD] = "dependent load",
    [DEVICE_LAUNCH] = "kernel launch",
    [DEVICE_LAUNCH_GRAPH] = "kernel launch in a CUDA graph",
    [DEVICE_GROUPED] = "products of experts",
    [DEVICE_ATTENTION] = "attention core, forward",
    [DEVICE_ATTENTION_BACK] = "attention core, backward",
    [DEVICE_NORM] = "traffic of a norm",
    [DEVICE_GATE] = "traffic of a gate",
    [DEVICE_ROTARY] = "traffic of a rotary embedding",
    [DEVICE_CAST] = "traffic of a cast",
    [DEVICE_LOSS] = "traffic of a loss",
    [DEVICE_ADAM] = "traffic of Adam",
};

static void value_text(char buf[UNITS_TEXT], enum device_kind kind, double v)
{
    const char *unit = device_unit[kind];

    if (!strcmp(unit, "s"))
        units_seconds_text(buf, v);
    else if (!strcmp(unit, "B/s"))
        snprintf(buf, UNITS_TEXT, "%.4g GB/s", v / 1e9);
    else
        snprintf(buf, UNITS_TEXT, "%.4g TF/s", v / 1e12);
}

/* Values of a kind (for products also a dtype) over all devices and shapes. */
struct line {
    double *v;
    int n;
    double limit;
    const struct device_row *best, *none;
};

static void take(struct line *l, const struct device_row *r)
{
    if (!(r->value > 0)) {
        l->none = r;
        return;
    }
    MEM_PUSH(l->v, l->n) = r->value;
    l->limit = r->limit;
    if (!l->best || r->value > l->best->value)
        l->best = r;
}

static void print_line(FILE *out, struct line *l, enum device_kind kind, const char *name)
{
    char lo[UNITS_TEXT], mid[UNITS_TEXT], hi[UNITS_TEXT];

    if (!l->n && l->none)
        fprintf(out, "  %-38s not measured: %s\n", name, l->none->note);
    if (!l->n)
        return;
    double middle = stats_median(l->v, l->n); /* sorts v */
    value_text(lo, kind, l->v[0]);
    value_text(mid, kind, middle);
    value_text(hi, kind, l->v[l->n - 1]);
    fprintf(out, "  %-38s %12s %12s %12s", name, lo, mid, hi);
    if (device_shaped(kind) && l->best->shape.k > 1)
        fprintf(out, "  best at %d x %d x %d", l->best->shape.m, l->best->shape.n,
                l->best->shape.k);
    else if (l->limit > 0)
        fprintf(out, "  %3.0f%% of %.4g GB/s", 100 * middle / l->limit, l->limit / 1e9);
    fputc('\n', out);
}

/* dtype -1: any */
static void one(FILE *out, const struct device_table *t, enum device_kind kind, int dtype,
                const char *name)
{
    struct line l = {.n = 0};

    for (int i = 0; i < t->rows; i++)
        if (t->row[i].kind == kind && (dtype < 0 || (int)t->row[i].shape.dtype == dtype))
            take(&l, &t->row[i]);
    print_line(out, &l, kind, name);
    free(l.v);
}

void device_text(FILE *out, const struct device_table *t)
{
    char name[64];
    int devices = 0;

    for (int i = 0; i < t->rows; i++)
        devices += t->row[i].kind == DEVICE_HBM_COPY;
    fprintf(out, "%d GPU%s alone: %s\n", devices, devices == 1 ? "" : "s",
            t->rows ? t->row[0].gpu : "none");
    fprintf(out, "  %-38s %12s %12s %12s\n", "", "lowest", "median", "highest");
    for (int k = 0; k < DEVICE_GEMM; k++)
        one(out, t, (enum device_kind)k, -1, what[k]);
    for (int k = DEVICE_GEMM + 1; k < DEVICE_KINDS; k++)
        one(out, t, (enum device_kind)k, -1, what[k]);
    for (int d = 0; d < GEMM_DTYPES; d++) {
        snprintf(name, sizeof(name), "%s products", gemm_dtype_name[d]);
        one(out, t, DEVICE_GEMM, d, name);
    }
}
