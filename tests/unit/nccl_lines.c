/* SPDX-License-Identifier: BSD-3-Clause */
/* Single lines after the formats of NCCL 2.19 to 2.30 (src/init.cc, src/transport, src/graph,
 * src/enqueue.cc of the tags), each behind the start of a communicator of 16 ranks whose rank 3 this
 * is, and what the reader takes from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "topo/sources/nccl/nccl_log.h"

#define START                                                                                      \
    "n1:70:81 [3] NCCL INFO ncclCommInitRankConfig comm 0x55d0 rank 3 nranks 16 cudaDev 3 "        \
    "nvmlDev "                                                                                     \
    "3 busId 5d000 commId 0x9a11 - Init START\n"
#define LINE(text) START "n1:70:81 [3] NCCL INFO " text "\n"

static void spell_link(char *to, size_t size, const struct nccl_link *k)
{
    snprintf(to, size, "%d>%d %s net %d by %d%s%s%s", k->from, k->to, nccl_via_name[k->via], k->net,
             k->through, k->gdr ? " gdr" : "", k->shared ? " shared" : "",
             k->receives ? " receives" : "");
}

static void spell_comm(char *to, size_t size, const struct nccl_comm_profile *c)
{
    snprintf(to, size, "nodes %d local %d mnnvl %d coll %d nvls %d p2p %d/%d rings %d%s", c->nodes,
             c->local, c->mnnvl, c->coll, c->nvls, c->p2p, c->p2p_peer, c->rings,
             c->complete ? " complete" : "");
}

static void spell_graph(char *to, size_t size, const struct nccl_comm_profile *c)
{
    for (int i = 0; i < NCCL_GRAPH_COUNT; i++)
        if (c->graph[i].pattern)
            snprintf(to, size, "graph %d: %d channels %g/%g %s/%s", i, c->graph[i].channels,
                     c->graph[i].intra_Bps / 1e9, c->graph[i].inter_Bps / 1e9,
                     c->graph[i].type_intra, c->graph[i].type_inter);
}

/* What the line said beside the communicator that it is of: the first that there is. */
static void spell(char *to, size_t size, const struct nccl_profile *p)
{
    const struct nccl_rank *r = &p->rank[0];

    *to = '\0';
    if (p->links)
        spell_link(to, size, &p->link[0]);
    else if (p->choices)
        snprintf(to, size, "%s %lld %s %s %d", p->choice[0].op, p->choice[0].bytes,
                 p->choice[0].algo, p->choice[0].proto, p->choice[0].channels);
    else if (p->envs || p->warns || p->findings)
        snprintf(to, size, "%s", p->envs ? p->env[0] : p->warns ? p->warn[0] : p->finding[0]);
    else if (r->nics)
        snprintf(to, size, "%d nics, %d %s gdr %d", r->nics, r->nic[r->nics - 1].number,
                 r->nic[r->nics - 1].name, r->nic[r->nics - 1].gdr);
    else if (*p->version || *r->net)
        snprintf(to, size, "%s", *p->version ? p->version : r->net);
    else if (r->nvls >= 0)
        snprintf(to, size, "nvls %d", r->nvls);
    else if (p->comms)
        spell_graph(to, size, &p->comm[0]);
    if (!*to && p->comms)
        spell_comm(to, size, &p->comm[p->comms - 1]);
}

