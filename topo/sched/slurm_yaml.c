/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm_yaml.c - topology.yaml: a list of topologies. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "base/yaml.h"
#include "topo/sched/slurm.h"

struct reader {
    struct slurm_file *f;
    struct yaml y;
    struct slurm_topology *t;
};

/* Each kind: key of its list of units, key of a unit's name, what else a unit may have. */
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

/* The line alone; 0: not known. */
static int line_of(struct reader *r, const json_t *value)
{
    const char *colon = strrchr(where(r, value), ':');
    int line = 0;

    if (!colon || strlen(r->f->path) != (size_t)(colon - r->y.where) ||
        units_int(&line, colon + 1, 1, INT_MAX, NULL) < 0)
        return 0;
    return line;
}

/* A name, short enough to be one and without characters that hide or fold. */
static int take_name(struct reader *r, char **name, const json_t *in, const char *key,
                     struct err *err)
{
    json_t *value = json_object_get(in, key);
    char *text = yaml_text(value);
    int rc = 0;

    if (!text)
        rc = err_data(err, "%s: \"%s\" is %s", where(r, value ? value : in), key,
                      value ? "no text" : "missing");
    else
        rc = topo_text_check(text, 255, where(r, value), err);
    if (rc == 0)
        *name = text;
    else
        free(text);
    return rc;
}

/* A list of names under a key that may be absent or null. */
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
        rc = slurm_names(r->f, names, count, text, where(r, value), err);
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

static int take_unit(struct reader *r, json_t *in, struct err *err)
{
    struct slurm_topology *t = r->t;
    const char *key;
    char *name;
    json_t *item;

    if (!json_is_object(in))
        return err_data(err, "%s: in \"%s\": not a mapping", where(r, in), form[t->kind].list);
    json_object_foreach(in, key, item)
    {
        if (!known(t->kind, key))
            return err_data(err, "%s: unknown key \"%.40s\" in \"%s\"", where(r, in), key,
                            form[t->kind].list);
    }
    if (take_name(r, &name, in, form[t->kind].name, err) < 0)
        return -1;
    struct slurm_unit *u = slurm_add_unit(t, name, line_of(r, in));
    free(name);
    if (take_list(r, &u->child, &u->children, in, "children", err) < 0 ||
        take_list(r, &u->node, &u->nodes, in, "nodes", err) < 0)
        return -1;
    if (t->kind == SLURM_TREE && u->children && u->nodes)
        return err_data(err, "%s: switch \"%.80s\" has both nodes and children", where(r, in),
                        u->name);
    return 0;
}

static int take_sizes(struct reader *r, json_t *list, struct err *err)
{
    size_t i;
    json_t *item;

    if (!json_is_array(list))
        return err_data(err, "%s: \"block_sizes\" is not a list", where(r, list));
    json_array_foreach(list, i, item)
    {
        json_int_t size = json_integer_value(item);
        char *text = json_dumps(item, JSON_ENCODE_ANY | JSON_COMPACT);
        int rc = 0;
        if (!json_is_integer(item) || size < 1 || size > 1 << 30)
            rc = err_data(err, "%s: block_sizes: %.40s is not a number of nodes", where(r, item),
                          text);
        free(text);
        if (rc < 0)
            return rc;
        MEM_PUSH(r->t->size, r->t->sizes) = (int)size;
    }
    return slurm_sizes_check(r->t->size, r->t->sizes, where(r, list), err);
}

/* What is under "tree", "block" ... */
static int take_body(struct reader *r, json_t *in, struct err *err)
{
    enum slurm_kind kind = r->t->kind;
    const char *key;
    json_t *value;
    size_t i;

    if (kind == SLURM_FLAT) { /* true, or a mapping of options about steps */
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
            if (take_sizes(r, value, err) < 0)
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
            if (take_unit(r, unit, err) < 0)
                return -1;
        }
    }
    return 0;
}

static int kind_of(const char *key)
{
    for (int k = 0; k < SLURM_KINDS; k++)
        if (!strcmp(slurm_kind_name[k], key))
            return k;
    return -1;
}

/* Which of tree, block ... it is; exactly one. */
static int which(struct reader *r, json_t *in, const char *name, json_t **body, struct err *err)
{
    int found = -1;
    const char *key;
    json_t *value;

    json_object_foreach(in, key, value)
    {
        int kind = kind_of(key);
        if (kind < 0 && strcmp(key, "topology") && strcmp(key, "cluster_default")) {
            err_data(err, "%s: unknown key \"%.40s\" in topology \"%.80s\"", where(r, in), key,
                     name);
            return -1;
        }
        if (kind >= 0 && found >= 0) {
            err_data(err, "%s: topology \"%.80s\" is both \"%s\" and \"%s\"", where(r, in), name,
                     slurm_kind_name[found], key);
            return -1;
        }
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
    char *name = NULL;
    json_t *body = NULL, *preferred = json_object_get(in, "cluster_default");

    if (!json_is_object(in))
        return err_data(err, "%s: a topology is a mapping with the key \"topology\"", where(r, in));
    if (take_name(r, &name, in, "topology", err) < 0)
        return -1;
    int kind = which(r, in, name, &body, err);
    if (kind >= 0)
        r->t = slurm_add(r->f, name, (enum slurm_kind)kind, line_of(r, in));
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

int slurm_yaml_parse(struct slurm_file *f, const char *text, size_t len, struct err *err)
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
