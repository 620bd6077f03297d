/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/nccl/nccl_look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "probe/nccl/nccl_path.h"
#include "probe/transport.h"

/* What NCCL chooses differs by size; few are enough to see where it changes. */
static const size_t sizes[] = {1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 26};

static int run_sizes(const struct transport *tr, void *ctx, struct err *err)
{
    static const enum op ops[] = {OP_ALL_REDUCE, OP_ALL_GATHER, OP_ALL_TO_ALL};
    double sec;

    for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            if (tr->run(ctx, ops[o], sizes[i], 1, &sec, err) < 0)
                return -1;
    return 0;
}

static int one_communicator(const struct transport *tr, struct world *w, struct err *err)
{
    int *members = mem_calloc((size_t)w->size, sizeof(*members));
    struct group g = {.members = members, .size = w->size, .self = w->rank};
    void *ctx = NULL;

    for (int i = 0; i < w->size; i++)
        members[i] = i;
    int rc = w->enter(w, members, w->size, 0, &g.comm, err);
    if (rc == 0)
        rc = w->agree(w, tr->open(&ctx, &g, sizes[sizeof(sizes) / sizeof(*sizes) - 1], err), err);
    if (rc == 0)
        rc = w->agree(w, run_sizes(tr, ctx, err), err);
    if (ctx)
        tr->close(ctx);
    w->leave(w, &g.comm);
    free(members);
    return rc;
}

/* Into the topology, instead of what an earlier look found. */
static void keep(struct topo *t, const struct nccl_profile *p)
{
    json_decref(t->nccl);
    t->nccl = nccl_profile_json(p);
}

int nccl_look(struct nccl_readback *r, struct world *w, struct topo *t, struct err *err)
{
    const struct transport *tr = transport_find("nccl");
    struct nccl_profile p = {.lines = 0};

    if (!tr)
        return err_config(err, "this program has no transport nccl");
    int rc = one_communicator(tr, w, err);
    if (rc == 0)
        rc = nccl_readback_collect(r, &p, t, err);
    if (rc == 0 && w->rank == 0)
        keep(t, &p);
    nccl_profile_free(&p);
    return rc;
}

/* Below this it is latency that counts, and NCCL assumes nothing of it that can be compared. */
enum { LARGE = 32 << 20 };

/* The largest message of an operation on so many ranks, over its epochs the best: bytes a second
 * as busbw; 0: not measured. */
static double measured(const struct points *all, enum op op, int ranks)
{
    size_t most = LARGE;
    double best = 0;

    for (int i = 0; i < all->count; i++) {
        const struct point *p = &all->point[i];
        if (p->op != op || p->ranks != ranks || p->wrong || !(p->sec.median > 0) || p->bytes < most)
            continue;
        double busbw = (double)p->bytes / p->sec.median * op_bus_factor(op, ranks);
        best = p->bytes > most || busbw > best ? busbw : best;
        most = p->bytes;
    }
    return best;
}

static void compare(struct nccl_profile *p, const struct points *points)
{
    static const enum op ops[] = {OP_ALL_REDUCE, OP_ALL_GATHER};

    for (int c = 0; c < p->comms; c++)
        for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
            if (p->comm[c].ranks > 2)
                nccl_judge_measured(p, c, op_name(ops[o]),
                                    measured(points, ops[o], p->comm[c].ranks));
}

int nccl_look_after(struct nccl_readback *r, struct world *w, struct topo *t, const char *path,
                    const struct points *points, struct err *err)
{
    struct nccl_profile p;
    int rc = nccl_readback_collect(r, &p, t, err);

    if (rc == 0 && w->rank == 0) {
        compare(&p, points);
        keep(t, &p);
        for (int i = 0; i < p.findings; i++)
            log_warn("NCCL: %s", p.finding[i]);
        if (path)
            rc = nccl_path_judge(&p, t, path, err);
    }
    nccl_profile_free(&p);
    return w->agree(w, rc, err);
}

void nccl_look_strays(const struct world *w)
{
    int count;
    char **list = nccl_strays("", &count);

    for (int i = 0; i < count; i++) {
        if (w->rank == 0)
            log_warn("%s", list[i]);
        free(list[i]);
    }
    free(list);
}
