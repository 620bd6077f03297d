/* matrix_text.h - sections of a cost matrix, as text and as JSON. */
#ifndef RG_MATRIX_TEXT_H
#define RG_MATRIX_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "matrix/matrix.h"

/* Each function prints its section to `out` and returns NULL or, if out is NULL, returns it as
 * JSON; a new reference. */

/* Text: numbers and kinds of measurements, tiers and findings.  JSON: all but the points. */
json_t *matrix_report(FILE *out, const struct matrix *m, double bytes);
/* bytes > 0: also the cost of each tier at this message size. */
json_t *matrix_report_tiers(FILE *out, const struct matrix *m, double bytes);
/* Bus bandwidth at bytes; default: text shows 1/256, 1/16 and all of each curve's largest size,
 * JSON all sizes; expected beside it.  brief: only the largest group of all_gather, reduce_scatter,
 * all_to_all and all_reduce. */
json_t *matrix_report_collectives(FILE *out, const struct matrix *m, double bytes, bool brief);
/* Exceptions and findings; text shows at most `most` of each (0: all) and counts the rest. */
json_t *matrix_report_findings(FILE *out, const struct matrix *m, int most);
/* Every curve point. */
json_t *matrix_report_points(FILE *out, const struct matrix *m);

#endif
