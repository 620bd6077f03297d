/* matrix_text.h - the sections of a cost matrix, for people and for programs. */
#ifndef RG_MATRIX_TEXT_H
#define RG_MATRIX_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cost/matrix.h"

/* Each prints its section to `out` for people and returns NULL, or, where out is NULL, returns it as
 * JSON for programs; new reference. */

/* For people how many and over what, tiers and findings; for programs all but the points. */
json_t *matrix_report(FILE *out, const struct matrix *m, double bytes);
/* bytes > 0: also what the tiers give at this message size. */
json_t *matrix_report_tiers(FILE *out, const struct matrix *m, double bytes);
/* Bus bandwidth at bytes, else at all sizes that people are shown: 1/256, 1/16 and all of each
 * curve's largest; expected beside it.  brief: only the largest group of all_gather,
 * reduce_scatter, all_to_all and all_reduce. */
json_t *matrix_report_collectives(FILE *out, const struct matrix *m, double bytes, bool brief);
/* Exceptions and findings; people are shown of each at most `most` (0: all), the rest counted. */
json_t *matrix_report_findings(FILE *out, const struct matrix *m, int most);
/* Every curve point. */
json_t *matrix_report_points(FILE *out, const struct matrix *m);

#endif
