/* parts.h - exceptions while they are being made: what parts_merge.c and parts_tiers.c share.
 *
 * Samples refer to exceptions by index (sample.explained), so every change of the list goes through
 * these. */
#ifndef RG_PARTS_H
#define RG_PARTS_H

#include "cost/fit/fit_state.h"

/* Factors within this share of the larger one; dead is like dead only. */
bool parts_alike(const struct exception *x, const struct exception *y, double tolerance);
/* Fold y into x: factors weighted by evidence. */
void parts_fold(struct exception *x, const struct exception *y);
/* An unexplained sample nearer to normal than to the factor speaks for the part. */
bool parts_speaks_for(const struct sample *s, const struct exception *e);
/* Does this sample pass the exception's side of its endpoint or host, or between its two racks? */
bool parts_pass(const struct topo *t, const struct exception *e, const struct sample *s);
/* Sort by what is worse, part, place, tier and side. */
void parts_sort(struct fit *f);
/* into[i] == i for all; the caller changes some and hands it to parts_keep(), which keeps the
 * exceptions that are their own. The caller frees. */
int *parts_identity(const struct matrix *m);
void parts_keep(struct matrix *m, struct fit *f, const int *into);

/* What cannot be used at all: wrong data, and endpoints that nobody gets an answer from. */
void parts_broken(struct fit *f);

/* One cause in several tiers: the same factor in all that cross NICs becomes one exception; a tier
 * with a factor of its own (a NIC slower than a trunk that is slow itself) keeps it. */
void parts_tiers(struct fit *f, double tolerance);
/* One cause above many parts: their leaf, or the uplinks of their rack. */
void parts_common(struct fit *f, double tolerance);

#endif
