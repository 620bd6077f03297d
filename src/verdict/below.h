/* below.h - compare a campaign with one of a lower layer on the same machine, to separate NIC
 * faults from software faults: RDMA queue pairs (transport verbs) below NCCL or MPI, or MPI below
 * NCCL.
 *
 * Endpoints are matched by host and NIC; where either is unknown, by GPU or number.  The campaigns
 * may have different ranks, another order, or only some hosts in common.  Only traffic that crosses
 * NICs is compared, at equal message size: the largest size that both measured for the pair,
 * otherwise the smaller of their largest sizes, scaled from the measured size by the tier's curve.
 *
 * A share is the measured rate of a pair / the rate of healthy pairs of its tier in the same
 * campaign (its curve).  Low and high mean that the whole 95 % interval is.  A pair not measured
 * below is reported as such.
 *
 *                    below low                     below high
 *    above low       slow below too; if the share  the lower layer is good, the upper one is not
 *                    above is lower, the upper
 *                    layer loses more
 *    above high      slow below only, or faster    compared as rates: if above reaches less than
 *                    above than below can carry:   BELOW_LEAST of below, the whole tier is slow
 *                    another path was used         above; if faster, another path; else both fine
 *
 * The bound is BELOW_ENOUGH, or 1 - 3 deviations of the tier's pairs if that is lower.  For a part
 * of share f above, the bound below is at least (1 + f) / 2. */
#ifndef RG_BELOW_H
#define RG_BELOW_H

#include "fit/fit.h"
#include "matrix/matrix.h"
#include "measure/point.h"

#define BELOW_ENOUGH 0.9
#define BELOW_LEAST 0.8

enum below_is {
    BELOW_UNKNOWN, /* not measured below */
    BELOW_APART,   /* does not cross NICs: not comparable */
    BELOW_GOOD,    /* good below, so the upper layer is at fault */
    BELOW_SLOW,    /* slow below too */
    BELOW_BOTH,    /* slow below too, and the upper layer loses more */
    BELOW_ONLY,    /* slow below only */
    BELOW_OTHER,   /* faster above than below: another path was used */
    BELOW_FINE,    /* slow in neither layer */
    BELOW_UNSURE,  /* intervals overlap the bounds */
    BELOW_COUNT
};
extern const char *const below_name[BELOW_COUNT]; /* "not-measured", "apart", "good", ... */

struct below_figure {
    double Bps, lo, hi;               /* NAN: not measured; 0: no data passed */
    double share, share_lo, share_hi; /* relative to healthy pairs of the tier */
    /* number of directed pairs measured; 0: taken from the matrix */
    int pairs;
};

/* Result for a pair or part. */
struct below_said {
    enum below_is is;
    double bytes; /* message size of the comparison; 0: not compared */
    struct below_figure above, below;
    char *text; /* "RC write 49.0 GB/s, NCCL 29.4 GB/s: the NIC is good, NCCL is not" */
};

struct below_layer {
    const struct matrix *m;
    const struct topo *t;   /* topology with the devices of the endpoints; NULL: as in the matrix */
    const struct points *p; /* NULL: not available */
};

struct below {
    struct below_side {
        struct below_layer of;
        const struct topo *t;
        struct obs *obs;
        int count;
    } above, below;
    const char *upper, *lower; /* transports by display name: "NCCL", "RC write" */
    int *to;                   /* lower endpoint of each upper endpoint; -1: not matched */
    /* endpoints above by endpoint below: first, and next with the same one */
    int *first, *next;
    int matched;
};

/* Match the endpoints of two layers, which must live as long as b.  EXIT_DATA: no endpoint in
 * common, or a transport that cannot lie below; path is for messages.  Call below_free() in every
 * case. */
int below_match(struct below *b, const struct below_layer *above, const struct below_layer *below,
                const char *path, struct err *err);
void below_free(struct below *b);

/* Compare one pair of endpoints above, a != b.  s owns the text: call below_said_free(). */
void below_pair(struct below_said *s, const struct below *b, int src, int dst);
void below_said_free(struct below_said *s);
json_t *below_json(const struct below *b, const struct below_said *s); /* new reference */

/* --- for parts --- */

/* Combine the pairs of NICs measured below that are accepted by `takes`, called with endpoints
 * above: the median share, and rates at `bytes` from the median of their tiers' rates.  A pair is
 * left out if it also crosses a part of the matrix below that fewer than half of the pairs cross,
 * because that is another fault. */
typedef bool below_takes(const void *of, int src, int dst);
struct below_figure below_over(const struct below *b, below_takes *takes, const void *of,
                               double bytes);
/* Like below_over(), but from the matrix alone, for pairs among these endpoints above.  NAN unless
 * all parts of a kind were measured. */
struct below_figure below_over_matrix(const struct below *b, below_takes *takes, const void *of,
                                      double bytes, enum seen kind, const int *end, int ends);
/* Latency of these pairs beyond that of their tiers, s, in Bps, lo and hi. */
struct below_figure below_late(const struct below *b, below_takes *takes, const void *of);
/* Number of points below whose data was verified, for these pairs; *wrong: points with wrong
 * data. */
int below_checked(const struct below *b, below_takes *takes, const void *of, int *wrong);
/* True if traffic between src and dst crosses NICs or can be made to. */
bool below_crosses(const struct below_side *s, int src, int dst);
/* Size at which pairs of a tier can be compared: the largest on both curves; 0: none. */
double below_size(const struct below *b, int src, int dst);
/* Rate of a healthy pair of the same tier at `bytes`. */
double below_like(const struct below_side *s, int src, int dst, double bytes);
enum below_is below_judge(const struct below_figure *above, const struct below_figure *below,
                          double enough);
/* Return "RC write 49.0 GB/s, NCCL 29.4 GB/s" (below_rates) and the meaning of the verdict
 * (below_words). good: "the NIC is good"; slow: "NIC, cable or switch".  The caller frees. */
char *below_rates(const struct below *b, const struct below_said *s);
char *below_words(const struct below *b, const struct below_said *s, const char *good,
                  const char *slow);

#endif
