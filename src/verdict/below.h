/* below.h - a campaign beside one that was measured below it on the same machine: RDMA queue pairs
 * (transport verbs) below NCCL or MPI, MPI below NCCL.  Is it the NIC, or what sits on it?
 *
 * Endpoints are matched by host and NIC, where either is not known by GPU or number: the two may have
 * other ranks, another order, or only some hosts in common.  Only traffic that crosses NICs is
 * compared, of the same message size: the largest that both measured of the pair, else the smaller
 * of their largest ones, where a tier's curve stands in for what was measured at another size.
 *
 * A share is what is got of what the tier's healthy pairs get in the same campaign (its curve).
 * What is low is so with its whole 95 % interval, and so is what is high; what was not measured
 * below is called so:
 *
 *                   below low                     below high
 *   above low       slow below too; and where     the layer below is good, the one above is not
 *                   its share is lower, above
 *                   loses more
 *   above high      slow below only; or faster    compared as rates: where above gets less than
 *                   above than below can carry:   BELOW_LEAST of what lies below, all of the tier
 *                   another path was used         are alike; faster: another path; else both fine
 *
 * The bound is BELOW_ENOUGH, with tiers that vary three of their deviations; below a part of share f
 * it is no less than (1 + f) / 2. */
#ifndef RG_BELOW_H
#define RG_BELOW_H

#include "cost/fit/observe.h"
#include "cost/matrix.h"
#include "probe/point.h"

#define BELOW_ENOUGH 0.9
#define BELOW_LEAST 0.8

enum below_is {
    BELOW_UNKNOWN, /* not measured below */
    BELOW_APART,   /* does not cross NICs: nothing to compare */
    BELOW_GOOD,    /* good below, above is at fault */
    BELOW_SLOW,    /* slow below too */
    BELOW_BOTH,    /* slow below too, and more is lost above */
    BELOW_ONLY,    /* slow below only */
    BELOW_OTHER,   /* faster above than below: another path was used */
    BELOW_FINE,    /* neither is slow */
    BELOW_UNSURE,  /* intervals reach over the bounds */
    BELOW_COUNT
};
extern const char *const below_name[BELOW_COUNT]; /* "not-measured", "apart", "good", ... */

struct below_figure {
    double Bps, lo, hi;               /* NAN: not measured; 0: nothing got through */
    double share, share_lo, share_hi; /* of its like */
    int pairs;                        /* directed, behind it; 0: by the matrix */
};

/* What is said of a pair or part. */
struct below_said {
    enum below_is is;
    double bytes; /* at which both are compared; 0: they are not */
    struct below_figure above, below;
    char *text; /* "RC write 49.0 GB/s, NCCL 29.4 GB/s: the NIC is good, NCCL is not" */
};

struct below_layer {
    const struct matrix *m;
    const struct topo *t;   /* with the devices of the endpoints; NULL: as the matrix has them */
    const struct points *p; /* NULL: none at hand */
};

struct below {
    struct below_side {
        struct below_layer of;
        const struct topo *t;
        struct obs *obs;
        int count;
    } above, below;
    const char *upper, *lower; /* what carries them, as people call it: "NCCL", "RC write" */
    int *to;                   /* endpoint below, of one above; -1: it is not there */
    int *first, *next;         /* endpoints above of one below: the first; the next of the same */
    int matched;
};

/* The layers live as long.  EXIT_DATA: no endpoint in common, or a transport that cannot lie below;
 * path is for messages.  below_free() in any case. */
int below_match(struct below *b, const struct below_layer *above, const struct below_layer *below,
                const char *path, struct err *err);
void below_free(struct below *b);

/* One pair above, a != b.  The text is owned: below_said_free(). */
void below_pair(struct below_said *s, const struct below *b, int src, int dst);
void below_said_free(struct below_said *s);
json_t *below_json(const struct below *b, const struct below_said *s); /* new reference */

/* --- for parts --- */

/* Of all pairs of NICs measured below that `takes` as pairs of endpoints above: the median share,
 * and as rates what it is of their tiers at `bytes` (in the middle).  Pairs that also cross a part
 * of the matrix below which fewer than half of them cross are left out: another fault's. */
typedef bool below_takes(const void *of, int src, int dst);
struct below_figure below_over(const struct below *b, below_takes *takes, const void *of,
                               double bytes);
/* The same by the matrix alone, of pairs among these endpoints above; NAN unless it saw all of a
 * kind. */
struct below_figure below_over_matrix(const struct below *b, below_takes *takes, const void *of,
                                      double bytes, enum seen kind, const int *end, int ends);
/* The latency that such pairs have more than their tiers', s, in Bps, lo and hi. */
struct below_figure below_late(const struct below *b, below_takes *takes, const void *of);
/* Points below of such pairs whose data was verified, and of these the wrong ones. */
int below_checked(const struct below *b, below_takes *takes, const void *of, int *wrong);
/* Do bytes between these two cross NICs, or can be made to? */
bool below_crosses(const struct below_side *s, int src, int dst);
/* The size at which a tier's pairs can be compared: the largest that both curves have; 0: none. */
double below_size(const struct below *b, int src, int dst);
/* Rate of a healthy pair like this at `bytes`. */
double below_like(const struct below_side *s, int src, int dst, double bytes);
enum below_is below_judge(const struct below_figure *above, const struct below_figure *below,
                          double enough);
/* "RC write 49.0 GB/s, NCCL 29.4 GB/s", and what the verdict means; good: "the NIC is good", slow:
 * "NIC, cable or switch".  The caller frees. */
char *below_rates(const struct below *b, const struct below_said *s);
char *below_words(const struct below *b, const struct below_said *s, const char *good,
                  const char *slow);

#endif
