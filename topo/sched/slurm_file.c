/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_file.c - the topologies of a file of Slurm, and what must hold across its lines. */
#include "topo/sched/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"

const char *const slurm_kind_name[SLURM_KINDS] = {"tree", "block", "ring", "torus3d", "flat"};
static const char *const unit_word[SLURM_KINDS] = {"switch", "block", "ring", "torus", ""};

struct slurm_topology *slurm_add(struct slurm_file *f, const char *name, enum slurm_kind kind,
                                 int line)
{
    MEM_PUSH(f->topology, f->topologies) =
        (struct slurm_topology){.name = mem_strdup(name), .kind = kind, .line = line};
    return &f->topology[f->topologies - 1];
}

struct slurm_unit *slurm_add_unit(struct slurm_topology *t, const char *name, int line)
{
    MEM_PUSH(t->unit, t->units) = (struct slurm_unit){.name = mem_strdup(name), .line = line};
    return &t->unit[t->units - 1];
}

void slurm_file_free(struct slurm_file *f)
{
    for (int i = 0; i < f->topologies; i++) {
        struct slurm_topology *t = &f->topology[i];
        for (int u = 0; u < t->units; u++) {
            hostlist_free(t->unit[u].node, t->unit[u].nodes);
            hostlist_free(t->unit[u].child, t->unit[u].children);
            free(t->unit[u].name);
        }
        free(t->unit);
        free(t->size);
        free(t->name);
    }
    free(f->topology);
    free(f->path);
    *f = (struct slurm_file){.path = NULL};
}

int slurm_names(struct slurm_file *f, char ***name, int *count, const char *list, const char *where,
                struct err *err)
{
    if (f->names >= SLURM_NAMES)
        return err_data(err, "%s: more than %d names in one file", where, SLURM_NAMES);
    if (hostlist_expand_max(name, count, list, SLURM_NAMES - f->names, err) < 0)
        return err_wrap(err, "%s", where);
    f->names += *count;
    return 0;
}

int slurm_sizes_check(const int *size, int sizes, const char *where, struct err *err)
{
    for (int i = 0; i < sizes; i++) {
        int ratio = size[i] > 0 && size[0] > 0 ? size[i] / size[0] : 0;
        if (size[i] <= 0)
            return err_data(err, "%s: block size %d is not positive", where, size[i]);
        if (size[i] % size[0] || (ratio & (ratio - 1)))
            return err_data(err, "%s: block size %d is not %d times a power of two", where, size[i],
                            size[0]);
        if (ratio > 1 << (SLURM_LEVELS - 1))
            return err_data(err, "%s: block size %d is more than 2^%d times the base size %d",
                            where, size[i], SLURM_LEVELS - 1, size[0]);
    }
    return 0;
}

void slurm_heights_make(struct slurm_heights *h, const struct slurm_topology *t)
{
    size_t room = (size_t)t->units + 1;
    int *below = mem_calloc(room, sizeof(int)), *ready = mem_calloc(room, sizeof(int)), n = 0;
    struct names names = {0};

    *h = (struct slurm_heights){t, mem_calloc(room, sizeof(*h->up)), mem_calloc(room, sizeof(int)),
                                mem_calloc(room, sizeof(int)), 0};
    for (int u = 0; u < t->units; u++)
        names_add(&names, t->unit[u].name);
    for (int u = 0; u < t->units; u++) {
        below[u] = t->unit[u].children;
        h->of[u] = below[u] ? -1 : 0;
        for (int k = 0; k < t->unit[u].children; k++) {
            int child = names_add(&names, t->unit[u].child[k]);
            MEM_PUSH(h->up[child], h->ups[child]) = u;
        }
        if (!below[u])
            ready[n++] = u;
    }
    for (int i = 0; i < n; i++) /* the last child to come is the highest one */
        for (int k = 0; k < h->ups[ready[i]]; k++) {
            int u = h->up[ready[i]][k];
            if (--below[u] == 0) {
                h->of[u] = h->top = h->of[ready[i]] + 1;
                ready[n++] = u;
            }
        }
    names_free(&names);
    free(ready);
    free(below);
}

