/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc.c - processors, memory, PCI GPUs, and the nearest NIC of each device, from hwloc.  Below a
 * root folder hwloc reads a recording of /proc and /sys (its HWLOC_FSROOT); foreign XML is never
 * imported. */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "topo/nic.h"
#include "topo/topo.h"

enum { VENDOR_NVIDIA = 0x10de, VENDOR_AMD = 0x1002 };

/* True for NVIDIA's 3D and VGA controllers and AMD's 3D and display controllers.  A server's VGA
 * chip is from another vendor. */
static bool is_gpu(const struct hwloc_pcidev_attr_s *pci)
{
    return (pci->vendor_id == VENDOR_NVIDIA &&
            (pci->class_id == 0x0302 || pci->class_id == 0x0300)) ||
           (pci->vendor_id == VENDOR_AMD && (pci->class_id == 0x0302 || pci->class_id == 0x0380));
}

static int numa_of(hwloc_obj_t obj)
{
    while (obj && !obj->nodeset)
        obj = obj->parent;
    return obj && hwloc_bitmap_weight(obj->nodeset) == 1 ? hwloc_bitmap_first(obj->nodeset) : -1;
}

static hwloc_obj_t pci_by_busid(hwloc_topology_t h, const char *busid)
{
    unsigned domain, bus, dev, func;

    if (sscanf(busid, "%x:%x:%x.%x", &domain, &bus, &dev, &func) != 4)
        return NULL;
    return hwloc_get_pcidev_by_busid(h, domain, bus, dev, func);
}

/* Number of common ancestors of a and b: more is nearer. */
static int common(hwloc_obj_t a, hwloc_obj_t b)
{
    int n = 0;

    for (; a; a = a->parent)
        for (hwloc_obj_t up = b; up; up = up->parent)
            n += a == up;
    return n;
}

/* NIC for an endpoint: RDMA before plain, up before down, then the nearest, then the one used by
 * the fewest other endpoints of the host. */
static int nearest_nic(const struct topo *t, int host, hwloc_topology_t h, hwloc_obj_t at)
{
    int best = -1, best_key = -1;

    for (int i = 0; i < t->nics; i++) {
        hwloc_obj_t nic = t->nic[i].host == host ? pci_by_busid(h, t->nic[i].busid) : NULL;
        int near = nic && at ? common(nic, at) : 0, used = 0;
        if (t->nic[i].host != host)
            continue;
        for (int e = 0; e < t->endpoints; e++)
            used += t->endpoint[e].nic == i;
        int key = ((t->nic[i].rdma * 2 + t->nic[i].up) * 1000 + near) * 1000 + 999 - used;
        if (key > best_key) {
            best = i;
            best_key = key;
        }
    }
    return best;
}

static void add_gpus(struct topo *t, int host, hwloc_topology_t h)
{
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(h, o));) {
        const struct hwloc_pcidev_attr_s *pci = &o->attr->pcidev;
        if (!is_gpu(pci))
            continue;
        int id = topo_add_endpoint(t, host, ENDPOINT_GPU), nic = nearest_nic(t, host, h, o);
        struct endpoint *e = &t->endpoint[id];
        const char *name = hwloc_obj_get_info_by_name(o, "PCIDevice");
        if (name)
            snprintf(e->model, sizeof(e->model), "%s", name);
        else
            snprintf(e->model, sizeof(e->model), "%s device %04x",
                     pci->vendor_id == VENDOR_NVIDIA ? "NVIDIA" : "AMD", pci->device_id);
        snprintf(e->busid, sizeof(e->busid), "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev,
                 pci->func);
        e->numa = numa_of(o);
        e->nic = nic;
    }
}

static void add_sockets(struct topo *t, int host, hwloc_topology_t h)
{
    int n = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PACKAGE);

    for (int i = 0; i < (n > 0 ? n : 1); i++) {
        hwloc_obj_t o = n > 0 ? hwloc_get_obj_by_type(h, HWLOC_OBJ_PACKAGE, (unsigned)i)
                              : hwloc_get_root_obj(h);
        int id = topo_add_endpoint(t, host, ENDPOINT_CPU), nic = nearest_nic(t, host, h, o);
        struct endpoint *e = &t->endpoint[id];
        e->numa = numa_of(o);
        e->nic = nic;
        if (t->host[host].cpu)
            snprintf(e->model, sizeof(e->model), "%s", t->host[host].cpu);
    }
}

static void read_host(struct host *to, hwloc_topology_t h)
{
    int sockets = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PACKAGE);
    int cores = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_CORE);
    hwloc_obj_t package = sockets > 0 ? hwloc_get_obj_by_type(h, HWLOC_OBJ_PACKAGE, 0) : NULL;
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    to->sockets = sockets > 0 ? sockets : 0;
    to->cores = cores > 0 ? cores : hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PU);
    to->memory_bytes = (double)hwloc_get_root_obj(h)->total_memory;
    if (model) {
        free(to->cpu);
        to->cpu = mem_strdup(model);
    }
}

/* Load the topology without the components of hwloc that open displays or drivers; below a root
 * also without those that examine the live machine. */
static int load(hwloc_topology_t h, const char *root)
{
    static const char *const never[] = {"gl", "opencl", "cuda", "nvml", "rsmi", "levelzero"};
    static const char *const live[] = {"pci", "x86"};

    for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
        hwloc_topology_set_components(h, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, never[i]);
    for (size_t i = 0; *root && i < sizeof(live) / sizeof(*live); i++)
        hwloc_topology_set_components(h, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, live[i]);
    hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (*root)
        setenv("HWLOC_FSROOT", root, 1);
    int rc = hwloc_topology_load(h);
    if (*root)
        unsetenv("HWLOC_FSROOT");
    return rc;
}

int topo_read_hwloc(struct topo *t, int host, const char *root, struct err *err)
{
    hwloc_topology_t h;

    if (host < 0 || host >= t->hosts)
        return err_set(err, "no host %d", host);
    if (*root && access(root, R_OK) != 0)
        return err_noinput(err, "%s: no such folder with a recorded machine", root);
    if (hwloc_topology_init(&h) != 0)
        return err_set(err, "hwloc: cannot start");
    if (load(h, root) != 0) {
        hwloc_topology_destroy(h);
        return err_set(err, "hwloc: cannot read the topology below \"%s\"", *root ? root : "/");
    }
    read_host(&t->host[host], h);
    int before = t->endpoints;
    add_gpus(t, host, h);
    if (t->endpoints == before) {
        topo_unseen(t, "GPUs", "no GPU on the PCI buses of this host");
        add_sockets(t, host, h);
    }
    hwloc_topology_destroy(h);
    return 0;
}
