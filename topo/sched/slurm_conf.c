/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_conf.c - topology.conf, and what `scontrol show topology` prints. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "topo/sched/slurm.h"

/* Keys that a line may have; those above FIRST_WORD are its first word and say what it is. */
enum key {
    NODES,
    SWITCHES,
    LINK_SPEED,
    LEVEL,
    BLOCK_INDEX,
    BLOCK_SIZE,
    FIRST_WORD,
    SWITCH_NAME = FIRST_WORD,
    BLOCK_NAME,
    RING_NAME,
    BLOCK_SIZES,
    AGGREGATED,
    KEYS
};
static const char *const key_name[KEYS] = {
    "Nodes",      "Switches",  "LinkSpeed", "Level",      "BlockIndex",     "BlockSize",
    "SwitchName", "BlockName", "RingName",  "BlockSizes", "AggregatedBlock"};
/* Which follow which; Level, BlockIndex and BlockSize are scontrol's. */
static const unsigned may_follow[KEYS] = {
    [SWITCH_NAME] = 1 << NODES | 1 << SWITCHES | 1 << LINK_SPEED | 1 << LEVEL,
    [BLOCK_NAME] = 1 << NODES | 1 << BLOCK_INDEX | 1 << BLOCK_SIZE,
    [RING_NAME] = 1 << NODES,
    [AGGREGATED] = 1 << NODES | 1 << BLOCK_INDEX | 1 << BLOCK_SIZE,
};

struct line {
    enum key first;
    char *value[KEYS];
    char where[320];
    int number;
};

static void line_free(struct line *l)
{
    for (int k = 0; k < KEYS; k++)
        free(l->value[k]);
}

static int find_key(const char *p, size_t len)
{
    for (int k = 0; k < KEYS; k++)
        if (strlen(key_name[k]) == len && !strncasecmp(key_name[k], p, len))
            return k;
    return -1;
}

/* One KEY=VALUE; *text moves behind it. */
static int take_pair(struct line *l, const char **text, bool first, struct err *err)
{
    const char *p = *text, *word = p;

    while (isalnum((unsigned char)*p) || *p == '_')
        p++;
    size_t len = (size_t)(p - word);
    p += strspn(p, " \t");
    if (!len || *p != '=')
        return err_data(err, "%s: \"%.40s\" is not KEY=VALUE", l->where, word);
    int key = find_key(word, len);
    if (key < 0)
        return err_data(err, "%s: unknown key \"%.*s\"", l->where, len > 40 ? 40 : (int)len, word);
    if (first && key < FIRST_WORD)
        return err_data(
            err, "%s: a line starts with SwitchName, BlockName, RingName or BlockSizes, not %s",
            l->where, key_name[key]);
    if (!first && !(may_follow[l->first] >> key & 1))
        return err_data(err, "%s: %s has no %s", l->where, key_name[l->first], key_name[key]);
    if (l->value[key])
        return err_data(err, "%s: %s is there twice", l->where, key_name[key]);
    p++;
    p += strspn(p, " \t");
    bool quoted = *p == '"';
    p += quoted;
    len = strcspn(p, quoted ? "\"" : " \t");
    if (quoted && !p[len])
        return err_data(err, "%s: %s: the quote is not closed", l->where, key_name[key]);
    if (!len)
        return err_data(err, "%s: %s is empty", l->where, key_name[key]);
    l->value[key] = mem_strndup(p, len);
    if (first)
        l->first = (enum key)key;
    p += len + quoted;
    if (*p && *p != ' ' && *p != '\t')
        return err_data(err, "%s: %s: \"%.40s\" after the quote", l->where, key_name[key], p);
    *text = p + strspn(p, " \t");
    return 0;
}

static struct slurm_topology *only(struct slurm_file *f, enum slurm_kind kind, const struct line *l,
                                   struct err *err)
{
    if (!f->topologies)
        return slurm_add(f, "", kind, 0);
    if (f->topology[0].kind != kind) {
        err_data(err, "%s: %s in a file of topology/%s: Slurm has one of them at a time", l->where,
                 key_name[l->first], slurm_kind_name[f->topology[0].kind]);
        return NULL;
    }
    return &f->topology[0];
}

