/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/claim.h"

enum { VALUE_LEN = 255 }; /* of the name of a group in topology.json */

#define AWS "topology.k8s.aws/network-node-layer"
const struct label_rule label_rule[] = {
    {"nvidia.com/gpu.clique", LEVEL_DOMAIN, NULL},
    {"accelerator.topograph.run/domain", LEVEL_DOMAIN, NULL},
    {"network.topology.nvidia.com/accelerator", LEVEL_DOMAIN, NULL},
    {"network.topology.kubernetes.io/accelerator", LEVEL_DOMAIN, NULL},
    {"topology.k8s.aws/ultraserver-id", LEVEL_DOMAIN, NULL},
    {"ds.coreweave.com/nvlink.domain", LEVEL_DOMAIN, NULL},
    {"oci.oraclecloud.com/host.gpu_memory_fabric_id", LEVEL_DOMAIN, NULL},

    {"accelerator.topograph.run/sub-domain", LEVEL_RACK, NULL},
    {"cloud.google.com/gce-topology-subblock", LEVEL_RACK, NULL},
    {"oci.oraclecloud.com/host.rack_id", LEVEL_RACK, NULL},
    {"node.coreweave.cloud/rack", LEVEL_RACK, NULL},

    {"fabric.topograph.run/tier-0", LEVEL_LEAF, NULL},
    {"network.topology.nvidia.com/leaf", LEVEL_LEAF, NULL},
    {"network.topology.nvidia.com/block", LEVEL_LEAF, NULL},
    {"network.topology.kubernetes.io/block", LEVEL_LEAF, NULL},
    {AWS "-4", LEVEL_LEAF, AWS},
    {AWS "-3", LEVEL_SPINE, AWS},
    {AWS "-2", LABEL_WIDE, AWS},
    {AWS "-1", LABEL_WIDE, AWS},
    {"oci.oraclecloud.com/rdma.local_block_id", LEVEL_LEAF, NULL},
    {"ib.coreweave.cloud/leafgroup", LEVEL_LEAF, NULL},
    {"backend.coreweave.cloud/leafgroup", LEVEL_LEAF, NULL},

    {"fabric.topograph.run/tier-1", LEVEL_SPINE, NULL},
    {"network.topology.nvidia.com/spine", LEVEL_SPINE, NULL},
    {"network.topology.kubernetes.io/spine", LEVEL_SPINE, NULL},
    {"cloud.google.com/gce-topology-block", LEVEL_SPINE, NULL},
    {"oci.oraclecloud.com/rdma.network_block_id", LEVEL_SPINE, NULL},
    {"oci.oraclecloud.com/host.network_block_id", LEVEL_SPINE, NULL},
    {"ib.coreweave.cloud/superpod", LEVEL_SPINE, NULL},

    {"fabric.topograph.run/tier-2", LABEL_WIDE, NULL},
    {"fabric.topograph.run/tier-3", LABEL_WIDE, NULL},
    {"network.topology.nvidia.com/core", LABEL_WIDE, NULL},
    {"network.topology.nvidia.com/datacenter", LABEL_WIDE, NULL},
    {"network.topology.kubernetes.io/datacenter", LABEL_WIDE, NULL},
    {"topology.k8s.aws/capacity-block-id", LABEL_WIDE, NULL},
    {"oci.oraclecloud.com/rdma.hpc_island_id", LABEL_WIDE, NULL},
    {"ib.coreweave.cloud/fabric", LABEL_WIDE, NULL},
    {"backend.coreweave.cloud/fabric", LABEL_WIDE, NULL},
    {"topology.kubernetes.io/zone", LABEL_WIDE, NULL},
};
const int label_rules = sizeof(label_rule) / sizeof(*label_rule);

void label_facts_begin(struct label_facts *f, struct topo *t)
{
    *f = (struct label_facts){t, mem_calloc((size_t)label_rules, sizeof(*f->row)), 0, t->hosts};
}

void label_facts_end(struct label_facts *f)
{
    for (int r = 0; r < label_rules; r++) {
        for (int i = 0; i < f->row[r].facts; i++) {
            free(f->row[r].fact[i].host);
            free(f->row[r].fact[i].value);
        }
        free(f->row[r].fact);
    }
    free(f->row);
}

/* GPU feature discovery writes a UUID of zeros where NVLink is registered with nothing. */
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
    if (!no_domain(key, text)) {
        struct label_row *to = &f->row[row];
        MEM_PUSH(to->fact, to->facts) = (struct label_fact){mem_strdup(host), mem_strdup(text)};
    }
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
    for (int r = 0; r < label_rules; r++) {
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

/* Facts of one row as groups in the order in which they appear. */
static void claim_row_facts(struct label_facts *f, const struct label_row *row, enum source source,
                            enum level level, const char *origin)
{
    struct topo words; /* interns values */
    struct hosts {
        char **name;
        int count;
    } *group = NULL;
    int groups = 0;

    topo_init(&words);
    for (int i = 0; i < row->facts; i++) {
        int g = topo_add_group(&words, LEVEL_RACK, row->fact[i].value);
        if (g == groups)
            MEM_PUSH(group, groups) = (struct hosts){NULL, 0};
        MEM_PUSH(group[g].name, group[g].count) = row->fact[i].host;
    }
    for (int g = 0; g < groups; g++) {
        claim_add(f->t, source, level, origin, words.group[LEVEL_RACK].name[g], group[g].name,
                  group[g].count);
        free(group[g].name);
    }
    free(group);
    topo_free(&words);
}

int label_facts_claim(struct label_facts *f, enum source source)
{
    int told = 0;

    for (int r = 0; r < label_rules; r++) {
        const struct label_rule *rule = &label_rule[r];
        const char *origin = rule->origin ? rule->origin : rule->key;
        if (!f->row[r].facts)
            continue;
        told++;
        if (rule->level == LABEL_WIDE)
            topo_unseen(f->t, origin, "said of %d nodes, wider than a spine: not kept",
                        f->row[r].facts);
        else
            claim_row_facts(f, &f->row[r], source, (enum level)rule->level, origin);
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
