/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_judge.c - oddities of a merged profile, in sentences.  Each test looks for one thing; ranks
 * are endpoint ids.  A sentence that applies to many ranks is reported once. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/nccl_profile.h"
#include "topo/topo.h"

enum { RANKS_LEN = 160 };

static void say(struct nccl_profile *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct nccl_profile *p, const char *fmt, ...)
{
    char text[480];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    p->dropped += !nccl_profile_note(&p->finding, &p->findings, text);
}

static int endpoint_of(const struct nccl_comm_profile *c, int rank)
{
    return c->endpoint && rank >= 0 && rank < c->ranks ? c->endpoint[rank] : -1;
}

static int place_of(const struct topo *t, int endpoint, enum level level)
{
    return t && endpoint >= 0 && endpoint < t->endpoints ? t->endpoint[endpoint].place.at[level]
                                                         : -1;
}

/* Largest endpoint with any information, + 1. */
static int endpoints_of(const struct nccl_profile *p, const struct topo *t)
{
    int n = t ? t->endpoints : 0;

    for (int i = 0; i < p->ranks; i++)
        if (p->rank[i].endpoint >= n)
            n = p->rank[i].endpoint + 1;
    return n;
}

/* --- channels: the usual number, and ranks with fewer --- */
static int usual_channels(const struct nccl_comm_profile *c, int kind)
{
    int best = 0, most = 0;

    for (int r = 0; r < c->ranks; r++) {
        int n = c->each[r * NCCL_GRAPH_COUNT + kind].channels, same = 0;
        for (int o = 0; o < c->ranks; o++)
            same += c->each[o * NCCL_GRAPH_COUNT + kind].channels == n;
        if (same > most || (same == most && n > best)) {
            most = same;
            best = n;
        }
        if (2 * most > c->ranks)
            break;
    }
    return best;
}

static void odd_channels(struct nccl_profile *p, const struct nccl_comm_profile *c, int n)
{
    char ranks[RANKS_LEN];
    bool *less = mem_calloc((size_t)n + 1, sizeof(bool));

    for (int k = 0; k < NCCL_GRAPH_COUNT && c->each; k++) {
        int usual = usual_channels(c, k), fewest = usual;
        for (int r = 0; r < c->ranks; r++) {
            const struct nccl_graph *g = &c->each[r * NCCL_GRAPH_COUNT + k];
            if (g->pattern && g->channels < fewest)
                fewest = g->channels;
        }
        memset(less, 0, (size_t)n * sizeof(bool));
        for (int r = 0; r < c->ranks && fewest < usual; r++) {
            const struct nccl_graph *g = &c->each[r * NCCL_GRAPH_COUNT + k];
            int e = endpoint_of(c, r);
            if (e >= 0 && e < n)
                less[e] = g->pattern && g->channels == fewest;
        }
        if (fewest < usual)
            say(p, "%s: %d %s channel%s where the others have %d",
                units_ranks_text(ranks, sizeof(ranks), less, n), fewest, nccl_graph_name[k],
                fewest == 1 ? "" : "s", usual);
    }
    free(less);
}

/* --- rings: rack crossings, and the fewest possible --- */
static int groups_of(const struct nccl_comm_profile *c, const struct topo *t, enum level level)
{
    bool *seen = mem_calloc((size_t)t->group[level].count + 1, sizeof(bool));
    int n = 0;

    for (int r = 0; r < c->ranks; r++) {
        int at = place_of(t, endpoint_of(c, r), level);
        if (at < 0) {
            n = 0;
            break;
        }
        n += !seen[at];
        seen[at] = true;
    }
    free(seen);
    return n;
}

static int crossings(const struct nccl_comm_profile *c, const struct topo *t, const int *order,
                     enum level level)
{
    int n = 0;

    for (int i = 0; i < c->ranks; i++)
        n += place_of(t, endpoint_of(c, order[i]), level) !=
             place_of(t, endpoint_of(c, order[(i + 1) % c->ranks]), level);
    return n;
}

