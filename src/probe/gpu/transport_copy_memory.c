/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "probe/gpu/transport_copy.h"
#include "probe/mpi/world_mpi.h"

enum { ALIGN = 4096 };

/* What each member tells the others; bytes between equal programs. */
struct offer {
    struct gpu_export handle;
    char host[64], why[160];
    int failed;
};

unsigned char *copy_arrives(const struct gpu_buffer *b)
{
    return b->at;
}

unsigned char *copy_sends(const struct copy_memory *m, const struct gpu_buffer *b)
{
    return b->at + m->room;
}

unsigned char *copy_chain(const struct copy_memory *m, const struct gpu_buffer *b)
{
    return b->at + 2 * m->room;
}

const struct gpu_buffer *copy_left(const struct copy_memory *m)
{
    return m->left.at ? &m->left : &m->right;
}

void copy_memory_close(struct copy_memory *m)
{
    gpu_free(&m->left);
    gpu_free(&m->right);
    gpu_free(&m->own);
}

static void make_offer(struct offer *o, struct copy_memory *m, enum gpu_memory kind)
{
    struct err why = {0, ""};

    memset(o, 0, sizeof(*o));
    host_self(o->host, sizeof(o->host));
    o->failed = gpu_alloc(&m->own, kind, 2 * m->room + COPY_CHAIN, &why) < 0 ||
                gpu_export(&m->own, &o->handle, &why) < 0;
    snprintf(o->why, sizeof(o->why), "%.159s", why.text);
}

/* 0, or -1 with what the first member that failed said; the same on all of them. */
static int judge(const struct group *g, const struct offer *all, const char *what, struct err *err)
{
    for (int i = 0; i < g->size; i++)
        if (all[i].failed)
            return err_config(err, "%s: rank %d (host %s): %s", what, g->members[i], all[i].host,
                              all[i].why);
    return 0;
}

static int import_neighbours(struct copy_memory *m, const struct group *g, const struct offer *all,
                             struct err *err)
{
    int right = (g->self + 1) % g->size, left = (g->self + g->size - 1) % g->size;

    if (gpu_import(&m->right, &all[right].handle, err) < 0)
        return -1;
    return left == right ? 0 : gpu_import(&m->left, &all[left].handle, err);
}

/* One way of sharing, by all members or none. */
static int share(struct copy_memory *m, const struct group *g, enum gpu_memory kind,
                 const char *what, struct err *err)
{
    struct offer mine, *all = mem_calloc((size_t)g->size, sizeof(*all));
    struct err why = {0, ""};

    make_offer(&mine, m, kind);
    int rc = world_mpi_trade(g->comm, &mine, sizeof(mine), all, err);
    if (rc == 0)
        rc = judge(g, all, what, err);
    if (rc == 0) {
        mine.failed = import_neighbours(m, g, all, &why) < 0;
        snprintf(mine.why, sizeof(mine.why), "%.159s", why.text);
        rc = world_mpi_trade(g->comm, &mine, sizeof(mine), all, err);
        if (rc == 0)
            rc = judge(g, all, what, err);
    }
    if (rc < 0)
        copy_memory_close(m);
    free(all);
    return rc;
}

/* The host names of all members, compared by each of them alike. */
static int one_host(const struct group *g, bool *yes, char other[64], struct err *err)
{
    char mine[64] = "", (*all)[64] = mem_calloc((size_t)g->size, sizeof(*all));

    host_self(mine, sizeof(mine));
    int rc = world_mpi_trade(g->comm, mine, sizeof(mine), all, err);
    *yes = true;
    for (int i = 0; i < g->size && rc == 0; i++)
        if (strcmp(all[i], all[0])) {
            *yes = false;
            snprintf(other, 64, "%s", all[i]);
            break;
        }
    free(all);
    return rc;
}

/* FABRIC handles first: within a host they are as good, and what an MNNVL job would use. */
int copy_memory_open(struct copy_memory *m, const struct group *g, size_t bytes, struct err *err)
{
    struct err fabric = {0, ""}, ipc = {0, ""};
    char other[64] = "";
    bool near;

    *m = (struct copy_memory){.room = (bytes + ALIGN - 1) / ALIGN * ALIGN};
    if (one_host(g, &near, other, err) < 0)
        return -1;
    if (share(m, g, GPU_FABRIC, "FABRIC handles", &fabric) == 0)
        return 0;
    if (!near)
        return err_config(err, "no shared memory: CUDA IPC ends at the host (%s is another); %s",
                          other, fabric.text);
    if (share(m, g, GPU_PLAIN, "CUDA IPC", &ipc) == 0)
        return 0;
    return err_config(err, "no shared memory: %.240s; %.240s", ipc.text, fabric.text);
}
