/* place_text.h - the answer of railgauge place in words and as JSON. */
#ifndef RG_PLACE_TEXT_H
#define RG_PLACE_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "emit/export/rank_files.h"
#include "place/place.h"

/* What is shown; nothing is owned. */
struct place_answer {
    const struct placed *placed;
    const struct matrix *matrix;
    const struct prediction *now, *before; /* in the order found, in the default one; NULL: traffic,
                                             or it needs a part of no use */
    const char *traffic;                   /* file, or NULL */
    int free_hosts;
};

void place_text(FILE *out, const struct place_answer *a);
/* place.json; new reference. */
json_t *place_json(const struct place_answer *a);

#endif
