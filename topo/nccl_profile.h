/* nccl_profile.h - communicators that NCCL built in a campaign, according to NCCL's own log.
 *
 * Each rank reads its NCCL log (nccl_log.h) and the topology dump (nccl_xml_load()); rank 0 merges the
 * profiles (nccl_merge()) and judges the result (nccl_judge()).  Stored in topology.json as
 * "nccl".
 *
 * The profile of a single rank and the merged profile share a struct.  A single profile has one
 * rank, communicators that know only this rank, and the links that this rank opened.  In the
 * merged profile `endpoint` of a communicator lists the ranks.  Speeds are bytes per second. */
#ifndef RG_NCCL_PROFILE_H
#define RG_NCCL_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct topo;

/* Path types, nearest first. */
enum nccl_path_type {
    NCCL_PATH_LOC, /* the same device */
    NCCL_PATH_NVL, /* NVLink */
    NCCL_PATH_NVB, /* NVLink through another GPU */
    NCCL_PATH_C2C, /* chip-to-chip link of a Grace CPU */
    NCCL_PATH_PIX, /* one PCIe switch */
    NCCL_PATH_PXB, /* several PCIe switches */
    NCCL_PATH_P2C, /* C2C, then PCIe: the NIC of a GPU's own Grace */
    NCCL_PATH_PXN, /* NVLink to another GPU and its NIC */
    NCCL_PATH_PHB, /* host bridge of a CPU */
    NCCL_PATH_SYS, /* between CPUs */
    NCCL_PATH_NET,
    NCCL_PATH_DIS, /* no path */
    NCCL_PATH_COUNT
};
extern const char *const nccl_path_type_name[NCCL_PATH_COUNT]; /* "LOC", "NVL" ... */
int nccl_path_type_find(const char *name);                     /* -1: unknown */

struct nccl_xml_gpu {
    int rank, dev, sm; /* place in the communicator that wrote the dump; rank -1: not in the file */
    uint64_t host;     /* host_hash */
    char busid[16];
    bool gdr;
    int nvlinks; /* number in total */
};
struct nccl_xml_net {
    int dev;
    uint64_t host;
    char name[48];
    double Bps;
    bool gdr;
    int rail, plane; /* -1: not stated */
};
struct nccl_route {
    unsigned char type; /* enum nccl_path_type */
    double Bps;
};
struct nccl_paths {
    struct nccl_xml_gpu *gpu;
    int gpus;
    struct nccl_xml_net *net;
    int nets;
    struct nccl_route *pair; /* [gpu][gpu] */
    struct nccl_route *nic;  /* [gpu][net] */
};
void nccl_paths_free(struct nccl_paths *p); /* NULL is allowed */
enum { NCCL_XML_KIND_MAX = 640 }; /* maximum number of GPUs, and of NICs: NCCL's own limit */

/* Limits of a profile. */
enum {
    NCCL_LOG_LINE_MAX = 8192, /* the rest of a longer line is skipped */
    NCCL_COMMS_MAX = 1 << 16,
    NCCL_LINKS_MAX = 1 << 20,
    NCCL_CHOICES_MAX = 1 << 14,
    NCCL_NICS_MAX = 256,
    NCCL_RANKS_MAX = 1 << 20
};

/* Transport between two ranks, from NCCL's "via". */
enum nccl_via {
    NCCL_VIA_P2P, /* NVLink or PCIe within a host: P2P/CUMEM, P2P/IPC, P2P/direct pointer */
    /* P2P/MNNVL: NVLink.  NCCL prints this for every P2P connection of a communicator that spans
     * hosts by NVLink, so also between two ranks of the same host. */
    NCCL_VIA_MNNVL,
    NCCL_VIA_SHM,
    NCCL_VIA_NET_IB,     /* InfiniBand or RoCE, with verbs */
    NCCL_VIA_NET_SOCKET, /* TCP */
    NCCL_VIA_NET_OTHER,  /* a plugin: NET/AWS Libfabric ... */
    NCCL_VIA_COLLNET,    /* to == from: the network switch reduces */
    NCCL_VIA_NVLS,       /* to == from: the NVSwitch reduces */
    NCCL_VIA_COUNT
};
extern const char
    *const nccl_via_name[NCCL_VIA_COUNT]; /* "P2P", "P2P/MNNVL", "SHM", "NET/IB" ... */

/* Equal connections between two ranks, in one direction. */
struct nccl_link {
    int from, to; /* ranks of the communicator */
    enum nccl_via via;
    int net; /* number of the NIC; -1: no NIC */
    /* Rank that relays (P2P/indirect) or provides the NIC (PXN); -1: no such rank. */
    int through;
    bool gdr, shared; /* GPUDirect RDMA; buffers shared between connections */
    bool receives;    /* the receiver's line (NET only) */
    int channels;     /* number of such lines */
};

enum nccl_graph_kind {
    NCCL_GRAPH_RING,
    NCCL_GRAPH_TREE,
    NCCL_GRAPH_COLLNET_CHAIN,
    NCCL_GRAPH_COLLNET_DIRECT,
    NCCL_GRAPH_NVLS,
    NCCL_GRAPH_COUNT
};
extern const char *const nccl_graph_name[NCCL_GRAPH_COUNT]; /* "ring", "tree" ... */

struct nccl_graph { /* result of NCCL's search; channels 0: not built */
    int pattern, channels;
    double intra_Bps, inter_Bps;       /* per channel, assumed by NCCL */
    char type_intra[8], type_inter[8]; /* path types: "NVL", "PIX", "NET" */
};

