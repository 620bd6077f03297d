/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_xml.c - reader of hwloc's XML, versions 2 and 3.  Format: hwloc2.dtd,
 * hwloc/topology-xml.c.  Objects are nested; <info> belongs to the object around it.  OS devices
 * have a number in version 2 (1 GPU, 2 network, 3 OpenFabrics, 5 co-processor) and a set of bits in
 * version 3 (enum hwloc_obj_osdev_type_e: 4 GPU, 8 co-processor, 16 network, 32
 * OpenFabrics, which is network too). */
#include "topo/sources/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/host/hwloc_xml_impl.h"

enum { DEPTHS = 128, ELEMENTS = 1 << 20, OS_NETWORK = 2, OS_FABRIC = 3 };
enum { OS3_NETWORK = 1 << 4, OS3_FABRIC = 1 << 5 };
enum { VENDOR_NVIDIA = 0x10de, VENDOR_AMD = 0x1002 };

struct reader {
    struct hw h;
    int open[DEPTHS];                 /* object of each open element; -1: not an object */
    bool hetero, in_distances, third; /* third: XML of version 3 */
    struct hw_distances d;
};

/* Number of the only bit in "0x00000001", or in words from the highest down: "0x1,0x0"; -1: not
 * exactly one bit. */
static int only_bit(const char *set)
{
    int bit = -1, words = 0;

    for (const char *c = set; *c; c++)
        words += *c == ',';
    for (const char *c = set; c; words--) {
        unsigned long word = strtoul(c, NULL, 16);
        if (word && (bit >= 0 || word & (word - 1) || words > 1024))
            return -1;
        if (word)
            bit = words * 32 + __builtin_ctzl(word);
        c = strchr(c, ',');
        c = c ? c + 1 : NULL;
    }
    return bit < 65535 ? bit : -1;
}

/* Kind of "0302 [10de:1db8] [10de:131d] a1": GPUs as in topo/sources/host/hwloc.c, NVIDIA's switches. */
static enum hw_kind pci_kind(const char *type, const char *subtype)
{
    unsigned pci_class, vendor;

    if (subtype && !strcmp(subtype, "NVSwitch"))
        return HW_SWITCH;
    if (!type || sscanf(type, "%4x [%4x:", &pci_class, &vendor) != 2)
        return HW_PCI;
    if (vendor == VENDOR_NVIDIA && (pci_class == 0x0302 || pci_class == 0x0300))
        return HW_GPU;
    if (vendor == VENDOR_AMD && (pci_class == 0x0302 || pci_class == 0x0380 || pci_class == 0x1200))
        return HW_GPU;
    return vendor == VENDOR_NVIDIA && pci_class == 0x0680 ? HW_SWITCH : HW_PCI;
}

static enum hw_kind os_kind(struct xml *x, const char **atts, bool third)
{
    long long os = xml_whole(x, atts, "osdev_type", 0, 1 << 20, 0);

    if (third)
        return os & OS3_FABRIC ? HW_FABRIC : os & OS3_NETWORK ? HW_NET : HW_OTHER;
    return os == OS_NETWORK ? HW_NET : os == OS_FABRIC ? HW_FABRIC : HW_OTHER;
}

static enum hw_kind kind_of(struct xml *x, const char *type, const char **atts, bool third)
{
    const char *bridge = xml_attribute(atts, "bridge_type");

    if (!strcmp(type, "Package"))
        return HW_PACKAGE;
    if (!strcmp(type, "Bridge"))
        return bridge && !strcmp(bridge, "0-1") ? HW_HOST_BRIDGE : HW_BRIDGE;
    if (!strcmp(type, "PCIDev"))
        return pci_kind(xml_attribute(atts, "pci_type"), xml_attribute(atts, "subtype"));
    return strcmp(type, "OSDev") != 0 ? HW_OTHER : os_kind(x, atts, third);
}

static int above(const struct reader *r, const struct xml *x)
{
    for (int d = x->depth - 2; d >= 0; d--)
        if (r->open[d] >= 0)
            return r->open[d];
    return -1;
}

