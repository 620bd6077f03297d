/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"

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

static void from_measurement(struct rate *r, const struct matrix *m)
{
    r->linear = r->core = m->compute.flops;
    r->linear_error = r->core_error = 0.1; /* one kernel stands for all layers */
    r->basis = BASIS_MEASURED;
    snprintf(r->source, sizeof(r->source), "%s",
             m->compute.source ? m->compute.source
                               : "compute rate of the matrix, source not given");
}

int rate_of(struct rate *r, const struct matrix *m, const struct fabric *f, enum dtype dtype,
            const struct constants *c, struct err *err)
{
    *r = (struct rate){.basis = BASIS_PRESET};
    if (f)
        r->peak = peak_of(&f->gpu, dtype_name[dtype]);
    if (f)
        r->hbm_Bps = f->gpu.hbm_Bps.value;
    if (m->compute.flops > 0) {
        from_measurement(r, m);
        return 0;
    }
    if (!f)
        return err_set(err,
                       "no compute rate is known: the matrix has none and names no fabric (give "
                       "--fabric NAME or --flops RATE)");
    double bf16 = peak_of(&f->gpu, "bf16");
    if (!(r->peak > 0) || !(bf16 > 0))
        return err_set(err, "no %s peak rate of %s is known in fabric %s",
                       r->peak > 0 ? "bf16" : dtype_name[dtype], f->gpu.name, f->name);
    const char *generation = rate_generation(f->gpu.name);
    const struct constant *e = pick(c, "efficiency", generation, dtype_name[dtype]);
    const struct constant *a = pick(c, "attention", generation, NULL);
    r->linear = r->peak * e->value;
    r->core = bf16 * a->value;
    r->linear_error = e->error;
    r->core_error = a->error;
    if (!strcmp(e->name, "efficiency.default"))
        r->basis = BASIS_ASSUMED;
    snprintf(r->source, sizeof(r->source),
             "%s %s peak %.0f TFLOP/s (data sheet) x %s %.2f; attention core bf16 %.0f x %.2f",
             f->gpu.name, dtype_name[dtype], r->peak / 1e12, e->name, e->value, bf16 / 1e12,
             a->value);
    return 0;
}
