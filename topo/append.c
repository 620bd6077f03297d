/* SPDX-License-Identifier: BSD-3-Clause */
/* append.c - hosts of one topology behind those of another. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/claim.h"
#include "topo/net/net.h"
#include "topo/topo.h"

static int add_host(struct topo *to, const struct host *from)
{
    int h = topo_add_host(to, from->name);
    char *name = to->host[h].name;

    to->host[h] = *from;
    to->host[h].name = name;
    to->host[h].cpu = from->cpu ? mem_strdup(from->cpu) : NULL;
    to->host[h].endpoints = 0; /* counted as they come */
    return h;
}

static void add_endpoint(struct topo *to, const struct topo *from, const struct endpoint *e,
                         int host, int first_nic)
{
    int id = topo_add_endpoint(to, host, e->kind);
    struct endpoint *out = &to->endpoint[id];
    struct place place = out->place;

    for (int l = LEVEL_HOST + 1; l < LEVEL_COUNT; l++)
        if (e->place.at[l] >= 0)
            place.at[l] = topo_add_group(to, (enum level)l, from->group[l].name[e->place.at[l]]);
    *out = *e;
    out->place = place;
    out->gpu = -1; /* topo_link_gpus() */
    out->nic = e->nic < 0 ? -1 : first_nic + e->nic;
}

static void add_net(struct topo *to, const struct topo *from, const int *host)
{
    if (to->net || !from->net)
        return;
    to->net = net_copy(from->net);
    for (int i = 0; i < to->net->nodes; i++)
        if (to->net->node[i].host >= 0)
            to->net->node[i].host = host[to->net->node[i].host];
}

int topo_append(struct topo *to, const struct topo *from, struct err *err)
{
    int *host = mem_calloc((size_t)from->hosts + 1, sizeof(*host)), first_nic = to->nics;

    for (int h = 0; h < from->hosts; h++)
        if (topo_find_host(to, from->host[h].name) >= 0) {
            free(host);
            return err_data(err, "host %s is there twice", from->host[h].name);
        }
    for (int h = 0; h < from->hosts; h++)
        host[h] = add_host(to, &from->host[h]);
    for (int i = 0; i < from->nics; i++) {
        MEM_PUSH(to->nic, to->nics) = from->nic[i];
        to->nic[to->nics - 1].host = host[from->nic[i].host];
    }
    for (int i = 0; i < from->gpus; i++) {
        MEM_PUSH(to->gpu, to->gpus) = from->gpu[i];
        to->gpu[to->gpus - 1].host = host[from->gpu[i].host];
    }
    for (int i = 0; i < from->trials; i++) {
        MEM_PUSH(to->trial, to->trials) = from->trial[i];
        to->trial[to->trials - 1].host = host[from->trial[i].host];
    }
    for (int i = 0; i < from->endpoints; i++)
        add_endpoint(to, from, &from->endpoint[i], host[from->endpoint[i].place.at[LEVEL_HOST]],
                     first_nic);
    for (int i = 0; i < from->claims; i++) {
        const struct claim *c = &from->claim[i];
        claim_copy(to, c);
    }
    for (int i = 0; i < from->unseens; i++)
        topo_unseen(to, from->unseen[i].what, "%s", from->unseen[i].why);
    add_net(to, from, host);
    free(host);
    topo_link_gpus(to);
    return 0;
}
