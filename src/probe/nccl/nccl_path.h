/* nccl_path.h - the table of --path: make NCCL use one kind of connection only, and prove it.
 *
 * A row names the variables that leave NCCL no other choice (sources: NCCL's environment variables
 * page; src/graph/paths.cc, src/init.cc, src/mnnvl.cc of 2.19 to 2.30) and what its log may then
 * say of connections within a host and between hosts.  What was really used is read back and
 * judged: asked and used must agree. */
#ifndef RG_NCCL_PATH_H
#define RG_NCCL_PATH_H

#include "base/err.h"
#include "topo/nccl/nccl_profile.h"
#include "topo/topo.h"

enum { NCCL_PATH_VARS = 8 };

struct nccl_path {
    const char *name; /* "mnnvl" */
    struct nccl_path_var {
        const char *name, *value; /* "NCCL_P2P_LEVEL", "NVL"; {NULL} ends them */
    } var[NCCL_PATH_VARS + 1];
    const char *net_name;     /* for ncclConfig_t.netName; NULL: as NCCL chooses */
    unsigned within, between; /* 1 << enum nccl_via that may carry pairs of one host, of two;
                               * between 0: the path does not leave a host */
    enum link_layer layer;    /* of the NICs; LINK_UNKNOWN: not asked */
    int nearest, farthest;    /* enum nccl_path_type that P2P pairs of one host may have */
    const char *help;
};

extern const struct nccl_path nccl_paths_table[];         /* ends with name NULL */
const struct nccl_path *nccl_path_find(const char *name); /* NULL: no such path */
/* Was it used?  p is the merged profile, t names hosts and NICs; EXIT_USAGE for an unknown name.
 * Asked is not used: EXIT_CONFIG, "asked mnnvl, used NET/IB on ranks 4-7" (the machine does not
 * give what was asked: whatever was measured is of another path).  Nothing could be read back:
 * EXIT_UNJUDGED. */
int nccl_path_judge(const struct nccl_profile *p, const struct topo *t, const char *name,
                    struct err *err);
/* The table as Markdown, for jobs/gpus.md and railgauge discover --list-paths; FILE *. */
void nccl_path_print(void *stream);

#endif
