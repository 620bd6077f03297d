/* nccl_xml.h - NCCL's picture of a machine: the topology that it dumps (NCCL_TOPO_DUMP_FILE) or is
 * given (NCCL_TOPO_FILE), and the paths that its rules find in it.
 *
 * The rules are those of NCCL 2.30 (src/graph/topo.cc, paths.cc): a path is as bad as its worst
 * link; of paths of one type the widest is taken.  The speeds are NCCL's assumptions (topo.h
 * there), about 80 % of what the hardware does.  Checked against what NCCL's own code computes. */
#ifndef RG_NCCL_XML_H
#define RG_NCCL_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct topo;

/* Path types, the nearest first. */
enum nccl_path_type {
    NCCL_PATH_LOC, /* the same device */
    NCCL_PATH_NVL, /* NVLink */
    NCCL_PATH_NVB, /* NVLink by way of another GPU */
    NCCL_PATH_C2C, /* the chip-to-chip link of a Grace CPU */
    NCCL_PATH_PIX, /* one PCIe switch */
    NCCL_PATH_PXB, /* several */
    NCCL_PATH_P2C, /* C2C, then PCIe: the NIC of a GPU's own Grace */
    NCCL_PATH_PXN, /* NVLink to another GPU and its NIC */
    NCCL_PATH_PHB, /* the host bridge of a CPU */
    NCCL_PATH_SYS, /* between CPUs */
    NCCL_PATH_NET,
    NCCL_PATH_DIS, /* none */
    NCCL_PATH_COUNT
};
extern const char *const nccl_path_type_name[NCCL_PATH_COUNT]; /* "LOC", "NVL" ... */
int nccl_path_type_find(const char *name);                     /* -1 */

struct nccl_xml_gpu {
    int rank, dev, sm; /* of the communicator that dumped; rank -1: the file does not say */
    uint64_t host;     /* host_hash */
    char busid[16];
    bool gdr;
    int nvlinks; /* how many in all */
};
struct nccl_xml_net {
    int dev;
    uint64_t host;
    char name[48];
    double Bps;
    bool gdr;
    int rail, plane; /* -1: not said */
};
struct nccl_route {
    unsigned char type; /* enum nccl_path_type */
    double Bps;
};
struct nccl_paths {
    struct nccl_xml_gpu *gpu;
    int gpus;
    struct nccl_xml_net *net;
    int nets;
    struct nccl_route *pair; /* [gpu][gpu] */
    struct nccl_route *nic;  /* [gpu][net] */
};

enum { NCCL_XML_BYTES_MAX = 64 << 20, NCCL_XML_NODES_MAX = 1 << 16, NCCL_XML_DEPTH_MAX = 64 };
enum { NCCL_XML_KIND_MAX = 640 }; /* GPUs, and NICs: NCCL's own limit */

/* Read a topology file; foreign text is bounded (bytes, nodes, depth; no DOCTYPE and so no
 * entities).  EXIT_DATA with file, line and reason. */
int nccl_xml_load(struct nccl_paths *out, const char *path, struct err *err);
int nccl_xml_parse(struct nccl_paths *out, const char *text, size_t len, const char *path,
                   struct err *err);
void nccl_paths_free(struct nccl_paths *p);

/* --- the facts in such a file, or one of RCCL, about GPUs and NICs (nccl_topo.c) --- */

/* How many elements of a rank's file NCCL itself takes (nccl issue 2160). */
enum { NCCL_OWN_XML_NODES = 256 };

/* Into host, the others of a fused dump into hosts beside it; EXIT_DATA with file, line and reason.
 * Files that NCCL would not take whole, and PCIe trees that a virtual machine flattened, are said in
 * topo.unseen. */
int nccl_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
