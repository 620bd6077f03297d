/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/verbs_opts.h"

enum { WINDOW = 8 << 20, FEWEST = 4, MOST = 128 };

const char *const verbs_way_name[] = {"write", "read", "send", NULL};
static const char *const memory_name[] = {"host", "gpu", NULL};
static const char *const mtu_name[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};

int verbs_opts_depth(const struct verbs_opts *o, size_t bytes)
{
    size_t n = o->depth ? (size_t)o->depth : WINDOW / (bytes ? bytes : 1);

    if (!o->depth)
        n = n < FEWEST ? FEWEST : n > MOST ? MOST : n;
    return (int)n < o->qps ? o->qps : (int)n;
}

static const struct opt rows[] = {
    {.help = "RDMA verbs (--transport verbs)", .group = "network"},
    {"hca", 0, "LIST",
     "NIC ports of each host, in the order of its ranks: mlx5_0:1,mlx5_3 (default: the nearest "
     "active one, of those that NCCL_IB_HCA allows)",
     OPT_INTO(struct verbs_opts, hca), .group = "network"},
    {"verb", 0, "VERB", "RDMA operation: write, read or send (default write)",
     OPT_WORD(struct verbs_opts, verb, verbs_way_name), .group = "network"},
    {"memory", 0, "WHERE", "memory of the messages: host or gpu (default host)",
     OPT_WORD(struct verbs_opts, memory, memory_name), .group = "network"},
    {"qps", 0, "N", "queue pairs to each peer (default 1)",
     OPT_INT(struct verbs_opts, qps, 1, VERBS_QPS_MAX), .group = "network"},
    {"depth", 0, "N",
     "messages in flight in pair_bw and pair_bibw (default: 8 MiB of them, 4 to 128)",
     OPT_INT(struct verbs_opts, depth, 1, VERBS_DEPTH_MAX), .group = "network"},
    {"gid-index", 0, "N",
     "entry of each port's GID table (default: NCCL_IB_GID_INDEX, else chosen)",
     OPT_INT(struct verbs_opts, gid_index, 0, 255), .group = "network"},
    {"path-mtu", 0, "BYTES",
     "MTU of the path: auto, 256, 512, 1024, 2048 or 4096 (default auto: the largest that both "
     "ports have)",
     OPT_WORD(struct verbs_opts, path_mtu, mtu_name), .group = "network"},
    {"traffic-class", 0, "N",
     "traffic class of the packets, with RoCE v2 DSCP << 2 (default: NCCL_IB_TC, else 0)",
     OPT_INT(struct verbs_opts, traffic_class, 0, 255), .group = "network"},
    {"sl", 0, "N", "service level, with RoCE the priority (default: NCCL_IB_SL, else 0)",
     OPT_INT(struct verbs_opts, sl, 0, 15), .group = "network"},
    {"pkey-index", 0, "N", "entry of each port's partition keys (default: NCCL_IB_PKEY, else 0)",
     OPT_INT(struct verbs_opts, pkey_index, 0, 65535), .group = "network"},
    {"ib-timeout", 0, "N", "send packets again after 4.096 us << N (default 13: 34 ms)",
     OPT_INT(struct verbs_opts, timeout, 1, 31), .group = "network"},
    {"ib-retries", 0, "N", "attempts to send again before the peer is given up (default 7)",
     OPT_INT(struct verbs_opts, retries, 0, 7), .group = "network"},
    {0},
};

struct verbs_opts verbs_opts_asked = {.qps = 1,
                                      .gid_index = -1,
                                      .traffic_class = -1,
                                      .sl = -1,
                                      .pkey_index = -1,
                                      .timeout = VERBS_TIMEOUT,
                                      .retries = VERBS_RETRIES};
const struct opt_set verbs_options = {.rows = rows, .into = &verbs_opts_asked};
