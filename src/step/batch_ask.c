/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_ask.c - answers the rows of a table: everything that rows share is loaded once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/anchor.h"
#include "step/batch_words.h"
#include "step/pricer.h"
#include "step/timing.h"

/* A model, or why it could not be loaded. */
struct known_model {
    const char *name;
    struct model model;
    struct err err;
};

/* A preset with so many racks, or why not. */
struct known_matrix {
    const char *preset;
    int racks;
    struct fabric fabric;
    struct matrix matrix;
    struct err err;
};

struct batch_world {
    struct known_model **model;
    struct known_matrix **matrix;
    int models, matrices;
};

struct batch_asked {
    const struct model *model;
    const struct fabric *fabric;
    const struct matrix *matrix;
    struct layout layout;
    int *order; /* NULL: rank i is endpoint i */
    struct work work;
    struct traffic traffic;
    double one[TRAFFIC_MAX]; /* s of a message on its slowest group */
};

static const struct known_model *model_of(struct batch_world *w, const char *name)
{
    for (int i = 0; i < w->models; i++)
        if (!strcmp(w->model[i]->name, name))
            return w->model[i];
    struct known_model *m = mem_calloc(1, sizeof(*m));
    m->name = name;
    if (model_load(&m->model, name, &m->err) < 0)
        m->err.code = m->err.code ? m->err.code : EXIT_UNJUDGED;
    MEM_PUSH(w->model, w->models) = m;
    return m;
}

static int racks_for(const struct fabric *f, const struct batch_row *r)
{
    int per = f->gpus_per_host * (f->hosts_per_rack > 0 ? f->hosts_per_rack : 1);

    per = r->per_rack > 0 && r->per_rack < per ? r->per_rack : per;
    return (r->gpus + per - 1) / per;
}

static const struct known_matrix *matrix_of(struct batch_world *w, const struct batch_row *r)
{
    struct known_matrix *k = mem_calloc(1, sizeof(*k));

    matrix_init(&k->matrix);
    k->preset = r->preset;
    if (fabric_load(&k->fabric, r->preset, &k->err) == 0)
        k->racks = racks_for(&k->fabric, r);
    for (int i = 0; i < w->matrices; i++) {
        if (strcmp(w->matrix[i]->preset, r->preset) != 0 || w->matrix[i]->racks != k->racks)
            continue;
        fabric_free(&k->fabric);
        free(k);
        return w->matrix[i];
    }
    if (k->racks)
        matrix_from_fabric(&k->matrix, &k->fabric, k->racks, &k->err);
    MEM_PUSH(w->matrix, w->matrices) = k;
    return k;
}

/* per_rack GPUs of each rack in turn. */
static int *order_of(const struct batch_row *r, const struct fabric *f)
{
    int per = f->gpus_per_host * (f->hosts_per_rack > 0 ? f->hosts_per_rack : 1);

    if (!r->per_rack || r->per_rack >= per)
        return NULL;
    int *order = mem_calloc((size_t)r->gpus, sizeof(*order));
    for (int i = 0; i < r->gpus; i++)
        order[i] = i / r->per_rack * per + i % r->per_rack;
    return order;
}

static int price(struct batch_asked *a, const struct recipe *r, struct err *err)
{
    struct pricer *p;
    char axes[AXES_TEXT];

    work_of(&a->work, a->model, &a->layout, r);
    traffic_of(&a->traffic, a->model, &a->layout, r);
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

static int ask(struct batch_row *r, struct batch_world *w, struct err *err)
{
    const struct known_model *model = model_of(w, r->model);
    const struct known_matrix *matrix = matrix_of(w, r);
    struct batch_asked *a = mem_calloc(1, sizeof(*a));

    r->asked = a;
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
                     (enum mesh_order)r->mesh, r->gpus, err) < 0 ||
        layout_check(&a->layout, a->model, &r->recipe, err) < 0)
        return -1;
    layout_text(r->layout, sizeof(r->layout), &a->layout);
    a->order = order_of(r, a->fabric);
    if (price(a, &r->recipe, err) < 0)
        return -1;
    r->tokens = (double)r->recipe.global_batch * r->recipe.seq;
    r->measured = batch_measured(r);
    return 0;
}

static void miss(struct batch_row *r, const struct err *err)
{
    r->status = BATCH_MISS;
    batch_remark(r, "%s", err->text);
}

void batch_ask_row(struct batch *b, int i)
{
    struct err err = {0, ""};

    b->world = b->world ? b->world : mem_calloc(1, sizeof(*b->world));
    if (b->row[i].status == BATCH_PREDICTED && ask(&b->row[i], b->world, &err) < 0)
        miss(&b->row[i], &err);
}

void batch_ask(struct batch *b)
{
    for (int i = 0; i < b->rows; i++)
        batch_ask_row(b, i);
}

double batch_measured(const struct batch_row *r)
{
    struct flops f;

    switch (r->metric) {
    case METRIC_SECONDS:
        return r->printed;
    case METRIC_TOKENS:
        return r->tokens / (r->printed * r->gpus);
    case METRIC_FLOPS:
        model_flops(r->asked->model, r->recipe.seq, batch_counts_causal(r->source), &f);
        return flops_total(&f) * r->tokens / (r->printed * r->gpus);
    default:
        return NAN;
    }
}

struct question batch_question(const struct batch_row *r, const struct constants *c)
{
    const struct batch_asked *a = r->asked;

    return (struct question){.matrix = a->matrix,
                             .fabric = a->fabric,
                             .model = a->model,
                             .layout = &a->layout,
                             .recipe = &r->recipe,
                             .order = a->order,
                             .constants = c};
}

