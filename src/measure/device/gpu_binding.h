/* gpu_binding.h - assignment of GPUs to ranks. */
#ifndef RG_GPU_BINDING_H
#define RG_GPU_BINDING_H

#include <stdbool.h>

#include "base/err.h"
#include "watch/world.h"

/* Identity of a rank's GPU, sent as bytes between equal programs.  The instances of a divided GPU
 * (MIG) share a bus id. */
struct gpu_binding {
    char host[64], uuid[48], busid[16];
};

/* Collective: exchange each rank's host and, if one is open, its GPU.  The caller frees *all, also
 * after a failure. */
int gpu_binding_trade(struct world *w, struct gpu_binding **all, struct err *err);
bool gpu_binding_same(const struct gpu_binding *a, const struct gpu_binding *b);

/* Collective: open this rank's GPU; close with gpu_close().  GPU number: place of this rank on its
 * host (as the launcher declares, else by rank) modulo the number of usable GPUs.  EXIT_CONFIG if
 * there is no GPU.  Two ranks on one GPU are refused with both names, unless `share`, which is
 * recorded in the provenance.  *one_host unless NULL: true if all ranks are on this host. */
int gpu_binding_take(struct world *w, bool share, bool *one_host, struct err *err);

#endif
