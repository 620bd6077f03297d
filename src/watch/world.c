/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "watch/world.h"

#include "base/mem.h"

static int solo_agree(struct world *w, int rc, struct err *err)
{
    (void)w, (void)err;
    return rc;
}

static int solo_share(struct world *w, void **data, size_t *len, struct err *err)
{
    (void)w, (void)data, (void)len, (void)err;
    return 0;
}

static int solo_gather(struct world *w, const void *mine, size_t len, void *out, struct err *err)
{
    (void)w, (void)err;
    if (out)
        memmove(out, mine, len);
    return 0;
}

static int solo_report(struct world *w, const void *mine, size_t len, world_hear *hear, void *ctx,
                       struct err *err)
{
    (void)w, (void)err;
    if (len)
        hear(ctx, 0, mine, len);
    return 0;
}

static int solo_tell(struct world *w, void *value, size_t bytes, struct err *err)
{
    (void)w, (void)value, (void)bytes, (void)err;
    return 0;
}

static int solo_ready(struct world *w, struct err *err)
{
    (void)w, (void)err;
    return 0;
}

static bool solo_all_ready(struct world *w)
{
    (void)w;
    return true;
}

static int solo_enter(struct world *w, const int *members, int n, int tag, void **comm,
                      struct err *err)
{
    (void)members, (void)n, (void)tag, (void)err;
    *comm = w->ctx;
    return 0;
}

static void solo_leave(struct world *w, void **comm)
{
    (void)w;
    *comm = NULL;
}

static int solo_maximum(void *comm, double *v, int n, struct err *err)
{
    (void)comm, (void)v, (void)n, (void)err;
    return 0;
}

static int solo_lead(void *comm, int *value, struct err *err)
{
    (void)comm, (void)value, (void)err;
    return 0;
}

static double solo_clock(void *comm)
{
    (void)comm;
    return NAN;
}

struct world world_solo = {
    .rank = 0,
    .size = 1,
    .solo = true,
    .agree = solo_agree,
    .share = solo_share,
    .gather = solo_gather,
    .report = solo_report,
    .tell = solo_tell,
    .ready = solo_ready,
    .all_ready = solo_all_ready,
    .wait_ready = solo_ready,
    .enter = solo_enter,
    .leave = solo_leave,
    .maximum = solo_maximum,
    .lead = solo_lead,
    .clock = solo_clock,
};

int world_trade(struct world *w, const void *mine, size_t len, void **all, struct err *err)
{
    size_t bytes = len * (size_t)w->size;
    void *box = *all = mem_calloc((size_t)w->size, len);
    int rc = w->gather(w, mine, len, box, err);

    if (rc == 0)
        rc = w->share(w, all, &bytes, err);
    if (*all != box)
        free(box);
    return rc;
}

enum { PIECE = 1 << 16 };
#define PART_MAX ((size_t)256 << 20)

/* Collect the lengths of all ranks on rank 0, and their maximum on every rank. */
static int share_lengths(struct world *w, size_t mine, size_t *len, size_t *most, struct err *err)
{
    int rc = w->gather(w, &mine, sizeof(mine), len, err);

    *most = 0;
    for (int r = 0; w->rank == 0 && r < w->size; r++)
        *most = len[r] > *most ? len[r] : *most;
    return rc < 0 ? -1 : w->tell(w, most, sizeof(*most), err);
}

/* gather() needs records of equal size, so the data is sent piece by piece and the last piece is
 * padded. */
int world_collect(struct world *w, const void *mine, size_t bytes, char **part, size_t *len,
                  struct err *err)
{
    size_t own = bytes < PART_MAX ? bytes : PART_MAX, most = 0;
    int rc = share_lengths(w, own, len, &most, err);
    size_t size = most < PIECE ? most : PIECE;
    char *piece = mem_calloc(size + 1, 1), *all = mem_calloc((size_t)w->size * size + 1, 1);

    for (int r = 0; rc == 0 && w->rank == 0 && r < w->size; r++)
        part[r] = mem_calloc(len[r] + 1, 1);
    for (size_t at = 0; rc == 0 && at < most; at += size) {
        if (own > at)
            memcpy(piece, (const char *)mine + at, own - at < size ? own - at : size);
        rc = w->gather(w, piece, size, all, err);
        for (int r = 0; rc == 0 && w->rank == 0 && r < w->size; r++)
            if (len[r] > at)
                memcpy(part[r] + at, all + (size_t)r * size,
                       len[r] - at < size ? len[r] - at : size);
    }
    free(all);
    free(piece);
    return rc;
}
