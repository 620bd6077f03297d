/* hwloc_xml_impl.h - contents of hwloc's XML, between reader and topology. */
#ifndef RG_HWLOC_XML_IMPL_H
#define RG_HWLOC_XML_IMPL_H

#include <stdbool.h>

#include "topo/topo.h"
#include "topo/xml.h"

/* Kinds of objects that a topology needs. */
enum hw_kind {
    HW_OTHER,
    HW_PACKAGE,
    HW_HOST_BRIDGE,
    HW_BRIDGE,
    HW_GPU,
    HW_SWITCH,
    HW_PCI,
    HW_NET,
    HW_FABRIC
};

struct hw_object {
    enum hw_kind kind;
    int above, depth; /* parent object; -1: the machine */
    /* Single node of the object's node set, or of the nearest ancestor's; -1: unknown. */
    int numa;
    long long gp; /* gp_index; -1: none */
    char busid[16], name[32], uuid[48], model[48];
    char guid[20], gid[40];
    int port_up[3]; /* HW_FABRIC: ports 1 and 2; -1: unknown */
};

/* Matrix of distances; the meaning is known at the end of the element. */
struct hw_distances {
    char name[32], type[16];
    bool gp; /* indices are gp_index */
    long long *index, *value;
    int indices, values;
};

struct hw {
    struct hw_object *object;
    int objects;
    int packages, cores, pus;
    double memory;
    char cpu[128];
    struct hw_distances nvlink; /* "NVLinkBandwidth"; indices 0: missing */
};

enum { HW_OBJECTS_MAX = 1 << 18, HW_DISTANCES_MAX = 512 };

/* Add the contents to host index `host`. */
void hw_fill(struct topo *t, int host, const struct hw *h);

#endif
