/* SPDX-License-Identifier: BSD-3-Clause */
/* sysfs.c - facts below /sys and /proc of this machine or of a recorded one: ports with verbs
 * (Documentation/ABI/stable/sysfs-class-infiniband), network interfaces
 * (Documentation/ABI/testing/sysfs-class-net), and access of NICs to GPU memory. */
#include <arpa/inet.h>
#include <dirent.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"

/* Read the first line of a file below root, without its newline and with '?' for control
 * characters; false: no such file. */
__attribute__((format(printf, 4, 5))) static bool sysfs_line(char *line, int size, const char *root,
                                                             const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *path = mem_vprintf(fmt, args), *full = mem_printf("%s%s", root, path);
    va_end(args);
    FILE *f = fopen(full, "re");
    free(full);
    free(path);
    line[0] = '\0';
    if (!f)
        return false;
    if (!fgets(line, size, f))
        line[0] = '\0'; /* a port that is down gives EINVAL */
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    return line[0] != '\0';
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* List a folder, sorted (mlx5_2 before mlx5_10); false: no such folder.  Free with
 * hostlist_free(). */
static bool sysfs_list(char ***names, int *count, const char *root, const char *path)
{
    char *full = mem_printf("%s%s", root, path);
    DIR *dir = opendir(full);

    free(full);
    *names = NULL;
    *count = 0;
    if (!dir)
        return false;
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            MEM_PUSH(*names, *count) = mem_strdup(e->d_name);
    closedir(dir);
    if (*count)
        qsort(*names, (size_t)*count, sizeof(**names), by_name);
    return true;
}

/* --- any device --- */

/* Set the driver, "mlx5_core 24.10-1.1.4".  Drivers of the kernel's tree have no version. */
static void sysfs_driver(struct nic *n, const char *root, const char *class_path)
{
    char line[128], name[32] = "", version[16];
    char *path = mem_printf("%s%s/device/uevent", root, class_path);
    FILE *f = fopen(path, "re");

    free(path);
    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "DRIVER=%31[-0-9A-Za-z_]", name);
    if (f)
        fclose(f);
    if (*name && sysfs_line(version, sizeof(version), root, "/sys/module/%s/version", name))
        snprintf(n->driver, sizeof(n->driver), "%s %s", name, version);
    else
        snprintf(n->driver, sizeof(n->driver), "%s", name);
}

/* Set PCI address and NUMA node of a device; for virtio devices they are one folder up. */
static void sysfs_place(struct nic *n, const char *root, const char *class_path)
{
    static const char *const up[] = {"/device", "/device/.."};
    char line[128];

    n->numa = -1;
    for (size_t i = 0; i < sizeof(up) / sizeof(*up) && !n->busid[0]; i++) {
        char *path = mem_printf("%s%s%s/uevent", root, class_path, up[i]);
        FILE *f = fopen(path, "re");
        free(path);
        while (f && fgets(line, sizeof(line), f))
            sscanf(line, "PCI_SLOT_NAME=%15[0-9a-fA-F:.]", n->busid);
        if (f)
            fclose(f);
        char *end;
        if (sysfs_line(line, sizeof(line), root, "%s%s/numa_node", class_path, up[i])) {
            long numa = strtol(line, &end, 10);
            if (!*end && numa >= 0 && numa < 65535)
                n->numa = (int)numa;
        }
    }
}

static void sysfs_push(struct topo *t, const struct nic *n)
{
    char what[64];

    if (n->rate_Bps <= 0) {
        snprintf(what, sizeof(what), "rate of %s", n->name);
        topo_unseen(t, what, n->up ? "its driver does not tell a speed" : "the port is down");
    }
    MEM_PUSH(t->nic, t->nics) = *n;
}

/* --- ports with verbs: /sys/class/infiniband; each GID has a type and a network interface --- */

enum { GIDS_MAX = 256, LINE = 128 };

struct gid {
    bool ipv4, valid;
    int version; /* RoCE version; 0: not RoCE */
    unsigned char raw[16];
};

