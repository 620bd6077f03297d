/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict/explain.c - the way of a pair, with as much knowledge as there is. */
#include <stdlib.h>

#include "test.h"

#include "base/file.h"
#include "small.h"
#include "topo/gpu.h"
#include "topo/net.h"
#include "topo/nic.h"
#include "verdict/explain.h"

enum { HOSTS = 4, GPUS = 4 };

/* Hosts of four GPUs with a NIC each, a leaf for two hosts, two spines with two cables each. */
static void machine(struct matrix *m)
{
    struct topo *t = &m->topo;

    matrix_init(m);
    small_topo(t, 2, HOSTS / 2, GPUS, true, ENDPOINT_GPU);
    for (int i = 0; i < t->endpoints; i++) {
        struct gpu g;
        struct nic n;
        gpu_init(&g);
        g.host = i / GPUS;
        g.index = i % GPUS;
        snprintf(g.busid, sizeof(g.busid), "0000:%02x:00.0", 0x10 + g.index);
        g.pcie_gen = g.pcie_gen_max = 5;
        g.pcie_width = g.pcie_width_max = 16;
        g.paths = GPUS;
        for (int k = 0; k < GPUS; k++)
            g.path[k] = k == g.index ? PATH_SELF : (k ^ g.index) == 1 ? PATH_PIX : PATH_SYS;
        MEM_PUSH(t->gpu, t->gpus) = g;
        memcpy(t->endpoint[i].busid, g.busid, sizeof(g.busid));
        nic_init(&n, g.host);
        snprintf(n.name, sizeof(n.name), "mlx5_%d", g.index);
        snprintf(n.leaf, sizeof(n.leaf), "leaf-%d", g.host / 2);
        snprintf(n.leaf_port, sizeof(n.leaf_port), "%d", i + 1);
        n.layer = LINK_INFINIBAND;
        n.rate_Bps = 50e9;
        n.up = n.rdma = true;
        n.numa = t->endpoint[i].numa = g.index / 2;
        t->endpoint[i].nic = t->nics;
        MEM_PUSH(t->nic, t->nics) = n;
    }
    topo_link_gpus(t);
    small_tier(m, "host", 1u << LEVEL_HOST, 1e-6, 40e9, false);
    small_tier(m, "fabric", 0, 5e-6, 45e9, true);
}

static void add_net(struct topo *t)
{
    t->net = mem_calloc(1, sizeof(*t->net));
    for (int i = 0; i < 4; i++) {
        struct net_node n = {.kind = NET_SWITCH, .tier = i / 2, .host = -1};
        snprintf(n.name, sizeof(n.name), i < 2 ? "leaf-%d" : "spine-%d", i % 2);
        MEM_PUSH(t->net->node, t->net->nodes) = n;
    }
    for (int leaf = 0; leaf < 2; leaf++)
        for (int spine = 2; spine < 4; spine++)
            for (int k = 0; k < 2; k++)
                MEM_PUSH(t->net->cable, t->net->cables) = (struct net_cable){
                    .a = leaf, .b = spine, .width = 4, .speed = "HDR", .Bps = 25e9};
}

static bool says(const struct texts *t, const char *part)
{
    for (int i = 0; i < t->count; i++)
        if (strstr(t->text[i], part))
            return true;
    return false;
}

TEST(a_way_across_spines_has_every_hop)
{
    struct explain e;
    struct matrix m;

    machine(&m);
    add_net(&m.topo);
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 3 * GPUS + 1);
    static const char *const want[] = {"n00 GPU 0, PCIe to its NIC",  "n00 mlx5_0 (InfiniBand)",
                                       "leaf leaf-0 port 1",          "spine-0 or another spine",
                                       "leaf leaf-1 port 14",         "n03 mlx5_1 (InfiniBand)",
                                       "n03 GPU 1, PCIe from its NIC"};
    assert_int_equal(e.hops, 7);
    for (int i = 0; i < 7; i++)
        assert_string_equal(e.hop[i].text, want[i]);
    assert_true(e.hop[3].Bps == 100e9);
    assert_string_equal(e.hop[3].basis,
                        "4 cables of HDR up, 4 of HDR down, shared by the whole leaf");
    assert_true(fabs(e.hop[0].Bps / 63.0e9 - 1) < 0.01);
    assert_int_equal(e.narrowest, 1);
    assert_string_equal(e.tier, "fabric");
    assert_true(e.inferred && fabs(e.share - 0.9) < 0.01);
    assert_int_equal(e.odd.count, 0);
    assert_int_equal(e.unseen.count, 0);
    explain_free(&e);
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, GPUS); /* on one leaf */
    assert_int_equal(e.hops, 5);
    explain_free(&e);
    matrix_free(&m);
}

