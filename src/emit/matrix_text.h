/* matrix_text.h - the sections of a cost matrix as text for people and as JSON for programs. */
#ifndef RG_MATRIX_TEXT_H
#define RG_MATRIX_TEXT_H

#include <stdio.h>

#include "cost/matrix.h"

/* bytes > 0: also what the tiers give at this message size. */
void matrix_text_tiers(FILE *out, const struct matrix *m, double bytes);
/* Bus bandwidth at bytes, or at 1/256, 1/16 and all of each curve's largest size; expected beside
 * it. */
void matrix_text_collectives(FILE *out, const struct matrix *m, double bytes);
void matrix_text_findings(FILE *out, const struct matrix *m); /* exceptions and findings */
void matrix_text_points(FILE *out, const struct matrix *m);   /* every curve point */

/* The same as JSON; new references. */
json_t *matrix_view_tiers(const struct matrix *m, double bytes);
json_t *matrix_view_collectives(const struct matrix *m, double bytes);
json_t *matrix_view_findings(const struct matrix *m);
json_t *matrix_view_points(const struct matrix *m);

#endif
