/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* First match rules: "GB300" and "B300" before "B200". */
static const struct {
    const char *part, *generation;
} generations[] = {
    {"B300", "blackwell-ultra"}, {"B200", "blackwell"}, {"H100", "hopper"},
    {"H200", "hopper"},          {"GH200", "hopper"},   {"A100", "ampere"},
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

/* KIND.WORD, else KIND.default. */
static const struct constant *pick(const struct constants *c, const char *kind, const char *word)
{
    char name[96];

    snprintf(name, sizeof(name), "%s.%s", kind, word);
    const struct constant *found = constants_find(c, name);
    if (found)
        return found;
    snprintf(name, sizeof(name), "%s.default", kind);
    return constants_get(c, name);
}

/* "efficiency.hopper.bf16", else efficiency.default. */
static const struct constant *efficiency(const struct constants *c, const char *generation,
                                         const char *dtype)
{
    char word[64];

    snprintf(word, sizeof(word), "%s.%s", generation, dtype);
    return pick(c, "efficiency", word);
}

static void set_part(struct rate *r, enum work_part part, double rate, double error,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void set_part(struct rate *r, enum work_part part, double rate, double error,
                     const char *fmt, ...)
{
    va_list ap;

    r->of[part] = rate;
    r->error[part] = error;
    va_start(ap, fmt);
    vsnprintf(r->part_source[part], RATE_SOURCE, fmt, ap);
    va_end(ap);
}

static void from_measurement(struct rate *r, const struct matrix *m)
{
    r->basis = BASIS_MEASURED;
    snprintf(r->source, sizeof(r->source), "%s",
             m->compute.source ? m->compute.source
                               : "compute rate of the matrix, source not given");
    for (int i = WORK_LINEAR; i <= WORK_SCAN; i++) /* one kernel stands for all layers */
        set_part(r, (enum work_part)i, m->compute.flops, 0.1, "%s", r->source);
}

static void set_products(struct rate *r, const struct fabric_gpu *gpu, const char *generation,
                         const char *dtype, const struct constants *c)
{
    const struct constant *e = efficiency(c, generation, dtype);
    const struct constant *head = efficiency(c, generation, "bf16");
    const struct constant *x = pick(c, "experts", dtype);
    double bf16 = peak_of(gpu, "bf16");

    if (!strcmp(e->name, "efficiency.default"))
        r->basis = BASIS_ASSUMED;
    set_part(r, WORK_LINEAR, r->peak * e->value, e->error,
             "%s %s peak %.0f TFLOP/s (data sheet) x %s %.3g", gpu->name, dtype, r->peak / 1e12,
             e->name, e->value);
    set_part(r, WORK_EXPERT, r->peak * e->value * x->value, hypot(e->error, x->error),
             "%s %s peak %.0f TFLOP/s (data sheet) x %s %.3g x %s %.3g", gpu->name, dtype,
             r->peak / 1e12, e->name, e->value, x->name, x->value);
    set_part(r, WORK_HEAD, bf16 * head->value, head->error,
             "%s bf16 peak %.0f TFLOP/s (data sheet) x %s %.3g", gpu->name, bf16 / 1e12, head->name,
             head->value);
}

/* "stack.core.torchtitan"; 1 for Megatron, whose steps gave the other constants. */
static double stack_factor(const struct constants *c, const char *kind, int stack)
{
    char name[64];

    if (stack == STACK_MEGATRON)
        return 1;
    snprintf(name, sizeof(name), "%s.%s", kind, stack_name[stack]);
    return constants_get(c, name)->value;
}

static void set_core(struct rate *r, const struct fabric_gpu *gpu, const char *generation,
                     const struct recipe *recipe, const struct constants *c)
{
    const struct constant *a = pick(c, "attention", generation);
    const struct constant *scan = constants_get(c, "scan.share");
    double bf16 = peak_of(gpu, "bf16"), longer = stack_factor(c, "stack.core", recipe->stack);

    set_part(r, WORK_CORE, bf16 * a->value / longer, a->error,
             "%s bf16 peak %.0f TFLOP/s (data sheet) x %s %.3g / %.3g for %s", gpu->name,
             bf16 / 1e12, a->name, a->value, longer, stack_name[recipe->stack]);
    set_part(r, WORK_SCAN, bf16 * scan->value / longer, scan->error,
             "%s bf16 peak %.0f TFLOP/s (data sheet) x %s %.3g / %.3g for %s", gpu->name,
             bf16 / 1e12, scan->name, scan->value, longer, stack_name[recipe->stack]);
}

/* What the memory rate bounds, and kernels; left out where the rate is not known. */
static void set_memory(struct rate *r, const struct recipe *recipe, const struct constants *c)
{
    const struct constant *memory = constants_get(c, "between.share");
    const struct constant *operands = constants_get(c, "operands.share");
    const struct constant *launch = constants_get(c, "launch.seconds");
    double longer = stack_factor(c, "stack", recipe->stack), tera = r->hbm_Bps / 1e12;
    const char *stack = stack_name[recipe->stack];

    if (!(r->hbm_Bps > 0))
        return;
    set_part(r, WORK_OPERANDS, r->hbm_Bps * operands->value, operands->error,
             "%.2f TB/s of memory (data sheet) x %s %.3g", tera, operands->name, operands->value);
    set_part(r, WORK_MEMORY, r->hbm_Bps * memory->value / longer, memory->error,
             "%.2f TB/s of memory (data sheet) x %s %.3g / %.3g for %s", tera, memory->name,
             memory->value, longer, stack);
    set_part(r, WORK_LAUNCH, 1 / launch->value / longer, launch->error, "%s %.2g x %.3g for %s",
             launch->name, launch->value, longer, stack);
}

/* Peaks of the data sheet times what was fitted to published steps. */
static void from_data_sheet(struct rate *r, const struct fabric_gpu *gpu,
                            const struct recipe *recipe, const struct constants *c)
{
    const char *generation = rate_generation(gpu->name);

    generation = generation ? generation : "default";
    set_products(r, gpu, generation, dtype_name[recipe->dtype], c);
    set_core(r, gpu, generation, recipe, c);
    snprintf(r->source, sizeof(r->source), "%.110s; attention core at %.0f TFLOP/s",
             r->part_source[WORK_LINEAR], r->of[WORK_CORE] / 1e12);
}

int rate_of(struct rate *r, const struct matrix *m, const struct fabric *f,
            const struct recipe *recipe, const struct constants *c, struct err *err)
{
    const char *dtype = dtype_name[recipe->dtype];

    *r = (struct rate){.basis = BASIS_FITTED}; /* data sheet x fitted shares */
    for (int i = 0; i < WORK_PARTS; i++)
        r->of[i] = INFINITY;
    if (f) {
        r->peak = peak_of(&f->gpu, dtype);
        r->hbm_Bps = f->gpu.hbm_Bps.value;
    }
    set_memory(r, recipe, c);
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
    from_data_sheet(r, &f->gpu, recipe, c);
    return 0;
}
