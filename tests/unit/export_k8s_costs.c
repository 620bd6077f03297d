/* SPDX-License-Identifier: BSD-3-Clause */
/* export_k8s_costs.c - costs of network tiers, by what was measured. */
#include "test.h"

#include "exported.h"
#include "small.h"

/* Two spines of two racks; between spines a quarter of the bandwidth, one pair of racks slower. */
static void costs(struct matrix *m)
{
    matrix_init(m);
    m->transport = mem_strdup("sim");
    topo_init(&m->topo);
    for (int h = 0; h < 8; h++) {
        char host[8], rack[8], spine[8];
        snprintf(host, sizeof(host), "n%d", h);
        snprintf(rack, sizeof(rack), "r%d", h / 2);
        snprintf(spine, sizeof(spine), "s%d", h / 4);
        add(&m->topo, host, NULL, rack, NULL, spine);
    }
    small_tier(m, "rack", 1u << LEVEL_RACK, 0, 40e9, true);
    small_tier(m, "spine", 1u << LEVEL_SPINE, 0, 20e9, true);
    small_tier(m, "fabric", 0, 0, 10e9, true);
    small_exception(m, PART_RACK_PAIR, 2, 3, 1, 0.8);
}

static json_int_t cost(const struct yaml *y, const char *path)
{
    const json_t *v = at(y->root, path);

    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

TEST(test_costs)
{
    struct matrix m;
    char *labels = NULL;
    int count;

    costs(&m);
    char *text = written("network-topology", &m, NULL, &labels);
    struct yaml *y = documents(text, &count);
    assert_int_equal(count, 1);
    const json_t *list = at(y->root, "spec.weights.0.topologyList");
    assert_string_equal(text_at(y->root, "spec.weights.0.name"), "UserDefined");
    assert_string_equal(text_at(y->root, "spec.configmapName"), "railgauge");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_at(list, "0.topologyKey"), "topology.kubernetes.io/region");
    assert_string_equal(text_at(list, "1.topologyKey"), "topology.kubernetes.io/zone");
    assert_string_equal(text_at(list, "0.originList.0.origin"), "s0");
    assert_string_equal(text_at(list, "0.originList.0.costList.0.destination"), "s1");
    /* Between spines a pair takes longest; inside a spine half of that, the slow pair 1 / 0.8 of
     * the half.  80 Gbit/s are 10 GB/s. */
    assert_int_equal(cost(y, "spec.weights.0.topologyList.0.originList.0.costList.0.networkCost"),
                     100);
    assert_string_equal(text_at(list, "0.originList.0.costList.0.bandwidthCapacity"), "80000M");
    assert_int_equal(json_array_size(at(list, "1.originList")), 4);
    for (int i = 0; i < 4; i++) {
        char path[160];
        snprintf(path, sizeof(path), "1.originList.%d.origin", i);
        const char *from = text_at(list, path);
        bool slow = from[1] >= '2';
        snprintf(path, sizeof(path), "1.originList.%d.costList", i);
        assert_int_equal(json_array_size(at(list, path)), 1); /* zones of other regions are not */
        snprintf(path, sizeof(path), "1.originList.%d.costList.0.destination", i);
        const char *to = text_at(list, path);
        assert_int_equal(from[1] ^ 1, to[1]);
        snprintf(path, sizeof(path),
                 "spec.weights.0.topologyList.1.originList.%d.costList.0.networkCost", i);
        assert_int_equal(cost(y, path), slow ? 63 : 50);
        snprintf(path, sizeof(path), "1.originList.%d.costList.0.bandwidthCapacity", i);
        assert_string_equal(text_at(list, path), slow ? "128000M" : "160000M");
    }
    documents_done(y, count);
    y = documents(labels, &count);
    assert_int_equal(json_array_size(at(y->root, "items")), 8);
    const json_t *last = at(y->root, "items.7.metadata.labels");
    assert_string_equal(json_string_value(json_object_get(last, "topology.kubernetes.io/zone")),
                        "r3");
    assert_string_equal(json_string_value(json_object_get(last, "topology.kubernetes.io/region")),
                        "s1");
    documents_done(y, count);
    free(text);
    free(labels);
    matrix_free(&m);
}

TEST(test_costs_refused)
{
    struct matrix m;
    struct topo t;
    char host[16], rack[16];

    machine(&m, false); /* places, and not a number */
    refused("network-topology", &m, NULL, EXIT_UNJUDGED,
            "no time between two zones is known, each a domain");
    matrix_free(&m);

    topo_init(&t);
    add(&t, "a", NULL, "r", NULL, NULL);
    add(&t, "b", NULL, "r", NULL, NULL);
    export_wrap(&m, &t);
    refused("network-topology", &m, NULL, EXIT_UNJUDGED,
            "one rack holds all hosts: there is no cost between zones");
    matrix_free(&m);

    matrix_init(&m);
    m.transport = mem_strdup("sim");
    topo_init(&m.topo);
    for (int h = 0; h < 400; h++) {
        snprintf(host, sizeof(host), "n%03d", h);
        snprintf(rack, sizeof(rack), "r%03d", h / 2);
        add(&m.topo, host, NULL, rack, NULL, NULL);
    }
    small_tier(&m, "fabric", 0, 1e-6, 10e9, true);
    refused("network-topology", &m, NULL, EXIT_DATA,
            "39800 costs between 200 zones make an object of about 3.2 MiB: etcd takes 1.5 MiB");
    matrix_free(&m);
}
