/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "measure/device/device.h"
#include "measure/device/gpu_binding.h"

/* first[r]: true if rank r is the first that uses its GPU. */
static bool *first_users(const struct gpu_binding *all, int n)
{
    bool *first = mem_calloc((size_t)n, sizeof(*first));

    for (int r = 0; r < n; r++) {
        first[r] = true;
        for (int k = 0; k < r && first[r]; k++)
            first[r] = !gpu_binding_same(&all[k], &all[r]);
    }
    return first;
}

/* Position of this rank's GPU among those of its host (-1: another rank measures its GPU); turns:
 * largest number of GPUs on a host. */
static int turn_of(const struct gpu_binding *all, int n, int rank, int *turns)
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

/* Collect row by row, so that no message is large.  Rows of ranks that measured nothing are
 * ignored. */
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
    struct gpu_binding *all;
    int turn = -1, turns = 0;

    *t = (struct device_table){NULL, 0};
    device_begin(rows, o);
    int rc = gpu_binding_trade(w, &all, err);
    if (rc == 0)
        turn = turn_of(all, w->size, w->rank, &turns);
    for (int i = 0; rc == 0 && i < device_rows(o); i++)
        memcpy(rows[i].host, all[w->rank].host, sizeof(rows[i].host));
    free(all);
    rc = w->agree(w, rc, err);
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
