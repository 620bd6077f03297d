/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* First match rules: "GB300" and "B300" before "B200". */
static const struct {
    const char *part, *generation;
} generations[] = {
    {"B300", "blackwell-ultra"}, {"B200", "blackwell"}, {"H100", "hopper"},
    {"H200", "hopper"},          {"GH200", "hopper"},
};

const char *rate_generation(const char *gpu)
{
    for (size_t i = 0; i < sizeof(generations) / sizeof(*generations); i++)
        if (strstr(gpu, generations[i].part))
            return generations[i].generation;
    return NULL;
}

static double peak_of(const struct fabric_gpu *gpu, const char *dtype)
{
    for (int i = 0; i < gpu->peaks; i++)
        if (!strcmp(gpu->peak[i].dtype, dtype))
            return gpu->peak[i].flops.value;
    return 0;
}

/* "efficiency.hopper.bf16", else "efficiency.default". */
static const struct constant *pick(const struct constants *c, const char *kind,
                                   const char *generation, const char *dtype)
{
    char name[96];
    const struct constant *found = NULL;

    if (generation) {
        snprintf(name, sizeof(name), "%s.%s%s%s", kind, generation, dtype ? "." : "",
                 dtype ? dtype : "");
        found = constants_find(c, name);
    }
    if (!found) {
        snprintf(name, sizeof(name), "%s.default", kind);
        found = constants_get(c, name);
    }
    return found;
}

static void set_part(struct rate *r, enum work_part part, double rate, const struct constant *c,
                     const char *unit)
{
    r->of[part] = rate * c->value;
    r->error[part] = c->error;
    snprintf(r->part_source[part], RATE_SOURCE, "%s x %s %.3g", unit, c->name, c->value);
}

static void from_measurement(struct rate *r, const struct matrix *m)
{
    r->basis = BASIS_MEASURED;
    snprintf(r->source, sizeof(r->source), "%s",
             m->compute.source ? m->compute.source
                               : "compute rate of the matrix, source not given");
    for (int i = WORK_LINEAR; i <= WORK_CORE; i++) {
        r->of[i] = m->compute.flops;
        r->error[i] = 0.1; /* one kernel stands for all layers */
        memcpy(r->part_source[i], r->source, sizeof(r->source));
    }
}

/* Peaks of the data sheet times what was fitted to published steps. */
static void from_data_sheet(struct rate *r, const struct fabric_gpu *gpu, enum dtype dtype,
                            const struct constants *c)
{
    const char *generation = rate_generation(gpu->name);
    double bf16 = peak_of(gpu, "bf16");
    const struct constant *e = pick(c, "efficiency", generation, dtype_name[dtype]);
    const struct constant *a = pick(c, "attention", generation, NULL);
    char unit[96];

    snprintf(unit, sizeof(unit), "%s %s peak %.0f TFLOP/s (data sheet)", gpu->name,
             dtype_name[dtype], r->peak / 1e12);
    set_part(r, WORK_LINEAR, r->peak, e, unit);
    set_part(r, WORK_EXPERT, r->peak, e, unit);
    set_part(r, WORK_HEAD, r->peak, e, unit);
    snprintf(unit, sizeof(unit), "%s bf16 peak %.0f TFLOP/s (data sheet)", gpu->name, bf16 / 1e12);
    set_part(r, WORK_CORE, bf16, a, unit);
    if (!strcmp(e->name, "efficiency.default"))
        r->basis = BASIS_ASSUMED;
    snprintf(r->source, sizeof(r->source),
             "%s %s peak %.0f TFLOP/s (data sheet) x %s %.2f; attention core bf16 %.0f x %.2f",
             gpu->name, dtype_name[dtype], r->peak / 1e12, e->name, e->value, bf16 / 1e12,
             a->value);
}

int rate_of(struct rate *r, const struct matrix *m, const struct fabric *f,
            const struct recipe *recipe, const struct constants *c, struct err *err)
{
    const char *dtype = dtype_name[recipe->dtype];

    *r = (struct rate){.basis = BASIS_PRESET};
    for (int i = 0; i < WORK_PARTS; i++)
        r->of[i] = INFINITY;
    if (f) {
        r->peak = peak_of(&f->gpu, dtype);
        r->hbm_Bps = f->gpu.hbm_Bps.value;
    }
    if (m->compute.flops > 0) {
        from_measurement(r, m);
        return 0;
    }
    if (!f)
        return err_set(err,
                       "no compute rate is known: the matrix has none and names no fabric (give "
                       "--fabric NAME or --flops RATE)");
    if (!(r->peak > 0) || !(peak_of(&f->gpu, "bf16") > 0))
        return err_set(err, "no %s peak rate of %s is known in fabric %s",
                       r->peak > 0 ? "bf16" : dtype, f->gpu.name, f->name);
    from_data_sheet(r, &f->gpu, (enum dtype)recipe->dtype, c);
    return 0;
}
