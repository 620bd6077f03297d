/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_log_comm.c - assigns log lines to communicators, and reads the connections of each
 * communicator: from, to and via.
 *
 * Connection lines name no communicator.  NCCL creates each communicator in a separate thread, so
 * lines between "Init START" and "Init COMPLETE" are assigned by thread.  Since 2.22 most
 * connections come later, with the first operation and in further threads.  They belong to the
 * communicator that the process was using (marks of the measuring thread), or without marks to the
 * newest communicator that contains either rank. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/sources/nccl/nccl_log_impl.h"

/* --- communicator of a line --- */
enum { LOOK_BACK = 4096 }; /* number of communicators; a connection of an older one is lost */

/* Communicator under construction in this line's thread; -1: none. */
static int nccl_log_thread(const struct nccl_log *l)
{
    for (int i = 0; i < l->threads; i++)
        if (l->thread[i].tid == l->tid)
            return l->thread[i].comm;
    return -1;
}

void nccl_log_thread_set(struct nccl_log *l, int comm)
{
    int i = 0;

    while (i < l->threads && l->thread[i].tid != l->tid)
        i++;
    if (i == l->threads && l->threads < THREADS)
        l->threads++;
    else if (i == l->threads) { /* full: drop the oldest */
        memmove(l->thread, l->thread + 1, sizeof(l->thread) - sizeof(*l->thread));
        i--;
    }
    l->thread[i].tid = l->tid;
    l->thread[i].comm = comm;
}

int nccl_log_comm_at(const struct nccl_log *l, unsigned long long address)
{
    return map_find(&l->address, address, NULL, NULL);
}

/* Communicator of the mark; -1: none. */
static int log_marked(const struct nccl_log *l)
{
    return l->now ? nccl_log_comm_at(l, l->now->comm) : -1;
}

int nccl_log_current(const struct nccl_log *l)
{
    int c = nccl_log_thread(l);

    if (c < 0)
        c = log_marked(l);
    return c >= 0 ? c : l->p->comms - 1;
}

/* Communicator of a connection; -1: unknown. */
static int nccl_log_comm_of_link(const struct nccl_log *l, int from, int to)
{
    int c = nccl_log_thread(l);

    if (c < 0)
        c = log_marked(l);
    if (c >= 0 && from < l->p->comm[c].ranks && to < l->p->comm[c].ranks)
        return c;
    for (c = l->p->comms - 1; c >= 0 && c > l->p->comms - LOOK_BACK; c--) {
        const struct nccl_comm_profile *m = &l->p->comm[c];
        if (from < m->ranks && to < m->ranks && (m->rank == from || m->rank == to))
            return c;
    }
    return -1;
}

int nccl_log_comm_add(struct nccl_log *l, unsigned long long address, int rank, int ranks)
{
    struct nccl_profile *p = l->p;

    if (p->comms >= NCCL_COMMS_MAX) {
        p->dropped++;
        return -1;
    }
    MEM_PUSH(p->comm, p->comms) = (struct nccl_comm_profile){.ranks = ranks,
                                                             .rank = rank,
                                                             .mnnvl = -1,
                                                             .coll = -1,
                                                             .nvls = -1,
                                                             .p2p = -1,
                                                             .p2p_peer = -1};
    return *map_at(&l->address, address, NULL, NULL) = p->comms - 1;
}

/* --- connections --- */

static const struct nccl_via_row {
    const char *text;
    enum nccl_via via;
} vias[] = {
    {"P2P/MNNVL", NCCL_VIA_MNNVL},
    {"P2P/", NCCL_VIA_P2P},
    {"SHM", NCCL_VIA_SHM},
    {"NET/IB", NCCL_VIA_NET_IB}, /* also NET/IBext_v8 of HPC-X, which uses verbs too */
    {"NET/Socket", NCCL_VIA_NET_SOCKET},
    {"NET/", NCCL_VIA_NET_OTHER},
    {"COLLNET/", NCCL_VIA_COLLNET},
};

/* Parse the text after "via ": NET/NAME/DEVICE[(RANK)][/GDRDMA[(PCI)]][/Shared]; NAME with
 * blanks. */
