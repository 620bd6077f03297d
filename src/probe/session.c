/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/session.h"

#include <stdlib.h>
#include <string.h>

void session_close(struct session *s)
{
    if (s->ctx)
        s->transport->close(s->ctx);
    s->ctx = NULL;
    if (s->group.comm)
        s->world->leave(s->world, &s->group.comm);
    memset(&s->group, 0, sizeof(s->group));
}

void session_free(struct session *s)
{
    session_close(s);
    free(s->sec);
    free(s->slow);
    s->sec = s->slow = NULL;
    s->room = 0;
}

bool session_same(const struct session *s, const struct plan_group *pg)
{
    return s->ctx && s->group.size == pg->size &&
           !memcmp(s->group.members, pg->members, (size_t)pg->size * sizeof(int));
}

int session_open(struct session *s, const struct round *r, int g, int epoch, size_t max_bytes,
                 struct err *err)
{
    const struct plan_group *pg = &r->group[g];
    bool same = !s->world->solo && session_same(s, pg) && s->max_bytes >= max_bytes;
    struct group group = {
        .members = pg->members, .size = pg->size, .round = r, .index = g, .epoch = epoch};

    if (same)
        group.comm = s->group.comm;
    else
        session_close(s);
    for (int i = 0; i < pg->size && !s->world->solo; i++)
        if (pg->members[i] == s->world->rank)
            group.self = i;
    s->group = group;
    if (same)
        return 0;
    s->max_bytes = max_bytes;
    if (s->world->enter(s->world, pg->members, pg->size, r->id, &s->group.comm, err) < 0)
        return -1;
    double failed = s->transport->open(&s->ctx, &s->group, max_bytes, err) < 0;
    if (s->world->maximum(s->group.comm, &failed, 1, err) < 0)
        return -1;
    return failed > 0 ? -1 : 0;
}
