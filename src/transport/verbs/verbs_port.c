/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_port_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/verbs_api.h"
#include "measure/device/gpu_binding.h"

/* --- choice of the port --- */

const char *verbs_port_state(int state)
{
    static const char *const name[] = {"without a state", "DOWN",   "INIT",
                                       "ARMED",           "ACTIVE", "ACTIVE_DEFER"};

    return state >= 0 && state < (int)(sizeof(name) / sizeof(*name)) ? name[state] : "unknown";
}

/* Write "mlx5_0:1 (ACTIVE), mlx5_1:1 (DOWN)". */
static void list_ports(char *out, size_t size, const struct verbs_candidate *c, int n)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < n && used + 1 < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.40s:%d (%s)", i ? ", " : "",
                                 c[i].device, c[i].port, verbs_port_state(c[i].state));
}

/* Port of this name; without a number the first active one, else the first.  -1: none. */
static int find_port(const struct verbs_candidate *c, int n, const char *name)
{
    size_t len = strcspn(name, ":");
    int port = 0, best = -1;

    if (name[len] && units_int(&port, name + len + 1, 1, 255, NULL) < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (strlen(c[i].device) != len || strncmp(c[i].device, name, len) != 0 ||
            (port && c[i].port != port))
            continue;
        if (best < 0 || (c[i].state == VERBS_PORT_ACTIVE && c[best].state != VERBS_PORT_ACTIVE))
            best = i;
    }
    return best;
}

static int active(const struct verbs_candidate *c, int at, const char *why, struct err *err)
{
    if (c[at].state == VERBS_PORT_ACTIVE)
        return at;
    return err_config(err, "%s:%d is %s, not ACTIVE (%s)", c[at].device, c[at].port,
                      verbs_port_state(c[at].state), why);
}

/* Entry `local` of a list with commas, counted cyclically. */
static char *entry_of(const char *list, int local)
{
    char *copy = mem_strdup(list), *save = NULL, *out = NULL;
    int n = 0;

    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        n++;
    local %= n;
    for (char *t = strtok_r(copy, ",", &save); t && !out; t = strtok_r(NULL, ",", &save))
        if (local-- == 0)
            out = mem_strdup(t);
    free(copy);
    return out;
}

static int choose_listed(const struct verbs_candidate *c, int n, const struct verbs_wish *w,
                         struct err *err)
{
    char *name = entry_of(w->list, w->local), all[300];
    int at = name ? find_port(c, n, name) : -1;

    list_ports(all, sizeof(all), c, n);
    if (!name || !*name)
        at = err_usage(err, "--hca %s has an empty name", w->list);
    else if (at < 0)
        err_config(err, "no port %s here (--hca); there are %s", name, all);
    else
        at = active(c, at, "--hca", err);
    free(name);
    return at;
}

static int choose_turn(const struct verbs_candidate *c, int n, int local, struct err *err)
{
    int there = 0;
    char all[300];

    for (int i = 0; i < n; i++)
        there += c[i].state == VERBS_PORT_ACTIVE;
    list_ports(all, sizeof(all), c, n);
    if (!there)
        return err_config(err, "no port is ACTIVE; there are %s", all);
    local %= there;
    for (int i = 0; i < n; i++)
        if (c[i].state == VERBS_PORT_ACTIVE && local-- == 0)
            return i;
    return -1;
}

/* NCCL_IB_HCA: "mlx5_1:1,mlx5_2" are beginnings of names, with "=" in front whole names, and with
 * "^" those that are left out; without a number every port.  Rail and plane behind the number (2.30)
 * do not matter here.  (NCCL: parseStringList and matchIfList of src/misc/utils.cc.) */
static bool nccl_allows(const char *filter, const struct verbs_candidate *c)
{
    bool without = *filter == '^', whole, found = false;

    filter += without;
    whole = *filter == '=';
    filter += whole;
    while (*filter && !found) {
        size_t entry = strcspn(filter, ","), name = strcspn(filter, ":,");
        int port = name < entry ? atoi(filter + name + 1) : 0;
        found = name && !strncmp(c->device, filter, name) && (!whole || !c->device[name]) &&
                (port <= 0 || port == c->port);
        filter += entry + (filter[entry] == ',');
    }
    return found != without;
}

/* Choose among the ports that NCCL would use. */
static int choose_allowed(const struct verbs_candidate *c, int n, const struct verbs_wish *w,
                          struct err *err)
{
    struct verbs_candidate *some = mem_calloc((size_t)n, sizeof(*some));
    int *of = mem_calloc((size_t)n, sizeof(*of)), count = 0, at = -1;
    struct verbs_wish rest = *w;
    char all[300];

