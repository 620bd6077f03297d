/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/rate.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/predict.h"
#include "step/work.h"

int rate_effects(struct effect_level out[EFFECT_LEVELS], const struct rate *r,
                 const struct question *q)
{
    const struct fabric_gpu *gpu = q->fabric ? &q->fabric->gpu : NULL;
    struct effect_key key = {.model = q->model->name,
                             .publisher = q->publisher,
                             .release = q->release,
                             .stack = recipe_name.stack[q->recipe->stack],
                             .gpu = gpu ? gpu->name : NULL,
                             .generation = gpu ? gpu->generation : NULL,
                             .dtype = recipe_name.dtype[q->recipe->dtype],
                             .experts = model_has_experts(q->model)};

    return r->basis == BASIS_MEASURED ? 0 : effect_levels(out, &q->constants->effects, &key);
}

double rate_stretch(const struct rate *r, const struct question *q)
{
    struct effect_level level[EFFECT_LEVELS];
    struct effect_sum sum;

    effect_sum_of(&sum, level, q->constants->effects.count ? rate_effects(level, r, q) : 0);
    return exp(sum.value) * (q->stretch > 0 ? q->stretch : 1) / (q->shrink > 0 ? q->shrink : 1);
}

static double peak_of(const struct fabric_gpu *gpu, const char *dtype)
{
    for (int i = 0; i < gpu->peaks; i++)
        if (!strcmp(gpu->peak[i].dtype, dtype))
            return gpu->peak[i].flops.value;
    return 0;
}

/* "GB200 bf16 peak 2500 TFLOP/s (data sheet)"; a GPU without a name comes from stand_in(). */
enum { PEAK_TEXT = 96 };
static char *peak_text(char buf[PEAK_TEXT], const struct rate *r, const struct fabric_gpu *gpu,
                       const char *dtype)
{
    double tera = peak_of(gpu, dtype) / 1e12;

    if (!r->words)
        *buf = '\0';
    else if (gpu->name)
        snprintf(buf, PEAK_TEXT, "%.48s %s peak %.0f TFLOP/s (data sheet)", gpu->name, dtype, tera);
    else
        snprintf(buf, PEAK_TEXT, "best measured %s products, %.0f TFLOP/s,", dtype, tera);
    return buf;
}

