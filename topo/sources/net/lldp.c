/* SPDX-License-Identifier: BSD-3-Clause */
/* Input lines are "lldp.eth0.chassis.name=leaf-07"; the last word of a switch or port id is its
 * kind (lldpd/lldpd, src/client/display.c, kv_writer.c and the maps in src/lib/atoms).  Interface
 * names may contain dots (eth0.100), descriptions may span lines, and an interface may have
 * several neighbours: a switch, and agents of a network card or virtual machine, which report that
 * they forward nothing. */
#include "topo/sources/net/lldp_impl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/yaml.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/xml.h"

/* Names of the port at the other end, the best first. */
enum port_name { PORT_IFNAME, PORT_LOCAL, PORT_ALIAS, PORT_DESCR, PORT_MAC, PORT_IP, PORT_NAMES };

struct neighbour {
    char interface[16];
    char name[65], id[65]; /* of the switch: name, id */
    char port[PORT_NAMES][32];
    bool forwards; /* bridge or router */
};

struct lldp_reader {
    struct neighbour *one;
    int count;
    const char *path;
    int line; /* 0: unknown */
    struct err *err;
};

enum { NEIGHBOURS = 4096, LIVE_SECONDS = 10 };

static const struct {
    const char *key; /* key after the interface */
    size_t at, size;
} field[] = {
    {".chassis.name", offsetof(struct neighbour, name), 65},
    {".chassis.mac", offsetof(struct neighbour, id), 65},
    {".chassis.local", offsetof(struct neighbour, id), 65},
    {".chassis.ip", offsetof(struct neighbour, id), 65},
    {".chassis.ifname", offsetof(struct neighbour, id), 65},
    {".chassis.ifalias", offsetof(struct neighbour, id), 65},
    {".port.ifname", offsetof(struct neighbour, port[PORT_IFNAME]), 32},
    {".port.local", offsetof(struct neighbour, port[PORT_LOCAL]), 32},
    {".port.ifalias", offsetof(struct neighbour, port[PORT_ALIAS]), 32},
    {".port.descr", offsetof(struct neighbour, port[PORT_DESCR]), 32},
    {".port.mac", offsetof(struct neighbour, port[PORT_MAC]), 32},
    {".port.ip", offsetof(struct neighbour, port[PORT_IP]), 32},
};

/* End of the interface's name: the first dot before a keyword of LLDP. */
static const char *interface_end(const char *key)
{
    static const char *const word[] = {".via=",  ".rid=", ".age=",     ".chassis.",
                                       ".port.", ".vlan", ".lldp-med", ".unknown-tlvs",
                                       ".ppvid", ".pi.",  ".mfs",      ".dot3"};
    const char *end = NULL;

    for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++) {
        const char *at = strstr(key, word[i]);
        if (at && at > key && (!end || at < end))
            end = at;
    }
    return end;
}

/* Report a bad text, EXIT_DATA. */
static int bad(const struct lldp_reader *r, const char *what, const char *text)
{
    char shown[48];

    snprintf(shown, sizeof(shown), "%s", text);
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    if (!r->line)
        return err_data(r->err, "%s: \"%s\" %s", r->path, shown, what);
    return err_data(r->err, "%s:%d: \"%s\" %s", r->path, r->line, shown, what);
}

/* Index of the neighbour that a line describes, or -1.  first: starts a new one. */
static int find_neighbour(struct lldp_reader *r, const char *interface, size_t len, bool first)
{
    struct neighbour n = {.forwards = false};

    if (len > 15)
        return bad(r, "names an interface of more than 15 characters", interface);
    snprintf(n.interface, sizeof(n.interface), "%.*s", (int)len, interface);
    for (const char *c = n.interface; *c || !len; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c > '~')
            return bad(r, "names no interface", n.interface);
    for (int i = r->count - 1; i >= 0 && !first; i--)
        if (!strcmp(r->one[i].interface, n.interface))
            return i;
    if (r->count == NEIGHBOURS)
        return err_data(r->err, "%s: more than %d neighbours", r->path, NEIGHBOURS);
    MEM_PUSH(r->one, r->count) = n;
    return r->count - 1;
}