static bool read_gid(struct gid *g, const char *root, const char *base, int index)
{
    static const unsigned char v4[12] = {[10] = 0xff, [11] = 0xff}, none[16];
    char line[LINE];

    memset(g, 0, sizeof(*g));
    if (!sysfs_line(line, LINE, root, "%s/gids/%d", base, index) ||
        inet_pton(AF_INET6, line, g->raw) != 1)
        return false;
    g->ipv4 = !memcmp(g->raw, v4, sizeof(v4));
    /* A link-local address without an interface identifier is useless. */
    g->valid = memcmp(g->raw, none, 16) != 0 &&
               !(g->raw[0] == 0xfe && g->raw[1] == 0x80 && !memcmp(g->raw + 8, none, 8));
    if (sysfs_line(line, LINE, root, "%s/gid_attrs/types/%d", base, index))
        g->version = !strcmp(line, "RoCE v2") ? 2 : !strncmp(line, "IB/RoCE v1", 10) ? 1 : 0;
    return true;
}

/* Choose the address that NCCL uses on Ethernet unless NCCL_IB_GID_INDEX, _ADDR_FAMILY,
 * _ADDR_RANGE or _ROCE_VERSION_NUM is set: the first IPv4 address of RoCE v2, else the first IPv4
 * address, else number 0 (NVIDIA/nccl at 0456df20, src/transport/net_ib/connect.cc,
 * ncclUpdateGidIndex). */
static int choose_gid(const char *root, const char *base)
{
    struct gid best, next;
    int at = 0;

    if (!read_gid(&best, root, base, 0))
        return -1;
    for (int i = 1; i < GIDS_MAX && read_gid(&next, root, base, i); i++)
        if (next.ipv4 && (!best.ipv4 || (next.version == 2 && best.version != 2))) {
            at = i;
            best = next;
        }
    return best.valid ? at : -1;
}

/* Choose the address on InfiniBand: number 1 if it has an identifier for routing between subnets
 * (FLID, bytes 4 and 5), unless NCCL_IB_ROUTABLE_FLID_GID_INDEX is set; else 0 (same file,
 * ncclIbGetGidIndex). */
static int infiniband_gid(const char *root, const char *base)
{
    struct gid g;

    return read_gid(&g, root, base, 1) && (g.raw[4] || g.raw[5]) ? 1 : 0;
}

static void read_gids(struct nic *n, const char *root, const char *base)
{
    char line[LINE];
    struct gid g;

    n->gid_index = n->layer == LINK_ETHERNET ? choose_gid(root, base) : infiniband_gid(root, base);
    if (n->gid_index < 0 || !read_gid(&g, root, base, n->gid_index) || !g.valid) {
        n->gid_index = -1;
        return;
    }
    inet_ntop(AF_INET6, g.raw, n->gid, sizeof(n->gid));
    /* The kernel calls type 0 "IB/RoCE v1" on both link layers. */
    if (n->layer == LINK_INFINIBAND)
        snprintf(n->gid_type, sizeof(n->gid_type), "IB");
    else if (sysfs_line(line, LINE, root, "%s/gid_attrs/types/%d", base, n->gid_index))
        snprintf(n->gid_type, sizeof(n->gid_type), "%.11s",
                 strncmp(line, "IB/RoCE v1", 10) != 0 ? line : "RoCE v1");
    /* InfiniBand addresses consist of the subnet's prefix and the port's GUID. */
    if (n->layer == LINK_INFINIBAND) {
        int at = snprintf(n->guid, sizeof(n->guid), "0x");
        for (int i = 8; i < 16; i++)
            at += snprintf(n->guid + at, sizeof(n->guid) - (size_t)at, "%02x", g.raw[i]);
    }
}

