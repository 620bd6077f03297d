/* nccl_logs.h - logs of whole jobs for tests: each rank's text as NCCL 2.28 writes it, merged. */
#ifndef RG_TESTS_NCCL_LOGS_H
#define RG_TESTS_NCCL_LOGS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sources/nccl/nccl_log.h"
#include "topo/topo.h"

struct job {
    struct nccl_profile all;
    struct topo topo;
    int ranks, per_host;
};

/* Hosts n0, n1 ... of per_host GPUs; rack r holds two hosts; all one NVLink domain if asked. */
static inline void job_open(struct job *j, int ranks, int per_host, bool domain)
{
    char name[32];

    memset(j, 0, sizeof(*j));
    topo_init(&j->topo);
    j->ranks = ranks;
    j->per_host = per_host;
    for (int r = 0; r < ranks; r++) {
        snprintf(name, sizeof(name), "n%d", r / per_host);
        int id = topo_add_endpoint(&j->topo, topo_add_host(&j->topo, name), ENDPOINT_GPU);
        snprintf(name, sizeof(name), "rack%d", r / per_host / 2);
        j->topo.endpoint[id].place.at[LEVEL_RACK] = topo_add_group(&j->topo, LEVEL_RACK, name);
        j->topo.endpoint[id].source[LEVEL_RACK] = SOURCE_USER;
        if (domain) {
            j->topo.endpoint[id].place.at[LEVEL_DOMAIN] =
                topo_add_group(&j->topo, LEVEL_DOMAIN, "d");
            j->topo.endpoint[id].source[LEVEL_DOMAIN] = SOURCE_USER;
        }
    }
    topo_default_tiers(&j->topo);
}

/* The log of one rank: NICs, a ring graph of `channels`, its ring neighbours, and its connections,
 * "TO VIA" each ending with a newline. */
static inline void job_rank(struct job *j, int rank, int channels, int before, int after,
                            const char *nics, const char *links)
{
    char text[8192];
    int n = 0;
    struct nccl_profile one;

#define ADD(...)                                                                                   \
    n += snprintf(text + n, sizeof(text) - (size_t)n, "h:1:2 [0] NCCL INFO " __VA_ARGS__)
    ADD("NCCL version 2.28.9+cuda13.0\n");
    ADD("NET/IB : Using %s [RO]; OOB eth0:10.0.0.1<0>\n", nics);
    ADD("Using network IB\n");
    ADD("ncclCommInitRankConfig comm 0x10 rank %d nranks %d cudaDev 0 nvmlDev 0 busId 1000 commId "
        "0x77 - Init START\n",
        rank, j->ranks);
    ADD("NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)\n");
    ADD("Pattern 4, crossNic 0, nChannels %d, bw 20.000000/10.000000, type NVL/PIX, sameChannels "
        "1\n",
        channels);
    ADD("comm 0x10 rank %d nRanks %d nNodes %d localRanks %d localRank 0 MNNVL 0\n", rank, j->ranks,
        j->ranks / j->per_host, j->per_host);
    ADD("Ring 00 : %d -> %d -> %d\n", before, rank, after);
    for (const char *l = links; *l; l = strchr(l, '\n') + 1)
        ADD("Channel 00/0 : %d[0] -> %d[0] %s%.*s\n", rank, atoi(l),
            strstr(l, "NET") && strstr(l, "NET") < strchr(l, '\n') ? "[send] via " : "via ",
            (int)strcspn(strchr(l, ' ') + 1, "\n"), strchr(l, ' ') + 1);
    ADD("%d coll channels, %d collnet channels, 0 nvls channels, 32 p2p channels, 2 p2p channels "
        "per peer\n",
        channels, channels);
    ADD("ncclCommInitRankConfig comm 0x10 rank %d nranks %d cudaDev 0 nvmlDev 0 busId 1000 commId "
        "0x77 - Init COMPLETE\n",
        rank, j->ranks);
#undef ADD
    nccl_log_parse(&one, text, (size_t)n);
    nccl_merge(&j->all, &one, rank);
}

static inline void job_judge(struct job *j)
{
    nccl_merge_end(&j->all);
    nccl_judge(&j->all, &j->topo);
}

static inline bool job_found(const struct job *j, const char *sentence)
{
    for (int i = 0; i < j->all.findings; i++)
        if (strstr(j->all.finding[i], sentence))
            return true;
    for (int i = 0; i < j->all.findings; i++)
        fprintf(stderr, "# found: %s\n", j->all.finding[i]);
    return false;
}

static inline void job_close(struct job *j)
{
    nccl_profile_free(&j->all);
    topo_free(&j->topo);
}

#endif
