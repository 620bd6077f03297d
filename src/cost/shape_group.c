/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/shape_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int domain_of(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : t->group[LEVEL_DOMAIN].count + at[LEVEL_HOST];
}

/* The first per_domain members of every `stride`-th domain that has as many. */
static int *pick(const struct topo *t, const struct shape *s, int stride)
{
    int domains = t->group[LEVEL_DOMAIN].count + t->hosts, taken = 0, eligible = 0;
    int *members = mem_calloc((size_t)domains, sizeof(int)),
        *use = mem_calloc((size_t)domains, sizeof(int));
    int *ids = mem_calloc((size_t)s->ranks, sizeof(int));

    for (int id = 0; id < t->endpoints; id++)
        members[domain_of(t, id)]++;
    for (int d = 0; d < domains; d++)
        if (members[d] >= s->per_domain)
            use[d] = eligible++ % stride == 0;
    memset(members, 0, (size_t)domains * sizeof(int));
    for (int id = 0; id < t->endpoints && taken < s->ranks; id++) {
        int d = domain_of(t, id);
        if (use[d] && members[d]++ < s->per_domain)
            ids[taken++] = id;
    }
    free(members);
    free(use);
    if (taken == s->ranks)
        return ids;
    free(ids);
    return NULL;
}

int *shape_group(const struct topo *t, const struct shape *s)
{
    struct shape got;

    if (s->ranks < 2 || s->domains < 1 || s->ranks != s->domains * s->per_domain ||
        s->ranks > t->endpoints)
        return NULL;
    /* Neighbouring domains, then ever wider apart: other racks. */
    for (int stride = 1; stride <= t->hosts; stride *= 2) {
        int *ids = pick(t, s, stride);
        if (!ids)
            continue;
        shape_of(&got, t, ids, s->ranks);
        if (shape_equal(&got, s))
            return ids;
        free(ids);
    }
    return NULL;
}
