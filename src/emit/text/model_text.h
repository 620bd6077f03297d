/* model_text.h - an architecture as a sheet: layers by kind, parameters and FLOPs by part. */
#ifndef RG_MODEL_TEXT_H
#define RG_MODEL_TEXT_H

#include <stdio.h>

#include "step/model.h"

/* Parameters that exist, that a token meets, and FLOPs per token (training, causal).  The parts are
 * those of weights, then norms, embedding, head and the attention core; they add up to the model
 * without mtp. */
struct model_part {
    const char *name;
    double total, active, flops;
};
enum { MODEL_PARTS = WEIGHT_COUNT + 4 };
void model_parts(struct model_part part[MODEL_PARTS], const struct model *m, int seq);

void model_text(FILE *out, const struct model *m, int seq);

enum { MODEL_TEXT = 96 };                                   /* room for any text made below */
char *model_count_text(char buf[MODEL_TEXT], double x);     /* "8.03 B", "404.6 M", "-" for 0 */
char *model_flops_text(char buf[MODEL_TEXT], double flops); /* in units of 1e9: "51.47", "-" */

#endif
