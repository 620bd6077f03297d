/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_file.c - reader of Slurm topology files, topology.conf and topology.yaml. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/tsv.h"
#include "base/units.h"
#include "base/yaml.h"
#include "topo/sources/sched/slurm.h"

const char *const slurm_kind_name[SLURM_KINDS] = {"tree", "block", "ring", "torus3d", "flat"};

static struct slurm_topology *add_topology(struct slurm_file *f, const char *name,
                                           enum slurm_kind kind, int line)
{
    MEM_PUSH(f->topology, f->topologies) =
        (struct slurm_topology){.name = mem_strdup(name), .kind = kind, .line = line};
    return &f->topology[f->topologies - 1];
}

static struct slurm_unit *add_unit(struct slurm_topology *t, const char *name, int line)
{
    MEM_PUSH(t->unit, t->units) = (struct slurm_unit){.name = mem_strdup(name), .line = line};
    return &t->unit[t->units - 1];
}

static int take_names(struct slurm_file *f, char ***name, int *count, const char *list,
                      const char *where, struct err *err)
{
    if (f->names >= SLURM_NAMES)
        return err_data(err, "%s: more than %d names in one file", where, SLURM_NAMES);
    if (hostlist_expand_max(name, count, list, SLURM_NAMES - f->names, err) < 0)
        return err_wrap(err, "%s", where);
    f->names += *count;
    return 0;
}

/* --- topology.conf, and output of `scontrol show topology` --- */

/* Keys of a line; keys above FIRST_WORD come first and set the kind of line. */
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
/* Keys allowed after each first word; Level, BlockIndex and BlockSize are scontrol's. */
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

static int find_key(const char *p, size_t len)
{
    for (int k = 0; k < KEYS; k++)
        if (strlen(key_name[k]) == len && !strncasecmp(key_name[k], p, len))
            return k;
    return -1;
}

/* Take one KEY=VALUE and move *text behind it. */
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

static int take_unit(struct slurm_file *f, struct slurm_topology *t, const struct line *l,
                     struct err *err)
{
    struct slurm_unit *u = add_unit(t, l->value[l->first], l->number);
    const char *nodes = l->value[NODES];

    if (nodes && l->value[SWITCHES] && !l->value[LEVEL])
        return err_data(err, "%s: switch \"%.80s\" has both nodes and switches", l->where, u->name);
    /* Nodes of higher switches are skipped: scontrol prints all nodes below them too. */
    if (nodes && !l->value[SWITCHES] &&
        take_names(f, &u->node, &u->nodes, nodes, l->where, err) < 0)
        return -1;
    if (l->value[SWITCHES])
        return take_names(f, &u->child, &u->children, l->value[SWITCHES], l->where, err);
    return 0;
}

static int take_sizes(struct slurm_topology *t, const struct line *l, struct err *err)
{
    char *rest = l->value[BLOCK_SIZES], *word;
    struct err why;

    if (t->sizes)
        return err_data(err, "%s: BlockSizes is there twice", l->where);
    t->sizes_line = l->number;
    while ((word = strsep(&rest, ","))) {
        int size;
        if (units_int(&size, word, 1, 1 << 30, &why) < 0)
            return err_data(err, "%s: BlockSizes: %s", l->where, why.text);
        MEM_PUSH(t->size, t->sizes) = size;
    }
    return 0;
}

static int take_line(struct slurm_file *f, struct line *l, const char *text, struct err *err)
{
    static const enum slurm_kind kind[KEYS] = {[SWITCH_NAME] = SLURM_TREE,
                                               [BLOCK_NAME] = SLURM_BLOCK,
                                               [RING_NAME] = SLURM_RING,
                                               [BLOCK_SIZES] = SLURM_BLOCK,
                                               [AGGREGATED] = SLURM_BLOCK};
    if (!strncasecmp(text, "include", 7) && (text[7] == ' ' || text[7] == '\t'))
        return err_data(err,
                        "%s: Include is not followed: give what \"scontrol show topology\" prints, "
                        "which has all files",
                        l->where);
    for (bool first = true; *text; first = false)
        if (take_pair(l, &text, first, err) < 0)
            return -1;
    if (!f->topologies)
        add_topology(f, "", kind[l->first], 0);
    struct slurm_topology *t = &f->topology[0];
    if (t->kind != kind[l->first])
        return err_data(err, "%s: %s in a file of topology/%s: Slurm has one of them at a time",
                        l->where, key_name[l->first], slurm_kind_name[t->kind]);
    if (l->first == AGGREGATED) /* derived from the other blocks */
        return 0;
    return l->first == BLOCK_SIZES ? take_sizes(t, l, err) : take_unit(f, t, l, err);
}