#define NOTHING "nodes 0 local 0 mnnvl -1 coll -1 nvls -1 p2p -1/-1 rings 0"
static const struct {
    const char *text, *says;
} rows[] = {
    /* 2.19 to 2.22 */
    {LINE("Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM"), "3>4 P2P net -1 by -1"},
    {LINE("Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM/read"), "3>4 P2P net -1 by -1"},
    {LINE("Channel 07/0 : 3[3] -> 2[2] via P2P/CUMEM/CE"), "3>2 P2P net -1 by -1"},
    {LINE("Channel 01/1 : 3[3] -> 7[7] via P2P/IPC"), "3>7 P2P net -1 by -1"},
    {LINE("Channel 01/1 : 3[3] -> 7[7] via P2P/IPC/read/CE"), "3>7 P2P net -1 by -1"},
    {LINE("Channel 01/0 : 3[3] -> 0[0] via P2P/direct pointer"), "3>0 P2P net -1 by -1"},
    {LINE("Channel 01/0 : 3[3] -> 0[0] via P2P/direct pointer/read"), "3>0 P2P net -1 by -1"},
    {LINE("Channel 00/0 : 3[3] -> 6[6] via P2P/indirect/2[2]"), "3>6 P2P net -1 by 2"},
    {LINE("Channel 00/0 : 3[3] -> 6[6] via P2P/indirect/2[2]/read"), "3>6 P2P net -1 by 2"},
    {LINE("Channel 03 : 3[3] -> 4[4] via SHM/direct/direct"), "3>4 SHM net -1 by -1"},
    {LINE("Channel 03 : 3[3] -> 4[4] via SHM/direct/CE"), "3>4 SHM net -1 by -1"},
    {LINE("Channel 12 : 3[3] -> 4[4] via SHM/CE/CE"), "3>4 SHM net -1 by -1"},
    {LINE("Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/3"), "3>11 NET/IB net 3 by -1"},
    {LINE("Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/3/GDRDMA"),
     "3>11 NET/IB net 3 by -1 gdr"},
    {LINE("Channel 00/0 : 11[3] -> 3[3] [receive] via NET/IB/3/GDRDMA"),
     "11>3 NET/IB net 3 by -1 gdr receives"},
    {LINE("Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/3/GDRDMA/Shared"),
     "3>11 NET/IB net 3 by -1 gdr shared"},
    {LINE("Channel 00/0 : 11[3] -> 3[3] [receive] via NET/IB/10/Shared"),
     "11>3 NET/IB net 10 by -1 shared receives"},
    {LINE("Channel 02/0 : 3[3] -> 13[5] [send] via NET/IB/5(5)/GDRDMA"),
     "3>13 NET/IB net 5 by 5 gdr"},
    {LINE("Channel 02/0 : 3[3] -> 13[5] [send] via NET/IB/5(5)"), "3>13 NET/IB net 5 by 5"},
    {LINE("Channel 00/0 : 3[3] -> 8[0] [send] via NET/Socket/0"), "3>8 NET/Socket net 0 by -1"},
    {LINE("Channel 00/0 : 3[3] -> 8[0] [send] via NET/Socket/0/Shared"),
     "3>8 NET/Socket net 0 by -1 shared"},
    {LINE("Channel 00/0 : 3[3] -> 8[0] [send] via NET/IBext_v8/2/GDRDMA"),
     "3>8 NET/IB net 2 by -1 gdr"},
    {LINE("Channel 00/0 : 3[3] -> 8[0] [send] via NET/AWS Libfabric/3/GDRDMA"),
     "3>8 NET/plugin net 3 by -1 gdr"},
    {LINE("CollNet 00/0 : 3 [send] via COLLNET/SHARP/3/GDRDMA"), "3>3 COLLNET net 3 by -1 gdr"},
    {LINE("CollNet 00/1 : 3 [receive] via COLLNET/SHARP/3"), "3>3 COLLNET net 3 by -1 receives"},
    {LINE("16 coll channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer"),
     "nodes 0 local 0 mnnvl -1 coll 16 nvls 16 p2p 32/2 rings 0"},
    {LINE("1048576 Bytes -> Algo 1 proto 2 time 61.5"), " 1048576 ring simple -1"},
    {LINE("8192 Bytes -> Algo 0 proto 0 time 21.25"), " 8192 tree ll -1"},
    {LINE("65536 Bytes -> Algo 4 proto 2 time 30.0"), " 65536 nvls simple -1"},
    /* 2.23 to 2.30 */
    {LINE("AllReduce: 1048576 Bytes -> Algo 1 proto 1 time 50.0"),
     "all_reduce 1048576 ring ll128 -1"},
    {LINE("AllGather: 512 Bytes -> Algo 6 proto 2 time 9.0"), "all_gather 512 pat simple -1"},
    {LINE("AllReduce: 1048576 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}"),
     "all_reduce 1048576 nvls_tree simple 16"},
    {LINE("ReduceScatter: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={4..5}"),
     "reduce_scatter 4096 ring ll 2"},
    {LINE("AlltoAll: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}"),
     "all_to_all 4096 ring ll 1"},
    {LINE("Channel 00/0 : 3[3] -> 4[4] via P2P/MNNVL"), "3>4 P2P/MNNVL net -1 by -1"},
    {LINE("Channel 00 : 3[3] -> 4[4] via SHM/direct"), "3>4 SHM net -1 by -1"},
    {LINE("Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/3/GDRDMA(PCI)"),
     "3>11 NET/IB net 3 by -1 gdr"},
    {LINE("Channel 00/0 : 3[3] -> 13[5] [send] via NET/IB/5(5)/GDRDMA(PCI)/Shared"),
     "3>13 NET/IB net 5 by 5 gdr shared"},
    {LINE("NVLS comm 0x55d0 headRank 3 nHeads 8 nvlsRanks 8 buffSize 1048576 nvlsPerRankSize "
          "33554432 "
          "nvlsTotalSize 268435456"),
     "3>3 NVLS net -1 by -1"},
    {LINE("16 coll channels, 0 collnet channels, 0 nvls channels, 16 p2p channels, 16 p2p channels "
          "per peer"),
     "nodes 0 local 0 mnnvl -1 coll 16 nvls 0 p2p 16/16 rings 0"},
    {LINE("comm 0x55d0 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0"),
     "nodes 2 local 8 mnnvl 0 coll -1 nvls -1 p2p -1/-1 rings 0"},
    {LINE("MNNVL 1 cliqueId 7ffe cliqueSize 16 cliqueRank 3"),
     "nodes 0 local 0 mnnvl 1 coll -1 nvls -1 p2p -1/-1 rings 0"},
    {LINE("Ring 00 : 2 -> 3 -> 4"), "nodes 0 local 0 mnnvl -1 coll -1 nvls -1 p2p -1/-1 rings 1"},
    {LINE("Ring 00 : 2 -> 5 -> 4"), NOTHING}, /* another rank's */
    {LINE("ncclCommInitRankConfig comm 0x55d0 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 5d000 "
          "commId "
          "0x9a11 - Init COMPLETE"),
     NOTHING " complete"},
    {LINE("[Rank 3] ncclCommInitRankConfig comm 0x55d0 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId "
          "5d000 "
          "commId 0x9a11 - Init COMPLETE"),
     NOTHING " complete"},
    {LINE("Pattern 4, crossNic 0, nChannels 16, bw 20.000000/20.000000, type NVL/PIX, sameChannels "
          "1"),
     "graph 0: 16 channels 20/20 NVL/PIX"},
    {LINE("Pattern 1, crossNic 2, nChannels 8, bw 40.000000/24.000000, type NVL/P2C, sameChannels "
          "0"),
     "graph 1: 8 channels 40/24 NVL/P2C"},
    {LINE("NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)"), "nvls 1"},
    {LINE("NVLS multicast support is not available on dev 3 (NVLS_NCHANNELS 0)"), "nvls 0"},
    {LINE("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"),
     "2 nics, 1 mlx5_3:1/RoCE gdr -1"},
    {LINE("NET/Socket : Using [0]eth0:10.0.0.1<0>"), "1 nics, 0 eth0:10.0.0.1<0> gdr -1"},
    {LINE("NET/IB : GPU Direct RDMA Enabled for HCA 2 'mlx5_2'"), "1 nics, 2 mlx5_2 gdr 1"},
    {LINE("NET/IB : GPU Direct RDMA Disabled for HCA 2 'mlx5_2'"), "1 nics, 2 mlx5_2 gdr 0"},
    {LINE("Using network AWS Libfabric"), "AWS Libfabric"},
    {LINE("NET/OFI Selected Provider is efa"), NOTHING},
    {LINE("NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"), NOTHING},
    {LINE("NET/OFI Selected provider is tcp;ofi_rxm, fabric is 10.0.0.0/24 (found 1 nics)"),
     "the network plugin uses libfabric's provider tcp;ofi_rxm: sockets, not RDMA (FI_PROVIDER)"},
    /* 2.30: NICs of two planes as one; each alone has a line too */
    {LINE(
         "NET/IB : Using [0]mlx5_0:1:0:0/IB [1]mlx5_1:1:0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
         "n1:70:81 [3] NCCL INFO NET/IB : Made virtual device [1] name=mlx5_1 speed=400000 ndevs=1 "
         "rail=0 plane=1\n"
         "n1:70:81 [3] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 "
         "ndevs=2 rail=0 plane=16387"),
     "3 nics, 2 mlx5_0+mlx5_1/IB rail 0 gdr -1"},
    {LINE("NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
          "n1:70:81 [3] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 "
          "ndevs=2 rail=-1 plane=16387"),
     "3 nics, 2 mlx5_0+mlx5_1/RoCE gdr -1"},
    {LINE("NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=800000 ndevs=2"),
     "1 nics, 2 mlx5_0+mlx5_1 gdr -1"},
    {LINE("NET/gIB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"), "1 nics, 0 mlx5_0 gdr 1"},
    {LINE("Assigned NET plugin IB to comm"), "IB"},
    {LINE("NCCL_ALGO set by environment to Ring"), "NCCL_ALGO set by environment to Ring"},
    {LINE("NCCL_IB_HCA set to mlx5"), "NCCL_IB_HCA set to mlx5"},
    {LINE("Comm config splitShare set to 1"), "Comm config splitShare set to 1"},
    {LINE("NCCL version 2.30.7+cuda13.1"), "2.30.7+cuda13.1"},
    /* What nothing is taken from. */
    {LINE("Connected all rings"), NOTHING},
    {LINE("Connected all rings, use ring PXN 0 GDR 1"), NOTHING},
    {LINE("Connected all trees"), NOTHING},
    {LINE("Channel 00/16 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"), NOTHING},
    {LINE("Trees [0] 4/-1/-1->3->2 [1] 4/-1/-1->3->2"), NOTHING},
    {LINE("P2P Chunksize set to 131072"), NOTHING},
    {LINE("Rank 3 has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator"), NOTHING},
    {LINE("Bootstrap timings total 0.012 (create 0.000, send 0.001, recv 0.004, ring 0.002, delay "
          "0.0)"),
     NOTHING},
    {LINE("RAS client listening socket at ::1<28028>"), NOTHING},
    {LINE("Channel 00/0 : 3[3] -> 99[99] via P2P/CUMEM"), NOTHING}, /* not a rank of any */
    /* Versions without a host before them; mail that quotes. */
    {"NCCL version 2.19.3+cuda12.3\n", "2.19.3+cuda12.3"},
    {"> NCCL version 2.21.5+cuda12.4\n", "2.21.5+cuda12.4"},
    {"> > NCCL version 2.21.5+cuda12.4\r\n", "2.21.5+cuda12.4"},
    {"RCCL version 2.18.6+hip6.1 HEAD:b1f2c3d\n", "2.18.6+hip6.1"},
    {"RCCL version : 2.22.3-HEAD:9f3c\n", "2.22.3-HEAD:9f3c"},
    {"> n1:70:81 [3] NCCL INFO Using network IB\n", "IB"},
};

