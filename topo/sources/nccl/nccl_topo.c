/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_topo.c - facts about a host in a topology file of NCCL or RCCL: GPUs with links, NICs with
 * speed, rail and plane, and nearest NICs.
 *
 * Reads the same files as nccl_xml.c, which finds NCCL's own paths.  This reader is lenient:
 * accepts files of clouds that name devices by PCI class only, RCCL's (version 2, xgmi), and dumps
 * of several fused hosts, which are known only by a hash ("0x51a8d39608097d00"). */
#include "topo/sources/nccl/nccl_log.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/topo.h"
#include "topo/xml.h"

enum { CHAIN = 16 };

/* GPU or port of a NIC, and the PCI elements above it, starting at the CPU. */
struct device {
    bool gpu;
    uint64_t host;
    int cpu, numa, chain[CHAIN], links_of_chain;
    char busid[16], name[48];
    unsigned pci_device;
    int port, rail, plane;
    long long Mbps;
    int dev;          /* GPU: NVML's index; -1: not told (a cloud's file) */
    struct gpu links; /* links and remotes of a GPU */
};

struct nccl_devices {
    struct device *device;
    int devices, elements; /* elements: number in the file */
};

/* --- into the topology --- */

static enum gpu_path path_between(const struct device *a, const struct device *b)
{
    int same = 0;

    if (a->cpu != b->cpu)
        return a->numa >= 0 && a->numa == b->numa ? PATH_NODE : PATH_SYS;
    while (same < a->links_of_chain && same < b->links_of_chain && a->chain[same] == b->chain[same])
        same++;
    if (!same)
        return PATH_PHB;
    return a->links_of_chain - same <= 1 && b->links_of_chain - same <= 1 ? PATH_PIX : PATH_PXB;
}

struct fill {
    struct topo *t;
    int host;
    struct device **gpu, **net;
    int gpus, nets, *nic; /* nic: index into t->nic for each net */
};

/* The order of NVML is that of PCI addresses, unless the file tells another. */
static int by_number(const void *x, const void *y)
{
    const struct device *a = *(struct device *const *)x, *b = *(struct device *const *)y;

    return a->dev != b->dev ? (a->dev > b->dev) - (a->dev < b->dev) : strcmp(a->busid, b->busid);
}

/* Set a rail or plane that no other source gave. */
static void number(int *to, enum source *source, int told)
{
    if (*to >= 0 || told < 0)
        return;
    *to = told;
    *source = SOURCE_NCCL;
}

static int host_find_nic_busid(const struct topo *t, int host, const char *busid)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && *busid && !strcmp(t->nic[i].busid, busid))
            return i;
    return -1;
}

static void fill_nic(struct fill *f, int i)
{
    const struct device *d = f->net[i];
    char name[32];
    int at = d->name[0] ? -1 : host_find_nic_busid(f->t, f->host, d->busid);

    if (d->name[0])
        snprintf(name, sizeof(name), d->port > 1 ? "%.26s:%d" : "%.31s", d->name, d->port);
    else
        snprintf(name, sizeof(name), "%s", d->busid);
    if (at < 0) {
        host_nic(f->t, f->host, name, !d->name[0] || strncmp(d->name, "eth", 3) != 0, SOURCE_NCCL);
        at = host_find_nic(f->t, f->host, name);
    }
    struct nic *n = &f->t->nic[at];
    if (!n->busid[0])
        memcpy(n->busid, d->busid, sizeof(n->busid));
    if (n->rate_Bps <= 0 && d->Mbps > 0)
        n->rate_Bps = units_in(FOREIGN_NCCL_SPEED, (double)d->Mbps);
    n->numa = n->numa < 0 ? d->numa : n->numa;
    number(&n->rail, &n->rail_source, d->rail);
    number(&n->plane, &n->plane_source, d->plane);
    f->nic[i] = at;
}

static void fill_gpu(struct fill *f, int i)
{
    const struct device *d = f->gpu[i];
    struct gpu *g = host_gpu(f->t, f->host, d->dev, d->busid);

    if (!g)
        return;
    if (g->links < 0 && d->links.links >= 0) {
        g->links = d->links.links;
        g->counted = true;
        g->remotes = d->links.remotes;
        memcpy(g->remote, d->links.remote, sizeof(g->remote));
    }
    if (!g->model[0] && d->pci_device)
        snprintf(g->model, sizeof(g->model), "PCI device %04x", d->pci_device & 0xffff);
}

static void fill_paths(struct fill *f)
{
    for (int i = 0; i < f->gpus; i++)
        for (int k = 0; k < f->gpus; k++) {
            struct gpu *peer = host_gpu(f->t, f->host, -1, f->gpu[k]->busid);
            int index = peer ? peer->index : -1;
            struct gpu *g = host_gpu(f->t, f->host, -1, f->gpu[i]->busid);
            if (!g || index < 0)
                continue;
            while (g->paths <= index)
                g->path[g->paths++] = -1;
            if (g->path[index] < 0)
                g->path[index] = i == k ? PATH_SELF : path_between(f->gpu[i], f->gpu[k]);
        }
}

