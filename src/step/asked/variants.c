/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/asked/variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/units.h"

/* --- options --- */

static int take_gpus(void *into, char *text, struct err *err)
{
    struct variants_asked *a = into;
    char *save = NULL;
    int rc = 0, n;

    if (strstr(text, ",,") || *text == ',' || !*text || text[strlen(text) - 1] == ',')
        return err_usage(err, "\"%s\" has an empty place", text);
    char *copy = mem_strdup(text);
    a->counts = 0;
    for (char *w = strtok_r(copy, ",", &save); rc == 0 && w; w = strtok_r(NULL, ",", &save)) {
        rc = units_int(&n, w, 1, LAYOUT_RANKS_MAX, err);
        if (rc == 0)
            MEM_PUSH(a->gpus, a->counts) = n;
    }
    free(copy);
    return rc;
}

static int take_what_if(void *into, char *text, struct err *err)
{
    struct variants_asked *a = into;
    struct what_if w;

    if (what_if_parse(&w, text, err) < 0)
        return -1;
    MEM_PUSH(a->what, a->whats) = w;
    return 0;
}

const struct opt variants_options[] = {
    {"gpus", 0, "N[,N...]", NULL, OPT_CALL(take_gpus), .flags = OPTION_HIDDEN},
    {"weak", 0, NULL, "with several --gpus, keep the tokens per GPU constant instead of the batch",
     OPT_INTO(struct variants_asked, weak)},
    {"what-if", 0, "CHANGES",
     "also predict a machine with faster parts: nic=2x or 400G, nvlink=, latency=, hbm=, flops=2x, "
     "exceptions=none; may be given again",
     OPT_CALL(take_what_if)},
    {0},
};

void variants_asked_free(struct variants_asked *a)
{
    free(a->gpus);
    free(a->what);
    *a = (struct variants_asked){0};
}

/* --- layouts and batches of other counts --- */

/* Returns the layout with its data-parallel axis open.  The caller frees. */
static char *open_axis(const struct job_opts *o, struct err *err)
{
    struct layout l;
    char text[AXES_TEXT * 2];
    bool replicate = o->recipe.strategy == STRATEGY_DDP || o->recipe.strategy == STRATEGY_HSDP;
    int axis = replicate ? AXIS_DP_REPLICATE : AXIS_DP_SHARD;

    if (!o->layout || strstr(o->layout, "auto"))
        return mem_strdup(o->layout ? o->layout : "dp=auto");
    if (layout_parse(&l, o->layout, (enum strategy)o->recipe.strategy, (enum mesh_order)o->mesh, 0,
                     err) < 0)
        return NULL;
    l.size[axis] = 1;
    layout_text(text, sizeof(text), &l);
    bool empty = strchr(text, '=') == NULL;
    return mem_printf("%s%s%s=auto", empty ? "" : text, empty ? "" : ",", axis_name[axis]);
}

/* Returns the default batch of a GPU count; 0: the count has no layout. */
static int batch_of(const struct job_opts *o, int gpus)
{
    struct job_opts as = *o;
    struct job j;
    struct err err = {0, ""};

    as.gpus = gpus;
    int rc = job_open(&j, &as, &err);
    job_free(&j);
    return rc < 0 ? 0 : as.recipe.global_batch;
}

static int larger_first(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x < y) - (x > y);
}

/* Rule for batches: that of `gpus` GPUs; batch 0: each count has its own. */
struct batches {
    int batch, gpus;
};

/* Find the first of these counts with a layout. */
static struct batches first_batch(const struct job_opts *job, const int *gpus, int counts)
{
    for (int i = 0; i < counts; i++) {
        int batch = batch_of(job, gpus[i]);
        if (batch)
            return (struct batches){batch, gpus[i]};
    }
    return (struct batches){0, 0};
}