static void each_line_says_what_its_release_means(void **state)
{
    char says[256];
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct nccl_profile p;

        nccl_log_parse(&p, rows[i].text, strlen(rows[i].text));
        spell(says, sizeof(says), &p);
        if (strcmp(says, rows[i].says) != 0) {
            print_error("%s    is \"%s\", not \"%s\"\n", rows[i].text, says, rows[i].says);
            wrong++;
        }
        nccl_profile_free(&p);
    }
    assert_int_equal(wrong, 0);
}

/* Rank `rank` of a whole of four in its second split, as part `color`. */
static void part(struct nccl_profile *all, int rank, int color, const char *count)
{
    char text[1024];
    struct nccl_profile one;

    snprintf(text, sizeof(text),
             "n1:70:81 [0] NCCL INFO ncclCommInitRankConfig comm 0x%x rank %d nranks 4 cudaDev 0 "
             "nvmlDev 0 busId 1000 commId 0x77 - Init START\n"
             "n1:70:81 [0] NCCL INFO ncclCommSplit comm 0x%x rank %d nranks 2 cudaDev 0 nvmlDev 0 "
             "busId 1000 parent 0x%x %scolor %d key %d- Init START\n",
             rank + 16, rank, rank + 32, rank % 2, rank + 16, count, color, rank);
    nccl_log_parse(&one, text, strlen(text));
    nccl_merge(all, &one, rank);
}

static void parts_of_one_color_are_one_and_of_others_are_not(void **state)
{
    static const char *const count[] = {"splitCount 2 ", ""}; /* from 2.28 on, and before */

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct nccl_profile all = {0};

        for (int rank = 0; rank < 4; rank++)
            part(&all, rank, rank / 2, count[i]);
        assert_int_equal(all.comms, 3);
        assert_int_equal(all.comm[0].ranks, 4);
        assert_true(all.comm[1].hash && all.comm[2].hash && all.comm[1].hash != all.comm[2].hash);
        assert_int_equal(all.comm[1].endpoint[0], 0);
        assert_int_equal(all.comm[1].endpoint[1], 1);
        assert_int_equal(all.comm[2].endpoint[0], 2);
        assert_int_equal(all.comm[2].endpoint[1], 3);
        nccl_profile_free(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_says_what_its_release_means),
        cmocka_unit_test(parts_of_one_color_are_one_and_of_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
