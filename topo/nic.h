/* nic.h - port of a network adapter: its link, its place, and the switch at the other end. */
#ifndef RG_NIC_H
#define RG_NIC_H

#include <string.h>

#include "topo/topo.h"

/* Use of a NIC.  Training traffic belongs on compute NICs only. */
enum nic_use { NIC_UNKNOWN, NIC_COMPUTE, NIC_STORAGE, NIC_MANAGEMENT, NIC_USES };
extern const char *const nic_layer_text[3];      /* "unknown link", "Ethernet", "InfiniBand" */
extern const char *const nic_use_name[NIC_USES]; /* "unknown", "compute", ... */

/* Facts from libibverbs about a port that it could open: some equal those of other sources, some
 * are available only here. */
struct nic_verbs {
    bool told; /* false: the other members are not set */
    bool up;
    enum link_layer layer;
    double rate_Bps; /* active lanes times lane speed; 0: a speed without a known number */
    char firmware[32];
    char gid[40];     /* address with the number of the NIC's gid; "": none */
    int mtu, mtu_max; /* payload of a packet, bytes: in use, and maximum; 0: unknown */
    int gids;         /* size of the port's address table */
    int qps, wrs;     /* queue pairs of the device; outstanding requests per queue pair */
    /* Pieces per request; outstanding RDMA reads and atomics per queue pair. */
    int sges, reads;
    double message_bytes, region_bytes; /* largest message; largest registered memory */
};

enum { NIC_COUNT_MAX = 1 << 30 }; /* of the counts in struct nic_verbs */

struct nic {
    int host;
    char name[32]; /* "mlx5_0", "eth0"; "mlx5_0:2" for the second port */
    char busid[16];
    enum link_layer layer;
    double rate_Bps; /* per direction; 0: not visible */
    bool up;
    bool rdma; /* supports verbs: InfiniBand or RoCE */
    int numa;  /* -1: not visible */
    enum source source;
    /* RDMA NICs, and facts from switches; texts: "" is not visible. */
    char guid[20];                /* port GUID: "0xb83fd2030091a2c4" */
    char gid[40], gid_type[12];   /* used by traffic: "RoCE v2", "IB" */
    int gid_index;                /* index in the port's table; -1: unknown */
    char board[20];               /* board id of the card: "MT_0000000838" */
    char firmware[32];            /* "28.39.1002" */
    char driver[48];              /* "mlx5_core 24.10-1.1.4"; name only: no version known */
    char netdev[16];              /* network interface */
    char leaf[65], leaf_port[32]; /* switch at the other end and its port */
    enum source leaf_source;
    int rail, plane; /* from 0; -1: unknown */
    enum nic_use use;
    char why[64]; /* reason for `use`: "same leaves as 31 others", "no GPU near it" */
    /* Rail and plane: source of the leaf; use: source of link and speed, or of the network. */
    enum source rail_source, plane_source, use_source;
    struct nic_verbs verbs;
};

/* True for an Elastic Fabric Adapter of AWS: datagrams of its own (SRD), no reliable queue pairs, no
 * LID, and a link layer that the kernel does not name (drivers/infiniband/hw/efa/efa_verbs.c:
 * IB_LINK_LAYER_UNSPECIFIED).  NCCL reaches it by a plugin alone. */
static inline bool nic_is_efa(const struct nic *n)
{
    return !strncmp(n->driver, "efa", 3) && (!n->driver[3] || n->driver[3] == ' ');
}

void nic_init(struct nic *n, int host); /* nothing known, indices -1 */
/* Source of link and speed; the user's file if the row of the NIC names no source. */
enum source nic_teller(const struct nic *n);

#endif