/* Set a field.  Switch names are compared between hosts, so they must not be cut or changed. */
static int set_field(struct lldp_reader *r, struct neighbour *n, size_t i, const char *value)
{
    char *to = (char *)n + field[i].at;
    bool name = field[i].size == sizeof(n->name);

    for (const char *c = value; *c && name; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            return bad(r, "has a character that is not printable", value);
    if (name && (strlen(value) >= field[i].size || !*value))
        return bad(r, "is no name of 1 to 64 characters", value);
    xml_keep(to, field[i].size, value);
    return 0;
}

/* Set a value by its keyvalue name, ".chassis.name"; other names are ignored. */
static int set_value(struct lldp_reader *r, int neighbour, const char *key, size_t len,
                     const char *value)
{
    for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
        if (strlen(field[i].key) == len && !strncmp(field[i].key, key, len))
            return set_field(r, &r->one[neighbour], i, value);
    return 0;
}

static int read_line(struct lldp_reader *r, char *line)
{
    char *key = line + strlen("lldp.");
    const char *end = interface_end(key), *equal = strchr(key, '=');

    if (!equal)
        return bad(r, "has no =", line);
    if (!end || end > equal)
        return 0; /* not about a neighbour */
    int at = find_neighbour(r, key, (size_t)(end - key), !strncmp(end, ".via=", 5));
    if (at < 0)
        return -1;
    if (!strcmp(end, ".chassis.Bridge.enabled=on") || !strcmp(end, ".chassis.Router.enabled=on"))
        r->one[at].forwards = true;
    return set_value(r, at, end, (size_t)(equal - end), equal + 1);
}

static int read_lines(struct lldp_reader *r, char *text)
{
    bool any = false, blank = true;

    for (char *line, *next = text; (line = next);) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        r->line++;
        blank = blank && !line[strspn(line, " \t")];
        if (strncmp(line, "lldp.", 5) != 0)
            continue; /* continued description */
        any = true;
        if (read_line(r, line) < 0)
            return -1;
    }
    if (!any && !blank)
        return err_data(r->err,
                        "%s: not what lldpcli -f keyvalue (json, json0) show neighbors prints",
                        r->path);
    return 0;
}

/* --- lldpcli -f json and -f json0 (lldpd/lldpd, src/client/json_writer.c) --- */

/* json0 has lists everywhere, {"name": [{"value": "leaf-07"}]}.  json omits lists of one element
 * ("name": "leaf-07"), and named objects become keys: {"eth0": {...}}, or for several [{"eth0":
 * {...}}, {"eth1": {...}}]. */

/* First element of a list, or the value itself. */
static json_t *one(json_t *value)
{
    return json_is_array(value) ? json_array_get(value, 0) : value;
}

/* Text, or the text of {"value": ...}; NULL if it is neither. */
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

    return text ? set_value(r, n, key, strlen(key), text) : 0;
}

/* Set {"type": "mac", "value": "c2:9f:..."} as ".chassis.mac". */
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

/* Read {"id": ..., "name": ...} or {"leaf-07": {"id": ...}}. */
static int take_chassis(struct lldp_reader *r, int n, json_t *chassis)
{
    json_t *list, *item;
    size_t i;

    chassis = one(chassis);
    if (json_is_object(chassis) && !json_object_get(chassis, "id")) {
        void *first = json_object_iter(chassis);
        const char *name = first ? json_object_iter_key(first) : NULL;
        if (name && set_value(r, n, ".chassis.name", strlen(".chassis.name"), name) < 0)
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
    int n = find_neighbour(r, interface, strlen(interface), true);
    json_t *port = one(json_object_get(in, "port"));

    if (n < 0)
        return -1;
    if (take_chassis(r, n, json_object_get(in, "chassis")) < 0 ||
        set_id(r, n, ".port", json_object_get(port, "id")) < 0 ||
        set(r, n, ".port.descr", json_object_get(port, "descr")) < 0)
        return -1;
    return 0;
}

/* Read {"name": "eth0", ...} or {"eth0": {...}, ...}. */
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
    list = json_object_get(lldp, "interface"); /* missing if there are no neighbours */
    if (json_is_object(list))
        return take_item(r, list);
    json_array_foreach(list, i, item) if (take_item(r, item) < 0) return -1;
    return 0;
}

static int read_json(struct lldp_reader *r, const char *text, size_t len)
{
    struct yaml y; /* the YAML parser reads JSON within its limits */
    int rc = yaml_parse(&y, text, len, r->path, r->err);

    if (rc == 0)
        rc = take_all(r, y.root);
    yaml_done(&y);
    return rc;
}

/* --- into the topology --- */

/* Neighbour of an interface: one that forwards, else the first. */
static const struct neighbour *best_of(const struct lldp_reader *r, const char *interface)
{
    const struct neighbour *best = NULL;

    for (int i = 0; i < r->count; i++) {
        const struct neighbour *n = &r->one[i];
        if (!strcmp(n->interface, interface) && (n->name[0] || n->id[0]) &&
            (!best || (n->forwards && !best->forwards)))
            best = n;
    }
    return best;
}

static void set_leaf(struct nic *nic, const struct neighbour *n)
{
    if (nic->leaf_source != SOURCE_NONE && nic->leaf_source != SOURCE_LLDP)
        return;
    snprintf(nic->leaf, sizeof(nic->leaf), "%s", n->name[0] ? n->name : n->id);
    nic->leaf_source = SOURCE_LLDP;
    for (int i = PORT_NAMES - 1; i >= 0; i--)
        if (n->port[i][0])
            memcpy(nic->leaf_port, n->port[i], sizeof(nic->leaf_port));
}

