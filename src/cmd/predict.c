/* predict.c - railgauge predict: the step time of a model with a layout on a fabric. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/predict_args.h"
#include "cmd/predict_text.h"
#include "step/placement.h"

/* Everything that a question points to. */
struct asked {
    struct matrix matrix;
    struct fabric fabric;
    struct model model;
    struct constants constants;
    struct layout layout;
    int *order;
};

static int racks_for(const struct fabric *f, const struct predict_args *a, int ranks)
{
    int per = f->gpus_per_host * (f->hosts_per_rack > 0 ? f->hosts_per_rack : 1);

    return a->racks ? a->racks : ranks > 0 ? (ranks + per - 1) / per : 0;
}

/* Ranks that the layout's text fixes; 0 when it leaves an axis open or is not given. */
static int ranks_of(const struct predict_args *a)
{
    struct layout l;

    if (a->gpus || !a->layout)
        return a->gpus;
    return layout_parse(&l, a->layout, (enum strategy)a->recipe.strategy, (enum mesh_order)a->mesh,
                        0, NULL) < 0
               ? 0
               : l.ranks;
}

static int open_matrix(struct asked *s, const struct predict_args *a, struct err *err)
{
    if (!a->matrix && !a->fabric)
        return err_usage(err, "neither MATRIX nor --fabric is given");
    if (a->matrix && a->racks)
        return err_usage(err, "--racks belongs to a preset, and %s has its own", a->matrix);
    if (a->matrix && matrix_load(&s->matrix, a->matrix, err) < 0)
        return -1;
    const char *name = a->fabric ? a->fabric : s->matrix.fabric;
    if (name && fabric_load(&s->fabric, name, err) < 0)
        return -1;
    if (!a->matrix &&
        matrix_from_fabric(&s->matrix, &s->fabric, racks_for(&s->fabric, a, ranks_of(a)), err) < 0)
        return -1;
    if (a->flops > 0) {
        free(s->matrix.compute.source);
        s->matrix.compute.source = mem_strdup("FLOP/s as given with --flops");
        s->matrix.compute.flops = a->flops;
    }
    return 0;
}

static int open_layout(struct asked *s, struct predict_args *a, struct err *err)
{
    int ranks = s->matrix.topo.endpoints, given = 0;

    if (a->order && placement_load(&s->order, &given, &s->matrix.topo, a->order, err) < 0)
        return -1;
    if (a->order)
        ranks = given;
    const char *text = a->layout ? a->layout : "dp=auto";
    int want = a->gpus ? a->gpus : strstr(text, "auto") ? ranks : 0;
    if (layout_parse(&s->layout, text, (enum strategy)a->recipe.strategy, (enum mesh_order)a->mesh,
                     want, err) < 0)
        return -1;
    if (a->order && s->layout.ranks > given)
        return err_usage(err, "the layout needs %d ranks and %s places %d", s->layout.ranks,
                         a->order, given);
    return layout_check(&s->layout, &s->model, &a->recipe, err);
}

static int answer(const struct asked *s, const struct predict_args *a, struct err *err)
{
    struct question q = {&s->matrix,   s->fabric.name ? &s->fabric : NULL,
                         &s->model,    &s->layout,
                         &a->recipe,   s->order,
                         &s->constants};
    struct prediction p;
    int rc = predict_step(&p, &q, err);

    if (rc == 0) {
        json_t *json = predict_json(&p, &s->matrix);
        if (a->output)
            rc = json_save(json, a->output, err);
        if (rc == 0 && a->json) {
            json_dumpf(json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
            putchar('\n');
        } else if (rc == 0) {
            predict_text(stdout, &p, &s->matrix, &a->recipe, a->explain);
        }
        json_decref(json);
    }
    prediction_free(&p);
    return rc;
}

int cmd_predict(int argc, char **argv)
{
    struct predict_args a;
    struct asked s = {0};
    struct err err = {0, ""};

    matrix_init(&s.matrix);
    predict_args(&a, argc, argv);
    int rc = model_load(&s.model, a.model, &err) < 0 ||
             constants_load(&s.constants, a.constants, &err) < 0 || open_matrix(&s, &a, &err) < 0 ||
             open_layout(&s, &a, &err) < 0 || answer(&s, &a, &err) < 0;
    free(s.order);
    matrix_free(&s.matrix);
    fabric_free(&s.fabric);
    model_free(&s.model);
    constants_free(&s.constants);
    return rc ? cmd_fail("predict", &err) : EXIT_GOOD;
}
