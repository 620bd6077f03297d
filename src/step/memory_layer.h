/* memory_layer.h - what backward needs of one layer; part of memory.h. */
#ifndef RG_MEMORY_LAYER_H
#define RG_MEMORY_LAYER_H

#include "step/layout.h"

/* Bytes per token of one rank's part of the sequence before tp (tokens of a microbatch / cp). */
double memory_layer(const struct model *m, const struct layer *kind, const struct layout *l,
                    const struct recipe *r, int recompute);

#endif
