/* SPDX-License-Identifier: BSD-3-Clause */
/* What Linux tells about network ports: /sys/class/infiniband
 * (Documentation/ABI/stable/sysfs-class-infiniband) and /sys/class/net
 * (Documentation/ABI/testing/sysfs-class-net). */
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/host/nic.h"
#include "topo/host/sysfs.h"

/* PCI address and NUMA node of a device; virtio devices have theirs one folder up. */
void sysfs_place(struct nic *n, const char *root, const char *class_path)
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
        path = mem_printf("%s%s/numa_node", class_path, up[i]);
        char *end;
        if (sysfs_line(line, sizeof(line), root, path)) {
            long numa = strtol(line, &end, 10);
            if (!*end && numa >= 0 && numa < 65535)
                n->numa = (int)numa;
        }
        free(path);
    }
}

void sysfs_push(struct topo *t, const struct nic *n)
{
    char what[64];

    if (n->rate_Bps <= 0) {
        snprintf(what, sizeof(what), "rate of %s", n->name);
        topo_unseen(t, what, n->up ? "its driver does not tell a speed" : "the port is down");
    }
    MEM_PUSH(t->nic, t->nics) = *n;
}

/* A network interface that stands for a port: physical, or a bond of such.  `virtual` asks for the
 * others that carry traffic (veth in a container), which count only where nothing else exists. */
static bool is_port(const char *root, const char *path, bool virtual)
{
    char line[32], *type = mem_printf("%s/type", path);
    bool ethernet =
        sysfs_line(line, sizeof(line), root, type) && strtol(line, NULL, 10) == ARPHRD_ETHER;

    free(type);
    if (!ethernet || sysfs_exists(root, path, "/device/infiniband"))
        return false; /* loopback, tunnels, IPoIB; RoCE ports are listed by their RDMA name */
    if (sysfs_exists(root, path, "/device") || sysfs_exists(root, path, "/bonding"))
        return !virtual && !sysfs_exists(root, path, "/bonding_slave");
    return virtual && !sysfs_exists(root, path, "/bridge") && !sysfs_exists(root, path, "/brport");
}

/* Of a bond the first of its ports: that is the one that switches speak to. */
static void read_netdev(struct nic *n, const char *root, const char *base)
{
    char *slaves = mem_printf("%s/bonding/slaves", base), line[256];

    if (sysfs_line(line, sizeof(line), root, slaves)) {
        line[strcspn(line, " ")] = '\0';
        snprintf(n->netdev, sizeof(n->netdev), "%.15s", line);
    } else {
        snprintf(n->netdev, sizeof(n->netdev), "%.15s", n->name);
    }
    free(slaves);
}

static void read_port(struct topo *t, int host, const char *root, const char *name, bool virtual)
{
    struct nic n;
    char *base = mem_printf("/sys/class/net/%s", name), line[64];
    char *speed = mem_printf("%s/speed", base), *state = mem_printf("%s/operstate", base);

    nic_init(&n, host);
    n.layer = LINK_ETHERNET;
    n.source = SOURCE_SYSFS;
    snprintf(n.name, sizeof(n.name), "%s", name);
    read_netdev(&n, root, base);
    n.up = sysfs_line(line, sizeof(line), root, state) &&
           (!strcmp(line, "up") || !strcmp(line, "unknown"));
    /* Mb/s, -1 when unknown; a virtual port's 10000 is a constant of the kernel and no fact. */
    if (!virtual && sysfs_line(line, sizeof(line), root, speed)) {
        double mbit = strtod(line, NULL);
        n.rate_Bps = mbit > 0 && mbit < 1e9 ? convert_in(CONVERT_SYSFS_NET, mbit) : 0;
    }
    sysfs_place(&n, root, base);
    if (!virtual || (n.up && strncmp(name, "ifb", 3) != 0 && strncmp(name, "dummy", 5) != 0))
        sysfs_push(t, &n);
    free(state);
    free(speed);
    free(base);
}

int topo_read_sysfs_net(struct topo *t, int host, const char *root, struct err *err)
{
    int count, before;
    char **names;

    if (host < 0 || host >= t->hosts)
        return err_set(err, "no host %d", host);
    before = t->nics;
    sysfs_rdma(t, host, root);
    if (!sysfs_list(&names, &count, root, "/sys/class/net")) {
        topo_unseen(t, "network interfaces", "no folder %s/sys/class/net", root);
        return 0;
    }
    for (int virtual = 0; virtual < 2; virtual ++) {
        for (int i = 0; i < count; i++) {
            char *path = mem_printf("/sys/class/net/%s", names[i]);
            if (is_port(root, path, virtual))
                read_port(t, host, root, names[i], virtual);
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
