/* place_scene.h - machines with free hosts, and jobs that look for a place on them. */
#ifndef RG_TESTS_PLACE_SCENE_H
#define RG_TESTS_PLACE_SCENE_H

#include "place/place.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/stats.h"
#include "matrix/collective.h"

/* A machine and a job on it. */
struct scene {
    struct fabric fabric;
    struct matrix matrix;
    struct model model;
    struct constants constants;
    struct layout layout;
    struct recipe recipe;
    struct question question;
    struct place_step step; /* of the question, by ask_of() */
    int *host, hosts;       /* free ones */
};

static inline void open_scene(struct scene *s, const char *fabric, int racks, const char *model,
                              const char *layout, enum strategy strategy, enum mesh_order order)
{
    struct err err = {0, ""};

    memset(s, 0, sizeof(*s));
    assert_int_equal(fabric_load(&s->fabric, fabric, &err), 0);
    assert_int_equal(matrix_from_fabric(&s->matrix, &s->fabric, racks, &err), 0);
    assert_int_equal(model_load(&s->model, model, &err), 0);
    assert_int_equal(constants_load(&s->constants, NULL, &err), 0);
    recipe_defaults(&s->recipe);
    s->recipe.strategy = strategy;
    assert_int_equal(layout_parse(&s->layout, layout, strategy, order, 0, &err), 0);
    if (layout_check(&s->layout, &s->model, &s->recipe, &err) < 0)
        fail_msg("%s", err.text);
    s->question = (struct question){.matrix = &s->matrix,
                                    .fabric = &s->fabric,
                                    .model = &s->model,
                                    .layout = &s->layout,
                                    .recipe = &s->recipe,
                                    .constants = &s->constants};
}

static inline void close_scene(struct scene *s)
{
    free(s->host);
    matrix_free(&s->matrix);
    fabric_free(&s->fabric);
    model_free(&s->model);
    constants_free(&s->constants);
}

/* Hosts of rack `rack` of a preset, `from` to `to`, become free. */
static inline void free_rack(struct scene *s, int rack, int from, int to)
{
    for (int n = from; n <= to; n++) {
        char name[32];
        snprintf(name, sizeof(name), "r%02dn%02d", rack, n);
        int host = topo_find_host(&s->matrix.topo, name);
        assert_true(host >= 0);
        MEM_PUSH(s->host, s->hosts) = host;
    }
}

static inline void slow_racks(struct scene *s, int a, int b, double factor)
{
    MEM_PUSH(s->matrix.exception, s->matrix.exceptions) =
        (struct exception){.part = PART_RACK_PAIR,
                           .a = a,
                           .b = b,
                           .tier = -1,
                           .factor = factor,
                           .why = mem_strdup("test")};
}

static inline void slow_host(struct scene *s, int host, double factor)
{
    MEM_PUSH(s->matrix.exception, s->matrix.exceptions) =
        (struct exception){.part = PART_HOST,
                           .a = host,
                           .b = -1,
                           .tier = -1,
                           .factor = factor,
                           .why = mem_strdup("t")};
}

static inline struct place_ask ask_of(struct scene *s)
{
    struct err err = {0, ""};

    if (place_step_of(&s->step, &s->question, &err) < 0)
        fail_msg("%s", err.text);
    return (struct place_ask){
        .step = &s->step, .matrix = &s->matrix, .host = s->host, .hosts = s->hosts, .seed = 1};
}

/* Every rank on an endpoint of a free host, no endpoint twice. */
static inline void check_order(const struct scene *s, const struct placed *p)
{
    bool *taken = mem_calloc((size_t)s->matrix.topo.endpoints, sizeof(bool));

    for (int r = 0; r < p->ranks; r++) {
        bool is_free = !s->host;
        assert_in_range(p->order[r], 0, s->matrix.topo.endpoints - 1);
        assert_false(taken[p->order[r]]);
        taken[p->order[r]] = true;
        for (int i = 0; i < s->hosts; i++)
            is_free |= s->host[i] == s->matrix.topo.endpoint[p->order[r]].place.at[LEVEL_HOST];
        assert_true(is_free);
    }
    free(taken);
}

