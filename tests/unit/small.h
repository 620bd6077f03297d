/* small.h - small machines built by hand for the tests of src/matrix. */
#ifndef RG_TESTS_SMALL_H
#define RG_TESTS_SMALL_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "matrix/matrix.h"

/* racks x hosts x endpoints per host; racks are told when `racks_known`. */
static inline void small_topo(struct topo *t, int racks, int hosts, int per_host, bool racks_known,
                              enum endpoint_kind kind)
{
    char name[32];

    topo_init(t);
    for (int h = 0; h < racks * hosts; h++) {
        snprintf(name, sizeof(name), "n%02d", h);
        int host = topo_add_host(t, name);
        for (int k = 0; k < per_host; k++) {
            int id = topo_add_endpoint(t, host, kind);
            if (!racks_known)
                continue;
            snprintf(name, sizeof(name), "rack-%02d", h / hosts);
            t->endpoint[id].place.at[LEVEL_RACK] = topo_add_group(t, LEVEL_RACK, name);
            t->endpoint[id].source[LEVEL_RACK] = SOURCE_USER;
        }
    }
}

/* It is not found by that name. */
static inline void small_rename(struct topo *t, int host, const char *name)
{
    char **own = &t->group[LEVEL_HOST].name[host];

    free(*own);
    t->host[host].name = *own = mem_strdup(name);
}

static inline void small_tier(struct matrix *m, const char *name, unsigned same, double alpha,
                              double Bps, bool nic)
{
    struct tier *t = &m->tier[m->tiers++];

    snprintf(t->rule.name, sizeof(t->rule.name), "%s", name);
    t->rule.same = same;
    t->basis = BASIS_MEASURED;
    t->loaded = NAN;
    t->nic = nic;
    curve_line(&t->curve[DIR_ONEWAY], alpha, Bps);
    curve_line(&t->curve[DIR_UNI], alpha / 4, Bps);
    m->topo.tier[m->topo.tiers++] = t->rule;
}

/* 2 racks x 4 hosts x 2 endpoints: shm 10 GB/s 1 us, rack 1 GB/s 10 us, fabric 0.4 GB/s 60 us. */
static inline void small_matrix(struct matrix *m)
{
    matrix_init(m);
    m->transport = mem_strdup("mpi");
    small_topo(&m->topo, 2, 4, 2, true, ENDPOINT_CPU);
    small_tier(m, "shm", 1u << LEVEL_HOST, 1e-6, 10e9, false);
    small_tier(m, "rack", 1u << LEVEL_RACK, 10e-6, 1e9, true);
    small_tier(m, "fabric", 0, 60e-6, 0.4e9, true);
}

/* All times of a curve, its intervals included, times `by`. */
static inline void small_scale(struct curve *c, double by)
{
    double *ratio = mem_calloc((size_t)c->points + 1, sizeof(*ratio));

    for (int k = 0; k < c->points; k++)
        ratio[k] = by;
    curve_scale(c, ratio);
    free(ratio);
}

static inline struct exception *small_exception(struct matrix *m, enum part part, int a, int b,
                                                int tier, double factor)
{
    MEM_PUSH(m->exception, m->exceptions) = (struct exception){
        .part = part, .a = a, .b = b, .tier = tier, .factor = factor, .why = mem_strdup("test")};
    return &m->exception[m->exceptions - 1];
}

#endif
