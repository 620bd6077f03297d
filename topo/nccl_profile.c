/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/nccl_profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"

const char *const nccl_path_type_name[NCCL_PATH_COUNT] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                          "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

int nccl_path_type_find(const char *name)
{
    for (int i = 0; name && i < NCCL_PATH_COUNT; i++)
        if (!strcmp(name, nccl_path_type_name[i]))
            return i;
    return -1;
}

void nccl_paths_free(struct nccl_paths *p)
{
    if (!p)
        return;
    free(p->gpu);
    free(p->net);
    free(p->pair);
    free(p->nic);
    memset(p, 0, sizeof(*p));
}

const char *const nccl_via_name[NCCL_VIA_COUNT] = {"P2P",        "P2P/MNNVL",  "SHM",     "NET/IB",
                                                   "NET/Socket", "NET/plugin", "COLLNET", "NVLS"};
const char *const nccl_graph_name[NCCL_GRAPH_COUNT] = {"ring", "tree", "collnet_chain",
                                                       "collnet_direct", "nvls"};

void nccl_profile_free(struct nccl_profile *p)
{
    if (!p)
        return;
    hostlist_free(p->env, p->envs);
    hostlist_free(p->warn, p->warns);
    hostlist_free(p->finding, p->findings);
    for (int i = 0; i < p->ranks; i++)
        free(p->rank[i].nic);
    for (int i = 0; i < p->comms; i++) {
        free(p->comm[i].endpoint);
        free(p->comm[i].ring);
        free(p->comm[i].each);
        free(p->comm[i].after);
    }
    for (int i = 0; i < p->n_paths; i++)
        nccl_paths_free(&p->paths[i]);
    free(p->rank);
    free(p->comm);
    free(p->link);
    free(p->link_comm);
    free(p->choice);
    free(p->paths);
    free(p->paths_comm);
    free(p->where);
    memset(p, 0, sizeof(*p));
}

static int comm_of(const struct nccl_profile *p, uint64_t hash)
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

    for (int i = 0; i < p->ranks; i++)
        if (p->rank[i].endpoint > most)
            most = p->rank[i].endpoint;
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

/* --- merging the ranks' profiles --- */

/* Index of a rank's communicator in the merged profile; a new communicator is added without
 * members.  Without a hash, ranks cannot be combined, so each rank gets a separate communicator. */
static int place(struct nccl_profile *all, const struct nccl_comm_profile *one)
{
    int at = comm_of(all, one->hash);

    if (at >= 0 && all->comm[at].ranks == one->ranks)
        return at;
    struct nccl_comm_profile c = *one;
    size_t n = (size_t)one->ranks;
    c.rank = -1;
    c.rings = 0;
    c.ring = NULL;
    c.endpoint = mem_ints(one->ranks, -1);
    c.each = mem_calloc(n * NCCL_GRAPH_COUNT + 1, sizeof(*c.each));
    c.after = mem_calloc(n * NCCL_RINGS_MAX + 1, sizeof(int));
    memset(c.after, -1, n * NCCL_RINGS_MAX * sizeof(int));
    memset(c.graph, 0, sizeof(c.graph));
    MEM_PUSH(all->comm, all->comms) = c;
    return all->comms - 1;
}

static void worse_type(char *have, const char *seen)
{
    if (nccl_path_type_find(seen) > nccl_path_type_find(have))
        memcpy(have, seen, sizeof(((struct nccl_graph *)0)->type_intra));
}

/* Take the worst of all ranks, as NCCL does. */
static void worse_graph(struct nccl_graph *have, const struct nccl_graph *seen)
{
    if (!have->pattern) {
        *have = *seen;
        return;
    }
    if (seen->channels < have->channels)
        have->channels = seen->channels;
    if (seen->intra_Bps < have->intra_Bps)
        have->intra_Bps = seen->intra_Bps;
    if (seen->inter_Bps < have->inter_Bps)
        have->inter_Bps = seen->inter_Bps;
    worse_type(have->type_intra, seen->type_intra);
    worse_type(have->type_inter, seen->type_inter);
}

static void least_said(int *have, int seen)
{
    if (seen >= 0 && (*have < 0 || seen < *have))
        *have = seen;
}

