/* SPDX-License-Identifier: BSD-3-Clause */
/* place_ties.c - who talks to whom, as a list by rank. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"

/* Of a group where all talk to all; of larger ones only those 1, 2, 4 ... apart, with as many bytes
 * in all. */
enum { ALL_PAIRS_MAX = 16 };

struct flows {
    struct flow *flow;
    int flows;
};

static void add(struct flows *f, int src, int dst, double bytes)
{
    MEM_PUSH(f->flow, f->flows) = (struct flow){src, dst, bytes};
}

/* The wire bytes of one message of one group, by its pattern. */
static void group_flows(struct flows *f, const struct message *m, int group)
{
    int n = m->span.size;
    double bytes = m->count * message_wire_bytes(m, n);
    bool all = m->op == OP_ALL_TO_ALL, few = n <= ALL_PAIRS_MAX;
    int peers = 0, last = all ? n - 1 : 1;

    for (int k = 1; k <= last; k = few ? k + 1 : 2 * k)
        peers++;
    for (int i = 0; i < n; i++) {
        int rank = span_rank(&m->span, group, i);
        if (m->op == OP_SENDRECV && i == n - 1)
            break; /* a pipeline is no ring */
        for (int k = 1; k <= last; k = few ? k + 1 : 2 * k)
            add(f, rank, span_rank(&m->span, group, (i + k) % n), bytes / peers);
    }
}

static void traffic_flows(struct flows *f, const struct traffic *t, int ranks)
{
    for (int i = 0; i < t->messages; i++)
        for (int g = 0; g < span_groups(&t->message[i].span, ranks); g++)
            group_flows(f, &t->message[i], g);
}

static int by_peer(const void *a, const void *b)
{
    return ((const struct tie *)a)->peer - ((const struct tie *)b)->peer;
}

/* One tie for each peer. */
static int merge(struct tie *t, int n)
{
    int kept = 0;

    qsort(t, (size_t)n, sizeof(*t), by_peer);
    for (int i = 0; i < n; i++)
        if (kept && t[kept - 1].peer == t[i].peer) {
            t[kept - 1].out += t[i].out;
            t[kept - 1].in += t[i].in;
        } else {
            t[kept++] = t[i];
        }
    return kept;
}

static struct ties *by_rank(const struct flow *flow, int flows, int ranks)
{
    struct ties *t = mem_calloc(1, sizeof(*t));
    int *fill = mem_calloc((size_t)ranks + 2, sizeof(int)), at = 0;

    t->start = mem_calloc((size_t)ranks + 2, sizeof(int));
    t->tie = mem_calloc(2 * (size_t)flows + 1, sizeof(*t->tie));
    for (int i = 0; i < flows; i++)
        if (flow[i].src != flow[i].dst) {
            fill[flow[i].src + 1]++;
            fill[flow[i].dst + 1]++;
        }
    for (int r = 0; r < ranks; r++)
        fill[r + 1] += fill[r];
    memcpy(t->start, fill, ((size_t)ranks + 1) * sizeof(int));
    for (int i = 0; i < flows; i++) {
        const struct flow *f = &flow[i];
        if (f->src == f->dst)
            continue;
        t->tie[fill[f->src]++] = (struct tie){f->dst, f->bytes, 0};
        t->tie[fill[f->dst]++] = (struct tie){f->src, 0, f->bytes};
    }
    for (int r = 0; r < ranks; r++) {
        int from = t->start[r], n = merge(&t->tie[from], t->start[r + 1] - from);
        memmove(&t->tie[at], &t->tie[from], (size_t)n * sizeof(*t->tie));
        t->start[r] = at;
        at += n;
    }
    t->start[ranks] = at;
    free(fill);
    return t;
}

const struct ties *placer_ties(struct placer *pl)
{
    struct flows f = {0};

    if (pl->ties)
        return pl->ties;
    if (pl->ask->demand) {
        pl->ties = by_rank(pl->ask->demand->flow, pl->ask->demand->flows, pl->ranks);
        return pl->ties;
    }
    traffic_flows(&f, &pl->traffic, pl->ranks);
    pl->ties = by_rank(f.flow, f.flows, pl->ranks);
    free(f.flow);
    return pl->ties;
}
