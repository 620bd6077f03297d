/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/sched/labels_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/yaml.h"
#include "topo/groups.h"

enum { LABEL_WIDE = -1 }; /* instead of a level: wider than any tier of switches */

struct label_rule {
    const char *key;
    int level; /* enum level or LABEL_WIDE */
    /* Rows with the same origin form a ladder, nearest first: the first of these keys that a
     * node has gets the level of the first row, its next key that of the second.  NULL: the key
     * itself. */
    const char *origin;
    int above; /* switch tiers above a spine, see struct declared_group */
};
enum { VALUE_LEN = 255 }; /* limit of group names in topology.json */

#define AWS "topology.k8s.aws/network-node-layer"
/* Sorted by trust within a level, highest first. */
static const struct label_rule label_rule[] = {
    {"nvidia.com/gpu.clique", LEVEL_DOMAIN, NULL, 0},
    {"accelerator.topograph.run/domain", LEVEL_DOMAIN, NULL, 0},
    {"network.topology.nvidia.com/accelerator", LEVEL_DOMAIN, NULL, 0},
    {"network.topology.kubernetes.io/accelerator", LEVEL_DOMAIN, NULL, 0},
    {"topology.k8s.aws/ultraserver-id", LEVEL_DOMAIN, NULL, 0},
    {"ds.coreweave.com/nvlink.domain", LEVEL_DOMAIN, NULL, 0},
    {"oci.oraclecloud.com/host.gpu_memory_fabric_id", LEVEL_DOMAIN, NULL, 0},
    {"topology.nebius.com/nvl-instance-group-id", LEVEL_DOMAIN, NULL, 0},

    {"accelerator.topograph.run/sub-domain", LEVEL_RACK, NULL, 0},
    {"cloud.google.com/gce-topology-subblock", LEVEL_RACK, NULL, 0},
    {"oci.oraclecloud.com/host.rack_id", LEVEL_RACK, NULL, 0},
    {"node.coreweave.cloud/rack", LEVEL_RACK, NULL, 0},

    {"fabric.topograph.run/tier-0", LEVEL_LEAF, NULL, 0},
    {"network.topology.nvidia.com/leaf", LEVEL_LEAF, NULL, 0},
    {"network.topology.nvidia.com/block", LEVEL_LEAF, NULL, 0},
    {"network.topology.kubernetes.io/block", LEVEL_LEAF, NULL, 0},
    {AWS "-4", LEVEL_LEAF, AWS, 0},
    {AWS "-3", LEVEL_SPINE, AWS, 0},
    {AWS "-2", LEVEL_SPINE, AWS, 1},
    {AWS "-1", LEVEL_SPINE, AWS, 2},
    {"oci.oraclecloud.com/rdma.local_block_id", LEVEL_LEAF, NULL, 0},
    {"topology.nebius.com/tier-1", LEVEL_LEAF, NULL, 0},
    {"ib.coreweave.cloud/leafgroup", LEVEL_LEAF, NULL, 0},
    {"backend.coreweave.cloud/leafgroup", LEVEL_LEAF, NULL, 0},

    {"fabric.topograph.run/tier-1", LEVEL_SPINE, NULL, 0},
    {"network.topology.nvidia.com/spine", LEVEL_SPINE, NULL, 0},
    {"network.topology.kubernetes.io/spine", LEVEL_SPINE, NULL, 0},
    {"cloud.google.com/gce-topology-block", LEVEL_SPINE, NULL, 0},
    {"oci.oraclecloud.com/rdma.network_block_id", LEVEL_SPINE, NULL, 0},
    {"oci.oraclecloud.com/host.network_block_id", LEVEL_SPINE, NULL, 0},
    {"topology.nebius.com/tier-2", LEVEL_SPINE, NULL, 0},
    {"ib.coreweave.cloud/superpod", LEVEL_SPINE, NULL, 0},

    {"fabric.topograph.run/tier-2", LEVEL_SPINE, NULL, 1},
    {"fabric.topograph.run/tier-3", LEVEL_SPINE, NULL, 2},
    {"network.topology.nvidia.com/core", LEVEL_SPINE, NULL, 1},
    {"network.topology.nvidia.com/datacenter", LEVEL_SPINE, NULL, 1},
    {"network.topology.kubernetes.io/datacenter", LEVEL_SPINE, NULL, 1},
    {"topology.k8s.aws/capacity-block-id", LABEL_WIDE, NULL, 0},
    {"oci.oraclecloud.com/rdma.hpc_island_id", LEVEL_SPINE, NULL, 1},
    {"topology.nebius.com/tier-3", LEVEL_SPINE, NULL, 1},
    {"topology.nebius.com/tier-0", LABEL_WIDE, NULL, 0},
    {"topology.nebius.com/gpu-cluster-id", LEVEL_SPINE, NULL, 2},
    {"ib.coreweave.cloud/fabric", LEVEL_SPINE, NULL, 1},
    {"backend.coreweave.cloud/fabric", LEVEL_SPINE, NULL, 1},
    {"topology.kubernetes.io/zone", LEVEL_SPINE, NULL, 2},
};
enum { LABEL_RULES = sizeof(label_rule) / sizeof(*label_rule) };