static void fill(struct topo *t, int host, const struct lldp_reader *r)
{
    bool known = false;

    for (int i = 0; i < t->nics; i++)
        known = known || (t->nic[i].host == host && t->nic[i].source != SOURCE_LLDP);
    for (int k = 0; k < r->count; k++) {
        const struct neighbour *n = best_of(r, r->one[k].interface);
        if (!n)
            continue;
        for (int i = 0; i < t->nics; i++)
            if (t->nic[i].host == host &&
                (!strcmp(t->nic[i].netdev, n->interface) || !strcmp(t->nic[i].name, n->interface)))
                set_leaf(&t->nic[i], n);
        if (known || host_find_nic(t, host, n->interface) >= 0)
            continue;
        struct nic *nic = host_nic(t, host, n->interface, false, SOURCE_LLDP);
        nic->layer = LINK_ETHERNET;
        snprintf(nic->netdev, sizeof(nic->netdev), "%s", n->interface);
        set_leaf(nic, n);
    }
    if (!r->count) {
        char what[300];
        snprintf(what, sizeof(what), "LLDP neighbours of %.200s", t->host[host].name);
        topo_unseen(t, what, "no switch announces itself, or lldpd does not run yet for 30 s");
    }
}

int lldp_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
               struct err *err)
{
    struct lldp_reader r = {.path = path, .err = err};

    if (memchr(text, '\0', len))
        return err_data(err, "%s: a NUL among the text: no text file", path);
    char *copy = mem_printf("%.*s", (int)len, text);
    int rc = copy[strspn(copy, " \t\r\n")] == '{' ? read_json(&r, text, len) : read_lines(&r, copy);
    if (rc == 0)
        fill(t, host, &r);
    free(r.one);
    free(copy);
    return rc;
}

int lldp_read(struct topo *t, int host, const char *path, struct err *err)
{
    static const char *const argv[] = {"lldpcli", "-f", "keyvalue", "show", "neighbors", NULL};
    char *text;
    size_t len;

    int rc = !strcmp(path, "live")
                 ? process_output(&text, &len, argv, LLDP_BYTES_MAX, LIVE_SECONDS, err)
                 : file_read(&text, &len, path, LLDP_BYTES_MAX, err);
    if (rc < 0)
        return -1;
    rc = lldp_parse(t, host, text, len, path, err);
    free(text);
    return rc;
}

/* --- groups of hosts on the same leaves --- */

static int by_text(const void *x, const void *y)
{
    return strverscmp(*(char *const *)x, *(char *const *)y);
}

/* Leaves of a host's NICs, without repetition, sorted; *count of them.  The texts are borrowed. */
static char **leaves_of(const struct topo *t, const struct net_nics *of, int host, int *count)
{
    char **leaf = NULL;
    int n = 0, kept = 0;

    for (int i = of->first[host]; i < of->first[host + 1]; i++) {
        struct nic *nic = &t->nic[of->nic[i]];
        if (nic->leaf_source == SOURCE_LLDP && (nic->use == NIC_COMPUTE || nic->use == NIC_UNKNOWN))
            MEM_PUSH(leaf, n) = nic->leaf;
    }
    if (n)
        qsort(leaf, (size_t)n, sizeof(*leaf), by_text);
    for (int i = 0; i < n; i++)
        if (!kept || strcmp(leaf[kept - 1], leaf[i]) != 0)
            leaf[kept++] = leaf[i];
    *count = kept;
    return leaf;
}

/* "leaf-01", "leaf-01+leaf-02", or "leaf-01..leaf-08 (8)" if that is too long. */
static char *set_name(char *const *leaf, int count)
{
    size_t length = 0;

    for (int i = 0; i < count; i++)
        length += strlen(leaf[i]) + 1;
    if (length > 200)
        return mem_printf("%s..%s (%d)", leaf[0], leaf[count - 1], count);
    char *name = mem_strdup(leaf[0]);
    for (int i = 1; i < count; i++)
        name = mem_append(name, "+%s", leaf[i]);
    return name;
}

void lldp_declare(struct topo *t)
{
    struct net_nics of = net_nics_of(t, false);
    bool *declared = mem_calloc((size_t)t->hosts + 1, sizeof(*declared));

    for (int i = 0; i < t->declared_groups; i++)
        for (int k = 0;
             k < t->declared_group[i].hosts && t->declared_group[i].source == SOURCE_LLDP; k++) {
            int h = topo_find_host(t, t->declared_group[i].host[k]);
            if (h >= 0)
                declared[h] = true;
        }
    for (int h = 0; h < t->hosts; h++) {
        int count = 0;
        char **leaf = declared[h] ? NULL : leaves_of(t, &of, h, &count);
        if (count) {
            char *name = set_name(leaf, count);
            group_add_host(t, SOURCE_LLDP, LEVEL_LEAF, "lldp", name, t->host[h].name);
            free(name);
        }
        free(leaf);
    }
    net_nics_free(&of);
    free(declared);
}