    rest.filter = NULL;
    for (int i = 0; i < n; i++)
        if (nccl_allows(w->filter, &c[i])) {
            some[count] = c[i];
            of[count++] = i;
        }
    list_ports(all, sizeof(all), c, n);
    if (!count)
        err_config(err, "NCCL_IB_HCA=%.100s allows no port here (--hca names others); there are %s",
                   w->filter, all);
    else if ((at = verbs_port_choose(some, count, &rest, err)) >= 0)
        at = of[at];
    free(some);
    free(of);
    return at;
}

int verbs_port_choose(const struct verbs_candidate *c, int n, const struct verbs_wish *w,
                      struct err *err)
{
    if (n && !w->list && w->filter && *w->filter)
        return choose_allowed(c, n, w, err);
    int at = w->nearest && *w->nearest ? find_port(c, n, w->nearest) : -1;

    if (!n)
        return err_config(err, "libibverbs finds no device");
    if (w->list)
        return choose_listed(c, n, w, err);
    return at >= 0 ? active(c, at, "the nearest; --hca names another", err)
                   : choose_turn(c, n, w->local, err);
}

/* --- available ports --- */

struct found {
    struct verbs_candidate *c;
    struct verbs_device **of; /* device of each candidate */
    int n;
};

static void find_ports(struct found *f, struct verbs_device *device, char *why, size_t size)
{
    struct verbs_hca *hca = verbs.open_device(device);
    struct verbs_device_attr attr;

    if (!hca || verbs.query_device(hca, &attr)) {
        snprintf(why, size, "; %.60s: %s", device->name, strerror(errno));
        attr.ports = 0;
    }
    for (int i = 1; i <= attr.ports; i++) {
        struct verbs_port_attr port = {0};
        if (verbs.query_port(hca, (uint8_t)i, &port))
            continue;
        int n = f->n;
        struct verbs_candidate *c = &MEM_PUSH(f->c, f->n);
        MEM_PUSH(f->of, n) = device;
        snprintf(c->device, sizeof(c->device), "%s", device->name);
        c->port = i;
        c->state = port.state;
    }
    if (hca)
        verbs.close_device(hca);
}

static int find_all(struct found *f, struct verbs_device **list, int n, struct err *err)
{
    char why[120] = "";

    for (int i = 0; i < n; i++)
        find_ports(f, list[i], why, sizeof(why));
    return f->n ? 0 : err_config(err, "libibverbs finds no port to use%s", why);
}

/* The Elastic Fabric Adapter of AWS has datagrams of its own (SRD) and no reliable queue pairs, and
 * its ports no LID.  "": another driver. */
static const char *only_by_plugin(const char *device)
{
    char *path = mem_printf("%s/class/infiniband/%s/device/driver", host_sys(), device),
         to[256] = "";
    ssize_t n = readlink(path, to, sizeof(to) - 1);

    free(path);
    to[n > 0 ? n : 0] = '\0';
    const char *name = strrchr(to, '/');
    return name && !strcmp(name, "/efa") ? "efa" : "";
}

static int open_chosen(struct verbs_port *p, struct verbs_device *device, int number,
                       struct err *err)
{
    p->number = number;
    if (*only_by_plugin(device->name))
        return err_config(err,
                          "%s is an Elastic Fabric Adapter (driver efa): it has no reliable queue "
                          "pairs, so that transport verbs cannot use it; NCCL reaches it by the "
                          "plugin aws-ofi-nccl over libfabric (-t nccl --path plugin:Libfabric)",
                          device->name);
    p->hca = verbs.open_device(device);
    if (!p->hca)
        return err_io(err, "%s: cannot be opened: %s", device->name, strerror(errno));
    int rc = verbs.query_device(p->hca, &p->device);
    if (!rc)
        rc = verbs.query_port(p->hca, (uint8_t)number, &p->attr);
    if (rc)
        return err_io(err, "%s:%d: cannot be asked: %s", device->name, number, strerror(rc));
    p->pd = verbs.alloc_pd(p->hca);
    if (!p->pd)
        return err_io(err, "%s: no protection domain: %s", device->name, strerror(errno));
    fcntl(p->hca->async_fd, F_SETFL, fcntl(p->hca->async_fd, F_GETFL) | O_NONBLOCK);
    return 0;
}

