/* sources.h - table of files and commands that describe the machine.  Every command that accepts
 * them builds its options from this table (cmd/source_args.h).
 *
 * A reader adds facts with their source, and records what it could not see (topo_unseen); it never
 * removes or resolves facts.  A missing fact is no error.  Text that cannot be understood is:
 * EXIT_DATA with file, line, value and reason; t is then unchanged or partly filled.  Text from
 * outside is limited in size and stripped of control characters.
 *
 * Example:
 *
 *     struct topo t;
 *     int rc = topo_load(&t, "topology.json", err);
 *
 *     for (const struct source_file *s = source_file; rc == 0 && s->name; s++)
 *         if (!strcmp(s->name, "slurm"))
 *             rc = sources_read(&t, s, "topology.conf", false, err);
 *     sources_done(&t);
 *     topo_free(&t);
 *     return rc; */
#ifndef RG_SOURCES_H
#define RG_SOURCES_H

#include <stddef.h>

#include "base/err.h"
#include "topo/topo.h"

struct source_file {
    const char *name; /* name of the option: "slurm" */
    const char *arg;  /* "FILE" */
    const char *help;
    bool host; /* describes one host: the option takes [HOST=]FILE */
    /* host: index in t; -1 for files that describe many hosts.  parse() gets a file of at most
     * `bytes`; read() is used where the argument need not be a file. */
    size_t bytes;
    int (*parse)(struct topo *t, int host, const char *text, size_t len, const char *path,
                 struct err *err);
    int (*read)(struct topo *t, int host, const char *path, struct err *err);
};
extern const struct source_file source_file[]; /* the last row has no name */

/* Read one given file.  text is as typed: "FILE", or "HOST=FILE" if the source describes one host.
 * Without HOST it describes the only host of t, else the host named by the file name up to its
 * first dot; a host that t lacks is added.  another: a file of this kind was read before, so HOST
 * must name the only host.  The caller calls sources_done() once at the end. */
int sources_read(struct topo *t, const struct source_file *s, const char *text, bool another,
                 struct err *err);
/* Readers of files about one host; they fill host index `host` of t.  text, len: the file. */
enum { SMI_XML_BYTES_MAX = 64 << 20, SMI_TOPO_BYTES_MAX = 1 << 20, HWLOC_XML_BYTES_MAX = 64 << 20 };
/* Read nvidia-smi -q -x: GPUs become entries of topo.gpu; its words get NVML's numbers. */
int smi_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                  struct err *err);
/* Read nvidia-smi topo -m. */
int smi_topo_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                   struct err *err);
/* Read hwloc XML of version 2 or 3 (lstopo FILE.xml) with a parser of our own, because hwloc's import is
 * not made for untrusted files.  Reads only what a topology needs: packages, cores, memory, GPUs
 * and NICs with their place, NVLinks from the distances "NVLinkBandwidth" (MB/s per direction).
 * For version 1 the message explains how to write version 2. */
int hwloc_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

/* Derive what needs several sources: rails and uses of NICs, coordinates from declared groups. */
void sources_done(struct topo *t);

/* --- topograph ---
 *
 * Clusters as NVIDIA/topograph describes them: its simulation models and the output
 * of its engine "graph".
 *
 * A model (YAML; docs/modeling.md, pkg/models/model.go of 1.0) has switches {NAME: {switches:
 * [NAME ...], annotations}} and blocks [{switch, nodes: [ranges], annotations}]; models of 0.3 ..
 * 0.5 have nodes in the switches and capacity_blocks {NAME: {nodes, attributes: {nvlink}}}.  A
 * graph (JSON; docs/engines/graph.md) has instances [{id, network_layers: [nearest first],
 * labels}].
 *
 * The switch of a node is its leaf, the next one up its spine, and so on.  The annotations
 * accelerator.topology.test/domain and sub-domain are NVLink domain and rack.  Whatever topograph
 * refuses is refused: unknown switches, two parents, circles, nodes in two blocks. */

#define TOPOGRAPH_DOMAIN "accelerator.topology.test/domain"
#define TOPOGRAPH_SUB_DOMAIN "accelerator.topology.test/sub-domain"
enum { TOPOGRAPH_NODES = 100000 }; /* maximum number of nodes in a file */

/* Parser for the table of sources; describes many hosts.  The origin of its groups is the file
 * name without folders. */
int topograph_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                    struct err *err);

/* --- hostfile ---
 *
 * Hosts that ranks start on, and the number of ranks on each.
 *
 * --hosts takes a host list, in which each name may end in ":N", or a host file as mpirun reads
 * it: one host per line, "node01 slots=8" (or "node01:8", or "node01"), comments after "#".  An
 * argument that contains "/" or names an existing file is a file. */

struct hostfile {
    char **host; /* owned, like slot */
    int *slot;   /* ranks on each host; 0: not stated */
    int hosts;
};

/* Errors: EXIT_DATA with the item or "file:line" for a bad host or number of ranks, EXIT_NOINPUT
 * for a missing file. */
int hostfile_read(struct hostfile *s, const char *hosts, struct err *err);
void hostfile_free(struct hostfile *s);

/* Set the number of ranks on each host and the total, *ranks.  If no host has a number, *ranks are
 * spread evenly, one per host if 0.  Else a host without a number gets one rank, and *ranks, if
 * not 0, fill the hosts in order.  EXIT_USAGE if they do not fit. */
int hostfile_deal(struct hostfile *s, int *ranks, struct err *err);

#endif
