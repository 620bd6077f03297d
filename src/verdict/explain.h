/* explain.h - one pair of endpoints in words: the path hop by hop, the rate each hop should have
 * and the source of that rate, the measured rate, the narrowest hop, oddities, and facts that are
 * not visible.
 *
 * Works with partial knowledge: a hop without known facts is printed as such.  Rates of hops are
 * bytes/s per direction from data sheets of ports, NVLinks and PCIe, never measured. */
#ifndef RG_EXPLAIN_H
#define RG_EXPLAIN_H

#include <jansson.h>

#include "fit/fit.h"
#include "matrix/matrix.h"
#include "verdict/below.h"

struct hop {
    char *text;
    double Bps;  /* 0: unknown */
    char *basis; /* "18 NVLinks of 25.0 GB/s", "rate of the port", "PCIe 5.0 x16" */
};

struct measured {
    enum op op;
    double bytes, sec;
    /* number of samples; for a tier's curve: number of pairs, and epochs 0 */
    int src, dst, n, epochs;
    bool alone;
    bool tier; /* measured on the tier, not on this pair */
};

struct texts {
    char **text;
    int count;
};

struct explain {
    int src, dst;
    char *tier;
    struct hop *hop;
    int hops, narrowest; /* index of the hop; -1: no rate is known */
    struct measured *measured;
    int count;
    /* Best rate measured one way, or the tier's rate times the factors of slow parts; 0: none. */
    double Bps;
    bool inferred; /* Bps is derived from the tier */
    double share;  /* relative to the narrowest hop; NAN: unknown */
    double nccl;   /* bandwidth NCCL assumes between the two; 0: unknown */
    struct texts odd, unseen;
    bool has_below;
    struct below_said below; /* set by explain_below() if a lower-layer campaign is given */
};

/* Explain a pair, a != b.  t: the endpoints of m in detail (topology.json), or m->topo.  obs:
 * observations of pairs; NULL without points. */
void explain_pair(struct explain *e, const struct matrix *m, const struct topo *t,
                  const struct obs *obs, int count, int a, int b);
/* Add the result of a lower-layer campaign for the same pair. */
void explain_below(struct explain *e, const struct below *b);
void explain_free(struct explain *e);
/* Add the hops of the path and the facts of them that are not visible in the topology. */
void explain_way(struct explain *e, const struct topo *t);
/* Append one text. */
void explain_say(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
json_t *explain_json(const struct explain *e, const struct topo *t,
                     /* new reference; b: as given to explain_below(), or NULL */
                     const struct below *b);

#endif
