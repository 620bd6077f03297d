/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "topo/topo.h"

static bool exists(const char *root, const char *path)
{
    char *full = mem_printf("%s%s", root, path);
    bool yes = access(full, F_OK) == 0;

    free(full);
    return yes;
}

/* What no source of this machine tells.  Measuring may still find it. */
static void say_unseen(struct topo *t, const char *root)
{
    bool gpu = t->endpoints > 0 && t->endpoint[0].kind == ENDPOINT_GPU, domain = false;

    for (int i = 0; i < t->unseens; i++)
        domain = domain || !strcmp(t->unseen[i].what, "NVLink domain");
    if (!domain && !t->group[LEVEL_DOMAIN].count)
        topo_unseen(t, "NVLink domain",
                    t->gpus ? "NVML tells of none that is up and registered"
                    : exists(root, "/proc/driver/nvidia/version")
                        ? "the NVIDIA driver is there, but shows no GPU"
                    : gpu ? "GPUs on PCI, but no NVIDIA driver on this host"
                          : "no NVIDIA driver on this host");
    topo_unseen(t, "leaf switch", "neither the InfiniBand subnet nor LLDP is asked");
    if (!t->group[LEVEL_RACK].count)
        topo_unseen(t, "rack", "nothing on a host names it; measured pairs may show it");
}

int topo_read_local(struct topo *t, const char *hostname, const char *root, struct err *err)
{
    int host = topo_add_host(t, hostname);

    if (topo_read_sysfs_net(t, host, root, err) < 0 || topo_read_hwloc(t, host, root, err) < 0 ||
        topo_read_nvml(t, host, root, err) < 0 || topo_read_gdr(t, host, root, err) < 0)
        return -1;
    say_unseen(t, root);
    topo_default_tiers(t);
    return 0;
}