static int open_wished(struct verbs_port *p, const struct verbs_wish *wish, struct err *err)
{
    struct found f = {NULL, NULL, 0};
    int n = 0, rc = verbs_load(err), at = -1;
    struct verbs_device **list;

    if (rc < 0)
        return -1;
    list = verbs.get_device_list(&n);
    if (!list || !n)
        rc = err_config(err, "libibverbs finds no device: %s",
                        list ? "no driver with verbs is loaded, or no /dev/infiniband here"
                             : strerror(errno));
    if (rc == 0)
        rc = find_all(&f, list, n, err);
    if (rc == 0) {
        at = verbs_port_choose(f.c, f.n, wish, err);
        rc = at < 0 ? -1 : open_chosen(p, f.of[at], f.c[at].port, err);
    }
    if (list)
        verbs.free_device_list(list);
    free(f.c);
    free(f.of);
    return rc;
}

/* --- table of addresses --- */

/* Prefix length, bits, of an address on an interface of this host; 0: not known. */
static int prefix_of(const union verbs_gid *gid, const struct ifaddrs *all)
{
    bool ipv4 = verbs_gid_is_ipv4(gid);

    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || !a->ifa_netmask ||
            a->ifa_addr->sa_family != (ipv4 ? AF_INET : AF_INET6))
            continue;
        size_t at = ipv4 ? offsetof(struct sockaddr_in, sin_addr)
                         : offsetof(struct sockaddr_in6, sin6_addr),
               len = ipv4 ? 4 : 16;
        const unsigned char *mask = (const unsigned char *)a->ifa_netmask + at;
        int bits = 0;
        if (memcmp((const unsigned char *)a->ifa_addr + at, gid->raw + 16 - len, len) != 0)
            continue;
        for (size_t i = 0; i < len; i++)
            bits += __builtin_popcount(mask[i]);
        return bits;
    }
    return 0;
}

/* Before libibverbs 1.11: read the type from sysfs. */
static int old_gid(const struct verbs_port *p, int index, struct verbs_gid_entry *e)
{
    static const union verbs_gid none;
    char path[VERBS_PATH + 64], *text = NULL;
    size_t len;

    if (verbs.query_gid(p->hca, (uint8_t)p->number, index, &e->gid) ||
        !memcmp(&e->gid, &none, sizeof(none)))
        return -1;
    snprintf(path, sizeof(path), "%s/ports/%d/gid_attrs/types/%d", p->hca->device->ibdev_path,
             p->number, index);
    if (file_read(&text, &len, path, 4096, NULL) < 0)
        text = NULL;
    e->index = (uint32_t)index;
    e->type = text && strstr(text, "v2") ? VERBS_GID_ROCE_V2 : VERBS_GID_ROCE_V1;
    e->ifindex = 0;
    free(text);
    return 0;
}

static int get_gid(const struct verbs_port *p, int index, struct verbs_gid_entry *e)
{
    if (!verbs.query_gid_ex)
        return old_gid(p, index, e);
    return verbs.query_gid_ex(p->hca, (uint32_t)p->number, (uint32_t)index, e, 0, sizeof(*e)) ? -1
                                                                                              : 0;
}

static void read_gids(struct verbs_address *a, const struct verbs_port *p)
{
    struct ifaddrs *all = NULL;
    uint32_t own = 0;

    if (getifaddrs(&all))
        all = NULL;
    for (int i = 0; i < p->attr.gids; i++) {
        struct verbs_gid_entry e = {.index = 0};
        if (get_gid(p, i, &e))
            continue;
        own = own ? own : e.ifindex;
        verbs_gid_add(a, &(struct verbs_gid_row){.gid = e.gid,
                                                 .index = i,
                                                 .type = a->ethernet ? (int)e.type : VERBS_GID_IB,
                                                 .prefix = prefix_of(&e.gid, all),
                                                 .other = e.ifindex != own});
    }
    if (all)
        freeifaddrs(all);
}

static int take_address(struct verbs_address *a, const struct verbs_port *p,
                        const struct verbs_opts *o, struct err *err)
{
    snprintf(a->who, sizeof(a->who), "%.60s port %d", p->hca->device->name, p->number);
    host_self(a->host, sizeof(a->host));
    a->ethernet = p->attr.link_layer == VERBS_LINK_ETHERNET;
    a->lid = p->attr.lid;
    if (o->pkey_index >= p->attr.pkeys)
        return err_config(err, "partition key %d: %s has %d", o->pkey_index, a->who, p->attr.pkeys);
    a->asked = o->gid_index;
    if (!a->ethernet && verbs.query_gid(p->hca, (uint8_t)p->number, 0, &a->first))
        return err_io(err, "%s has no GID 0: %s", a->who, strerror(errno));
    read_gids(a, p);
    if (a->asked >= p->attr.gids)
        return err_config(err, "--gid-index %d: %s has %d entries", a->asked, a->who, p->attr.gids);
    if (a->asked >= 0 && (!a->rows || a->row[0].index != a->asked))
        return err_config(err, "--gid-index %d: that entry of %s is empty", a->asked, a->who);
    if (a->ethernet && !a->rows)
        return err_config(err, "%s has no GID: its interface has no address", a->who);
    return 0;
}

