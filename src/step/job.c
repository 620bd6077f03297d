/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"

/* Racks that hold these nodes of a preset, whose names are "r03n17" (fabric_topo). */
static int racks_named(const char *nodes)
{
    char **name;
    int count, racks = 0;

    if (hostlist_expand(&name, &count, nodes, NULL) < 0)
        return 0; /* placement says why */
    for (int i = 0; i < count; i++) {
        int rack = -1;
        if (sscanf(name[i], "r%4dn", &rack) == 1 && rack >= racks)
            racks = rack + 1;
    }
    hostlist_free(name, count);
    return racks;
}

/* As many racks as the ranks fill; with segments, no rack holds more than whole ones. */
static int racks_for(const struct fabric *f, const struct job_opts *o, int ranks)
{
    int hosts = f->hosts_per_rack > 0 ? f->hosts_per_rack : 1, segment = o->place.segment;
    int per =
        f->gpus_per_host * (segment > 0 && segment < hosts ? hosts / segment * segment : hosts);

    if (o->racks)
        return o->racks;
    if (o->place.nodes)
        return racks_named(o->place.nodes);
    return ranks > 0 ? (ranks + per - 1) / per : 0;
}

/* Ranks that the layout's text fixes; 0 when it leaves an axis open or is not given. */
static int ranks_of(const struct job_opts *o)
{
    struct layout l;

    if (o->gpus || !o->layout)
        return o->gpus;
    return layout_parse(&l, o->layout, (enum strategy)o->recipe.strategy, (enum mesh_order)o->mesh,
                        0, NULL) < 0
               ? 0
               : l.ranks;
}

static int open_matrix(struct job *j, const struct job_opts *o, struct err *err)
{
    if (!o->matrix && !o->fabric)
        return err_usage(err, "neither MATRIX nor --fabric is given");
    if (o->matrix && o->racks)
        return err_usage(err, "--racks belongs to a preset, and %s has its own", o->matrix);
    if (o->matrix && matrix_load(&j->matrix, o->matrix, err) < 0)
        return -1;
    if (matrix_preset(&j->fabric, &j->matrix, o->fabric, err) < 0)
        return -1;
    if (!o->matrix &&
        matrix_from_fabric(&j->matrix, &j->fabric, racks_for(&j->fabric, o, ranks_of(o)), err) < 0)
        return -1;
    if (o->flops > 0) {
        free(j->matrix.compute.source);
        j->matrix.compute.source = mem_strdup("FLOP/s as given with --flops");
        j->matrix.compute.flops = o->flops;
    }
    return 0;
}

/* A step of so many microbatches on every data-parallel rank. */
static int batch_of(struct job_opts *o, const struct layout *l, struct err *err)
{
    double batch = (double)o->accumulation * o->recipe.micro_batch * l->size[AXIS_DP_SHARD] *
                   l->size[AXIS_DP_REPLICATE];

    if (!o->accumulation)
        return 0;
    if (o->recipe.global_batch && batch != o->recipe.global_batch)
        return err_usage(err, "an accumulation of %d makes a batch of %.0f, and %d is given",
                         o->accumulation, batch, o->recipe.global_batch);
    if (batch > 1 << 28)
        return err_usage(err, "an accumulation of %d makes a batch of %.0f, more than %d",
                         o->accumulation, batch, 1 << 28);
    o->recipe.global_batch = (int)batch;
    return 0;
}

int job_layout(struct layout *l, const struct model *m, struct job_opts *o, int given,
               struct err *err)
{
    const char *text = o->layout ? o->layout : "dp=auto";
    int want = o->gpus ? o->gpus : strstr(text, "auto") ? given : 0;

    if (layout_parse(l, text, (enum strategy)o->recipe.strategy, (enum mesh_order)o->mesh, want,
                     err) < 0 ||
        batch_of(o, l, err) < 0)
        return -1;
    return layout_check(l, m, &o->recipe, err);
}

static int open_layout(struct job *j, struct job_opts *o, const struct topo *t, struct err *err)
{
    int given;

    if (placement_make(&j->order, &given, t, &o->place, ranks_of(o), err) < 0 ||
        job_layout(&j->layout, &j->model, o, given, err) < 0)
        return -1;
    if (j->order && j->layout.ranks > given)
        return err_usage(err, "the layout needs %d ranks and %s places %d", j->layout.ranks,
                         o->place.order ? o->place.order : "the placement", given);
    return 0;
}

static int open_names(struct job *j, const struct job_opts *o, struct err *err)
{
    memset(j, 0, sizeof(*j));
    matrix_init(&j->matrix);
    if (model_load(&j->model, o->model, err) < 0)
        return -1;
    return constants_load(&j->constants, o->constants, err);
}

int job_open(struct job *j, struct job_opts *o, struct err *err)
{
    if (open_names(j, o, err) < 0 || open_matrix(j, o, err) < 0)
        return -1;
    return open_layout(j, o, &j->matrix.topo, err);
}

int job_open_ranks(struct job *j, const struct job_opts *o, int *ranks, struct err *err)
{
    int given;

    if (open_names(j, o, err) < 0 || open_matrix(j, o, err) < 0 ||
        placement_make(&j->order, &given, &j->matrix.topo, &o->place, o->gpus, err) < 0)
        return -1;
    *ranks = o->gpus ? o->gpus : given;
    if (*ranks > given)
        return err_usage(err, "%d GPUs are asked for and %s has %d", *ranks,
                         j->order ? "the placement" : "the matrix", given);
    return 0;
}

int job_open_on(struct job *j, struct job_opts *o, const struct topo *t, struct err *err)
{
    if (open_names(j, o, err) < 0 || open_layout(j, o, t, err) < 0)
        return -1;
    if (j->layout.ranks > t->endpoints)
        return err_usage(err, "the layout needs %d ranks and there are %d endpoints",
                         j->layout.ranks, t->endpoints);
    return 0;
}

void job_free(struct job *j)
{
    free(j->order);
    matrix_free(&j->matrix);
    fabric_free(&j->fabric);
    model_free(&j->model);
    constants_free(&j->constants);
    memset(j, 0, sizeof(*j));
}

struct question job_question(const struct job *j, const struct job_opts *o)
{
    return (struct question){.matrix = &j->matrix,
                             .fabric = j->fabric.name ? &j->fabric : NULL,
                             .model = &j->model,
                             .layout = &j->layout,
                             .recipe = &o->recipe,
                             .order = j->order,
                             .constants = &j->constants};
}
