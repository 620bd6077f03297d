/* sources.h - files and commands of others that say something about the machine: one table, from
 * which every command that takes them makes its options (cmd/source_args.h).
 *
 * A reader adds facts with their source and what it could not see (topo_unseen); it never removes
 * or resolves.  What is not there is no error, what cannot be understood is: EXIT_DATA with file,
 * line, value and reason, and t is as it was or partly filled.  Text from outside is bounded and
 * stripped of control characters. */
#ifndef RG_SOURCES_H
#define RG_SOURCES_H

#include "topo/topo.h"

struct source_file {
    const char *name; /* of the option: "slurm" */
    const char *arg;  /* "FILE" */
    const char *help;
    bool host; /* speaks of one host: the option takes [HOST=]FILE */
    /* host: its index in t, -1 for files that speak of many.  A file of at most `bytes` is parsed;
     * read: where it need not be a file. */
    size_t bytes;
    int (*parse)(struct topo *t, int host, const char *text, size_t len, const char *path,
                 struct err *err);
    int (*read)(struct topo *t, int host, const char *path, struct err *err);
};
extern const struct source_file source_file[]; /* the last one has no name */

/* One given file.  text is as typed: "FILE" or, where the source speaks of one host, "HOST=FILE";
 * without HOST it is the only host of t, or else the file's name up to the first dot; a host that t
 * lacks is added.  another: a file of this kind was read before, so this one is not of the only
 * host unless HOST says so.  Afterwards the caller calls sources_done() once. */
int sources_read(struct topo *t, const struct source_file *s, const char *text, bool another,
                 struct err *err);
/* Rows of the table about one host, into host of t; the text of a file, and the file. */
enum { SMI_XML_BYTES_MAX = 64 << 20, SMI_TOPO_BYTES_MAX = 1 << 20, HWLOC_XML_BYTES_MAX = 64 << 20 };
/* nvidia-smi -q -x: GPUs become rows of topo.gpu as from NVML, whose numbers it shows in words. */
int smi_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                  struct err *err);
/* nvidia-smi topo -m */
int smi_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                   struct err *err);
/* hwloc's XML of version 2 (lstopo FILE.xml), read by ourselves: hwloc's own import is not made for
 * files of strangers.  Only what a topology needs: packages, cores, memory, GPUs and NICs with their
 * place, NVLinks from the distances "NVLinkBandwidth" (MB/s per direction).  For versions 1 and 3
 * the message says how to write version 2. */
int hwloc_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

/* What several sources make together: rails and uses of NICs, coordinates from declared groups. */
void sources_done(struct topo *t);

#endif