void label_groups_join(struct label_groups *g, const char *group, const char *host)
{
    int count = g->names.count, i = names_add(&g->names, group);

    if (i == count)
        MEM_PUSH(g->of, count) = (struct label_group){NULL, 0};
    MEM_PUSH(g->of[i].host, g->of[i].hosts) = mem_strdup(host);
    g->hosts++;
}

void label_groups_declare(const struct label_groups *g, struct topo *t, enum source source,
                          enum level level, int above, const char *origin)
{
    for (int i = 0; i < g->names.count; i++) {
        group_add(t, source, level, origin, g->names.name[i], g->of[i].host, g->of[i].hosts);
        t->declared_group[t->declared_groups - 1].above = above;
    }
}

void label_groups_free(struct label_groups *g)
{
    for (int i = 0; i < g->names.count; i++)
        hostlist_free(g->of[i].host, g->of[i].hosts);
    free(g->of);
    names_free(&g->names);
}

void label_facts_begin(struct label_facts *f, struct topo *t)
{
    *f = (struct label_facts){t, mem_calloc(LABEL_RULES, sizeof(*f->row)), 0, t->hosts};
}

void label_facts_end(struct label_facts *f)
{
    for (int r = 0; r < LABEL_RULES; r++)
        label_groups_free(&f->row[r]);
    free(f->row);
}

/* GPU feature discovery writes a UUID of zeros while NVLink is not registered. */
static bool no_domain(const char *key, const char *value)
{
    return !strcmp(key, "nvidia.com/gpu.clique") && strspn(value, "0-") >= strcspn(value, ".");
}

static int take_label(struct label_facts *f, int rule, int row, const char *host,
                      const json_t *value, const char *where, struct err *err)
{
    const char *key = label_rule[rule].key, *text = json_string_value(value);
    char at[400];

    snprintf(at, sizeof(at), "%s: label %s", where, key);
    if (!text)
        return err_data(err, "%s is not text", at);
    if (topo_text_check(text, VALUE_LEN, at, err) < 0)
        return -1;
    if (!no_domain(key, text))
        label_groups_join(&f->row[row], text, host);
    return 0;
}

int label_facts_add(struct label_facts *f, const char *host, const json_t *labels,
                    const char *where, struct err *err)
{
    const char *origin = NULL;
    int rung = 0;

    f->hosts++;
    if (labels && !json_is_object(labels))
        return err_data(err, "%s: labels are not an object of texts", where);
    for (int r = 0; r < LABEL_RULES; r++) {
        const json_t *value = json_object_get(labels, label_rule[r].key);
        bool empty = json_is_string(value) && !json_string_length(value);
        const char *next = label_rule[r].origin;
        if (!next || !origin || strcmp(next, origin) != 0)
            rung = r;
        origin = next;
        if (!value || empty)
            continue;
        if (take_label(f, r, origin ? rung++ : r, host, value, where, err) < 0)
            return -1;
    }
    return 0;
}

int label_facts_declare(struct label_facts *f, enum source source)
{
    int told = 0;

    for (int r = 0; r < LABEL_RULES; r++) {
        const struct label_rule *rule = &label_rule[r];
        const char *origin = rule->origin ? rule->origin : rule->key;
        if (!f->row[r].hosts)
            continue;
        told++;
        if (rule->level == LABEL_WIDE)
            topo_unseen(f->t, origin, "said of %d nodes, no place among switches: not kept",
                        f->row[r].hosts);
        else
            label_groups_declare(&f->row[r], f->t, source, (enum level)rule->level, rule->above,
                                 origin);
    }
    return told;
}

const char *label_host(const struct topo *t, int known, const char *name, const json_t *labels,
                       char buf[256])
{
    const char *other = json_string_value(json_object_get(labels, "kubernetes.io/hostname"));
    const char *as[] = {name, other, buf};

    snprintf(buf, 256, "%.*s", (int)strcspn(name, "."), name);
    for (size_t i = 0; i < sizeof(as) / sizeof(*as); i++) {
        int h = as[i] ? topo_find_host(t, as[i]) : -1;
        if (h >= 0 && h < known)
            return as[i];
    }
    return name;
}

/* --- kubectl's output about nodes --- */

enum { GPUS_MAX = 256, NAMED = 8 };

