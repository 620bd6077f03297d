/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnet.c - reads an InfiniBand subnet with libibnetdisc from a port of this machine, or a text. */
#include "topo/sources/net/ibnet_impl.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/libraries.h"

static const struct library_call calls[] = {
    {"ibnd_discover_fabric", offsetof(struct ibnet_api, discover), LIBRARY_NEEDED},
    {"ibnd_destroy_fabric", offsetof(struct ibnet_api, destroy), LIBRARY_NEEDED},
    {"ibnd_get_agg_linkspeedext", offsetof(struct ibnet_api, extended), LIBRARY_OPTIONAL},
};

static void api_close(struct ibnet_api *a)
{
    if (a->library)
        dlclose(a->library);
    memset(a, 0, sizeof(*a));
}

/* Load the library; EXIT_CONFIG with the loader's message. */
static int api_open(struct ibnet_api *a, struct err *err)
{
    static const struct library_wanted wanted = {"the InfiniBand subnet cannot be read",
                                                 "RAILGAUGE_IBNETDISC",
                                                 {"libibnetdisc.so.5"},
                                                 {NULL}};
    struct library_found found;

    memset(a, 0, sizeof(*a));
    a->library = library_find(&wanted, &found, err);
    if (!a->library)
        return -1;
    if (library_resolve(a, a->library, calls, sizeof(calls) / sizeof(*calls), 1, found.file, err) <
        0) {
        api_close(a);
        return -1;
    }
    return 0;
}

enum { TIMEOUT_MS = 1000, RETRIES = 3, NODES_MAX = 1 << 20 };

/* Layout of PortInfo: InfiniBand Architecture Specification, volume 1, 14.2.5.6. */
enum { CAPABILITY = 20, WIDTH_ACTIVE = 31, SPEED_ACTIVE = 35, EXTENDED_ACTIVE = 62 };

static int width_of(const uint8_t *info)
{
    static const int lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};

    return info[WIDTH_ACTIVE] <= 16 ? lanes[info[WIDTH_ACTIVE]] : 0;
}

/* Speed code beyond QDR.  Bit 14 of the capability mask is set if the port has such speeds. */
static int extended_of(const struct ibnet_api *api, uint8_t *capable, uint8_t *info)
{
    if (api->extended)
        return api->extended(capable, info);
    return capable && capable[CAPABILITY + 2] & 0x40 ? info[EXTENDED_ACTIVE] >> 4 : 0;
}

static const char *speed_of(const struct ibnet_api *api, struct ibnd_port_own *p)
{
    struct ibnd_port_own *zero = p->node->type == IBND_SWITCH ? p->node->port[0] : p;
    static const char *const plain[16] = {[1] = "SDR", [2] = "DDR", [4] = "QDR"};
    static const char *const beyond[] = {
        [1] = "FDR", [2] = "EDR", [4] = "HDR", [8] = "NDR", [32] = "XDR"};
    int code = extended_of(api, zero ? zero->info : NULL, p->info);
    const char *speed = code > 0 && code <= 32 ? beyond[code] : NULL;

    speed = speed ? speed : plain[p->info[SPEED_ACTIVE] >> 4];
    return speed ? speed : "";
}

static void add_node(struct net *n, const struct ibnd_node_own *from)
{
    struct net_node x = {.guid = from->guid, .tier = -1, .host = -1};

    x.kind = from->type == IBND_SWITCH   ? NET_SWITCH
             : from->type == IBND_ROUTER ? NET_ROUTER
                                         : NET_HCA;
    x.ports = from->ports < NET_PORTS ? from->ports : NET_PORTS;
    ibnet_name(x.name, from->name, strnlen(from->name, sizeof(from->name)));
    /* NodeInfo: GUIDs, then the device id at byte 30. */
    if (x.kind == NET_HCA && ibnet_aggregation(x.name, from->info[30] << 8 | from->info[31]))
        x.kind = NET_AGGREGATION;
    MEM_PUSH(n->node, n->nodes) = x;
}