static void ring_detours(struct nccl_profile *p, const struct nccl_comm_profile *c,
                         const struct topo *t)
{
    static const char *const many[LEVEL_COUNT] = {"hosts", "NVLink domains", "leaves", "racks"};

    for (int l = LEVEL_HOST; t && l <= LEVEL_RACK; l++) {
        int groups = groups_of(c, t, l), worst = 0, count = 0;
        for (int k = 0; groups > 1 && k < c->rings; k++) {
            int n = crossings(c, t, c->ring + (size_t)k * (size_t)c->ranks, l);
            count += n > groups;
            worst = n > worst ? n : worst;
        }
        if (count)
            say(p, "ring crosses %s %d times, %d suffice (%d of %d rings of %d ranks)", many[l],
                worst, groups, count, c->rings, c->ranks);
    }
}

/* --- connections --- */
static const struct nccl_rank *rank_of(const struct nccl_profile *p, int endpoint)
{
    for (int i = 0; i < p->ranks; i++)
        if (p->rank[i].endpoint == endpoint)
            return &p->rank[i];
    return NULL;
}

int nccl_pair_path(const struct nccl_profile *p, int from, int to, double *Bps)
{
    if (from < 0 || to < 0 || from >= p->wheres || to >= p->wheres || p->where[from].dump < 0 ||
        p->where[from].dump != p->where[to].dump)
        return -1;
    const struct nccl_paths *d = &p->paths[p->where[from].dump];
    const struct nccl_route *r = &d->pair[p->where[from].gpu * d->gpus + p->where[to].gpu];
    if (Bps)
        *Bps = r->Bps;
    return r->type;
}

/* Report a NIC farther away than the GPU's nearest.  Only NICs of the sender: PXN uses NICs of
 * other GPUs on purpose. */
static void far_nic(struct nccl_profile *p, int endpoint, int number)
{
    int best = -1, mine = -1;

    if (endpoint >= p->wheres || p->where[endpoint].dump < 0)
        return;
    const struct nccl_paths *m = &p->paths[p->where[endpoint].dump];
    int g = p->where[endpoint].gpu;
    const struct nccl_route *to = &m->nic[g * m->nets];
    for (int n = 0; n < m->nets; n++) {
        if (m->net[n].host != m->gpu[g].host)
            continue;
        if (m->net[n].dev == number)
            mine = n;
        if (best < 0 || to[n].type < to[best].type)
            best = n;
    }
    if (mine >= 0 && to[mine].type > to[best].type)
        say(p, "rank %d sends through %s (%s), its nearest NIC is %s (%s)", endpoint,
            m->net[mine].name, nccl_path_type_name[to[mine].type], m->net[best].name,
            nccl_path_type_name[to[best].type]);
}

struct sets { /* endpoints, or hosts, with a property; owned */
    bool *domain_net, *host_other, *verbs, *direct, *done;
    bool host_p2p;
};

static void look_at_link(struct nccl_profile *p, const struct topo *t, int i, struct sets *s)
{
    const struct nccl_link *k = &p->link[i];
    const struct nccl_comm_profile *c = &p->comm[p->link_comm[i]];
    int from = endpoint_of(c, k->from), to = endpoint_of(c, k->to), me = k->receives ? to : from;
    int host = place_of(t, me, LEVEL_HOST), domain = place_of(t, from, LEVEL_DOMAIN);

    if (from < 0 || to < 0)
        return;
    bool same = host >= 0 && place_of(t, from, LEVEL_HOST) == place_of(t, to, LEVEL_HOST);
    bool net = k->via >= NCCL_VIA_NET_IB && k->via <= NCCL_VIA_NET_OTHER;
    if (!same && net && domain >= 0 && domain == place_of(t, to, LEVEL_DOMAIN))
        s->domain_net[me] = true;
    if (same && from != to && k->via <= NCCL_VIA_MNNVL)
        s->host_p2p = true;
    else if (same && from != to && k->via < NCCL_VIA_COLLNET)
        s->host_other[me] = true;
    if (k->via == NCCL_VIA_NET_IB && host >= 0)
        *(k->gdr ? &s->direct[host] : &s->verbs[host]) = true;
    if (net && !k->receives && k->through < 0 && k->net >= 0 && !s->done[me]) {
        s->done[me] = true;
        far_nic(p, me, k->net);
    }
}

