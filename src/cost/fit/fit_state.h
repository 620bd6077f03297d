/* fit_state.h - what the steps of a fit hand to each other; used by fit*.c and parts.c only. */
#ifndef RG_FIT_STATE_H
#define RG_FIT_STATE_H

#include "cost/fit/fit.h"
#include "cost/fit/observe.h"

/* What is normal for a tier at the size of the pair matrix. */
struct normal {
    double alone, parallel; /* B/s of healthy pairs; NAN: none measured */
    double sigma;           /* robust standard deviation of healthy residuals */
    double unrest;          /* median over pairs measured alone in several epochs of how far these
                               lie apart, share */
    bool contended;         /* parallel pairs get clearly less than alone: they prove nothing */
    bool uplinks;           /* because leaves have fewer uplinks than NICs */
};

/* One directed pair as evidence for or against a part. */
struct sample {
    int src, dst, tier;
    double residual; /* bandwidth / normal; 0: no answer */
    double best;     /* the same of its best epoch */
    double range;    /* of its epochs, share */
    bool alone;
    int explained; /* exception that accounts for it, -1 */
};

struct fit {
    struct matrix *m;
    const struct plan *plan;
    const struct points *points;
    struct fit_opts o;
    struct obs *obs; /* of pairs */
    int count;
    double bw_bytes, lat_bytes; /* sizes of the pair matrix; 0: not measured */
    int contradictions;         /* slow pairs between hosts that fast pairs join */
    struct normal normal[TIER_MAX];
    struct sample *sample;
    int samples;
};

void fit_racks(struct fit *f);   /* confirm or find racks; adds tiers and coordinates */
void fit_levels(struct fit *f);  /* tier of each observation, what is normal, the samples */
void fit_uplinks(struct fit *f); /* leaves with fewer uplinks than NICs; between what is normal and
                                  * the samples */
void fit_parts(struct fit *f);   /* exceptions */
void fit_latency(struct fit *f); /* those that add latency; the tiers' latency spread */
void parts_merge(struct fit *f, double tolerance); /* exceptions that are one cause */
void parts_explain(struct fit *f);                 /* their sentences */
void fit_curves(struct fit *f);                    /* tier curves from healthy pairs */
void fit_collectives(struct fit *f);
void fit_findings(struct fit *f); /* contention, unstable, bimodal, wrong data, equal tiers,
                                     tainted, shared GPUs */

/* Is this an observation of the pair matrix's bandwidth? */
bool fit_is_bandwidth(const struct fit *f, const struct obs *o);
bool fit_healthy(const struct fit *f, int src, int dst); /* no exception on the way, either side */
const char *fit_endpoint(const struct fit *f, int id, char buf[96]); /* "17 (r00n04:1)" */

#endif
