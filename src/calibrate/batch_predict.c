/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_predict.c - load everything that the rows of a table name, each once, and predict the
 * rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/stats.h"
#include "calibrate/batch_impl.h"
#include "step/job.h"
#include "step/search/eval.h"

/* A model, or the reason why it could not be loaded. */
struct cached_model {
    char *name; /* files: name with folder */
    struct model model;
    struct err err;
};

/* A preset with a number of racks, or the reason for its failure. */
struct cached_matrix {
    const char *preset;
    int racks, gpus_per_node, nvlink_domain;
    double flops;
    struct fabric fabric;
    struct matrix matrix;
    struct err err;
};

struct batch_cache {
    struct cached_model **model;
    struct cached_matrix **matrix;
    int models, matrices;
};

struct batch_inputs {
    const struct model *model;
    const struct fabric *fabric;
    const struct matrix *matrix;
    struct layout layout;
    int *order; /* NULL: rank i is endpoint i */
    struct work work;
    struct traffic traffic;
    double one[TRAFFIC_MAX]; /* s per message on its slowest group */
};

/* Returns a model name; a file not found from here is searched beside the table. */
static char *model_name(const struct batch_row *r)
{
    const char *path = r->table->path, *slash = strrchr(path, '/');

    if (!slash || *r->model == '/' || !strchr(r->model, '/') || access(r->model, R_OK) == 0)
        return mem_strdup(r->model);
    return mem_printf("%.*s/%s", (int)(slash - path), path, r->model);
}

static const struct cached_model *model_of(struct batch_cache *c, const struct batch_row *r)
{
    char *name = model_name(r);

    for (int i = 0; i < c->models; i++)
        if (!strcmp(c->model[i]->name, name)) {
            free(name);
            return c->model[i];
        }
    struct cached_model *m = mem_calloc(1, sizeof(*m));
    m->name = name;
    if (model_load(&m->model, name, &m->err) < 0)
        m->err.code = m->err.code ? m->err.code : EXIT_UNJUDGED;
    MEM_PUSH(c->model, c->models) = m;
    return m;
}

/* True for the same machine with the same settings. */
static bool same_machine(const struct cached_matrix *a, const struct cached_matrix *b)
{
    return !strcmp(a->preset, b->preset) && a->racks == b->racks && a->flops == b->flops &&
           a->gpus_per_node == b->gpus_per_node && a->nvlink_domain == b->nvlink_domain;
}

static const struct cached_matrix *matrix_of(struct batch_cache *c, struct batch_row *r)
{
    struct cached_matrix *k = mem_calloc(1, sizeof(*k));

    matrix_init(&k->matrix);
    k->preset = r->preset;
    k->flops = r->flops;
    if (fabric_load(&k->fabric, r->preset, &k->err) == 0 &&
        fabric_reshape(&k->fabric, r->gpus_per_node, r->nvlink_domain, &k->err) == 0) {
        int habit = fabric_segment(&k->fabric, r->gpus);
        struct placement place = {.segment = r->segment ? r->segment : habit};
        if (!r->segment && habit)
            batch_remark(r, "%d of the %d hosts of a rack are taken", habit,
                         k->fabric.hosts_per_rack);
        r->segment = place.segment;
        k->racks = placement_racks(&place, &k->fabric, r->gpus);
        k->gpus_per_node = k->fabric.gpus_per_host;
        k->nvlink_domain = k->fabric.hosts_per_domain;
    }
    for (int i = 0; i < c->matrices; i++) {
        if (!same_machine(c->matrix[i], k))
            continue;
        fabric_free(&k->fabric);
        free(k);
        return c->matrix[i];
    }
    if (k->racks && matrix_from_fabric(&k->matrix, &k->fabric, k->racks, &k->err) == 0)
        job_flops(&k->matrix, r->flops);
    MEM_PUSH(c->matrix, c->matrices) = k;
    return k;
}

