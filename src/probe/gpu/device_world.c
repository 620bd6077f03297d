/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "probe/gpu/device.h"
#include "probe/world.h"

/* Whose GPU is whose; sent as bytes between equal programs. */
struct device_owner {
    char host[64], uuid[48], busid[16];
};

static bool same_gpu(const struct device_owner *a, const struct device_owner *b)
{
    return !strcmp(a->host, b->host) && !strcmp(a->uuid, b->uuid) && !strcmp(a->busid, b->busid);
}

/* first[r]: is rank r the first that uses its GPU? */
static bool *first_users(const struct device_owner *all, int n)
{
    bool *first = mem_calloc((size_t)n, sizeof(*first));

    for (int r = 0; r < n; r++) {
        first[r] = true;
        for (int k = 0; k < r && first[r]; k++)
            first[r] = !same_gpu(&all[k], &all[r]);
    }
    return first;
}

/* This rank's turn among the GPUs of its host (-1: another rank measures its GPU), and how many
 * turns the largest host has. */
static int turn_of(const struct device_owner *all, int n, int rank, int *turns)
{
    bool *first = first_users(all, n);
    int mine = -1;

    *turns = 0;
    for (int r = 0; r < n; r++) {
        int before = 0;
        for (int k = 0; k < r && first[r]; k++)
            before += first[k] && !strcmp(all[k].host, all[r].host);
        if (first[r] && r == rank)
            mine = before;
        if (first[r] && before >= *turns)
            *turns = before + 1;
    }
    free(first);
    return mine;
}

static int learn(struct world *w, struct device_owner *mine, int *turn, int *turns, struct err *err)
{
    void *all = NULL;

    memset(mine, 0, sizeof(*mine));
    host_self(mine->host, sizeof(mine->host));
    snprintf(mine->uuid, sizeof(mine->uuid), "%s", gpu_facts()->uuid);
    snprintf(mine->busid, sizeof(mine->busid), "%s", gpu_facts()->busid);
    int rc = world_trade(w, mine, sizeof(*mine), &all, err);
    if (rc == 0)
        *turn = turn_of(all, w->size, w->rank, turns);
    free(all);
    return w->agree(w, rc, err);
}

/* Row by row, so that no message is large; ranks without a turn send nothing that counts. */
static int collect(struct device_table *t, const struct device_row *rows, int n, bool measured,
                   struct world *w, struct err *err)
{
    struct device_row *box = w->rank == 0 ? mem_calloc((size_t)w->size, sizeof(*box)) : NULL;
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++) {
        struct device_row mine = rows[i];
        mine.endpoint = measured ? w->rank : -1;
        rc = w->gather(w, &mine, sizeof(mine), box, err);
        for (int r = 0; r < w->size && rc == 0 && box; r++)
            if (box[r].endpoint >= 0)
                MEM_PUSH(t->row, t->rows) = box[r];
    }
    free(box);
    return w->agree(w, rc, err);
}

int device_measure_all(struct device_table *t, const struct device_opts *o, struct world *w,
                       struct err *err)
{
    struct device_row *rows = mem_calloc((size_t)device_rows(o), sizeof(*rows));
    int turn = -1, turns = 0;
    struct device_owner mine;

    *t = (struct device_table){NULL, 0};
    device_begin(rows, o);
    int rc = learn(w, &mine, &turn, &turns, err);
    for (int i = 0; i < device_rows(o); i++)
        memcpy(rows[i].host, mine.host, sizeof(rows[i].host));
    for (int now = 0; now < turns && rc == 0; now++) {
        rc = now == turn ? device_measure(rows, o, DEVICE_HOST_LINK, err) : 0;
        rc = w->agree(w, rc, err);
    }
    if (rc == 0) {
        rc = turn >= 0 ? device_measure(rows, o, DEVICE_INSIDE, err) : 0;
        rc = w->agree(w, rc, err);
    }
    if (rc == 0)
        rc = collect(t, rows, device_rows(o), turn >= 0, w, err);
    free(rows);
    return rc;
}