static bool read_via(struct nccl_link *k, const char *s)
{
    size_t i = 0, rows = sizeof(vias) / sizeof(*vias);

    while (i < rows && !log_starts(s, vias[i].text))
        i++;
    if (i == rows)
        return false;
    k->via = vias[i].via;
    k->gdr = strstr(s, "/GDRDMA");
    k->shared = strstr(s, "/Shared");
    if (k->via == NCCL_VIA_P2P && log_starts(s, "P2P/indirect/"))
        return s += 13, log_small(&s, NCCL_RANKS_MAX, &k->through);
    if (k->via < NCCL_VIA_NET_IB)
        return true;
    const char *name = strchr(s, '/'), *device = name ? strchr(name + 1, '/') : NULL;
    if (!device)
        return false;
    device++;
    if (!log_small(&device, 1 << 16, &k->net))
        return false;
    if (log_take(&device, "(") && !log_small(&device, NCCL_RANKS_MAX, &k->through))
        return false;
    return true;
}

static void add_link(struct nccl_log *l, int comm, const struct nccl_link *k)
{
    struct nccl_profile *p = l->p;
    uint64_t h = map_mix(map_mix((uint64_t)comm << 32, (uint64_t)k->from << 24 ^ (uint64_t)k->to),
                         (uint64_t)k->via | (uint64_t)k->gdr << 8 | (uint64_t)k->shared << 9 |
                             (uint64_t)k->receives << 10 | (uint64_t)(k->net + 1) << 12 |
                             (uint64_t)(k->through + 1) << 32);
    int *at = map_at(&l->links, h, NULL, NULL);

    if (*at != MAP_NONE) {
        p->link[*at].channels++;
        return;
    }
    if (p->links >= NCCL_LINKS_MAX) {
        p->dropped++;
        return;
    }
    int same = *at = p->links;
    MEM_PUSH(p->link_comm, same) = comm;
    MEM_PUSH(p->link, p->links) = *k;
}

/* A connection names the network that carries it, "NET/gIB/3": more than what was loaded. */
static void keep_net(struct nccl_log *l, const struct nccl_link *k, const char *via)
{
    char *net = l->p->rank[0].net;

    if (k->via >= NCCL_VIA_NET_IB && k->via <= NCCL_VIA_NET_OTHER)
        log_copy(net, sizeof(l->p->rank[0].net), via + 4, strcspn(via + 4, "/"));
}

/* "03/0 : 1[1] -> 2[2] [send] via NET/IB/0/GDRDMA".  SHM lines have no "/0".  Brackets hold the
 * number or, before 2.19, the address of the GPU.  "03/16 : 0 1 2 ..." is a ring, see on_ring(). */
void nccl_log_channel(struct nccl_log *l, const char *s)
{
    struct nccl_link k = {.net = -1, .through = -1, .channels = 1};
    const char *via = strstr(s, " via ");
    int channel, connection;

    if (!via || !log_small(&s, 1 << 16, &channel) ||
        (log_take(&s, "/") && !log_small(&s, 1 << 16, &connection)) || !log_take(&s, " : ") ||
        !log_small(&s, NCCL_RANKS_MAX - 1, &k.from))
        return;
    s += strcspn(s, "-");
    if (!log_take(&s, "-> ") || !log_small(&s, NCCL_RANKS_MAX - 1, &k.to) || k.from < 0 ||
        k.to < 0 || !read_via(&k, via + 5))
        return;
    k.receives = strstr(s, "[receive]") != NULL;
    keep_net(l, &k, via + 5);
    int comm = nccl_log_comm_of_link(l, k.from, k.to);
    if (comm >= 0)
        add_link(l, comm, &k);
}

/* "00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA" */
void nccl_log_collnet(struct nccl_log *l, const char *s)
{
    struct nccl_link k = {.net = -1, .through = -1, .channels = 1};
    const char *via = strstr(s, " via "), *colon = strstr(s, " : ");

    if (!via || !colon || (colon += 3, !log_small(&colon, NCCL_RANKS_MAX - 1, &k.from)) ||
        k.from < 0 || !read_via(&k, via + 5))
        return;
    k.to = k.from;
    int comm = nccl_log_comm_of_link(l, k.from, k.to);
    k.receives = strstr(s, "[receive]") != NULL;
    if (comm >= 0)
        add_link(l, comm, &k);
}

/* "0x7f10 headRank 0 nHeads 8 buffSize ...": buffers for the NVSwitch are created, since 2.22 at
 * first use.  The line names no rank; the rank is that of this log. */
void nccl_log_nvls(struct nccl_log *l, const char *s)
{
    struct nccl_link k = {.via = NCCL_VIA_NVLS, .net = -1, .through = -1, .channels = 1};
    int comm = nccl_log_comm_at(l, strtoull(s, NULL, 16));

    if (comm < 0)
        return;
    k.from = k.to = l->p->comm[comm].rank;
    add_link(l, comm, &k);
}
