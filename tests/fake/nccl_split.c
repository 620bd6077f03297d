/* SPDX-License-Identifier: BSD-3-Clause */
/* ncclCommSplit, and what it costs to make communicators and to use a large one between two ranks.
 *
 * FAKE_NCCL_COST is a list KEY=SECONDS, separated by commas; without it nothing costs anything:
 *   init    of each communicator that is made, on every rank
 *   rank    more for each rank that it has
 *   root    and by ncclCommInitRankConfig: for each rank that comes to the bootstrap's root
 *   parent  by ncclCommSplit: for each rank of the communicator that is split, whoever is in no part
 *           too (src/init.cc, commGetSplitInfo: an allgather over all of them)
 *   p2p     of the sends and receives of a group, on the GPU's clock
 *   near    ... how many times as long within a host or clique, on a communicator of more than two
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl_fake.h"

static double cost(const char *key)
{
    const char *at = getenv("FAKE_NCCL_COST");
    size_t n = strlen(key);

    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, key, n) && at[n] == '=')
            return strtod(at + n + 1, NULL);
    return 0;
}

static void spend(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    if (seconds > 0)
        nanosleep(&t, NULL);
}

void cost_init(const struct ncclComm *c)
{
    spend(cost("init") + c->ranks * (cost("rank") + (c->parent ? 0 : cost("root"))));
}

void cost_p2p(const struct ncclComm *c, const struct op *op, int n)
{
    double seconds = cost("p2p"), near = cost("near");
    bool is_near = false;

    for (int i = 0; i < n; i++)
        is_near |= op[i].call.root != c->rank && story_near(c, c->rank, op[i].call.root);
    if (seconds > 0 && cuda.skip)
        cuda.skip(seconds * (is_near && near > 0 && c->ranks > 2 ? near : 1));
}

/* --- who is in which part --- */
static bool all_told(struct ncclComm *c, void *unused)
{
    (void)unused;
    for (int r = 0; r < c->ranks; r++)
        if ((int)(atomic_load(&c->table->seat[r].splits) - c->splits) < 0)
            return false;
    return true;
}

static struct split *told(struct ncclComm *c, int r)
{
    return &c->table->seat[r].split[c->splits % 2]; /* the next split may have begun there */
}

/* The part's ranks in the order of their keys; returns how many, *mine and *first (in `c`). */
static int find_part(struct ncclComm *c, int *mine, int *first)
{
    const struct split *me = told(c, c->rank);
    int count = 0;

    *mine = 0;
    *first = c->rank;
    for (int r = 0; r < c->ranks; r++) {
        const struct split *other = told(c, r), *lead = told(c, *first);

        if (other->color != me->color)
            continue;
        count++;
        *mine += other->key < me->key || (other->key == me->key && r < c->rank);
        if (other->key < lead->key || (other->key == lead->key && r < *first))
            *first = r;
    }
    return count;
}

static bool id_there(struct ncclComm *c, void *first)
{
    return atomic_load(&told(c, *(int *)first)->made) == c->splits;
}

/* The part's id: made by its first rank, which the others wait for. */
static int part_id(struct ncclComm *c, int first, struct nccl_id *id)
{
    struct split *lead = told(c, first);
    int rc = NCCL_SUCCESS;

    if (first == c->rank) {
        rc = meet_make(&lead->id);
        atomic_store(&lead->made, c->splits);
        meet_ring(c);
    } else if (meet_wait(c, id_there, &first, true)) {
        return NCCL_INTERNAL;
    }
    *id = lead->id;
    return rc;
}

int split_meet(struct ncclComm *c, int color, int key, struct split_part *part)
{
    struct split *mine;

    c->splits++;
    mine = told(c, c->rank);
    mine->color = color;
    mine->key = key;
    atomic_store(&c->table->seat[c->rank].splits, c->splits);
    meet_ring(c);
    if (meet_wait(c, all_told, NULL, true))
        return atomic_load(&c->async) ? atomic_load(&c->async) : NCCL_INTERNAL;
    spend(c->ranks * cost("parent"));
    if (color == NCCL_NO_COLOR)
        return NCCL_SUCCESS;
    part->ranks = find_part(c, &part->rank, &part->first);
    return part_id(c, part->first, &part->id);
}
