/* ibnet_impl.h - declarations of our own for libibnetdisc.so.5 of rdma-core, and the state of the
 * reader of ibnetdiscover's text.
 *
 * The library has no accessor functions: its structs are read directly, so the layouts are those
 * of infiniband/ibnetdisc.h and mad.h (equal in rdma-core 44, 56 and later, one soname).
 * tests/unit/ibnet_abi.c compares them where the headers are installed. */
#ifndef RG_IBNET_IMPL_H
#define RG_IBNET_IMPL_H

#include <stdint.h>

#include "topo/sources/net/ibnet.h"

enum { IBND_DATA = 64, IBND_CA = 1, IBND_SWITCH = 2, IBND_ROUTER = 3 };

struct ibnd_path { /* ib_portid_t */
    int lid;
    struct {
        int count;
        uint8_t hop[64];
        uint16_t from, to;
    } route;
    int has_grh;
    uint8_t gid[16];
    uint32_t qp, qkey;
    uint8_t sl;
    unsigned pkey;
};

struct ibnd_port_own;
struct ibnd_node_own { /* ibnd_node_t, as far as used */
    struct ibnd_node_own *next;
    struct ibnd_path path;
    uint16_t lid; /* switches only */
    uint8_t lmc;
    int enhanced;
    uint8_t switch_info[IBND_DATA];
    uint64_t guid;
    int type;
    int ports;
    uint8_t info[IBND_DATA]; /* NodeInfo */
    char name[IBND_DATA + 1];
    /* Indexed by port number; entries may be NULL, switches have port 0. */
    struct ibnd_port_own **port;
};

struct ibnd_port_own { /* ibnd_port_t, as far as used */
    uint64_t guid;
    int number, external;
    struct ibnd_node_own *node;
    struct ibnd_port_own *peer; /* NULL: no cable */
    uint16_t lid;
    uint8_t lmc;
    uint8_t info[IBND_DATA]; /* PortInfo */
};

struct ibnd_config_own { /* ibnd_config_t: newer libraries need one */
    unsigned max_smps, progress, max_hops, debug, timeout_ms, retries;
    uint32_t flags;
    uint64_t mkey;
    uint8_t pad[44];
};

struct ibnd_fabric_own { /* ibnd_fabric_t, as far as used */
    struct ibnd_node_own *from;
    int from_port;
    struct ibnd_node_own *nodes;
};

struct ibnet_api {
    void *library;
    struct ibnd_fabric_own *(*discover)(char *device, int port, struct ibnd_path *from,
                                        struct ibnd_config_own *config);
    void (*destroy)(struct ibnd_fabric_own *fabric);
    /* Only in libraries that know XDR: 1 FDR, 2 EDR, 4 HDR, 8 NDR, 32 XDR, 0 none. */
    int (*extended)(void *port_info_0, void *port_info);
};

/* Port line: one end of a cable. */
struct ibnet_end {
    int line, node, port;
    int peer; /* index of the other node in ibnet_text.ids */
    int peer_port;
    uint64_t guid, peer_guid; /* port GUIDs; 0: unknown */
    int lid, peer_lid;        /* 0: unknown */
    int width;
    char speed[8];
};

struct ibnet_text {
    const char *path;
    int line;
    struct err *err;
    struct net *net;
    int *node_line; /* first line of each node's record */
    int lines;      /* entries of node_line, equal to net->nodes */
    struct names ids;
    int *node_of;  /* index of the node + 1, by id; 0: no record yet */
    int node_ofs;  /* number of entries */
    uint64_t guid; /* "switchguid=" of the next record; 0: none */
    int guid_line;
    long device_id; /* "devid=" */
    struct ibnet_end *end;
    int ends;
};

/* Read nodes, cable ends and ids of a text; the text is modified. */
int ibnet_text_read(struct ibnet_text *x, char *text, size_t len);

#endif