static void set_part(struct rate *r, enum work_part part, double rate, double error,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void set_part(struct rate *r, enum work_part part, double rate, double error,
                     const char *fmt, ...)
{
    va_list ap;

    r->of[part] = rate;
    r->error[part] = error;
    if (!r->words)
        return;
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
    for (int i = WORK_LINEAR; i <= WORK_SCAN; i++) { /* one kernel represents all layers */
        set_part(r, (enum work_part)i, m->compute.flops, hypot(0.1, m->compute.flops_spread), "%s",
                 r->source);
        r->part_basis[i] = BASIS_MEASURED;
    }
}

/* Returns the best measured rate of products of a dtype; 0: none. */
static double compute_best(const struct compute_rates *c, const char *dtype)
{
    double best = 0;

    for (int i = 0; i < c->gemms; i++)
        if (!strcmp(c->gemm[i].dtype, dtype))
            best = fmax(best, c->gemm[i].flops);
    return best;
}

/* Cost of kernels of one part at the measured rates of their shapes. */
struct priced {
    double amount, sec, error; /* FLOPs or bytes; error: weighted by the time, s */
    double lo, hi;             /* slowest and fastest rate among them */
    bool missing;              /* one of them was not measured */
};

static void add_priced(struct priced *sum, const struct question *q, const struct gemm_rate *asked,
                       double amount)
{
    double error, rate = compute_rate(&q->matrix->compute, asked, &error);

    if (!(rate > 0)) {
        sum->missing = true;
        return;
    }
    sum->amount += amount;
    sum->sec += amount / rate;
    sum->error += amount / rate * error;
    sum->lo = sum->lo > 0 ? fmin(sum->lo, rate) : rate;
    sum->hi = fmax(sum->hi, rate);
}

static struct gemm_rate asked_of(const char *kind, const char *dtype, double m, double n, double k)
{
    struct gemm_rate asked = {.m = m, .n = n, .k = k};

    snprintf(asked.kind, sizeof(asked.kind), "%s", kind);
    snprintf(asked.dtype, sizeof(asked.dtype), "%s", dtype);
    return asked;
}

/* How often the step runs each pass: backward may repeat forward, and frozen weights have no
 * gradients. */
static double pass_weight(const struct recipe *r, int pass, enum work_part part, double share)
{
    return pass == PASS_INPUT     ? 1
           : pass == PASS_WEIGHTS ? r->lora == LORA_NONE
           : part == WORK_HEAD    ? 1
                                  : 1 + work_recomputed(r) * share;
}

static void price_product(struct priced *sum, const struct question *q, const struct product *p,
                          const char *dtype)
{
    double share =
        recipe_recomputed_share(q->recipe, (double)q->model->layers / q->layout->size[AXIS_PP]);

    for (int pass = 0; pass < PASS_COUNT; pass++) {
        double m, n, k, times = p->times * pass_weight(q->recipe, pass, p->part, share);
        product_pass(p, pass, &m, &n, &k);
        struct gemm_rate asked = asked_of("", dtype, m, n, k);
        if (times > 0)
            add_priced(sum, q, &asked, 2 * m * n * k * times);
    }
}

/* Set linear layers or the head from the table.  False if the table lacks the dtype. */
static bool from_table(struct rate *r, const struct question *q, enum work_part part,
                       const char *dtype)
{
    struct priced sum = {.amount = 0};
    struct product p[PRODUCTS_MAX];

    if (!q->layout || !(compute_best(&q->matrix->compute, dtype) > 0))
        return false;
    int n = products_of(p, q->model,
                        (double)q->recipe->seq * q->recipe->micro_batch / q->layout->size[AXIS_CP],
                        q->layout->size[AXIS_TP]);
    for (int i = 0; i < n; i++)
        if (p[i].part == part)
            price_product(&sum, q, &p[i], dtype);
    if (!(sum.sec > 0))
        return false;
    double share = r->peak > 0 && part == WORK_LINEAR ? sum.amount / sum.sec / r->peak : 0;
    char of_peak[48] = "";
    if (share > 0 && r->words)
        snprintf(of_peak, sizeof(of_peak), ", %.0f %% of the data sheet", 100 * share);
    set_part(r, part, sum.amount / sum.sec, sum.error / sum.sec,
             "measured GEMM: %s products of these shapes at %.0f TFLOP/s (%.0f to %.0f%s)", dtype,
             sum.amount / sum.sec / 1e12, sum.lo / 1e12, sum.hi / 1e12, of_peak);
    r->part_basis[part] = BASIS_MEASURED;
    return true;
}

static void set_products(struct rate *r, const struct fabric_gpu *gpu, int kind,
                         const struct constants *c)
{
    const struct constant *e = constants_efficiency(c, gpu->generation, kind);
    const struct constant *head = constants_efficiency(c, gpu->generation, DTYPE_BF16);
    const struct constant *x = constants_experts(c, kind);
    const char *dtype = recipe_name.dtype[kind];
    double bf16 = peak_of(gpu, "bf16");
    char sheet[PEAK_TEXT];

    if (e == constants_get(c, CONSTANT_EFFICIENCY_DEFAULT))
        r->basis = BASIS_ASSUMED;
    set_part(r, WORK_LINEAR, r->peak * e->value, e->error, "%s x %s %.3g",
             peak_text(sheet, r, gpu, dtype), e->name, e->value);
    set_part(r, WORK_EXPERT, r->peak * e->value * x->value, hypot(e->error, x->error),
             "%s x %s %.3g x %s %.3g", peak_text(sheet, r, gpu, dtype), e->name, e->value, x->name,
             x->value);
    set_part(r, WORK_HEAD, bf16 * head->value, head->error, "%s x %s %.3g",
             peak_text(sheet, r, gpu, "bf16"), head->name, head->value);
}

/* Factor on times between products and in launches, over those of a library. */
static double pointwise_factor(const struct constants *c, int pointwise)
{
    return pointwise == POINTWISE_LIBRARY    ? 1
           : pointwise == POINTWISE_COMPILED ? constants_get(c, CONSTANT_POINTWISE_COMPILED)->value
                                             : constants_get(c, CONSTANT_POINTWISE_SEPARATE)->value;
}

/* FlashAttention 2 was made for Ampere; later GPUs have kernels of their own (Shah et al. 2024). */
static double flash_factor(const struct constants *c, const struct recipe *recipe,
                           const char *generation)
{
    static const char *const older[] = {"volta", "turing", "ampere", "ada"};

    if (recipe_flash(recipe) != FLASH_2)
        return 1;
    for (size_t i = 0; generation && i < sizeof(older) / sizeof(*older); i++)
        if (!strcmp(generation, older[i]))
            return 1;
    return constants_get(c, CONSTANT_FLASH_2)->value;
}

/* Clocks under a limit of power, over those of the data sheet. */
static double clock_share(const struct constants *c, const struct recipe *recipe,
                          const struct fabric_gpu *gpu)
{
    double share = recipe->power_limit / gpu->power_W.value;

    if (!(recipe->power_limit > 0) || !(gpu->power_W.value > 0) || share >= 1)
        return 1;
    return pow(share, constants_get(c, CONSTANT_POWER_EXPONENT)->value);
}

/* Speed of an fp8 core relative to bf16: 1.2 / 0.74 PFLOP/s (Shah et al. 2024, FlashAttention-3,
 * abstract). */
static const double fp8_core = 1.6;

static double host_seconds(const struct constants *c, const struct recipe *recipe)
{
    static const enum constant_id of[POINTWISE_COUNT] = {
        [POINTWISE_LIBRARY] = CONSTANT_HOST_LIBRARY,
        [POINTWISE_COMPILED] = CONSTANT_HOST_COMPILED,
        [POINTWISE_SEPARATE] = CONSTANT_HOST_SEPARATE,
    };

    return constants_get(c, of[recipe_pointwise(recipe)])->value;
}

static void set_core(struct rate *r, const struct fabric_gpu *gpu, const struct recipe *recipe,
                     const struct constants *c)
{
    const struct constant *a = constants_attention(c, gpu->generation);
    const struct constant *scan = constants_get(c, CONSTANT_SCAN_SHARE);
    double bf16 = peak_of(gpu, "bf16"), longer = flash_factor(c, recipe, gpu->generation);
    char sheet[PEAK_TEXT], fp8[32] = "", flash[48] = "";

    if (r->words && recipe->fp8_attention)
        snprintf(fp8, sizeof(fp8), " x %.3g in fp8", fp8_core);
    if (r->words && longer != 1)
        snprintf(flash, sizeof(flash), " / %.3g for FlashAttention 2", longer);
    set_part(r, WORK_CORE, bf16 * a->value / longer * (recipe->fp8_attention ? fp8_core : 1),
             a->error, "%s x %s %.3g%s%s", peak_text(sheet, r, gpu, "bf16"), a->name, a->value,
             flash, fp8);
    set_part(r, WORK_SCAN, bf16 * scan->value, scan->error, "%s x %s %.3g",
             peak_text(sheet, r, gpu, "bf16"), scan->name, scan->value);
}

/* Set parts bound by the memory rate, and kernels; left out if the rate is unknown. */
static void set_memory(struct rate *r, const struct recipe *recipe, const struct constants *c,
                       const char *whose)
{
    const struct constant *memory = constants_get(c, CONSTANT_BETWEEN_SHARE);
    const struct constant *operands = constants_get(c, CONSTANT_OPERANDS_SHARE);
    const struct constant *launch = constants_get(c, CONSTANT_LAUNCH_SECONDS);
    double longer = pointwise_factor(c, recipe_pointwise(recipe)), tera = r->hbm_Bps / 1e12;
    const char *kernels = recipe_name.pointwise[recipe_pointwise(recipe)];

    if (!(r->hbm_Bps > 0))
        return;
    set_part(r, WORK_OPERANDS, r->hbm_Bps * operands->value, operands->error,
             "%.2f TB/s of memory (%s) x %s %.3g", tera, whose, operands->name, operands->value);
    set_part(r, WORK_MEMORY, r->hbm_Bps * memory->value / longer, memory->error,
             "%.2f TB/s of memory (%s) x %s %.3g / %.3g for %s kernels", tera, whose, memory->name,
             memory->value, longer, kernels);
    set_part(r, WORK_WEIGHTS, r->hbm_Bps * memory->value, memory->error,
             "%.2f TB/s of memory (%s) x %s %.3g", tera, whose, memory->name, memory->value);
    set_part(r, WORK_LAUNCH, 1 / launch->value / longer, launch->error,
             "%s %.2g x %.3g for %s kernels", launch->name, launch->value, longer, kernels);
}

/* Peaks of the data sheet times efficiencies fitted to published steps. */
static void from_data_sheet(struct rate *r, const struct question *q, const struct fabric_gpu *gpu)
{
    double clock = clock_share(q->constants, q->recipe, gpu);

    set_products(r, gpu, q->recipe->dtype, q->constants);
    set_core(r, gpu, q->recipe, q->constants);
    for (int i = WORK_LINEAR; i <= WORK_SCAN && clock < 1; i++) {
        size_t used = strlen(r->part_source[i]);
        r->of[i] *= clock;
        if (r->words)
            snprintf(r->part_source[i] + used, RATE_SOURCE - used, " x %.3g at %g W", clock,
                     q->recipe->power_limit);
    }
}

/* Use measured products for the linear layers and the head; routed experts keep their ratio to
 * them. */
static void from_products(struct rate *r, const struct question *q)
{
    const char *dtype = recipe_name.dtype[q->recipe->dtype];
    const struct constant *x = constants_experts(q->constants, q->recipe->dtype);

    if (from_table(r, q, WORK_LINEAR, dtype)) {
        r->basis = BASIS_MEASURED;
        set_part(r, WORK_EXPERT, r->of[WORK_LINEAR] * x->value,
                 hypot(r->error[WORK_LINEAR], x->error), "%.140s x %s %.3g",
                 r->part_source[WORK_LINEAR], x->name, x->value);
    }
    from_table(r, q, WORK_HEAD, "bf16");
}

static bool whole(const struct priced *sum)
{
    return sum->sec > 0 && !sum->missing;
}

/* Set a part from kernels of its own kinds.  longer: what other software adds. */
static void set_measured(struct rate *r, enum work_part part, const struct priced *sum,
                         double longer, const char *what)
{
    const char *unit = part == WORK_CORE || part == WORK_EXPERT ? "TFLOP/s" : "TB/s";
    double rate = sum->amount / sum->sec / longer;
    char other[32] = "";

    if (r->words && longer != 1)
        snprintf(other, sizeof(other), " / %.3g for this software", longer);
    set_part(r, part, rate, sum->error / sum->sec, "measured %s at %.3g %s (%.3g to %.3g)%s", what,
             rate * longer / 1e12, unit, sum->lo / 1e12, sum->hi / 1e12, other);
    r->part_basis[part] = BASIS_MEASURED;
}

/* Traffic between products, and products of experts, which read and write their tokens too. */
static void from_kernels(struct rate *r, const struct question *q, const struct step *s)
{
    struct priced between = {.amount = 0}, experts = {.amount = 0};
    struct kernel_work list[KERNELS_MAX];
    int n = kernels_of(list, s);

    for (int i = 0; i < n; i++) {
        const struct kernel_work *k = &list[i];
        bool expert = k->kind == DEVICE_GROUPED;
        struct gemm_rate asked =
            asked_of(device_kind_name[k->kind],
                     expert ? recipe_name.dtype[q->recipe->dtype] : "bf16", k->m, k->n, k->k);
        add_priced(expert ? &experts : &between, q, &asked,
                   k->m * k->n * k->times * (expert ? 2 * k->k : k->bytes));
    }
    if (whole(&between) && q->recipe->attention == KERNELS_FLASH)
        set_measured(r, WORK_MEMORY, &between,
                     pointwise_factor(q->constants, recipe_pointwise(q->recipe)),
                     "traffic of norms, gates, rotations, casts and loss");
    if (whole(&experts)) {
        set_measured(r, WORK_EXPERT, &experts, 1, "products of experts");
        set_part(r, WORK_OPERANDS, INFINITY, 0, "part of the measured products of experts");
        r->part_basis[WORK_OPERANDS] = BASIS_MEASURED;
    }
}

/* The core of both passes at this sequence and these heads; causal, as it was measured. */
static void from_cores(struct rate *r, const struct question *q, const struct step *s)
{
    double seq = (double)q->recipe->seq / s->l->size[AXIS_CP];
    struct priced sum = {.missing = q->recipe->attention != KERNELS_FLASH};

    for (int i = 0; i < q->model->kinds; i++) {
        const struct layer *k = &q->model->layer[i];
        const struct attention *a = &k->attention;
        double flops = layer_core_flops(k, q->recipe->seq, true) * k->count;
        if (a->kind == MIXER_NONE || a->kind == MIXER_MAMBA2)
            continue;
        struct gemm_rate asked = asked_of(
            "attention", "bf16", seq, fmax(1, a->heads / (double)s->l->size[AXIS_TP]), a->head_dim);
        sum.missing = sum.missing || a->kind != MIXER_GQA;
        add_priced(&sum, q, &asked, flops);
        snprintf(asked.kind, sizeof(asked.kind), "attention_backward");
        add_priced(&sum, q, &asked, WORK_FLASH_BACKWARD * flops);
    }
    if (whole(&sum))
        set_measured(r, WORK_CORE, &sum, q->recipe->fp8_attention ? 1 / fp8_core : 1,
                     "attention core of these heads and this sequence");
}

static void from_adam(struct rate *r, const struct question *q)
{
    struct gemm_rate asked = asked_of("adam", "bf16", 8192, q->model->hidden, 1);

    r->adam_Bps = compute_rate(&q->matrix->compute, &asked, &r->adam_error);
    if (!(r->adam_Bps > 0))
        return;
    set_part(r, WORK_WEIGHTS, r->adam_Bps, r->adam_error,
             "measured traffic of an optimizer at %.3g TB/s", r->adam_Bps / 1e12);
    r->part_basis[WORK_WEIGHTS] = BASIS_MEASURED;
}

/* Work counts a kernel in a graph as a part of one started alone: use the part that was measured,
 * if all kernels are in graphs. */
static void from_graphs(struct rate *r, const struct question *q)
{
    const double *alone = q->matrix->compute.alone;
    int graphs = q->recipe->cuda_graphs;
    bool all = graphs == CUDA_GRAPHS_STEP ||
               (graphs == CUDA_GRAPHS_LAYERS && !model_has_experts(q->model));
    double part = alone[ALONE_LAUNCH_GRAPH] / alone[ALONE_LAUNCH];
    size_t used = strlen(r->part_source[WORK_LAUNCH]);

    if (!all || !(part > 0) || !isfinite(part))
        return;
    r->of[WORK_LAUNCH] *= WORK_GRAPHED / part;
    if (r->words)
        snprintf(r->part_source[WORK_LAUNCH] + used, RATE_SOURCE - used,
                 ", in a graph measured %.2g of it", part);
}

/* Use what was measured of kernels other than products. */
static void from_measured_kernels(struct rate *r, const struct question *q)
{
    struct step s;

    from_adam(r, q);
    from_graphs(r, q);
    if (!q->layout)
        return;
    step_of(&s, q->model, q->layout, q->recipe);
    from_kernels(r, q, &s);
    from_cores(r, q, &s);
}

/* Without a data sheet, use the best measured rates.  They are below the peak, so the attention
 * core is rather too slow. */
static void stand_in(struct fabric_gpu *gpu, const struct matrix *m, const char *dtype)
{
    static const char *const known[] = {"bf16", NULL};

    gpu->peak = mem_calloc(2, sizeof(*gpu->peak));
    for (int i = 0; i < 2; i++) {
        const char *name = known[i] ? known[i] : dtype;
        double best = compute_best(&m->compute, name);
        if (best > 0 && !peak_of(gpu, name)) {
            snprintf(gpu->peak[gpu->peaks].dtype, sizeof(gpu->peak->dtype), "%s", name);
            gpu->peak[gpu->peaks++].flops.value = best;
        }
    }
}

static int no_rate(const struct rate *r, const struct question *q, struct err *err)
{
    const struct fabric *f = q->fabric;

    if (!f && !q->matrix->compute.gemms)
        return err_set(err,
                       "no compute rate is known: the matrix has none and names no fabric (give "
                       "--fabric NAME or --flops RATE)");
    if (!f)
        return err_set(err, "no %s products were measured for this matrix, and it names no fabric",
                       r->peak > 0 ? "bf16" : recipe_name.dtype[q->recipe->dtype]);
    return err_set(err, "no %s peak rate of %s is known in fabric %s",
                   r->peak > 0 ? "bf16" : recipe_name.dtype[q->recipe->dtype], f->gpu.name,
                   f->name);
}

static int from_shares(struct rate *r, const struct question *q, const struct fabric_gpu *gpu,
                       struct err *err)
{
    const char *dtype = recipe_name.dtype[q->recipe->dtype];

    r->peak = peak_of(gpu, dtype);
    if (q->recipe->power_limit > 0 && !(gpu->power_W.value > 0))
        return err_set(err, "power-limit: the power of the data sheet of %s is not known",
                       gpu->name ? gpu->name : "this GPU");
    if (!(r->peak > 0) || !(peak_of(gpu, "bf16") > 0))
        return no_rate(r, q, err);
    from_data_sheet(r, q, gpu);
    if (!q->fabric)
        r->peak = 0;
    for (int i = 0; i < WORK_PARTS; i++)
        r->part_basis[i] = r->basis;
    if (q->matrix->compute.gemms)
        from_products(r, q);
    if (q->matrix->compute.kernels)
        from_measured_kernels(r, q);
    if (r->words)
        snprintf(r->source, sizeof(r->source), "%.110s; attention core at %.0f TFLOP/s",
                 r->part_source[WORK_LINEAR], r->of[WORK_CORE] / 1e12);
    return 0;
}

/* For presets only, because a measured matrix contains the rates of its own links. */
static double links_factor(const struct question *q)
{
    char publisher[EFFECT_LEVEL];

    if (q->matrix->tiers > 0 && q->matrix->tier[0].basis == BASIS_MEASURED)
        return 1;
    effect_publisher(publisher, q->publisher, q->release);
    return constants_links(q->constants, publisher);
}

/* Ranks of an NVLink domain; of a host if there is no NVLink. */
static int domain_of(const struct fabric *f)
{
    return f->gpus_per_host * (f->hosts_per_domain > 1 ? f->hosts_per_domain : 1);
}

int rate_make(struct rate *r, const struct question *q, bool words, struct err *err)
{
    const struct compute_rates *measured = &q->matrix->compute;
    struct fabric_gpu own = {.name = NULL};

    *r = (struct rate){.basis = BASIS_FITTED, .words = words}; /* data sheet x fitted shares */
    for (int i = 0; i < WORK_PARTS; i++) {
        r->of[i] = INFINITY;
        r->part_basis[i] = BASIS_FITTED;
    }
    r->links = links_factor(q);
    r->domain = q->fabric ? domain_of(q->fabric) : 1;
    r->host = host_seconds(q->constants, q->recipe);
    if (q->fabric) {
        r->peak = peak_of(&q->fabric->gpu, recipe_name.dtype[q->recipe->dtype]);
        r->hbm_Bps = q->recipe->memory_rate > 0 ? q->recipe->memory_rate * 1e12
                                                : q->fabric->gpu.hbm_Bps.value;
    } else if (measured->alone[ALONE_HBM] > 0) {
        double share = measured->share[ALONE_HBM];
        r->hbm_Bps = measured->alone[ALONE_HBM] / (share > 0 ? share : 1);
    }
    set_memory(r, q->recipe, q->constants,
               q->recipe->memory_rate > 0 ? "as given"
               : q->fabric                ? "data sheet"
                                          : "measured");
    if (measured->flops > 0) {
        from_measurement(r, q->matrix);
        return 0;
    }
    if (!q->fabric)
        stand_in(&own, q->matrix, recipe_name.dtype[q->recipe->dtype]);
    int rc = from_shares(r, q, q->fabric ? &q->fabric->gpu : &own, err);
    free(own.peak);
    return rc;
}