static int take_unit(struct slurm_file *f, struct slurm_topology *t, const struct line *l,
                     struct err *err)
{
    struct slurm_unit *u = slurm_add_unit(t, l->value[l->first], l->number);
    const char *nodes = l->value[NODES];

    if (nodes && l->value[SWITCHES] && !l->value[LEVEL])
        return err_data(err, "%s: switch \"%.80s\" has both nodes and switches", l->where, u->name);
    /* scontrol also prints all nodes below higher switches. */
    if (nodes && !l->value[SWITCHES] &&
        slurm_names(f, &u->node, &u->nodes, nodes, l->where, err) < 0)
        return -1;
    if (l->value[SWITCHES])
        return slurm_names(f, &u->child, &u->children, l->value[SWITCHES], l->where, err);
    return 0;
}

static int take_sizes(struct slurm_topology *t, const struct line *l, struct err *err)
{
    char *copy = mem_strdup(l->value[BLOCK_SIZES]), *rest = copy, *word;
    struct err why;
    int rc = 0;

    if (t->sizes)
        rc = err_data(err, "%s: BlockSizes is there twice", l->where);
    while (rc == 0 && (word = strsep(&rest, ","))) {
        int size;
        if (units_int(&size, word, 1, 1 << 30, &why) < 0)
            rc = err_data(err, "%s: BlockSizes: %s", l->where, why.text);
        else
            MEM_PUSH(t->size, t->sizes) = size;
    }
    free(copy);
    return rc < 0 ? rc : slurm_sizes_check(t->size, t->sizes, l->where, err);
}

static int take_line(struct slurm_file *f, struct line *l, const char *text, struct err *err)
{
    static const enum slurm_kind kind[KEYS] = {[SWITCH_NAME] = SLURM_TREE,
                                               [BLOCK_NAME] = SLURM_BLOCK,
                                               [RING_NAME] = SLURM_RING,
                                               [BLOCK_SIZES] = SLURM_BLOCK,
                                               [AGGREGATED] = SLURM_BLOCK};
    struct slurm_topology *t;

    if (!strncasecmp(text, "include", 7) && (text[7] == ' ' || text[7] == '\t'))
        return err_data(err,
                        "%s: Include is not followed: give what \"scontrol show topology\" prints, "
                        "which has all files",
                        l->where);
    for (bool first = true; *text; first = false)
        if (take_pair(l, &text, first, err) < 0)
            return -1;
    if (!(t = only(f, kind[l->first], l, err)))
        return -1;
    if (l->first == AGGREGATED) /* made from the others */
        return 0;
    return l->first == BLOCK_SIZES ? take_sizes(t, l, err) : take_unit(f, t, l, err);
}

/* The next line without comment and continuation; *p moves behind it, *number to its last. */
static char *next_line(const char **p, const char *end, int *number)
{
    char *line = mem_strdup("");
    size_t len = 0;
    bool more = true;

    while (more && *p < end) {
        size_t part = strcspn(*p, "\n");
        bool comment = false;
        more = false;
        ++*number;
        line = mem_realloc(line, len + part + 2, 1);
        for (size_t i = 0; i < part && !comment; i++) {
            char c = (*p)[i];
            comment = c == '#' && !(i && (*p)[i - 1] == '\\');
            if (!comment && c != '\r')
                line[len++] = c;
        }
        *p += part + (*p + part < end);
        while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
            len--;
        if (len && line[len - 1] == '\\' && !comment) {
            line[len - 1] = ' ';
            more = true;
        }
    }
    line[len] = '\0';
    return line;
}

int slurm_conf_parse(struct slurm_file *f, const char *text, size_t len, struct err *err)
{
    const char *p = text, *end = text + len;
    int number = 0, rc = 0;

    if (strlen(text) != len)
        return err_data(err, "%s: a byte of 0 at %zu", f->path, strlen(text));
    while (p < end && rc == 0) {
        struct line l = {.number = number + 1};
        char *line = next_line(&p, end, &number);
        snprintf(l.where, sizeof(l.where), "%.300s:%d", f->path, l.number);
        rc = tsv_clean(f->path, l.number, line, strlen(line), err);
        const char *start = line + strspn(line, " \t");
        if (rc == 0 && *start)
            rc = take_line(f, &l, start, err);
        line_free(&l);
        free(line);
    }
    return rc;
}
