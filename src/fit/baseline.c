/* SPDX-License-Identifier: BSD-3-Clause */
/* Usual values of each tier, from the looks of the noise model (noise/noise.h). */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit_impl.h"
#include "measure/looks.h"

/* Set the tier of each observation, and the lists of fit_of(). */
static void sort_out(struct fit *f)
{
    int *key = mem_calloc((size_t)f->count + 1, sizeof(*key));

    topo_tiers_make(&f->tiers, &f->m->topo);
    for (int i = 0; i < f->count; i++) {
        struct obs *o = &f->obs[i];
        o->tier = topo_tiers_of(&f->tiers, o->src, o->dst, o->by_nic);
        key[i] = o->tier * OP_COUNT + (int)o->op;
    }
    lists_make(&f->of, key, NULL, f->count, f->m->topo.tiers * OP_COUNT);
    free(key);
}

/* List by endpoint: true if a part of the endpoint has wrong data. */
static bool *broken_endpoints(const struct fit *f)
{
    const struct matrix *m = f->m;
    bool *broken = mem_calloc((size_t)m->topo.endpoints + 1, sizeof(*broken));

    for (int i = 0; i < m->exceptions; i++)
        for (int k = 0; k < m->topo.endpoints; k++)
            if (m->exception[i].b < 0 && matrix_touches(m, &m->exception[i], k))
                broken[k] = true;
    return broken;
}

/* Append the looks of one pass, with later times than the looks before. */
static void add_looks(struct fit *f, bool by_nic)
{
    int n, turns = f->looks ? f->look[f->looks - 1].turn + 1 : 0;
    struct look *more = looks_of(f->points, &f->m->topo, by_nic, NULL, &n);

    if (!f->looks) { /* usually a single pass with millions of looks */
        free(f->look);
        f->look = more;
        f->looks = n;
        return;
    }
    f->look = mem_realloc(f->look, (size_t)f->looks + (size_t)n, sizeof(*more));
    for (int i = 0; i < n; i++) {
        more[i].turn += turns;
        f->look[f->looks++] = more[i];
    }
    free(more);
}

/* List the looks without endpoints with wrong data, relative to the bandwidth that the declared devices can reach. */
static void list_looks(struct fit *f)
{
    bool *broken = broken_endpoints(f);
    int kept = 0;

    add_looks(f, false);
    if (f->by_nic)
        add_looks(f, true);
    for (int i = 0; i < f->looks; i++) {
        struct look l = f->look[i];
        if (broken[l.src] || broken[l.dst])
            continue;
        if (l.kind != LOOK_LATENCY)
            l.y -= (float)log(fit_declared(f, l.src, l.dst, l.tier));
        f->look[kept++] = l;
    }
    f->looks = kept;
    free(broken);
}

/* Number of pairs whose bandwidth was measured: alone or under load, the larger number. */
static int pairs_of(const struct fit *f, int tier)
{
    int n[2] = {0, 0}, count;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &count);

    for (int i = 0; i < count; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (fit_is_bandwidth(f, o) && o->sec > 0)
            n[o->alone]++;
    }
    return n[0] > n[1] ? n[0] : n[1];
}

static void find_level(struct fit *f, int tier)
{
    struct fit_baseline *l = &f->baseline[tier];
    struct tier *t = &f->m->tier[tier];
    const struct usual *alone = fit_usual(f, LOOK_RATE, tier, true),
                       *parallel = fit_usual(f, LOOK_RATE, tier, false);
    const struct usual *most =
        !alone || (parallel && parallel->looks > alone->looks) ? parallel : alone;

    l->alone = alone ? exp(alone->y) : NAN;
    l->parallel = parallel ? exp(parallel->y) : NAN;
    t->loaded = f->noise.loaded[tier];
    l->contended = t->loaded < FIT_FULL;
    t->pairs = pairs_of(f, tier);
    if (most)
        t->spread = most->sigma / 1.4826;
}

/* Take the spread of pairs alone if contention slows pairs under load: the fabric causes differences under load. */
static void find_spread(struct fit *f, int tier)
{
    const struct usual *alone = fit_usual(f, LOOK_RATE, tier, true);

    if (f->baseline[tier].contended && alone)
        f->m->tier[tier].spread = alone->sigma / 1.4826;
}

void fit_baseline(struct fit *f)
{
    struct noise_input in = {.topo = &f->m->topo};

    sort_out(f);
    parts_broken(f);
    list_looks(f);
    in.look = f->look;
    in.looks = f->looks;
    for (int tier = 0; tier < f->m->tiers; tier++)
        in.crosses[tier] = f->m->tier[tier].nic;
    noise_judge(&f->noise, &in, f->points->judged);
    for (int tier = 0; tier < f->m->tiers; tier++)
        find_level(f, tier);
    fit_uplinks(f);
    for (int tier = 0; tier < f->m->tiers; tier++)
        find_spread(f, tier);
}
