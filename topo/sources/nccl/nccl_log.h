/* nccl_log.h - reader of one rank's NCCL debug log into its profile.
 *
 * Formats: NCCL 2.19 to 2.31 with NCCL_DEBUG=INFO and the subsystems INIT, GRAPH, NET, ENV, TUNING
 * (src/init.cc, transport/, graph/ of its releases).  Unknown lines are skipped.  One pass, a line
 * at a time; memory grows only with distinct facts, whose number is limited too. */
#ifndef RG_NCCL_LOG_H
#define RG_NCCL_LOG_H

#include <stddef.h>

#include "topo/nccl_profile.h"

/* Mark in a log: from byte `from` on the process used the communicator that NCCL prints as comm
 * 0x..., and lines that name no communicator belong to it. */
struct nccl_log_mark {
    long long from;
    unsigned long long comm;
};

/* Read a log into *out, which is overwritten; p->lines is the number of NCCL's lines.  Marks are
 * sorted by position; NULL: none.  The only error is a file that cannot be read (EXIT_NOINPUT). */
int nccl_log_read(struct nccl_profile *out, const char *path, const struct nccl_log_mark *mark,
                  int marks, struct err *err);
void nccl_log_parse(struct nccl_profile *out, const char *text, size_t len);

/* --- nccl xml ---
 *
 * NCCL's topology file of a machine, dumped (NCCL_TOPO_DUMP_FILE) or given
 * (NCCL_TOPO_FILE), and the paths that NCCL's rules find there.
 *
 * The rules are those of NCCL 2.30 (src/graph/topo.cc, paths.cc): a path has the type of its worst
 * link; among paths of equal type the widest is used.  Speeds are NCCL's assumptions (NCCL's
 * topo.h), about 80 % of the hardware's.  Checked against results of NCCL's own code. */

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
