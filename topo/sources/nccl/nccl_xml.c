/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_xml.c - reader of the topology file.  Nesting: system > cpu > pci > pci ... > gpu > nvlink,
 * c2c; nic > net.  A pci element is a switch, a GPU or a NIC by its contents.  Links that name
 * their other end (nvlink, pcilink) wait until all elements are read. */
#include "topo/sources/nccl/nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/sources/nccl/nccl_xml_impl.h"
#include "topo/xml.h"

/* --- graph, with the link speeds that NCCL assumes (src/graph/topo.h, topo.cc) --- */

/* Add a link, in both directions unless one_way. */
static void machine_join(struct machine *m, int a, int b, enum nccl_path_type type, double Bps,
                         bool one_way)
{
    struct machine_node *n = &m->node[a];
    int i = 0;

    while (i < n->links && (n->link[i].to != b || n->link[i].type != type))
        i++;
    if (i == n->links)
        MEM_PUSH(n->link, n->links) = (struct machine_link){.to = b, .type = (unsigned char)type};
    n->link[i].Bps += Bps;
    if (!one_way)
        machine_join(m, b, a, type, Bps, true);
}

static void machine_free(struct machine *m)
{
    for (int i = 0; i < m->nodes; i++)
        free(m->node[i].link);
    free(m->node);
    memset(m, 0, sizeof(*m));
}

/* Speeds assumed by NCCL, GB/s per direction: between the CPUs of a host (Intel by model, others
 * by maker), over PCIe (names as in sysfs), of one NVLink by compute capability. */
static double machine_cpu_speed(const char *arch, const char *vendor, long long family,
                                long long model)
{
    if (!arch)
        return 5000;
    if (!strncmp(arch, "arm64", 5))
        return 6;
    if (!strncmp(arch, "ppc64", 5))
        return 32;
    if (vendor && !strcmp(vendor, "AuthenticAMD"))
        return 16;
    if (vendor && !strcmp(vendor, "GenuineIntel"))
        return family != 6 ? 6 : model >= 0xcf ? 40 : model >= 0x8f ? 22 : model >= 0x55 ? 10 : 6;
    if (vendor && (!strcmp(vendor, "CentaurHauls") || !strcmp(vendor, "  Shanghai  ")))
        return family == 7 && model == 0x5b ? 9 : 6;
    return 5000;
}

/* Unit of the table: 100 Mb/s per lane.  PCIe 3 is the default. */
static double machine_pci_speed(const char *speed, long long width)
{
    static const struct {
        const char *begins;
        int rate;
    } gen[] = {{"2.5 GT/s", 15},       {"5 GT/s", 30},          {"8 GT/s", 60},
               {"16 GT/s", 120},       {"32 GT/s", 240},        {"5.0 GT/s PCIe", 30},
               {"8.0 GT/s PCIe", 60},  {"16.0 GT/s PCIe", 120}, {"32.0 GT/s PCIe", 240},
               {"64.0 GT/s PCIe", 480}};
    int rate = 60;

    for (size_t i = 0; speed && i < sizeof(gen) / sizeof(*gen); i++)
        if (!strncmp(speed, gen[i].begins, strlen(gen[i].begins)))
            rate = gen[i].rate;
    return (double)(width ? width : 16) * rate / 80;
}

/* Broadcom's PCIe 4 and 5 switches appear as two levels but are one.  Returns 4 or 5 if the device
 * is such a switch of this level (0, 1), else 0. */
static int machine_broadcom(uint64_t device, int level)
{
    uint64_t id = device & ~0xfffull;

    return id == 0x1000c0101000a000ull                                 ? 4
           : id == (0x1000c03010000000ull | (unsigned)level * 0x1000u) ? 5
                                                                       : 0;
}

static double machine_nvlink_speed(int sm)
{
    return sm >= 100 ? 40.1 : sm >= 90 ? 20.6 : sm == 86 ? 12 : sm >= 70 ? 20 : sm >= 60 ? 18 : 20;
}

/* --- the file --- */

static const double GB = 1e9, LOCAL_Bps = 5000e9;

enum tag {
    TAG_OTHER,
    TAG_SYSTEM,
    TAG_CPU,
    TAG_PCI,
    TAG_NIC,
    TAG_NET,
    TAG_GPU,
    TAG_NVLINK,
    TAG_C2C,
    TAG_PCILINK,
    TAG_COUNT
};
static const char *const tag_name[TAG_COUNT] = {"",    "system", "cpu",    "pci", "nic",
                                                "net", "gpu",    "nvlink", "c2c", "pcilink"};