/* Nearest NIC; ties: the one used by the fewest GPUs.  A NIC across CPUs is not near. */
static int nearest(const struct fill *f, const struct device *gpu)
{
    int best = -1, best_key = -1;

    for (int i = 0; i < f->nets; i++) {
        int path = path_between(gpu, f->net[i]), used = 0;
        for (int e = 0; e < f->t->endpoints; e++)
            used += f->t->endpoint[e].nic == f->nic[i];
        int key = (PATH_SYS - path) * 1000 + 999 - (used < 999 ? used : 999);
        if ((path < PATH_SYS || f->nets == 1) && key > best_key) {
            best = f->nic[i];
            best_key = key;
        }
    }
    return best;
}

static void fill_endpoints(struct fill *f)
{
    for (int e = 0; e < f->t->endpoints; e++)
        for (int i = 0; i < f->gpus; i++) {
            struct endpoint *p = &f->t->endpoint[e];
            if (p->place.at[LEVEL_HOST] != f->host || strcmp(p->busid, f->gpu[i]->busid) != 0)
                continue;
            p->numa = p->numa < 0 ? f->gpu[i]->numa : p->numa;
            p->nic = p->nic < 0 ? nearest(f, f->gpu[i]) : p->nic;
        }
}

/* Report a flat tree: everything at the host bridge of CPUs without a NUMA node.  No real board of
 * this size is so. */
static void say_flat(const struct fill *f)
{
    bool flat = f->gpus > 1 && f->nets > 0;
    char what[300];

    for (int i = 0; i < f->gpus; i++)
        flat = flat && !f->gpu[i]->links_of_chain && f->gpu[i]->numa < 0;
    for (int i = 0; i < f->nets; i++)
        flat = flat && !f->net[i]->links_of_chain;
    snprintf(what, sizeof(what), "PCIe switches of %.200s", f->t->host[f->host].name);
    if (flat)
        topo_unseen(f->t, what,
                    "a virtual machine shows the PCIe tree flat: %d GPUs and %d NICs on one host "
                    "bridge, so that NCCL cannot know which NIC is near a GPU; a topology file "
                    "with the real switches (NCCL_TOPO_FILE) tells it",
                    f->gpus, f->nets);
}

static void fill_host(const struct nccl_devices *r, struct topo *t, int host, uint64_t hash)
{
    struct fill f = {.t = t, .host = host};

    for (int i = 0; i < r->devices; i++) {
        if (r->device[i].host != hash)
            continue;
        if (!r->device[i].gpu)
            MEM_PUSH(f.net, f.nets) = &r->device[i];
        else
            MEM_PUSH(f.gpu, f.gpus) = &r->device[i];
    }
    bool numbered = true; /* all or none, so that numbers stay apart */
    for (int i = 0; i < f.gpus; i++)
        numbered = numbered && f.gpu[i]->dev >= 0 && f.gpu[i]->dev < GPU_PEERS;
    for (int i = 0; i < f.gpus && !numbered; i++)
        f.gpu[i]->dev = -1;
    if (f.gpus)
        qsort(f.gpu, (size_t)f.gpus, sizeof(*f.gpu), by_number);
    if (f.gpus > GPU_PEERS) {
        topo_unseen(t, "GPUs", "%d on host %.200s, of which %d are kept", f.gpus,
                    t->host[host].name, GPU_PEERS);
        f.gpus = GPU_PEERS;
    }
    f.nic = mem_calloc((size_t)f.nets + 1, sizeof(*f.nic));
    for (int i = 0; i < f.nets; i++)
        fill_nic(&f, i);
    for (int i = 0; i < f.gpus; i++)
        fill_gpu(&f, i);
    fill_paths(&f);
    host_finish(t, host, SOURCE_NCCL);
    fill_endpoints(&f);
    say_flat(&f);
    free(f.gpu);
    free(f.net);
    free(f.nic);
}

/* Put all GPUs with links into one domain, unless another source gave domains: NCCL fuses only
 * hosts of the same NVLink domain. */
static void join_domain(struct topo *t, const char *name)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_DOMAIN] >= 0 &&
            t->endpoint[i].source[LEVEL_DOMAIN] != SOURCE_NCCL)
            return;
    topo_clear_level(t, LEVEL_DOMAIN);
    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        if (e->gpu >= 0 && gpu_links_up(&t->gpu[e->gpu]) > 0)
            topo_place(t, e, LEVEL_DOMAIN, name, SOURCE_NCCL);
    }
    topo_default_tiers(t);
}

