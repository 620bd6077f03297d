/* hwloc_xml_impl.h - what hwloc's XML told, between reading it and the topology. */
#ifndef RG_HWLOC_XML_IMPL_H
#define RG_HWLOC_XML_IMPL_H

#include <stdbool.h>

#include "topo/topo.h"
#include "topo/xml.h"

/* Objects by what they are to us. */
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
    int above, depth; /* object that it is in, -1: the machine */
    int numa;         /* of a node set of one, its own or the nearest above; -1 */
    long long gp;     /* gp_index; -1 */
    char busid[16], name[32], uuid[48], model[48];
    char guid[20], gid[40];
    int port_up[3]; /* HW_FABRIC: of ports 1 and 2; -1: not told */
};

/* One matrix of distances; what it is about shows at its end. */
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
    struct hw_distances nvlink; /* "NVLinkBandwidth"; indices 0: none */
};

enum { HW_OBJECTS_MAX = 1 << 18, HW_DISTANCES_MAX = 512 };

/* Into the topology. */
void hw_fill(struct topo *t, int host, const struct hw *h);

#endif