/* --- eight clusters --- */

static inline void aligned(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 15);
}

/* Each rack begins in the middle of an expert group of four nodes. */
static inline void misaligned(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 16);
}

static inline void holes(struct scene *s)
{
    for (int r = 0; r < 6; r++) {
        free_rack(s, r, 0, 2 + r % 3);
        free_rack(s, r, 6, 11);
        free_rack(s, r, 14 + r % 2, 17);
    }
}

static inline void sixteen_of_eighteen(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 17);
}

static inline void mixed_racks(struct scene *s)
{
    static const int last[] = {4, 17, 9, 16, 6, 17, 2};

    for (int r = 0; r < 7; r++)
        free_rack(s, r, 0, last[r]);
}

static inline void slow_rack_pair(struct scene *s)
{
    for (int r = 0; r < 6; r++)
        free_rack(s, r, 0, 15);
    slow_racks(s, 1, 2, 0.3);
}

static inline void slow_nodes(struct scene *s)
{
    for (int r = 0; r < 4; r++)
        free_rack(s, r, 0, 16);
    slow_host(s, topo_find_host(&s->matrix.topo, "r00n05"), 0.4);
    slow_host(s, topo_find_host(&s->matrix.topo, "r02n10"), 0.5);
}

/* Nodes as a scheduler might list them: by their number in the rack. */
static inline void dealt_out(struct scene *s)
{
    for (int n = 0; n < 16; n++)
        for (int r = 0; r < 4; r++)
            free_rack(s, r, n, n);
}

static const struct {
    const char *name;
    void (*make)(struct scene *s);
    double gain; /* the default takes at least so many times as long */
} clusters[] = {
    {"aligned", aligned, 1},
    {"misaligned", misaligned, 1.05},
    {"holes", holes, 1.05},
    {"16 of 18", sixteen_of_eighteen, 1.05},
    {"mixed racks", mixed_racks, 1.05},
    {"a slow pair of racks", slow_rack_pair, 1.02},
    {"slow nodes", slow_nodes, 1.05},
    {"dealt out", dealt_out, 1.05},
};

/* --- traffic without a model --- */

/* Ranks are tp fastest, then dp (ep inside it), then pp. */
struct mesh_job {
    int tp, dp, pp, ep;
};
/* Bytes a step: to the next of the tp ring, to all others of the ep group, to the next of the dp
 * ring, to the next stage. */
static const double tp_bytes = 1e12, ep_bytes = 200e9, dp_bytes = 60e9, pp_bytes = 20e9;

static inline void mesh_demand(struct demand *d, struct mesh_job m)
{
    *d = (struct demand){.ranks = m.tp * m.dp * m.pp};
    for (int r = 0; r < d->ranks; r++) {
        int t = r % m.tp, x = r / m.tp % m.dp, p = r / m.tp / m.dp;
        if (m.tp > 1)
            MEM_PUSH(d->flow, d->flows) = (struct flow){r, r - t + (t + 1) % m.tp, tp_bytes};
        if (m.dp > 1)
            MEM_PUSH(d->flow, d->flows) =
                (struct flow){r, t + m.tp * ((x + 1) % m.dp + m.dp * p), dp_bytes};
        if (p + 1 < m.pp)
            MEM_PUSH(d->flow, d->flows) = (struct flow){r, r + m.tp * m.dp, pp_bytes};
        for (int e = x / m.ep * m.ep; e < x / m.ep * m.ep + m.ep; e++)
            if (e != x)
                MEM_PUSH(d->flow, d->flows) =
                    (struct flow){r, t + m.tp * (e + m.dp * p), ep_bytes / (m.ep - 1)};
    }
}

#endif
