/* SPDX-License-Identifier: BSD-3-Clause */
/* How NICs reach the memory of GPUs (GPUDirect RDMA), as far as files tell it.
 *
 * NCCL takes it as given where one of three files is there: those of nv_peer_mem (old and new) and
 * of nvidia_peermem; else it asks for dma-buf (src/transport/net_ib/gdr.cc).  dma-buf needs Linux
 * 5.12 and NVIDIA's open kernel module (NVIDIA, "GPUDirect RDMA", and the GPU operator's page of
 * that name), but a module that is loaded, or one that could, is no proof: only registering memory
 * of a GPU with a NIC is.  So the text says which module is there, or "dma-buf possible". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/host/sysfs.h"

static const struct {
    const char *path, *name;
} module[] = {
    {"/sys/module/nvidia_peermem/version", "nvidia_peermem"},
    {"/sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
    {"/sys/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem (nc)"},
};

/* 1 yes, 0 no, -1 the kernel's version is not told; *driver is the text after the module's name. */
static int dma_buf(const char *root, const char *line)
{
    char release[64];
    int major, minor;

    if (!strstr(line, "Open Kernel Module"))
        return 0;
    if (!sysfs_line(release, sizeof(release), root, "/proc/sys/kernel/osrelease") ||
        sscanf(release, "%d.%d", &major, &minor) != 2)
        return -1;
    return major > 5 || (major == 5 && minor >= 12);
}

int topo_read_gdr(struct topo *t, int host, const char *root, struct err *err)
{
    char line[256], version[64];

    if (host < 0 || host >= t->hosts)
        return err_set(err, "no host %d", host);
    struct host *h = &t->host[host];
    /* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build ..." */
    bool driver = sysfs_line(line, sizeof(line), root, "/proc/driver/nvidia/version");
    for (size_t i = 0; i < sizeof(module) / sizeof(*module) && !h->gdr[0]; i++)
        if (sysfs_line(version, sizeof(version), root, module[i].path))
            snprintf(h->gdr, sizeof(h->gdr), "%s %.24s", module[i].name, version);
    if (h->gdr[0]) {
        topo_unseen(t, "GPUDirect RDMA",
                    "%.40s is loaded; that a NIC registers memory of a GPU only a transfer proves",
                    h->gdr);
        return 0;
    }
    if (!driver)
        return 0; /* no NVIDIA GPU in use: nothing to say */
    int possible = dma_buf(root, line);
    if (possible < 0) {
        topo_unseen(t, "GPUDirect RDMA",
                    "no peer memory module is loaded; whether dma-buf is possible depends on the "
                    "kernel's version, which is not told");
        return 0;
    }
    snprintf(h->gdr, sizeof(h->gdr), "%s", possible ? "dma-buf possible" : "none");
    if (possible)
        topo_unseen(t, "GPUDirect RDMA",
                    "no peer memory module is loaded; kernel and driver allow dma-buf, which only "
                    "a transfer proves");
    return 0;
}
