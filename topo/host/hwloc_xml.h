/* hwloc_xml.h - hwloc's XML of version 2 (lstopo FILE.xml), read by ourselves: hwloc's own import
 * is not made for files of strangers.  Only what a topology needs: packages, cores, memory, GPUs
 * and NICs with their place, NVLinks from the distances "NVLinkBandwidth" (MB/s per direction). */
#ifndef RG_HWLOC_XML_H
#define RG_HWLOC_XML_H

#include "topo/topo.h"

enum { HWLOC_XML_BYTES_MAX = 64 << 20 };

/* Into host; EXIT_DATA with file, line and reason, for versions 1 and 3 how to write version 2. */
int hwloc_xml_read(struct topo *t, int host, const char *path, struct err *err);
int hwloc_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

#endif
