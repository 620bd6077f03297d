/* SPDX-License-Identifier: BSD-3-Clause */
/* What Linux tells about network ports: /sys/class/infiniband
 * (Documentation/ABI/stable/sysfs-class-infiniband) and /sys/class/net
 * (Documentation/ABI/testing/sysfs-class-net). */
#include <dirent.h>
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/topo.h"

/* The first line of root/path, without its newline; false when there is none. */
static bool read_line(char *line, int size, const char *root, const char *path)
{
    char *full = mem_printf("%s%s", root, path);
    FILE *f = fopen(full, "re");

    free(full);
    line[0] = '\0';
    if (!f)
        return false;
    if (!fgets(line, size, f))
        line[0] = '\0'; /* a port that is down answers EINVAL */
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    return line[0] != '\0';
}

static bool exists(const char *root, const char *path, const char *more)
{
    char *full = mem_printf("%s%s%s", root, path, more);
    bool yes = access(full, F_OK) == 0;

    free(full);
    return yes;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Entries of a folder, sorted (mlx5_2 before mlx5_10); false when there is no such folder. */
static bool list(char ***names, int *count, const char *root, const char *path)
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

/* PCI address and NUMA node of a device; virtio devices have theirs one folder up. */
static void read_place(struct nic *n, const char *root, const char *class_path)
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
        if (read_line(line, sizeof(line), root, path)) {
            long numa = strtol(line, &end, 10);
            if (!*end && numa >= 0 && numa < 65535)
                n->numa = (int)numa;
        }
        free(path);
    }
}

static void push_nic(struct topo *t, const struct nic *n)
{
    char what[64];

    if (n->rate_Bps <= 0) {
        snprintf(what, sizeof(what), "rate of %s", n->name);
        topo_unseen(t, what, n->up ? "its driver does not tell a speed" : "the port is down");
    }
    MEM_PUSH(t->nic, t->nics) = *n;
}

/* "400 Gb/sec (4X NDR)", "4: ACTIVE", "InfiniBand". */
static void read_ib_port(struct topo *t, int host, const char *root, const char *device,
                         const char *port)
{
    struct nic n = {.host = host, .rdma = true, .source = SOURCE_SYSFS};
    char *class_path = mem_printf("/sys/class/infiniband/%s", device);
    char *base = mem_printf("%s/ports/%s", class_path, port), line[128], *end;
    static const char *const keys[] = {"rate", "state", "link_layer"};

    if (!strcmp(port, "1"))
        snprintf(n.name, sizeof(n.name), "%s", device);
    else
        snprintf(n.name, sizeof(n.name), "%.26s:%.4s", device, port);
    for (int k = 0; k < 3; k++) {
        char *path = mem_printf("%s/%s", base, keys[k]);
        bool there = read_line(line, sizeof(line), root, path);
        free(path);
        if (!there)
            continue;
        if (k == 0) {
            double gbit = strtod(line, &end);
            n.rate_Bps = !strncmp(end, " Gb/sec", 7) && gbit > 0 && gbit < 1e6 ? gbit * 1e9 / 8 : 0;
        } else if (k == 1) {
            n.up = !strncmp(line, "4:", 2);
        } else {
            n.layer = !strcmp(line, "InfiniBand") ? LINK_INFINIBAND
                      : !strcmp(line, "Ethernet") ? LINK_ETHERNET
                                                  : LINK_UNKNOWN;
        }
    }
    read_place(&n, root, class_path);
    push_nic(t, &n);
    free(base);
    free(class_path);
}

static void read_infiniband(struct topo *t, int host, const char *root)
{
    char **devices, **ports;
    int count, n;

    if (!list(&devices, &count, root, "/sys/class/infiniband") || !count)
        topo_unseen(t, "InfiniBand and RoCE",
                    "no RDMA device on this host (/sys/class/infiniband "
                    "is %s)",
                    count                                       ? "unreadable"
                    : exists(root, "/sys/class/infiniband", "") ? "empty"
                                                                : "not there");
    for (int i = 0; i < count; i++) {
        char *path = mem_printf("/sys/class/infiniband/%s/ports", devices[i]);
        list(&ports, &n, root, path);
        for (int k = 0; k < n; k++)
            read_ib_port(t, host, root, devices[i], ports[k]);
        hostlist_free(ports, n);
        free(path);
    }
    hostlist_free(devices, count);
}

/* A network interface that stands for a port: physical, or a bond of such.  `virtual` asks for the
 * others that carry traffic (veth in a container), which count only where nothing else exists. */
static bool is_port(const char *root, const char *path, bool virtual)
{
    char line[32], *type = mem_printf("%s/type", path);
    bool ethernet =
        read_line(line, sizeof(line), root, type) && strtol(line, NULL, 10) == ARPHRD_ETHER;

    free(type);
    if (!ethernet || exists(root, path, "/device/infiniband"))
        return false; /* loopback, tunnels, IPoIB; RoCE ports are listed by their RDMA name */
    if (exists(root, path, "/device") || exists(root, path, "/bonding"))
        return !virtual && !exists(root, path, "/bonding_slave");
    return virtual && !exists(root, path, "/bridge") && !exists(root, path, "/brport");
}

static void read_port(struct topo *t, int host, const char *root, const char *name, bool virtual)
{
    struct nic n = {.host = host, .layer = LINK_ETHERNET, .source = SOURCE_SYSFS};
    char *base = mem_printf("/sys/class/net/%s", name), line[64];
    char *speed = mem_printf("%s/speed", base), *state = mem_printf("%s/operstate", base);

    snprintf(n.name, sizeof(n.name), "%s", name);
    n.up = read_line(line, sizeof(line), root, state) &&
           (!strcmp(line, "up") || !strcmp(line, "unknown"));
    /* Mb/s, -1 when unknown; a virtual port's 10000 is a constant of the kernel and no fact. */
    if (!virtual && read_line(line, sizeof(line), root, speed)) {
        double mbit = strtod(line, NULL);
        n.rate_Bps = mbit > 0 && mbit < 1e9 ? mbit * 1e6 / 8 : 0;
    }
    read_place(&n, root, base);
    if (!virtual || (n.up && strncmp(name, "ifb", 3) != 0 && strncmp(name, "dummy", 5) != 0))
        push_nic(t, &n);
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
    read_infiniband(t, host, root);
    if (!list(&names, &count, root, "/sys/class/net")) {
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
