/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_check.c - checks across the lines of a file: names twice, switches in circles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/sched/slurm.h"

const char *const slurm_unit_word[SLURM_KINDS] = {"switch", "block", "ring", "torus", ""};

/* "topology.conf:12", "topology.yaml:7"; in buf. */
static const char *at(char buf[320], const struct slurm_file *f, int line)
{
    if (line)
        snprintf(buf, 320, "%.300s:%d", f->path, line);
    else
        snprintf(buf, 320, "%.300s", f->path);
    return buf;
}

/* Every unit's name once; index of each in `names`. */
static int check_names(const struct slurm_file *f, const struct slurm_topology *t,
                       struct topo *names, struct err *err)
{
    char where[320];

    for (int u = 0; u < t->units; u++) {
        const struct slurm_unit *s = &t->unit[u];
        if (topo_add_group(names, LEVEL_LEAF, s->name) < u)
            return err_data(err, "%s: %s \"%.80s\" is there twice", at(where, f, s->line),
                            slurm_unit_word[t->kind], s->name);
        if (t->kind == SLURM_TREE && strlen(s->name) > SLURM_SWITCH_NAME)
            return err_data(err,
                            "%s: the switch's name \"%.80s\" has %zu characters, Slurm takes %d",
                            at(where, f, s->line), s->name, strlen(s->name), SLURM_SWITCH_NAME);
    }
    return 0;
}

/* A node is in one block or ring.  Below two leaf switches Slurm only warns of it: so do we, by
 * leaving it to claims, where the first counts. */
static int check_nodes(const struct slurm_file *f, const struct slurm_topology *t, struct err *err)
{
    struct topo seen; /* interns names */
    char where[320];
    int rc = 0, *in = NULL, count = 0;

    topo_init(&seen);
    for (int u = 0; u < t->units && rc == 0; u++)
        for (int k = 0; k < t->unit[u].nodes && rc == 0; k++) {
            const char *node = t->unit[u].node[k];
            int id = topo_add_group(&seen, LEVEL_LEAF, node);
            if (id == count)
                MEM_PUSH(in, count) = u;
            else if (t->kind != SLURM_TREE || in[id] == u)
                rc = err_data(err, "%s: node \"%.80s\" is in %s \"%.80s\" already",
                              at(where, f, t->unit[u].line), node, slurm_unit_word[t->kind],
                              t->unit[in[id]].name);
        }
    free(in);
    topo_free(&seen);
    return rc;
}

/* Take away switches whose children are all gone, from below: what stays goes in circles. */
static int check_circles(const struct slurm_file *f, const struct slurm_topology *t,
                         struct topo *names, struct err *err)
{
    int *below = mem_calloc((size_t)t->units + 1, sizeof(int));
    int *stack = mem_calloc((size_t)t->units + 1, sizeof(int)), top = 0, gone = 0, rc = 0;
    struct parents {
        int *up, ups;
    } *of = mem_calloc((size_t)t->units + 1, sizeof(*of));
    char where[320];

    for (int u = 0; u < t->units; u++) {
        below[u] = t->unit[u].children;
        for (int k = 0; k < t->unit[u].children; k++) {
            int child = topo_add_group(names, LEVEL_LEAF, t->unit[u].child[k]);
            MEM_PUSH(of[child].up, of[child].ups) = u;
        }
        if (!below[u])
            stack[top++] = u;
    }
    for (; top; gone++) {
        struct parents *p = &of[stack[--top]];
        for (int k = 0; k < p->ups; k++)
            if (--below[p->up[k]] == 0)
                stack[top++] = p->up[k];
    }
    for (int u = 0; u < t->units && gone < t->units && rc == 0; u++)
        if (below[u])
            rc = err_data(err, "%s: switch \"%.80s\" is above itself: not a tree",
                          at(where, f, t->unit[u].line), t->unit[u].name);
    for (int u = 0; u < t->units; u++)
        free(of[u].up);
    free(of);
    free(stack);
    free(below);
    return rc;
}

static int check_tree(const struct slurm_file *f, const struct slurm_topology *t,
                      struct topo *names, struct err *err)
{
    char where[320];

    for (int u = 0; u < t->units; u++) {
        const struct slurm_unit *s = &t->unit[u];
        if (!s->nodes && !s->children)
            return err_data(err, "%s: switch \"%.80s\" has neither nodes nor switches",
                            at(where, f, s->line), s->name);
        for (int k = 0; k < s->children; k++)
            if (topo_add_group(names, LEVEL_LEAF, s->child[k]) >= t->units)
                return err_data(err, "%s: switch \"%.80s\" is above \"%.80s\", which is no switch",
                                at(where, f, s->line), s->name, s->child[k]);
    }
    return check_circles(f, t, names, err);
}

static int check_rings(const struct slurm_file *f, const struct slurm_topology *t, struct err *err)
{
    char where[320];

    for (int u = 0; u < t->units; u++)
        if (t->unit[u].nodes > SLURM_RING_NODES)
            return err_data(err, "%s: ring \"%.80s\" has %d nodes, Slurm takes %d",
                            at(where, f, t->unit[u].line), t->unit[u].name, t->unit[u].nodes,
                            SLURM_RING_NODES);
    return 0;
}

static int check_topology(const struct slurm_file *f, const struct slurm_topology *t,
                          struct err *err)
{
    struct topo names; /* interns the units' names */
    char where[320];
    int rc;

    if (t->kind == SLURM_FLAT)
        return 0;
    if (!t->units)
        return err_data(err, "%s: no %s in it", at(where, f, t->line), slurm_unit_word[t->kind]);
    topo_init(&names);
    rc = check_names(f, t, &names, err);
    if (rc == 0 && t->kind == SLURM_TREE)
        rc = check_tree(f, t, &names, err);
    if (rc == 0 && t->kind == SLURM_RING)
        rc = check_rings(f, t, err);
    if (rc == 0)
        rc = check_nodes(f, t, err);
    topo_free(&names);
    return rc;
}

int slurm_check(const struct slurm_file *f, struct err *err)
{
    struct topo names;
    char where[320];
    int rc = 0;

    if (!f->topologies)
        return err_data(err, "%s: no block and no switch in it", f->path);
    topo_init(&names);
    for (int i = 0; i < f->topologies && rc == 0; i++) {
        if (topo_add_group(&names, LEVEL_LEAF, f->topology[i].name) < i)
            rc = err_data(err, "%s: topology \"%.80s\" is there twice",
                          at(where, f, f->topology[i].line), f->topology[i].name);
        else
            rc = check_topology(f, &f->topology[i], err);
    }
    topo_free(&names);
    return rc;
}
