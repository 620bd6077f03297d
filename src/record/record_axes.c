/* SPDX-License-Identifier: BSD-3-Clause */
/* record_axes.c - find the communicators of a job that form an axis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/record_job.h"

/* Distance of neighbours if equal for all; else 0. */
static int stride_of(const struct record_job *j, const struct record_team *c)
{
    int stride = 0, before = -1;

    for (int r = 0; r < c->size; r++) {
        if (c->member[r] < 0)
            continue;
        int rank = j->process[c->member[r]].rank;
        if (before >= 0) {
            int there = j->process[c->member[before]].rank;
            int step = (rank - there) / (r - before);
            if (step <= 0 || step * (r - before) != rank - there || (stride && step != stride))
                return 0;
            stride = step;
        }
        before = r;
    }
    return stride;
}

static bool on_one_host(const struct record_job *j, const struct record_team *c)
{
    const char *host = NULL;

    for (int r = 0; r < c->size; r++) {
        if (c->member[r] < 0)
            continue;
        const char *here = j->process[c->member[r]].host;
        if (host && strcmp(host, here))
            return false;
        host = here;
    }
    return true;
}

static struct record_axis *axis_for(struct record_job *j, const struct record_team *c, bool **used)
{
    int stride = stride_of(j, c);
    bool inside = on_one_host(j, c);

    for (int i = 0; i < j->axes; i++) {
        struct record_axis *a = &j->axis[i];
        bool taken = a->size != c->size || a->stride != stride || a->inside != inside;
        for (int r = 0; r < c->size && !taken; r++)
            taken = c->member[r] >= 0 && used[i][c->member[r]];
        if (!taken)
            return a;
    }
    MEM_PUSH(j->axis, j->axes) =
        (struct record_axis){.size = c->size, .stride = stride, .inside = inside};
    return &j->axis[j->axes - 1];
}

void record_axes_make(struct record_job *j)
{
    bool **used = NULL; /* [axis][process]: process is in the axis */
    int known = 0;

    for (int i = 0; i < j->teams; i++) {
        struct record_team *c = &j->team[i];
        struct record_axis *a = axis_for(j, c, used);
        c->axis = (int)(a - j->axis);
        if (c->axis == known)
            MEM_PUSH(used, known) = mem_calloc((size_t)j->processes, sizeof(**used));
        MEM_PUSH(a->comm, a->comms) = i;
        for (int r = 0; r < c->size; r++)
            if (c->member[r] < 0)
                c->missing++;
            else
                used[c->axis][c->member[r]] = true;
    }
    for (int i = 0; i < known; i++)
        free(used[i]);
    free(used);
}

char *record_axis_text(char buf[64], const struct record_axis *a)
{
    char apart[24] = "";

    if (a->stride)
        snprintf(apart, sizeof(apart), ", %d apart", a->stride);
    snprintf(buf, 64, "%d ranks%s, %s", a->size, apart, a->inside ? "on one host" : "across hosts");
    return buf;
}