static int lid_of(const struct ibnd_port_own *p)
{
    return p->node->type == IBND_SWITCH ? p->node->lid : p->lid;
}

/* Set the rate from the ends: the lower one; if one is unknown (0), the other. */
static void cable_rate(struct net_cable *c, int width_a, const char *speed_a, int width_b,
                       const char *speed_b)
{
    bool both = width_a && width_b;
    bool other = both ? net_rate(width_b, speed_b) < net_rate(width_a, speed_a) : width_b > 0;

    c->differ = both && (width_a != width_b || strcmp(speed_a, speed_b) != 0);
    c->width = other ? width_b : width_a;
    snprintf(c->speed, sizeof(c->speed), "%s", other ? speed_b : speed_a);
}

static void add_port(struct net *n, const struct ibnet_api *api, struct ibnd_port_own *p,
                     const struct map *place, int at)
{
    struct ibnd_port_own *o = p->peer;
    int to = map_find(place, (uintptr_t)o->node, NULL, NULL);

    if (to < 0 || p->number < 1 || o->number < 1 || p->number > NET_PORTS || o->number > NET_PORTS)
        return;
    if (o->peer == p && (to < at || (to == at && o->number < p->number)))
        return; /* added from the other end */
    struct net_cable c = {.a = at,
                          .b = to,
                          .port_a = p->number,
                          .port_b = o->number,
                          .guid_a = p->node->type == IBND_SWITCH ? 0 : p->guid,
                          .guid_b = o->node->type == IBND_SWITCH ? 0 : o->guid,
                          .lid_a = lid_of(p),
                          .lid_b = lid_of(o)};
    cable_rate(&c, width_of(p->info), speed_of(api, p), width_of(o->info), speed_of(api, o));
    net_add_cable(n, c);
}

static struct net *convert(const struct ibnet_api *api, const struct ibnd_fabric_own *f)
{
    struct net *n = mem_calloc(1, sizeof(*n));
    struct map place = {0}; /* index of each library node, by address */
    int at = 0;

    for (const struct ibnd_node_own *x = f->nodes; x && n->nodes < NODES_MAX; x = x->next) {
        *map_at(&place, (uintptr_t)x, NULL, NULL) = n->nodes;
        add_node(n, x);
    }
    for (const struct ibnd_node_own *x = f->nodes; x && at < n->nodes; x = x->next, at++)
        for (int p = 1; p <= x->ports; p++)
            if (x->port[p] && x->port[p]->peer)
                add_port(n, api, x->port[p], &place, at);
    map_free(&place);
    net_tiers(n);
    return n;
}

/* --- reasons for a failure --- */

/* NICs of this machine as "mlx5_0, mlx5_1"; *named: `device` is one of them. */
static char *adapters(const char *device, bool *named)
{
    DIR *d = opendir("/sys/class/infiniband");
    char *list = mem_strdup("");

    *named = false;
    for (struct dirent *e; d && (e = readdir(d)) && strlen(list) < 200;) {
        if (e->d_name[0] == '.')
            continue;
        list = mem_append(list, "%s%.32s", *list ? ", " : "", e->d_name);
        *named = *named || (device && !strcmp(device, e->d_name));
    }
    if (d)
        closedir(d);
    return list;
}

/* Find the first umad device that cannot be opened, with errno; false: all can, or none exists. */
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

