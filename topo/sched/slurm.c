/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - a topology file of Slurm in either form, and claims from it. */
#include "topo/sched/slurm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/claim.h"

enum { FILE_MAX = 64 << 20, SPINE_NAME = 160 };

const char *const slurm_kind_name[SLURM_KINDS] = {"tree", "block", "ring", "torus3d", "flat"};

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

/* The first line that says something starts with a word and '=', or is an Include. */
static bool is_conf(const char *text, size_t len)
{
    const char *p = text, *end = text + len;

    while (p < end) {
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (p < end && *p != '#')
            break;
        while (p < end && *p != '\n')
            p++;
    }
    if ((size_t)(end - p) > 7 && !strncasecmp(p, "include", 7) && isblank((unsigned char)p[7]))
        return true;
    while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
        p++;
    while (p < end && isblank((unsigned char)*p))
        p++;
    return p == end || *p == '=';
}

int slurm_parse(struct slurm_file *f, const char *text, size_t len, const char *path,
                struct err *err)
{
    *f = (struct slurm_file){.path = mem_strdup(path)};
    if (is_conf(text, len) ? slurm_conf_parse(f, text, len, err) < 0
                           : slurm_yaml_parse(f, text, len, err) < 0)
        return -1;
    return slurm_check(f, err);
}

/* --- claims --- */

/* "spine[1-2]"; many or long ones: "spine1..spine40 (40)". */
static char *spine_name(char *const *up, int ups)
{
    char *name = hostlist_fold(up, ups);

    if (strlen(name) > SPINE_NAME) {
        free(name);
        name = mem_printf("%.60s..%.60s (%d)", up[0], up[ups - 1], ups);
    }
    return name;
}

/* Switches while their heights are found: leaves are 0, others one above their highest child. */
struct heights {
    const struct slurm_topology *t;
    int **up, *ups; /* those above each */
    int *of, top;
};

static void heights_make(struct heights *h, const struct slurm_topology *t)
{
    size_t room = (size_t)t->units + 1;
    int *below = mem_calloc(room, sizeof(int)), *ready = mem_calloc(room, sizeof(int)), n = 0;
    struct topo names;

    *h = (struct heights){t, mem_calloc(room, sizeof(*h->up)), mem_calloc(room, sizeof(int)),
                          mem_calloc(room, sizeof(int)), 0};
    topo_init(&names);
    for (int u = 0; u < t->units; u++)
        topo_add_group(&names, LEVEL_LEAF, t->unit[u].name);
    for (int u = 0; u < t->units; u++) {
        below[u] = t->unit[u].children;
        for (int k = 0; k < t->unit[u].children; k++) {
            int child = topo_add_group(&names, LEVEL_LEAF, t->unit[u].child[k]);
            MEM_PUSH(h->up[child], h->ups[child]) = u;
        }
        if (!below[u])
            ready[n++] = u;
    }
    for (int i = 0; i < n; i++) /* there are no circles: slurm_check() */
        for (int k = 0; k < h->ups[ready[i]]; k++) {
            int u = h->up[ready[i]][k];
            h->of[u] = h->of[ready[i]] >= h->of[u] ? h->of[ready[i]] + 1 : h->of[u];
            h->top = h->of[u] > h->top ? h->of[u] : h->top;
            if (--below[u] == 0)
                ready[n++] = u;
        }
    topo_free(&names);
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

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* All switches above a leaf into list[], each once; seen[] holds the mark of those that are. */
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

/* group[height]: what a leaf is below at each height, where nothing is that of the height below. */
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

/* What is below the same switches is a spine, or wider by so many tiers: all but a last tier that
 * holds everything. */
static void claim_spines(const struct slurm_topology *t, const char *origin, struct topo *to)
{
    int *list = mem_calloc((size_t)t->units + 1, sizeof(int));
    int *seen = mem_calloc((size_t)t->units + 1, sizeof(int));
    char **group = mem_calloc((size_t)t->units + 1, sizeof(*group));
    struct heights h;

    heights_make(&h, t);
    if (h.top > 1 + CLAIM_ABOVE) {
        topo_unseen(to, origin, "%d tiers of switches: those above the %dth are not kept",
                    h.top + 1, 2 + CLAIM_ABOVE);
        h.top = 1 + CLAIM_ABOVE;
    }
    for (int u = 0; u < t->units; u++) {
        if (t->unit[u].children)
            continue;
        groups_of(&h, u, list, seen, group);
        for (int height = 0; height <= h.top; free(group[height++]))
            for (int k = 0; height && h.ups[u] && k < t->unit[u].nodes; k++)
                if (height == 1)
                    claim_host(to, SOURCE_SLURM, LEVEL_SPINE, origin, group[height],
                               t->unit[u].node[k]);
                else
                    claim_above(to, SOURCE_SLURM, height - 1, origin, group[height],
                                t->unit[u].node[k]);
    }
    claims_drop_whole(to, SOURCE_SLURM, origin);
    heights_free(&h);
    free(group);
    free(seen);
    free(list);
}

static void claim_units(const struct slurm_topology *t, const char *origin, struct topo *to)
{
    enum level level = t->kind == SLURM_BLOCK ? LEVEL_DOMAIN : LEVEL_LEAF;

    for (int u = 0; u < t->units; u++)
        if (t->kind == SLURM_BLOCK || !t->unit[u].children)
            claim_add(to, SOURCE_SLURM, level, origin, t->unit[u].name, t->unit[u].node,
                      t->unit[u].nodes);
}

void slurm_claims(const struct slurm_file *f, struct topo *t)
{
    const char *slash = strrchr(f->path, '/'), *base = slash ? slash + 1 : f->path;

    /* The cluster's default first: of several sets at a level the first is taken. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < f->topologies; i++) {
            const struct slurm_topology *s = &f->topology[i];
            if (s->preferred == (pass == 1))
                continue;
            char *origin = mem_printf("%s%s%s", base, *s->name ? " " : "", s->name);
            if (s->kind == SLURM_BLOCK || s->kind == SLURM_TREE)
                claim_units(s, origin, t);
            if (s->kind == SLURM_TREE)
                claim_spines(s, origin, t);
            if (s->kind == SLURM_RING || s->kind == SLURM_TORUS)
                topo_unseen(t, origin, "a %s groups no hosts: it is not read",
                            slurm_kind_name[s->kind]);
            free(origin);
        }
}

/* A ring, a torus or a flat topology says of no hosts that they belong together. */
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

int slurm_read(struct topo *t, int host, const char *path, struct err *err)
{
    struct slurm_file f = {.path = NULL};
    char *text;
    size_t len;

    (void)host;
    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    int rc = slurm_parse(&f, text, len, path, err);
    if (rc == 0)
        rc = check_groups(&f, err);
    if (rc == 0)
        slurm_claims(&f, t);
    slurm_file_free(&f);
    free(text);
    return rc;
}