/* Set the card's GUID, "b83f:d203:0091:a2c4", if the port has none of its own. */
static void read_node_guid(struct nic *n, const char *root, const char *class_path)
{
    char line[LINE];
    unsigned part[4];

    if (!n->guid[0] && sysfs_line(line, LINE, root, "%s/node_guid", class_path) &&
        sscanf(line, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) == 4 &&
        (part[0] | part[1] | part[2] | part[3]))
        snprintf(n->guid, sizeof(n->guid), "0x%04x%04x%04x%04x", part[0] & 0xffff, part[1] & 0xffff,
                 part[2] & 0xffff, part[3] & 0xffff);
}

/* Set the interface of a port: among the PCI device's interfaces the one with the port's number
 * (dev_port counts from 0), else the owner of an address. */
static void rdma_netdev(struct nic *n, const char *root, const char *class_path, const char *base,
                        const char *port)
{
    char *folder = mem_printf("%s/device/net", class_path), line[LINE], **names;
    long wanted = strtol(port, NULL, 10) - 1;
    int count;

    sysfs_list(&names, &count, root, folder);
    for (int i = 0; i < count && !n->netdev[0]; i++) {
        if (count == 1 || !sysfs_line(line, LINE, root, "%s/%s/dev_port", folder, names[i]) ||
            strtol(line, NULL, 10) == wanted)
            snprintf(n->netdev, sizeof(n->netdev), "%.15s", names[i]);
    }
    if (!n->netdev[0] && n->layer == LINK_ETHERNET &&
        sysfs_line(line, LINE, root, "%s/gid_attrs/ndevs/%d", base,
                   n->gid_index < 0 ? 0 : n->gid_index))
        snprintf(n->netdev, sizeof(n->netdev), "%.15s", line);
    hostlist_free(names, count);
    free(folder);
}

/* Parse "400 Gb/sec (4X NDR)", "4: ACTIVE", "InfiniBand". */
static void rdma_state(struct nic *n, const char *root, const char *base)
{
    char line[LINE], *end;

    if (sysfs_line(line, LINE, root, "%s/rate", base)) {
        double gbit = strtod(line, &end);
        n->rate_Bps = !strncmp(end, " Gb/sec", 7) && gbit > 0 && gbit < 1e6
                          ? units_in(FOREIGN_SYSFS_IB, gbit)
                          : 0;
    }
    n->up = sysfs_line(line, LINE, root, "%s/state", base) && !strncmp(line, "4:", 2);
    if (sysfs_line(line, LINE, root, "%s/link_layer", base))
        n->layer = !strcmp(line, "InfiniBand") ? LINK_INFINIBAND
                   : !strcmp(line, "Ethernet") ? LINK_ETHERNET
                                               : LINK_UNKNOWN;
}

static void rdma_port(struct topo *t, int host, const char *root, const char *device,
                      const char *port)
{
    struct nic n;
    char *class_path = mem_printf("/sys/class/infiniband/%s", device);
    char *base = mem_printf("%s/ports/%s", class_path, port), line[LINE];

    nic_init(&n, host);
    n.rdma = true;
    n.source = SOURCE_SYSFS;
    if (!strcmp(port, "1"))
        snprintf(n.name, sizeof(n.name), "%s", device);
    else
        snprintf(n.name, sizeof(n.name), "%.26s:%.4s", device, port);
    rdma_state(&n, root, base);
    read_gids(&n, root, base);
    read_node_guid(&n, root, class_path);
    rdma_netdev(&n, root, class_path, base, port);
    if (sysfs_line(line, LINE, root, "%s/board_id", class_path))
        snprintf(n.board, sizeof(n.board), "%.19s", line);
    if (sysfs_line(line, LINE, root, "%s/fw_ver", class_path))
        snprintf(n.firmware, sizeof(n.firmware), "%.31s", line);
    sysfs_driver(&n, root, class_path);
    sysfs_place(&n, root, class_path);
    sysfs_push(t, &n);
    free(base);
    free(class_path);
}

