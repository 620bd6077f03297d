/* model_read.h - "layers" and "mtp" of a model file; model.c reads the rest. */
#ifndef RG_MODEL_READ_H
#define RG_MODEL_READ_H

#include <jansson.h>

#include "step/model.h"

enum { MODEL_DIM_MAX = 1 << 24, MODEL_LAYERS_MAX = 100000 };

/* A whole number of an object, min..max; absent: *out stays where optional, else an error. */
int model_read_int(json_t *object, const char *where, const char *key, int min, int max,
                   bool optional, int *out, struct err *err);
/* Fills layer, kinds and layers of m; path starts every message. */
int model_read_layers(struct model *m, json_t *list, const char *path, struct err *err);
/* Fills mtp and mtp_shared of m; object NULL: none. */
int model_read_mtp(struct model *m, json_t *object, const char *path, struct err *err);

#endif