/* Next line, without comment and continuation; moves *p behind it, *number to its last line. */
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

static int read_conf(struct slurm_file *f, const char *text, size_t len, struct err *err)
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
        for (int k = 0; k < KEYS; k++)
            free(l.value[k]);
        free(line);
    }
    return rc;
}

/* --- topology.yaml: a list of topologies --- */

struct reader {
    struct slurm_file *f;
    struct yaml y;
    struct slurm_topology *t;
};

/* Syntax of each kind: key of its list of units, key of a unit's name, further keys of a unit. */
static const struct {
    const char *list, *name, *others[5];
} form[SLURM_KINDS] = {
    [SLURM_TREE] = {"switches", "switch", {"children", "nodes"}},
    [SLURM_BLOCK] = {"blocks", "block", {"nodes"}},
    [SLURM_RING] = {"rings", "ring", {"nodes"}},
    [SLURM_TORUS] = {"toruses", "name", {"dims", "nodes", "regions", "placements"}},
};

static const char *where(struct reader *r, const json_t *value)
{
    return yaml_where(&r->y, value);
}

/* Read a name: short enough, and without characters that hide or fold.  NULL after an error. */
static char *take_name(struct reader *r, const json_t *in, const char *key, struct err *err)
{
    json_t *value = json_object_get(in, key);
    char *text = yaml_text(value);

    if (!text)
        err_data(err, "%s: \"%s\" is %s", where(r, value ? value : in), key,
                 value ? "no text" : "missing");
    else if (topo_text_check(text, 255, where(r, value), err) == 0)
        return text;
    free(text);
    return NULL;
}

/* Read a list of names under a key that may be absent or null. */
static int take_list(struct reader *r, char ***names, int *count, const json_t *in, const char *key,
                     struct err *err)
{
    json_t *value = json_object_get(in, key);
    char *text = yaml_text(value);
    int rc = 0;

    if (!value || json_is_null(value))
        return 0;
    if (!text)
        rc = err_data(err, "%s: \"%s\" is no text", where(r, value), key);
    else if (*text)
        rc = take_names(r->f, names, count, text, where(r, value), err);
    free(text);
    return rc;
}

static bool known(enum slurm_kind kind, const char *key)
{
    for (int i = 0; i < 5 && form[kind].others[i]; i++)
        if (!strcmp(form[kind].others[i], key))
            return true;
    return !strcmp(form[kind].name, key);
}

static int yaml_unit(struct reader *r, json_t *in, struct err *err)
{
    struct slurm_topology *t = r->t;
    const char *key;
    json_t *item;

    if (!json_is_object(in))
        return err_data(err, "%s: in \"%s\": not a mapping", where(r, in), form[t->kind].list);
    json_object_foreach(in, key, item)
    {
        if (!known(t->kind, key))
            return err_data(err, "%s: unknown key \"%.40s\" in \"%s\"", where(r, in), key,
                            form[t->kind].list);
    }
    char *name = take_name(r, in, form[t->kind].name, err);
    if (!name)
        return -1;
    struct slurm_unit *u = add_unit(t, name, yaml_line(&r->y, in));
    free(name);
    if (take_list(r, &u->child, &u->children, in, "children", err) < 0 ||
        take_list(r, &u->node, &u->nodes, in, "nodes", err) < 0)
        return -1;
    if (t->kind == SLURM_TREE && u->children && u->nodes)
        return err_data(err, "%s: switch \"%.80s\" has both nodes and children", where(r, in),
                        u->name);
    return 0;
}

static int yaml_sizes(struct reader *r, json_t *list, struct err *err)
{
    size_t i;
    json_t *item;

    if (!json_is_array(list))
        return err_data(err, "%s: \"block_sizes\" is not a list", where(r, list));
    r->t->sizes_line = yaml_line(&r->y, list);
    json_array_foreach(list, i, item)
    {
        json_int_t size = json_integer_value(item);
        if (!json_is_integer(item) || size < 1 || size > 1 << 30) {
            char *text = json_dumps(item, JSON_ENCODE_ANY | JSON_COMPACT);
            err_data(err, "%s: block_sizes: %.40s is not a number of nodes", where(r, item), text);
            free(text);
            return -1;
        }
        MEM_PUSH(r->t->size, r->t->sizes) = (int)size;
    }
    return 0;
}

