/* SPDX-License-Identifier: BSD-3-Clause */
/* uniform_tree.c - the machine as equal groups of equal groups, for programs that support no other
 * shape.
 *
 * The tiers give the groups: endpoints joined by the first tier are the innermost dimension 0;
 * groups of these joined by the next tier are dimension 1, and so on.  Each group is represented by
 * its first node.  Values between groups are therefore taken between members at the same position:
 * on the same rail, not across rails. */
#include "export/export_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const plural[LEVEL_COUNT] = {"hosts", "NVLink domains", "leaves",
                                                "racks", "rails",          "spines"};

struct tree_work {
    const struct matrix *m;
    const struct export_nodes *nodes;
    struct uniform_tree *tree;
    unsigned same; /* levels compared by the current tier */
    int *of;       /* current group of each node, in order of appearance */
    int *first;    /* first node of each group */
    int groups;
};

static const int *place(const struct tree_work *w, int node)
{
    return w->m->topo.endpoint[w->nodes->id[node]].place.at;
}

/* First of the levels that the tier compares; -1: none. */
static int level_of(unsigned same)
{
    for (int l = 0; l < LEVEL_COUNT; l++)
        if (same >> l & 1)
            return l;
    return -1;
}

/* Compared level that is not known for this node; -1: all are known. */
static int unknown(const struct tree_work *w, int node)
{
    for (int l = 0; l < LEVEL_COUNT; l++)
        if ((w->same >> l & 1) && place(w, node)[l] < 0)
            return l;
    return -1;
}

/* Order groups by the compared coordinates, then by index. */
static int by_places(const void *a, const void *b, void *arg)
{
    const struct tree_work *w = arg;
    int i = *(const int *)a, k = *(const int *)b;

    for (int l = 0; l < LEVEL_COUNT; l++) {
        int x = place(w, w->first[i])[l], y = place(w, w->first[k])[l];
        if ((w->same >> l & 1) && x != y)
            return x < y ? -1 : 1;
    }
    return i < k ? -1 : i > k;
}

static bool joined(const struct tree_work *w, int a, int b)
{
    for (int l = 0; l < LEVEL_COUNT; l++)
        if ((w->same >> l & 1) && place(w, w->first[a])[l] != place(w, w->first[b])[l])
            return false;
    return unknown(w, w->first[a]) < 0 && unknown(w, w->first[b]) < 0;
}

/* into[g]: lowest group that g is joined with.  Returns the number of groups that remain. */
static int join(const struct tree_work *w, int *into)
{
    int *sorted = mem_calloc((size_t)w->groups, sizeof(*sorted)), left = w->groups;

    for (int g = 0; g < w->groups; g++)
        sorted[g] = into[g] = g;
    qsort_r(sorted, (size_t)w->groups, sizeof(*sorted), by_places, (void *)w);
    for (int i = 1; i < w->groups; i++)
        if (joined(w, sorted[i - 1], sorted[i])) {
            into[sorted[i]] = into[sorted[i - 1]];
            left--;
        }
    free(sorted);
    return left;
}

static const char *name_of(const struct tree_work *w, int node)
{
    int level = level_of(w->same);

    return level < 0 || place(w, node)[level] < 0
               ? w->nodes->name[node]
               : w->m->topo.group[level].name[place(w, node)[level]];
}

static int uneven(const struct tree_work *w, int node, int holds, int node0, int holds0,
                  struct err *err)
{
    const struct uniform_tree *n = w->tree;
    int level = level_of(w->same), lacks = -1, who = 0;
    char why[160] = "";

    for (int g = 0; g < w->groups && lacks < 0; g++)
        lacks = unknown(w, who = w->first[g]);
    if (lacks >= 0)
        snprintf(why, sizeof(why), "; the %s of %.80s is not known", level_name[lacks],
                 w->nodes->name[who]);
    int inner = n->dims ? n->dim[n->dims - 1].level : -1;
    const char *one = n->dims == 0 ? "node" : inner < 0 ? "group" : level_name[inner];
    const char *what = n->dims == 0 ? "nodes" : inner < 0 ? "groups" : plural[inner];
    return err_data(err, "the machine is uneven: %s %s holds %d %s where %s holds %d%s",
                    level < 0 || place(w, node)[level] < 0 ? "the group of" : level_name[level],
                    name_of(w, node), holds, holds == 1 ? one : what, name_of(w, node0), holds0,
                    why);
}

