/* SPDX-License-Identifier: BSD-3-Clause */
/* mnnvl.c - the verdict on NVLink between hosts, on racks made by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/sources/host/mnnvl.h"

static const char cluster_a[] = "00000001-0000-0000-0000-00000000000a";
static const char cluster_b[] = "00000001-0000-0000-0000-00000000000b";

static void add_gpu(struct topo *t, int host, int index)
{
    struct gpu g;

    gpu_init(&g);
    g.host = host;
    g.index = index;
    snprintf(g.busid, sizeof(g.busid), "0000:%02x:00.0", (unsigned char)(16 + index));
    strcpy(g.model, "NVIDIA GB300");
    strcpy(g.driver, "580.1");
    strcpy(g.cluster, cluster_a);
    strcpy(g.chassis, "C1");
    g.links = 18;
    g.link_Bps = 53.125e9;
    g.remotes = 1;
    g.remote[0] = (struct gpu_remote){LINK_END_SWITCH, "", 18};
    g.state = FABRIC_COMPLETED;
    g.status = 0;
    g.clique = 32766;
    g.health = 0x1aa;
    g.summary = 1;
    g.imex_channels = 1;
    MEM_PUSH(t->gpu, t->gpus) = g;
}

static void make_rack(struct topo *t, int hosts, int gpus)
{
    char name[16];

    topo_init(t);
    for (int h = 0; h < hosts; h++) {
        snprintf(name, sizeof(name), "tray%02d", h);
        topo_add_host(t, name);
        for (int i = 0; i < gpus; i++)
            add_gpu(t, h, i);
    }
}

/* HGX: no chassis, registered without a cluster. */
static void make_hgx(struct topo *t, int hosts)
{
    make_rack(t, hosts, 8);
    for (int i = 0; i < t->gpus; i++) {
        struct gpu *g = &t->gpu[i];
        g->chassis[0] = '\0';
        strcpy(g->cluster, "00000000-0000-0000-0000-000000000000");
        strcpy(g->model, "NVIDIA H100 80GB HBM3");
        g->clique = 0;
        g->health = 0;
        g->summary = -1;
        g->imex_channels = 0;
    }
}

static void expect(const struct topo *t, int host, enum mnnvl_verdict verdict, const char *why)
{
    struct mnnvl m;

    mnnvl_judge(&m, t, NULL, 0);
    assert_string_equal(m.host[host].why, why);
    assert_int_equal(m.host[host].verdict, verdict);
    mnnvl_free(&m);
}

static void has_odd(const struct topo *t, const char *text, bool there)
{
    struct mnnvl m;
    bool found = false;

    mnnvl_judge(&m, t, NULL, 0);
    for (int i = 0; i < m.odds; i++)
        found = found || !strcmp(m.odd[i], text);
    if (found != there)
        fail_msg("\"%s\" is %s", text, found ? "said" : "not said");
    mnnvl_free(&m);
}

TEST(a_whole_rack_is_good_and_nothing_is_odd)
{
    struct mnnvl m;
    struct topo t;

    make_rack(&t, 18, 4);
    mnnvl_judge(&m, &t, NULL, 0);
    for (int h = 0; h < 18; h++) {
        assert_int_equal(m.host[h].verdict, MNNVL_GOOD);
        assert_string_equal(m.host[h].why, "4 GPUs, 18 of 18 NVLinks at 53.1 GB/s, clique 32766, "
                                           "healthy, 1 IMEX channel");
    }
    assert_int_equal(m.odds, 0);
    assert_string_equal(m.summary, "18 hosts good, 0 bad, 1 domain across hosts");
    mnnvl_free(&m);
    topo_free(&t);
}