TEST(this_pairs_own_measurements_come_first)
{
    const struct obs_more more = {.n = 80};
    const struct obs o[] = {
        {.op = OP_PAIR_BW,
         .src = 0,
         .dst = 8,
         .bytes = 64e6,
         .sec = 64e6 / 30e9,
         .of.more = &more,
         .n = 5,
         .alone = true},
        {.op = OP_PAIR_BW,
         .src = 8,
         .dst = 0,
         .bytes = 64e6,
         .sec = 64e6 / 44e9,
         .of.more = &more,
         .n = 5,
         .alone = true},
        {.op = OP_PAIR_BW, .src = 0, .dst = 9, .bytes = 64e6, .sec = 64e6 / 44e9}};
    struct explain e;
    struct matrix m;

    machine(&m);
    small_exception(&m, PART_ENDPOINT, 0, -1, 1, 0.6)->side = SIDE_TX;
    explain_pair(&e, &m, &m.topo, o, 3, 0, 8);
    assert_false(e.inferred);
    assert_true(fabs(e.Bps / 30e9 - 1) < 1e-9);
    assert_true(fabs(e.share - 0.6) < 1e-9);
    assert_true(says(&e.odd, ": 60 % of normal: test"));
    assert_true(says(&e.unseen, "no network was read"));
    assert_int_equal(e.measured[0].n, 80);
    json_t *json = explain_json(&e, &m.topo, NULL);
    assert_string_equal(json_string_value(json_object_get(json, "dst_host")), "n02");
    json_decref(json);
    explain_free(&e);
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 8); /* expected: the tier's less the slow part */
    assert_true(e.inferred && fabs(e.Bps / 27e9 - 1) < 0.01);
    explain_free(&e);
    matrix_free(&m);
}

TEST(what_is_odd_about_the_devices_is_said)
{
    struct explain e;
    struct matrix m;

    machine(&m);
    struct topo *t = &m.topo;
    t->gpu[8].pcie_width = 4;
    t->endpoint[8].numa = 1;
    t->nic[8].rate_Bps = 12.5e9;
    snprintf(t->host[2].gdr, sizeof(t->host[2].gdr), "none");
    explain_pair(&e, &m, t, NULL, 0, 0, 8);
    assert_true(says(&e.odd, "n02 GPU 0: PCIe x4 of x16"));
    assert_true(says(&e.odd, "n02 GPU 0: its NIC mlx5_0 is on NUMA node 0 and the GPU on 1"));
    assert_true(says(&e.odd, "n02 mlx5_0: 100 Gb/s where 3 others have 400"));
    assert_true(says(&e.odd, "n02: no GPUDirect RDMA"));
    assert_string_equal(e.hop[e.narrowest].text, "n02 mlx5_0 (InfiniBand)");
    assert_false(says(&e.odd, "virtual machine"));
    explain_free(&e);
    explain_pair(&e, &m, t, NULL, 0, 4, 12); /* two others: nothing is odd about them */
    assert_int_equal(e.odd.count, 0);
    explain_free(&e);
    matrix_free(&m);
}

TEST(a_flattened_virtual_machine_is_recognised)
{
    struct explain e;
    struct matrix m;

    machine(&m);
    for (int i = 0; i < GPUS; i++)
        for (int k = 0; k < GPUS; k++)
            m.topo.gpu[i].path[k] = i == k ? PATH_SELF : PATH_PHB;
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 1);
    assert_true(says(&e.odd, "n00: all paths of its GPUs are PHB and the bridges are hidden: a "
                             "virtual machine; NCCL needs NCCL_TOPO_FILE"));
    assert_string_equal(e.hop[1].text, "the CPU's PCIe host bridge (PHB)");
    explain_free(&e);
    explain_pair(&e, &m, &m.topo, NULL, 0, GPUS, GPUS + 1);
    assert_int_equal(e.odd.count, 0);
    assert_string_equal(e.hop[1].text, "one PCIe switch (PIX)");
    explain_free(&e);
    matrix_free(&m);
}

