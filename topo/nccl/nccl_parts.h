/* nccl_parts.h - what the parts of nccl_topo*.c share; nobody else includes it. */
#ifndef RG_NCCL_PARTS_H
#define RG_NCCL_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/host/gpu.h"
#include "topo/topo.h"

enum { CHAIN = 16 };

/* A GPU, or a port of a NIC, and the PCI elements that it hangs below, the CPU's end first. */
struct device {
    bool gpu;
    uint64_t host;
    int cpu, numa, chain[CHAIN], links_of_chain;
    char busid[16], name[48], guid[24];
    unsigned pci_device;
    int port, rail, plane;
    long long Mbps;
    struct gpu links; /* links and remotes of a GPU */
};

struct nccl_devices {
    struct device *device;
    int devices, elements; /* elements: of the file */
};

/* Into host, other hosts of a fused dump beside it. */
void nccl_topo_fill(struct topo *t, int host, const struct nccl_devices *d, const char *path);

#endif
