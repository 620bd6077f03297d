/* nccl_xml_impl.h - graph between the topology file (nccl_xml.c) and the paths (nccl_paths.c):
 * CPUs, PCIe switches, NICs with networks, GPUs and one NVSwitch, with all links. */
#ifndef RG_NCCL_XML_IMPL_H
#define RG_NCCL_XML_IMPL_H

#include "topo/sources/nccl/nccl_log.h"

enum machine_kind { MACHINE_CPU, MACHINE_PCI, MACHINE_NVS, MACHINE_NIC, MACHINE_NET, MACHINE_GPU };

struct machine_link {
    int to;
    unsigned char type; /* enum nccl_path_type: LOC, NVL, C2C, PIX (any PCIe), SYS, NET */
    double Bps;         /* parallel links of the same type are merged and the rates added */
};
struct machine_node {
    enum machine_kind kind;
    int index; /* index in nccl_paths (GPU, NET); number of a CPU */
    uint64_t host;
    char busid[24]; /* PCI, NIC, GPU */
    struct machine_link *link;
    int links; /* owned */
};
struct machine {
    struct machine_node *node;
    int nodes, cpus, nvswitch; /* nvswitch: index of the node; -1: none */
    bool amd;                  /* the first CPU is from AMD */
};

enum { MACHINE_NODES_MAX = 4096 };

/* Fill pair and nic of p; its gpu and net must be set. */
void nccl_paths_find(struct nccl_paths *p, const struct machine *m);

#endif