/* Fill `host`; other hosts of a fused dump are added. */
static void fill_topo(struct topo *t, int host, const struct nccl_devices *r, const char *path)
{
    uint64_t *hash = NULL;
    int hosts = 0;

    for (int i = 0; i < r->devices; i++) {
        int k = 0;
        while (k < hosts && hash[k] != r->device[i].host)
            k++;
        if (k == hosts)
            MEM_PUSH(hash, hosts) = r->device[i].host;
    }
    char *own = mem_strdup(t->host[host].name);
    for (int k = 0; k < hosts; k++) {
        char *name = mem_printf("%.200s-%d", own, k + 1);
        fill_host(r, t, k ? topo_add_host(t, name) : host, hash[k]);
        free(name);
    }
    if (hosts > 1)
        join_domain(t, own);
    free(own);
    if (hosts > 1)
        topo_unseen(
            t, "host names",
            "%.200s is a dump of %d hosts, whose names NCCL does not tell (and which it does "
            "not take as NCCL_TOPO_FILE)",
            path, hosts);
    else if (r->elements > NCCL_OWN_XML_NODES)
        topo_unseen(t, "NCCL_TOPO_FILE",
                    "%.200s has %d elements, and NCCL takes %d of a host (nccl issue 2160)", path,
                    r->elements, NCCL_OWN_XML_NODES);
    free(hash);
}

/* --- the file --- */

enum { DEPTHS = NCCL_XML_DEPTH_MAX, DEVICES_MAX = 4096 };

struct frame {
    char tag[16];
    int id; /* pci only */
    char busid[16];
    unsigned pci_class, device;
    bool told; /* contains devices or other PCI elements */
};

struct reader {
    struct frame open[DEPTHS];
    struct nccl_devices d;
    int pcis, cpus;
    uint64_t host;
    int numa, gpu; /* gpu: index of the open GPU; -1: no GPU is open */
};

static bool is(const struct frame *f, const char *tag)
{
    return !strcmp(f->tag, tag);
}

