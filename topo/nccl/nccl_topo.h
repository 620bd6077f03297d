/* nccl_topo.h - what a topology file of NCCL or RCCL says of a host: GPUs with their links, NICs
 * with speed, rail and plane, and which of them are near each other.
 *
 * The same files as nccl_xml.h, which finds NCCL's own paths in them; this reader takes the facts
 * and is lenient: files of clouds that name devices by PCI class only, RCCL's (version 2, xgmi),
 * dumps of several hosts fused into one, whose hosts are known by a hash only
 * ("0x51a8d39608097d00").
 */
#ifndef RG_NCCL_TOPO_H
#define RG_NCCL_TOPO_H

#include "topo/topo.h"

/* What NCCL itself takes: elements of a rank's file (nccl issue 2160), nodes of a kind. */
enum { NCCL_OWN_XML_NODES = 256, NCCL_OWN_NODES = 640 };

/* Into host, the others of a fused dump into hosts beside it; EXIT_DATA with file, line and reason.
 *  Files that NCCL would not take whole, and PCIe trees that a virtual machine flattened,
 * are said in topo.unseen. */
int nccl_topo_read(struct topo *t, int host, const char *path, struct err *err);
int nccl_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
