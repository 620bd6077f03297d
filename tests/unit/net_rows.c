/* SPDX-License-Identifier: BSD-3-Clause */
/* net_rows.c - the tables of a network in topology.json, there and back, and what is refused. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "test.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/sources/net/ibnet.h"
#include "topo/sources/sources.h"

static const char golden[] = "tests/golden/topology-ibnet.json";
static const char real[] = "../shared/fixtures/ibnetdiscover/example.out";

static void same_net(const struct net *a, const struct net *b)
{
    assert_int_equal(a->nodes, b->nodes);
    for (int i = 0; i < a->nodes; i++) {
        const struct net_node *x = &a->node[i], *y = &b->node[i];
        assert_int_equal(x->kind, y->kind);
        assert_true(x->guid == y->guid);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->ports, y->ports);
        assert_int_equal(x->tier, y->tier);
        assert_int_equal(x->host, y->host);
        assert_string_equal(x->device, y->device);
    }
    assert_int_equal(a->cables, b->cables);
    for (int i = 0; i < a->cables; i++) {
        const struct net_cable *x = &a->cable[i], *y = &b->cable[i];
        assert_true(x->a == y->a && x->b == y->b && x->port_a == y->port_a &&
                    x->port_b == y->port_b);
        assert_true(x->guid_a == y->guid_a && x->guid_b == y->guid_b);
        assert_true(x->lid_a == y->lid_a && x->lid_b == y->lid_b && x->differ == y->differ);
        assert_int_equal(x->width, y->width);
        assert_string_equal(x->speed, y->speed);
        assert_true(x->Bps == y->Bps);
    }
}

/* As a command does it: read, hosts from claims, all that follows. */
static void read_alone(struct topo *t, const char *path)
{
    struct err err;

    topo_init(t);
    if (ibnet_read(t, -1, path, &err) < 0)
        fail_msg("%s", err.text);
    groups_add_hosts(t);
    sources_done(t);
    topo_default_tiers(t);
}

static void parsed(struct topo *t, const char *text)
{
    struct err err;

    if (topo_parse(t, text, strlen(text), "text", &err) < 0)
        fail_msg("%s", err.text);
}

TEST(what_is_saved_is_loaded_again)
{
    struct topo a, b, c;

    read_alone(&a, "tests/fuzz/seeds/ibnet/small.net");
    char *text = topo_text(&a);
    parsed(&b, text);
    same_net(a.net, b.net);
    assert_int_equal(a.declared_groups, b.declared_groups);
    topo_copy(&c, &b);
    same_net(a.net, c.net);
    assert_ptr_not_equal(b.net, c.net);
    free(text);
    topo_free(&a);
    topo_free(&b);
    topo_free(&c);
}

TEST(the_golden_file_is_the_text_that_it_was_made_from)
{
    struct topo a, b;
    struct err err;

    read_alone(&a, "tests/fuzz/seeds/ibnet/small.net");
    if (topo_load(&b, golden, &err) < 0)
        fail_msg("%s", err.text);
    same_net(a.net, b.net);
    assert_int_equal(b.nics, a.nics);
    topo_free(&a);
    topo_free(&b);
}

TEST(a_real_network_stays_small_and_quick)
{
    struct topo a, b;

    if (access(real, R_OK) != 0)
        skip();
    clock_t start = clock(); /* of this process: others may have the core meanwhile */
    read_alone(&a, real);
    char *text = topo_text(&a);
    parsed(&b, text);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    assert_true(strlen(text) < 400000);
    same_net(a.net, b.net);
    free(text);
    topo_free(&a);
    topo_free(&b);
}

/* One cell of the golden file's tables, and the words that must answer it. */
static const struct {
    const char *table;
    int row, column;
    const char *value, *text;
} bad[] = {
    {"net_nodes", 0, 0, "\"hub\"", "net_nodes.rows[0]: kind is \"hub\", not a known word"},
    {"net_nodes", 0, 1, "\"16\"", "guid is \"16\", not a GUID of 16 hexadecimal digits behind 0x"},
    {"net_nodes", 0, 1, "\"0x0000000000000000\"", "which no GUID is"},
    {"net_nodes", 1, 1, "\"0x0000000000000010\"", "net_nodes.rows[1]: the GUID of rows[0] again"},
    {"net_nodes", 0, 2, "7", "net_nodes.rows[0]: name is 7, not a text of fitting length"},
    {"net_nodes", 0, 3, "255", "net_nodes.rows[0]: ports is 255, not a whole number of 0..254"},
    {"net_nodes", 0, 4, "0", "net_nodes.rows[0]: host is 0, which only an hca has"},
    {"net_nodes", 1, 4, "9", "net_nodes.rows[1]: host is 9, not a whole number of 0..0 or null"},
    {"net_nodes", 1, 4, "null", "net_nodes.rows[1]: device is \"mlx5_0\", without a host"},
    {"cables", 0, 0, "5", "cables.rows[0]: a is 5, not a whole number of 0..4"},
    {"cables", 0, 0, "2", "cables.rows[0]: a is 2, not before the other end of the cable"},
    {"cables", 0, 1, "0", "cables.rows[0]: port_a is 0, but ports count from 1"},
    {"cables", 0, 1, "66", "cables.rows[0]: port_a is 66, not a whole number of 0..65"},
    {"cables", 1, 1, "1", "cables.rows[1]: a port of rows[0] again"},
    {"cables", 0, 3, "3", "cables.rows[0]: port_b is 3, not a whole number of 0..2"},
    {"cables", 0, 4, "\"3xNDR\"", "cables.rows[0]: rate is \"3xNDR\", not a width and speed"},
    {"cables", 0, 4, "\"4x\"", "not a width and speed as \"4xNDR\""},
    {"cables", 0, 4, "\"4xndr\"", "not a width and speed"},
    {"cables", 0, 4, "400", "cables.rows[0]: rate is 400, not a text"},
    {"cables", 0, 5, "0", "cables.rows[0]: differ is 0, not true or false"},
    {"cables", 0, 7, "\"22\"", "not a GUID of 16"},
    {"cables", 0, 8, "65536", "cables.rows[0]: lid_a is 65536, not a whole number of 0..65535"},
};

TEST(wrong_cells_are_named)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        json_t *root = json_load_file(golden, 0, NULL);
        json_object_del(root, "checksum");
        json_t *rows = json_object_get(json_object_get(root, bad[i].table), "rows");
        struct err err = {0};
        struct topo t;
        json_array_set_new(json_array_get(rows, (size_t)bad[i].row), (size_t)bad[i].column,
                           json_loads(bad[i].value, JSON_DECODE_ANY, NULL));
        char *text = json_dumps(root, 0);
        assert_int_equal(topo_parse(&t, text, strlen(text), "t", &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].text))
            fail_msg("\"%s\" has no \"%s\"", err.text, bad[i].text);
        free(text);
        json_decref(root);
    }
}

TEST(one_table_without_the_other)
{
    static const char *const tables[] = {"net_nodes", "cables"};

    for (int i = 0; i < 2; i++) {
        json_t *root = json_load_file(golden, 0, NULL);
        json_object_del(root, "checksum");
        struct err err = {0};
        struct topo t;
        json_object_del(root, tables[i]);
        char *text = json_dumps(root, 0);
        assert_int_equal(topo_parse(&t, text, strlen(text), "t", &err), -1);
        assert_non_null(strstr(err.text, i ? "t: \"net_nodes\" without \"cables\""
                                           : "t: \"cables\" without \"net_nodes\""));
        free(text);
        json_decref(root);
    }
}
