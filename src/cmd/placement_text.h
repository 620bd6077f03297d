/* placement_text.h - whether a job's segments are together, in words and as JSON. */
#ifndef RG_PLACEMENT_TEXT_H
#define RG_PLACEMENT_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "place/segments.h"

void placement_text(FILE *out, const struct segments *s, const struct segment_verdict *v);
/* New reference. */
json_t *placement_json(const struct segments *s, const struct segment_verdict *v);

#endif
