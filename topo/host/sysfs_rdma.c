/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports with verbs: /sys/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband), whose
 * addresses (GIDs) come with a type and a network interface each. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/host/nic.h"
#include "topo/host/sysfs.h"

enum { GIDS_MAX = 256, LINE = 128 };

/* A file of a port: base/key/index. */
static bool port_line(char *line, const char *root, const char *base, const char *key, int index)
{
    char *path =
        index < 0 ? mem_printf("%s/%s", base, key) : mem_printf("%s/%s/%d", base, key, index);
    bool there = sysfs_line(line, LINE, root, path);

    free(path);
    return there;
}

struct gid {
    bool ipv4, valid;
    int version; /* of RoCE; 0: none */
    unsigned char raw[16];
};

static bool read_gid(struct gid *g, const char *root, const char *base, int index)
{
    static const unsigned char v4[12] = {[10] = 0xff, [11] = 0xff}, none[16];
    char line[LINE];

    memset(g, 0, sizeof(*g));
    if (!port_line(line, root, base, "gids", index) || inet_pton(AF_INET6, line, g->raw) != 1)
        return false;
    g->ipv4 = !memcmp(g->raw, v4, sizeof(v4));
    /* A link-local address without an interface identifier is as good as none. */
    g->valid = memcmp(g->raw, none, 16) != 0 &&
               !(g->raw[0] == 0xfe && g->raw[1] == 0x80 && !memcmp(g->raw + 8, none, 8));
    if (port_line(line, root, base, "gid_attrs/types", index))
        g->version = !strcmp(line, "RoCE v2") ? 2 : !strncmp(line, "IB/RoCE v1", 10) ? 1 : 0;
    return true;
}

/* Which address NCCL takes on Ethernet unless NCCL_IB_GID_INDEX, _ADDR_FAMILY, _ADDR_RANGE or
 * _ROCE_VERSION_NUM say it: the first IPv4 one of RoCE v2, else the first IPv4 one, else number 0
 * (NVIDIA/nccl at 0456df20, src/transport/net_ib/connect.cc, ncclUpdateGidIndex). */
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

/* On InfiniBand number 1 where it has an identifier for routing between subnets (FLID, bytes 4 and
 * 5), unless NCCL_IB_ROUTABLE_FLID_GID_INDEX says another; else 0 (there, ncclIbGetGidIndex). */
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
    /* The kernel's word for type 0 is "IB/RoCE v1" on both. */
    if (n->layer == LINK_INFINIBAND)
        snprintf(n->gid_type, sizeof(n->gid_type), "IB");
    else if (port_line(line, root, base, "gid_attrs/types", n->gid_index))
        snprintf(n->gid_type, sizeof(n->gid_type), "%.11s",
                 strncmp(line, "IB/RoCE v1", 10) != 0 ? line : "RoCE v1");
    /* On InfiniBand an address is the subnet's prefix and the port's GUID. */
    if (n->layer == LINK_INFINIBAND) {
        int at = snprintf(n->guid, sizeof(n->guid), "0x");
        for (int i = 8; i < 16; i++)
            at += snprintf(n->guid + at, sizeof(n->guid) - (size_t)at, "%02x", g.raw[i]);
    }
}

/* "b83f:d203:0091:a2c4" of the card, where the port has no GUID of its own. */
static void read_node_guid(struct nic *n, const char *root, const char *class_path)
{
    char line[LINE];
    unsigned part[4];

    if (!n->guid[0] && port_line(line, root, class_path, "node_guid", -1) &&
        sscanf(line, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) == 4 &&
        (part[0] | part[1] | part[2] | part[3]))
        snprintf(n->guid, sizeof(n->guid), "0x%04x%04x%04x%04x", part[0] & 0xffff, part[1] & 0xffff,
                 part[2] & 0xffff, part[3] & 0xffff);
}

/* The interface of the port: of those of the PCI device the one with its number (dev_port counts
 * from 0), else the one that an address belongs to. */
static void read_netdev(struct nic *n, const char *root, const char *class_path, const char *base,
                        const char *port)
{
    char *folder = mem_printf("%s/device/net", class_path), line[LINE], **names;
    long wanted = strtol(port, NULL, 10) - 1;
    int count;

    sysfs_list(&names, &count, root, folder);
    for (int i = 0; i < count && !n->netdev[0]; i++) {
        char *path = mem_printf("%s/%s/dev_port", folder, names[i]);
        if (count == 1 || !sysfs_line(line, sizeof(line), root, path) ||
            strtol(line, NULL, 10) == wanted)
            snprintf(n->netdev, sizeof(n->netdev), "%.15s", names[i]);
        free(path);
    }
    if (!n->netdev[0] && n->layer == LINK_ETHERNET &&
        port_line(line, root, base, "gid_attrs/ndevs", n->gid_index < 0 ? 0 : n->gid_index))
        snprintf(n->netdev, sizeof(n->netdev), "%.15s", line);
    hostlist_free(names, count);
    free(folder);
}

/* "400 Gb/sec (4X NDR)", "4: ACTIVE", "InfiniBand". */
static void read_state(struct nic *n, const char *root, const char *base)
{
    char line[LINE], *end;

    if (port_line(line, root, base, "rate", -1)) {
        double gbit = strtod(line, &end);
        n->rate_Bps = !strncmp(end, " Gb/sec", 7) && gbit > 0 && gbit < 1e6
                          ? convert_in(CONVERT_SYSFS_IB, gbit)
                          : 0;
    }
    n->up = port_line(line, root, base, "state", -1) && !strncmp(line, "4:", 2);
    if (port_line(line, root, base, "link_layer", -1))
        n->layer = !strcmp(line, "InfiniBand") ? LINK_INFINIBAND
                   : !strcmp(line, "Ethernet") ? LINK_ETHERNET
                                               : LINK_UNKNOWN;
}

static void read_port(struct topo *t, int host, const char *root, const char *device,
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
    read_state(&n, root, base);
    read_gids(&n, root, base);
    read_node_guid(&n, root, class_path);
    read_netdev(&n, root, class_path, base, port);
    if (port_line(line, root, class_path, "board_id", -1))
        snprintf(n.board, sizeof(n.board), "%.19s", line);
    sysfs_place(&n, root, class_path);
    sysfs_push(t, &n);
    free(base);
    free(class_path);
}

void sysfs_rdma(struct topo *t, int host, const char *root)
{
    char **devices, **ports;
    int count, n;

    if (!sysfs_list(&devices, &count, root, "/sys/class/infiniband") || !count)
        topo_unseen(t, "InfiniBand and RoCE",
                    "no RDMA device on this host (/sys/class/infiniband "
                    "is %s)",
                    count                                             ? "unreadable"
                    : sysfs_exists(root, "/sys/class/infiniband", "") ? "empty"
                                                                      : "not there");
    for (int i = 0; i < count; i++) {
        char *path = mem_printf("/sys/class/infiniband/%s/ports", devices[i]);
        sysfs_list(&ports, &n, root, path);
        for (int k = 0; k < n; k++)
            read_port(t, host, root, devices[i], ports[k]);
        hostlist_free(ports, n);
        free(path);
    }
    hostlist_free(devices, count);
}
