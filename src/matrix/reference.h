/* reference.h - time that a healthy fabric would take: the reference behind "of expected".
 *
 * The best that there is, never what the group itself was measured at:
 *   - the preset that the fabric declares itself to be, with the same hosts: its published curve of
 *     that shape, else what its published curves or its tiers say of the shape;
 *   - on other machines the shipped preset of the same GPUs: its published curves of groups inside
 *     one domain and, where the NICs have the same rate, between domains;
 *   - else the model, over the healthy pairs of the campaign or, where racks and rails were not
 *     visible, the preset's tiers, where it is good enough to judge by: between hosts, while moving
 *     takes longer than everything else, and on hosts without GPUs only for one rank a host.
 *
 * Elsewhere there is none: what MPI makes of memory that ranks share, small messages over libraries
 * that choose among algorithms. */
#ifndef RG_REFERENCE_H
#define RG_REFERENCE_H

#include "matrix/matrix.h"

struct reference {
    const struct matrix *measured; /* borrowed */
    struct matrix preset;          /* preset that supplies the curves; empty: no preset is known */
    /* matrix that answers: the declared preset, or `measured` with the curves of a preset; borrows */
    struct matrix like;
    bool declared; /* true if the campaign names this preset as its fabric */
    bool seen;     /* true if racks, leaves and rails were visible, too */
};

/* m must outlive it.  A matrix that is a preset has no reference: nothing is compared with itself.
 */
void reference_open(struct reference *r, const struct matrix *m);
void reference_free(struct reference *r);
/* Seconds of a collective at these sizes on these endpoints while at_once such groups run; sec NAN:
 * there is no honest reference.  out[i].source says which.  The group is looked at once. */
void reference_sizes(const struct reference *r, enum op op, const int *ids, int n, int at_once,
                     const double *bytes, int sizes, struct cost *out);
static inline void reference_collective(const struct reference *r, enum op op, const int *ids,
                                        int n, int at_once, double bytes, struct cost *out)
{
    reference_sizes(r, op, ids, n, at_once, &bytes, 1, out);
}
/* The same for a curve of the matrix that was measured, also where the fit took a slow part out of it: then both
 * are of a healthy group.  There is none for published curves.  ids: a group of its shape or NULL. */
void reference_of_curve(const struct reference *r, const struct collective *c, const int *ids,
                        const double *bytes, int sizes, struct cost *out);
/* The share of the reference's speed that `sec` reaches; NAN where there is none, and where `sec`
 * is faster than a reference that is no exact figure allows: then it was none. */
double reference_share(const struct cost *reference, double sec);
/* The same of a curve.  Where the fit took a slow part out, what is faster than expected is its model's error, and
 * no fault makes a group faster: at most 1. */
static inline double reference_curve_share(const struct collective *c, const struct cost *reference,
                                           double sec)
{
    double share = reference_share(reference, sec);

    return c->basis == BASIS_FITTED && share > 1 ? 1 : share;
}
/* "preset gb200-nvl72", "preset gb200-nvl72, scaled within 25 %", "pairs, modelled
 * within 25 %"; empty where there is none. */
char *reference_words(const struct reference *r, const struct cost *c, char buf[80]);

/* --- of another matrix, a preset's or another campaign's --- */

/* Rate of the NICs of most endpoints, B/s; 0: unknown. */
double reference_nics(const struct topo *t);
/* Rate of these NICs relative to the reference's; 1: alike or unknown.  Tiers over NICs are judged by
 * their NICs' rate. */
double reference_scale(const struct matrix *reference, const struct topo *t);
/* Tier of the same name, else of the same coordinates, else the one that such a pair falls into
 * there (tiers are in the order in which they are tried), else the widest: no pair over NICs may do
 * worse than that.  If the measured rate is beyond that tier's (TIER_BEYOND), the tier of the nearest
 * rate: hosts whose places are hidden may well be one NVLink domain.  A slower rate is no other tier but
 * a fault.  t is of m.  NULL: no tier fits, or no reference. */
const struct tier *reference_tier(const struct matrix *reference, const struct matrix *m,
                                  const struct tier *t);
/* Rate of that tier with the NICs of m, B/s; NAN: no tier. */
double reference_rate(const struct matrix *reference, const struct matrix *m, const struct tier *t);
/* Return the reference's curve of the same operation and shape, or NULL. */
const struct collective *reference_curve(const struct matrix *reference,
                                         const struct collective *c);

#endif
