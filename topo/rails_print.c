/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/rails_parts.h"

enum { CLASSES_SHOWN = 4 };

static char *append(char *list, const char *fmt, const char *a, const char *b)
{
    char *item = mem_printf(fmt, a, b);
    char *longer = mem_printf("%s%s%s", list ? list : "=", list ? "," : "", item);

    free(list);
    free(item);
    return longer;
}

/* NICs of one host in the order of their names. */
struct nics {
    const struct topo *t;
    const int *nic;
    int count;
};

static struct nics nics_of(const struct rails *r, int host)
{
    return (struct nics){r->t, r->order + r->first[host], r->first[host + 1] - r->first[host]};
}

static char *ib_hca(const struct nics *v, bool rails)
{
    char *value = NULL, place[32];
    bool known = true;

    for (int i = 0; i < v->count; i++) {
        const struct nic *n = &v->t->nic[v->nic[i]];
        const char *port = strchr(n->name, ':') ? "" : ":1";
        if (n->use != NIC_COMPUTE || !n->rdma || !n->up)
            continue;
        if (!strcmp(n->name, n->busid))
            continue; /* its name as a device is not known */
        known = known && n->rail >= 0;
        snprintf(place, sizeof(place), "%s:%d:%d", port, n->rail, n->plane < 0 ? 0 : n->plane);
        value = append(value, "%s%s", n->name, rails ? place : port);
    }
    if (rails && !known) {
        free(value);
        return NULL;
    }
    return value;
}

/* Of management NICs the fastest; without one the network interfaces of compute NICs. */
static char *socket_of(const struct nics *v)
{
    const struct nic *best = NULL;
    char *value = NULL;
    bool rdma = false;

    for (int i = 0; i < v->count; i++) {
        const struct nic *n = &v->t->nic[v->nic[i]];
        rdma = rdma || (n->use == NIC_COMPUTE && n->rdma);
        if (n->use == NIC_MANAGEMENT && n->up && (!best || n->rate_Bps > best->rate_Bps))
            best = n;
    }
    if (rdma && best)
        return append(NULL, "%s%s", best->name, "");
    for (int i = 0; i < v->count; i++) {
        const struct nic *n = &v->t->nic[v->nic[i]];
        const char *name = n->rdma ? n->netdev : n->name;
        if (n->use == NIC_COMPUTE && n->up && *name)
            value = append(value, "%s%s", name, "");
    }
    return value;
}

/* One host's value by one of the functions above. */
static char *value_of(const struct topo *t, int host, bool sockets, bool rails)
{
    struct rails r = {.t = (struct topo *)t};

    rails_order(&r);
    struct nics v = nics_of(&r, host);
    char *value = sockets ? socket_of(&v) : ib_hca(&v, rails);
    free(r.order);
    free(r.first);
    return value;
}

char *rails_ib_hca(const struct topo *t, int host, bool rails)
{
    return value_of(t, host, false, rails);
}

char *rails_socket(const struct topo *t, int host)
{
    return value_of(t, host, true, false);
}

/* "compute mlx5_[0-7], storage mlx5_8, management eno1" */
static char *uses_text(const struct nics *v)
{
    char *text = mem_strdup(""), **names = mem_calloc((size_t)v->count + 1, sizeof(*names));

    for (int use = NIC_COMPUTE; use < NIC_USES; use++) {
        int n = 0;
        for (int i = 0; i < v->count; i++)
            if ((int)v->t->nic[v->nic[i]].use == use)
                names[n++] = v->t->nic[v->nic[i]].name;
        if (!n)
            continue;
        char *fold = hostlist_fold(names, n);
        char *longer = mem_printf("%s%s%s %s", text, *text ? ", " : "", nic_use_name[use], fold);
        free(text);
        text = longer;
        free(fold);
    }
    free(names);
    return text;
}

/* What is printed of a host; hosts with the same text are alike. */
static char *host_text(const struct nics *v)
{
    char *uses = uses_text(v), *plain = ib_hca(v, false), *rails = ib_hca(v, true),
         *socket = socket_of(v);
    char *text = mem_printf(
        "%s%s%s%s%s%s%s%s%s%s", uses, plain ? "\n           NCCL_IB_HCA='" : "", plain ? plain : "",
        plain ? "'" : "", rails ? "\n           NCCL_IB_HCA='" : "", rails ? rails : "",
        rails ? "' (NCCL 2.30 and later: with rail and plane)" : "",
        socket ? "\n           NCCL_SOCKET_IFNAME='" : "", socket ? socket : "", socket ? "'" : "");

    free(uses);
    free(plain);
    free(rails);
    free(socket);
    return text;
}

void rails_print(const struct topo *t, void *stream)
{
    struct rails r = {.t = (struct topo *)t};
    struct topo texts;
    char **names = mem_calloc((size_t)t->hosts + 1, sizeof(*names));
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));
    FILE *f = stream;

    topo_init(&texts);
    rails_order(&r);
    for (int h = 0; h < t->hosts; h++) {
        struct nics v = nics_of(&r, h);
        char *text = host_text(&v);
        of[h] = *text ? topo_add_group(&texts, LEVEL_LEAF, text) : -1;
        free(text);
    }
    int count = texts.group[LEVEL_LEAF].count;
    for (int c = 0; c < count && c < CLASSES_SHOWN; c++) {
        int n = 0;
        for (int h = 0; h < t->hosts; h++)
            if (of[h] == c)
                names[n++] = t->host[h].name;
        char *list = hostlist_fold(names, n);
        if (strlen(list) > 60) {
            free(list);
            list = mem_printf("%s ... %s (%d)", names[0], names[n - 1], n);
        }
        fprintf(f, "%-10s %s%s%s\n", c ? "" : "NIC use", count > 1 ? list : "",
                count > 1 ? ": " : "", texts.group[LEVEL_LEAF].name[c]);
        free(list);
    }
    if (count > CLASSES_SHOWN)
        fprintf(f, "%-10s and %d other kinds of hosts\n", "", count - CLASSES_SHOWN);
    topo_free(&texts);
    free(r.order);
    free(r.first);
    free(names);
    free(of);
}
