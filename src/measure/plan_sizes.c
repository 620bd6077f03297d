/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_sizes.c - message sizes, and number of partners per endpoint. */
#include <stdlib.h>

#include "base/mem.h"
#include "measure/plan.h"
#include "topo/fabrics/fabric.h"

/* Largest number of ranks that share a GPU, and so its memory. */
static int ranks_of_gpu(const struct topo *t)
{
    int *ranks = mem_calloc((size_t)t->gpus + 1, sizeof(*ranks)), most = 1;

    for (int i = 0; i < t->endpoints; i++) {
        int gpu = t->endpoint[i].gpu;
        if (gpu >= 0 && ++ranks[gpu] > most)
            most = ranks[gpu];
    }
    free(ranks);
    return most;
}

void plan_fill_auto(struct plan_opts *o, const struct topo *t)
{
    static const size_t most_MiB[2][2] = {{4, 64}, {4096, 8192}}; /* CPU, GPU; full */
    bool gpu = t->endpoint[0].kind == ENDPOINT_GPU;

    if (!o->max_bytes && gpu && !o->full && !o->pair_max)
        o->pair_max = (size_t)256 << 20;
    if (!o->max_bytes) {
        o->max_bytes = most_MiB[gpu][o->full] << 20;
        for (int k = ranks_of_gpu(t); gpu && k > 1; k = (k + 1) / 2)
            o->max_bytes /= 2;
    }
    if (!o->pair_max || o->pair_max > o->max_bytes)
        o->pair_max = o->max_bytes;
    if (!o->matchings)
        o->matchings = plan_is_sparse(t) ? 4 : 8;
    if (!o->pair_bytes)
        o->pair_bytes = gpu ? (size_t)64 << 20 : (size_t)256 << 10;
}

/* --- published sizes --- */

void plan_known(struct fabric *known, const struct topo *t, bool sized)
{
    char *name = NULL;

    if (sized || t->endpoint[0].kind != ENDPOINT_GPU || ranks_of_gpu(t) > 1)
        return;
    if (t->fabric && fabric_shipped(t->fabric))
        name = mem_strdup(t->fabric);
    else if (*t->endpoint[0].model)
        name = fabric_of_gpu(t->endpoint[0].model);
    if (name && fabric_load(known, name, NULL) < 0)
        fabric_free(known);
    free(name);
}

static int domains_of(const struct topo *t, const struct plan_group *g)
{
    enum level level = topo_at(t, 0, LEVEL_DOMAIN) >= 0 ? LEVEL_DOMAIN : LEVEL_HOST;
    char *seen = mem_calloc((size_t)t->group[level].count + 1, 1);
    int n = 0;

    for (int i = 0; i < g->size; i++) {
        int at = topo_at(t, g->members[i], level);
        n += at >= 0 && !seen[at];
        if (at >= 0)
            seen[at] = 1;
    }
    free(seen);
    return n;
}

/* A quarter of the memory: buffers for sending, receiving and comparing, and one part for all
 * else. */
enum { SHARE_OF_MEMORY = 4 };

size_t plan_last_size(const struct fabric *f, const struct topo *t, enum op op,
                      const struct plan_group *g, size_t usual)
{
    size_t last = usual;

    for (int i = 0; i < f->collectives; i++) {
        const struct fabric_collective *c = &f->collective[i];
        double most = c->points ? c->point[c->points - 1].bytes : 0;
        if (c->op == op && c->ranks == g->size && c->domains == domains_of(t, g) &&
            most > (double)last && SHARE_OF_MEMORY * most <= f->gpu.memory_bytes.value)
            last = (size_t)most;
    }
    return last;
}
