/* cost_text.h - what a transfer or a collective costs, in words and as JSON. */
#ifndef RG_COST_TEXT_H
#define RG_COST_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "cost/reference.h"

struct cost_answer {
    const char *op; /* "pair", "all_gather", "ep_dispatch" */
    bool bus;       /* the rate is a bus bandwidth */
    double factor;  /* bytes to those of the rate */
    size_t bytes;
    int ranks;
    struct cost cost, healthy; /* healthy.sec NAN: not known */
    char reference[80];        /* what healthy rests on, in words */
};

void cost_text(FILE *out, const struct cost_answer *a);
/* New reference; m names the part that slows it. */
json_t *cost_json(const struct cost_answer *a, const struct matrix *m);

#endif
