/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - a topology file of Slurm in either form and claims from it; the address of a node. */
#include "topo/sched/slurm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"
#include "topo/groups.h"

enum { FILE_MAX = 64 << 20, SPINE_NAME = 160, ADDR_MAX = 4096, NAMES_MAX = 4096 };

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

static int by_number(const void *x, const void *y)
{
    const int *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* All switches above a leaf into list[], each once; seen[] holds the mark of those that are. */
static int all_above(const struct slurm_heights *h, int leaf, int *list, int *seen)
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
static void groups_of(const struct slurm_heights *h, int leaf, int *list, int *seen, char **group)
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
    struct slurm_heights h;

    slurm_heights_make(&h, t);
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
    slurm_heights_free(&h);
    free(group);
    free(seen);
    free(list);
}

static void claim_units(const struct slurm_topology *t, const char *origin, struct topo *to)
{
    enum level level = t->kind == SLURM_BLOCK ? LEVEL_DOMAIN : LEVEL_LEAF;

    for (int u = 0; u < t->units; u++)
        if (t->kind == SLURM_BLOCK || !t->unit[u].children)
            group_add(to, SOURCE_SLURM, level, origin, t->unit[u].name, t->unit[u].node,
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

/* --- SLURM_TOPOLOGY_ADDR --- */

void slurm_addr_free(struct slurm_addr *a)
{
    for (int i = 0; i < a->parts; i++) {
        free(a->part[i].kind);
        free(a->part[i].text);
        hostlist_free(a->part[i].name, a->part[i].names);
    }
    a->parts = 0;
}

static int take_pattern(struct slurm_addr *a, const char *pattern, struct err *err)
{
    for (const char *p = pattern;; p++) {
        size_t len = strcspn(p, ".");
        bool known = (len == 4 && !strncmp(p, "node", 4)) ||
                     (len == 5 && !strncmp(p, "block", 5)) ||
                     (len == 6 && !strncmp(p, "switch", 6));
        if (!known)
            return err_data(err,
                            "SLURM_TOPOLOGY_ADDR_PATTERN \"%.80s\": \"%.*s\" is not switch, "
                            "block or node",
                            pattern, len > 40 ? 40 : (int)len, p);
        if (a->parts == SLURM_ADDR_PARTS)
            return err_data(err, "SLURM_TOPOLOGY_ADDR_PATTERN \"%.80s\": more than %d parts",
                            pattern, SLURM_ADDR_PARTS);
        a->part[a->parts++].kind = mem_strndup(p, len);
        bool node = len == 4;
        p += len;
        if (node != !*p)
            return err_data(err, "SLURM_TOPOLOGY_ADDR_PATTERN \"%.80s\": the node is its last part",
                            pattern);
        if (!*p)
            return 0;
    }
}

/* Where the next dot outside of brackets is, or the end. */
static size_t part_end(const char *p, const char *end)
{
    int depth = 0;
    const char *s = p;

    for (; s < end && (depth || *s != '.'); s++)
        depth += (*s == '[') - (*s == ']');
    return (size_t)(s - p);
}

static int dots(const char *p, const char *end)
{
    int n = 0;

    for (p += part_end(p, end); p < end; p += part_end(p, end)) {
        n++;
        p++;
    }
    return n;
}

static int take_part(struct slurm_addr_part *part, const char *p, size_t len, const char *addr,
                     struct err *err)
{
    struct err why;

    part->text = mem_strndup(p, len);
    if (strpbrk(part->text, "[]")) {
        if (hostlist_expand_max(&part->name, &part->names, part->text, NAMES_MAX, &why) < 0)
            return err_data(err, "SLURM_TOPOLOGY_ADDR \"%.80s\": %s", addr, why.text);
    } else if (len) {
        MEM_PUSH(part->name, part->names) = mem_strdup(part->text);
    }
    if (!len)
        return err_data(err, "SLURM_TOPOLOGY_ADDR \"%.80s\": the name of a %s is empty", addr,
                        part->kind);
    return 0;
}

/* Where the node's name starts: it may have dots, which its name or the pattern settles. */
static const char *node_start(const struct slurm_addr *a, const char *addr, const char *end,
                              const char *node)
{
    size_t len = node ? strlen(node) : 0, all = (size_t)(end - addr);

    if (a->parts == 1)
        return addr;
    if (len && all > len + 1 && !strcmp(end - len, node) && end[-(ptrdiff_t)len - 1] == '.')
        return end - len;
    const char *p = addr;
    for (int i = 0; i + 1 < a->parts && p < end; i++)
        p += part_end(p, end) + 1;
    return p > end ? end : p;
}

int slurm_addr_parse(struct slurm_addr *a, const char *addr, const char *pattern, const char *node,
                     struct err *err)
{
    const char *end = addr + strlen(addr), *p = addr;

    memset(a, 0, sizeof(*a));
    if (strlen(addr) > ADDR_MAX || strlen(pattern) > ADDR_MAX)
        return err_data(err, "SLURM_TOPOLOGY_ADDR of more than %d characters", ADDR_MAX);
    for (const char *s = addr; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return err_data(err, "SLURM_TOPOLOGY_ADDR: control character 0x%02x",
                            (unsigned char)*s);
    if (take_pattern(a, pattern, err) < 0)
        return -1;
    const char *last = node_start(a, addr, end, node);
    const char *above = last > addr ? last - 1 : addr; /* ends what is above the node */
    int have = a->parts == 1 ? 1 : dots(addr, above) + 2;
    /* One part above the node takes all of its dots, several cannot share them out. */
    if (a->parts == 2 && have > 2)
        have = 2;
    if (have != a->parts || last >= end)
        return err_data(err,
                        "SLURM_TOPOLOGY_ADDR \"%.80s\" does not fit its pattern \"%.80s\": %d "
                        "part%s where %d are named",
                        addr, pattern, dots(addr, end) + 1, dots(addr, end) ? "s" : "", a->parts);
    for (int i = 0; i + 1 < a->parts; i++) {
        size_t len = a->parts == 2 ? (size_t)(above - p) : part_end(p, above);
        if (take_part(&a->part[i], p, len, addr, err) < 0)
            return -1;
        p += len + 1;
    }
    return take_part(&a->part[a->parts - 1], last, (size_t)(end - last), addr, err);
}

const struct slurm_addr_part *slurm_addr_above(const struct slurm_addr *a)
{
    return a->parts > 1 ? &a->part[a->parts - 2] : NULL;
}
