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
/* Bus bandwidth at bytes, a table per shape; default: text shows 1/256, 1/16 and all of each curve's largest size,
 * JSON all sizes; expected beside it.  brief: only the largest group of all_gather, reduce_scatter,
 * all_to_all and all_reduce. */
json_t *matrix_report_collectives(FILE *out, const struct matrix *m, double bytes, bool brief);
/* Text: what was checked, and the first `most` findings (0: all), counting the rest.  JSON: exceptions
 * and findings. */
json_t *matrix_report_findings(FILE *out, const struct matrix *m, int most);
/* Every curve point. */
json_t *matrix_report_points(FILE *out, const struct matrix *m);

/* Print one line, "1 slow part found" with `note`, a block for each of the first `most` parts (brief;
 * 0: all in full), without their cost, and the campaign: "demo: 576 GPUs on 144 hosts, simulated
 * gb200-nvl72; declared: 8 racks"; name: of the campaign, or "". */
void matrix_report_parts(FILE *out, const struct matrix *m, int most, const char *note,
                         const char *name);

#endif
