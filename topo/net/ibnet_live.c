/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet_live.c - the subnet itself: what libibnetdisc finds from a port of this machine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "topo/net/ibnet.h"
#include "topo/net/ibnet_api.h"

enum { TIMEOUT_MS = 1000, RETRIES = 3, NODES_MAX = 1 << 20 };

/* PortInfo is as on the wire: InfiniBand Architecture Specification, volume 1, 14.2.5.6. */
enum { CAPABILITY = 20, WIDTH_ACTIVE = 31, SPEED_ACTIVE = 35, EXTENDED_ACTIVE = 62 };

static int width_of(const uint8_t *info)
{
    switch (info[WIDTH_ACTIVE]) {
    case 1:
        return 1;
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 0;
    }
}

/* Bit 14 of the mask says that the port has speeds beyond QDR. */
static int extended_of(const struct ibnet_api *api, uint8_t *capable, uint8_t *info)
{
    if (api->extended)
        return api->extended(capable, info);
    return capable && capable[CAPABILITY + 2] & 0x40 ? info[EXTENDED_ACTIVE] >> 4 : 0;
}

static const char *speed_of(const struct ibnet_api *api, struct ibnd_port_own *p)
{
    struct ibnd_port_own *zero = p->node->type == IBND_SWITCH ? p->node->port[0] : p;

    switch (extended_of(api, zero ? zero->info : NULL, p->info)) {
    case 1:
        return "FDR";
    case 2:
        return "EDR";
    case 4:
        return "HDR";
    case 8:
        return "NDR";
    case 32:
        return "XDR";
    default:
        break;
    }
    switch (p->info[SPEED_ACTIVE] >> 4) {
    case 1:
        return "SDR";
    case 2:
        return "DDR";
    case 4:
        return "QDR";
    default:
        return "";
    }
}

static void add_node(struct net *n, const struct ibnd_node_own *from)
{
    struct net_node x = {.guid = from->guid, .tier = -1, .host = -1};

    x.kind = from->type == IBND_SWITCH   ? NET_SWITCH
             : from->type == IBND_ROUTER ? NET_ROUTER
                                         : NET_HCA;
    x.ports = from->ports < NET_PORTS ? from->ports : NET_PORTS;
    ibnet_name(x.name, from->name, strnlen(from->name, sizeof(from->name)));
    /* NodeInfo: GUIDs, then at 30 the device id. */
    if (x.kind == NET_HCA && ibnet_aggregation(x.name, from->info[30] << 8 | from->info[31]))
        x.kind = NET_AGGREGATION;
    MEM_PUSH(n->node, n->nodes) = x;
}

struct place_of { /* nodes of the library by address */
    const struct ibnd_node_own *node;
    int at;
};

static int by_address(const void *x, const void *y)
{
    const struct place_of *a = x, *b = y;

    return (a->node > b->node) - (a->node < b->node);
}

static int lid_of(const struct ibnd_port_own *p)
{
    return p->node->type == IBND_SWITCH ? p->node->lid : p->lid;
}

static void add_port(struct net *n, const struct ibnet_api *api, struct ibnd_port_own *p,
                     const struct place_of *place, int at)
{
    struct ibnd_port_own *o = p->peer;
    struct place_of key = {o->node, 0};
    const struct place_of *to = bsearch(&key, place, (size_t)n->nodes, sizeof(*place), by_address);

    if (!to || p->number < 1 || o->number < 1 || p->number > NET_PORTS || o->number > NET_PORTS)
        return;
    if (o->peer == p && (to->at < at || (to->at == at && o->number < p->number)))
        return; /* told from the other end */
    struct net_cable c = {.a = at,
                          .b = to->at,
                          .port_a = p->number,
                          .port_b = o->number,
                          .guid_a = p->node->type == IBND_SWITCH ? 0 : p->guid,
                          .guid_b = o->node->type == IBND_SWITCH ? 0 : o->guid,
                          .lid_a = lid_of(p),
                          .lid_b = lid_of(o),
                          .width = width_of(p->info)};
    snprintf(c.speed, sizeof(c.speed), "%s", speed_of(api, p));
    if (width_of(o->info) && c.width) {
        const char *speed = speed_of(api, o);
        c.differ = width_of(o->info) != c.width || strcmp(speed, c.speed) != 0;
        if (net_rate(width_of(o->info), speed) < net_rate(c.width, c.speed)) {
            c.width = width_of(o->info);
            snprintf(c.speed, sizeof(c.speed), "%s", speed);
        }
    }
    net_add_cable(n, c);
}

