/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - checks across the lines of a Slurm topology file, and the groups that it declares. */
#include "topo/sources/sched/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"

enum { SPINE_NAME = 160 };

static const char *const unit_word[SLURM_KINDS] = {"switch", "block", "ring", "torus", ""};

/* --- heights of switches in a tree: a leaf is 0, others are one above their highest child --- */

struct heights {
    const struct slurm_topology *t;
    int **up, *ups; /* switches right above each */
    int *of, top;   /* height, -1: in a circle or above one */
};

/* Requires that each child is the name of a unit. */
static void heights_make(struct heights *h, const struct slurm_topology *t)
{
    size_t room = (size_t)t->units + 1;
    int *below = mem_calloc(room, sizeof(int)), *ready = mem_calloc(room, sizeof(int)), n = 0;
    struct names names = {0};

    *h = (struct heights){t, mem_calloc(room, sizeof(*h->up)), mem_calloc(room, sizeof(int)),
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
    for (int i = 0; i < n; i++) /* the child handled last is the highest */
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

static void heights_free(struct heights *h)
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

/* Check that each unit name is unique; names are added to `names` in the order of units. */
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

/* Check that a node is in one block or ring only.  Slurm merely warns of a node below two leaf
 * switches; such a node is left to slurm_declare(), which uses the first. */
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

/* Find circles: units that remain after repeated removal of those with all children placed. */
static int check_circles(const struct slurm_file *f, const struct slurm_topology *t,
                         struct err *err)
{
    struct heights h;
    char where[320];
    int rc = 0;

    heights_make(&h, t);
    for (int u = 0; u < t->units && rc == 0; u++)
        if (h.of[u] < 0)
            rc = err_data(err, "%s: switch \"%.80s\" is above itself: not a tree",
                          at(where, f, t->unit[u].line), t->unit[u].name);
    heights_free(&h);
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

/* Apply Slurm's rule: positive, each the first times a power of two, up to 2^15. */
static int check_sizes(const struct slurm_file *f, const struct slurm_topology *t, struct err *err)
{
    const int *size = t->size;
    char where[320];

    at(where, f, t->sizes_line);
    for (int i = 0; i < t->sizes; i++) {
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

static int check_topology(const struct slurm_file *f, const struct slurm_topology *t,
                          struct err *err)
{
    struct names names = {0}; /* unit names */
    char where[320];
    int rc;

    if (t->kind == SLURM_FLAT)
        return 0;
    if (check_sizes(f, t, err) < 0)
        return -1;
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

static int check_file(const struct slurm_file *f, struct err *err)
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

int slurm_parse(struct slurm_file *f, const char *text, size_t len, const char *path,
                struct err *err)
{
    return slurm_file_read(f, text, len, path, err) < 0 ? -1 : check_file(f, err);
}

/* --- declared groups --- */

/* "spine[1-2]"; "spine1..spine40 (40)" if that is too long. */
static char *spine_name(char *const *up, int ups)
{
    char *name = hostlist_fold(up, ups);

    if (strlen(name) > SPINE_NAME) {
        free(name);
        name = mem_printf("%.60s..%.60s (%d)", up[0], up[ups - 1], ups);
    }
    return name;
}

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* Collect all switches above a leaf in list[], each once; seen[] marks those already in it. */
static int all_above(const struct heights *h, int leaf, int *list, int *seen)
{
    int n = 0;

    for (int i = -1; i < n; i++) {
        int u = i < 0 ? leaf : list[i];
        for (int k = 0; k < h->ups[u]; k++)
            if (seen[h->up[u][k]] != leaf + 1) {
                seen[h->up[u][k]] = leaf + 1;
                list[n++] = h->up[u][k];
            }
    }
    if (n)
        qsort(list, (size_t)n, sizeof(*list), by_number);
    return n;
}

/* group[height]: name of the switches above a leaf; if there are none, as at the height below. */
static void groups_of(const struct heights *h, int leaf, int *list, int *seen, char **group)
{
    int n = all_above(h, leaf, list, seen);
    char **name = mem_calloc((size_t)n + 1, sizeof(*name));

    group[0] = mem_strdup(h->t->unit[leaf].name);
    for (int height = 1; height <= h->top; height++) {
        int names = 0;
        for (int i = 0; i < n; i++)
            if (h->of[list[i]] == height)
                name[names++] = h->t->unit[list[i]].name;
        group[height] = names ? spine_name(name, names) : mem_strdup(group[height - 1]);
    }
    free(name);
}

/* Slurm warns of nodes in several leaf switches ("Multiple leaf switches contain nodes") and goes on;
 * which leaf a job then gets depends on the order of the file. */
static void say_doubles(const struct slurm_topology *t, const char *origin, struct topo *to)
{
    struct names seen = {0};
    char **twice = NULL, what[320];
    int nodes = 0;

    for (int u = 0, count = 0; u < t->units; u++)
        for (int k = 0; !t->unit[u].children && k < t->unit[u].nodes; k++) {
            int id = names_add(&seen, t->unit[u].node[k]);
            if (id < count)
                MEM_PUSH(twice, nodes) = t->unit[u].node[k];
            count = seen.count;
        }
    if (nodes) {
        char *list = hostlist_fold(twice, nodes);
        snprintf(what, sizeof(what), "leaf of %.200s", list);
        topo_unseen(
            to, what,
            "in several leaf switches of %.100s, of which the first is taken; Slurm warns of "
            "it and goes on",
            origin);
        free(list);
    }
    free(twice);
    names_free(&seen);
}

/* Slurm warns "no switch can reach all nodes through its descendants", and starts no job on nodes
 * that no switch joins (src/plugins/topology/tree). */
static void say_apart(const struct heights *h, const char *origin, struct topo *to, int *list,
                      int *seen)
{
    int *below = mem_calloc((size_t)h->t->units + 1, sizeof(int)), leaves = 0, most = 0, top = 0;
    char what[320];

    for (int u = 0; u < h->t->units; u++) {
        if (h->t->unit[u].children)
            continue;
        int n = all_above(h, u, list, seen);
        leaves++;
        below[u]++;
        for (int i = 0; i < n; i++)
            below[list[i]]++;
    }
    for (int u = 0; u < h->t->units; u++)
        if (below[u] > most)
            most = below[top = u];
    snprintf(what, sizeof(what), "tree of %.250s", origin);
    if (most < leaves)
        topo_unseen(
            to, what,
            "no switch reaches all nodes (%.80s reaches %d of %d leaves): Slurm starts no job "
            "across what no switch joins; a line SwitchName=... Switches=... above them does",
            h->t->unit[top].name, most, leaves);
    memset(seen, 0, (size_t)h->t->units * sizeof(*seen));
    free(below);
}

/* Declare leaves below the same switches as a spine, or wider by some tiers.  A last tier that
 * holds everything is left out. */
static void declare_spines(const struct slurm_topology *t, const char *origin, struct topo *to)
{
    int *list = mem_calloc((size_t)t->units + 1, sizeof(int));
    int *seen = mem_calloc((size_t)t->units + 1, sizeof(int));
    char **group = mem_calloc((size_t)t->units + 1, sizeof(*group));
    struct heights h;

    heights_make(&h, t);
    say_apart(&h, origin, to, list, seen);
    if (h.top > 1 + GROUP_ABOVE_MAX) {
        topo_unseen(to, origin, "%d tiers of switches: those above the %dth are not kept",
                    h.top + 1, 2 + GROUP_ABOVE_MAX);
        h.top = 1 + GROUP_ABOVE_MAX;
    }
    for (int u = 0; u < t->units; u++) {
        if (t->unit[u].children)
            continue;
        groups_of(&h, u, list, seen, group);
        for (int height = 0; height <= h.top; free(group[height++]))
            for (int k = 0; height && h.ups[u] && k < t->unit[u].nodes; k++)
                group_add_above(to, SOURCE_SLURM, height - 1, origin, group[height],
                                t->unit[u].node[k]);
    }
    groups_drop_whole(to, SOURCE_SLURM, origin);
    heights_free(&h);
    free(group);
    free(seen);
    free(list);
}

static void declare_units(const struct slurm_topology *t, const char *origin, struct topo *to)
{
    enum level level = t->kind == SLURM_BLOCK ? LEVEL_DOMAIN : LEVEL_LEAF;

    for (int u = 0; u < t->units; u++)
        if (t->kind == SLURM_BLOCK || !t->unit[u].children)
            group_add(to, SOURCE_SLURM, level, origin, t->unit[u].name, t->unit[u].node,
                      t->unit[u].nodes);
}

void slurm_declare(const struct slurm_file *f, struct topo *t)
{
    const char *slash = strrchr(f->path, '/'), *base = slash ? slash + 1 : f->path;

    /* Declare the cluster's default first: of several sets at a level the first is used. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < f->topologies; i++) {
            const struct slurm_topology *s = &f->topology[i];
            if (s->preferred == (pass == 1))
                continue;
            char *origin = mem_printf("%s%s%s", base, *s->name ? " " : "", s->name);
            if (s->kind == SLURM_BLOCK || s->kind == SLURM_TREE)
                declare_units(s, origin, t);
            if (s->kind == SLURM_TREE) {
                say_doubles(s, origin, t);
                declare_spines(s, origin, t);
            }
            if (s->kind == SLURM_RING || s->kind == SLURM_TORUS)
                topo_unseen(t, origin, "a %s groups no hosts: it is not read",
                            slurm_kind_name[s->kind]);
            free(origin);
        }
}

/* Refuse files with only rings, toruses or flat topologies: these group no hosts. */
static int check_groups(const struct slurm_file *f, struct err *err)
{
    for (int i = 0; i < f->topologies; i++)
        if (f->topology[i].kind == SLURM_TREE || f->topology[i].kind == SLURM_BLOCK)
            return 0;
    return err_data(err,
                    "%s:%d: topology/%s groups no hosts, and there is no tree and no block beside "
                    "it: a rack or leaf is to be told otherwise (--ibnet, --lldp, --labels)",
                    f->path, f->topology[0].line ? f->topology[0].line : 1,
                    slurm_kind_name[f->topology[0].kind]);
}

int slurm_read(struct topo *t, int host, const char *text, size_t len, const char *path,
               struct err *err)
{
    struct slurm_file f;

    (void)host;
    int rc = slurm_parse(&f, text, len, path, err);
    if (rc == 0)
        rc = check_groups(&f, err);
    if (rc == 0)
        slurm_declare(&f, t);
    slurm_file_free(&f);
    return rc;
}
