/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_use.c - compute, storage or management: by what is near GPUs, speed, link and network. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/host/nic.h"
#include "topo/net/rails_impl.h"

/* source: who told that which decides. */
static void put(struct nic *n, enum nic_use use, enum source source, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void put(struct nic *n, enum nic_use use, enum source source, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(n->why, sizeof(n->why), fmt, args);
    va_end(args);
    n->use = use;
    n->use_source = use == NIC_UNKNOWN ? SOURCE_NONE : source;
}

static const char *layer_text(const struct nic *n)
{
    static const char *const text[] = {"unknown link", "Ethernet", "InfiniBand"};

    return text[n->layer];
}

static bool same_kind(const struct nic *a, const struct nic *b)
{
    return a->rdma == b->rdma && a->layer == b->layer && a->rate_Bps == b->rate_Bps;
}

static bool same_board(const struct nic *a, const struct nic *b)
{
    return !a->board[0] || !b->board[0] || !strcmp(a->board, b->board);
}

static struct nic *at(const struct rails_host *v, int i)
{
    return &v->r->t->nic[v->nic[i]];
}

/* Of the kinds of RDMA NICs that are up the one that is near most GPUs, then the one with the most
 * bandwidth together; a NIC of it, or NULL. */
static const struct nic *compute_kind(const struct rails_host *v)
{
    const struct nic *best = NULL;
    double best_Bps = -1;
    int best_near = -1;

    for (int i = 0; i < v->nics; i++) {
        double Bps = 0;
        int near = 0;
        if (!at(v, i)->rdma || !at(v, i)->up)
            continue;
        for (int k = 0; k < v->nics; k++)
            if (same_kind(at(v, i), at(v, k)) && at(v, k)->up) {
                near += v->r->near[v->nic[k]];
                Bps += at(v, k)->rate_Bps;
            }
        if (near > best_near || (near == best_near && Bps > best_Bps)) {
            best = at(v, i);
            best_near = near;
            best_Bps = Bps;
        }
    }
    return best;
}

static void rdma_use(struct nic *n, const struct nic *kind, int near)
{
    char is[UNITS_TEXT] = "?", other[UNITS_TEXT] = "?";

    if (n->rate_Bps > 0)
        units_rate_text(is, n->rate_Bps);
    if (kind->rate_Bps > 0)
        units_rate_text(other, kind->rate_Bps);
    if (n->up && same_kind(n, kind))
        put(n, NIC_COMPUTE, nic_teller(n),
            near ? "nearest to %d GPU%s" : "of the kind of those near GPUs", near,
            near == 1 ? "" : "s");
    else if (!n->up && n->layer == kind->layer && same_board(n, kind))
        put(n, NIC_COMPUTE, nic_teller(n), "down; of the compute NICs' link and board");
    else if (n->up && n->layer == kind->layer && near && same_board(n, kind))
        put(n, NIC_COMPUTE, nic_teller(n), "nearest to a GPU, at %s where others have %s", is,
            other);
    else
        put(n, NIC_STORAGE, nic_teller(n), "%s at %s, compute: %s at %s", layer_text(n), is,
            layer_text(kind), other);
}

/* A plain interface of an RDMA NIC's ports (a bond) is there for what that is. */
static const struct nic *twin(const struct rails_host *v, const struct nic *n)
{
    for (int i = 0; i < v->nics; i++)
        if (at(v, i)->rdma && n->netdev[0] && !strcmp(at(v, i)->netdev, n->netdev))
            return at(v, i);
    return NULL;
}

/* Without RDMA the fastest NICs do everything. */
static void plain_use(const struct rails_host *v, struct nic *n, double fastest, int up)
{
    char unit[UNITS_TEXT];

    if (!n->up)
        put(n, NIC_UNKNOWN, nic_teller(n), "down");
    else if (up == 1)
        put(n, NIC_COMPUTE, nic_teller(n), "the only NIC that is up");
    else if (fastest <= 0)
        put(n, NIC_UNKNOWN, nic_teller(n), "no speed of the %d NICs is visible", v->nics);
    else if (n->rate_Bps == fastest)
        put(n, NIC_COMPUTE, nic_teller(n), "the fastest of a host without RDMA");
    else
        put(n, NIC_MANAGEMENT, nic_teller(n), "slower than %s", units_rate_text(unit, fastest));
}

/* Compute NICs on a network with fewer NICs of this host than the main one, and near no GPU, are
 * not on a plane of it. */
static void other_networks(const struct rails_host *v, const bool *set)
{
    enum { PARTS = 64 };
    int count[PARTS] = {0}, main = -1;

    for (int i = 0; i < v->nics; i++) {
        int part = v->r->part[v->nic[i]];
        if (at(v, i)->use == NIC_COMPUTE && part >= 0 && part < PARTS)
            count[part]++;
    }
    for (int p = 0; p < PARTS; p++)
        main = count[p] && (main < 0 || count[p] > count[main]) ? p : main;
    for (int i = 0; i < v->nics; i++) {
        int nic = v->nic[i], part = v->r->part[nic];
        if (at(v, i)->use == NIC_COMPUTE && !set[nic] && part >= 0 && part < PARTS &&
            count[part] < count[main] && !v->r->near[nic])
            put(at(v, i), NIC_STORAGE, SOURCE_IBNET, "on another network than %d others",
                count[main]);
    }
}

static void host_uses(const struct rails_host *v, const bool *set)
{
    const struct nic *kind = compute_kind(v);
    double fastest = 0;
    int up = 0, rdma = 0;

    for (int i = 0; i < v->nics; i++) {
        up += at(v, i)->up;
        rdma += at(v, i)->rdma && at(v, i)->up;
        if (at(v, i)->up && at(v, i)->rate_Bps > fastest)
            fastest = at(v, i)->rate_Bps;
    }
    for (int i = 0; i < v->nics; i++)
        if (kind && at(v, i)->rdma && !set[v->nic[i]])
            rdma_use(at(v, i), kind, v->r->near[v->nic[i]]);
    other_networks(v, set);
    for (int i = 0; i < v->nics; i++) {
        struct nic *n = at(v, i);
        const struct nic *same = n->rdma ? NULL : twin(v, n);
        if (set[v->nic[i]] || (n->rdma && kind))
            continue;
        if (same)
            put(n, same->use, same->use_source, "its ports are those of %.31s", same->name);
        else if (kind)
            put(n, NIC_MANAGEMENT, nic_teller(n), "no RDMA, beside %d that have it", rdma);
        else if (!n->rdma)
            plain_use(v, n, fastest, up);
    }
}

/* Compute NICs of a host of which the subnet alone tells; -1: it tells more, or of none. */
static int told_by_net(const struct rails_host *v)
{
    int count = 0;

    for (int i = 0; i < v->nics; i++) {
        if (at(v, i)->source != SOURCE_IBNET || v->r->near[v->nic[i]])
            return -1;
        count += at(v, i)->use == NIC_COMPUTE;
    }
    return count ? count : -1;
}

/* Of hosts that the subnet alone tells of, those with at most half of the adapters that most have
 * are something else (storage, login, UFM), unless one of the same name but for its number has
 * more: then its adapters are missing. */
static void other_hosts(struct rails *r, const bool *set)
{
    enum { COUNTS = 65 };
    const struct topo *t = r->t;
    int *count = mem_calloc((size_t)t->hosts + 1, sizeof(*count)), times[COUNTS] = {0}, most = 0;
    struct names compute = {0}; /* families */

    for (int h = 0; h < t->hosts; h++) {
        struct rails_host v = rails_host(r, h);
        count[h] = told_by_net(&v);
        if (count[h] > 0 && count[h] < COUNTS && ++times[count[h]] > times[most])
            most = count[h];
    }
    for (int h = 0; h < t->hosts; h++) {
        char *family = topo_host_family(t->host[h].name);
        if (2 * count[h] > most)
            names_add(&compute, family);
        free(family);
    }
    int families = compute.count;
    for (int h = 0; h < t->hosts && times[most] >= 3; h++) {
        char *family = topo_host_family(t->host[h].name);
        bool other =
            count[h] > 0 && 2 * count[h] <= most && names_add(&compute, family) >= families;
        free(family);
        struct rails_host v = rails_host(r, h);
        for (int i = 0; i < v.nics && other; i++)
            if (!set[v.nic[i]])
                put(at(&v, i), NIC_UNKNOWN, SOURCE_NONE,
                    "%d adapter%s where most hosts have %d, and another name", count[h],
                    units_s(count[h]), most);
    }
    names_free(&compute);
    free(count);
}

void nic_uses(struct rails *r)
{
    const struct topo *t = r->t;
    bool *set = mem_calloc((size_t)t->nics + 1, sizeof(*set));

    for (int i = 0; i < t->nics; i++)
        set[i] = t->nic[i].use != NIC_UNKNOWN;
    for (int h = 0; h < t->hosts; h++) {
        struct rails_host v = rails_host(r, h);
        host_uses(&v, set);
    }
    other_hosts(r, set);
    free(set);
}
