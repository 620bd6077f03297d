/* SPDX-License-Identifier: BSD-3-Clause */
/* Labels of Kubernetes nodes as claims: each family from a recording, host names, states of nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "test.h"
#include "topo/groups.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/sched/labels_impl.h"

#define SEEDS "tests/fuzz/seeds/labels/"

/* "x: a,b; y: c" of one set of claims, "" when there is none; the caller frees. */
static char *groups(const struct topo *t, enum level level, const char *origin)
{
    char *text = mem_strdup("");

    for (int i = 0; i < t->declared_groups; i++) {
        const struct declared_group *c = &t->declared_group[i];
        if (c->level != level || c->above || strcmp(c->origin, origin) != 0)
            continue;
        assert_int_equal(c->source, SOURCE_LABEL);
        char *hosts = hostlist_fold(c->host, c->hosts);
        char *more = mem_printf("%s%s%s: %s", text, *text ? "; " : "", c->name, hosts);
        free(hosts);
        free(text);
        text = more;
    }
    return text;
}

TEST(test_families)
{
    static const struct {
        const char *file;
        enum level level;
        const char *origin, *groups;
    } row[] = {
        {"topograph.json", LEVEL_DOMAIN, "accelerator.topograph.run/domain",
         "nvl-0: gb[00-01]; nvl-1: gb[02-03]; nvl-2: gb[04-05]; nvl-3: gb[06-07]"},
        {"topograph.json", LEVEL_DOMAIN, "nvidia.com/gpu.clique",
         "9cf14c0a-3b7e-4d59-a1c2-57e0b1a2c3d4.0: gb[00-01]; "
         "9cf14c0a-3b7e-4d59-a1c2-57e0b1a2c3d4.1: gb[02-03]; "
         "9cf14c0a-3b7e-4d59-a1c2-57e0b1a2c3d4.2: gb[04-05]; "
         "9cf14c0a-3b7e-4d59-a1c2-57e0b1a2c3d4.3: gb[06-07]"},
        {"topograph.json", LEVEL_RACK, "accelerator.topograph.run/sub-domain",
         "rack-0: gb[00-01]; rack-1: gb[02-03]; rack-2: gb[04-05]; rack-3: gb[06-07]"},
        {"topograph.json", LEVEL_LEAF, "fabric.topograph.run/tier-0",
         "leaf-0: gb[00-01]; leaf-1: gb[02-03]; leaf-2: gb[04-05]; leaf-3: gb[06-07]"},
        {"topograph.json", LEVEL_SPINE, "fabric.topograph.run/tier-1",
         "spine-0: gb[00-03]; spine-1: gb[04-07]"},
        {"topograph-old.json", LEVEL_DOMAIN, "network.topology.nvidia.com/accelerator",
         "nvl0: h[0-1]; nvl1: h[2-3]"},
        {"topograph-old.json", LEVEL_LEAF, "network.topology.nvidia.com/leaf",
         "sw0: h[0-1]; sw1: h[2-3]"},
        {"topograph-old.json", LEVEL_SPINE, "network.topology.nvidia.com/spine", "s1: h[0-3]"},
        /* Layer 3 is the leaf of the first four nodes and the spine of those that have a layer 4.
         */
        {"aws.json", LEVEL_LEAF, "topology.k8s.aws/network-node-layer",
         "nn-ccc0: ip-10-0-0-0.ec2.internal; nn-ccc1: ip-10-0-0-1.ec2.internal; nn-ccc2: "
         "ip-10-0-0-2.ec2.internal; nn-ccc3: ip-10-0-0-3.ec2.internal; nn-ddd0: "
         "ip-10-0-0-4.ec2.internal,ip-10-0-0-5.ec2.internal; nn-ddd1: ip-10-0-0-6.ec2.internal"},
        {"aws.json", LEVEL_SPINE, "topology.k8s.aws/network-node-layer",
         "nn-bbb0: ip-10-0-0-0.ec2.internal,ip-10-0-0-1.ec2.internal; nn-bbb1: "
         "ip-10-0-0-2.ec2.internal,ip-10-0-0-3.ec2.internal; nn-ccc9: "
         "ip-10-0-0-4.ec2.internal,ip-10-0-0-5.ec2.internal,ip-10-0-0-6.ec2.internal"},
        {"aws.json", LEVEL_DOMAIN, "topology.k8s.aws/ultraserver-id",
         "us-1: ip-10-0-0-4.ec2.internal,ip-10-0-0-5.ec2.internal,ip-10-0-0-6.ec2.internal"},
        {"gcp.json", LEVEL_RACK, "cloud.google.com/gce-topology-subblock",
         "s0: gke-[0-1]; s1: gke-[2-3]; s2: gke-[4-5]"},
        {"gcp.json", LEVEL_SPINE, "cloud.google.com/gce-topology-block",
         "b0: gke-[0-3]; b1: gke-[4-5]"},
        {"oci.json", LEVEL_LEAF, "oci.oraclecloud.com/rdma.local_block_id",
         "l0: 10.0.10.[0-1]; l1: 10.0.10.[2-3]"},
        {"oci.json", LEVEL_SPINE, "oci.oraclecloud.com/rdma.network_block_id", "n1: 10.0.10.[0-3]"},
        {"oci.json", LEVEL_RACK, "oci.oraclecloud.com/host.rack_id",
         "r0: 10.0.10.[0-1]; r1: 10.0.10.[2-3]"},
        {"nebius.json", LEVEL_LEAF, "topology.nebius.com/tier-1",
         "leaf-0: n[0-1]; leaf-1: n[2-3]; leaf-2: n[4-5]; leaf-3: n[6-7]"},
        {"nebius.json", LEVEL_SPINE, "topology.nebius.com/tier-2",
         "spine-0: n[0-3]; spine-1: n[4-7]"},
        /* The two families of CoreWeave disagree, and both are kept. */
        {"coreweave.json", LEVEL_LEAF, "ib.coreweave.cloud/leafgroup",
         "0: g[000000-000001]; 1: g[000002-000003]"},
        {"coreweave.json", LEVEL_LEAF, "backend.coreweave.cloud/leafgroup",
         "0: g[000000-000002]; 1: g000003"},
        {"coreweave.json", LEVEL_SPINE, "ib.coreweave.cloud/superpod", "1: g[000000-000003]"},
        {"coreweave.json", LEVEL_RACK, "node.coreweave.cloud/rack",
         "100: g[000000-000001]; 101: g[000002-000003]"},
        {"coreweave.json", LEVEL_DOMAIN, "ds.coreweave.com/nvlink.domain",
         "d0: g[000000-000001]; d1: g[000002-000003]"},
        {"table.txt", LEVEL_DOMAIN, "nvidia.com/gpu.clique", "1f.0: n[1-2]"},
        {"table.txt", LEVEL_LEAF, "fabric.topograph.run/tier-0", "leaf-1: n[1-2]"},
        {"node.yaml", LEVEL_RACK, "node.coreweave.cloud/rack", "117: n7.example.org"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct topo t;
        struct err err;
        char *path = mem_printf(SEEDS "%s", row[i].file);
        topo_init(&t);
        assert_int_equal(host_read(&t, -1, path, YAML_BYTES, labels_parse, &err), 0);
        char *is = groups(&t, row[i].level, row[i].origin);
        assert_string_equal(is, row[i].groups);
        free(is);
        free(path);
        topo_free(&t);
    }
}

static const char *why(const struct topo *t, const char *what)
{
    for (int i = 0; i < t->unseens; i++)
        if (!strcmp(t->unseen[i].what, what))
            return t->unseen[i].why;
    return "";
}

/* Nodes that take no work are told, GPUs become endpoints, what is not told stays not told. */
TEST(test_nodes)
{
    struct topo t;
    struct err err;

    topo_init(&t);
    assert_int_equal(host_read(&t, -1, SEEDS "table.txt", YAML_BYTES, labels_parse, &err), 0);
    assert_string_equal(why(&t, "nodes not ready or cordoned"), "2 of 4: n2 (cordoned), n3");
    assert_int_equal(t.hosts, 3); /* n4 has no GPU that is known of */
    assert_int_equal(t.endpoints, 12);
    assert_int_equal(t.endpoint[0].kind, ENDPOINT_GPU);
    assert_int_equal(t.endpoint[0].source[LEVEL_HOST], SOURCE_LABEL);
    groups_apply(&t);
    int n1 = t.endpoint[0].place.at[LEVEL_DOMAIN], n3 = t.endpoint[8].place.at[LEVEL_DOMAIN];
    assert_int_equal(n1, 0);
    assert_int_equal(n3, -1); /* a UUID of zeros is no domain */
    assert_int_equal(t.endpoint[8].place.at[LEVEL_LEAF], -1);
    topo_free(&t);

    topo_init(&t);
    assert_int_equal(host_read(&t, -1, SEEDS "node.yaml", YAML_BYTES, labels_parse, &err), 0);
    assert_int_equal(t.endpoints, 8); /* by capacity */
    assert_string_equal(t.endpoint[7].model, "NVIDIA-H200");
    assert_string_equal(why(&t, "nvidia.com/gpu.clique"),
                        "1 of 1 nodes with GPUs have no such label: GPU feature discovery writes "
                        "it once NVLink is registered across hosts");
    topo_free(&t);
}

/* Hosts that were looked at keep their names and their endpoints. */
TEST(test_known_hosts)
{
    static const char text[] =
        "kind: List\nitems:\n"
        "- {kind: Node, metadata: {name: n1.example.org, labels: {node.coreweave.cloud/rack: r, "
        "nvidia.com/gpu.count: '8'}}}\n"
        "- {kind: Node, metadata: {name: ip-1, labels: {node.coreweave.cloud/rack: r, "
        "kubernetes.io/hostname: n2}}}\n"
        "- {kind: Node, metadata: {name: n3.example.org, labels: {node.coreweave.cloud/rack: r}}}\n"
        "- {kind: Node, metadata: {name: n4}}\n";
    struct topo t;
    struct err err;

    topo_init(&t);
    for (const char *n = "12"; *n; n++)
        topo_add_endpoint(&t, topo_add_host(&t, (char[]){'n', *n, 0}), ENDPOINT_GPU);
    assert_int_equal(labels_parse(&t, -1, text, sizeof(text) - 1, "nodes.yaml", &err), 0);
    assert_int_equal(t.endpoints, 2);
    char *is = groups(&t, LEVEL_RACK, "node.coreweave.cloud/rack");
    assert_string_equal(is, "r: n[1-2],n3.example.org");
    free(is);
    topo_free(&t);
}