/* Folders in which the clouds install their network plugins of NCCL, the name that each gives
 * itself (ncclNet_t.name), and the variable without which NCCL does not find its file.
 *   EFA: AWS's installer; of its files libnccl-net.so is found by itself, libnccl-net-ofi.so, of
 *   images for NGC, by NCCL_NET_PLUGIN=ofi (NCCL, src/plugin/plugin_open.cc).
 *   gIB: Google, "NCCL/gIB" (A3 Ultra, A4, A4X); FasTrak: "GPUDirect-TCPXO" (A3 Mega). */
static const struct plugin {
    const char *file, *name, *more;
} plugins[] = {
    {"/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so", "Libfabric", ""},
    {"/opt/amazon/ofi-nccl/lib/aarch64-linux-gnu/libnccl-net.so", "Libfabric", ""},
    {"/opt/amazon/ofi-nccl/lib/libnccl-net.so", "Libfabric", ""},
    {"/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so", "Libfabric", " NCCL_NET_PLUGIN=ofi"},
    {"/usr/local/gib/lib64/libnccl-net.so", "gIB", ""},
    {"/var/lib/tcpxo/lib64/libnccl-net.so", "FasTrak", ""},
};

/* A plugin on disk is no proof that NCCL loads it, and without it NCCL takes sockets, silently. */
static void find_plugin(struct topo *t, const char *root, bool efa)
{
    const struct plugin *end = plugins + sizeof(plugins) / sizeof(*plugins), *p = plugins;

    while (p < end && !host_has_file(root, p->file, ""))
        p++;
    if (p < end)
        topo_unseen(t, "network of NCCL",
                    "plugin %s is installed; LD_LIBRARY_PATH=%.*s%s lets NCCL load it, and --path "
                    "plugin:%s proves that it does",
                    p->name, (int)(strrchr(p->file, '/') - p->file), p->file, p->more, p->name);
    else if (efa)
        topo_unseen(t, "network of NCCL",
                    "EFA needs the plugin aws-ofi-nccl, which is not in /opt/amazon/ofi-nccl; "
                    "without it NCCL takes sockets");
}

static void read_rdma(struct topo *t, int host, const char *root)
{
    const int before = t->nics;
    char **devices, **ports;
    int count, n;

    if (!sysfs_list(&devices, &count, root, "/sys/class/infiniband") || !count)
        topo_unseen(t, "InfiniBand and RoCE",
                    "no RDMA device on this host (/sys/class/infiniband "
                    "is %s)",
                    count                                              ? "unreadable"
                    : host_has_file(root, "/sys/class/infiniband", "") ? "empty"
                                                                       : "not there");
    for (int i = 0; i < count; i++) {
        char *path = mem_printf("/sys/class/infiniband/%s/ports", devices[i]);
        sysfs_list(&ports, &n, root, path);
        for (int k = 0; k < n; k++)
            rdma_port(t, host, root, devices[i], ports[k]);
        hostlist_free(ports, n);
        free(path);
    }
    hostlist_free(devices, count);
    bool efa = false;
    for (int i = before; i < t->nics; i++)
        efa = efa || nic_is_efa(&t->nic[i]);
    find_plugin(t, root, efa);
}

/* --- network interfaces: /sys/class/net --- */

/* True if a network interface stands for a port: physical, or a bond of such.  `virtuals`: other
 * interfaces that carry traffic (veth in a container), which count only if there is no port. */
static bool is_port(const char *root, const char *path, bool virtuals)
{
    char line[32];

    if (!sysfs_line(line, sizeof(line), root, "%s/type", path) ||
        strtol(line, NULL, 10) != ARPHRD_ETHER || host_has_file(root, path, "/device/infiniband"))
        return false; /* loopback, tunnels, IPoIB; RoCE ports are listed by RDMA name */
    if (host_has_file(root, path, "/device") || host_has_file(root, path, "/bonding"))
        return !virtuals && !host_has_file(root, path, "/bonding_slave");
    return virtuals && !host_has_file(root, path, "/bridge") &&
           !host_has_file(root, path, "/brport");
}

