/* verbs_opts.h - how the verbs transport moves bytes: over which port, by which verb, on which path. */
#ifndef RG_VERBS_OPTS_H
#define RG_VERBS_OPTS_H

#include "base/opt.h"

enum verbs_way { VERBS_BY_WRITE, VERBS_BY_READ, VERBS_BY_SEND };
extern const char *const verbs_way_name[]; /* "write", "read", "send", NULL */

/* Time until a lost packet is sent again is 4.096 us << timeout, up to four times that (InfiniBand
 * Architecture Specification, 9.9.2.1.1); 13 and 7 retries: a silent peer is given up after 0.27
 * s, at most 1.1 s. */
enum { VERBS_TIMEOUT = 13, VERBS_RETRIES = 7, VERBS_QPS_MAX = 64, VERBS_DEPTH_MAX = 512 };

struct verbs_opts {
    const char *hca; /* "mlx5_0:1,mlx5_3", or NULL: the nearest */
    int verb;        /* enum verbs_way */
    int memory;      /* 1: of the GPU */
    int qps, depth;  /* queue pairs to a peer; messages in flight, 0: by size */
    int gid_index;   /* -1: chosen */
    int path_mtu;    /* VERBS_MTU_256 ... VERBS_MTU_4096; 0: what both ports have */
    int traffic_class, sl;
    int timeout, retries;
};
extern const struct opt_set verbs_options;
extern struct verbs_opts verbs_opts_asked; /* what they said */

/* Messages in flight: 8 MiB of them, 4 to 128 and no fewer than queue pairs.  A window is waited
 * for as a whole, so its round trip must be little of it. */
int verbs_opts_depth(const struct verbs_opts *o, size_t bytes);

#endif
