/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs.c - facts about ports from libibverbs, beside sysfs: the view of a program that opens the
 * device.  In a container, behind SR-IOV or with a driver that does not fit the library this can
 * differ from /sys.  The table of topology.json is "verbs". */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "kernels/verbs_api.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"

/* Rate: lanes, times bits per second of a lane (Linux, include/rdma/ib_verbs.h:
 * ib_width_enum_to_int() and ib_port_attr_to_speed_info(), which sysfs uses). */
static double port_rate(const struct verbs_port_attr *p)
{
    static const struct {
        int value;
        double is;
    } lanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speed[] = {{1, 2.5e9}, {2, 5e9},   {4, 10e9},  {8, 10e9},
                 {16, 14e9}, {32, 25e9}, {64, 50e9}, {128, 100e9}};
    double n = 0, bps = 0;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(*lanes); i++)
        n = lanes[i].value == p->active_width ? lanes[i].is : n;
    for (size_t i = 0; i < sizeof(speed) / sizeof(*speed); i++)
        bps = speed[i].value == p->active_speed ? speed[i].is : bps;
    return n * bps / 8;
}

/* Drivers without a limit report -1, or the largest number. */
static int limit(int value)
{
    return value > 0 && value < NIC_COUNT_MAX ? value : 0;
}

static int mtu_bytes(int mtu)
{
    return mtu >= VERBS_MTU_256 && mtu <= VERBS_MTU_4096 ? 128 << mtu : 0;
}

/* Copy text of a device, without control characters. */
static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%.*s", (int)size - 1, from);
    for (char *c = to; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
}

static void read_port(struct nic *n, struct verbs_hca *hca, int port,
                      const struct verbs_device_attr *d, const struct verbs_port_attr *p)
{
    static const union verbs_gid none;
    union verbs_gid gid;
    struct nic_verbs *v = &n->verbs;

    *v = (struct nic_verbs){
        .told = true,
        .up = p->state == VERBS_PORT_ACTIVE,
        .layer = p->link_layer == VERBS_LINK_ETHERNET ? LINK_ETHERNET
                 : p->link_layer == VERBS_LINK_INFINIBAND ||
                         (p->link_layer == VERBS_LINK_UNSPECIFIED &&
                          hca->device->transport == VERBS_TRANSPORT_IB)
                     ? LINK_INFINIBAND
                     : LINK_UNKNOWN,
        .rate_Bps = port_rate(p),
        .mtu = mtu_bytes(p->active_mtu),
        .mtu_max = mtu_bytes(p->max_mtu),
        .gids = limit(p->gids),
        .qps = limit(d->max_qp),
        .wrs = limit(d->max_qp_wr),
        .sges = limit(d->max_sge),
        .reads = limit(d->max_qp_reads),
        .message_bytes = p->max_message,
        .region_bytes = d->max_mr_size < UINT64_C(1) << 60 ? (double)d->max_mr_size : 0,
    };
    copy_text(v->firmware, sizeof(v->firmware), d->firmware);
    if (n->gid_index >= 0 && n->gid_index < p->gids &&
        !verbs.query_gid(hca, (uint8_t)port, n->gid_index, &gid) &&
        memcmp(&gid, &none, sizeof(gid)) != 0)
        inet_ntop(AF_INET6, gid.raw, v->gid, sizeof(v->gid));
}

/* Read the device's ports, each a NIC: "mlx5_0", "mlx5_0:2".  Returns 0 or an errno. */
static int read_ports(struct topo *t, int host, struct verbs_hca *hca, const char *name)
{
    struct verbs_device_attr d;
    int why = verbs.query_device(hca, &d);

    for (int port = 1; port <= d.ports && !why; port++) {
        char of_port[sizeof(t->nic->name)];
        struct verbs_port_attr p = {0};
        if (port == 1)
            snprintf(of_port, sizeof(of_port), "%.31s", name);
        else
            snprintf(of_port, sizeof(of_port), "%.26s:%d", name, port);
        int nic = host_find_nic(t, host, of_port);
        why = nic < 0 ? 0 : verbs.query_port(hca, (uint8_t)port, &p);
        if (nic >= 0 && !why)
            read_port(&t->nic[nic], hca, port, &d, &p);
    }
    return why;
}

static void read_device(struct topo *t, int host, struct verbs_device *device)
{
    char name[sizeof(t->nic->name)], what[64];
    struct verbs_hca *hca;
    int why;

    copy_text(name, sizeof(name), device->name);
    hca = verbs.open_device(device);
    why = hca ? read_ports(t, host, hca, name) : errno;
    if (why) {
        snprintf(what, sizeof(what), "verbs of %s", name);
        topo_unseen(t, what, "libibverbs cannot %s it: %s", hca ? "ask" : "open", strerror(why));
    }
    if (hca)
        verbs.close_device(hca);
}

static bool any_rdma(const struct topo *t, int host)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && t->nic[i].rdma)
            return true;
    return false;
}

int topo_read_verbs(struct topo *t, int host, const char *root, struct err *err)
{
    const char *named = secure_getenv("RAILGAUGE_IBVERBS");
    struct verbs_device **list;
    struct err why;
    int n = 0;

    if (host < 0 || host >= t->hosts)
        return err_set(err, "no host %d", host);
    /* A recorded machine's ports are not in this machine's library, unless that is named. */
    if ((*root && !(named && *named)) || !any_rdma(t, host))
        return 0;
    if (verbs_load(&why) < 0) {
        topo_unseen(t, "verbs", "%s", why.text);
        return 0;
    }
    list = verbs.get_device_list(&n);
    if (!list || !n)
        topo_unseen(t, "verbs", "libibverbs finds no device: %s",
                    list ? "no provider for what /sys/class/infiniband shows (ibverbs-providers), "
                           "or no /dev/infiniband"
                         : strerror(errno));
    for (int i = 0; i < n && list; i++)
        read_device(t, host, list[i]);
    if (list)
        verbs.free_device_list(list);
    return 0;
}
