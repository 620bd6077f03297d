/* nccl_path.h - the table of --path: make NCCL use only one kind of connection, and prove it.
 *
 * A row names the variables that leave NCCL no other choice (sources: NCCL's environment variables
 * page; src/graph/paths.cc, src/init.cc, src/mnnvl.cc of 2.19 to 2.30), and the kinds of
 * connections within a host and between hosts that NCCL's log may then show.  The connections that
 * were used are read back and must agree with the row. */
#ifndef RG_NCCL_PATH_H
#define RG_NCCL_PATH_H

#include <string.h>

#include "base/err.h"
#include "topo/nccl_profile.h"
#include "topo/topo.h"

enum { NCCL_PATH_VARS = 8 };

struct nccl_path {
    const char *name; /* "mnnvl"; "plugin" may be followed by ":NAME" of a network plugin */
    struct nccl_path_var {
        const char *name, *value; /* "NCCL_P2P_LEVEL", "NVL"; ends with {NULL} */
    } var[NCCL_PATH_VARS + 1];
    const char *net_name; /* for ncclConfig_t.netName; NULL: as NCCL chooses */
    /* bits 1 << enum nccl_via that may carry pairs within a host, between hosts; between 0: the
     * path does not leave a host */
    unsigned within, between;
    enum link_layer layer; /* link layer of the NICs; LINK_UNKNOWN: any */
    int nearest, farthest; /* range of enum nccl_path_type for P2P pairs within a host */
    const char *help;
};

extern const struct nccl_path nccl_paths_table[];         /* ends with name NULL */
const struct nccl_path *nccl_path_find(const char *name); /* NULL: no such path */
/* Name of the network plugin in "plugin:NAME", as NCCL_NET spells it; NULL: none is named. */
static inline const char *nccl_path_plugin(const char *name)
{
    return name && !strncmp(name, "plugin:", 7) ? name + 7 : NULL;
}
/* Check that the path was used.  p is the merged profile, t names hosts and NICs.  EXIT_USAGE for
 * an unknown name.  EXIT_CONFIG if another path was used, "asked mnnvl, used NET/IB on ranks 4-7"
 * (the machine does not provide the requested path, so the measurements are of another one).
 * EXIT_UNJUDGED if nothing could be read back. */
int nccl_path_judge(const struct nccl_profile *p, const struct topo *t, const char *name,
                    struct err *err);
/* Print the table as Markdown, for docs/gpus.md and railgauge discover --list-paths; stream is a
 * FILE *. */
void nccl_path_print(void *stream);

#endif
