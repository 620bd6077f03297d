/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/nccl/nccl_profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/host/gpu.h"

const char *const nccl_via_name[NCCL_VIA_COUNT] = {"P2P",        "P2P/MNNVL",  "SHM",     "NET/IB",
                                                   "NET/Socket", "NET/plugin", "COLLNET", "NVLS"};
const char *const nccl_graph_name[NCCL_GRAPH_COUNT] = {"ring", "tree", "collnet_chain",
                                                       "collnet_direct", "nvls"};

static void free_texts(char **list, int count)
{
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void nccl_profile_free(struct nccl_profile *p)
{
    if (!p)
        return;
    free_texts(p->env, p->envs);
    free_texts(p->warn, p->warns);
    free_texts(p->finding, p->findings);
    for (int i = 0; i < p->seats; i++)
        free(p->seat[i].nic);
    for (int i = 0; i < p->comms; i++) {
        free(p->comm[i].endpoint);
        free(p->comm[i].ring);
        free(p->comm[i].each);
        free(p->comm[i].after);
    }
    for (int i = 0; i < p->n_paths; i++)
        nccl_paths_free(&p->paths[i]);
    free(p->seat);
    free(p->comm);
    free(p->link);
    free(p->link_comm);
    free(p->choice);
    free(p->paths);
    free(p->paths_comm);
    free(p->where);
    memset(p, 0, sizeof(*p));
}

int nccl_profile_comm(const struct nccl_profile *p, uint64_t hash)
{
    for (int i = p->comms - 1; hash && i >= 0; i--)
        if (p->comm[i].hash == hash)
            return i;
    return -1;
}

bool nccl_profile_note(char ***list, int *count, const char *text)
{
    for (int i = 0; i < *count; i++)
        if (!strcmp((*list)[i], text))
            return true;
    if (*count >= NCCL_TEXTS_MAX)
        return false;
    MEM_PUSH(*list, *count) = mem_strdup(text);
    return true;
}

void nccl_profile_index(struct nccl_profile *p)
{
    int most = -1;

    for (int i = 0; i < p->seats; i++)
        if (p->seat[i].endpoint > most)
            most = p->seat[i].endpoint;
    free(p->where);
    p->wheres = most + 1;
    p->where = mem_calloc((size_t)p->wheres + 1, sizeof(*p->where));
    for (int i = 0; i < p->wheres; i++)
        p->where[i].dump = -1;
    for (int d = 0; d < p->n_paths; d++) {
        const struct nccl_comm_profile *c =
            p->paths_comm[d] < 0 ? NULL : &p->comm[p->paths_comm[d]];
        for (int g = 0; c && c->endpoint && g < p->paths[d].gpus; g++) {
            int rank = p->paths[d].gpu[g].rank;
            int e = rank >= 0 && rank < c->ranks ? c->endpoint[rank] : -1;
            if (e >= 0 && e < p->wheres && p->where[e].dump < 0)
                p->where[e] = (struct nccl_where){d, g};
        }
    }
}
