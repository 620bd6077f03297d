/* nccl_xml.h - NCCL's topology file of a machine, dumped (NCCL_TOPO_DUMP_FILE) or given
 * (NCCL_TOPO_FILE), and the paths that NCCL's rules find there.
 *
 * The rules are those of NCCL 2.30 (src/graph/topo.cc, paths.cc): a path has the type of its worst
 * link; among paths of equal type the widest is used.  Speeds are NCCL's assumptions (NCCL's
 * topo.h), about 80 % of the hardware's.  Checked against results of NCCL's own code. */
#ifndef RG_NCCL_XML_H
#define RG_NCCL_XML_H

#include <stddef.h>

#include "topo/nccl_profile.h"

enum { NCCL_XML_BYTES_MAX = 64 << 20, NCCL_XML_NODES_MAX = 1 << 16, NCCL_XML_DEPTH_MAX = 64 };

/* Read a topology file.  Foreign text is bounded (bytes, nodes, depth; no DOCTYPE, so no
 * entities).  EXIT_DATA with file, line and reason. */
int nccl_xml_load(struct nccl_paths *out, const char *path, struct err *err);
int nccl_xml_parse(struct nccl_paths *out, const char *text, size_t len, const char *path,
                   struct err *err);

/* --- facts about GPUs and NICs in such a file, or in one of RCCL (nccl_topo.c) --- */

/* Number of elements that NCCL itself accepts in a rank's file (nccl issue 2160). */
enum { NCCL_OWN_XML_NODES = 256 };

/* Read into `host`; other hosts of a fused dump are added.  EXIT_DATA with file, line and reason.
 * Files that NCCL would not accept whole, and PCIe trees flattened by a virtual machine, are
 * reported in topo.unseen. */
int nccl_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
