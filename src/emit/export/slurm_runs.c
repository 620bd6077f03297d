/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/slurm_runs.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/claim.h"
#include "topo/sched/slurm.h"

/* Times apart by less than this are one class: matrices are good to a few percent. */
static const double gap = 1.15;

static double sec(const struct blocks *b, int i, int k)
{
    return b->sec[(size_t)i * (size_t)b->count + (size_t)k];
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* Blocks up to `limit` apart, in runs; false unless that is what the blocks are: near inside of
 * runs, far between them. */
static bool split_at(struct slurm_runs *p, const struct blocks *b, double limit)
{
    p->run = mem_calloc((size_t)b->count + 1, sizeof(*p->run));
    p->runs = 1;
    for (int i = 1, first = 0; i < b->count; i++) {
        if (!(sec(b, first, i) <= limit)) {
            first = i;
            p->runs++;
        }
        p->run[i] = p->runs - 1;
    }
    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < i; k++)
            if ((p->run[i] == p->run[k]) != (sec(b, i, k) <= limit))
                return false;
    return p->runs > 1 && p->runs < b->count;
}

/* Every gap between sorted times that makes runs, the near ones first. */
static void by_time(struct slurm_runs **p, int *parts, const struct blocks *b)
{
    size_t room = (size_t)b->count * (size_t)b->count / 2 + 1;
    double *v = mem_calloc(room, sizeof(*v));
    int n = 0;

    for (int i = 0; i < b->count; i++)
        for (int k = 0; k < i; k++)
            if (isfinite(sec(b, i, k)))
                v[n++] = sec(b, i, k);
    qsort(v, (size_t)n, sizeof(*v), by_value);
    for (int i = 1; i < n && *parts < SLURM_LEVELS - 1; i++) {
        struct slurm_runs one = {.near = v[i - 1], .far = v[i]};
        if (v[i] < gap * v[i - 1])
            continue;
        if (split_at(&one, b, v[i - 1]))
            MEM_PUSH(*p, *parts) = one;
        else
            free(one.run);
    }
    free(v);
}

/* The spine of each block, -1 unless all of its hosts share one. */
static int *spines_of(const struct blocks *b, const struct topo *t)
{
    int groups, *spine = mem_calloc((size_t)b->count + 1, sizeof(*spine));
    char **name;
    int *of = topo_host_groups(t, LEVEL_SPINE, &name, &groups);

    for (int i = 0; i < b->count; i++) {
        spine[i] = b->block[i].hosts ? of[b->block[i].host[0]] : -1;
        for (int k = 0; k < b->block[i].hosts; k++)
            if (of[b->block[i].host[k]] != spine[i])
                spine[i] = -1;
    }
    hostlist_free(name, groups);
    free(of);
    return spine;
}

/* Without times: blocks of a spine side by side, in the order in which spines appear. */
static void by_spine(struct slurm_runs **p, int *parts, const struct blocks *b, int *order,
                     const struct topo *t)
{
    int *spine = spines_of(b, t), n = 0;
    struct slurm_runs one = {mem_calloc((size_t)b->count + 1, sizeof(int)), 0, NAN, NAN};
    bool known = b->level != LEVEL_SPINE;

    for (int i = 0; i < b->count; i++)
        known = known && spine[i] >= 0;
    for (int i = 0; known && i < b->count; i++) {
        if (spine[i] < 0)
            continue;
        for (int k = i, mine = spine[i]; k < b->count; k++)
            if (spine[k] == mine) {
                order[n++] = k;
                one.run[k] = one.runs;
                spine[k] = -1;
            }
        one.runs++;
    }
    if (known && one.runs > 1 && one.runs < b->count)
        MEM_PUSH(*p, *parts) = one;
    else
        free(one.run);
    free(spine);
}

struct slurm_runs *slurm_runs_make(int *parts, const struct blocks *b, int *order,
                                   const struct topo *t)
{
    struct slurm_runs *p = NULL;

    *parts = 0;
    by_time(&p, parts, b);
    if (!*parts)
        by_spine(&p, parts, b, order, t);
    return p;
}

void slurm_runs_free(struct slurm_runs *p, int parts)
{
    for (int i = 0; i < parts; i++)
        free(p[i].run);
    free(p);
}
