/* nccl_xml.h - NCCL's topology file of a machine, dumped (NCCL_TOPO_DUMP_FILE) or given
 * (NCCL_TOPO_FILE), and the paths that NCCL's rules find there.
 *
 * The rules are those of NCCL 2.30 (src/graph/topo.cc, paths.cc): a path has the type of its worst
 * link; among paths of equal type the widest is used.  Speeds are NCCL's assumptions (NCCL's
 * topo.h), about 80 % of the hardware's.  Checked against results of NCCL's own code. */
#ifndef RG_NCCL_XML_H
#define RG_NCCL_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct topo;

/* Path types, nearest first. */
enum nccl_path_type {
    NCCL_PATH_LOC, /* the same device */
    NCCL_PATH_NVL, /* NVLink */
    NCCL_PATH_NVB, /* NVLink through another GPU */
    NCCL_PATH_C2C, /* chip-to-chip link of a Grace CPU */
    NCCL_PATH_PIX, /* one PCIe switch */
    NCCL_PATH_PXB, /* several PCIe switches */
    NCCL_PATH_P2C, /* C2C, then PCIe: the NIC of a GPU's own Grace */
    NCCL_PATH_PXN, /* NVLink to another GPU and its NIC */
    NCCL_PATH_PHB, /* host bridge of a CPU */
    NCCL_PATH_SYS, /* between CPUs */
    NCCL_PATH_NET,
    NCCL_PATH_DIS, /* no path */
    NCCL_PATH_COUNT
};
extern const char *const nccl_path_type_name[NCCL_PATH_COUNT]; /* "LOC", "NVL" ... */
int nccl_path_type_find(const char *name);                     /* -1: unknown */

struct nccl_xml_gpu {
    int rank, dev, sm; /* place in the communicator that wrote the dump; rank -1: not in the file */
    uint64_t host;     /* host_hash */
    char busid[16];
    bool gdr;
    int nvlinks; /* number in total */
};
struct nccl_xml_net {
    int dev;
    uint64_t host;
    char name[48];
    double Bps;
    bool gdr;
    int rail, plane; /* -1: not stated */
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
enum { NCCL_XML_KIND_MAX = 640 }; /* maximum number of GPUs, and of NICs: NCCL's own limit */

/* Read a topology file.  Foreign text is bounded (bytes, nodes, depth; no DOCTYPE, so no
 * entities).  EXIT_DATA with file, line and reason. */
int nccl_xml_load(struct nccl_paths *out, const char *path, struct err *err);
int nccl_xml_parse(struct nccl_paths *out, const char *text, size_t len, const char *path,
                   struct err *err);
void nccl_paths_free(struct nccl_paths *p);

/* --- facts about GPUs and NICs in such a file, or in one of RCCL (nccl_topo.c) --- */

/* Number of elements that NCCL itself accepts in a rank's file (nccl issue 2160). */
enum { NCCL_OWN_XML_NODES = 256 };

/* Read into `host`; other hosts of a fused dump are added.  EXIT_DATA with file, line and reason.
 * Files that NCCL would not accept whole, and PCIe trees flattened by a virtual machine, are
 * reported in topo.unseen. */
int nccl_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