TEST(each_reason_is_named_with_its_gpus)
{
    struct topo t;

    make_rack(&t, 18, 4);
    t.gpu[4 * 4 + 2].down = 1 << 11;
    t.gpu[4 * 5 + 1].down = 1 << 3 | 1 << 4;
    t.gpu[4 * 5 + 1].health = 0x1aa & ~0x33;
    t.gpu[4 * 5 + 1].health |= 0x11;
    for (int i = 0; i < 4; i++) {
        t.gpu[4 * 6 + i].clique = 7;
        t.gpu[4 * 7 + i].imex_channels = 0;
        t.gpu[4 * 8 + i].status = 23;
        strcpy(t.gpu[4 * 9 + i].cluster, "00000000-0000-0000-0000-000000000000");
        t.gpu[4 * 10 + i].state = FABRIC_IN_PROGRESS;
        strcpy(t.gpu[4 * 12 + i].cluster, cluster_b);
    }
    t.gpu[4 * 11 + 0].clique = 9;
    t.gpu[4 * 13 + 3].link_Bps = 26.5e9;
    t.gpu[4 * 13 + 0].recovery = 1;
    t.gpu[4 * 13 + 1].recovery = 1;
    t.gpu[4 * 14].state = FABRIC_NONE;
    t.gpu[4 * 15].summary = 3;
    t.gpu[4 * 16].summary = 2;
    expect(&t, 4, MNNVL_BAD, "GPU 2: 17 of 18 NVLinks up, link 11 down");
    expect(&t, 5, MNNVL_BAD,
           "GPU 1: fabric unhealthy: bandwidth degraded, route unhealthy; GPU 1: 16 of 18 NVLinks "
           "up, links 3, 4 down");
    expect(&t, 6, MNNVL_BAD, "in clique 7, 13 other hosts of its cluster are in clique 32766");
    expect(&t, 7, MNNVL_BAD,
           "no IMEX channel that this user may open in /dev/nvidia-caps-imex-channels");
    expect(&t, 8, MNNVL_BAD,
           "all 4 GPUs: fabric registration completed with an error: insufficient resources");
    expect(&t, 9, MNNVL_BAD, "all 4 GPUs: cluster UUID is zero: in no domain");
    expect(&t, 10, MNNVL_BAD, "all 4 GPUs: fabric registration in progress (fabric manager)");
    expect(&t, 11, MNNVL_BAD, "GPU 0: in clique 9, the other GPUs of this host are not");
    char *other = mem_printf("in cluster %s, 13 other hosts of its chassis are in %s.32766",
                             cluster_b, cluster_a);
    expect(&t, 12, MNNVL_BAD, other);
    free(other);
    expect(&t, 13, MNNVL_BAD,
           "GPUs 0, 1: the driver asks to reset the GPU; GPU 3: NVLinks at 26.5 GB/s where others "
           "have 53.1 GB/s");
    expect(&t, 14, MNNVL_BAD, "GPU 0: fabric registration not supported");
    expect(&t, 15, MNNVL_BAD, "GPU 0: fabric of limited capacity");
    expect(&t, 16, MNNVL_BAD, "GPU 0: fabric unhealthy, without a reason in its mask");
    topo_free(&t);
}

TEST(a_partial_rack_and_a_split_cluster_are_odd_but_not_bad)
{
    char text[160];
    struct topo t;

    make_rack(&t, 16, 4);
    snprintf(text, sizeof(text), "domain %s.32766: 64 of 72 GPUs are visible", cluster_a);
    has_odd(&t, text, true);
    expect(&t, 3, MNNVL_GOOD,
           "4 GPUs, 18 of 18 NVLinks at 53.1 GB/s, clique 32766, healthy, 1 IMEX channel");
    for (int i = 32; i < 64; i++)
        t.gpu[i].clique = 2;
    snprintf(text, sizeof(text), "cluster %s is split into 2 cliques: NVLink does not join them",
             cluster_a);
    has_odd(&t, text, true);
    expect(&t, 15, MNNVL_GOOD,
           "4 GPUs, 18 of 18 NVLinks at 53.1 GB/s, clique 2, healthy, 1 IMEX channel");
    topo_free(&t);
}

TEST(what_is_not_told_is_not_good)
{
    struct topo t;

    make_rack(&t, 2, 4);
    for (int i = 0; i < 8; i++) {
        t.gpu[i].health = 0;
        t.gpu[i].summary = -1;
        t.gpu[i].imex_channels = -1;
        t.gpu[i].link_Bps = 0;
    }
    expect(&t, 0, MNNVL_GOOD,
           "4 GPUs, 18 of 18 NVLinks, clique 32766, health not told, IMEX not visible");
    topo_free(&t);
    make_rack(&t, 1, 4);
    topo_add_host(&t, "blind");
    expect(&t, 1, MNNVL_UNSEEN, "NVML told of no GPU");
    has_odd(&t, "host blind: 0 GPUs where others have 4", true);
    topo_free(&t);
    topo_init(&t);
    struct mnnvl m;
    mnnvl_judge(&m, &t, NULL, 0);
    assert_string_equal(m.summary, "NVML told of no GPU");
    mnnvl_free(&m);
    topo_free(&t);
}

TEST(on_an_hgx_the_domain_is_the_host)
{
    struct mnnvl m;
    struct topo t;
    char name[96];

    make_hgx(&t, 2);
    assert_true(mnnvl_domain(&t, 9, name, sizeof(name)));
    assert_string_equal(name, "tray01");
    expect(&t, 0, MNNVL_INSIDE,
           "8 GPUs, 18 of 18 NVLinks at 53.1 GB/s; the fabric is registered without a cluster");
    mnnvl_judge(&m, &t, NULL, 0);
    assert_string_equal(m.summary, "NVLink inside the hosts only");
    mnnvl_free(&m);
    for (int i = 0; i < 8; i++)
        t.gpu[i].state = FABRIC_NONE;
    expect(&t, 0, MNNVL_INSIDE,
           "8 GPUs, 18 of 18 NVLinks at 53.1 GB/s; a fabric across hosts is not supported");
    assert_true(mnnvl_domain(&t, 0, name, sizeof(name)));
    t.gpu[12].down = 0x3ffff;
    t.gpu[12].remotes = 0;
    expect(&t, 1, MNNVL_BAD, "GPU 4: 0 of 18 NVLinks up");
    assert_false(mnnvl_domain(&t, 12, name, sizeof(name)));
    assert_true(mnnvl_domain(&t, 13, name, sizeof(name)));
    assert_string_equal(name, "tray01/GPU0");
    t.gpu[0].state = FABRIC_NOT_STARTED;
    expect(&t, 0, MNNVL_BAD, "GPU 0: fabric registration not started (fabric manager)");
    assert_false(mnnvl_domain(&t, 0, name, sizeof(name)));
    mnnvl_judge(&m, &t, NULL, 0);
    assert_string_equal(m.summary, "NVLink inside the hosts: 0 good, 2 bad");
    mnnvl_free(&m);
    topo_free(&t);
}