static void no_gpu_direct(struct nccl_profile *p, const struct topo *t, const struct sets *s)
{
    char **names = mem_calloc((size_t)t->hosts + 1, sizeof(*names));
    int n = 0, with = 0;

    for (int h = 0; h < t->hosts; h++) {
        with += s->direct[h];
        if (s->verbs[h] && !s->direct[h])
            names[n++] = t->host[h].name;
    }
    char *list = hostlist_fold(names, n);
    if (n)
        say(p, "no GPUDirect RDMA on host%s %.200s%s", n == 1 ? "" : "s", list,
            with ? "" : " (nor anywhere else)");
    free(list);
    free(names);
}

static void look_at_links(struct nccl_profile *p, const struct topo *t)
{
    int n = endpoints_of(p, t), hosts = t ? t->hosts : 0;
    char ranks[RANKS_LEN];
    bool *all = mem_calloc(3 * (size_t)n + 2 * (size_t)hosts + 5, sizeof(bool));
    struct sets s = {.domain_net = all,
                     .host_other = all + n + 1,
                     .done = all + 2 * n + 2,
                     .verbs = all + 3 * n + 3,
                     .direct = all + 3 * n + hosts + 4};

    for (int i = 0; i < p->links; i++)
        look_at_link(p, t, i, &s);
    if (memchr(s.domain_net, 1, (size_t)n + 1))
        say(p, "%s use the network to other hosts of their NVLink domain",
            units_ranks_text(ranks, sizeof(ranks), s.domain_net, n));
    if (s.host_p2p && memchr(s.host_other, 1, (size_t)n + 1))
        say(p, "%s: host memory or network within the host, where other pairs have P2P",
            units_ranks_text(ranks, sizeof(ranks), s.host_other, n));
    if (t)
        no_gpu_direct(p, t, &s);
    free(all);
}

static void nvls_unused(struct nccl_profile *p, const struct nccl_comm_profile *c)
{
    if (c->ranks < 3 || c->nvls != 0)
        return;
    for (int r = 0; r < c->ranks; r++) {
        const struct nccl_rank *s = rank_of(p, endpoint_of(c, r));
        if (!s || s->nvls != 1)
            return;
    }
    say(p, "NVLS not used though available (communicator of %d ranks)", c->ranks);
}

static void silent(struct nccl_profile *p, const struct topo *t)
{
    int n = endpoints_of(p, t), count = 0;
    bool *none = mem_calloc((size_t)n + 1, sizeof(bool));
    char ranks[RANKS_LEN];

    for (int i = 0; i < n; i++)
        none[i] = true;
    for (int i = 0; i < p->ranks; i++)
        if (p->rank[i].endpoint >= 0)
            none[p->rank[i].endpoint] = false;
    for (int i = 0; i < n; i++)
        count += none[i];
    if (count)
        say(p, "no log from %s", units_ranks_text(ranks, sizeof(ranks), none, n));
    free(none);
}

void nccl_judge(struct nccl_profile *p, const struct topo *t)
{
    int n = endpoints_of(p, t);

    silent(p, t);
    for (int i = 0; i < p->comms; i++) {
        if (p->comm[i].ranks > 2)
            odd_channels(p, &p->comm[i], n);
        ring_detours(p, &p->comm[i], t);
        nvls_unused(p, &p->comm[i]);
    }
    look_at_links(p, t);
}

double nccl_assumed(const struct nccl_comm_profile *c)
{
    double best = 0;

    for (int k = NCCL_GRAPH_RING; k <= NCCL_GRAPH_TREE; k++) {
        const struct nccl_graph *g = &c->graph[k];
        double one = c->nodes != 1 && g->inter_Bps > 0 && g->inter_Bps < g->intra_Bps
                         ? g->inter_Bps
                         : g->intra_Bps;
        best = fmax(best, g->channels * one);
    }
    return best;
}

void nccl_judge_measured(struct nccl_profile *p, int comm, const char *op, double busbw)
{
    const struct nccl_comm_profile *c = &p->comm[comm];
    double assumed = nccl_assumed(c);
    char is[UNITS_TEXT], was[UNITS_TEXT];

    if (!(assumed > 0) || !(busbw > 0))
        return;
    double ratio = busbw / assumed;
    if (ratio < 2.0 / 3 || ratio > 1.5)
        say(p, "%s of %d ranks measures %s where NCCL assumed %s (x %.2g)", op, c->ranks,
            units_rate_text(is, busbw), units_rate_text(was, assumed), ratio);
}