static unsigned hexadecimal(const char *text)
{
    return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

/* Add a device below the open elements; pci: depth of the device's own pci element, 0: missing. */
static struct device *add(struct reader *r, struct xml *x, bool gpu, int pci)
{
    if (r->d.devices == DEVICES_MAX) {
        xml_bad(x, "more than %d devices", DEVICES_MAX);
        return NULL;
    }
    struct device d = {.gpu = gpu,
                       .host = r->host,
                       .cpu = r->cpus,
                       .numa = r->numa,
                       .port = 1,
                       .dev = -1,
                       .rail = -1,
                       .plane = -1};
    for (int k = 0; k < pci - 1; k++)
        if (is(&r->open[k], "pci") && d.links_of_chain < CHAIN)
            d.chain[d.links_of_chain++] = r->open[k].id;
    if (pci) {
        memcpy(d.busid, r->open[pci - 1].busid, sizeof(d.busid));
        d.pci_device = r->open[pci - 1].device;
    }
    gpu_init(&d.links);
    MEM_PUSH(r->d.device, r->d.devices) = d;
    return &r->d.device[r->d.devices - 1];
}

static void open_pci(struct reader *r, struct xml *x, struct frame *f, const char **atts)
{
    const char *busid = xml_attribute(atts, "busid");

    if (!host_busid(f->busid, busid))
        xml_bad(x, "pci busid=\"%.40s\" is no PCI address", busid ? busid : "");
    f->id = ++r->pcis;
    f->pci_class = hexadecimal(xml_attribute(atts, "class"));
    f->device = hexadecimal(xml_attribute(atts, "device"));
    for (int k = 0; k < x->depth - 1; k++)
        r->open[k].told = r->open[k].told || is(&r->open[k], "pci");
}

static void open_net(struct reader *r, struct xml *x, const char **atts)
{
    const char *name = xml_attribute(atts, "name");
    int pci = x->depth > 2 && is(&r->open[x->depth - 3], "pci") ? x->depth - 2 : 0;

    if (x->depth < 3 || !is(&r->open[x->depth - 2], "nic")) {
        xml_bad(x, "<net> that is not in a <nic>");
        return;
    }
    if (!name || !*name) /* placeholder that NCCL fills at run time */
        return;
    if (pci)
        r->open[pci - 1].told = true;
    struct device *d = add(r, x, false, pci);
    if (!d)
        return;
    xml_keep(d->name, sizeof(d->name), name);
    d->Mbps = xml_whole(x, atts, "speed", INT32_MIN, 1 << 30, 0);
    d->port = (int)xml_whole(x, atts, "port", 0, 255, 1);
    d->rail = (int)xml_whole(x, atts, "rail", -1, 65534, -1);
    d->plane = (int)xml_whole(x, atts, "plane", -1, 65534, -1);
}

static void open_gpu(struct reader *r, struct xml *x, const char **atts)
{
    int pci = x->depth > 1 && is(&r->open[x->depth - 2], "pci") ? x->depth - 1 : 0;

    if (!pci) {
        xml_bad(x, "<gpu> that is not in a <pci>");
        return;
    }
    r->open[pci - 1].told = true;
    struct device *d = add(r, x, true, pci);
    if (d) {
        d->links.links = 0; /* only the listed links count */
        d->dev = (int)xml_whole(x, atts, "dev", -1, 1 << 16, -1);
    }
    r->gpu = d ? r->d.devices - 1 : -1;
}

/* Read nvlink and AMD's xgmi: `count` links to a GPU, a switch or a CPU, by its PCI class. */
static void open_link(struct reader *r, struct xml *x, const char **atts)
{
    struct gpu *g = r->gpu < 0 ? NULL : &r->d.device[r->gpu].links;
    const char *pci_class = xml_attribute(atts, "tclass"), *target = xml_attribute(atts, "target");
    int count = (int)xml_whole(x, atts, "count", 0, GPU_LINKS, 0);

    if (!g || !is(&r->open[x->depth - 2], "gpu") || x->failed)
        return;
    if (g->links + count > GPU_LINKS) {
        xml_bad(x, "more than %d links of a GPU", GPU_LINKS);
        return;
    }
    g->links += count;
    if (!count || g->remotes == GPU_LINKS)
        return;
    struct gpu_remote *to = &g->remote[g->remotes++];
    memset(to, 0, sizeof(*to));
    to->links = count;
    to->kind = !pci_class                           ? LINK_END_UNKNOWN
               : !strncmp(pci_class, "0x068001", 8) ? LINK_END_CPU
               : !strncmp(pci_class, "0x068000", 8) ? LINK_END_SWITCH
               : !strncmp(pci_class, "0x03", 4) || !strncmp(pci_class, "0x12", 4)
                   ? LINK_END_GPU
                   : LINK_END_UNKNOWN;
    host_busid(to->busid, target); /* "fffffff:ff:ff.0": hidden */
    if (!strncmp(to->busid, "fff", 3))
        to->busid[0] = '\0';
}

static void on_start(struct xml *x, const char *name, const char **atts)
{
    struct reader *r = x->user;
    struct frame *f = &r->open[x->depth - 1];

    r->d.elements++;
    memset(f, 0, sizeof(*f));
    snprintf(f->tag, sizeof(f->tag), "%.15s", name);
    if (x->depth == 1 && !is(f, "system"))
        xml_bad(x, "<%.40s> where <system> of NCCL's topology is needed", name);
    if (is(f, "cpu")) {
        const char *hash = xml_attribute(atts, "host_hash");
        r->host = hash ? strtoull(hash, NULL, 16) : 0;
        r->numa = (int)xml_whole(x, atts, "numaid", -1, 65534, -1);
        r->cpus++;
    } else if (is(f, "pci")) {
        open_pci(r, x, f, atts);
    } else if (is(f, "gpu")) {
        open_gpu(r, x, atts);
    } else if (is(f, "net")) {
        open_net(r, x, atts);
    } else if (is(f, "nvlink") || is(f, "xgmi")) {
        open_link(r, x, atts);
    }
}

/* Handle empty PCI elements, as in files of clouds: their class gives the kind of device. */
static void on_end(struct xml *x, const char *name, const char *text)
{
    struct reader *r = x->user;
    const struct frame *f = &r->open[x->depth - 1];
    unsigned pci_class = f->pci_class >> 8;

    (void)text;
    if (!strcmp(name, "gpu"))
        r->gpu = -1;
    if (!is(f, "pci") || f->told)
        return;
    if (pci_class == 0x0302 || pci_class == 0x0300 || pci_class == 0x1200 || pci_class == 0x0380)
        add(r, x, true, x->depth);
    else if (f->pci_class >> 16 == 0x02)
        add(r, x, false, x->depth);
}

int nccl_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err)
{
    static const struct xml_reader reader = {.what = "NCCL's topology",
                                             .bytes = NCCL_XML_BYTES_MAX,
                                             .elements = NCCL_XML_NODES_MAX,
                                             .depths = DEPTHS,
                                             .start = on_start,
                                             .end = on_end};
    struct reader *r = mem_calloc(1, sizeof(*r));

    r->gpu = -1;
    int rc = xml_read(&reader, r, text, len, path, err);
    if (rc == 0 && !r->d.devices)
        rc = err_data(err, "%s: neither a GPU nor a NIC in it", path);
    if (rc == 0)
        fill_topo(t, host, &r->d, path);
    free(r->d.device);
    free(r);
    return rc;
}
