/* SPDX-License-Identifier: BSD-3-Clause */
/* api_group.c - librailgauge: collectives, and groups resolved once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/api_impl.h"

/* Exceptions that may concern members of a group, each once, ascending. */
enum { NEARBY_MAX = 64 };
struct nearby {
    int at[NEARBY_MAX], count;
};

/* false: they are more than it holds. */
static bool add_near(struct nearby *near, const struct lists *l, int item)
{
    for (int k = item < 0 ? 0 : l->start[item]; item >= 0 && k < l->start[item + 1]; k++) {
        int i = near->count;
        while (i > 0 && near->at[i - 1] > l->at[k])
            i--;
        if (i > 0 && near->at[i - 1] == l->at[k])
            continue;
        if (near->count == NEARBY_MAX)
            return false;
        memmove(near->at + i + 1, near->at + i, (size_t)(near->count++ - i) * sizeof(int));
        near->at[i] = l->at[k];
    }
    return true;
}

static void resolve(struct collective_quote *q, const struct railgauge *r, enum op op,
                    const int *ids, int n)
{
    struct nearby near = {.count = 0};
    struct ways ways;
    bool all = false;

    for (int i = 0; i < n && !all; i++)
        if (r->key[ids[i]] & KEY_ODD)
            all = !add_near(&near, &r->by_endpoint, ids[i]) ||
                  !add_near(&near, &r->by_rack, topo_at(&r->m.topo, ids[i], LEVEL_RACK));
    ways_of_some(&ways, &r->m, ids, n, op, all ? NULL : near.at,
                 all ? r->m.exceptions : near.count);
    collective_resolve(q, &r->m, op, &ways, false);
}

static int check_group(const struct railgauge *r, const char *op, const int *ids, int n,
                       struct err *err)
{
    int which = op ? op_find(op) : -1;

    if (which < 0 || op_is_pair((enum op)which))
        return err_usage(err, "%s is no collective", op ? op : "nothing");
    if (n < 2)
        return err_usage(err, "a group of %d: it takes two endpoints", n);
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= r->m.topo.endpoints)
            return err_usage(err, "endpoint %d of %d", ids[i], r->m.topo.endpoints);
    return which;
}

double railgauge_collective(const struct railgauge *r, const char *op, const int *ids, int n,
                            size_t bytes)
{
    struct collective_quote q;
    struct err err;
    int which = check_group(r, op, ids, n, &err);

    if (which < 0)
        return NAN;
    resolve(&q, r, (enum op)which, ids, n);
    return collective_time(&q, &r->m, (double)bytes);
}

struct railgauge_group {
    const struct matrix *m;
    struct collective_quote quote;
};

struct group_opening {
    const struct railgauge *r;
    const char *op;
    const int *ids;
    int n;
    struct railgauge_group *group;
    struct err *err;
};

static int open_group(void *opening)
{
    struct group_opening *o = opening;
    int which = check_group(o->r, o->op, o->ids, o->n, o->err);

    if (which < 0)
        return -1;
    o->group = mem_calloc(1, sizeof(*o->group));
    o->group->m = &o->r->m;
    resolve(&o->group->quote, o->r, (enum op)which, o->ids, o->n);
    return 0;
}

int railgauge_group_open(struct railgauge_group **out, const struct railgauge *r, const char *op,
                         const int *ids, int n, char text[256])
{
    struct err err = {0, ""};
    struct group_opening o = {r, op, ids, n, NULL, &err};
    int rc = guarded(open_group, &o, &err, text);

    *out = o.group;
    return rc;
}

double railgauge_group_time(const struct railgauge_group *g, size_t bytes)
{
    return collective_time(&g->quote, g->m, (double)bytes);
}

void railgauge_group_close(struct railgauge_group *g)
{
    free(g);
}
