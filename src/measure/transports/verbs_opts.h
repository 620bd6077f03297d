/* verbs_opts.h - options of the verbs transport: port, verb and path. */
#ifndef RG_VERBS_OPTS_H
#define RG_VERBS_OPTS_H

#include "base/opt.h"

enum verbs_way { VERBS_BY_WRITE, VERBS_BY_READ, VERBS_BY_SEND };
extern const char *const verbs_way_name[]; /* "write", "read", "send", NULL */

/* A lost packet is sent again after 4.096 us << timeout, up to four times that (InfiniBand
 * Architecture Specification, 9.9.2.1.1).  With 13 and 7 retries a silent peer is given up after
 * 0.27 s, at most 1.1 s. */
enum { VERBS_TIMEOUT = 13, VERBS_RETRIES = 7, VERBS_QPS_MAX = 64, VERBS_DEPTH_MAX = 512 };

struct verbs_opts {
    const char *hca; /* "mlx5_0:1,mlx5_3"; NULL: the nearest */
    int verb;        /* enum verbs_way */
    int memory;      /* 1: memory of the GPU */
    int qps, depth;  /* queue pairs per peer; messages in flight, 0: by size */
    int gid_index;   /* -1: chosen automatically */
    int path_mtu;    /* VERBS_MTU_256 ... VERBS_MTU_4096; 0: MTU common to both ports */
    int traffic_class, sl, pkey_index; /* -1: those of NCCL's variables, else 0 */
    char nccl_hca[256];                /* NCCL_IB_HCA; "": not set */
    int timeout, retries;
};
extern const struct opt_set verbs_options;
extern struct verbs_opts verbs_opts_asked; /* values given on the command line */

/* Messages in flight: 8 MiB together, between 4 and 128, and at least one per queue pair.  A window
 * is waited for as a whole, so the round trip must be a small part of it. */
int verbs_opts_depth(const struct verbs_opts *o, size_t bytes);

#endif
