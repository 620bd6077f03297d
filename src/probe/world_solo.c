/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "probe/world.h"

static int solo_agree(struct world *w, int rc, struct err *err)
{
    (void)w;
    (void)err;
    return rc;
}

static int solo_share(struct world *w, void **data, size_t *len, struct err *err)
{
    (void)w;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int solo_gather(struct world *w, const void *mine, size_t len, void *out, struct err *err)
{
    (void)w;
    (void)err;
    if (out)
        memmove(out, mine, len);
    return 0;
}

static int solo_enter(struct world *w, const int *members, int n, int tag, void **comm,
                      struct err *err)
{
    (void)members;
    (void)n;
    (void)tag;
    (void)err;
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
    (void)comm;
    (void)v;
    (void)n;
    (void)err;
    return 0;
}

static int solo_lead(void *comm, int *value, struct err *err)
{
    (void)comm;
    (void)value;
    (void)err;
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
    .enter = solo_enter,
    .leave = solo_leave,
    .maximum = solo_maximum,
    .lead = solo_lead,
    .clock = solo_clock,
};