double batch_seconds(const struct batch_row *r, const struct constants *c, double stretch,
                     struct err *err)
{
    const struct batch_asked *a = r->asked;
    struct coefficients k;
    struct rate rate;
    struct timing t;

    if (rate_of(&rate, a->matrix, a->fabric, &r->recipe, c, err) < 0)
        return NAN;
    coefficients_of(&k, &rate, c, stretch > 0 ? stretch : 1);
    timing_of(&t, &a->traffic, a->one, &a->work, &k, &a->layout, &r->recipe);
    return t.sec;
}

void batch_predict(struct batch *b, const struct constants *c)
{
    for (int i = 0; i < b->rows; i++) {
        struct batch_row *r = &b->row[i];
        struct err err = {0, ""};
        struct prediction p;
        if (r->status != BATCH_PREDICTED)
            continue;
        struct question q = batch_question(r, c);
        if (predict_step(&p, &q, &err) < 0) {
            miss(r, &err);
        } else {
            r->predicted = p.sec;
            r->lo = p.lo;
            r->hi = p.hi;
        }
        prediction_free(&p);
    }
}

/* --- anchors --- */

struct solving {
    const struct batch_row *row;
    const struct constants *constants;
};

static double seconds_with(void *ctx, double stretch)
{
    const struct solving *s = ctx;

    return batch_seconds(s->row, s->constants, stretch, NULL);
}

/* Negative: a is the better anchor. */
static int smaller(const struct batch_row *a, const struct batch_row *b)
{
    bool a_test = !strncmp(a->split, "test", 4), b_test = !strncmp(b->split, "test", 4);

    if (a->gpus != b->gpus)
        return a->gpus < b->gpus ? -1 : 1;
    if (a->recipe.global_batch != b->recipe.global_batch)
        return a->recipe.global_batch < b->recipe.global_batch ? -1 : 1;
    return (int)a_test - (int)b_test;
}

static const char *key_of(const struct batch_row *r, bool same_layout)
{
    return same_layout ? r->same : r->family;
}

static int anchor_of(const struct batch *b, int i, bool same_layout)
{
    const char *key = key_of(&b->row[i], same_layout);
    int best = i;

    for (int k = 0; k < b->rows; k++) {
        const struct batch_row *r = &b->row[k];
        if (r->status != BATCH_PREDICTED || strcmp(key_of(r, same_layout), key) != 0)
            continue;
        int order = smaller(r, &b->row[best]);
        if (order < 0 || (order == 0 && k < best))
            best = k;
    }
    return best;
}

/* What solves row k; an anchor that cannot be met by compute alone scales the whole step: -ratio.
 */
static double solve(const struct batch *b, int k, const struct constants *c)
{
    const struct batch_row *r = &b->row[k];
    struct solving s = {r, c};
    double stretch;

    if (anchor_solve(&stretch, seconds_with, &s, r->measured, NULL) < 0)
        return -r->measured / r->predicted;
    return stretch;
}

static double apply(const struct batch_row *r, const struct constants *c, double solved)
{
    return solved > 0 ? batch_seconds(r, c, solved, NULL) : r->predicted * -solved;
}

static void remark_stretch(struct batch_row *r, double solved)
{
    if (solved < 0)
        batch_remark(r, "compute alone cannot meet the anchor: the whole step is scaled by %.3f",
                     -solved);
    else if (solved < ANCHOR_TRUST_MIN || solved > ANCHOR_TRUST_MAX)
        batch_remark(r, "the anchor stretches compute by %.3g: that is no matter of software",
                     solved);
}

void batch_anchor(struct batch *b, const struct constants *c)
{
    double *solved = mem_calloc((size_t)b->rows + 1, sizeof(*solved)); /* 0: not yet */

    for (int i = 0; i < b->rows; i++) {
        struct batch_row *r = &b->row[i];
        if (r->status != BATCH_PREDICTED)
            continue;
        r->anchor = anchor_of(b, i, false);
        r->same_anchor = anchor_of(b, i, true);
        for (int k = 0; k < 2; k++) {
            int at = k ? r->same_anchor : r->anchor;
            if (!solved[at])
                solved[at] = solve(b, at, c);
            *(k ? &r->same_anchored : &r->anchored) = apply(r, c, solved[at]);
        }
        r->stretch = solved[r->anchor] > 0 ? solved[r->anchor] : NAN;
        remark_stretch(r, solved[r->anchor]);
    }
    free(solved);
}

/* --- end --- */

static void world_free(struct batch_world *w)
{
    for (int i = 0; w && i < w->models; i++) {
        model_free(&w->model[i]->model);
        free(w->model[i]);
    }
    for (int i = 0; w && i < w->matrices; i++) {
        matrix_free(&w->matrix[i]->matrix);
        fabric_free(&w->matrix[i]->fabric);
        free(w->matrix[i]);
    }
    if (w) {
        free(w->model);
        free(w->matrix);
    }
    free(w);
}

void batch_free(struct batch *b)
{
    for (int i = 0; i < b->rows; i++) {
        if (b->row[i].asked)
            free(b->row[i].asked->order);
        free(b->row[i].asked);
        free(b->row[i].family);
        free(b->row[i].job);
        free(b->row[i].same);
    }
    for (int i = 0; i < b->notes; i++)
        free(b->note[i]);
    free(b->note);
    free(b->row);
    tsv_free(&b->table);
    world_free(b->world);
    memset(b, 0, sizeof(*b));
}
