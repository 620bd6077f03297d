/* nccl_profile.h - what NCCL built: the communicators of a campaign as its own log tells of them.
 *
 * Each rank reads the log that NCCL wrote for it (nccl_log.h) and the topology dump (nccl_xml.h);
 * rank 0 merges them (nccl_merge()) and judges (nccl_judge()).  Kept in topology.json as "nccl".
 *
 * A rank's own profile and the merged one are the same struct: in a rank's own one there is one
 * rank, each communicator knows this rank only, and links are those that this rank opened; in the
 * merged one `endpoint` of a communicator says who its ranks are.  Speeds are bytes a second. */
#ifndef RG_NCCL_PROFILE_H
#define RG_NCCL_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "topo/nccl/nccl_xml.h"

struct topo;

/* What carries data between two ranks, as NCCL's "via" says it. */
enum nccl_via {
    NCCL_VIA_P2P,   /* NVLink or PCIe within a host: P2P/CUMEM, P2P/IPC, P2P/direct pointer */
    NCCL_VIA_MNNVL, /* P2P/MNNVL: NVLink; NCCL writes it for every P2P connection of a communicator
                     * that spans hosts by NVLink, so also for two ranks of one host */
    NCCL_VIA_SHM,
    NCCL_VIA_NET_IB,     /* InfiniBand or RoCE by verbs */
    NCCL_VIA_NET_SOCKET, /* TCP */
    NCCL_VIA_NET_OTHER,  /* a plugin: NET/AWS Libfabric ... */
    NCCL_VIA_COLLNET,    /* to == from: the network switch reduces */
    NCCL_VIA_NVLS,       /* to == from: the NVSwitch reduces */
    NCCL_VIA_COUNT
};
extern const char
    *const nccl_via_name[NCCL_VIA_COUNT]; /* "P2P", "P2P/MNNVL", "SHM", "NET/IB" ... */

