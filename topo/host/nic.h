/* nic.h - a network adapter's port: its link, its place, and the switch at the other end. */
#ifndef RG_NIC_H
#define RG_NIC_H

#include "topo/topo.h"

/* What a NIC is there for.  Training traffic belongs on compute NICs only. */
enum nic_use { NIC_UNKNOWN, NIC_COMPUTE, NIC_STORAGE, NIC_MANAGEMENT, NIC_USES };
extern const char *const nic_layer_text[3];      /* "unknown link", "Ethernet", "InfiniBand" */
extern const char *const nic_use_name[NIC_USES]; /* "unknown", "compute", ... */

/* What libibverbs tells of a port that it could open, beside what others tell of the NIC: the same
 * facts by another way, and what only it knows. */
struct nic_verbs {
    bool told; /* the rest means nothing without */
    bool up;
    enum link_layer layer;
    double rate_Bps; /* active lanes times the speed of one; 0: a speed that it has no number for */
    char firmware[32];
    char gid[40];     /* the address of that number that the NIC's gid has; "": it has none */
    int mtu, mtu_max; /* bytes of a packet's payload: in use, and what the port can; 0: not told */
    int gids;         /* entries of its table of addresses */
    int qps, wrs;     /* queue pairs of the device, requests that wait in one of them */
    int sges, reads;  /* pieces of a request, RDMA reads and atomics under way at a queue pair */
    double message_bytes, region_bytes; /* the largest message, the largest registered memory */
};

struct nic {
    int host;
    char name[32]; /* "mlx5_0", "eth0"; "mlx5_0:2" is its second port */
    char busid[16];
    enum link_layer layer;
    double rate_Bps; /* per direction; 0: not visible */
    bool up;
    bool rdma; /* has verbs: InfiniBand or RoCE */
    int numa;  /* -1: not visible */
    enum source source;
    /* Of RDMA NICs and of what switches tell; texts: "" is not visible. */
    char guid[20];                /* of the port: "0xb83fd2030091a2c4" */
    char gid[40], gid_type[12];   /* what traffic uses: "RoCE v2", "IB" */
    int gid_index;                /* its number in the port's table; -1: not known */
    char board[20];               /* of the card: "MT_0000000838" */
    char firmware[32];            /* "28.39.1002" */
    char driver[48];              /* "mlx5_core 24.10-1.1.4"; its name alone: it tells no version */
    char netdev[16];              /* its network interface */
    char leaf[65], leaf_port[32]; /* the switch at the other end and the port there */
    enum source leaf_source;
    int rail, plane; /* from 0; -1: not known */
    enum nic_use use;
    char why[64]; /* what `use` rests on: "same leaves as 31 others", "no GPU near it" */
    /* Who told them, or what they follow from: a rail and a plane from the leaf, a use from the
     * NIC's link and speed or from the network that it is on. */
    enum source rail_source, plane_source, use_source;
    struct nic_verbs verbs;
};

void nic_init(struct nic *n, int host); /* nothing told: -1s */
/* Who told of its link and speed: its source; of one whose row names none, the user's file. */
enum source nic_teller(const struct nic *n);

#endif
