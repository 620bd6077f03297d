/* smi.h - what nvidia-smi prints, as files: `nvidia-smi topo -m` (text) and `nvidia-smi -q -x`
 * (XML).  GPUs become rows of topo.gpu as from NVML, whose numbers nvidia-smi shows in words. */
#ifndef RG_SMI_H
#define RG_SMI_H

#include "topo/topo.h"

enum { SMI_XML_BYTES_MAX = 64 << 20, SMI_TOPO_BYTES_MAX = 1 << 20 };

/* Into host; EXIT_DATA with file, line, value and reason. */
int smi_xml_read(struct topo *t, int host, const char *path, struct err *err);
int smi_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                  struct err *err);
int smi_topo_read(struct topo *t, int host, const char *path, struct err *err);
int smi_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                   struct err *err);

#endif
