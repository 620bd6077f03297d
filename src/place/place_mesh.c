/* SPDX-License-Identifier: BSD-3-Clause */
/* place_mesh.c - ranks as digits: which axis turns fastest, and blocks of whole groups. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "place/place_parts.h"

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Strides at which some group begins or ends: of those a chain in which each divides the next. */
static void chain(struct mesh *m, const struct traffic *t, int ranks)
{
    int edge[2 * TRAFFIC_MAX + 1], n = 0, last = 1;

    for (int i = 0; i < t->messages; i++) {
        edge[n++] = t->message[i].span.stride;
        edge[n++] = t->message[i].span.stride * t->message[i].span.size;
    }
    edge[n++] = ranks;
    qsort(edge, (size_t)n, sizeof(*edge), by_value);
    for (int i = 0; i < n; i++) {
        bool end = edge[i] == ranks;
        if (edge[i] <= last || edge[i] % last || ranks % edge[i] ||
            (m->digits == DIGITS - 1 && !end))
            continue;
        m->stride[m->digits] = last;
        m->radix[m->digits++] = edge[i] / last;
        last = edge[i];
    }
}

/* A message weighs on every digit that its groups run along. */
static void weigh(struct mesh *m, const struct traffic *t)
{
    for (int i = 0; i < t->messages; i++) {
        const struct message *msg = &t->message[i];
        double bytes = msg->count * message_wire_bytes(msg, msg->span.size);
        for (int d = 0; d < m->digits; d++)
            if (m->stride[d] >= msg->span.stride &&
                m->stride[d] < msg->span.stride * msg->span.size)
                m->weight[d] += bytes;
    }
}

void mesh_of(struct mesh *m, const struct placer *pl)
{
    memset(m, 0, sizeof(*m));
    m->ranks = pl->ranks;
    chain(m, &pl->traffic, pl->ranks);
    weigh(m, &pl->traffic);
}

int mesh_rank(const struct mesh *m, const int *turn, int s)
{
    int rank = 0;

    for (int i = 0; i < m->digits; i++) {
        rank += s % m->radix[turn[i]] * m->stride[turn[i]];
        s /= m->radix[turn[i]];
    }
    return rank;
}

struct scored {
    double far; /* heavy digits that turn late */
    int serial, turn[DIGITS];
};

static int by_far(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    if (x->far != y->far)
        return x->far < y->far ? -1 : 1;
    return x->serial - y->serial;
}

static double far(const struct mesh *m, const int *turn)
{
    double sum = 0, reach = 0;

    for (int i = 0; i < m->digits; i++) {
        reach += log2(m->radix[turn[i]]);
        sum += m->weight[turn[i]] * reach;
    }
    return sum;
}

/* The next permutation in lexicographic order, or false after the last. */
static bool permute(int *v, int n)
{
    int i = n - 2, k = n - 1;

    while (i >= 0 && v[i] > v[i + 1])
        i--;
    if (i < 0)
        return false;
    while (v[k] < v[i])
        k--;
    int swap = v[i];
    v[i] = v[k];
    v[k] = swap;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        swap = v[a];
        v[a] = v[b];
        v[b] = swap;
    }
    return true;
}

int mesh_turns(const struct mesh *m, int (**turns)[DIGITS], int most)
{
    struct scored *all = NULL, next = {0};
    int n = 0;

    for (int i = 0; i < DIGITS; i++)
        next.turn[i] = i;
    do {
        next.far = n ? far(m, next.turn) : -1; /* the mesh as it is comes first */
        next.serial = n;
        MEM_PUSH(all, n) = next;
    } while (permute(next.turn, m->digits));
    qsort(all, (size_t)n, sizeof(*all), by_far);
    n = n < most ? n : most;
    *turns = mem_calloc((size_t)n + 1, sizeof(**turns));
    for (int i = 0; i < n; i++)
        memcpy((*turns)[i], all[i].turn, sizeof(**turns));
    free(all);
    return n;
}