TEST(a_host_alone_in_its_cluster_is_no_rack)
{
    struct topo t;

    make_hgx(&t, 2);
    for (int i = 0; i < t.gpus; i++)
        strcpy(t.gpu[i].cluster, i < 8 ? cluster_a : cluster_b);
    expect(
        &t, 1, MNNVL_INSIDE,
        "8 GPUs, 18 of 18 NVLinks at 53.1 GB/s; the cluster that it is registered in has no other "
        "host here");
    for (int i = 0; i < t.gpus; i++)
        strcpy(t.gpu[i].cluster, cluster_a);
    expect(&t, 1, MNNVL_BAD,
           "no IMEX channel that this user may open in /dev/nvidia-caps-imex-channels");
    topo_free(&t);
    make_rack(&t, 1, 4); /* a tray without platform information is told by its product */
    for (int i = 0; i < t.gpus; i++)
        t.gpu[i].chassis[0] = '\0';
    expect(&t, 0, MNNVL_GOOD,
           "4 GPUs, 18 of 18 NVLinks at 53.1 GB/s, clique 32766, healthy, 1 IMEX channel");
    topo_free(&t);
}

TEST(bridges_join_pairs)
{
    struct topo t;
    char name[96];

    make_hgx(&t, 1);
    for (int i = 0; i < 8; i++) {
        t.gpu[i].state = FABRIC_NONE;
        t.gpu[i].remote[0].kind = LINK_END_GPU;
        memcpy(t.gpu[i].remote[0].busid, t.gpu[i ^ 1].busid, 16);
    }
    assert_true(mnnvl_domain(&t, 5, name, sizeof(name)));
    assert_string_equal(name, "tray00/GPU4");
    for (int i = 0; i < 8; i++)
        t.gpu[i].links = 0;
    assert_false(mnnvl_domain(&t, 5, name, sizeof(name)));
    expect(&t, 0, MNNVL_NONE, "8 GPUs without NVLink");
    topo_free(&t);
}

TEST(trials_and_measured_bandwidth_count)
{
    struct mnnvl_trial trial[] = {{0, 1, 1, 1, 700e9, ""},
                                  {1, 1, 1, 0, 0, "CUDA_ERROR_NOT_PERMITTED"},
                                  {2, 1, 1, 1, 400e9, ""},
                                  {3, 1, 1, 1, 710e9, ""}};
    struct mnnvl m;
    struct topo t;

    make_rack(&t, 4, 4);
    mnnvl_judge(&m, &t, trial, 4);
    assert_string_equal(m.host[0].why,
                        "4 GPUs, 18 of 18 NVLinks at 53.1 GB/s, clique 32766, healthy, 1 IMEX "
                        "channel, FABRIC memory works, measured 700 GB/s");
    assert_string_equal(m.host[1].why, "memory with a FABRIC handle is not imported: "
                                       "CUDA_ERROR_NOT_PERMITTED");
    assert_string_equal(m.host[2].why, "measured 400 GB/s where others have 700 GB/s");
    assert_int_equal(m.bad, 2);
    json_t *json = mnnvl_json(&m, &t);
    assert_int_equal(json_integer_value(json_object_get(json, "bad")), 2);
    assert_int_equal(json_array_size(json_object_get(json, "hosts")), 4);
    json_decref(json);
    mnnvl_free(&m);
    topo_free(&t);
}

TEST(what_is_odd_about_a_gpu_is_said)
{
    struct topo t;

    make_rack(&t, 18, 4);
    t.gpu[5].throttle = 0x49;
    t.gpu[6].pcie_width = 8;
    t.gpu[6].pcie_width_max = 16;
    t.gpu[7].ecc_uncorrected = 1;
    t.gpu[8].remap = REMAP_PENDING;
    t.gpu[9].remap = REMAP_FAILED;
    strcpy(t.gpu[40].driver, "570.9");
    t.gpus--;
    has_odd(&t, "host tray01 GPU 1: hardware thermal slowdown", true);
    has_odd(&t, "host tray01 GPU 2: PCIe x8 of x16", true);
    has_odd(&t, "host tray01 GPU 3: 1 uncorrected memory error since the driver was loaded", true);
    has_odd(&t, "host tray02 GPU 0: remapping of bad memory rows waits for a reset", true);
    has_odd(&t, "host tray02 GPU 1: remapping of bad memory rows failed", true);
    has_odd(&t, "drivers differ: 580.1 on tray00, 570.9 on tray10", true);
    has_odd(&t, "host tray17: 3 GPUs where others have 4", true);
    has_odd(&t, "host tray00 GPU 0: hardware thermal slowdown", false);
    topo_free(&t);
}