/* device NULL: the first that works; port 0: likewise. */
static int discover(struct net **n, const char *device, int port, struct err *err)
{
    struct ibnd_config_own config = {.timeout_ms = TIMEOUT_MS, .retries = RETRIES};
    char *name = device ? mem_strdup(device) : NULL;
    struct ibnd_fabric_own *f;
    struct ibnet_api api;

    *n = NULL;
    if (api_open(&api, err) < 0) {
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
    api_close(&api);
    return rc;
}

#define FILE_MAX ((size_t)1 << 30)

/* --- text: each cable appears twice, once from either end --- */

static int by_port(const void *x, const void *y)
{
    const struct ibnet_end *a = x, *b = y;

    return a->node != b->node ? (a->node < b->node ? -1 : 1)
                              : (a->port > b->port) - (a->port < b->port);
}

static int by_port_and_line(const void *x, const void *y)
{
    const struct ibnet_end *a = x, *b = y;
    int order = by_port(x, y);

    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static const char *id_of(const struct ibnet_text *x, int peer)
{
    return x->ids.name[peer];
}

/* Check one end by itself, before the two ends are compared. */
static int check_end(const struct ibnet_text *x, const struct ibnet_end *e)
{
    int peer = x->node_of[e->peer] - 1;

    if (peer < 0)
        return err_data(x->err, "%s:%d: \"%s\" has no record of its own: is the file cut short?",
                        x->path, e->line, id_of(x, e->peer));
    if (e->peer_port > x->net->node[peer].ports)
        return err_data(x->err, "%s:%d: port %d of \"%s\", which has %d", x->path, e->line,
                        e->peer_port, id_of(x, e->peer), x->net->node[peer].ports);
    if (peer == e->node && e->peer_port == e->port)
        return err_data(x->err, "%s:%d: port %d is cabled to itself", x->path, e->line, e->port);
    if (e > x->end && e[-1].node == e->node && e[-1].port == e->port)
        return err_data(x->err, "%s:%d: port %d is there twice, first in line %d", x->path, e->line,
                        e->port, e[-1].line);
    return 0;
}

static const struct ibnet_end *other_end(const struct ibnet_text *x, const struct ibnet_end *e)
{
    const struct ibnet_end key = {.node = x->node_of[e->peer] - 1, .port = e->peer_port};

    return bsearch(&key, x->end, (size_t)x->ends, sizeof(key), by_port);
}

static int agree(const struct ibnet_text *x, const struct ibnet_end *e, const struct ibnet_end *o)
{
    const struct ibnet_end *first = e->line < o->line ? e : o, *last = first == e ? o : e;

    if (x->node_of[o->peer] - 1 != e->node || o->peer_port != e->port)
        return err_data(x->err,
                        "%s:%d: the cable of line %d ends here, but this line leads to port %d of "
                        "\"%s\"",
                        x->path, last->line, first->line, last->peer_port, id_of(x, last->peer));
    if ((e->guid && o->peer_guid && e->guid != o->peer_guid) ||
        (o->guid && e->peer_guid && o->guid != e->peer_guid))
        return err_data(x->err, "%s:%d: the port GUIDs differ from those in line %d", x->path,
                        last->line, first->line);
    return 0;
}

static void add_cable(struct ibnet_text *x, const struct ibnet_end *e, const struct ibnet_end *o)
{
    struct net_cable c = {.a = e->node,
                          .port_a = e->port,
                          .b = x->node_of[e->peer] - 1,
                          .port_b = e->peer_port,
                          .guid_a = e->guid ? e->guid
                                    : o     ? o->peer_guid
                                            : 0,
                          .guid_b = e->peer_guid ? e->peer_guid
                                    : o          ? o->guid
                                                 : 0,
                          .lid_a = e->lid ? e->lid
                                   : o    ? o->peer_lid
                                          : 0,
                          .lid_b = e->peer_lid ? e->peer_lid
                                   : o         ? o->lid
                                               : 0};

    cable_rate(&c, e->width, e->speed, o ? o->width : 0, o ? o->speed : "");
    net_add_cable(x->net, c);
}

static int join(struct ibnet_text *x)
{
    int a, b;

    if (x->ends)
        qsort(x->end, (size_t)x->ends, sizeof(*x->end), by_port_and_line);
    for (int i = 0; i < x->ends; i++)
        if (check_end(x, &x->end[i]) < 0)
            return -1;
    for (int i = 0; i < x->ends; i++) {
        const struct ibnet_end *e = &x->end[i], *o = other_end(x, e);
        if (o && agree(x, e, o) < 0)
            return -1;
        if (!o || e < o)
            add_cable(x, e, o);
    }
    if (net_clash(x->net, &a, &b)) {
        const struct net_cable *c = &x->net->cable[a], *d = &x->net->cable[b];
        bool at_a =
            (c->a == d->a && c->port_a == d->port_a) || (c->a == d->b && c->port_a == d->port_b);
        int node = at_a ? c->a : c->b, port = at_a ? c->port_a : c->port_b;
        return err_data(x->err, "%s:%d: two cables lead to port %d of this node", x->path,
                        x->node_line[node], port);
    }
    return 0;
}

static int nodes_are_unique(struct ibnet_text *x)
{
    int a, b;

    if (!x->net->nodes)
        return err_data(x->err, "%s: no Switch and no Ca: not the text of ibnetdiscover", x->path);
    if (net_twins(x->net, &a, &b))
        return err_data(x->err, "%s:%d: GUID 0x%" PRIx64 " is that of the node in line %d too",
                        x->path, x->node_line[b], x->net->node[b].guid, x->node_line[a]);
    return 0;
}

int ibnet_parse(struct net **n, const char *text, size_t len, const char *path, struct err *err)
{
    struct ibnet_text x = {.path = path, .err = err, .net = mem_calloc(1, sizeof(*x.net))};
    char *copy = mem_calloc(len + 1, 1);

    memcpy(copy, text, len);
    int rc =
        ibnet_text_read(&x, copy, len) < 0 || nodes_are_unique(&x) < 0 || join(&x) < 0 ? -1 : 0;
    if (rc == 0)
        net_tiers(x.net);
    else
        net_free(x.net);
    *n = rc == 0 ? x.net : NULL;
    names_free(&x.ids);
    free(x.node_line);
    free(x.node_of);
    free(x.end);
    free(copy);
    return rc;
}

/* --- the source --- */

static int read_file(struct net **n, const char *path, struct err *err)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    int rc = ibnet_parse(n, text, len, path, err);
    free(text);
    return rc;
}

/* "live", "live:mlx5_0", "live:mlx5_0:2" */
static int read_live(struct net **n, const char *text, struct err *err)
{
    char device[64] = "";
    int port = 0;
    const char *colon = text[4] ? strchr(text + 5, ':') : NULL;

    if (text[4])
        snprintf(device, sizeof(device), "%.*s",
                 colon ? (int)(colon - text - 5) : (int)sizeof(device) - 1, text + 5);
    if (text[4] && !*device)
        return err_usage(err, "--ibnet %s: no name of an adapter behind \"live:\"", text);
    if (colon && units_int(&port, colon + 1, 1, NET_PORTS, err) < 0)
        return err_wrap(err, "--ibnet %s: port", text);
    return discover(n, *device ? device : NULL, port, err);
}

int ibnet_read(struct topo *t, int host, const char *path, struct err *err)
{
    bool live = !strcmp(path, "live") || !strncmp(path, "live:", 5);
    struct net *n;

    (void)host;
    if ((live ? read_live(&n, path, err) : read_file(&n, path, err)) < 0)
        return -1;
    if (!net_count(n, NET_HCA)) {
        int nodes = n->nodes;
        net_free(n);
        return err_data(err, "%s: %d node%s and no host's adapter among them (no Ca)", path, nodes,
                        units_s(nodes));
    }
    if (!t->net)
        t->net = mem_calloc(1, sizeof(*t->net));
    int rc = net_merge(t->net, n, path, err);
    if (rc == 0) {
        net_hosts(n, t);
        net_declare(t, n, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    }
    net_free(n);
    return rc;
}