/* Read the value of "tree", "block" ... */
static int take_body(struct reader *r, json_t *in, struct err *err)
{
    enum slurm_kind kind = r->t->kind;
    const char *key;
    json_t *value;
    size_t i;

    if (kind == SLURM_FLAT) { /* true, or a mapping with options for steps */
        if (!json_is_true(in) && !json_is_object(in))
            return err_data(err, "%s: topology \"%.80s\": \"flat\" is neither true nor a mapping",
                            where(r, in), r->t->name);
        return 0;
    }
    if (!json_is_object(in))
        return err_data(err, "%s: topology \"%.80s\": \"%s\" is not a mapping", where(r, in),
                        r->t->name, slurm_kind_name[kind]);
    json_object_foreach(in, key, value)
    {
        if (kind == SLURM_BLOCK && !strcmp(key, "block_sizes")) {
            if (yaml_sizes(r, value, err) < 0)
                return -1;
            continue;
        }
        if (strcmp(key, form[kind].list))
            return err_data(err, "%s: unknown key \"%.40s\" in \"%s\"", where(r, in), key,
                            slurm_kind_name[kind]);
        if (!json_is_array(value))
            return err_data(err, "%s: \"%s\" is not a list", where(r, value), key);
        json_t *unit;
        json_array_foreach(value, i, unit)
        {
            if (yaml_unit(r, unit, err) < 0)
                return -1;
        }
    }
    return 0;
}

/* Return the kind of a topology; exactly one of tree, block ... must be present. */
static int which(struct reader *r, json_t *in, const char *name, json_t **body, struct err *err)
{
    int found = -1;
    const char *key;
    json_t *value;

    json_object_foreach(in, key, value)
    {
        int kind = SLURM_KINDS - 1;
        while (kind >= 0 && strcmp(slurm_kind_name[kind], key) != 0)
            kind--;
        if (kind < 0 && strcmp(key, "topology") && strcmp(key, "cluster_default"))
            return err_data(err, "%s: unknown key \"%.40s\" in topology \"%.80s\"", where(r, in),
                            key, name);
        if (kind >= 0 && found >= 0)
            return err_data(err, "%s: topology \"%.80s\" is both \"%s\" and \"%s\"", where(r, in),
                            name, slurm_kind_name[found], key);
        if (kind >= 0) {
            found = kind;
            *body = value;
        }
    }
    if (found < 0)
        err_data(err, "%s: topology \"%.80s\" is none of tree, block, ring, torus3d and flat",
                 where(r, in), name);
    return found;
}

static int take_topology(struct reader *r, json_t *in, struct err *err)
{
    json_t *body = NULL, *preferred = json_object_get(in, "cluster_default");

    if (!json_is_object(in))
        return err_data(err, "%s: a topology is a mapping with the key \"topology\"", where(r, in));
    char *name = take_name(r, in, "topology", err);
    if (!name)
        return -1;
    int kind = which(r, in, name, &body, err);
    if (kind >= 0)
        r->t = add_topology(r->f, name, (enum slurm_kind)kind, yaml_line(&r->y, in));
    free(name);
    if (kind < 0)
        return -1;
    if (preferred && !json_is_boolean(preferred))
        return err_data(err,
                        "%s: topology \"%.80s\": \"cluster_default\" is neither true nor false",
                        where(r, in), r->t->name);
    r->t->preferred = json_is_true(preferred);
    return take_body(r, body, err);
}

static int read_yaml(struct slurm_file *f, const char *text, size_t len, struct err *err)
{
    struct reader r = {.f = f};
    json_t *item;
    size_t i;
    int rc = yaml_parse(&r.y, text, len, f->path, err);

    if (rc == 0 && !json_is_array(r.y.root))
        rc = err_data(err, "%s: neither topology.conf nor a list of topologies",
                      where(&r, r.y.root));
    if (rc == 0)
        json_array_foreach(r.y.root, i, item)
        {
            if ((rc = take_topology(&r, item, err)) < 0)
                break;
        }
    yaml_done(&r.y);
    return rc;
}

/* True for topology.conf: the first significant line is Include, or a word before '='. */
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

int slurm_file_read(struct slurm_file *f, const char *text, size_t len, const char *path,
                    struct err *err)
{
    *f = (struct slurm_file){.path = mem_strdup(path)};
    return is_conf(text, len) ? read_conf(f, text, len, err) : read_yaml(f, text, len, err);
}