struct nodes {
    struct topo *t;
    struct label_facts facts;
    struct names seen; /* node names */
    bool gpus;         /* add GPUs as endpoints */
    int of_gpus;       /* nodes with GPUs; no_clique: those without a clique */
    int no_clique;
    char *not_ready; /* "a, b (cordoned)", at most NAMED of them */
    int not_readies;
};

/* State of a node besides its labels. */
struct node_state {
    const char *name;
    const json_t *labels;
    const char *capacity; /* capacity of nvidia.com/gpu, or NULL */
    bool not_ready, cordoned;
};

static void note_state(struct nodes *n, const struct node_state *s)
{
    if (!s->not_ready && !s->cordoned)
        return;
    if (++n->not_readies > NAMED)
        return;
    n->not_ready = mem_append(n->not_ready, "%s%s%s", n->not_ready ? ", " : "", s->name,
                              s->not_ready ? "" : " (cordoned)");
}

/* Count GPUs: the label of GPU feature discovery (physical GPUs), else the kubelet's capacity. */
static int take_gpus(struct nodes *n, const struct node_state *s, const char *host,
                     const char *where, struct err *err)
{
    const char *text = json_string_value(json_object_get(s->labels, "nvidia.com/gpu.count"));
    const char *model = json_string_value(json_object_get(s->labels, "nvidia.com/gpu.product"));
    struct err bad;
    int count = 0;

    if (!text)
        text = s->capacity;
    if (text && units_int(&count, text, 0, GPUS_MAX, &bad) < 0)
        return err_data(err, "%s: nvidia.com/gpu: %s", where, bad.text);
    if (model && *model && topo_text_check(model, VALUE_LEN, where, err) < 0)
        return -1;
    if (count > 0) {
        n->of_gpus++;
        n->no_clique += !json_object_get(s->labels, "nvidia.com/gpu.clique");
    }
    for (int g = 0; n->gpus && g < count; g++) {
        int id = topo_add_endpoint(n->t, topo_add_host(n->t, host), ENDPOINT_GPU);
        struct endpoint *e = &n->t->endpoint[id];
        e->source[LEVEL_HOST] = SOURCE_LABEL;
        snprintf(e->model, sizeof(e->model), "%s", model ? model : "");
    }
    return 0;
}

static int take_node(struct nodes *n, const struct node_state *s, const char *where,
                     struct err *err)
{
    char buf[256];
    int count = n->seen.count;

    if (topo_host_name_check(s->name, where, err) < 0)
        return -1;
    if (names_add(&n->seen, s->name) < count)
        return err_data(err, "%s: node \"%s\" is there twice", where, s->name);
    const char *host = label_host(n->t, n->facts.known, s->name, s->labels, buf);
    if (label_facts_add(&n->facts, host, s->labels, where, err) < 0 ||
        take_gpus(n, s, host, where, err) < 0)
        return -1;
    note_state(n, s);
    return 0;
}

/* --- objects of the API --- */

static bool is_not_ready(const json_t *status)
{
    const json_t *condition;
    size_t i;

    json_array_foreach(json_object_get(status, "conditions"), i, condition)
    {
        const char *type = json_string_value(json_object_get(condition, "type"));
        const char *is = json_string_value(json_object_get(condition, "status"));
        if (type && is && !strcmp(type, "Ready"))
            return strcmp(is, "True") != 0;
    }
    return false;
}

