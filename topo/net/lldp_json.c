/* SPDX-License-Identifier: BSD-3-Clause */
/* lldp_json.c - what lldpcli -f json and -f json0 print (lldpd/lldpd, src/client/json_writer.c).
 *
 * json0 has lists everywhere, {"name": [{"value": "leaf-07"}]}.  json leaves out lists of one
 * ("name": "leaf-07"), and whatever has a name is under it as a key: {"eth0": {...}}, or where
 * there are several [{"eth0": {...}}, {"eth1": {...}}]. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/yaml.h"
#include "topo/net/lldp_own.h"

/* The only one of a list, or itself. */
static json_t *one(json_t *value)
{
    return json_is_array(value) ? json_array_get(value, 0) : value;
}

/* A text, or that of {"value": ...}; NULL. */
static const char *text_of(json_t *value)
{
    value = one(value);
    if (json_is_object(value))
        value = one(json_object_get(value, "value"));
    return json_string_value(value);
}

static int set(struct lldp_reader *r, int n, const char *key, json_t *value)
{
    const char *text = text_of(value);

    return text ? lldp_set(r, n, key, strlen(key), text) : 0;
}

/* {"type": "mac", "value": "c2:9f:..."} as ".chassis.mac". */
static int set_id(struct lldp_reader *r, int n, const char *of, json_t *id)
{
    const char *type = json_string_value(json_object_get(one(id), "type"));

    if (!type)
        return 0;
    char *key = mem_printf("%s.%.40s", of, type);
    int rc = set(r, n, key, id);
    free(key);
    return rc;
}

/* {"id": ..., "name": ...}, or {"leaf-07": {"id": ...}}. */
static int take_chassis(struct lldp_reader *r, int n, json_t *chassis)
{
    json_t *list, *item;
    size_t i;

    chassis = one(chassis);
    if (json_is_object(chassis) && !json_object_get(chassis, "id")) {
        void *first = json_object_iter(chassis);
        const char *name = first ? json_object_iter_key(first) : NULL;
        if (name && lldp_set(r, n, ".chassis.name", strlen(".chassis.name"), name) < 0)
            return -1;
        chassis = first ? json_object_iter_value(first) : NULL;
    }
    if (set_id(r, n, ".chassis", json_object_get(chassis, "id")) < 0 ||
        set(r, n, ".chassis.name", json_object_get(chassis, "name")) < 0)
        return -1;
    list = json_object_get(chassis, "capability");
    for (i = 0; (item = json_is_array(list) ? json_array_get(list, i) : i ? NULL : list); i++) {
        const char *type = json_string_value(json_object_get(item, "type"));
        if (type && json_is_true(json_object_get(item, "enabled")) &&
            (!strcmp(type, "Bridge") || !strcmp(type, "Router")))
            r->one[n].forwards = true;
    }
    return 0;
}

static int take_neighbour(struct lldp_reader *r, const char *interface, json_t *in)
{
    int n = lldp_find(r, interface, strlen(interface), true);
    json_t *port = one(json_object_get(in, "port"));

    if (n < 0)
        return -1;
    if (take_chassis(r, n, json_object_get(in, "chassis")) < 0 ||
        set_id(r, n, ".port", json_object_get(port, "id")) < 0 ||
        set(r, n, ".port.descr", json_object_get(port, "descr")) < 0)
        return -1;
    return 0;
}

/* {"name": "eth0", ...}, or {"eth0": {...}, ...}. */
static int take_item(struct lldp_reader *r, json_t *item)
{
    const char *name = text_of(json_object_get(item, "name")), *key;
    json_t *in;
    size_t i;

    if (name)
        return take_neighbour(r, name, item);
    json_object_foreach(item, key, in)
    {
        json_t *each;
        if (json_is_object(in) && take_neighbour(r, key, in) < 0)
            return -1;
        json_array_foreach(in, i, each) if (take_neighbour(r, key, each) < 0) return -1;
    }
    return 0;
}

static int take_all(struct lldp_reader *r, json_t *root)
{
    json_t *lldp = one(json_object_get(root, "lldp")), *list, *item;
    size_t i;

    if (!json_object_get(root, "lldp"))
        return err_data(r->err,
                        "%s: no \"lldp\": not what lldpcli -f json (json0) show neighbors prints",
                        r->path);
    list = json_object_get(lldp, "interface"); /* nobody was heard: there is none */
    if (json_is_object(list))
        return take_item(r, list);
    json_array_foreach(list, i, item) if (take_item(r, item) < 0) return -1;
    return 0;
}

int lldp_json(struct lldp_reader *r, const char *text, size_t len)
{
    struct yaml y; /* JSON with its limits */
    int rc = yaml_parse(&y, text, len, r->path, r->err);

    if (rc == 0)
        rc = take_all(r, y.root);
    yaml_done(&y);
    return rc;
}
