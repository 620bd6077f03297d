/* curves_text.h - how far off points of curves are that were predicted from the others. */
#ifndef RG_CURVES_TEXT_H
#define RG_CURVES_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "cost/ladder.h"

/* What was predicted, the worst first, and how the answer is shown. */
struct curves {
    struct ladders ladders;
    struct miss *miss;
    int misses;
    const char *file;
    double every; /* 0: each point alone */
    int worst;    /* how many are listed */
};

void curves_text(FILE *out, const struct curves *c);
json_t *curves_json(const struct curves *c); /* new reference */

#endif
