/* nccl_story.h - what the stand-in for NCCL says it has found and chosen.
 *
 * FAKE_NCCL names a text file, one "KEY VALUE..." a line, '#' begins a comment.  RANKS are ranks of
 * the job: "0-3,8" or "*".  Sizes take K, M, G.
 *   host RANKS NAME               these ranks are on host NAME (default: all on this machine)
 *   clique RANKS                  their GPUs form one NVLink domain, over hosts too (MNNVL)
 *   pcie RANKS TYPE               no NVLink between them: paths of TYPE (PIX, PXB, PHB, SYS)
 *   nic mlx5_0:1/IB               an HCA of every host, /IB or /RoCE; several, in NCCL's order
 *   socket eth0:10.0.0.1<0>       an interface; several (default lo:127.0.0.1<0>)
 *   plugin AWS Libfabric          a network plugin instead of the HCAs
 *   nogdr RANKS                   no GPUDirect RDMA there
 *   channels N                    of rings and trees (default 16)
 *   nvls N                        channels of NVLS (default 0: not there)
 *   bw ring 30 45 NVL PIX         GB/s a channel within and between hosts, path types; also tree,
 *                                 nvls (default 30 45 NVL PIX)
 *   ring 0,4,1,5                  order of the ranks in the rings (default 0, 1, 2 ...)
 *   algo AllReduce 1M TREE LL     up to this size this choice, first match; else by a rule of thumb
 *   connect SECONDS               what a connection costs when it is made (default 0)
 *   via 0-3 4-7 NET/IB/0/GDRDMA   between these ranks it is this, whatever the rest says; the last
 *                                 match counts
 * Without the file: one host, P2P between its GPUs, sockets. */
#ifndef NCCL_STORY_H
#define NCCL_STORY_H

#include "nccl_fake.h"

#pragma GCC visibility push(hidden)

enum { STORY_MAX = 64, STORY_RANKS = 1024 };

enum story_graph { STORY_RING, STORY_TREE, STORY_NVLS, STORY_GRAPHS };

struct story_set { /* ranks of the job */
    unsigned char in[STORY_RANKS / 8];
};
bool story_in(const struct story_set *s, int rank);

struct story_profile {
    struct {
        struct story_set ranks;
        char name[64];
    } host[STORY_MAX];
    struct story_set clique[STORY_MAX], nogdr;
    struct {
        struct story_set ranks;
        char type[8];
    } pcie[STORY_MAX];
    struct {
        struct story_set from, to;
        char text[64];
    } via[STORY_MAX];
    struct {
        char op[16], algo[16], proto[8];
        unsigned long long bytes;
    } algo[STORY_MAX];
    struct {
        double intra, inter;
        char type_intra[8], type_inter[8];
    } bw[STORY_GRAPHS];
    char nic[STORY_MAX][48], socket[STORY_MAX][64], plugin[32];
    int ring[STORY_RANKS];
    double connect;
    int hosts, cliques, pcies, vias, algos, nics, sockets, rings, channels, nvls;
};
/* Read once; a mistake in it ends the program. */
const struct story_profile *story_profile(void);

/* What was worked out for one communicator. */
enum { ALGOS = 7, PROTOS = 3, FUNCTIONS = OP_REDUCE_ROOT + 1 };
enum { PROTO_WHERE_FAST = 2 }; /* LL128 that nobody asked for */
struct profile {
    char net[32];    /* "IB", "Socket", a plugin's name */
    int *order, *at; /* the ring: ranks in order, and where each is in it */
    int nodes, local_ranks, local_rank, most_local, channels, nvls;
    bool mnnvl, gdr;
    unsigned char algo[FUNCTIONS][ALGOS], proto[FUNCTIONS][PROTOS]; /* of OP_ALLREDUCE ... */
    char algo_text[128], proto_text[128];
    bool rings_up, trees_up;
    unsigned char *sent, *received; /* [ranks]: point-to-point connections that are there */
};

/* A number in the environment as NCCL's parameters are: read once in a process, told in the log. */
long story_param(const char *name, long otherwise);
/* "NVL", "PIX" ...: how NCCL would call the path between two ranks of one host. */
const char *story_path(const struct ncclComm *c, int a, int b);
/* What carries data from rank a to b, "P2P/CUMEM"; without [send] and [receive]. */
void story_via(struct ncclComm *c, int a, int b, char text[80]);
/* Read NCCL_ALGO and NCCL_PROTO; enum nccl_result. */
int story_choices(struct ncclComm *c);
void story_dump(struct ncclComm *c);
void story_connect_rings(struct ncclComm *c);
void story_connect_trees(struct ncclComm *c);

#pragma GCC visibility pop
#endif
