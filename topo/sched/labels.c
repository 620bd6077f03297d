/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sched/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/claim.h"

enum { VALUE_LEN = 255 }; /* of the name of a group in topology.json */

#define AWS "topology.k8s.aws/network-node-layer"
const struct label_rule label_rule[] = {
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
                            const struct label_rule *rule, const char *origin)
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
        claim_add(f->t, source, (enum level)rule->level, origin, words.group[LEVEL_RACK].name[g],
                  group[g].name, group[g].count);
        f->t->claim[f->t->claims - 1].above = rule->above;
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
            topo_unseen(f->t, origin, "said of %d nodes, no place among switches: not kept",
                        f->row[r].facts);
        else
            claim_row_facts(f, &f->row[r], source, rule, origin);
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
