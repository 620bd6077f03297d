/* reference.h - what a healthy fabric would take: the reference behind "of expected".
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

#include "cost/matrix.h"

struct reference {
    const struct matrix *measured; /* borrowed */
    struct matrix preset;          /* the one whose curves count; empty: none */
    struct matrix like;            /* what is asked: borrows from both */
    bool declared;                 /* the preset is the fabric itself */
    bool seen;                     /* and its racks, leaves and rails were visible */
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
/* The same for a curve of the matrix, ids: a group of its shape or NULL.  There is none for a curve
 * that was not measured as it stands: a published one, or one that the model took a slow part out
 * of. */
void reference_of_curve(const struct reference *r, const struct collective *c, const int *ids,
                        const double *bytes, int sizes, struct cost *out);
/* The share of the reference's speed that `sec` reaches; NAN where there is none, and where `sec`
 * is faster than a reference that is no exact figure allows: then it was none. */
double reference_share(const struct cost *reference, double sec);
/* "preset gb200-nvl72", "preset gb200-nvl72, scaled within 25 %", "pairs, modelled
 * within 25 %"; empty where there is none. */
char *reference_words(const struct reference *r, const struct cost *c, char buf[80]);

/* --- of another matrix, a preset's or another campaign's --- */

/* True if the tier was measured clearly faster than this data sheet: its pairs use another kind of link.
 * Names of tiers say nothing where no structure was seen: "fabric" of one blind NVL72 rack is NVLink. */
bool reference_outruns(const struct tier *t, double peak_Bps);
/* Its tier of the same name, else of the same coordinates, else the one that such a pair falls into
 * there (tiers are in the order in which they are tried), else the widest: no pair over NICs may do
 * worse than that.  Tiers that t outruns are none of them.  NULL: there is none, or no reference. */
const struct tier *reference_tier(const struct matrix *reference, const struct tier *t);
/* Its curve of the same operation and shape, or NULL. */
const struct collective *reference_curve(const struct matrix *reference,
                                         const struct collective *c);

#endif
