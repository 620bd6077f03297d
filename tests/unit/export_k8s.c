/* SPDX-License-Identifier: BSD-3-Clause */
/* What Kubernetes and topograph are given: the rules of their schemas, and what was written read
 * back as the same groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "emit/export.h"
#include "emit/k8s.h"
#include "small.h"
#include "topo/claim.h"
#include "topo/labels.h"
#include "topo/topograph.h"

static const enum level all[] = {LEVEL_DOMAIN, LEVEL_RACK, LEVEL_LEAF, LEVEL_SPINE};

static void put(struct topo *t, int host, enum level level, const char *name)
{
    for (int i = 0; name && i < t->endpoints; i++)
        if (t->endpoint[i].place.at[LEVEL_HOST] == host) {
            t->endpoint[i].place.at[level] = topo_add_group(t, level, name);
            t->endpoint[i].source[level] = SOURCE_USER;
        }
}

/* A host of two GPUs; NULL: not known. */
static int add(struct topo *t, const char *name, const char *domain, const char *rack,
               const char *leaf, const char *spine)
{
    int h = topo_add_host(t, name);

    for (int k = 0; k < 2; k++)
        topo_add_endpoint(t, h, ENDPOINT_GPU);
    put(t, h, LEVEL_DOMAIN, domain);
    put(t, h, LEVEL_RACK, rack);
    put(t, h, LEVEL_LEAF, leaf);
    put(t, h, LEVEL_SPINE, spine);
    return h;
}

/* Eight hosts: two racks a domain, two domains a leaf, two leaves a spine; one more host of which
 * little is known.  Names of groups as people give them. */
static void machine(struct matrix *m, bool stray)
{
    static const char *const leaf[] = {"Leaf 1: \"front\"", "117", "Leaf_3", "true"};
    struct topo t;

    topo_init(&t);
    for (int h = 0; h < 16; h++) {
        char host[16], domain[96], rack[16], spine[16];
        snprintf(host, sizeof(host), "n%02d", h);
        snprintf(domain, sizeof(domain), "%s-%d",
                 "a-domain-whose-name-is-longer-than-the-63-characters-of-a-label-value", h / 2);
        snprintf(rack, sizeof(rack), "r%d", h / 2);
        snprintf(spine, sizeof(spine), "spine/%d", h / 8);
        add(&t, host, domain, rack, leaf[h / 4], spine);
    }
    if (stray)
        add(&t, "n16", NULL, NULL, NULL, NULL);
    export_wrap(m, &t);
}

static char *written(const char *format, const struct matrix *m, const struct export_ask *ask,
                     char **second)
{
    static const struct export_ask none = {0};
    const struct exporter *x = exporter_find(format, NULL);
    char *text = NULL;
    size_t len, len2;
    struct err err = {0, ""};
    FILE *out = open_memstream(&text, &len), *two = second ? open_memstream(second, &len2) : NULL;

    assert_non_null(x);
    int rc = x->write(out, two, m, ask ? ask : &none, &err);
    fclose(out);
    if (two)
        fclose(two);
    if (rc < 0)
        fail_msg("%s: %s", format, err.text);
    return text;
}

static void refused(const char *format, const struct matrix *m, const struct export_ask *ask,
                    int code, const char *why)
{
    static const struct export_ask none = {0};
    char *text = NULL;
    size_t len;
    struct err err = {0, ""};
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(exporter_find(format, NULL)->write(out, NULL, m, ask ? ask : &none, &err), -1);
    fclose(out);
    assert_string_equal(err.text, why);
    assert_int_equal(err.code, code);
    assert_int_equal(len, 0);
    free(text);
}

/* The documents of a file; *count of them. */
static struct yaml *documents(const char *text, int *count)
{
    struct yaml *y = NULL;
    const char *at = text, *end;

    *count = 0;
    do {
        struct err err = {0, ""};
        end = strstr(at, "---\n");
        struct yaml one;
        int rc = yaml_parse(&one, at, end ? (size_t)(end - at) : strlen(at), "out", &err);
        if (rc < 0)
            fail_msg("%s in:\n%s", err.text, at);
        if (json_is_null(one.root))
            yaml_done(&one);
        else
            MEM_PUSH(y, *count) = one;
        at = end ? end + 4 : NULL;
    } while (at);
    return y;
}

static void documents_done(struct yaml *y, int count)
{
    for (int i = 0; i < count; i++)
        yaml_done(&y[i]);
    free(y);
}

/* "spec.levels.0.nodeLabel" */
static json_t *at(const json_t *v, const char *path)
{
    char part[80];

    while (v && *path) {
        size_t n = strcspn(path, ".");
        snprintf(part, sizeof(part), "%.*s", (int)n, path);
        v = json_is_array(v) ? json_array_get(v, (size_t)atol(part)) : json_object_get(v, part);
        path += n + (path[n] == '.');
    }
    return (json_t *)(uintptr_t)v;
}

static const char *text_at(const json_t *v, const char *path)
{
    const char *text = json_string_value(at(v, path));

    if (!text)
        fail_msg("no text at %s", path);
    return text;
}

/* --- labels --- */

static bool good_value(const char *v)
{
    size_t n = strlen(v);

    return n && n <= 63 &&
           v[strspn(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                       "0123456789-_.")] == '\0' &&
           !strchr("-_.", v[0]) && !strchr("-_.", v[n - 1]);
}

