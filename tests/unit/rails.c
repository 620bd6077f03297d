/* SPDX-License-Identifier: BSD-3-Clause */
/* rails*.c - what NICs are there for, rails and planes, and the values for NCCL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "topo/sources/net/rails.h"

static struct nic *add(struct topo *t, int host, const char *name, enum link_layer layer,
                       double gbit, bool rdma)
{
    struct nic n;

    nic_init(&n, host);
    snprintf(n.name, sizeof(n.name), "%s", name);
    snprintf(n.netdev, sizeof(n.netdev), "net-%.10s", name);
    n.layer = layer;
    n.rate_Bps = gbit * 1e9 / 8;
    n.rdma = rdma;
    n.up = true;
    n.source = SOURCE_SYSFS;
    MEM_PUSH(t->nic, t->nics) = n;
    return &t->nic[t->nics - 1];
}

__attribute__((format(printf, 3, 4))) static void leaf(struct nic *n, enum source source,
                                                       const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(n->leaf, sizeof(n->leaf), fmt, args);
    va_end(args);
    n->leaf_source = source;
}

static void add_gpu(struct topo *t, int host, int nic)
{
    int id = topo_add_endpoint(t, host, ENDPOINT_GPU);

    t->endpoint[id].nic = nic;
}

/* Four hosts, two units of two, eight InfiniBand NICs each near a GPU, one for storage, one
 * Ethernet port. */
static void make_pod(struct topo *t)
{
    char name[16];

    topo_init(t);
    for (int h = 0; h < 4; h++) {
        snprintf(name, sizeof(name), "n%d", h);
        topo_add_host(t, name);
        add(t, h, "eno1", LINK_ETHERNET, 10, false);
        for (int k = 0; k < 8; k++) {
            snprintf(name, sizeof(name), "mlx5_%d", k < 3 ? k : k + 1);
            leaf(add(t, h, name, LINK_INFINIBAND, 400, true), SOURCE_IBNET, "unit%d-leaf%d", h / 2,
                 k);
            add_gpu(t, h, t->nics - 1);
        }
        add(t, h, "mlx5_3", LINK_ETHERNET, 200, true);
    }
}

static struct nic *nic(struct topo *t, int host, const char *name)
{
    for (int i = 0; i < t->nics; i++)
        if (t->nic[i].host == host && !strcmp(t->nic[i].name, name))
            return &t->nic[i];
    fail_msg("no NIC %s", name);
    return NULL;
}

static void same(char *got, const char *want)
{
    if (!want)
        assert_null(got);
    else
        assert_string_equal(got ? got : "(nothing)", want);
    free(got);
}

TEST(a_pod_has_eight_rails_and_its_storage_is_left_out)
{
    struct topo t;

    make_pod(&t);
    nic(&t, 2, "mlx5_5")->up = false;
    rails_find(&t);
    for (int h = 0; h < 4; h++) {
        assert_int_equal(nic(&t, h, "eno1")->use, NIC_MANAGEMENT);
        assert_string_equal(nic(&t, h, "eno1")->why, h == 2 ? "no RDMA, beside 8 that have it"
                                                            : "no RDMA, beside 9 that have it");
        assert_int_equal(nic(&t, h, "mlx5_3")->use, NIC_STORAGE);
        assert_string_equal(nic(&t, h, "mlx5_3")->why,
                            "Ethernet at 25.0 GB/s, compute: InfiniBand at 50.0 GB/s");
        for (int k = 0; k < 8; k++) {
            const struct nic *n = &t.nic[h * 10 + 1 + k];
            assert_int_equal(n->use, NIC_COMPUTE);
            assert_int_equal(n->rail, k);
            assert_int_equal(n->rail_source, SOURCE_IBNET);
            assert_int_equal(n->use_source, SOURCE_SYSFS);
            assert_int_equal(n->plane, -1);
            assert_int_equal(n->plane_source, SOURCE_NONE);
            const struct endpoint *e = &t.endpoint[h * 8 + k];
            assert_int_equal(e->place.at[LEVEL_RAIL], k);
            assert_int_equal(e->source[LEVEL_RAIL], SOURCE_IBNET);
        }
    }
    assert_string_equal(t.group[LEVEL_RAIL].name[7], "rail-7");
    same(rails_ib_hca(&t, 0, false), "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,"
                                     "mlx5_7:1,mlx5_8:1");
    same(rails_ib_hca(&t, 2, false),
         "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_4:1,mlx5_6:1,mlx5_7:1,mlx5_8:1");
    same(rails_ib_hca(&t, 2, true), "=mlx5_0:1:0:0,mlx5_1:1:1:0,mlx5_2:1:2:0,mlx5_4:1:3:0,"
                                    "mlx5_6:1:5:0,mlx5_7:1:6:0,mlx5_8:1:7:0");
    same(rails_socket(&t, 0), "=eno1");
    topo_free(&t);
}

