/* gpu_binding.h - which GPU is whose. */
#ifndef RG_GPU_BINDING_H
#define RG_GPU_BINDING_H

#include <stdbool.h>

#include "base/err.h"
#include "probe/world.h"

/* Whose it is; sent as bytes between equal programs.  Of a divided GPU the instances share a bus
 * id. */
struct gpu_binding {
    char host[64], uuid[48], busid[16];
};

/* Collective: where each rank runs and, once it is open, its GPU; the caller frees *all, also after
 * a failure. */
int gpu_binding_trade(struct world *w, struct gpu_binding **all, struct err *err);
bool gpu_binding_same(const struct gpu_binding *a, const struct gpu_binding *b);

/* Collective: this rank's GPU is opened, the one of its place among the ranks of its host (as the
 * launcher says, else by rank) modulo the GPUs it may use; gpu_close() ends that.  EXIT_CONFIG
 * where there is none.  Two ranks on one GPU are refused, both named, unless `share`, which is kept
 * in the provenance.  *one_host unless NULL: all ranks are on this one. */
int gpu_binding_take(struct world *w, bool share, bool *one_host, struct err *err);

#endif