/* Open element. */
struct frame {
    enum tag tag;
    int node, above; /* node of the element, and parent node; -1: no node */
    bool bridge;     /* pci: the class is a bridge */
    double Bps;      /* pci: speed to the parent */
    uint64_t device; /* vendor, device and subsystem of a switch; 0: do not merge */
    char busid[24];
};

struct waiting { /* link that names the other end by address */
    int from;
    enum nccl_path_type type;
    double Bps;
    uint64_t host;
    char target[24];
};

struct reader {
    struct nccl_paths *p;
    struct machine m;
    struct frame stack[NCCL_XML_DEPTH_MAX];
    uint64_t host;
    int cpu;         /* node of the current cpu element */
    double *cpu_Bps; /* by CPU: speed between CPUs of this kind */
    struct waiting *wait;
    int waits;
    struct xml *xml;
};

static uint64_t hexadecimal(const char *text)
{
    return text ? strtoull(text, NULL, 16) : 0;
}

/* Copy an address in lower case: PCI addresses are compared as texts. */
static void keep_busid(char *to, size_t size, const char *from)
{
    xml_keep(to, size, from);
    for (char *c = to; *c; c++)
        if (*c >= 'A' && *c <= 'F')
            *c += 'a' - 'A';
}

static int add_node(struct reader *r, enum machine_kind kind, int index, const char *busid)
{
    if (r->m.nodes >= MACHINE_NODES_MAX || index >= NCCL_XML_KIND_MAX) {
        xml_bad(r->xml, "more devices than the %d of a kind and %d in all that are possible",
                NCCL_XML_KIND_MAX, MACHINE_NODES_MAX);
        return -1;
    }
    struct machine_node n = {.kind = kind, .index = index, .host = r->host};
    keep_busid(n.busid, sizeof(n.busid), busid);
    MEM_PUSH(r->m.node, r->m.nodes) = n;
    return r->m.nodes - 1;
}

static void open_cpu(struct reader *r, struct frame *f, const char **atts)
{
    const char *vendor = xml_attribute(atts, "vendor");

    r->host = hexadecimal(xml_attribute(atts, "host_hash"));
    f->node = r->cpu = add_node(r, MACHINE_CPU, r->m.cpus, NULL);
    if (f->node < 0)
        return;
    if (!r->m.cpus)
        r->m.amd = vendor && !strcmp(vendor, "AuthenticAMD");
    double speed = machine_cpu_speed(xml_attribute(atts, "arch"), vendor,
                                     xml_whole(r->xml, atts, "familyid", 0, 1 << 20, 0),
                                     xml_whole(r->xml, atts, "modelid", 0, 1 << 20, 0));
    MEM_PUSH(r->cpu_Bps, r->m.cpus) = speed * GB;
}

static uint64_t pci_device(const char **atts)
{
    static const char *const part[] = {"vendor", "device", "subsystem_vendor", "subsystem_device"};
    uint64_t id = 0;

    for (int i = 0; i < 4; i++)
        id = id << 16 | (hexadecimal(xml_attribute(atts, part[i])) & 0xffff);
    return id;
}

static void open_pci(struct reader *r, struct frame *f, struct frame *up, const char **atts)
{
    const char *pci_class = xml_attribute(atts, "class");

    f->Bps = machine_pci_speed(xml_attribute(atts, "link_speed"),
                               xml_whole(r->xml, atts, "link_width", 0, 64, 0)) *
             GB;
    f->bridge = !pci_class ||
                (strncmp(pci_class, "0x068000", 8) != 0 && strncmp(pci_class, "0x068001", 8) != 0 &&
                 strncmp(pci_class, "0x03", 4) != 0 && strncmp(pci_class, "0x02", 4) != 0);
    keep_busid(f->busid, sizeof(f->busid), xml_attribute(atts, "busid"));
    f->device = pci_device(atts);
    if (up->tag == TAG_PCI && up->node < 0 && up->bridge && up->above >= 0) {
        up->node = add_node(r, MACHINE_PCI, 0, up->busid);
        if (up->node >= 0)
            machine_join(&r->m, up->node, up->above, NCCL_PATH_PIX, up->Bps, false);
    }
    f->above = up->node;
    int gen = up->tag == TAG_PCI ? machine_broadcom(up->device, 0) : 0;
    if (gen && f->bridge && machine_broadcom(f->device, 1) == gen) {
        f->node = up->node;
        f->device = 0;
    }
}

