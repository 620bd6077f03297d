/* fit_impl.h - state that the steps of a fit share. */
#ifndef RG_FIT_IMPL_H
#define RG_FIT_IMPL_H

#include "base/map.h"
#include "fit/classes_impl.h"
#include "fit/fit.h"
#include "fit/observe.h"
#include "measure/plan.h"
#include "noise/noise.h"

/* Limit of "clearly less": parallel pairs against a pair alone, and the load of uplinks against the load
 * sent to them.  Tests on both sides of the constants of this folder: tests/unit/fit_edges.c. */
#define FIT_FULL 0.85

/* Usual values of a tier at the size of the pair matrix. */
struct fit_baseline {
    double alone, parallel; /* B/s of healthy pairs; NAN: none measured */
    bool contended;         /* pairs that run at once get clearly less than a pair alone */
    bool uplinks;           /* because of leaves with fewer uplinks than NICs */
};

struct fit {
    struct matrix *m;
    const struct plan *plan;
    const struct points *points;
    struct fit_opts o;
    struct obs *obs; /* observations of pairs */
    int count;
    struct lists of;            /* lists of obs for fit_of(); from fit_baseline() on */
    double bw_bytes, lat_bytes; /* sizes of the pair matrix; 0: not measured */
    bool by_nic;                /* the campaign had a pass through the NICs */
    int contradictions;         /* slow pairs between hosts that fast pairs join */
    struct topo_tiers tiers;    /* of m->topo, from fit_baseline() on */
    struct classes classes;     /* kinds of devices, from fit_matrix() on */
    struct fit_baseline baseline[TIER_MAX];
    struct look *look; /* looks at healthy and slow pairs, not at broken pairs */
    int looks;
    struct noise noise;
};

/* The steps, in their order. */
void fit_racks(struct fit *f); /* confirm or find racks; adds tiers and coordinates */
void fit_baseline(
    struct fit
        *f); /* tier of each observation, looks, usual values, and the parts that stand out */
void fit_parts(struct fit *f);      /* write these parts as exceptions */
void fit_latency(struct fit *f);    /* the tiers' latency spread */
void fit_properties(struct fit *f); /* kinds of devices; not before parts are named */
void fit_coverage(struct fit *f);   /* checked pairs and parts, by tier and by kind of part */
void fit_findings(struct fit *f);   /* contention, unstable, bimodal, wrong data, equal tiers,
                                     tainted, shared GPUs, coverage */

/* Leaves and pods that all have fewer uplinks than NICs, for fit_baseline(). */
void fit_uplinks(struct fit *f);

/* Return the usual value of a kind of looks in a tier, alone or under load; NULL: no looks. */
static inline const struct usual *fit_usual(const struct fit *f, enum look_kind kind, int tier,
                                            bool alone)
{
    for (int i = 0; i < f->noise.usuals; i++) {
        const struct usual *u = &f->noise.usual[i];
        if (u->kind == kind && u->tier == tier && u->alone == alone && u->looks > 0)
            return u;
    }
    return NULL;
}

/* Return the round of the plan with this id if the round has the group and its members; otherwise NULL. */
static inline const struct round *fit_round(const struct fit *f, int id, int group)
{
    const struct plan *plan = f->plan;

    for (int i = 0; i < plan->rounds; i++) {
        int k = (id + i) % plan->rounds; /* the id is the index unless rounds were added by hand */
        if (plan->round[k].id == id)
            return group < plan->round[k].groups && plan->round[k].group ? &plan->round[k] : NULL;
    }
    return NULL;
}

/* Return the indices in f->obs of the observations of one operation in one tier, in their order. */
static inline const int *fit_of(const struct fit *f, int tier, enum op op, int *n)
{
    const int list = tier * OP_COUNT + (int)op, from = f->of.start[list];

    *n = f->of.start[list + 1] - from;
    return f->of.at + from;
}

/* Tier of the point of a pair. */
static inline int fit_tier(const struct fit *f, const struct point *p)
{
    return topo_tiers_of(&f->tiers, p->src, p->dst, stage_by_nic(p->stage));
}

/* True if the two can be measured in this tier, through the NICs if the campaign had that pass. */
static inline bool fit_meets(const struct fit *f, int a, int b, int tier)
{
    const struct topo *t = &f->m->topo;

    return topo_tier(t, a, b) == tier || (f->by_nic && topo_nic_tier(t, a, b) == tier &&
                                          t->endpoint[a].nic != t->endpoint[b].nic);
}

/* Bandwidth that a pair can have by declaration, as a share of the tier's reference rate; 1: unknown. */
static inline double fit_declared(const struct fit *f, int src, int dst, int tier)
{
    return classes_share(&f->classes, src, dst, tier);
}

/* True for an observation of the bandwidth of the pair matrix. */
static inline bool fit_is_bandwidth(const struct fit *f, const struct obs *o)
{
    return o->op == OP_PAIR_BW && o->bytes == f->bw_bytes;
}

/* True if no exception is on the way, in either direction. */
static inline bool fit_is_healthy(const struct fit *f, const struct obs *o)
{
    const struct matrix *m = f->m;

    if (fit_declared(f, o->src, o->dst, o->tier) != 1) /* the curve is the reference's */
        return false;
    for (int i = 0; i < m->exceptions; i++)
        if (matrix_crosses(m, &m->exception[i], o->src, o->dst, o->tier) ||
            matrix_crosses(m, &m->exception[i], o->dst, o->src, o->tier))
            return false;
    return true;
}

/* True for a bandwidth point of the pair matrix that ran under load and has a time. */
static inline bool fit_is_crowded(const struct fit *f, const struct point *p)
{
    return p->op == OP_PAIR_BW && p->flows > 1 && (double)p->bytes == f->bw_bytes &&
           p->stop != STOP_FAILED && p->sec.median > 0;
}

static inline int fit_at(const struct fit *f, int endpoint, enum level level)
{
    return topo_at(&f->m->topo, endpoint, level);
}

/* Number that identifies the two racks of a pair in either order; -1: not two racks. */
static inline int fit_rack_pair(const struct fit *f, int src, int dst)
{
    int a = fit_at(f, src, LEVEL_RACK), b = fit_at(f, dst, LEVEL_RACK);
    int racks = f->m->topo.group[LEVEL_RACK].count;

    if (a < 0 || b < 0 || a == b)
        return -1;
    return a < b ? a * racks + b : b * racks + a;
}

/* Add exceptions for endpoints that send or receive wrong data, and for pairs with wrong data. */
void parts_broken(struct fit *f);

#endif