static void open_object(struct reader *r, struct xml *x, const char **atts)
{
    const char *type = xml_attribute(atts, "type"), *set = xml_attribute(atts, "nodeset");
    struct hw_object o = {.above = above(r, x), .numa = -1, .port_up = {-1, -1, -1}};

    if (!type) {
        xml_bad(x, "<object> without a type");
        return;
    }
    if (r->h.objects == HW_OBJECTS_MAX) {
        xml_bad(x, "more than %d objects", HW_OBJECTS_MAX);
        return;
    }
    o.kind = kind_of(x, type, atts, r->third);
    o.gp = xml_whole(x, atts, "gp_index", 0, 1LL << 60, -1);
    xml_keep(o.name, sizeof(o.name), xml_attribute(atts, "name"));
    const char *busid = xml_attribute(atts, "pci_busid");
    if (busid && !host_busid(o.busid, busid))
        xml_bad(x, "pci_busid=\"%.40s\" is no PCI address", busid);
    if ((o.kind == HW_GPU || o.kind == HW_SWITCH) && !o.busid[0])
        xml_bad(x, "a PCI device without pci_busid");
    if (o.above >= 0) {
        o.depth = r->h.object[o.above].depth + 1;
        o.numa = r->h.object[o.above].numa;
    }
    o.numa = set ? only_bit(set) : o.numa;
    r->h.packages += o.kind == HW_PACKAGE;
    r->h.cores += !strcmp(type, "Core");
    r->h.pus += !strcmp(type, "PU");
    if (!strcmp(type, "NUMANode"))
        r->h.memory += (double)xml_whole(x, atts, "local_memory", 0, 1LL << 60, 0);
    r->open[x->depth - 1] = r->h.objects;
    MEM_PUSH(r->h.object, r->h.objects) = o;
}

/* Set a GUID from 4 x 16 bits: "f452:1403:007b:cba1". */
static void set_guid(char guid[20], const char *value)
{
    unsigned p[4];

    if (sscanf(value, "%4x:%4x:%4x:%4x", &p[0], &p[1], &p[2], &p[3]) == 4)
        snprintf(guid, 20, "0x%04x%04x%04x%04x", p[0] & 0xffff, p[1] & 0xffff, p[2] & 0xffff,
                 p[3] & 0xffff);
}

/* If an OS device is a GPU, its parent is the GPU. */
static void read_info(struct reader *r, struct xml *x, const char **atts)
{
    const char *name = xml_attribute(atts, "name"), *value = xml_attribute(atts, "value");
    int at = above(r, x), port;
    char rest;

    if (!name || !value || at < 0)
        return;
    struct hw_object *o = &r->h.object[at], *up = o->above < 0 ? o : &r->h.object[o->above];
    up = up->kind == HW_GPU ? up : o;
    if (!strcmp(name, "NVIDIAUUID") || !strcmp(name, "AMDUUID"))
        xml_keep(up->uuid, sizeof(up->uuid), value);
    else if (!strcmp(name, "GPUModel") || (!strcmp(name, "PCIDevice") && !o->model[0]))
        xml_keep(up->model, sizeof(up->model), value);
    else if (!strcmp(name, "CPUModel") && !r->h.cpu[0])
        xml_keep(r->h.cpu, sizeof(r->h.cpu), value);
    else if (!strcmp(name, "NodeGUID"))
        set_guid(o->guid, value);
    else if (!strcmp(name, "Port1GID0"))
        xml_keep(o->gid, sizeof(o->gid), value);
    else if (sscanf(name, "Port%1dStat%c", &port, &rest) == 2 && (port == 1 || port == 2))
        o->port_up[port] = !strcmp(value, "4");
}

/* --- distances --- */

static void open_distances(struct reader *r, struct xml *x, const char **atts, bool hetero)
{
    const char *indexing = xml_attribute(atts, "indexing");

    xml_whole(x, atts, "nbobjs", 1, HW_DISTANCES_MAX, 1);
    r->in_distances = true;
    r->hetero = hetero;
    xml_keep(r->d.name, sizeof(r->d.name), xml_attribute(atts, "name"));
    xml_keep(r->d.type, sizeof(r->d.type), xml_attribute(atts, "type"));
    r->d.gp = hetero || (indexing && !strcmp(indexing, "gp"));
}

