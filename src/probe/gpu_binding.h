/* gpu_binding.h - which GPU is whose. */
#ifndef RG_GPU_BINDING_H
#define RG_GPU_BINDING_H

#include <stdbool.h>

#include "base/err.h"
#include "probe/world.h"

/* Collective: this rank's GPU is opened, the one of its place among the ranks of its host (as the
 * launcher says, else by rank) modulo the GPUs it may use; gpu_close() ends that.  EXIT_CONFIG
 * where there is none.  Two ranks on one GPU are refused, both named, unless `share`, which is kept
 * in the provenance.  *one_host unless NULL: all ranks are on this one. */
int gpu_binding_take(struct world *w, bool share, bool *one_host, struct err *err);

#endif
