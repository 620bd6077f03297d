/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/nccl_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"

#define VIA(x) (1u << NCCL_VIA_##x)
/* On a communicator with MNNVL every P2P connection has this name, also within a host. */
#define ON_NVLINK (VIA(P2P) | VIA(MNNVL) | VIA(NVLS))
#define ONLY_NET                                                                                   \
    {"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "1"}, {"NCCL_NVLS_ENABLE", "0"},               \
    {                                                                                              \
        "NCCL_MNNVL_ENABLE", "0"                                                                   \
    }

const struct nccl_path nccl_paths_table[] = {
    {.name = "nvlink",
     .var = {{"NCCL_P2P_LEVEL", "NVL"}, {"NCCL_SHM_DISABLE", "1"}, {"NCCL_MNNVL_ENABLE", "0"}},
     .within = ON_NVLINK,
     .nearest = NCCL_PATH_LOC,
     .farthest = NCCL_PATH_NVL,
     .help = "NVLink of one host"},
    {.name = "mnnvl",
     .var = {{"NCCL_MNNVL_ENABLE", "1"},
             {"NCCL_CUMEM_ENABLE", "1"},
             {"NCCL_P2P_LEVEL", "NVL"},
             {"NCCL_SHM_DISABLE", "1"}},
     .within = ON_NVLINK,
     .between = ON_NVLINK,
     .nearest = NCCL_PATH_LOC,
     .farthest = NCCL_PATH_NVL,
     .help = "NVLink within and between hosts of one domain; a broken IMEX is an error"},
    {.name = "p2p",
     .var = {{"NCCL_P2P_LEVEL", "SYS"},
             {"NCCL_SHM_DISABLE", "1"},
             {"NCCL_NET_DISABLE_INTRA", "1"},
             {"NCCL_MNNVL_ENABLE", "0"}},
     .within = ON_NVLINK,
     .nearest = NCCL_PATH_LOC,
     .farthest = NCCL_PATH_DIS,
     .help = "GPU to GPU within a host, NVLink or PCIe"},
    {.name = "pcie",
     .var = {{"NCCL_P2P_LEVEL", "SYS"},
             {"NCCL_SHM_DISABLE", "1"},
             {"NCCL_NET_DISABLE_INTRA", "1"},
             {"NCCL_NVLS_ENABLE", "0"},
             {"NCCL_MNNVL_ENABLE", "0"}},
     .within = VIA(P2P),
     .nearest = NCCL_PATH_C2C,
     .farthest = NCCL_PATH_DIS,
     .help = "GPU to GPU over PCIe; GPUs with NVLink use that and fail the proof"},
    {.name = "shm",
     .var = {{"NCCL_P2P_DISABLE", "1"},
             {"NCCL_SHM_DISABLE", "0"},
             {"NCCL_NET_DISABLE_INTRA", "1"},
             {"NCCL_NVLS_ENABLE", "0"},
             {"NCCL_MNNVL_ENABLE", "0"}},
     .within = VIA(SHM),
     .farthest = NCCL_PATH_DIS,
     .help = "host memory of one host"},
    {.name = "ib",
     .var = {{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "0"}, ONLY_NET},
     .net_name = "IB",
     .within = VIA(NET_IB) | VIA(COLLNET),
     .between = VIA(NET_IB) | VIA(COLLNET),
     .layer = LINK_INFINIBAND,
     .farthest = NCCL_PATH_DIS,
     .help = "InfiniBand NICs for all pairs, also within a host"},
    {.name = "roce",
     .var = {{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "0"}, ONLY_NET},
     .net_name = "IB",
     .within = VIA(NET_IB),
     .between = VIA(NET_IB),
     .layer = LINK_ETHERNET,
     .farthest = NCCL_PATH_DIS,
     .help = "RDMA over Ethernet for all pairs, also within a host"},
    {.name = "tcp",
     .var = {{"NCCL_NET", "Socket"}, {"NCCL_IB_DISABLE", "1"}, ONLY_NET},
     .net_name = "Socket",
     .within = VIA(NET_SOCKET),
     .between = VIA(NET_SOCKET),
     .farthest = NCCL_PATH_DIS,
     .help = "TCP sockets for all pairs, also within a host"},
    /* "via NET/gIB/3/GDRDMA", "via NET/Libfabric/0/GDRDMA": the name that the plugin gives itself
     * (ncclNet_t.name).  NCCL_NET, unless it is set, is that name where one is asked for. */
    {.name = "plugin",
     .var = {ONLY_NET},
     .within = VIA(NET_OTHER) | VIA(COLLNET),
     .between = VIA(NET_OTHER) | VIA(COLLNET),
     .farthest = NCCL_PATH_DIS,
     .help = "a network plugin for all pairs, also within a host: EFA's Libfabric, gIB, FasTrak, "
             "IBext; `plugin:NAME` that one (`NCCL_NET=NAME`)"},
    {.name = NULL},
};

const struct nccl_path *nccl_path_find(const char *name)
{
    const char *plugin = nccl_path_plugin(name);

    if (plugin && !*plugin)
        return NULL;
    for (const struct nccl_path *p = nccl_paths_table; name && p->name; p++)
        if (!strcmp(p->name, plugin ? "plugin" : name))
            return p;
    return NULL;
}

void nccl_path_print(void *stream)
{
    static const char *const spoken[NCCL_VIA_COUNT] = {
        "P2P", "P2P/MNNVL", "SHM", "NET/IB", "NET/Socket", "NET/NAME", "COLLNET", "NVLS"};
    FILE *f = stream;

    fputs("| `--path` | variables | allowed within a host | between hosts | what it is |\n"
          "|---|---|---|---|---|\n",
          f);
    for (const struct nccl_path *p = nccl_paths_table; p->name; p++) {
        fprintf(f, "| `%s` |", p->name);
        for (const struct nccl_path_var *v = p->var; v->name; v++)
            fprintf(f, " `%s=%s`", v->name, v->value);
        for (int where = 0; where < 2; where++) {
            unsigned mask = where ? p->between : p->within;
            const char *comma = "";
            fputs(" | ", f);
            for (int i = 0; i < NCCL_VIA_COUNT; i++)
                if (mask >> i & 1) {
                    fprintf(f, "%s%s", comma, spoken[i]);
                    comma = ", ";
                }
            if (!mask)
                fputs("-", f);
            if (mask && p->layer)
                fprintf(f, " on %s", p->layer == LINK_INFINIBAND ? "InfiniBand" : "Ethernet");
        }
        fprintf(f, " | %s |\n", p->help);
    }
}

/* --- comparison: every reported connection is compared with the row; those that do not fit are
 * grouped by what was used instead, and by ranks --- */

enum { USES_MAX = 8, USE_LEN = 40, LIST_LEN = 120 };

struct nccl_judge {
    const struct nccl_profile *p;
    const struct topo *t;
    const struct nccl_path *asked;
    const char *name; /* as asked: "plugin:gIB" */
    struct nccl_use {
        char name[USE_LEN];
        bool *rank; /* [endpoints]; owned */
    } use[USES_MAX];
    int uses;
    bool *heard; /* [endpoints] that reported a connection; owned */
    bool *dim;   /* [endpoints] that used a NIC of unknown link layer; owned */
};

static void blame_rank(struct nccl_judge *j, const char *used, int rank)
{
    int i = 0;

    while (i < j->uses && strcmp(j->use[i].name, used) != 0)
        i++;
    if (i == USES_MAX)
        return; /* more names of plugins than are printed; the path is refused already */
    if (i == j->uses) {
        snprintf(j->use[i].name, sizeof(j->use[i].name), "%s", used);
        j->use[i].rank = mem_calloc((size_t)j->t->endpoints + 1, sizeof(bool));
        j->uses++;
    }
    j->use[i].rank[rank] = true;
}

static const struct nccl_rank *rank_of(const struct nccl_profile *p, int endpoint)
{
    for (int i = 0; i < p->ranks; i++)
        if (p->rank[i].endpoint == endpoint)
            return &p->rank[i];
    return NULL;
}

/* NCCL writes "mlx5_0:1/RoCE"; otherwise the topology may know the NIC by its name. */
static enum link_layer layer_of(const struct nccl_judge *j, int endpoint, int net)
{
    const struct nccl_rank *s = rank_of(j->p, endpoint);
    const char *name = NULL;

    for (int i = 0; s && i < s->nics; i++)
        if (s->nic[i].number == net)
            name = s->nic[i].name;
    if (!name)
        return LINK_UNKNOWN;
    if (strstr(name, "/RoCE"))
        return LINK_ETHERNET;
    if (strstr(name, "/IB"))
        return LINK_INFINIBAND;
    size_t len = strcspn(name, ":/");
    for (int i = 0; i < j->t->nics; i++)
        if (j->t->nic[i].host == j->t->endpoint[endpoint].place.at[LEVEL_HOST] &&
            strlen(j->t->nic[i].name) == len && !strncmp(j->t->nic[i].name, name, len))
            return j->t->nic[i].layer;
    return LINK_UNKNOWN;
}

/* HPC-X's plugin calls itself IBext_v8 and the like, so that its connections begin as those of
 * NCCL's own verbs do. */
static enum nccl_via via_of(const struct nccl_link *k, const struct nccl_rank *teller)
{
    bool own = !teller || !*teller->net || !strcasecmp(teller->net, "IB");

    return k->via == NCCL_VIA_NET_IB && !own ? NCCL_VIA_NET_OTHER : k->via;
}

static void judge_plugin(struct nccl_judge *j, int teller, const char *used)
{
    const char *wanted = nccl_path_plugin(j->name);

    if (wanted && strcasecmp(used + strlen("NET/"), wanted) != 0)
        blame_rank(j, used, teller);
}

static void judge_link(struct nccl_judge *j, const struct nccl_link *k, int from, int to)
{
    const struct topo *t = j->t;
    bool same = t->endpoint[from].place.at[LEVEL_HOST] == t->endpoint[to].place.at[LEVEL_HOST];
    int teller = k->receives ? to : from;
    const struct nccl_rank *s = rank_of(j->p, teller);
    bool plugin = !strcmp(j->asked->name, "plugin");
    enum nccl_via via = plugin ? via_of(k, s) : k->via;
    const char *used = nccl_via_name[via];
    char text[USE_LEN];

    j->heard[teller] = true;
    if (via == NCCL_VIA_NET_OTHER && s && *s->net) {
        snprintf(text, sizeof(text), "NET/%s", s->net);
        used = text;
    }
    /* P2P between hosts is always NVLink, whatever its name. */
    if (!same && k->via == NCCL_VIA_P2P)
        used = nccl_via_name[NCCL_VIA_MNNVL];
    if (!((same ? j->asked->within : j->asked->between) >> via & 1)) {
        blame_rank(j, used, teller);
        return;
    }
    if (via == NCCL_VIA_NET_OTHER)
        judge_plugin(j, teller, used);
    if (k->via == NCCL_VIA_NET_IB && j->asked->layer) {
        enum link_layer layer = layer_of(j, teller, k->net);
        j->dim[teller] |= !layer;
        if (layer && layer != j->asked->layer)
            blame_rank(
                j, layer == LINK_ETHERNET ? "NET/IB on Ethernet (RoCE)" : "NET/IB on InfiniBand",
                teller);
    }
    int type =
        same && from != to && k->via <= NCCL_VIA_MNNVL ? nccl_pair_path(j->p, from, to, NULL) : -1;
    if (type >= 0 && (type < j->asked->nearest || type > j->asked->farthest)) {
        snprintf(text, sizeof(text), "P2P over %s",
                 type <= NCCL_PATH_NVB   ? "NVLink"
                 : type == NCCL_PATH_C2C ? "C2C"
                                         : "PCIe");
        blame_rank(j, text, teller);
    }
}

static int tell_used(struct nccl_judge *j, struct err *err)
{
    char text[400] = "", ranks[LIST_LEN];

    for (int i = 0; i < j->uses; i++) {
        size_t len = strlen(text);
        units_ranks_text(ranks, sizeof(ranks), j->use[i].rank, j->t->endpoints);
        snprintf(text + len, sizeof(text) - len, "%s%s on %s", i ? " and " : "", j->use[i].name,
                 ranks);
    }
    if (j->uses)
        return err_config(err, "asked %s, used %s", j->name, text);
    bool *silent = mem_calloc((size_t)j->t->endpoints + 1, sizeof(bool));
    int n = 0, dim = 0;
    for (int i = 0; i < j->t->endpoints; i++) {
        n += silent[i] = !j->heard[i];
        dim += j->dim[i];
    }
    units_ranks_text(ranks, sizeof(ranks), silent, j->t->endpoints);
    free(silent);
    if (!n && dim)
        return err_set(err,
                       "asked %s, used NET/IB, but neither the log of NCCL nor the topology tells "
                       "InfiniBand from Ethernet for the NICs of %s: not proven",
                       j->name, units_ranks_text(ranks, sizeof(ranks), j->dim, j->t->endpoints));
    if (n)
        return err_set(err, "asked %s, but the log of NCCL names no connection of %s: not proven",
                       j->name, ranks);
    return 0;
}

int nccl_path_judge(const struct nccl_profile *p, const struct topo *t, const char *name,
                    struct err *err)
{
    struct nccl_judge j = {.p = p, .t = t, .asked = nccl_path_find(name), .name = name};

    if (!j.asked)
        return err_usage(err,
                         "no path \"%s\": choose nvlink, mnnvl, p2p, pcie, shm, ib, roce, tcp, "
                         "plugin or plugin:NAME",
                         name);
    j.heard = mem_calloc((size_t)t->endpoints + 1, sizeof(bool));
    j.dim = mem_calloc((size_t)t->endpoints + 1, sizeof(bool));
    for (int i = 0; i < p->links; i++) {
        const struct nccl_comm_profile *c = &p->comm[p->link_comm[i]];
        const struct nccl_link *k = &p->link[i];
        int from = c->endpoint ? c->endpoint[k->from] : -1;
        int to = c->endpoint ? c->endpoint[k->to] : -1;
        if (from >= 0 && to >= 0 && from < t->endpoints && to < t->endpoints)
            judge_link(&j, k, from, to);
    }
    int rc = t->endpoints > 1 ? tell_used(&j, err) : 0;
    for (int i = 0; i < j.uses; i++)
        free(j.use[i].rank);
    free(j.heard);
    free(j.dim);
    return rc;
}