/* Communicator; owns its arrays. */
struct nccl_comm_profile {
    /* commId of the log lines, equal on all ranks of the communicator; 0: not stated. */
    uint64_t hash;
    int ranks;
    int rank;                      /* rank of this process; -1 in a merged profile */
    int nodes, local;              /* hosts; ranks on this rank's host; 0: not stated */
    int mnnvl;                     /* 1, 0; -1: not stated */
    int coll, nvls, p2p, p2p_peer; /* number of channels; -1: not stated */
    bool complete;                 /* "Init COMPLETE" was printed */
    struct nccl_graph graph[NCCL_GRAPH_COUNT];
    /* Merged: endpoint of each rank, -1: no profile of it; NULL in a rank's own profile. */
    int *endpoint;
    /* Own profile: ranks before and after this one, [rings][2].  Merged: rings that all ranks
     * reported, [rings][ranks], each starting at rank 0. */
    int *ring, rings;
    /* Only between nccl_merge() and nccl_profile_free(), not stored: graphs of each rank,
     * [ranks][NCCL_GRAPH_COUNT], and the rank after each, [ranks][NCCL_RINGS_MAX]. */
    struct nccl_graph *each;
    int *after;
};

/* Algorithm and protocol that NCCL chose (TUNING lines; one rank per communicator prints them). */
struct nccl_choice {
    char op[20];     /* "all_reduce"; "" before NCCL 2.23 */
    int comm;        /* index of the communicator */
    long long bytes; /* counted by NCCL: for all_gather the input of one rank */
    /* "ring", "simple"; outside algorithms, "symmetric" with the kernel's name, or "copy_engine" and
     * "rma" with "-" */
    char algo[16], proto[48];
    int channels; /* -1: not stated (before 2.26) */
};

struct nccl_nic { /* NIC, with NCCL's number on a rank */
    int number;
    char name[48]; /* "mlx5_0:1/IB", "eth0:10.0.0.1<0>" */
    int gdr;       /* GPUDirect RDMA: 1, 0; -1: not stated */
};

/* Facts that one rank reported. */
struct nccl_rank {
    int endpoint;
    /* "IB", "Socket", or a plugin's name, of the last connection or else as loaded; "": not stated */
    char net[32];
    char busid[16];
    int nvls; /* multicast on the GPU: 1, 0; -1: not stated */
    struct nccl_nic *nic;
    int nics; /* owned */
};

struct nccl_profile {
    char version[32];  /* "2.28.9+cuda13.0"; "": not stated */
    long long lines;   /* number of NCCL's lines; 0: nothing to judge */
    long long dropped; /* number of facts beyond the limits of nccl_log.h */
    char **env, **warn, **finding;
    int envs, warns, findings;
    struct nccl_rank *rank;
    int ranks;
    struct nccl_comm_profile *comm;
    int comms;
    struct nccl_link *link; /* the communicator of link i is link_comm[i] */
    int *link_comm, links;
    struct nccl_choice *choice;
    int choices;
    struct nccl_paths *paths; /* topology dumps, one per host that wrote a dump */
    int *paths_comm, n_paths; /* communicator of the ranks in each dump; -1: unknown */
    /* By endpoint, made by nccl_profile_index(); dump -1: no dump has the endpoint. */
    struct nccl_where {
        int dump, gpu;
    } * where;
    int wheres;
};

void nccl_profile_free(struct nccl_profile *p);
/* Update `where` after paths or comms changed; nccl_merge_end() and nccl_profile_read() call it. */
void nccl_profile_index(struct nccl_profile *p);
/* Append a text unless it is in the list; false: the list is full (NCCL_TEXTS_MAX). */
enum { NCCL_TEXTS_MAX = 256, NCCL_RINGS_MAX = 64 };
bool nccl_profile_note(char ***list, int *count, const char *text);

/* Write and read "nccl" of topology.json (schema: topo/schema/topology.schema.json).  Reading is
 * strict (EXIT_DATA); `where` begins the message. */
json_t *nccl_profile_json(const struct nccl_profile *p); /* new reference */
int nccl_profile_read(struct nccl_profile *p, json_t *from, const char *where, struct err *err);

/* Add the profile of the rank at this endpoint to the merged profile `all`; *one is emptied. */
void nccl_merge(struct nccl_profile *all, struct nccl_profile *one, int endpoint);
/* Assemble the rings after the last nccl_merge(). */
void nccl_merge_end(struct nccl_profile *all);

/* Add sentences about oddities to p->finding.  t (or NULL) names hosts, NICs and domains. */
void nccl_judge(struct nccl_profile *p, const struct topo *t);
/* Bandwidth that NCCL assumes for large messages on a communicator's rings or trees: bytes per
 * second and direction through its narrowest rank; 0: not stated. */
double nccl_assumed(const struct nccl_comm_profile *c);
/* Compare the assumed bandwidth with a measured bus bandwidth; adds a finding if they differ by
 * more than a third. */
void nccl_judge_measured(struct nccl_profile *p, int comm, const char *op, double busbw);

/* Path type between two endpoints, from the dumps; -1: in no dump. */
int nccl_pair_path(const struct nccl_profile *p, int from, int to, double *Bps);

/* Variables and files that change what NCCL does, one text each ("NCCL_ALGO=Ring: ...").  The
 * caller frees each and the array.  root: "", or the folder of a recorded machine. */
char **nccl_env_set(const char *root, int *count);

void nccl_print(const struct nccl_profile *p, const struct topo *t, FILE *f);

#endif
