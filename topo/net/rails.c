/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/claim.h"
#include "topo/net/net.h"
#include "topo/net/rails_parts.h"

/* --- opening --- */

static const struct topo *sorted; /* of by_host_and_name() */

static int by_host_and_name(const void *x, const void *y)
{
    int i = *(const int *)x, k = *(const int *)y;
    const struct nic *a = &sorted->nic[i], *b = &sorted->nic[k];

    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    int names = strverscmp(a->name, b->name);
    return names ? names : (i > k) - (i < k);
}

void rails_order(struct rails *r)
{
    const struct topo *t = r->t;

    r->order = mem_calloc((size_t)t->nics + 1, sizeof(int));
    r->first = mem_calloc((size_t)t->hosts + 2, sizeof(int));
    for (int i = 0; i < t->nics; i++) {
        r->order[i] = i;
        r->first[t->nic[i].host + 1]++;
    }
    for (int h = 0; h < t->hosts; h++)
        r->first[h + 1] += r->first[h];
    sorted = t;
    qsort(r->order, (size_t)t->nics, sizeof(int), by_host_and_name);
}

/* Parts of the switched network by the names of its leaves. */
static void find_parts(struct rails *r)
{
    const struct topo *t = r->t;
    struct topo names;
    int *of = NULL, count = 0;

    for (int i = 0; i < t->nics; i++)
        r->part[i] = -1;
    if (!t->net)
        return;
    int parts, *part = net_parts(t->net, &parts);
    char **label = net_labels(t->net);
    topo_init(&names);
    for (int n = 0; n < t->net->nodes; n++)
        if (t->net->node[n].kind == NET_SWITCH &&
            topo_add_group(&names, LEVEL_LEAF, label[n]) == count)
            MEM_PUSH(of, count) = part[n];
    for (int i = 0; i < t->nics; i++) {
        int at = t->nic[i].leaf_source == SOURCE_IBNET
                     ? topo_add_group(&names, LEVEL_LEAF, t->nic[i].leaf)
                     : count;
        r->part[i] = at < count ? of[at] : -1;
    }
    topo_free(&names);
    hostlist_free(label, t->net->nodes);
    free(part);
    free(of);
}

/* --- endpoints --- */

static void tell_endpoints(struct topo *t)
{
    char name[32];

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        const struct nic *n = e->nic < 0 ? NULL : &t->nic[e->nic];
        if (n && n->leaf_source == SOURCE_LLDP && e->place.at[LEVEL_LEAF] < 0) {
            e->place.at[LEVEL_LEAF] = topo_add_group(t, LEVEL_LEAF, n->leaf);
            e->source[LEVEL_LEAF] = SOURCE_LLDP;
        }
        if (n && n->rail >= 0 && e->place.at[LEVEL_RAIL] < 0) {
            snprintf(name, sizeof(name), "rail-%d", n->rail);
            e->place.at[LEVEL_RAIL] = topo_add_group(t, LEVEL_RAIL, name);
            e->source[LEVEL_RAIL] = (unsigned char)n->rail_source;
        }
    }
}

void rails_find(struct topo *t)
{
    struct rails r = {.t = t};
    int leaves = t->group[LEVEL_LEAF].count;

    rails_order(&r);
    r.near = mem_calloc((size_t)t->nics + 1, sizeof(int));
    r.part = mem_calloc((size_t)t->nics + 1, sizeof(int));
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].nic >= 0 && t->endpoint[i].kind == ENDPOINT_GPU)
            r.near[t->endpoint[i].nic]++;
    find_parts(&r);
    rails_uses(&r);
    rails_rails(&r);
    rails_lldp(&r);
    tell_endpoints(t);
    if (t->group[LEVEL_LEAF].count > leaves)
        topo_default_tiers(t);
    free(r.order);
    free(r.first);
    free(r.near);
    free(r.part);
}

/* --- leaves by LLDP --- */

static int by_text(const void *x, const void *y)
{
    return strverscmp(*(char *const *)x, *(char *const *)y);
}

/* The leaves of a host's NICs, each once, sorted; *count of them, borrowed texts. */
static char **leaves_of(const struct rails *r, int host, int *count)
{
    char **leaf = NULL;
    int n = 0, kept = 0;

    for (int i = r->first[host]; i < r->first[host + 1]; i++) {
        struct nic *nic = &r->t->nic[r->order[i]];
        if (nic->leaf_source == SOURCE_LLDP && (nic->use == NIC_COMPUTE || nic->use == NIC_UNKNOWN))
            MEM_PUSH(leaf, n) = nic->leaf;
    }
    if (n)
        qsort(leaf, (size_t)n, sizeof(*leaf), by_text);
    for (int i = 0; i < n; i++)
        if (!kept || strcmp(leaf[kept - 1], leaf[i]) != 0)
            leaf[kept++] = leaf[i];
    *count = kept;
    return leaf;
}

/* "leaf-01", "leaf-01+leaf-02", or "leaf-01..leaf-08 (8)" where that is long. */
static char *set_name(char *const *leaf, int count)
{
    size_t length = 0;
    char *name = mem_strdup(leaf[0]);

    for (int i = 0; i < count; i++)
        length += strlen(leaf[i]) + 1;
    if (length > 200) {
        free(name);
        return mem_printf("%s..%s (%d)", leaf[0], leaf[count - 1], count);
    }
    for (int i = 1; i < count; i++) {
        char *longer = mem_printf("%s+%s", name, leaf[i]);
        free(name);
        name = longer;
    }
    return name;
}

void rails_lldp(struct rails *r)
{
    struct topo *t = r->t;
    bool *claimed = mem_calloc((size_t)t->hosts + 1, sizeof(*claimed));

    for (int i = 0; i < t->claims; i++)
        for (int k = 0; k < t->claim[i].hosts && t->claim[i].source == SOURCE_LLDP; k++) {
            int h = topo_find_host(t, t->claim[i].host[k]);
            if (h >= 0)
                claimed[h] = true;
        }
    for (int h = 0; h < t->hosts; h++) {
        int count = 0;
        char **leaf = claimed[h] ? NULL : leaves_of(r, h, &count);
        if (count) {
            char *name = set_name(leaf, count);
            claim_host(t, SOURCE_LLDP, LEVEL_LEAF, "lldp", name, t->host[h].name);
            free(name);
        }
        free(leaf);
    }
    free(claimed);
}