static struct net *convert(const struct ibnet_api *api, const struct ibnd_fabric_own *f)
{
    struct net *n = mem_calloc(1, sizeof(*n));
    struct place_of *place;
    int nodes = 0, at = 0;

    for (const struct ibnd_node_own *x = f->nodes; x && nodes < NODES_MAX; x = x->next)
        nodes++;
    place = mem_calloc((size_t)nodes + 1, sizeof(*place));
    for (const struct ibnd_node_own *x = f->nodes; x && at < nodes; x = x->next, at++) {
        place[at] = (struct place_of){x, at};
        add_node(n, x);
    }
    qsort(place, (size_t)nodes, sizeof(*place), by_address);
    at = 0;
    for (const struct ibnd_node_own *x = f->nodes; x && at < nodes; x = x->next, at++)
        for (int p = 1; p <= x->ports; p++)
            if (x->port[p] && x->port[p]->peer)
                add_port(n, api, x->port[p], place, at);
    free(place);
    net_tiers(n);
    return n;
}

/* --- why it did not work --- */

/* The adapters of this machine as "mlx5_0, mlx5_1"; *named: `device` is one of them. */
static char *adapters(const char *device, bool *named)
{
    DIR *d = opendir("/sys/class/infiniband");
    char *list = mem_strdup("");

    *named = false;
    for (struct dirent *e; d && (e = readdir(d)) && strlen(list) < 200;) {
        if (e->d_name[0] == '.')
            continue;
        char *longer = mem_printf("%s%s%.32s", list, *list ? ", " : "", e->d_name);
        free(list);
        list = longer;
        *named = *named || (device && !strcmp(device, e->d_name));
    }
    if (d)
        closedir(d);
    return list;
}

/* The first umad device that cannot be opened, with errno; false when all can, or none is there. */
static bool refused(char *path, size_t size, int *umads)
{
    DIR *d = opendir("/dev/infiniband");
    int why = 0;

    *umads = 0;
    for (struct dirent *e; d && !why && (e = readdir(d));) {
        if (strncmp(e->d_name, "umad", 4) != 0)
            continue;
        ++*umads;
        snprintf(path, size, "/dev/infiniband/%.32s", e->d_name);
        int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        why = fd < 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
    errno = why;
    return why != 0;
}

static int say_why(const char *device, int port, struct err *err)
{
    char umad[64], from[96] = "";
    bool named;
    int umads;

    if (device && port)
        snprintf(from, sizeof(from), " from port %d of %.40s", port, device);
    else if (device)
        snprintf(from, sizeof(from), " from %.40s", device);
    char *list = adapters(device, &named);
    int none = !*list, other = device && !named;
    if (none)
        err_config(err, "no InfiniBand adapter on this machine (/sys/class/infiniband)");
    else if (other)
        err_config(err, "no InfiniBand adapter %.40s on this machine, only %.200s", device, list);
    free(list);
    if (none || other)
        return -1;
    if (refused(umad, sizeof(umad), &umads))
        return err_config(err,
                          "no permission to read the InfiniBand subnet: %s: %s; root may, or give "
                          "the text of ibnetdiscover",
                          umad, strerror(errno));
    if (!umads)
        return err_config(err, "no /dev/infiniband/umad*: the module ib_umad is not loaded");
    return err_config(err,
                      "libibnetdisc found no InfiniBand subnet%s: is the port up and an "
                      "InfiniBand one?",
                      from);
}

int ibnet_live(struct net **n, const char *device, int port, struct err *err)
{
    struct ibnd_config_own config = {.timeout_ms = TIMEOUT_MS, .retries = RETRIES};
    char *name = device ? mem_strdup(device) : NULL;
    struct ibnd_fabric_own *f;
    struct ibnet_api api;

    *n = NULL;
    if (ibnet_api_open(&api, err) < 0) {
        free(name);
        return -1;
    }
    f = api.discover(name, port, NULL, &config);
    if (f) {
        *n = convert(&api, f);
        api.destroy(f);
    }
    free(name);
    int rc = f ? 0 : say_why(device, port, err);
    ibnet_api_close(&api);
    return rc;
}