static int price(struct batch_inputs *a, const struct recipe *r, struct err *err)
{
    struct pricer *p;
    struct step step;
    char axes[AXES_TEXT];

    step_of(&step, a->model, &a->layout, r);
    work_of(&a->work, &step);
    traffic_of(&a->traffic, &step);
    if (pricer_open(&p, a->matrix, a->order, a->layout.ranks, err) < 0)
        return -1;
    int rc = 0;
    for (int i = 0; i < a->traffic.messages && rc == 0; i++) {
        const struct message *m = &a->traffic.message[i];
        struct cost cost;
        int group;
        pricer_message_cost(p, m, &cost, &group);
        a->one[i] = cost.sec;
        if (!isfinite(cost.sec))
            rc = err_set(err, "%s over %s: %s", m->label, axes_text(axes, m->axes), cost.source);
    }
    pricer_close(p);
    return rc;
}

/* Check the layout.  Chunks per stage are often printed for another layout of the same table, so
 * the row is resolved without them rather than lost. */
static int allow_layout(struct batch_row *r, const struct batch_inputs *a, struct err *err)
{
    struct recipe was = r->recipe;
    struct err why;

    if (layout_check(&a->layout, a->model, &r->recipe, &why) == 0)
        return 0;
    r->recipe = was;
    r->recipe.stages = 1;
    r->recipe.schedule = SCHEDULE_1F1B;
    if (was.stages < 2 || layout_check(&a->layout, a->model, &r->recipe, NULL) < 0)
        return err_code(err, why.code, "%s", why.text);
    batch_remark(r, "vp=%d is left out: %s", was.stages, why.text);
    return 0;
}

static double capacity_of(const struct batch_row *r, const struct batch_inputs *a)
{
    return r->gpu_bytes > 0 ? r->gpu_bytes : a->fabric->gpu.memory_bytes.value;
}

void batch_memory(struct memory *mem, const struct batch_row *r, const struct constants *c)
{
    const struct batch_inputs *a = r->inputs;
    struct recipe with = r->recipe;
    struct step step;

    step_of(&step, a->model, &a->layout, &with);
    with.recompute = r->fits_with < RECOMPUTE_COUNT ? r->fits_with : r->recipe.recompute;
    memory_of(mem, &step, capacity_of(r, a), c);
}

/* --- the memory of a published step must fit --- */

/* Need / capacity that may be memory_of()'s own error: up to 22 % too high for a published reading
 * (187 GB of Llama 3.1 8B with 65,536 tokens per rank, torchtitan
 * components/quantization/nvfp4.md), 15 % in tests/unit/memory.c. */
static const double memory_trust = 1.25;

/* Returns the least recompute with which the job fits into `share` of the capacity, and *mem, its
 * need; RECOMPUTE_COUNT: none does. */
static int least(struct memory *mem, const struct model *m, const struct layout *l,
                 const struct recipe *recipe, double capacity, double share,
                 const struct constants *c)
{
    struct recipe with = *recipe;
    struct step step;

    step_of(&step, m, l, &with);
    for (; with.recompute < RECOMPUTE_COUNT; with.recompute++) {
        memory_of(mem, &step, capacity, c);
        if (!(capacity > 0) || mem->total <= capacity * share)
            break;
    }
    return with.recompute;
}

/* Shard weights, like other recipes of that source, if a copy on every rank cannot fit. */
static bool shares_weights(struct recipe *recipe)
{
    bool copies = recipe->strategy == STRATEGY_ZERO1 || recipe->strategy == STRATEGY_ZERO2;

    if (!copies || recipe->lora)
        return false;
    recipe->strategy = STRATEGY_FSDP;
    if (recipe->stack == STACK_MEGATRON && !(recipe->grad_bytes > 0))
        recipe->grad_bytes = 2; /* as in rows with FSDP-64 */
    return true;
}

