/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/nccl/nccl_topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/xml.h"
#include "topo/host/gpu.h"
#include "topo/host/host_devices.h"
#include "topo/nccl/nccl_parts.h"
#include "topo/nccl/nccl_xml.h"

enum { DEPTHS = NCCL_XML_DEPTH_MAX, DEVICES_MAX = 4096 };

struct frame {
    char tag[16];
    int id; /* of a pci */
    char busid[16];
    unsigned class, device;
    bool told; /* holds devices or other PCI elements */
};

struct reader {
    struct frame open[DEPTHS];
    struct nccl_devices d;
    int pcis, cpus;
    uint64_t host;
    int numa, gpu; /* gpu: index of the one that is open, -1 */
};

static bool is(const struct frame *f, const char *tag)
{
    return !strcmp(f->tag, tag);
}

static unsigned hexadecimal(const char *text)
{
    return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

/* A device below the open elements; pci: depth of the one that it is, 0: none. */
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
    f->class = hexadecimal(xml_attribute(atts, "class"));
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
    if (!name || !*name) /* NCCL fills such in when it runs */
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
    xml_keep(d->guid, sizeof(d->guid), xml_attribute(atts, "guid"));
}

static void open_gpu(struct reader *r, struct xml *x)
{
    int pci = x->depth > 1 && is(&r->open[x->depth - 2], "pci") ? x->depth - 1 : 0;

    if (!pci) {
        xml_bad(x, "<gpu> that is not in a <pci>");
        return;
    }
    r->open[pci - 1].told = true;
    struct device *d = add(r, x, true, pci);
    if (d)
        d->links.links = 0; /* a GPU that is told has the links that are told */
    r->gpu = d ? r->d.devices - 1 : -1;
}

/* nvlink and AMD's xgmi: count links to a GPU, a switch or a CPU, by its PCI class. */
static void open_link(struct reader *r, struct xml *x, const char **atts)
{
    struct gpu *g = r->gpu < 0 ? NULL : &r->d.device[r->gpu].links;
    const char *class = xml_attribute(atts, "tclass"), *target = xml_attribute(atts, "target");
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
    to->kind = !class                                                     ? LINK_END_UNKNOWN
               : !strncmp(class, "0x068001", 8)                           ? LINK_END_CPU
               : !strncmp(class, "0x068000", 8)                           ? LINK_END_SWITCH
               : !strncmp(class, "0x03", 4) || !strncmp(class, "0x12", 4) ? LINK_END_GPU
                                                                          : LINK_END_UNKNOWN;
    host_busid(to->busid, target); /* "fffffff:ff:ff.0" is hidden */
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
        open_gpu(r, x);
    } else if (is(f, "net")) {
        open_net(r, x, atts);
    } else if (is(f, "nvlink") || is(f, "xgmi")) {
        open_link(r, x, atts);
    }
}

/* PCI elements of clouds' files hold nothing: the class says what they are. */
static void on_end(struct xml *x, const char *name, const char *text)
{
    struct reader *r = x->user;
    const struct frame *f = &r->open[x->depth - 1];
    unsigned class = f->class >> 8;

    (void)text;
    if (!strcmp(name, "gpu"))
        r->gpu = -1;
    if (!is(f, "pci") || f->told)
        return;
    if (class == 0x0302 || class == 0x0300 || class == 0x1200 || class == 0x0380)
        add(r, x, true, x->depth);
    else if (f->class >> 16 == 0x02)
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
        nccl_topo_fill(t, host, &r->d, path);
    free(r->d.device);
    free(r);
    return rc;
}

int nccl_topo_read(struct topo *t, int host, const char *path, struct err *err)
{
    return host_read(t, host, path, NCCL_XML_BYTES_MAX, nccl_topo_parse, err);
}