static void test_labels(void **state)
{
    (void)state;
    struct matrix m;
    int count;

    machine(&m, true);
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

    text = written("k8s-labels", &m, &(struct export_ask){.release = "0.5"}, NULL);
    assert_non_null(strstr(text, "network.topology.nvidia.com/accelerator: x"));
    assert_non_null(strstr(text, "network.topology.nvidia.com/spine: spine-1\n"));
    assert_null(strstr(text, "topograph.run/"));
    assert_non_null(strstr(text, "# left out: rack: topograph has no label for it\n"));
    free(text);
    matrix_free(&m);
}

/* Long names as topograph hashes them; names that become alike stay apart. */
static void test_values(void **state)
{
    (void)state;
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

static void test_refused(void **state)
{
    (void)state;
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
    for (const char *const *f = (const char *const[]){"k8s-labels", "kueue", "kai", "volcano",
                                                      "topograph", "topograph-model", NULL};
         *f; f++)
        refused(*f, &m, NULL, EXIT_UNJUDGED,
                "no NVLink domain, rack, leaf or spine of these hosts is known");
    matrix_free(&m);

    /* A leaf below two spines is no switch of a model. */
    topo_init(&t);
    add(&t, "a", NULL, NULL, "l", "s1");
    add(&t, "b", NULL, NULL, "l", "s2");
    export_wrap(&m, &t);
    refused("topograph-model", &m, NULL, EXIT_DATA,
            "leaf \"l\" is below the spines \"s1\" and \"s2\": a switch of a model has one parent "
            "(topograph's docs/modeling.md)");
    matrix_free(&m);
    topo_init(&t);
    add(&t, "a[1]", NULL, NULL, "l", NULL);
    export_wrap(&m, &t);
    refused("topograph-model", &m, NULL, EXIT_DATA,
            "host \"a[1]\": brackets and commas are ranges in a model");
    matrix_free(&m);
    topo_init(&t);
    add(&t, "a", NULL, NULL, "x", "x");
    export_wrap(&m, &t);
    refused("topograph-model", &m, NULL, EXIT_DATA,
            "\"x\" is a leaf and its spine: switches of a model have different names");
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

static void test_kueue(void **state)
{
    (void)state;
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
static void test_no_tree(void **state)
{
    (void)state;
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

static void test_volcano(void **state)
{
    (void)state;
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
static void test_volcano_mixed(void **state)
{
    (void)state;
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

/* --- round trips --- */

/* The claims of `back` at a level are the groups of `t`, host by host. */
static void same_groups(const struct topo *t, const struct topo *back, enum level level,
                        bool same_names)
{
    char **name;
    int groups, sets, *of = topo_host_groups(t, level, &name, &groups);
    struct claim_set *s = claim_sets(back, &sets);
    int found = 0;

    for (int i = 0; i < sets; i++) {
        if (s[i].level != level)
            continue;
        found++;
        assert_int_equal(s[i].claims, groups);
        int *is = claim_set_of(&s[i], t);
        for (int a = 0; a < t->hosts; a++) {
            assert_int_equal(of[a] < 0, is[a] < 0);
            if (same_names && of[a] >= 0)
                assert_string_equal(s[i].claim[is[a]]->group, name[of[a]]);
            for (int b = 0; b < a; b++)
                assert_int_equal(of[a] == of[b], is[a] == is[b]);
        }
        free(is);
    }
    assert_int_equal(found, groups > 0);
    claim_sets_free(s, sets);
    hostlist_free(name, groups);
    free(of);
}

typedef int reader(struct topo *t, const char *text, size_t len, const char *path, struct err *err);

static void round_trip(const struct matrix *m, const char *format, const char *release,
                       reader *read, const enum level *level, int levels, bool same_names)
{
    struct export_ask ask = {.release = release};
    char *text = written(format, m, &ask, NULL);
    struct topo back;
    struct err err = {0, ""};

    topo_init(&back);
    if (read(&back, text, strlen(text), "back", &err) < 0)
        fail_msg("%s: %s", format, err.text);
    for (int i = 0; i < levels; i++)
        same_groups(&m->topo, &back, level[i], same_names);
    topo_free(&back);
    free(text);
}

static void test_round_trips(void **state)
{
    (void)state;
    static const enum level old[] = {LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_SPINE};
    static const char *const preset[] = {"gb200-nvl72", "gb300-nvl72", "hgx-h100"};
    struct matrix m;
    struct err err;

    for (int stray = 0; stray < 2; stray++) {
        machine(&m, stray);
        round_trip(&m, "k8s-labels", NULL, labels_parse, all, 4, false);
        round_trip(&m, "k8s-labels", "0.5", labels_parse, old, 3, false);
        round_trip(&m, "topograph-model", NULL, topograph_parse, all, 4, true);
        matrix_free(&m);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(matrix_open(&m, NULL, preset[i], 3, &err), 0);
        round_trip(&m, "topograph-model", NULL, topograph_parse, all, 4, true);
        round_trip(&m, "k8s-labels", "0.5", labels_parse, old, 3, false);
        matrix_free(&m);
    }
    /* A graph has labels and layers: two sets at no level, the same groups. */
    machine(&m, false);
    round_trip(&m, "topograph", NULL, topograph_parse, all, 4, true);
    matrix_free(&m);
}

/* --- costs --- */

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

static void test_costs(void **state)
{
    (void)state;
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

static void test_costs_refused(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_kueue),
        cmocka_unit_test(test_no_tree),       cmocka_unit_test(test_volcano),
        cmocka_unit_test(test_volcano_mixed), cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_costs),         cmocka_unit_test(test_costs_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