static struct batches choose(struct variants *v, const struct variants_opts *o,
                             const struct job_opts *job)
{
    if (!o->asked->counts || job->accumulation)
        return (struct batches){0, 0};
    if (job->recipe.global_batch)
        return (struct batches){job->recipe.global_batch, o->asked->gpus[0]};
    if (o->asked->weak)
        return first_batch(job, o->asked->gpus, o->asked->counts);
    int *sorted = mem_calloc((size_t)o->asked->counts, sizeof(*sorted));
    memcpy(sorted, o->asked->gpus, (size_t)o->asked->counts * sizeof(*sorted));
    qsort(sorted, (size_t)o->asked->counts, sizeof(*sorted), larger_first);
    struct batches b = first_batch(job, sorted, o->asked->counts);
    free(sorted);
    if (b.batch)
        snprintf(v->note, sizeof(v->note),
                 "a batch of %d for all: what %d GPUs have with the fewest microbatches; --batch "
                 "and --weak say otherwise",
                 b.batch, b.gpus);
    return b;
}

static int set_batch(struct job_opts *o, const struct batches *b, bool weak, int gpus,
                     struct err *err)
{
    double batch = (double)b->batch * gpus / b->gpus;

    if (!b->batch)
        return 0;
    if (!weak) {
        o->recipe.global_batch = b->batch;
        return 0;
    }
    if (batch != floor(batch) || batch < 1 || batch > 1 << 28)
        return err_usage(err, "a batch of %d on %d GPUs is one of %g on %d", b->batch, b->gpus,
                         batch, gpus);
    o->recipe.global_batch = (int)batch;
    return 0;
}

/* --- one row --- */

static int ask(struct variant *r, const struct variants_opts *o, struct job_opts *job,
               struct err *err)
{
    struct job j;
    int rc = job_open(&j, job, err);

    if (rc == 0 && r->what)
        rc = what_if_apply(r->what, &j, err);
    if (rc == 0) {
        struct question q = job_question(&j, job);
        r->gpus = j.layout.ranks;
        r->batch = job->recipe.global_batch;
        rc = o->ask(o->ctx, &r->step, &q, err);
    }
    if (rc == 0 && budget_asked(o->budget)) {
        rc = budget_of(&r->budget, o->budget, &r->step, &job->recipe, job_nodes(&j), err);
        r->budgeted = rc == 0;
    }
    job_free(&j);
    return rc;
}

static double seconds_of(const struct prediction *p, const char *label)
{
    double sum = 0;

    for (int i = 0; i < p->terms; i++)
        if (!strcmp(p->term[i].label, label))
            sum += p->term[i].sec;
    return sum;
}

static bool listed(const struct variant *r, const char *label)
{
    for (int i = 0; i < r->moves; i++)
        if (!strcmp(r->moved[i].label, label))
            return true;
    return false;
}

/* Find the terms that moved most and by more than a thousandth of the step. */
static void find_moved(struct variant *r, const struct variant *base)
{
    const struct prediction *of[] = {&base->step, &r->step};

    while (r->moves < MOVED_MAX) {
        struct moved best = {.label = NULL};
        double most = base->step.sec / 1000;
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < of[k]->terms; i++) {
                const char *label = of[k]->term[i].label;
                double a = seconds_of(of[0], label), b = seconds_of(of[1], label);
                if (fabs(a - b) > most && !listed(r, label)) {
                    most = fabs(a - b);
                    best = (struct moved){label, a, b};
                }
            }
        if (!best.label)
            return;
        r->moved[r->moves++] = best;
    }
}

/* Returns the first row of the same machine that has a step, like r. */
static const struct variant *first_of(const struct variants *v, const struct variant *r)
{
    int i = 0;

    while (v->row[i].what != r->what || v->row[i].why)
        i++;
    return &v->row[i];
}

static void compare(struct variants *v, const struct variants_opts *o)
{
    for (int i = 0; i < v->rows; i++) {
        struct variant *r = &v->row[i];
        const struct variant *base = &v->row[i - i % (o->asked->whats + 1)];
        r->gain = r->efficiency = NAN;
        if (r->why)
            continue;
        v->steps++;
        v->fitting += memory_fit(&r->step.memory) != MEMORY_UNFIT;
        if (o->asked->counts)
            r->efficiency = r->step.tokens_per_gpu / first_of(v, r)->step.tokens_per_gpu;
        if (r->what && !base->why) {
            r->gain = base->step.sec / r->step.sec;
            find_moved(r, base);
        }
    }
}