/* The connections from one rank to another that are alike. */
struct nccl_link {
    int from, to; /* ranks of the communicator */
    enum nccl_via via;
    int net;          /* number of the NIC; -1: none */
    int through;      /* rank whose NIC is used (PXN) or that relays (P2P/indirect); -1: none */
    bool gdr, shared; /* GPUDirect RDMA; buffers shared between connections */
    bool receives;    /* the line was the receiver's (NET only) */
    int channels;     /* how many such lines there were */
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

struct nccl_graph { /* of the search; channels 0: not built */
    int pattern, channels;
    double intra_Bps, inter_Bps;       /* of one channel, as NCCL assumes */
    char type_intra[8], type_inter[8]; /* path types: "NVL", "PIX", "NET" */
};

/* A communicator.  The arrays are owned. */
struct nccl_comm_profile {
    uint64_t hash; /* the commId of its log lines; the same on all its ranks, 0: not said */
    int ranks;
    int rank;                      /* of this process; -1 in a merged profile */
    int nodes, local;              /* hosts, ranks on this rank's host; 0: not said */
    int mnnvl;                     /* 1, 0; -1: not said */
    int coll, nvls, p2p, p2p_peer; /* channels; -1: not said */
    bool complete;                 /* "Init COMPLETE" was written */
    struct nccl_graph graph[NCCL_GRAPH_COUNT];
    int *endpoint; /* merged: of each rank, -1: it told nothing; NULL in a rank's own profile */
    /* The rank before and after this one, [rings][2]; merged: rings of which all ranks told,
     * [rings][ranks], each from rank 0 on. */
    int *ring, rings;
    /* From nccl_merge() to nccl_profile_free(), not kept in files: what each rank said,
     * [ranks][NCCL_GRAPH_COUNT], and the rank after it, [ranks][NCCL_RINGS_MAX]. */
    struct nccl_graph *each;
    int *after;
};

/* Algorithm and protocol that NCCL chose (TUNING lines; one rank of the communicator writes them).
 */
struct nccl_choice {
    char op[20];             /* "all_reduce"; "" before NCCL 2.23 */
    int comm;                /* index */
    long long bytes;         /* as NCCL counts: of all_gather what one rank gives */
    char algo[16], proto[8]; /* "ring", "simple" */
    int channels;            /* -1: not said (before 2.26) */
};

struct nccl_nic { /* as NCCL numbers them on one rank */
    int number;
    char name[48]; /* "mlx5_0:1/IB", "eth0:10.0.0.1<0>" */
    int gdr;       /* GPUDirect RDMA: 1, 0; -1: not said */
};

/* What one rank said of itself. */
struct nccl_rank {
    int endpoint;
    char net[32]; /* "IB", "Socket", a plugin's name; "": not said */
    char busid[16];
    int nvls; /* multicast on its GPU: 1, 0; -1: not said */
    struct nccl_nic *nic;
    int nics; /* owned */
};

struct nccl_profile {
    char version[32];  /* "2.28.9+cuda13.0", "": not said */
    long long lines;   /* lines of NCCL that were read; 0: there is nothing to judge */
    long long dropped; /* facts beyond the limits of nccl_log.h */
    char **env, **warn, **finding;
    int envs, warns, findings;
    struct nccl_rank *rank;
    int ranks;
    struct nccl_comm_profile *comm;
    int comms;
    struct nccl_link *link; /* .comm of link i is link_comm[i] */
    int *link_comm, links;
    struct nccl_choice *choice;
    int choices;
    struct nccl_paths *paths; /* of the topology dumps, one a host that wrote one */
    int *paths_comm, n_paths; /* the communicator whose ranks they name; -1: not known */
    struct nccl_where {
        int dump, gpu;
    } * where; /* of endpoint i, dump -1: in none; made by nccl_profile_index() */
    int wheres;
};

void nccl_profile_free(struct nccl_profile *p);
/* After paths and comms changed: nccl_merge_end() and nccl_profile_read() call it. */
void nccl_profile_index(struct nccl_profile *p);
/* Append a text unless it is there; false: the list is full (NCCL_TEXTS_MAX). */
enum { NCCL_TEXTS_MAX = 256, NCCL_RINGS_MAX = 64 };
bool nccl_profile_note(char ***list, int *count, const char *text);

/* The "nccl" of topology.json (schema: topo/schema/topology.schema.json) and back; reading is
 * strict (EXIT_DATA), `where` starts the message. */
json_t *nccl_profile_json(const struct nccl_profile *p); /* new reference */
int nccl_profile_read(struct nccl_profile *p, json_t *from, const char *where, struct err *err);

/* Put what the rank of this endpoint said into the whole; *one is emptied. */
void nccl_merge(struct nccl_profile *all, struct nccl_profile *one, int endpoint);
/* After the last one: rings are put together. */
void nccl_merge_end(struct nccl_profile *all);

/* Look for what is odd and put sentences into p->finding; t names hosts, NICs and domains and may
 * be NULL. */
void nccl_judge(struct nccl_profile *p, const struct topo *t);
/* Bandwidth that NCCL assumes for large messages of a communicator's rings or trees, bytes a
 * second and direction through its narrowest rank; 0: not said. */
double nccl_assumed(const struct nccl_comm_profile *c);
/* Compare with a measured bus bandwidth of the communicator; a finding when they differ by more
 * than a third. */
void nccl_judge_measured(struct nccl_profile *p, int comm, const char *op, double busbw);

/* The path type between two endpoints, from the dumps; -1: no dump tells. */
int nccl_pair_path(const struct nccl_profile *p, int from, int to, double *Bps);

/* Variables and files that change what NCCL does, in words ("NCCL_ALGO=Ring: ..."), one a string;
 * the caller frees each and the array.  root: "" or the folder of a recorded machine. */
char **nccl_env_set(const char *root, int *count);

void nccl_print(const struct nccl_profile *p, const struct topo *t, FILE *f);

#endif