TEST(a_swapped_cable_counts_to_the_rail_that_it_is_on)
{
    struct topo t;

    make_pod(&t);
    leaf(nic(&t, 3, "mlx5_0"), SOURCE_IBNET, "unit1-leaf1");
    leaf(nic(&t, 3, "mlx5_1"), SOURCE_IBNET, "unit1-leaf0");
    /* Two hosts a unit disagree on these leaves: one more decides. */
    int h = topo_add_host(&t, "n4");
    leaf(add(&t, h, "mlx5_0", LINK_INFINIBAND, 400, true), SOURCE_IBNET, "unit1-leaf0");
    leaf(add(&t, h, "mlx5_1", LINK_INFINIBAND, 400, true), SOURCE_IBNET, "unit1-leaf1");
    rails_find(&t);
    assert_int_equal(nic(&t, 3, "mlx5_0")->rail, 1);
    assert_int_equal(nic(&t, 3, "mlx5_1")->rail, 0);
    assert_int_equal(nic(&t, 2, "mlx5_1")->rail, 1);
    assert_int_equal(nic(&t, 4, "mlx5_1")->rail, 1);
    topo_free(&t);
}

TEST(leaves_decide_how_many_rails_there_are)
{
    struct topo t;
    char name[16];

    for (int leaves = 1; leaves <= 2; leaves++) {
        topo_init(&t);
        for (int h = 0; h < 2; h++) {
            topo_add_host(&t, h ? "b" : "a");
            for (int k = 0; k < 4; k++) {
                snprintf(name, sizeof(name), "mlx5_%d", k);
                leaf(add(&t, h, name, LINK_ETHERNET, 400, true), SOURCE_LLDP, "tor-%d",
                     k * leaves / 4);
            }
        }
        rails_find(&t);
        for (int i = 0; i < t.nics; i++)
            assert_int_equal(t.nic[i].rail, leaves == 1 ? -1 : i % 4 / 2);
        if (leaves == 1)
            same(rails_ib_hca(&t, 0, true), NULL);
        assert_int_equal(t.unseens, 0);
        assert_int_equal(t.declared_groups, 1);
        assert_string_equal(t.declared_group[0].name, leaves == 1 ? "tor-0" : "tor-0+tor-1");
        assert_int_equal(t.declared_group[0].hosts, 2);
        assert_int_equal(t.declared_group[0].source, SOURCE_LLDP);
        /* Again: nothing is there twice. */
        rails_find(&t);
        assert_int_equal(t.declared_groups, 1);
        assert_int_equal(t.declared_group[0].hosts, 2);
        topo_free(&t);
    }
}

TEST(without_leaves_rails_are_not_known)
{
    struct topo t;

    make_pod(&t);
    for (int i = 0; i < t.nics; i++)
        leaf(&t.nic[i], SOURCE_NONE, "%s", "");
    rails_find(&t);
    assert_int_equal(nic(&t, 0, "mlx5_8")->rail, -1);
    assert_int_equal(nic(&t, 0, "mlx5_8")->use, NIC_COMPUTE);
    assert_int_equal(t.endpoint[3].place.at[LEVEL_RAIL], -1);
    assert_int_equal(t.unseens, 1);
    assert_string_equal(t.unseen[0].what, "rails");
    same(rails_ib_hca(&t, 0, true), NULL);
    topo_free(&t);
}

