/* gpu_binding.h - assignment of GPUs to ranks, and of ranks to the NUMA nodes of their devices. */
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

/* --bind: AUTO binds a rank if its device has a NUMA node with a core that the rank may use; DEVICE
 * fails otherwise; NONE leaves the rank where the launcher put it. */
enum gpu_bind { GPU_BIND_AUTO, GPU_BIND_DEVICE, GPU_BIND_NONE };
extern enum gpu_bind gpu_bind_asked;

/* Collective: bind this thread, threads that it starts and memory that it allocates from now on to
 * the NUMA node of a device; gpu_binding_take() does so for GPUs.  device: folder below /sys, such
 * as "class/infiniband/mlx5_0/device"; RAILGAUGE_SYS is another /sys.  The result of rank 0's host
 * goes into the provenance, and rank 0 warns of hosts that differ from it: such hosts reach their
 * devices over other links.  EXIT_CONFIG with BIND_DEVICE. */
int gpu_binding_place(struct world *w, const char *device, struct err *err);

#endif