static int tell(struct verbs_told *t, const struct verbs_port *p, const struct verbs_opts *o,
                struct err *err)
{
    snprintf(t->port, sizeof(t->port), "%.40s:%d", p->hca->device->name, p->number);
    t->mtu = p->attr.active_mtu;
    t->reads_in = p->device.max_qp_reads;
    t->reads_out = p->device.max_qp_init_reads;
    t->max_message = p->attr.max_message;
    return take_address(&t->address, p, o, err);
}

/* --- all ranks --- */

struct verbs_end verbs_port_end(const struct verbs_port *p, int rank)
{
    return (struct verbs_end){rank, p->all[rank].address.host, p->all[rank].port};
}

int verbs_port_mtu(const struct verbs_told *a, const struct verbs_told *b, int asked,
                   struct err *err)
{
    const struct verbs_told *least = a->mtu <= b->mtu ? a : b;

    if (asked > least->mtu)
        return err_config(err, "--path-mtu %d: %s on %s has %d", 128 << asked, least->address.who,
                          least->address.host, 128 << least->mtu);
    return asked ? asked : least->mtu;
}

/* Check each rank with the next and with the first, so that general mistakes are reported before
 * any measurement. */
static int try_paths(const struct verbs_port *p, const struct verbs_opts *o, struct err *err)
{
    int rc = 0;

    for (int i = 0; i < 2 && rc == 0 && p->size > 1; i++) {
        const struct verbs_told *mine = &p->all[p->rank],
                                *theirs = &p->all[i ? 0 : (p->rank + 1) % p->size];
        struct verbs_path path;
        rc = verbs_gid_path(&path, &mine->address, &theirs->address, err);
        if (rc == 0 && verbs_port_mtu(mine, theirs, o->path_mtu, err) < 0)
            rc = -1;
    }
    return rc;
}

static int local_of(struct world *w, int *local, struct err *err)
{
    struct gpu_binding *all;
    int rc = gpu_binding_trade(w, &all, err);

    *local = 0;
    for (int r = 0; rc == 0 && r < w->rank; r++)
        *local += !strcmp(all[r].host, all[w->rank].host);
    free(all);
    return rc;
}

int verbs_port_open(struct verbs_port *p, const struct verbs_opts *o, const char *nearest,
                    struct world *w, struct err *err)
{
    struct verbs_wish wish = {.list = o->hca, .filter = o->nccl_hca, .nearest = nearest};
    struct verbs_told mine;
    void *all;

    memset(&mine, 0, sizeof(mine));
    *p = (struct verbs_port){
        .rank = w->rank, .size = w->size, .pkey_index = (uint16_t)o->pkey_index};
    if (local_of(w, &wish.local, err) < 0)
        return -1;
    int rc = open_wished(p, &wish, err);
    if (rc == 0)
        rc = tell(&mine, p, o, err);
    if (w->agree(w, rc, err) < 0)
        return -1;
    rc = world_trade(w, &mine, sizeof(mine), &all, err);
    p->all = all;
    return rc < 0 ? -1 : w->agree(w, try_paths(p, o, err), err);
}

void verbs_port_close(struct verbs_port *p)
{
    if (p->pd)
        verbs.dealloc_pd(p->pd);
    if (p->hca)
        verbs.close_device(p->hca);
    free(p->all);
    *p = (struct verbs_port){.hca = NULL};
}

int verbs_port_events(const struct verbs_port *p, struct err *err)
{
    struct verbs_event e;
    int rc = 0;

    while (verbs.get_async_event(p->hca, &e) == 0) {
        bool others = e.type == VERBS_EVENT_PORT_ERROR && e.port != p->number;
        const char *words = others ? NULL : verbs_words_event(e.type);
        const struct verbs_end me = verbs_port_end(p, p->rank);
        if (words && rc == 0)
            rc = err_io(err, "rank %d (%s %s): %s", me.rank, me.host, me.port, words);
        else
            log_debug("%s: %s", me.port, verbs.event_type_str(e.type));
        verbs.ack_async_event(&e);
    }
    return rc;
}