/* A port that trains at half its rate is a compute NIC still; a NIC that is so on all hosts is not. */
TEST(a_degraded_port_is_no_storage)
{
    struct topo t;
    char name[16];

    topo_init(&t);
    for (int h = 0; h < 3; h++) {
        topo_add_host(&t, h == 0 ? "a" : h == 1 ? "b" : "c");
        for (int k = 0; k < 5; k++) {
            snprintf(name, sizeof(name), "mlx5_%d", k);
            add(&t, h, name, LINK_INFINIBAND, k == 4 || (h == 1 && k == 2) ? 200 : 400, true);
        }
    }
    rails_find(&t);
    assert_int_equal(nic(&t, 1, "mlx5_2")->use, NIC_COMPUTE);
    assert_string_equal(nic(&t, 1, "mlx5_2")->why,
                        "at 25.0 GB/s where mlx5_2 of most hosts has 50.0 GB/s");
    for (int h = 0; h < 3; h++)
        assert_int_equal(nic(&t, h, "mlx5_4")->use, NIC_STORAGE);
    same(rails_ib_hca(&t, 1, false), "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
    topo_free(&t);
}

/* Descriptions and missing names are no devices: no value is better than one that does not work. */
TEST(only_device_names_are_a_value)
{
    static const char *const names[] = {"HCA-1", "", ":2", "mlx5 0", "5x", "mlx5_0:1"};

    for (int i = 0; i < 6; i++) {
        struct topo t;
        topo_init(&t);
        topo_add_host(&t, "a");
        add(&t, 0, "mlx5_7", LINK_INFINIBAND, 400, true);
        add(&t, 0, names[i], LINK_INFINIBAND, 400, true);
        rails_find(&t);
        same(rails_ib_hca(&t, 0, false), i < 5 ? NULL : "=mlx5_0:1,mlx5_7:1");
        topo_free(&t);
    }
}

TEST(two_ports_of_each_card_are_two_planes)
{
    struct topo t;
    char name[16];

    topo_init(&t);
    for (int h = 0; h < 2; h++) {
        topo_add_host(&t, h ? "b" : "a");
        for (int k = 0; k < 2; k++)
            for (int p = 0; p < 2; p++) {
                snprintf(name, sizeof(name), p ? "mlx5_%d:2" : "mlx5_%d", k);
                leaf(add(&t, h, name, LINK_ETHERNET, 200, true), SOURCE_LLDP, "plane%d-leaf%d", p,
                     k);
            }
    }
    rails_find(&t);
    same(rails_ib_hca(&t, 1, false), "=mlx5_0:1,mlx5_0:2,mlx5_1:1,mlx5_1:2");
    same(rails_ib_hca(&t, 1, true), "=mlx5_0:1:0:0,mlx5_0:2:0:1,mlx5_1:1:1:0,mlx5_1:2:1:1");
    assert_int_equal(nic(&t, 1, "mlx5_0:2")->plane_source, SOURCE_LLDP);
    same(rails_socket(&t, 1), "=net-mlx5_0,net-mlx5_0:2,net-mlx5_1,net-mlx5_1:2");
    topo_free(&t);
    /* Ports that share a leaf somewhere are two ways into one network. */
    topo_init(&t);
    topo_add_host(&t, "a");
    leaf(add(&t, 0, "mlx5_0", LINK_ETHERNET, 200, true), SOURCE_LLDP, "leaf0");
    leaf(add(&t, 0, "mlx5_0:2", LINK_ETHERNET, 200, true), SOURCE_LLDP, "leaf0");
    rails_find(&t);
    assert_int_equal(t.nic[1].plane, -1);
    topo_free(&t);
}

static void add_switch(struct net *n, const char *name, uint64_t guid)
{
    struct net_node x = {.kind = NET_SWITCH, .guid = guid, .ports = 40, .host = -1};

    snprintf(x.name, sizeof(x.name), "%s", name);
    MEM_PUSH(n->node, n->nodes) = x;
}

static void join(struct net *n, int a, int b, int port)
{
    struct net_cable c = {.a = a, .b = b, .port_a = port, .port_b = port, .width = 4};

    snprintf(c.speed, sizeof(c.speed), "NDR");
    net_add_cable(n, c);
}

/* Leaves 0 .. 3; 0 and 1 below one spine, 2 and 3 below another. */
static void make_networks(struct topo *t)
{
    static const char *const name[] = {"A0", "A1", "B0", "B1", "SA", "SB"};

    topo_init(t);
    t->net = mem_calloc(1, sizeof(*t->net));
    for (int i = 0; i < 6; i++)
        add_switch(t->net, name[i], 0x100 + (uint64_t)i);
    join(t->net, 0, 4, 1);
    join(t->net, 1, 4, 2);
    join(t->net, 2, 5, 1);
    join(t->net, 3, 5, 2);
}

TEST(networks_without_a_cable_between_them_are_planes_or_storage)
{
    static const char *const leaves[] = {"A0", "B0", "A1", "B1"};
    struct topo t;
    char name[16];

    make_networks(&t);
    for (int h = 0; h < 2; h++) {
        topo_add_host(&t, h ? "b" : "a");
        for (int k = 0; k < 4; k++) {
            snprintf(name, sizeof(name), "mlx5_%d", k);
            leaf(add(&t, h, name, LINK_INFINIBAND, 400, true), SOURCE_IBNET, "%s", leaves[k]);
        }
    }
    rails_find(&t);
    same(rails_ib_hca(&t, 1, true), "=mlx5_0:1:0:0,mlx5_1:1:0:1,mlx5_2:1:1:0,mlx5_3:1:1:1");
    assert_int_equal(nic(&t, 1, "mlx5_3")->plane_source, SOURCE_IBNET);
    same(rails_nic_text(nic(&t, 1, "mlx5_3")), "compute (sysfs), rail 1 (ibnet), plane 1 (ibnet)");
    topo_free(&t);
    /* One NIC of three in the other network: no plane, whatever its speed. */
    make_networks(&t);
    for (int h = 0; h < 2; h++) {
        topo_add_host(&t, h ? "b" : "a");
        for (int k = 0; k < 3; k++) {
            snprintf(name, sizeof(name), "mlx5_%d", k);
            leaf(add(&t, h, name, LINK_INFINIBAND, 400, true), SOURCE_IBNET, "%s",
                 k == 1   ? "B0"
                 : k == 0 ? "A0"
                          : "A1");
        }
    }
    rails_find(&t);
    assert_int_equal(nic(&t, 1, "mlx5_1")->use, NIC_STORAGE);
    assert_string_equal(nic(&t, 1, "mlx5_1")->why, "on another network than 2 others");
    assert_int_equal(nic(&t, 1, "mlx5_1")->use_source, SOURCE_IBNET);
    same(rails_ib_hca(&t, 1, true), "=mlx5_0:1:0:0,mlx5_2:1:1:0");
    topo_free(&t);
}

TEST(what_the_user_says_stays)
{
    struct topo t;

    make_pod(&t);
    nic(&t, 0, "mlx5_0")->rail = 42;
    nic(&t, 0, "mlx5_0")->plane = 3;
    nic(&t, 0, "mlx5_1")->use = NIC_STORAGE;
    nic(&t, 0, "mlx5_1")->use_source = SOURCE_USER;
    nic(&t, 0, "eno1")->use = NIC_COMPUTE;
    rails_find(&t);
    assert_int_equal(nic(&t, 0, "mlx5_0")->rail, 42);
    assert_int_equal(nic(&t, 0, "mlx5_0")->plane, 3);
    assert_int_equal(nic(&t, 0, "mlx5_1")->use, NIC_STORAGE);
    assert_int_equal(nic(&t, 0, "eno1")->use, NIC_COMPUTE);
    assert_int_equal(nic(&t, 0, "mlx5_1")->use_source, SOURCE_USER);
    topo_free(&t);
    /* A row of a file that names no source is the user's word. */
    make_pod(&t);
    nic(&t, 0, "eno1")->source = SOURCE_NONE;
    rails_find(&t);
    assert_int_equal(nic(&t, 0, "eno1")->use, NIC_MANAGEMENT);
    assert_int_equal(nic(&t, 0, "eno1")->use_source, SOURCE_USER);
    topo_free(&t);
}

TEST(a_slow_or_dead_nic_of_the_compute_kind_stays_one)
{
    struct topo t;

    make_pod(&t);
    for (int i = 0; i < t.nics; i++)
        snprintf(t.nic[i].board, sizeof(t.nic[i].board),
                 !strcmp(t.nic[i].name, "mlx5_3") ? "BF3" : "CX7");
    struct nic *slow = nic(&t, 1, "mlx5_0"), *dead = nic(&t, 1, "mlx5_1");
    slow->rate_Bps /= 2;
    dead->up = false;
    dead->rate_Bps = 10e9 / 8;
    rails_find(&t);
    assert_int_equal(slow->use, NIC_COMPUTE);
    assert_string_equal(slow->why, "nearest to a GPU, at 25.0 GB/s where others have 50.0 GB/s");
    assert_int_equal(dead->use, NIC_COMPUTE);
    assert_string_equal(dead->why, "down; of the compute NICs' link and board");
    topo_free(&t);
}

TEST(hosts_without_rdma_use_their_fastest_ports)
{
    struct topo t;

    topo_init(&t);
    topo_add_host(&t, "a");
    add(&t, 0, "eth0", LINK_ETHERNET, 1, false);
    add(&t, 0, "eth1", LINK_ETHERNET, 25, false);
    add(&t, 0, "eth2", LINK_ETHERNET, 25, false);
    add(&t, 0, "eth3", LINK_ETHERNET, 25, false)->up = false;
    topo_add_host(&t, "b");
    add(&t, 1, "eth0", LINK_ETHERNET, 0, false);
    topo_add_host(&t, "c");
    add(&t, 2, "eth0", LINK_ETHERNET, 0, false);
    add(&t, 2, "eth1", LINK_ETHERNET, 0, false);
    topo_add_host(&t, "d");
    rails_find(&t);
    assert_int_equal(t.nic[0].use, NIC_MANAGEMENT);
    assert_string_equal(t.nic[0].why, "slower than 3.12 GB/s");
    assert_int_equal(t.nic[2].use, NIC_COMPUTE);
    assert_int_equal(t.nic[3].use, NIC_UNKNOWN);
    same(rails_socket(&t, 0), "=eth1,eth2");
    same(rails_ib_hca(&t, 0, false), NULL);
    same(rails_socket(&t, 1), "=eth0");
    assert_int_equal(t.nic[5].use, NIC_UNKNOWN); /* which of the two nobody can say */
    same(rails_socket(&t, 2), NULL);
    same(rails_socket(&t, 3), NULL);
    topo_free(&t);
}

TEST(a_bond_of_storage_ports_is_for_storage)
{
    struct topo t;

    make_pod(&t);
    strcpy(nic(&t, 0, "mlx5_3")->netdev, "ens3f0");
    strcpy(add(&t, 0, "bond0", LINK_ETHERNET, 400, false)->netdev, "ens3f0");
    rails_find(&t);
    assert_int_equal(nic(&t, 0, "bond0")->use, NIC_STORAGE);
    assert_string_equal(nic(&t, 0, "bond0")->why, "its ports are those of mlx5_3");
    same(rails_socket(&t, 0), "=eno1");
    topo_free(&t);
}

TEST(lldp_gives_endpoints_their_leaf)
{
    struct topo t;

    make_pod(&t);
    for (int i = 0; i < t.nics; i++)
        if (t.nic[i].leaf[0])
            t.nic[i].leaf_source = SOURCE_LLDP;
    rails_find(&t);
    assert_string_equal(t.group[LEVEL_LEAF].name[t.endpoint[9].place.at[LEVEL_LEAF]],
                        "unit0-leaf1");
    assert_int_equal(t.endpoint[9].source[LEVEL_LEAF], SOURCE_LLDP);
    assert_int_equal(t.declared_groups, 2); /* a unit each */
    assert_string_equal(t.declared_group[1].host[0], "n2");
    assert_int_equal(t.declared_group[1].hosts, 2);
    assert_int_equal(topo_tier(&t, 0, 8), 1);
    assert_string_equal(t.tier[1].name, "rail");
    topo_free(&t);
}