/* Check that every joined group holds the same number of groups. */
static int check_even(const struct tree_work *w, const int *into, struct err *err)
{
    int *holds = mem_calloc((size_t)w->groups, sizeof(*holds)), rc = 0;

    for (int g = 0; g < w->groups; g++)
        holds[into[g]]++;
    for (int g = 1; g < w->groups && rc == 0; g++)
        if (into[g] == g && holds[g] != holds[0])
            rc = uneven(w, w->first[g], holds[g], w->first[0], holds[0], err);
    free(holds);
    return rc;
}

/* Replace the groups by the joined ones; number[] is in order of appearance. */
static void regroup(struct tree_work *w, const int *into)
{
    int *number = mem_calloc((size_t)w->groups, sizeof(*number)), groups = 0;

    for (int g = 0; g < w->groups; g++)
        if (into[g] == g) {
            number[g] = groups;
            w->first[groups++] = w->first[g];
        }
    for (int i = 0; i < w->nodes->count; i++)
        w->of[i] = number[into[w->of[i]]];
    w->groups = groups;
    free(number);
}

/* Add a dimension of groups that are equal in `same`, if there are any. */
static int add_dim(struct tree_work *w, unsigned same, int tier, struct err *err)
{
    int *into = mem_calloc((size_t)w->groups, sizeof(*into)), before = w->groups, rc = 0, left;
    struct uniform_tree *n = w->tree;

    w->same = same;
    left = join(w, into);
    if (left < before)
        rc = check_even(w, into, err);
    if (left < before && rc == 0) {
        size_t size = (size_t)w->nodes->count * sizeof(int);
        regroup(w, into);
        n->dim[n->dims] =
            (struct uniform_dim){before / left, level_of(same), tier, mem_calloc(1, size)};
        memcpy(n->dim[n->dims++].group, w->of, size);
    }
    free(into);
    return rc;
}

/* Add the hosts, and the tier inside them. */
static int add_hosts(struct tree_work *w, struct err *err)
{
    const struct topo *t = &w->m->topo;

    for (int i = 1; i < w->nodes->count; i++)
        if (place(w, i)[LEVEL_HOST] == place(w, i - 1)[LEVEL_HOST])
            return add_dim(w, 1u << LEVEL_HOST, topo_tier(t, w->nodes->id[i - 1], w->nodes->id[i]),
                           err);
    return 0;
}

static int by_group(const void *a, const void *b, void *arg)
{
    const struct uniform_tree *n = arg;
    int i = *(const int *)a, k = *(const int *)b;

    for (int d = n->dims - 1; d >= 0; d--)
        if (n->dim[d].group[i] != n->dim[d].group[k])
            return n->dim[d].group[i] < n->dim[d].group[k] ? -1 : 1;
    return i < k ? -1 : i > k;
}

int uniform_tree_make(struct uniform_tree *n, const struct export_run *e, const char *format,
                      bool hosts, struct err *err)
{
    const struct export_limit limit = {format, 2, 1 << 24, 0, ':'};
    const struct matrix *m = e->m;
    struct tree_work w = {.m = m, .nodes = &n->nodes, .tree = n};

    memset(n, 0, sizeof(*n));
    int rc = export_nodes_choose(&n->nodes, e, &limit, err);
    if (rc < 0)
        return -1;
    size_t count = (size_t)n->nodes.count;
    w.groups = n->nodes.count;
    n->order = mem_calloc(count, sizeof(int));
    w.of = mem_calloc(count, sizeof(int));
    w.first = mem_calloc(count, sizeof(int));
    for (int i = 0; i < n->nodes.count; i++)
        w.of[i] = w.first[i] = n->order[i] = i;
    if (hosts)
        rc = add_hosts(&w, err);
    for (int t = 0; t < m->tiers && rc == 0; t++)
        rc = add_dim(&w, m->tier[t].rule.same, t, err);
    free(w.of);
    free(w.first);
    if (rc == 0)
        qsort_r(n->order, count, sizeof(int), by_group, n);
    return rc;
}

void uniform_tree_free(struct uniform_tree *n)
{
    for (int d = 0; d < n->dims; d++)
        free(n->dim[d].group);
    free(n->order);
    export_nodes_free(&n->nodes);
    memset(n, 0, sizeof(*n));
}