static void open_nic(struct reader *r, struct frame *f, struct frame *up)
{
    bool bare = up->tag == TAG_CPU; /* not in the PCI tree */
    int at = bare ? up->node : up->tag == TAG_PCI ? up->above : -1;

    if (at < 0)
        return;
    f->node = add_node(r, MACHINE_NIC, 0, up->busid);
    if (f->node >= 0)
        machine_join(&r->m, f->node, at, NCCL_PATH_PIX, bare ? LOCAL_Bps : up->Bps, false);
}

static void open_net(struct reader *r, struct frame *f, struct frame *up, const char **atts)
{
    struct nccl_xml_net n = {.host = r->host};

    if (up->tag != TAG_NIC || up->node < 0 || !xml_attribute(atts, "dev") ||
        !xml_whole(r->xml, atts, "net", 0, 1, 1))
        return;
    long long mbps = xml_whole(r->xml, atts, "speed", INT32_MIN, 1 << 30, 0);
    n.dev = (int)xml_whole(r->xml, atts, "dev", 0, 1 << 16, 0);
    n.Bps = units_in(FOREIGN_NCCL_SPEED, (double)(mbps > 0 ? mbps : 10000));
    n.gdr = xml_whole(r->xml, atts, "gdr", 0, 1, 0);
    n.rail = (int)xml_whole(r->xml, atts, "rail", -1, 1 << 16, -1);
    n.plane = (int)xml_whole(r->xml, atts, "plane", -1, 1 << 16, -1);
    xml_keep(n.name, sizeof(n.name), xml_attribute(atts, "name"));
    f->node = add_node(r, MACHINE_NET, r->p->nets, NULL);
    if (f->node < 0)
        return;
    MEM_PUSH(r->p->net, r->p->nets) = n;
    machine_join(&r->m, f->node, up->node, NCCL_PATH_NET, n.Bps, false);
}

static void open_gpu(struct reader *r, struct frame *f, struct frame *up, const char **atts)
{
    struct nccl_xml_gpu g = {.host = r->host};

    if (up->tag != TAG_PCI || up->above < 0 || !xml_attribute(atts, "rank"))
        return;
    g.rank = (int)xml_whole(r->xml, atts, "rank", -1, 1 << 20, -1);
    g.dev = (int)xml_whole(r->xml, atts, "dev", 0, 1 << 16, 0);
    g.sm = (int)xml_whole(r->xml, atts, "sm", 0, 10000, 0);
    g.gdr = xml_whole(r->xml, atts, "gdr", 0, 1, 0);
    snprintf(g.busid, sizeof(g.busid), "%.15s", up->busid);
    f->node = add_node(r, MACHINE_GPU, r->p->gpus, up->busid);
    if (f->node < 0)
        return;
    MEM_PUSH(r->p->gpu, r->p->gpus) = g;
    machine_join(&r->m, f->node, up->above, NCCL_PATH_PIX, up->Bps, false);
}

static void open_nvlink(struct reader *r, struct frame *up, const char **atts)
{
    const char *pci_class = xml_attribute(atts, "tclass"), *target = xml_attribute(atts, "target");
    int count = (int)xml_whole(r->xml, atts, "count", 0, 1024, 0);

    if (up->tag != TAG_GPU || up->node < 0 || !pci_class)
        return;
    struct nccl_xml_gpu *g = &r->p->gpu[r->m.node[up->node].index];
    double Bps = count * machine_nvlink_speed(g->sm) * GB;
    g->nvlinks += count;
    if (!strncmp(pci_class, "0x03", 4)) {
        struct waiting w = {.from = up->node, .type = NCCL_PATH_NVL, .Bps = Bps, .host = r->host};
        keep_busid(w.target, sizeof(w.target), target);
        MEM_PUSH(r->wait, r->waits) = w;
        return;
    }
    bool bridge = !strncmp(pci_class, "0x068001", 8); /* POWER9 */
    if (!bridge && r->m.nvswitch < 0)
        r->m.nvswitch = add_node(r, MACHINE_NVS, 0, NULL);
    int to = bridge ? r->cpu : r->m.nvswitch;
    if (to >= 0)
        machine_join(&r->m, up->node, to, NCCL_PATH_NVL, Bps, false);
}