/* Read numbers separated by blanks; in heterogeneous distances an index is "TYPE:NUMBER". */
static void read_numbers(struct xml *x, const char *text, bool typed, long long **list, int *count,
                         int max)
{
    char *end;

    for (const char *c = text + strspn(text, " \t\r\n"); *c; c = end + strspn(end, " \t\r\n")) {
        const char *colon = typed ? strchr(c, ':') : NULL;
        errno = 0;
        long long v = strtoll(colon ? colon + 1 : c, &end, 10);
        if (errno || v < 0 || end == (colon ? colon + 1 : c) ||
            (*end && !strchr(" \t\r\n", *end))) {
            xml_bad(x, "\"%.20s\" among distances is no number from 0", c);
            return;
        }
        if (*count == max) {
            xml_bad(x, "more than %d numbers in distances", max);
            return;
        }
        MEM_PUSH(*list, *count) = v;
    }
}

static void drop_distances(struct hw_distances *d)
{
    free(d->index);
    free(d->value);
    memset(d, 0, sizeof(*d));
}

static void close_distances(struct reader *r, struct xml *x)
{
    if (r->d.values != r->d.indices * r->d.indices)
        xml_bad(x, "distances of %d objects have %d values", r->d.indices, r->d.values);
    if (!strcmp(r->d.name, "NVLinkBandwidth") && r->d.gp) {
        drop_distances(&r->h.nvlink);
        r->h.nvlink = r->d;
        memset(&r->d, 0, sizeof(r->d));
    }
    drop_distances(&r->d);
    r->in_distances = false;
}

/* --- elements --- */

/* True for version 3. */
static bool check_version(struct xml *x, const char *name, const char **atts)
{
    const char *version = xml_attribute(atts, "version");

    if (strcmp(name, "topology") != 0)
        xml_bad(x, "<%.40s> where <topology> of hwloc is needed", name);
    else if (!version)
        xml_bad(x, "hwloc XML of version 1, where versions 2 and 3 are read (load and save it with "
                   "hwloc 2)");
    else if (strncmp(version, "2.", 2) != 0 && strncmp(version, "3.", 2) != 0)
        xml_bad(x, "hwloc XML of version \"%.20s\", where versions 2 and 3 are read", version);
    return version && *version == '3';
}

static void on_start(struct xml *x, const char *name, const char **atts)
{
    struct reader *r = x->user;

    r->open[x->depth - 1] = -1;
    if (x->depth == 1)
        r->third = check_version(x, name, atts);
    else if (!strcmp(name, "object"))
        open_object(r, x, atts);
    else if (!strcmp(name, "info"))
        read_info(r, x, atts);
    else if (!strcmp(name, "distances2") || !strcmp(name, "distances2hetero"))
        open_distances(r, x, atts, name[10] == 'h');
}

static void on_end(struct xml *x, const char *name, const char *text)
{
    struct reader *r = x->user;

    if (!r->in_distances)
        return;
    if (!strcmp(name, "indexes"))
        read_numbers(x, text, r->hetero, &r->d.index, &r->d.indices, HW_DISTANCES_MAX);
    else if (!strcmp(name, "u64values"))
        read_numbers(x, text, false, &r->d.value, &r->d.values,
                     HW_DISTANCES_MAX * HW_DISTANCES_MAX);
    else if (!strncmp(name, "distances2", 10))
        close_distances(r, x);
}

int hwloc_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err)
{
    static const struct xml_reader reader = {.what = "hwloc's XML",
                                             .bytes = HWLOC_XML_BYTES_MAX,
                                             .elements = ELEMENTS,
                                             .depths = DEPTHS,
                                             .doctype = true,
                                             .start = on_start,
                                             .end = on_end};
    struct reader *r = mem_calloc(1, sizeof(*r));
    int rc = xml_read(&reader, r, text, len, path, err);

    if (rc == 0 && !r->h.objects)
        rc = err_data(err, "%s: no object in it", path);
    if (rc == 0)
        hw_fill(t, host, &r->h);
    drop_distances(&r->d);
    drop_distances(&r->h.nvlink);
    free(r->h.object);
    free(r);
    return rc;
}
