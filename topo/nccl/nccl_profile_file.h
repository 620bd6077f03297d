/* nccl_profile_file.h - what the reader and the writer of "nccl" in topology.json agree on: lists
 * of texts, and tables whose rows refer to each other by index.  null is "not said". */
#ifndef RG_NCCL_PROFILE_FILE_H
#define RG_NCCL_PROFILE_FILE_H

#include "topo/nccl/nccl_profile.h"
#include "topo/topo_impl.h"

enum {
    SEAT_COLUMNS = 4,
    PORT_COLUMNS = 4,
    COMM_COLUMNS = 12,
    GRAPH_COLUMNS = 8,
    RING_COLUMNS = 2,
    LINK_COLUMNS = 10,
    CHOICE_COLUMNS = 6,
    DUMP_COLUMNS = 1,
    GPU_COLUMNS = 9,
    NET_COLUMNS = 8,
    NCCL_TABLES = 10
};
extern const char *const nccl_seat_columns[SEAT_COLUMNS],
    *const nccl_port_columns[PORT_COLUMNS],
        *const nccl_comm_columns[COMM_COLUMNS],
            *const nccl_graph_columns[GRAPH_COLUMNS],
                *const nccl_ring_columns[RING_COLUMNS],
                    *const nccl_link_columns[LINK_COLUMNS],
                        *const nccl_choice_columns[CHOICE_COLUMNS],
                            *const nccl_dump_columns[DUMP_COLUMNS],
                                *const nccl_gpu_columns[GPU_COLUMNS],
                                    *const nccl_net_columns[NET_COLUMNS];

/* --- the reader's --- */

enum { NCCL_SMALL_MAX = 1 << 16 };
int nccl_cell_id(const struct topo_table *b, int col, uint64_t *out); /* a text like "0x1f" */

/* The dumps, then the NICs and the GPUs of each, then the last column of the GPUs again, now that
 * all GPUs and NICs of their dumps are known. */
int nccl_read_dumps(struct nccl_profile *p, struct topo_table *b);
int nccl_read_nets(struct nccl_profile *p, struct topo_table *b);
int nccl_read_gpus(struct nccl_profile *p, struct topo_table *b);
int nccl_read_routes(struct nccl_profile *p, struct topo_table *b);

#endif