/* Set the interface that switches see: for a bond its first port. */
static void net_netdev(struct nic *n, const char *root, const char *base)
{
    char line[256];
    bool bond = sysfs_line(line, sizeof(line), root, "%s/bonding/slaves", base);

    line[strcspn(line, " ")] = '\0';
    snprintf(n->netdev, sizeof(n->netdev), "%.15s", bond ? line : n->name);
}

static void net_port(struct topo *t, int host, const char *root, const char *name, bool virtuals)
{
    struct nic n;
    char *base = mem_printf("/sys/class/net/%s", name), line[64];

    nic_init(&n, host);
    n.layer = LINK_ETHERNET;
    n.source = SOURCE_SYSFS;
    snprintf(n.name, sizeof(n.name), "%s", name);
    net_netdev(&n, root, base);
    n.up = sysfs_line(line, sizeof(line), root, "%s/operstate", base) &&
           (!strcmp(line, "up") || !strcmp(line, "unknown"));
    /* Mb/s, -1: unknown.  Virtual ports report 10000, a constant of the kernel and no fact. */
    if (!virtuals && sysfs_line(line, sizeof(line), root, "%s/speed", base)) {
        double mbit = strtod(line, NULL);
        n.rate_Bps = mbit > 0 && mbit < 1e9 ? units_in(FOREIGN_SYSFS_NET, mbit) : 0;
    }
    sysfs_place(&n, root, base);
    if (!virtuals || (n.up && strncmp(name, "ifb", 3) != 0 && strncmp(name, "dummy", 5) != 0))
        sysfs_push(t, &n);
    free(base);
}

int topo_read_sysfs_net(struct topo *t, int host, const char *root, struct err *err)
{
    int count, before;
    char **names;

    if (host < 0 || host >= t->hosts)
        return err_set(err, "no host %d", host);
    before = t->nics;
    read_rdma(t, host, root);
    if (!sysfs_list(&names, &count, root, "/sys/class/net")) {
        topo_unseen(t, "network interfaces", "no folder %s/sys/class/net", root);
        return 0;
    }
    for (int virtuals = 0; virtuals < 2; virtuals++) {
        for (int i = 0; i < count; i++) {
            char *path = mem_printf("/sys/class/net/%s", names[i]);
            if (is_port(root, path, virtuals))
                net_port(t, host, root, names[i], virtuals);
            free(path);
        }
        if (t->nics > before)
            break;
    }
    if (t->nics == before)
        topo_unseen(t, "network interfaces",
                    "%s/sys/class/net has the loopback or virtual ones only", root);
    hostlist_free(names, count);
    return 0;
}

/* --- GPUDirect RDMA --- */

/* Access of NICs to GPU memory (GPUDirect RDMA), as far as files show it.
 *
 * NCCL assumes access if any of three files exists: those of nv_peer_mem (old and new) and of
 * nvidia_peermem; else it checks for dma-buf (src/transport/net_ib/gdr.cc).  dma-buf needs Linux
 * 5.12 and NVIDIA's open kernel module (NVIDIA, "GPUDirect RDMA", and the GPU operator's page of
 * that name).  Neither a loaded module nor a capable one is proof: only registering GPU memory
 * with a NIC is.  So the text names the loaded module, or says "dma-buf possible". */
static const struct {
    const char *path, *name;
} module[] = {
    {"/sys/module/nvidia_peermem/version", "nvidia_peermem"},
    {"/sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
    {"/sys/kernel/mm/memory_peers/nv_mem_nc/version", "nv_peer_mem (nc)"},
};

/* 1: yes, 0: no, -1: kernel version unknown.  line: driver version line. */
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
        if (sysfs_line(version, sizeof(version), root, "%s", module[i].path))
            snprintf(h->gdr, sizeof(h->gdr), "%s %.24s", module[i].name, version);
    if (h->gdr[0]) {
        topo_unseen(t, "GPUDirect RDMA",
                    "%.40s is loaded; that a NIC registers memory of a GPU only a transfer proves",
                    h->gdr);
        return 0;
    }
    if (!driver)
        return 0; /* no NVIDIA GPU in use */
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
