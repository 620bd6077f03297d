/* api.h - the inside of a handle of railgauge.h, for the parts of the library that lie above
 * src/cost. */
#ifndef RG_COST_API_H
#define RG_COST_API_H

#include "cost/matrix.h"
#include "railgauge.h"

/* The matrix of the handle; it lives as long. */
const struct matrix *api_matrix(const struct railgauge *r);
/* A sentence for a caller of the public functions; text may be NULL. */
void api_say(char text[256], const char *sentence);

#endif
