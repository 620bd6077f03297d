/* matrix_text.h - the sections of a cost matrix as text for people and as JSON for programs. */
#ifndef RG_MATRIX_TEXT_H
#define RG_MATRIX_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/table.h"
#include "cost/matrix.h"

/* One line of how many and over what, and an empty one. */
void matrix_text_head(FILE *out, const struct matrix *m);
/* bytes > 0: also what the tiers give at this message size. */
void matrix_text_tiers(FILE *out, const struct matrix *m, double bytes);
/* Bus bandwidth at bytes, or at 1/256, 1/16 and all of each curve's largest size; expected beside
 * it.  brief: only the largest group of all_gather, reduce_scatter, all_to_all and all_reduce. */
void matrix_text_collectives(FILE *out, const struct matrix *m, double bytes, bool brief);
/* Exceptions and findings; of each at most `most` (0: all), the rest is counted. */
void matrix_text_findings(FILE *out, const struct matrix *m, int most);
/* Every curve point, for text and JSON; the caller frees. */
void matrix_points(struct table *t, const struct matrix *m);

/* The same as JSON; new references. */
json_t *matrix_view(const struct matrix *m, double bytes); /* the head and all but the points */
json_t *matrix_view_tiers(const struct matrix *m, double bytes);
json_t *matrix_view_collectives(const struct matrix *m, double bytes);
json_t *matrix_view_findings(const struct matrix *m);

#endif