static void one(struct variants *v, const struct variants_opts *o, const struct job_opts *job,
                const struct batches *b, int gpus, const struct what_if *what)
{
    struct job_opts as = *job;
    struct err err = {0, ""};
    struct variant *r = &v->row[v->rows++];

    *r = (struct variant){.what = what, .gpus = gpus};
    if (gpus)
        as.gpus = gpus;
    if (set_batch(&as, b, o->asked->weak, gpus, &err) < 0 || ask(r, o, &as, &err) < 0) {
        v->code = err.code;
        r->why = mem_strdup(err.text);
    }
}

/* Fail if a mean time of the whole job cannot be carried over to other counts. */
static int counts_make_sense(const struct variants_opts *o, struct err *err)
{
    if (o->asked->counts > 1 && o->budget->mtbf > 0 && o->budget->mtbf_of == BUDGET_OF_JOB)
        return err_usage(err, "--mtbf of a job is of one GPU count: say that of a GPU or node, as "
                              "in --mtbf 50000h/gpu");
    if (o->asked->weak && o->asked->counts < 2)
        return err_usage(err, "--weak is about several counts: --gpus 64,128,256");
    return 0;
}

int variants_make(struct variants *v, const struct variants_opts *o, struct err *err)
{
    struct job_opts job = *o->job;
    int counts = o->asked->counts ? o->asked->counts : 1;
    char *layout = NULL;

    memset(v, 0, sizeof(*v));
    if (counts_make_sense(o, err) < 0 || (o->asked->counts && !(layout = open_axis(&job, err))))
        return -1;
    if (layout)
        job.layout = layout;
    v->row = mem_calloc((size_t)counts * ((size_t)o->asked->whats + 1), sizeof(*v->row));
    struct batches b = choose(v, o, &job);
    for (int i = 0; i < counts; i++)
        for (int k = -1; k < o->asked->whats; k++)
            one(v, o, &job, &b, o->asked->counts ? o->asked->gpus[i] : 0,
                k < 0 ? NULL : &o->asked->what[k]);
    compare(v, o);
    free(layout);
    return 0;
}

void variants_free(struct variants *v)
{
    for (int i = 0; i < v->rows; i++) {
        prediction_free(&v->row[i].step);
        free(v->row[i].why);
    }
    free(v->row);
    memset(v, 0, sizeof(*v));
}

/* --- as JSON --- */

static json_t *step_json(const struct variant *r)
{
    const struct prediction *p = &r->step;
    json_t *o = json_pack(
        "{s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "layout", p->layout,
        "batch", r->batch, "microbatches", p->microbatches, "step_s", json_finite(p->sec), "lo_s",
        json_finite(p->lo), "hi_s", json_finite(p->hi), "tokens_per_s",
        json_finite(p->tokens / p->sec), "tokens_per_s_per_gpu", json_finite(p->tokens_per_gpu),
        "mfu", json_finite(p->mfu), "memory_bytes", json_bytes(p->memory.total), "fits",
        p->memory.capacity > 0 ? json_string(memory_fit_text(&p->memory)) : json_null(),
        "efficiency", json_finite(r->efficiency), "gain", json_finite(r->gain));
    json_t *moved = json_array();

    for (int i = 0; i < r->moves; i++)
        json_array_append_new(moved, json_pack("{s:s, s:o, s:o}", "label", r->moved[i].label,
                                               "before_s", json_finite(r->moved[i].before),
                                               "after_s", json_finite(r->moved[i].after)));
    json_object_set_new(o, "moved", moved);
    if (r->budgeted)
        json_object_set_new(o, "run", budget_json(&r->budget));
    return o;
}

json_t *variants_json(const struct variants *v)
{
    json_t *rows = json_array();

    for (int i = 0; i < v->rows; i++) {
        const struct variant *r = &v->row[i];
        json_t *o =
            json_pack("{s:i, s:s}", "gpus", r->gpus, "what_if", r->what ? r->what->text : "");
        json_t *more = r->why ? json_pack("{s:s}", "why", r->why) : step_json(r);
        json_object_update(o, more);
        json_decref(more);
        json_array_append_new(rows, o);
    }
    return json_pack("{s:s, s:i, s:o, s:s, s:o}", "format", "railgauge-variants", "version", 1,
                     "provenance", json_provenance(), "note", v->note, "rows", rows);
}