static int take_object(struct nodes *n, const json_t *node, const char *where, struct err *err)
{
    const json_t *meta = json_object_get(node, "metadata"), *name = json_object_get(meta, "name");
    const json_t *status = json_object_get(node, "status");
    const json_t *kind = json_object_get(node, "kind");
    const json_t *labels = json_object_get(meta, "labels");

    if (!json_is_object(node))
        return err_data(err, "%s is not an object", where);
    if (kind && (!json_is_string(kind) || strcmp(json_string_value(kind), "Node") != 0))
        return err_data(err, "%s: kind is \"%.60s\" where Node is expected", where,
                        json_is_string(kind) ? json_string_value(kind) : "(no text)");
    char *text = yaml_text(name);
    if (!text)
        return err_data(err, "%s: metadata.name is %s", where, name ? "not text" : "missing");
    struct node_state s = {
        text, json_is_null(labels) ? NULL : labels,
        json_string_value(json_object_get(json_object_get(status, "capacity"), "nvidia.com/gpu")),
        is_not_ready(status),
        json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable"))};
    int rc = take_node(n, &s, where, err);
    free(text);
    return rc;
}

static int take_list(struct nodes *n, struct yaml *y, struct err *err)
{
    const char *kind = json_string_value(json_object_get(y->root, "kind"));
    const json_t *items = json_object_get(y->root, "items"), *item;
    char where[400];
    size_t i;

    if (!json_is_object(y->root))
        return err_data(err, "%s: neither a Node nor a List of nodes", y->path);
    if (kind && !strcmp(kind, "Node"))
        return take_object(n, y->root, y->path, err);
    if (!kind || (strcmp(kind, "List") != 0 && strcmp(kind, "NodeList") != 0))
        return err_data(err, "%s: kind is \"%.60s\" where Node, List or NodeList is expected",
                        y->path, kind ? kind : "(none)");
    if (!json_is_array(items))
        return err_data(err, "%s: items is %s", y->path, items ? "not a list" : "missing");
    json_array_foreach(items, i, item)
    {
        snprintf(where, sizeof(where), "%s: items[%zu]", yaml_where(y, item), i);
        if (take_object(n, item, where, err) < 0)
            return -1;
    }
    return 0;
}

/* --- the table of kubectl get nodes --show-labels --- */

/* "a=b,c=d" or "<none>" */
static json_t *labels_of_text(char *text, const char *where, struct err *err)
{
    json_t *labels = json_object();
    char *at = text, *word;

    if (!strcmp(text, "<none>"))
        return labels;
    while ((word = strsep(&at, ","))) {
        char *equal = strchr(word, '=');
        if (!equal || equal == word) {
            err_data(err, "%s: \"%.80s\" is not a label KEY=VALUE", where, word);
            json_decref(labels);
            return NULL;
        }
        *equal = '\0';
        json_t *value = json_string(equal + 1);
        if (!value || json_object_set_new(labels, word, value) < 0) {
            err_data(err, "%s: a label that is not UTF-8", where);
            json_decref(labels);
            return NULL;
        }
    }
    return labels;
}

static int take_line(struct nodes *n, char *line, const char *where, struct err *err)
{
    char *word[16], *at = line, *w;
    int words = 0;

    while ((w = strsep(&at, " \t\r")))
        if (*w && words < 16)
            word[words++] = w;
        else if (*w)
            return err_data(err, "%s: more than 16 columns", where);
    if (!words)
        return 0;
    if (words < 3)
        return err_data(err, "%s: %d columns where NAME STATUS ... LABELS are expected", where,
                        words);
    json_t *labels = labels_of_text(word[words - 1], where, err);
    if (!labels)
        return -1;
    struct node_state s = {word[0], labels, NULL,
                           !strncmp(word[1], "NotReady", 8) || !strncmp(word[1], "Unknown", 7),
                           strstr(word[1], "SchedulingDisabled") != NULL};
    int rc = take_node(n, &s, where, err);
    json_decref(labels);
    return rc;
}

static int take_table(struct nodes *n, char *text, const char *path, struct err *err)
{
    char *at = text, *line, where[400];

    for (int number = 1; (line = strsep(&at, "\n")); number++) {
        snprintf(where, sizeof(where), "%.300s:%d", path, number);
        size_t len = strcspn(line, "\r");
        if (number == 1 && (len < 6 || strncmp(line + len - 6, "LABELS", 6) != 0))
            return err_data(err,
                            "%s: the last column is not LABELS (kubectl get nodes "
                            "--show-labels)",
                            where);
        if (number > 1 && take_line(n, line, where, err) < 0)
            return -1;
    }
    return 0;
}

/* --- the whole file --- */

static void finish(struct nodes *n)
{
    if (!label_facts_declare(&n->facts, SOURCE_LABEL) && n->facts.hosts)
        topo_unseen(n->t, "labels of places", "none of %d nodes has one that is known",
                    n->facts.hosts);
    if (n->not_readies)
        topo_unseen(n->t, "nodes not ready or cordoned", "%d of %d: %s%s", n->not_readies,
                    n->facts.hosts, n->not_ready, n->not_readies > NAMED ? ", ..." : "");
    if (n->no_clique)
        topo_unseen(n->t, "nvidia.com/gpu.clique",
                    "%d of %d nodes with GPUs have no such label: GPU feature discovery writes it "
                    "once NVLink is registered across hosts",
                    n->no_clique, n->of_gpus);
}

int labels_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                 struct err *err)
{
    struct nodes n = {.t = t, .gpus = t->endpoints == 0};
    int rc;

    (void)host;
    label_facts_begin(&n.facts, t);
    if (len > 5 && !strncmp(text, "NAME ", 5)) {
        char *copy = mem_strndup(text, len);
        rc = take_table(&n, copy, path, err);
        free(copy);
    } else {
        struct yaml y;
        rc = yaml_parse(&y, text, len, path, err);
        if (rc == 0)
            rc = take_list(&n, &y, err);
        yaml_done(&y);
    }
    if (rc == 0)
        finish(&n);
    label_facts_end(&n.facts);
    names_free(&n.seen);
    free(n.not_ready);
    return rc;
}