/* The recorded campaign of 2 hosts, its dump of NCCL's topology with every PCIe path called `path`
 * (NULL: as it is). */
static void dumped(struct matrix *m, const char *path)
{
    static const char *const type[] = {"[\"PIX\"", "[\"PXN\""};
    struct err err = {0};
    char *text;
    size_t len;

    if (file_read(&text, &len, "tests/golden/topology-nccl.json", 1 << 20, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; path && i < 2; i++)
        for (char *at = text; (at = strstr(at, type[i])); at++)
            memcpy(at + 2, path, 3);
    char *sealed = seal_text(text, len, &len);
    matrix_init(m);
    if (topo_parse(&m->topo, sealed, len, "golden", &err) < 0)
        fail_msg("%s", err.text);
    m->topo.tiers = 0;
    small_tier(m, "host", 1u << LEVEL_HOST, 1e-6, 40e9, false);
    small_tier(m, "fabric", 0, 5e-6, 45e9, true);
    free(sealed);
    free(text);
}

TEST(what_nccl_assumes_is_called_that)
{
    struct explain e;
    struct matrix m;

    dumped(&m, NULL);
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 1);
    assert_true(fabs(e.nccl / 370.8e9 - 1) < 1e-9); /* 18 links as NCCL counts them */
    assert_true(says(&e.odd, "measured 40.0 GB/s where NCCL assumes 370.8"));
    assert_false(says(&e.odd, "virtual machine"));
    json_t *json = explain_json(&e, &m.topo, NULL);
    assert_true(json_number_value(json_object_get(json, "nccl_Bps")) == e.nccl);
    json_decref(json);
    explain_free(&e);
    explain_pair(&e, &m, &m.topo, NULL, 0, 8, 9); /* the host that wrote no dump */
    assert_true(e.nccl == 0);
    explain_free(&e);
    matrix_free(&m);
}

TEST(a_dump_of_nccl_shows_a_flattened_machine)
{
    struct explain e;
    struct matrix m;

    dumped(&m, "PHB");
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 1);
    assert_true(says(&e.odd, "n0: all paths of its GPUs and NICs are PHB and the bridges are "
                             "hidden: a virtual machine"));
    explain_free(&e);
    explain_pair(&e, &m, &m.topo, NULL, 0, 8, 9);
    assert_false(says(&e.odd, "virtual machine"));
    explain_free(&e);
    matrix_free(&m);
}

TEST(nothing_known_is_said_so)
{
    struct explain e;
    struct matrix m;

    matrix_init(&m);
    small_topo(&m.topo, 2, 2, 1, false, ENDPOINT_GPU);
    small_tier(&m, "fabric", 0, 5e-6, 45e9, true);
    for (int d = 0; d < DIR_COUNT; d++)
        curve_free(&m.tier[0].curve[d]);
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 3);
    assert_int_equal(e.narrowest, -1);
    assert_true(isnan(e.share));
    assert_true(says(&e.unseen, "the NIC of n00 GPU 0: none was seen near it"));
    assert_true(says(&e.unseen, "switches: no leaf is known of either"));
    assert_true(says(&e.unseen, "nothing was measured of this pair or its tier"));
    explain_free(&e);
    matrix_free(&m);
}

TEST(nvlink_counts_the_links_that_are_up)
{
    struct explain e;
    struct matrix m;

    machine(&m);
    for (int i = 0; i < m.topo.endpoints; i++) {
        char name[32];
        snprintf(name, sizeof(name), "domain-%d", i / GPUS);
        m.topo.endpoint[i].place.at[LEVEL_DOMAIN] = topo_add_group(&m.topo, LEVEL_DOMAIN, name);
        m.topo.gpu[i].links = 18;
        m.topo.gpu[i].link_Bps = 25e9;
        m.topo.gpu[i].down = i == 1 ? 3 : 0;
    }
    explain_pair(&e, &m, &m.topo, NULL, 0, 0, 1);
    assert_int_equal(e.hops, 3);
    assert_string_equal(e.hop[1].text, "NVSwitches of NVLink domain domain-0");
    assert_int_equal(e.narrowest, 2);
    assert_string_equal(e.hop[2].basis, "16 of 18 NVLinks up, 25.0 GB/s each");
    assert_true(says(&e.odd, "n00 GPU 1: 16 NVLinks up where 15 others have 18"));
    explain_free(&e);
    matrix_free(&m);
}