static void merge_comm(struct nccl_comm_profile *c, const struct nccl_comm_profile *one,
                       int endpoint)
{
    c->endpoint[one->rank] = endpoint;
    c->complete = c->complete && one->complete;
    least_said(&c->coll, one->coll);
    least_said(&c->nvls, one->nvls);
    least_said(&c->p2p, one->p2p);
    least_said(&c->p2p_peer, one->p2p_peer);
    least_said(&c->mnnvl, one->mnnvl);
    if (!c->nodes)
        c->nodes = one->nodes;
    for (int k = 0; k < NCCL_GRAPH_COUNT; k++) {
        c->each[one->rank * NCCL_GRAPH_COUNT + k] = one->graph[k];
        if (one->graph[k].pattern)
            worse_graph(&c->graph[k], &one->graph[k]);
    }
    for (int i = 0; i < one->rings; i++)
        c->after[one->rank * NCCL_RINGS_MAX + i] = one->ring[2 * i + 1];
}

static void merge_facts(struct nccl_profile *all, const struct nccl_profile *one, const int *at)
{
    for (int i = 0; i < one->links; i++) {
        int n = all->links;
        MEM_PUSH(all->link_comm, n) = at[one->link_comm[i]];
        MEM_PUSH(all->link, all->links) = one->link[i];
    }
    for (int i = 0; i < one->choices; i++) {
        struct nccl_choice c = one->choice[i];
        c.comm = at[c.comm];
        MEM_PUSH(all->choice, all->choices) = c;
    }
    for (int i = 0; i < one->n_paths; i++) {
        int n = all->n_paths;
        MEM_PUSH(all->paths_comm, n) = one->paths_comm[i] < 0 ? -1 : at[one->paths_comm[i]];
        MEM_PUSH(all->paths, all->n_paths) = one->paths[i];
    }
    free(one->paths); /* contents moved */
}

static void note_version(struct nccl_profile *all, const struct nccl_profile *one, int endpoint)
{
    if (!all->version[0])
        memcpy(all->version, one->version, sizeof(all->version));
    if (!one->version[0] || !strcmp(all->version, one->version))
        return;
    char *text =
        mem_printf("rank %d has NCCL %s, others have %s", endpoint, one->version, all->version);
    all->dropped += !nccl_profile_note(&all->finding, &all->findings, text);
    free(text);
}

void nccl_merge(struct nccl_profile *all, struct nccl_profile *one, int endpoint)
{
    int *at = mem_calloc((size_t)one->comms + 1, sizeof(*at));

    all->lines += one->lines;
    all->dropped += one->dropped;
    note_version(all, one, endpoint);
    for (int i = 0; i < one->envs; i++)
        all->dropped += !nccl_profile_note(&all->env, &all->envs, one->env[i]);
    for (int i = 0; i < one->warns; i++)
        all->dropped += !nccl_profile_note(&all->warn, &all->warns, one->warn[i]);
    for (int i = 0; i < one->findings; i++)
        all->dropped += !nccl_profile_note(&all->finding, &all->findings, one->finding[i]);
    for (int i = 0; i < one->ranks; i++) {
        struct nccl_rank s = one->rank[i];
        s.endpoint = endpoint;
        MEM_PUSH(all->rank, all->ranks) = s;
        one->rank[i].nic = NULL; /* ownership moved */
    }
    for (int i = 0; i < one->comms; i++) {
        at[i] = place(all, &one->comm[i]);
        if (one->comm[i].rank >= 0 && one->comm[i].rank < one->comm[i].ranks)
            merge_comm(&all->comm[at[i]], &one->comm[i], endpoint);
    }
    merge_facts(all, one, at);
    one->paths = NULL;
    one->n_paths = 0;
    free(at);
    nccl_profile_free(one);
}

/* Follow the ranks of one channel; false: they do not form a ring. */
static bool follow(const struct nccl_comm_profile *c, int channel, int *order)
{
    int at = 0;

    for (int i = 0; i < c->ranks; i++) {
        order[i] = at;
        at = c->after[at * NCCL_RINGS_MAX + channel];
        if (at < 0 || at >= c->ranks || (at == 0) != (i == c->ranks - 1))
            return false;
    }
    return true;
}

void nccl_merge_end(struct nccl_profile *all)
{
    for (int i = 0; i < all->comms; i++) {
        struct nccl_comm_profile *c = &all->comm[i];
        size_t n = (size_t)c->ranks;
        if (!c->after || c->ranks < 2)
            continue;
        int *order = mem_calloc(n, sizeof(int));
        for (int k = 0; k < NCCL_RINGS_MAX; k++) {
            if (!follow(c, k, order))
                continue;
            c->ring = mem_realloc(c->ring, ((size_t)c->rings + 1) * n, sizeof(int));
            memcpy(c->ring + (size_t)c->rings++ * n, order, n * sizeof(int));
        }
        free(order);
    }
    nccl_profile_index(all);
}
