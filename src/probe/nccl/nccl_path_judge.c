/* SPDX-License-Identifier: BSD-3-Clause */
/* Every connection that a rank told of is compared with the row; those that do not fit are put
 * together by what was used instead, and by ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ranks.h"
#include "probe/nccl/nccl_path.h"

enum { USES_MAX = 8, USE_LEN = 40, LIST_LEN = 120 };

struct judge {
    const struct nccl_profile *p;
    const struct topo *t;
    const struct nccl_path *asked;
    struct use {
        char name[USE_LEN];
        bool *rank; /* [endpoints]; owned */
    } use[USES_MAX];
    int uses;
    bool *heard; /* [endpoints] that told of a connection; owned */
};

static void blame(struct judge *j, const char *used, int rank)
{
    int i = 0;

    while (i < j->uses && strcmp(j->use[i].name, used) != 0)
        i++;
    if (i == USES_MAX)
        return; /* there are fewer kinds than that */
    if (i == j->uses) {
        snprintf(j->use[i].name, sizeof(j->use[i].name), "%s", used);
        j->use[i].rank = mem_calloc((size_t)j->t->endpoints + 1, sizeof(bool));
        j->uses++;
    }
    j->use[i].rank[rank] = true;
}

static const struct nccl_seat *seat_of(const struct nccl_profile *p, int endpoint)
{
    for (int i = 0; i < p->seats; i++)
        if (p->seat[i].endpoint == endpoint)
            return &p->seat[i];
    return NULL;
}

/* NCCL writes "mlx5_0:1/RoCE"; where it does not, the topology may know the NIC by its name. */
static enum link_layer layer_of(const struct judge *j, int endpoint, int net)
{
    const struct nccl_seat *s = seat_of(j->p, endpoint);
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

static void judge_link(struct judge *j, const struct nccl_link *k, int from, int to)
{
    const struct topo *t = j->t;
    bool same = t->endpoint[from].place.at[LEVEL_HOST] == t->endpoint[to].place.at[LEVEL_HOST];
    int teller = k->receives ? to : from;
    const char *used = nccl_via_name[k->via];

    j->heard[teller] = true;
    /* P2P between hosts is NVLink whatever it is called. */
    if (!same && k->via == NCCL_VIA_P2P)
        used = nccl_via_name[NCCL_VIA_MNNVL];
    if (!((same ? j->asked->within : j->asked->between) >> k->via & 1)) {
        blame(j, used, teller);
        return;
    }
    if (k->via == NCCL_VIA_NET_IB && j->asked->layer) {
        enum link_layer layer = layer_of(j, teller, k->net);
        if (layer && layer != j->asked->layer)
            blame(j, layer == LINK_ETHERNET ? "NET/IB on Ethernet (RoCE)" : "NET/IB on InfiniBand",
                  teller);
    }
    int type =
        same && from != to && k->via <= NCCL_VIA_MNNVL ? nccl_pair_path(j->p, from, to, NULL) : -1;
    if (type >= 0 && (type < j->asked->nearest || type > j->asked->farthest)) {
        char text[USE_LEN];
        snprintf(text, sizeof(text), "P2P over %s",
                 type <= NCCL_PATH_NVB   ? "NVLink"
                 : type == NCCL_PATH_C2C ? "C2C"
                                         : "PCIe");
        blame(j, text, teller);
    }
}

static int tell(struct judge *j, struct err *err)
{
    char text[400] = "", ranks[LIST_LEN];

    for (int i = 0; i < j->uses; i++) {
        size_t len = strlen(text);
        ranks_text(ranks, sizeof(ranks), j->use[i].rank, j->t->endpoints);
        snprintf(text + len, sizeof(text) - len, "%s%s on %s", i ? " and " : "", j->use[i].name,
                 ranks);
    }
    if (j->uses)
        return err_config(err, "asked %s, used %s", j->asked->name, text);
    bool *silent = mem_calloc((size_t)j->t->endpoints + 1, sizeof(bool));
    int n = 0;
    for (int i = 0; i < j->t->endpoints; i++)
        n += silent[i] = !j->heard[i];
    ranks_text(ranks, sizeof(ranks), silent, j->t->endpoints);
    free(silent);
    if (n)
        return err_set(err, "asked %s, but the log of NCCL names no connection of %s: not proven",
                       j->asked->name, ranks);
    return 0;
}

int nccl_path_judge(const struct nccl_profile *p, const struct topo *t, const char *name,
                    struct err *err)
{
    struct judge j = {.p = p, .t = t, .asked = nccl_path_find(name)};
    const struct nccl_path_var *unused;

    if (!j.asked)
        return nccl_path_env(name, &unused, NULL, err);
    j.heard = mem_calloc((size_t)t->endpoints + 1, sizeof(bool));
    for (int i = 0; i < p->links; i++) {
        const struct nccl_comm_profile *c = &p->comm[p->link_comm[i]];
        const struct nccl_link *k = &p->link[i];
        int from = c->endpoint ? c->endpoint[k->from] : -1;
        int to = c->endpoint ? c->endpoint[k->to] : -1;
        if (from >= 0 && to >= 0 && from < t->endpoints && to < t->endpoints)
            judge_link(&j, k, from, to);
    }
    int rc = t->endpoints > 1 ? tell(&j, err) : 0;
    for (int i = 0; i < j.uses; i++)
        free(j.use[i].rank);
    free(j.heard);
    return rc;
}