static void settle_recompute(struct batch_row *r, const struct memory *need, int assumed)
{
    const char *by = batch_fits_by(r);
    double gb = need->total / 1e9, of = need->capacity / 1e9;

    if (by)
        batch_remark(r, "%.0f GB of %.0f as read: %s, less than recompute %s", gb, of, by,
                     recipe_name.recompute[r->fits_with]);
    else if (assumed > r->recipe.recompute)
        batch_remark(r, "recompute %s assumed: without it %.0f GB of %.0f",
                     recipe_name.recompute[assumed], gb, of);
    else
        batch_remark(r, "%.0f GB of %.0f as read: within the error of that", gb, of);
    if (!by)
        r->recipe.recompute = assumed;
}

/* A published step ran, so it must fit into `capacity` bytes.  r->fits_with becomes the least
 * recompute with which it does, with weights sharded if copies of them do not fit.  The step is
 * timed with it too, unless the source is known to save memory at lower cost, or memory_of() may
 * err by that much.  Assumptions are remarked.  After layout_check. */
static void fit(struct batch_row *r, const struct model *m, const struct layout *l, double capacity,
                const struct constants *c)
{
    struct recipe shared = r->recipe;
    struct memory need, mem;
    struct step step;

    step_of(&step, m, l, &r->recipe);
    memory_of(&need, &step, capacity, c);
    r->fits_with = least(&mem, m, l, &r->recipe, capacity, 1, c);
    if (r->fits_with == RECOMPUTE_COUNT && shares_weights(&shared) &&
        (r->fits_with = least(&mem, m, l, &shared, capacity, 1, c)) < RECOMPUTE_COUNT) {
        batch_remark(r, "fsdp assumed: with %s %.0f GB of %.0f",
                     recipe_name.strategy[r->recipe.strategy], need.total / 1e9, capacity / 1e9);
        r->recipe = shared;
        step_of(&step, m, l, &r->recipe);
        memory_of(&need, &step, capacity, c);
    }
    if (r->fits_with == RECOMPUTE_COUNT)
        batch_remark(r, "%.0f GB of %.0f: it does not fit, however it is read", need.total / 1e9,
                     capacity / 1e9);
    else if (r->fits_with > r->recipe.recompute)
        settle_recompute(r, &need, least(&mem, m, l, &r->recipe, capacity, memory_trust, c));
}

/* Set r->other_dtype to -1 if it is settled: this GPU has no such products, or the source states
 * the other dtype. */
static void settle_dtype(struct batch_row *r, const struct fabric_gpu *gpu)
{
    bool can = false;

    for (int i = 0; i < gpu->peaks && r->other_dtype >= 0; i++)
        can |= !strcmp(gpu->peak[i].dtype, recipe_name.dtype[r->other_dtype]);
    if (!can || r->other_dtype == r->recipe.dtype)
        r->other_dtype = -1;
    else
        batch_remark(r, "dtype is %s or %s: %s is assumed, and the interval reaches the other",
                     recipe_name.dtype[r->recipe.dtype], recipe_name.dtype[r->other_dtype],
                     recipe_name.dtype[r->recipe.dtype]);
}

/* --- the rows --- */

/* Returns the measured seconds of a step from the printed value; NAN for a claim.  After
 * batch_resolve(). */
static double batch_measured(const struct batch_row *r)
{
    struct flops f;

    switch (r->metric) {
    case METRIC_SECONDS:
        return r->printed;
    case METRIC_TOKENS:
        return r->tokens / (r->printed * r->gpus);
    case METRIC_FLOPS:
        model_flops(r->inputs->model, r->recipe.seq, batch_counts_causal(r), &f);
        return flops_total(&f) * r->tokens / (r->printed * r->gpus);
    default:
        return NAN;
    }
}

