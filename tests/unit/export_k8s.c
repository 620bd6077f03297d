/* SPDX-License-Identifier: BSD-3-Clause */
/* export_k8s.c - what Kubernetes and topograph are given keeps to the rules of their schemas. */
#include "export/export_impl.h"
#include "test.h"

#include "exported.h"

/* --- labels --- */

static bool good_value(const char *v)
{
    size_t n = strlen(v);

    return n && n <= 63 &&
           v[strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789-_.")] == '\0' &&
           !strchr("-_.", v[0]) && !strchr("-_.", v[n - 1]);
}

TEST(test_labels)
{
    struct matrix m;
    int count;

    machine(&m, true);
    refused("k8s-labels", &m, NULL, EXIT_UNJUDGED,
            "1 of 17 hosts is not in it, because no place of theirs is known: n16; --partial "
            "writes it all the same");
    char *text = written("k8s-labels", &m, NULL, NULL);
    struct yaml *y = documents(text, &count);
    assert_int_equal(count, 1);
    assert_int_equal(json_array_size(at(y->root, "items")), 16); /* of n16 nothing is known */
    for (size_t i = 0; i < 16; i++) {
        const json_t *node = json_array_get(at(y->root, "items"), i);
        json_t *labels = at(node, "metadata.labels"), *value;
        const char *key;
        assert_string_equal(text_at(node, "kind"), "Node");
        assert_int_equal(json_object_size(labels), 4);
        json_object_foreach(labels, key, value) assert_true(good_value(json_string_value(value)));
    }
    const json_t *labels = at(y->root, "items.4.metadata.labels");
    assert_string_equal(json_string_value(json_object_get(labels, "fabric.topograph.run/tier-0")),
                        "117");
    assert_string_equal(json_string_value(json_object_get(labels, "fabric.topograph.run/tier-1")),
                        "spine-0");
    assert_string_equal(
        json_string_value(json_object_get(labels, "accelerator.topograph.run/sub-domain")), "r2");
    documents_done(y, count);
    free(text);

    text = written("k8s-labels", &m, &(struct export_ask){.release = "0.5", .partial = true}, NULL);
    assert_non_null(strstr(text, "network.topology.nvidia.com/accelerator: x"));
    assert_non_null(strstr(text, "network.topology.nvidia.com/spine: spine-1\n"));
    assert_null(strstr(text, "topograph.run/"));
    assert_non_null(strstr(text, "# left out: rack: topograph has no label for it\n"));
    free(text);
    matrix_free(&m);
}

/* Long names as topograph hashes them; names that become alike stay apart. */
TEST(test_values)
{
    /* What GetTreeTestSet() of topograph 1.0 names a switch, and the value that its labeler_test.go
     * wants for it. */
    static const char *const long_name =
        "S3very-very-long-id-to-check-label-value-limits-of-63-characters";
    static const char *const name[] = {"a b", "a-b", "  a: {b}  ", "..."};
    struct topo t;
    struct k8s k;
    struct err err;

    topo_init(&t);
    add(&t, "N1", NULL, NULL, long_name, NULL);
    for (int i = 0; i < 4; i++)
        add(&t, (char[]){'n', (char)('2' + i), 0}, NULL, NULL, name[i], NULL);
    assert_int_equal(k8s_make(&k, &t, NULL, &err), 0);
    assert_string_equal(k.node[0], "n1");
    assert_string_equal(k.level[0].value[0], "xf946c4acef2d5939");
    assert_string_equal(k.level[0].value[2], "a-b"); /* it needs no change */
    for (int a = 0; a < 5; a++) {
        assert_true(good_value(k.level[0].value[a]));
        for (int b = 0; b < a; b++)
            assert_string_not_equal(k.level[0].value[a], k.level[0].value[b]);
    }
    k8s_free(&k);
    topo_free(&t);
}

static void bad_host(const char *a, const char *b, const char *why)
{
    struct topo t;
    struct matrix m;

    topo_init(&t);
    add(&t, a, NULL, "r", NULL, NULL);
    add(&t, b, NULL, "r", NULL, NULL);
    export_wrap(&m, &t);
    refused("k8s-labels", &m, NULL, EXIT_DATA, why);
    matrix_free(&m);
}

TEST(test_refused)
{
    struct matrix m;
    struct topo t;
    char longest[255], why[512];

    bad_host("node_1", "n",
             "host \"node_1\" cannot be a Kubernetes node: names are RFC 1123 "
             "subdomains (a-z, 0-9, '-' and '.', at most 253 characters)");
    bad_host("n..1", "n",
             "host \"n..1\" cannot be a Kubernetes node: names are RFC 1123 "
             "subdomains (a-z, 0-9, '-' and '.', at most 253 characters)");
    bad_host("n-", "n",
             "host \"n-\" cannot be a Kubernetes node: names are RFC 1123 subdomains "
             "(a-z, 0-9, '-' and '.', at most 253 characters)");
    bad_host("N1", "n1", "two hosts are \"n1\" in lower case, as names of nodes are");
    memset(longest, 'a', 254);
    longest[254] = '\0';
    snprintf(why, sizeof(why),
             "host \"%.100s\" cannot be a Kubernetes node: names are RFC 1123 subdomains (a-z, "
             "0-9, '-' and '.', at most 253 characters)",
             longest);
    bad_host("n", longest, why);

    machine(&m, false);
    refused("kueue", &m, &(struct export_ask){.name = "Rail_Gauge"}, EXIT_USAGE,
            "\"Rail_Gauge\" cannot be the name of an object: names are RFC 1123 subdomains (a-z, "
            "0-9, '-' and '.', at most 253 characters)");
    refused("kueue", &m, &(struct export_ask){.release = "0.8"}, EXIT_USAGE,
            "Kueue 0.8 knows no topologies: they came with 0.9");
    refused("kueue", &m, &(struct export_ask){.release = "24.11"}, EXIT_USAGE,
            "release of Kueue: \"24.11\" is not 0.MINOR");
    matrix_free(&m);

    topo_init(&t);
    add(&t, "a", NULL, NULL, NULL, NULL);
    export_wrap(&m, &t);
    for (const char *const *f =
             (const char *const[]){"k8s-labels", "kueue", "kai", "volcano", "topograph", NULL};
         *f; f++)
        refused(*f, &m, NULL, EXIT_UNJUDGED,
                "no NVLink domain, rack, leaf or spine of these hosts is known");
    matrix_free(&m);
}

/* --- Kueue and KAI --- */

/* Rules of the CRDs: 1..16 levels, each once, hostname last; returns how many. */
static size_t check_levels(const json_t *doc)
{
    const json_t *levels = at(doc, "spec.levels");
    size_t n = json_array_size(levels);

    assert_true(n >= 1 && n <= 16);
    for (size_t i = 0; i < n; i++) {
        const char *key = text_at(json_array_get(levels, i), "nodeLabel");
        assert_true(strlen(key) >= 1 && strlen(key) <= 316);
        assert_int_equal(!strcmp(key, "kubernetes.io/hostname"), i == n - 1);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(key, text_at(json_array_get(levels, k), "nodeLabel"));
    }
    return n;
}

static void check_kueue(const char *text, const char *topology, const char *flavor, size_t levels)
{
    int count;
    struct yaml *y = documents(text, &count);

    assert_int_equal(count, 2);
    assert_string_equal(text_at(y[0].root, "apiVersion"), topology);
    assert_string_equal(text_at(y[0].root, "kind"), "Topology");
    assert_int_equal(check_levels(y[0].root), levels);
    assert_string_equal(text_at(y[1].root, "apiVersion"), flavor);
    assert_string_equal(text_at(y[1].root, "kind"), "ResourceFlavor");
    assert_string_equal(text_at(y[1].root, "spec.topologyName"),
                        text_at(y[0].root, "metadata.name"));
    assert_true(json_object_size(at(y[1].root, "spec.nodeLabels")) >= 1);
    documents_done(y, count);
}

TEST(test_kueue)
{
    struct matrix m;
    int count;

    machine(&m, false);
    char *text = written("kueue", &m, NULL, NULL);
    check_kueue(text, "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta2", 4);
    assert_non_null(strstr(text, "  - nodeLabel: fabric.topograph.run/tier-1\n"
                                 "  - nodeLabel: fabric.topograph.run/tier-0\n"
                                 "  - nodeLabel: accelerator.topograph.run/domain\n"
                                 "  - nodeLabel: kubernetes.io/hostname\n"));
    assert_non_null(strstr(text, "# left out: rack: groups hosts as domain does\n"));
    free(text);
    text = written("kueue", &m, &(struct export_ask){.release = "0.14", .name = "a.b"}, NULL);
    check_kueue(text, "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta1", 4);
    assert_non_null(strstr(text, "  topologyName: a.b\n"));
    free(text);
    text = written("kueue", &m, &(struct export_ask){.release = "0.9"}, NULL);
    check_kueue(text, "kueue.x-k8s.io/v1alpha1", "kueue.x-k8s.io/v1beta1", 4);
    free(text);
    text = written("kai", &m, NULL, NULL);
    struct yaml *y = documents(text, &count);
    assert_int_equal(count, 1);
    assert_string_equal(text_at(y->root, "apiVersion"), "kai.scheduler/v1alpha1");
    assert_int_equal(check_levels(y->root), 4);
    documents_done(y, count);
    free(text);
    matrix_free(&m);

    /* A node without a label would not be seen by Kueue: no level has all of them. */
    machine(&m, true);
    refused("kueue", &m, NULL, EXIT_UNJUDGED,
            "no level groups all hosts: domain: not known of n16");
    matrix_free(&m);
}

/* Racks across leaves: one of the two is left out, and said. */
TEST(test_no_tree)
{
    struct matrix m;
    struct topo t;

    topo_init(&t);
    add(&t, "a", NULL, "r1", "l1", NULL);
    add(&t, "b", NULL, "r1", "l2", NULL);
    add(&t, "c", NULL, "r2", "l2", NULL);
    add(&t, "d", NULL, "r3", "l1", NULL);
    export_wrap(&m, &t);
    char *text = written("volcano", &m, NULL, NULL);
    assert_non_null(
        strstr(text, "# left out: leaf: rack r1 lies in more than one of them, see b\n"));
    assert_null(strstr(text, "tier: 2"));
    free(text);
    text = written("kueue", &m, NULL, NULL); /* there is no label for such racks */
    assert_non_null(strstr(text, "# left out: rack: topograph has no label for it\n"));
    check_kueue(text, "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta2", 2);
    free(text);
    matrix_free(&m);
}

/* --- Volcano --- */

struct hyper {
    const char *name;
    json_int_t tier;
    int parents;
};

TEST(test_volcano)
{
    struct matrix m;
    int count, nodes[16] = {0};
    struct hyper hyper[64];

    machine(&m, true);
    char *text = written("volcano", &m, NULL, NULL);
    struct yaml *y = documents(text, &count);
    assert_int_equal(count, 8 + 4 + 2);
    for (int i = 0; i < count; i++) {
        hyper[i] = (struct hyper){text_at(y[i].root, "metadata.name"),
                                  json_integer_value(at(y[i].root, "spec.tier")), 0};
        assert_true(hyper[i].tier >= 1);
        assert_true(strspn(hyper[i].name, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
                    strlen(hyper[i].name));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(hyper[i].name, hyper[k].name);
    }
    for (int i = 0; i < count; i++) {
        const json_t *members = at(y[i].root, "spec.members"), *member;
        size_t k;
        assert_true(json_array_size(members) >= 1);
        json_array_foreach(members, k, member)
        {
            const char *name = text_at(member, "selector.exactMatch.name");
            assert_int_equal(json_object_size(at(member, "selector")), 1);
            if (!strcmp(text_at(member, "type"), "Node")) {
                nodes[atoi(name + 1)]++;
                continue;
            }
            int child = 0;
            while (child < count && strcmp(hyper[child].name, name) != 0)
                child++;
            assert_true(child < count);
            assert_true(hyper[child].tier < hyper[i].tier);
            hyper[child].parents++;
        }
    }
    for (int h = 0; h < 16; h++)
        assert_int_equal(nodes[h], 1);
    for (int i = 0; i < count; i++)
        assert_int_equal(hyper[i].parents, hyper[i].tier < 3);
    documents_done(y, count);
    free(text);
    matrix_free(&m);
}

/* A host without a domain is a member of its leaf. */
TEST(test_volcano_mixed)
{
    struct matrix m;
    struct topo t;

    topo_init(&t);
    add(&t, "a", "d1", NULL, "same", NULL);
    add(&t, "b", NULL, NULL, "same", NULL);
    add(&t, "c", "d1", NULL, "same", NULL);
    add(&t, "d", "same", NULL, "other", NULL);
    export_wrap(&m, &t);
    char *text = written("volcano", &m, NULL, NULL);
    int count;
    struct yaml *y = documents(text, &count);
    assert_int_equal(count, 4);
    assert_string_equal(text_at(y[2].root, "metadata.name"), "leaf-same");
    assert_int_equal(json_array_size(at(y[2].root, "spec.members")), 2);
    assert_string_equal(text_at(y[2].root, "spec.members.0.type"), "Node");
    assert_string_equal(text_at(y[2].root, "spec.members.0.selector.exactMatch.name"), "b");
    assert_string_equal(text_at(y[2].root, "spec.members.1.type"), "HyperNode");
    assert_string_equal(text_at(y[2].root, "spec.members.1.selector.exactMatch.name"), "d1");
    documents_done(y, count);
    free(text);
    matrix_free(&m);
}
