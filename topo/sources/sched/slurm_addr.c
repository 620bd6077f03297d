/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_addr.c - SLURM_TOPOLOGY_ADDR and its pattern: place of a node. */
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/sources/sched/slurm.h"

enum { ADDR_MAX = 4096, NAMES_MAX = 4096 };

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

/* Offset of the next dot outside brackets, or of the end. */
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

/* Start of the node's name.  It may contain dots; its known name or the pattern decides. */
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
    const char *above = last > addr ? last - 1 : addr; /* end of the part above the node */
    int have = a->parts == 1 ? 1 : dots(addr, above) + 2;
    /* A single part above the node takes all dots; with several the split would be ambiguous. */
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