/* Set r->job and r->same, once all settings are known. */
static void batch_name_job(struct batch_row *r, const struct layout *l)
{
    const struct recipe *q = &r->recipe;
    const char *plain = recipe_overlaps_tp(q) || l->size[AXIS_TP] == 1 ? "" : ", tp plain";

    r->job = mem_printf(
        "%s, %s, %s, %s, seq %d, batch %d x %d, v %d, %s, recompute %s, stack %s%s%s%s", r->model,
        r->preset, r->dtype, r->layout, q->seq, q->global_batch, q->micro_batch, q->stages,
        recipe_name.strategy[q->strategy], recipe_name.recompute[q->recompute],
        recipe_name.stack[q->stack], plain, q->mtp ? ", mtp" : "", q->lora ? ", lora" : "");
    r->same =
        mem_printf("%s, tp %d, pp %d, cp %d, ep %d, etp %d, v %d, micro %d, seq %d, %s, %s%s",
                   r->family, l->size[AXIS_TP], l->size[AXIS_PP], l->size[AXIS_CP],
                   l->size[AXIS_EP], l->size[AXIS_ETP], q->stages, q->micro_batch, q->seq,
                   recipe_name.strategy[q->strategy], recipe_name.recompute[q->recompute], plain);
}

/* Predict the kind of memory that the row reads, even if the job does not fit. */
static void predict_reading(struct batch_row *r, const struct batch_inputs *a,
                            const struct constants *c)
{
    struct memory mem;
    struct step step;

    step_of(&step, a->model, &a->layout, &r->recipe);
    memory_of(&mem, &step, 0, c);
    r->bytes = memory_of_kind(&mem, (enum memory_kind)r->reads);
    r->bytes_lo = r->bytes - memory_error(&mem, (enum memory_kind)r->reads);
    r->bytes_hi = r->bytes + memory_error(&mem, (enum memory_kind)r->reads);
}

static int resolve(struct batch_row *r, struct batch_cache *c, const struct constants *k,
                   struct err *err)
{
    const struct cached_model *model = model_of(c, r);
    const struct cached_matrix *matrix = matrix_of(c, r);
    struct batch_inputs *a = mem_calloc(1, sizeof(*a));

    r->inputs = a;
    *err = model->err.code ? model->err : matrix->err;
    if (err->code)
        return -1;
    a->model = &model->model;
    a->fabric = &matrix->fabric;
    a->matrix = &matrix->matrix;
    struct params p;
    model_params(a->model, &p);
    r->dense = !(p.expert > 0);
    if (layout_parse(&a->layout, r->layout, (enum strategy)r->recipe.strategy,
                     (enum mesh_order)r->mesh, r->gpus, err) < 0)
        return -1;
    batch_chunks(r, a->model, &a->layout);
    if (allow_layout(r, a, err) < 0)
        return -1;
    predict_reading(r, a, k);
    fit(r, a->model, &a->layout, capacity_of(r, a), k);
    settle_dtype(r, &a->fabric->gpu);
    layout_text(r->layout, sizeof(r->layout), &a->layout);
    struct placement place = {.segment = r->segment};
    int given;
    if (placement_make(&a->order, &given, &a->matrix->topo, &place, r->gpus, err) < 0 ||
        price(a, &r->recipe, err) < 0)
        return -1;
    batch_name_job(r, &a->layout);
    r->tokens = (double)r->recipe.global_batch * r->recipe.seq;
    r->measured = batch_measured(r);
    return 0;
}

static void miss(struct batch_row *r, const struct err *err)
{
    r->status = BATCH_MISS;
    batch_remark(r, "%s", err->text);
}

void batch_resolve_row(struct batch *b, int i, const struct constants *c)
{
    struct err err = {0, ""};

    b->cache = b->cache ? b->cache : mem_calloc(1, sizeof(*b->cache));
    if (b->row[i].status == BATCH_PREDICTED && resolve(&b->row[i], b->cache, c, &err) < 0)
        miss(&b->row[i], &err);
}

