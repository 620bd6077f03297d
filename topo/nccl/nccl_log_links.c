/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of connections: who, to whom, via what. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/nccl/nccl_log_parts.h"
#include "topo/nccl/nccl_log_words.h"

static const struct nccl_via_row {
    const char *text;
    enum nccl_via via;
} vias[] = {
    {"P2P/MNNVL", NCCL_VIA_MNNVL},
    {"P2P/", NCCL_VIA_P2P},
    {"SHM", NCCL_VIA_SHM},
    {"NET/IB", NCCL_VIA_NET_IB}, /* also NET/IBext_v8 of HPC-X: the same verbs */
    {"NET/Socket", NCCL_VIA_NET_SOCKET},
    {"NET/", NCCL_VIA_NET_OTHER},
    {"COLLNET/", NCCL_VIA_COLLNET},
};

/* What comes after "via ": NET/NAME/DEVICE[(RANK)][/GDRDMA[(PCI)]][/Shared]; a NAME can have
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

static void add_link(struct log *l, int comm, const struct nccl_link *k)
{
    struct nccl_profile *p = l->p;
    uint64_t h = log_mix(log_mix((uint64_t)comm << 32, (uint64_t)k->from << 24 ^ (uint64_t)k->to),
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

/* "03/0 : 1[1] -> 2[2] [send] via NET/IB/0/GDRDMA"; SHM lines have no "/0"; in brackets is the
 * number or, before 2.19, the address of the GPU.  "03/16 : 0 1 2 ..." is a ring, told by Ring. */
void log_channel(struct log *l, const char *s)
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
    int comm = log_comm_of_link(l, k.from, k.to);
    if (comm >= 0)
        add_link(l, comm, &k);
}

/* "00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA" */
void log_collnet(struct log *l, const char *s)
{
    struct nccl_link k = {.net = -1, .through = -1, .channels = 1};
    const char *via = strstr(s, " via "), *colon = strstr(s, " : ");

    if (!via || !colon || (colon += 3, !log_small(&colon, NCCL_RANKS_MAX - 1, &k.from)) ||
        k.from < 0 || !read_via(&k, via + 5))
        return;
    k.to = k.from;
    int comm = log_comm_of_link(l, k.from, k.to);
    k.receives = strstr(s, "[receive]") != NULL;
    if (comm >= 0)
        add_link(l, comm, &k);
}

/* "0x7f10 headRank 0 nHeads 8 buffSize ...": buffers for the NVSwitch are made, from 2.22 on when
 * it is used for the first time.  It names no rank: it is this one. */
void log_nvls(struct log *l, const char *s)
{
    struct nccl_link k = {.via = NCCL_VIA_NVLS, .net = -1, .through = -1, .channels = 1};
    int comm = log_comm_at(l, strtoull(s, NULL, 16));

    if (comm < 0)
        return;
    k.from = k.to = l->p->comm[comm].rank;
    add_link(l, comm, &k);
}
