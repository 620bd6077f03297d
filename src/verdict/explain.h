/* explain.h - one pair of endpoints in words: the way from one to the other hop by hop, what each
 * hop should give and by what source, what was measured, which hop is the narrowest, what is odd,
 * and what is not visible.
 *
 * Works with partial knowledge: a hop that nothing is known of says so.  Rates are bytes/s per
 * direction; data sheets of ports, NVLinks and PCIe, never a measurement. */
#ifndef RG_EXPLAIN_H
#define RG_EXPLAIN_H

#include <jansson.h>

#include "cost/fit/observe.h"
#include "cost/matrix.h"
#include "verdict/below.h"

struct hop {
    char *text;
    double Bps;  /* 0: not known */
    char *basis; /* "18 NVLinks of 25.0 GB/s", "rate of the port", "PCIe 5.0 x16" */
};

struct measured {
    enum op op;
    double bytes, sec;
    int src, dst, n, epochs; /* samples; of a tier's curve: pairs, and 0 */
    bool alone;
    bool tier; /* not this pair but its tier */
};

struct texts {
    char **text;
    int count;
};

struct explain {
    int src, dst;
    char *tier;
    struct hop *hop;
    int hops, narrowest; /* hop; -1: no rate is known */
    struct measured *measured;
    int count;
    double Bps;    /* best measured one way; else its tier's, less what slow parts take; 0: none */
    bool inferred; /* the latter */
    double share;  /* of the narrowest hop; NAN: not known */
    double nccl;   /* what NCCL assumes between them; 0: not told */
    struct texts odd, unseen;
    bool has_below;
    struct below_said below; /* where a campaign below is at hand; explain_below() */
};

/* t has the endpoints of m, in detail (topology.json), or is m->topo.  obs: observations of pairs,
 * NULL without points.  a != b. */
void explain_pair(struct explain *e, const struct matrix *m, const struct topo *t,
                  const struct obs *obs, int count, int a, int b);
/* Then: what a campaign below says of the same pair. */
void explain_below(struct explain *e, const struct below *b);
void explain_free(struct explain *e);
/* Its hops and what is not visible of them, as far as the topology tells. */
void explain_way(struct explain *e, const struct topo *t);
/* One more text. */
void explain_say(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
json_t *explain_json(const struct explain *e, const struct topo *t,
                     const struct below *b); /* new reference; b: NULL, or explain_below()'s */

#endif
