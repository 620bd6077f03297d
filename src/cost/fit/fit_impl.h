/* fit_impl.h - what the steps of a fit hand to each other. */
#ifndef RG_FIT_IMPL_H
#define RG_FIT_IMPL_H

#include "base/map.h"
#include "cost/fit/fit.h"
#include "cost/fit/observe.h"
#include "probe/plan.h"

/* What is normal for a tier at the size of the pair matrix. */
struct fit_baseline {
    double alone, parallel; /* B/s of healthy pairs; NAN: none measured */
    double sigma;           /* robust standard deviation of healthy residuals */
    double unrest;          /* median over pairs measured alone in several epochs of how far these
                               lie apart, share */
    bool contended;         /* parallel pairs get clearly less than alone: they prove nothing */
    bool uplinks;           /* because leaves have fewer uplinks than NICs */
    double *thin;           /* where few leaves do: what the uplinks of each carry of what its NICs
                               do, NAN: all; behind them, how many flows at
                               once showed it; NULL: none does */
};

/* One directed pair as evidence for or against a part. */
struct fit_sample {
    int src, dst;
    double residual; /* bandwidth / normal; 0: no answer */
    double best;     /* the same of its best epoch */
    int explained;   /* exception that accounts for it, -1 */
    int tier : 8;
    bool alone : 1;
};

struct fit {
    struct matrix *m;
    const struct plan *plan;
    const struct points *points;
    struct fit_opts o;
    struct obs *obs; /* of pairs */
    int count;
    struct lists of;            /* them, from fit_baseline() on: fit_of() */
    double bw_bytes, lat_bytes; /* sizes of the pair matrix; 0: not measured */
    bool by_nic;                /* the campaign had a pass through the NICs */
    int contradictions;         /* slow pairs between hosts that fast pairs join */
    struct fit_baseline baseline[TIER_MAX];
    struct fit_sample *sample;
    int samples;
};

/* The steps, in their order. */
void fit_racks(struct fit *f);    /* confirm or find racks; adds tiers and coordinates */
void fit_baseline(struct fit *f); /* tier of each observation, what is normal, the samples */
void fit_parts(struct fit *f);    /* exceptions */
void fit_latency(struct fit *f);  /* those that add latency; the tiers' latency spread */
void fit_coverage(struct fit *f); /* what was looked at, by tiers and by kinds of parts */
void fit_findings(struct fit *f); /* contention, unstable, bimodal, wrong data, equal tiers,
                                     tainted, shared GPUs, what was looked at */

/* Leaves with fewer uplinks than NICs (uplinks.c): all of them, for fit_baseline(), and what is said
 * where few are so. */
void fit_uplinks(struct fit *f);
void fit_uplinks_thin(struct fit *f, int tier);

/* The round of the plan with this id, if it has the group and its members; NULL. */
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

/* The observations of one operation in one tier, in their order: by their places in f->obs. */
static inline const int *fit_of(const struct fit *f, int tier, enum op op, int *n)
{
    const int list = tier * OP_COUNT + (int)op, from = f->of.start[list];

    *n = f->of.start[list + 1] - from;
    return f->of.at + from;
}

/* The tier that a point of a pair is of. */
static inline int fit_tier(const struct fit *f, const struct point *p)
{
    return topo_tier_by(&f->m->topo, p->src, p->dst, stage_by_nic(p->stage));
}

/* Can the two be measured in this tier?  Through the NICs if the campaign had that pass. */
static inline bool fit_meets(const struct fit *f, int a, int b, int tier)
{
    const struct topo *t = &f->m->topo;

    return topo_tier(t, a, b) == tier || (f->by_nic && topo_nic_tier(t, a, b) == tier &&
                                          t->endpoint[a].nic != t->endpoint[b].nic);
}

/* Is this an observation of the pair matrix's bandwidth? */
static inline bool fit_is_bandwidth(const struct fit *f, const struct obs *o)
{
    return o->op == OP_PAIR_BW && o->bytes == f->bw_bytes;
}

/* Is it such a point of a pair that ran beside others, and has a time? */
static inline bool fit_is_crowded(const struct fit *f, const struct point *p)
{
    return p->op == OP_PAIR_BW && p->flows > 1 && (double)p->bytes == f->bw_bytes &&
           p->stop != STOP_FAILED && p->sec.median > 0;
}

static inline int fit_at(const struct fit *f, int endpoint, enum level level)
{
    return topo_at(&f->m->topo, endpoint, level);
}

/* One number for the two racks of a pair, whichever way; -1: not two racks. */
static inline int fit_rack_pair(const struct fit *f, int src, int dst)
{
    int a = fit_at(f, src, LEVEL_RACK), b = fit_at(f, dst, LEVEL_RACK);
    int racks = f->m->topo.group[LEVEL_RACK].count;

    if (a < 0 || b < 0 || a == b)
        return -1;
    return a < b ? a * racks + b : b * racks + a;
}

/* Made of endpoints of several hosts, or of one. */
static inline bool part_is_group(enum part part)
{
    return part == PART_HOST || part == PART_LEAF || part == PART_RACK || part == PART_RACK_UPLINKS;
}

/* --- exceptions while they are being made (parts_list.c): samples refer to them by index
 * (sample.explained), so every change of the list goes through these --- */

/* Factors within this share of the larger one; dead is like dead only. */
bool parts_alike(const struct exception *x, const struct exception *y, double tolerance);
/* Fold y into x: factors weighted by evidence. */
static inline void parts_fold(struct exception *x, const struct exception *y)
{
    int n = x->evidence + y->evidence;

    x->factor = (x->factor * x->evidence + y->factor * y->evidence) / n;
    x->evidence = n;
}
/* An unexplained sample nearer to normal than to the factor speaks for the part. */
static inline bool parts_speaks_for(const struct fit_sample *s, const struct exception *e)
{
    return s->explained < 0 && s->residual > (1 + e->factor) / 2;
}
/* Does this sample pass the exception's side of its endpoint or host, or between its two racks? */
bool parts_pass(const struct matrix *m, const struct exception *e, const struct fit_sample *s);
/* Sort by what is worse, part, place, tier and side. */
void parts_sort(struct fit *f);
void parts_explain(struct fit *f); /* their sentences */

/* What cannot be used at all: wrong data, and endpoints that nobody gets an answer from. */
void parts_broken(struct fit *f);
/* Exceptions that are one cause: sides, tiers, endpoints of a host, a leaf, a rack. */
void parts_merge(struct fit *f, double tolerance);

#endif