void batch_resolve(struct batch *b, const struct constants *c)
{
    for (int i = 0; i < b->rows; i++)
        batch_resolve_row(b, i, c);
}

struct question batch_question(const struct batch_row *r, const struct constants *c)
{
    const struct batch_inputs *a = r->inputs;

    return (struct question){.matrix = a->matrix,
                             .fabric = a->fabric,
                             .model = a->model,
                             .layout = &a->layout,
                             .recipe = &r->recipe,
                             .order = a->order,
                             .constants = c,
                             .release = r->released ? r->release : NULL,
                             .publisher = r->publisher};
}

double batch_seconds(const struct batch_row *r, const struct constants *c, double stretch,
                     struct err *err)
{
    const struct batch_inputs *a = r->inputs;
    struct question q = batch_question(r, c);
    struct coefficients k;
    struct timing t;
    double peak;

    q.stretch = stretch;
    if (eval_coefficients(&k, &peak, &q, q.layout, q.recipe, err) < 0)
        return NAN;
    timing_of(&t, &a->traffic, a->one, &a->work, &k, &a->layout, &r->recipe);
    return t.sec;
}

/* Returns the doubt that widens the interval to the time with the other dtype, and for unknown
 * machines. */
static double doubt_of(const struct batch_row *r, const struct constants *c)
{
    struct batch_row other = *r;
    struct batch_inputs inputs = *r->inputs;
    struct step step;

    if (r->other_dtype < 0)
        return r->machine_doubt;
    other.inputs = &inputs;
    other.recipe.dtype = r->other_dtype;
    step_of(&step, inputs.model, &inputs.layout, &other.recipe);
    work_of(&inputs.work, &step);
    double ratio = batch_seconds(r, c, 0, NULL) / batch_seconds(&other, c, 0, NULL);
    return r->machine_doubt + (isfinite(ratio) ? (fmax(ratio, 1 / ratio) - 1) / STATS_Z90 : 0);
}

void batch_predict_row(struct batch *b, int row, const struct constants *c)
{
    struct batch_row *r = &b->row[row];
    struct err err = {0, ""};
    struct prediction p;

    if (r->status != BATCH_PREDICTED)
        return;
    struct question q = batch_question(r, c);
    q.doubt = r->doubt = doubt_of(r, c);
    if (predict_step(&p, &q, &err) < 0) {
        miss(r, &err);
    } else {
        r->predicted = p.sec;
        r->lo = p.lo;
        r->hi = p.hi;
        r->terms_deviation = p.terms_deviation;
        r->software_share = p.software_share;
        r->known = p.known;
    }
    prediction_free(&p);
}

void batch_predict(struct batch *b, const struct constants *c)
{
    for (int i = 0; i < b->rows; i++)
        batch_predict_row(b, i, c);
}

static void cache_free(struct batch_cache *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->models; i++) {
        model_free(&c->model[i]->model);
        free(c->model[i]->name);
        free(c->model[i]);
    }
    for (int i = 0; i < c->matrices; i++) {
        matrix_free(&c->matrix[i]->matrix);
        fabric_free(&c->matrix[i]->fabric);
        free(c->matrix[i]);
    }
    free(c->model);
    free(c->matrix);
    free(c);
}

void batch_free(struct batch *b)
{
    for (int i = 0; i < b->rows; i++) {
        if (b->row[i].inputs)
            free(b->row[i].inputs->order);
        free(b->row[i].inputs);
        free(b->row[i].family);
        free(b->row[i].job);
        free(b->row[i].same);
    }
    for (int i = 0; i < b->notes; i++)
        free(b->note[i]);
    free(b->note);
    free(b->row);
    json_decref(b->publications);
    tsv_free(&b->table);
    for (int i = 0; i < b->mores; i++) {
        tsv_free(b->more[i]);
        free(b->more[i]);
    }
    free(b->more);
    cache_free(b->cache);
    memset(b, 0, sizeof(*b));
}