void slurm_heights_free(struct slurm_heights *h)
{
    for (int u = 0; u < h->t->units; u++)
        free(h->up[u]);
    free(h->up);
    free(h->ups);
    free(h->of);
}

/* --- checks across the lines --- */

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
                       struct names *names, struct err *err)
{
    char where[320];

    for (int u = 0; u < t->units; u++) {
        const struct slurm_unit *s = &t->unit[u];
        if (names_add(names, s->name) < u)
            return err_data(err, "%s: %s \"%.80s\" is there twice", at(where, f, s->line),
                            unit_word[t->kind], s->name);
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
    struct names seen = {0};
    char where[320];
    int rc = 0, *in = NULL, count = 0;

    for (int u = 0; u < t->units && rc == 0; u++)
        for (int k = 0; k < t->unit[u].nodes && rc == 0; k++) {
            const char *node = t->unit[u].node[k];
            int id = names_add(&seen, node);
            if (id == count)
                MEM_PUSH(in, count) = u;
            else if (t->kind != SLURM_TREE || in[id] == u)
                rc = err_data(err, "%s: node \"%.80s\" is in %s \"%.80s\" already",
                              at(where, f, t->unit[u].line), node, unit_word[t->kind],
                              t->unit[in[id]].name);
        }
    free(in);
    names_free(&seen);
    return rc;
}

/* What is left when those whose children are all placed are taken away, goes in circles. */
static int check_circles(const struct slurm_file *f, const struct slurm_topology *t,
                         struct err *err)
{
    struct slurm_heights h;
    char where[320];
    int rc = 0;

    slurm_heights_make(&h, t);
    for (int u = 0; u < t->units && rc == 0; u++)
        if (h.of[u] < 0)
            rc = err_data(err, "%s: switch \"%.80s\" is above itself: not a tree",
                          at(where, f, t->unit[u].line), t->unit[u].name);
    slurm_heights_free(&h);
    return rc;
}

static int check_tree(const struct slurm_file *f, const struct slurm_topology *t,
                      struct names *names, struct err *err)
{
    char where[320];

    for (int u = 0; u < t->units; u++) {
        const struct slurm_unit *s = &t->unit[u];
        if (!s->nodes && !s->children)
            return err_data(err, "%s: switch \"%.80s\" has neither nodes nor switches",
                            at(where, f, s->line), s->name);
        for (int k = 0; k < s->children; k++)
            if (names_add(names, s->child[k]) >= t->units)
                return err_data(err, "%s: switch \"%.80s\" is above \"%.80s\", which is no switch",
                                at(where, f, s->line), s->name, s->child[k]);
    }
    return check_circles(f, t, err);
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
    struct names names = {0}; /* of units */
    char where[320];
    int rc;

    if (t->kind == SLURM_FLAT)
        return 0;
    if (!t->units)
        return err_data(err, "%s: no %s in it", at(where, f, t->line), unit_word[t->kind]);
    rc = check_names(f, t, &names, err);
    if (rc == 0 && t->kind == SLURM_TREE)
        rc = check_tree(f, t, &names, err);
    if (rc == 0 && t->kind == SLURM_RING)
        rc = check_rings(f, t, err);
    if (rc == 0)
        rc = check_nodes(f, t, err);
    names_free(&names);
    return rc;
}

int slurm_check(const struct slurm_file *f, struct err *err)
{
    struct names names = {0};
    char where[320];
    int rc = 0;

    if (!f->topologies)
        return err_data(err, "%s: no block and no switch in it", f->path);
    for (int i = 0; i < f->topologies && rc == 0; i++) {
        if (names_add(&names, f->topology[i].name) < i)
            rc = err_data(err, "%s: topology \"%.80s\" is there twice",
                          at(where, f, f->topology[i].line), f->topology[i].name);
        else
            rc = check_topology(f, &f->topology[i], err);
    }
    names_free(&names);
    return rc;
}