static void open_c2c(struct reader *r, struct frame *up, const char **atts)
{
    long long count = xml_whole(r->xml, atts, "count", 0, 1024, 0),
              bw = xml_whole(r->xml, atts, "bw", 0, 10000000, 0);

    if (up->tag == TAG_GPU && up->node >= 0 && r->cpu >= 0)
        machine_join(&r->m, up->node, r->cpu, NCCL_PATH_C2C,
                     (double)count * units_in(FOREIGN_NCCL_C2C, (double)bw), false);
}

static void open_pcilink(struct reader *r, struct frame *up, const char **atts)
{
    struct waiting w = {.from = up->node, .type = NCCL_PATH_LOC, .Bps = LOCAL_Bps, .host = r->host};

    if (up->tag != TAG_PCI || up->node < 0)
        return;
    keep_busid(w.target, sizeof(w.target), xml_attribute(atts, "target"));
    MEM_PUSH(r->wait, r->waits) = w;
}

static void on_start(struct xml *x, const char *name, const char **atts)
{
    struct reader *r = x->user;
    static struct frame none = {.node = -1, .above = -1};
    struct frame *up = x->depth > 1 ? &r->stack[x->depth - 2] : &none, *f = &r->stack[x->depth - 1];

    r->xml = x;
    *f = (struct frame){.node = -1, .above = -1};
    for (int t = TAG_SYSTEM; t < TAG_COUNT; t++)
        if (!strcmp(name, tag_name[t]))
            f->tag = (enum tag)t;
    if (x->depth == 1 && f->tag != TAG_SYSTEM)
        xml_bad(r->xml, "<%.40s> where <system> of NCCL's topology is needed", name);
    switch (x->failed ? TAG_OTHER : f->tag) {
    case TAG_CPU:
        open_cpu(r, f, atts);
        break;
    case TAG_PCI:
        open_pci(r, f, up, atts);
        break;
    case TAG_NIC:
        open_nic(r, f, up);
        break;
    case TAG_NET:
        open_net(r, f, up, atts);
        break;
    case TAG_GPU:
        open_gpu(r, f, up, atts);
        break;
    case TAG_NVLINK:
        open_nvlink(r, up, atts);
        break;
    case TAG_C2C:
        open_c2c(r, up, atts);
        break;
    case TAG_PCILINK:
        open_pcilink(r, up, atts);
        break;
    default:
        break;
    }
}

static void join_waiting(struct reader *r)
{
    for (int i = 0; i < r->waits; i++) {
        const struct waiting *w = &r->wait[i];
        enum machine_kind kind = w->type == NCCL_PATH_NVL ? MACHINE_GPU : MACHINE_PCI;
        for (int n = 0; n < r->m.nodes; n++)
            if (r->m.node[n].kind == kind && r->m.node[n].host == w->host &&
                !strcmp(r->m.node[n].busid, w->target))
                machine_join(&r->m, w->from, n, w->type, w->Bps, true);
    }
    for (int a = 0; a < r->m.nodes; a++)
        for (int b = 0; b < r->m.nodes && r->m.node[a].kind == MACHINE_CPU; b++)
            if (a != b && r->m.node[b].kind == MACHINE_CPU &&
                r->m.node[a].host == r->m.node[b].host)
                machine_join(&r->m, a, b, NCCL_PATH_SYS, r->cpu_Bps[r->m.node[a].index], true);
}

int nccl_xml_parse(struct nccl_paths *out, const char *text, size_t len, const char *path,
                   struct err *err)
{
    static const struct xml_reader reader = {.what = "NCCL's topology",
                                             .bytes = NCCL_XML_BYTES_MAX,
                                             .elements = NCCL_XML_NODES_MAX,
                                             .depths = NCCL_XML_DEPTH_MAX,
                                             .start = on_start};
    struct reader r = {.p = out, .m = {.nvswitch = -1}, .cpu = -1};

    memset(out, 0, sizeof(*out));
    int rc = xml_read(&reader, &r, text, len, path, err);
    if (rc == 0) {
        join_waiting(&r);
        nccl_paths_find(out, &r.m);
    } else {
        nccl_paths_free(out);
    }
    machine_free(&r.m);
    free(r.cpu_Bps);
    free(r.wait);
    return rc;
}

int nccl_xml_load(struct nccl_paths *out, const char *path, struct err *err)
{
    char *text;
    size_t len;

    memset(out, 0, sizeof(*out));
    if (file_read(&text, &len, path, NCCL_XML_BYTES_MAX, err) < 0)
        return -1;
    int rc = nccl_xml_parse(out, text, len, path, err);
    free(text);
    return rc;
}
