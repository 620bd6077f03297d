/* SPDX-License-Identifier: BSD-3-Clause */
/* topo/lint_*.c - one fault at a time in a machine without any: it is named, and nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test.h"
#include "topo/gpu.h"
#include "topo/lint/lint.h"
#include "topo/nic.h"

enum { HOSTS = 32, GPUS = 8 };

static void add_gpu(struct topo *t, int host, int k)
{
    int id = topo_add_endpoint(t, host, ENDPOINT_GPU);
    struct endpoint *e = &t->endpoint[id];
    struct nic n;
    struct gpu g;

    gpu_init(&g);
    g.host = host;
    g.index = k;
    snprintf(g.busid, sizeof(g.busid), "0000:%02x:00.0", 0x10 + k);
    snprintf(g.model, sizeof(g.model), "NVIDIA H100 80GB HBM3");
    snprintf(g.driver, sizeof(g.driver), "570.86.15");
    g.links = 18;
    g.down = 0;
    g.link_Bps = 25e9;
    g.pcie_gen_max = 5;
    g.pcie_width = g.pcie_width_max = 16;
    MEM_PUSH(t->gpu, t->gpus) = g;
    nic_init(&n, host);
    snprintf(n.name, sizeof(n.name), "mlx5_%d", k);
    n.layer = LINK_INFINIBAND;
    n.rate_Bps = 50e9;
    n.up = n.rdma = true;
    n.numa = k / 4;
    n.rail = k;
    e->nic = t->nics;
    e->numa = k / 4;
    memcpy(e->busid, g.busid, sizeof(e->busid));
    memcpy(e->model, g.model, sizeof(e->model));
    MEM_PUSH(t->nic, t->nics) = n;
}

static void healthy(struct topo *t)
{
    topo_init(t);
    for (int h = 0; h < HOSTS; h++) {
        char name[16];
        snprintf(name, sizeof(name), "node%02d", h);
        topo_add_host(t, name);
        t->host[h].cpu = mem_strdup("Intel Xeon Platinum 8480C");
        t->host[h].sockets = 2;
        t->host[h].cores = 112;
        t->host[h].memory_bytes = 2164e9 + 1e8 * h; /* never quite the same */
        snprintf(t->host[h].gdr, sizeof(t->host[h].gdr), "nvidia_peermem 570.%d", h);
        for (int k = 0; k < GPUS; k++)
            add_gpu(t, h, k);
    }
    topo_link_gpus(t);
}

static void break_up(struct topo *t)
{
    t->nic[7 * GPUS + 3].up = false;
}
static void break_rate(struct topo *t)
{
    t->nic[7 * GPUS + 3].rate_Bps = 25e9;
}
static void break_layer(struct topo *t)
{
    t->nic[7 * GPUS + 3].layer = LINK_ETHERNET;
}
static void break_rail(struct topo *t)
{
    t->nic[7 * GPUS + 3].rail = 4;
}
static void break_missing(struct topo *t)
{
    snprintf(t->nic[7 * GPUS + 3].name, sizeof(t->nic->name), "ib0");
    t->nic[7 * GPUS + 3].rdma = false;
    t->endpoint[7 * GPUS + 3].nic = -1;
}
static void break_affinity(struct topo *t)
{
    t->endpoint[7 * GPUS + 3].nic = 7 * GPUS + 5;
}
static void break_links(struct topo *t)
{
    t->gpu[7 * GPUS + 3].down = 1;
}
static void break_width(struct topo *t)
{
    t->gpu[7 * GPUS + 3].pcie_width = t->gpu[7 * GPUS + 3].pcie_width_max = 8;
}
static void break_gen(struct topo *t)
{
    t->gpu[7 * GPUS + 3].pcie_gen_max = 4;
}
static void break_driver(struct topo *t)
{
    for (int k = 0; k < GPUS; k++)
        snprintf(t->gpu[7 * GPUS + k].driver, sizeof(t->gpu->driver), "550.54.15");
}
static void break_memory(struct topo *t)
{
    t->host[7].memory_bytes = 2030e9; /* two modules of 32 are gone */
}
static void break_cores(struct topo *t)
{
    t->host[7].cores = 56;
}
static void break_gdr(struct topo *t)
{
    snprintf(t->host[7].gdr, sizeof(t->host[7].gdr), "none");
}

static const struct {
    void (*fault)(struct topo *);
    const char *kind, *text;
} row[] = {
    {break_up, "hcas", "node07: 7 HCAs up where 31 hosts have 8: mlx5_3 is down"},
    {break_rate, "nic", "node07 mlx5_3: 200 Gb/s where 31 others have 400"},
    {break_layer, "nic", "node07 mlx5_3: link layer Ethernet where 31 others have InfiniBand"},
    {break_rail, "rails", "node07 mlx5_3: rail 4 where 31 others have 3"},
    {break_affinity, "affinity", "node07 GPU 3: nearest NIC mlx5_5 where 31 others have mlx5_3"},
    {break_links, "nvlink", "node07 GPU 3: 17 NVLinks up where 255 others have 18: link 0 is down"},
    {break_width, "pcie", "node07 GPU 3: 8 PCIe lanes where 255 others have 16"},
    {break_gen, "pcie", "node07 GPU 3: PCIe at most of generation 4 where 255 others have 5"},
    {break_driver, "driver", "node07: driver 550.54.15 where 31 hosts have 570.86.15"},
    {break_memory, "memory", "node07: 1891 GiB of memory where 31 hosts have 20"},
    {break_cores, "cores", "node07: 56 cores where 31 hosts have 112"},
    {break_gdr, "gdr", "node07: GPUDirect RDMA by none where 31 hosts have nvidia_peermem"},
};

TEST(nothing_is_odd_about_equal_hosts)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    if (lint_hosts(&l, &t))
        fail_msg("%s", l.finding[0].text);
    lint_free(&l);
    topo_free(&t);
}

TEST(each_fault_is_named)
{
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct lint l = {0};
        struct topo t;
        int named = 0;

        healthy(&t);
        row[i].fault(&t);
        lint_hosts(&l, &t);
        for (int k = 0; k < l.findings; k++) {
            if (!strncmp(l.finding[k].text, row[i].text, strlen(row[i].text))) {
                assert_string_equal(l.finding[k].kind, row[i].kind);
                assert_true(l.finding[k].bad);
                named++;
            } else {
                fail_msg("%s: also %s", row[i].text, l.finding[k].text);
            }
        }
        if (named != 1)
            fail_msg("%s: said %d times", row[i].text, named);
        lint_free(&l);
        topo_free(&t);
    }
}

static bool says(const struct lint *l, const char *text)
{
    for (int i = 0; i < l->findings; i++)
        if (!strcmp(l->finding[i].text, text))
            return true;
    return false;
}

TEST(a_missing_adapter_is_named)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    break_missing(&t);
    lint_hosts(&l, &t);
    assert_true(says(&l, "node07: 7 HCAs where 31 hosts have 8: mlx5_3 is missing"));
    assert_int_equal(l.findings, 1);
    lint_free(&l);
    topo_free(&t);
}

/* Fewer links are fewer links that are up, and a bad verdict on the host: one finding; what else is
 * bad about NVLink there is still told. */
TEST(a_fault_of_nvlink_is_said_once)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    t.gpu[7 * GPUS + 3].links = 17;
    lint_hosts(&l, &t);
    assert_int_equal(l.findings, 1);
    assert_string_equal(l.finding[0].text, "node07 GPU 3: 17 NVLinks where 255 others have 18");
    lint_free(&l);
    t.gpu[7 * GPUS + 3].down = 1 << 5; /* another fault of the same GPU */
    t.gpu[7 * GPUS + 4].recovery = 1;
    lint_hosts(&l, &t);
    assert_int_equal(l.findings, 3);
    assert_true(says(&l, "node07 GPU 3: 17 NVLinks where 255 others have 18"));
    assert_true(says(&l, "node07 GPU 3: 16 NVLinks up where 255 others have 18: link 5 is down"));
    assert_string_equal(l.finding[2].kind, "mnnvl");
    assert_null(strstr(l.finding[2].text, "NVLink"));
    assert_non_null(strstr(l.finding[2].text, "node07: GPU 4: the driver asks to"));
    lint_free(&l);
    topo_free(&t);
}

/* Eight leaves for each half of the hosts, as LLDP tells them. */
static void tell_leaves(struct topo *t)
{
    for (int i = 0; i < t->nics; i++) {
        struct nic *n = &t->nic[i];
        n->leaf_source = SOURCE_LLDP;
        snprintf(n->leaf, sizeof(n->leaf), "leaf-%d-%d", n->host / (HOSTS / 2), i % GPUS);
        snprintf(n->leaf_port, sizeof(n->leaf_port), "swp%d", n->host % (HOSTS / 2) + 1);
    }
}

TEST(an_adapter_on_another_leaf_is_named)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    tell_leaves(&t);
    assert_int_equal(lint_hosts(&l, &t), 0);
    snprintf(t.nic[7 * GPUS + 3].leaf, sizeof(t.nic->leaf), "leaf-1-3"); /* of the other half */
    lint_hosts(&l, &t);
    assert_int_equal(l.findings, 1);
    assert_string_equal(l.finding[0].kind, "leaf");
    assert_string_equal(l.finding[0].what, "node07 mlx5_3");
    assert_string_equal(l.finding[0].text,
                        "node07 mlx5_3: cabled to leaf-1-3 port swp8 where 15 of "
                        "16 hosts have theirs on leaf-0-3");
    lint_free(&l);
    for (int k = 2; k < 4; k++) /* two cables swapped: the same set of leaves */
        snprintf(t.nic[7 * GPUS + k].leaf, sizeof(t.nic->leaf), "leaf-0-%d", 5 - k);
    lint_hosts(&l, &t);
    assert_int_equal(l.findings, 2);
    lint_free(&l);
    topo_free(&t);
}

/* A host that lost its GPUs is told by its CPU; one of another kind is not compared. */
TEST(a_host_without_gpus_is_one_of_its_peers)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    int h = topo_add_host(&t, "lost");
    t.host[h].cpu = mem_strdup(t.host[0].cpu);
    t.host[h].cores = t.host[0].cores;
    topo_add_host(&t, "login");
    t.host[HOSTS + 1].cpu = mem_strdup("AMD EPYC 9654");
    t.host[HOSTS + 1].cores = 96;
    lint_hosts(&l, &t);
    assert_true(says(&l, "lost: 0 GPUs where 32 hosts have 8"));
    for (int i = 0; i < l.findings; i++)
        assert_null(strstr(l.finding[i].text, "login"));
    lint_free(&l);
    topo_free(&t);
}

TEST(many_odd_ones_are_one_finding_and_halves_have_no_majority)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    for (int h = 4; h < 10; h++)
        t.host[h].cores = 96;
    lint_hosts(&l, &t);
    assert_int_equal(l.findings, 1);
    assert_string_equal(l.finding[0].text, "node[04-09]: 96 cores where 26 hosts have 112");
    lint_free(&l);
    for (int h = 0; h < HOSTS / 2; h++)
        t.host[h].cores = 96;
    for (int h = HOSTS / 2; h < HOSTS; h++)
        t.host[h].cores = 112;
    lint_hosts(&l, &t);
    assert_int_equal(l.findings, 1);
    assert_string_equal(l.finding[0].text, "no majority among 32: 16 have 96 cores (node00, ...), "
                                           "16 have 112 cores (node16, ...)");
    lint_free(&l);
    topo_free(&t);
}

/* What nobody told is not compared. */
TEST(unseen_is_not_odd)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    t.host[3].cores = 0;
    t.host[3].memory_bytes = 0;
    t.host[3].gdr[0] = '\0';
    t.gpu[5].pcie_width = -1;
    t.nic[9].rail = -1;
    t.nic[9].numa = -1;
    t.nic[9].layer = LINK_UNKNOWN;
    t.endpoint[9].nic = -1;
    assert_int_equal(lint_hosts(&l, &t), 0);
    lint_free(&l);
    topo_free(&t);
}

TEST(hosts_of_two_files_stand_side_by_side)
{
    struct topo a, b;
    struct err err;

    healthy(&a);
    topo_init(&b);
    assert_int_equal(topo_append(&b, &a, &err), 0);
    assert_int_equal(topo_append(&b, &a, &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_string_equal(err.text, "host node00 is there twice");
    for (int h = 0; h < HOSTS; h++)
        snprintf(a.host[h].gdr, sizeof(a.host[h].gdr), "none");
    struct topo c;
    topo_init(&c);
    topo_add_host(&c, "first");
    assert_int_equal(topo_append(&c, &a, &err), 0);
    assert_int_equal(c.hosts, HOSTS + 1);
    assert_int_equal(c.endpoints, HOSTS * GPUS);
    assert_int_equal(c.host[1].endpoints, GPUS);
    assert_int_equal(c.nic[c.endpoint[20].nic].host, 3);
    assert_int_equal(c.gpu[c.endpoint[20].gpu].host, 3);
    assert_string_equal(c.gpu[c.endpoint[20].gpu].busid, c.endpoint[20].busid);
    topo_free(&a);
    topo_free(&b);
    topo_free(&c);
}

/* One GPU of another model is bad, whole hosts of another kind are only worth knowing. */
TEST(kinds_of_devices_are_told)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    assert_int_equal(lint_kinds(&l, &t), 0);
    for (int i = 30 * GPUS; i < HOSTS * GPUS; i++) {
        snprintf(t.endpoint[i].model, sizeof(t.endpoint[i].model), "NVIDIA A100");
        t.nic[i].rate_Bps = 25e9;
    }
    snprintf(t.endpoint[7 * GPUS + 3].model, sizeof(t.endpoint->model), "NVIDIA L4");
    assert_int_equal(lint_kinds(&l, &t), 2);
    assert_int_equal(lint_bad(&l), 1);
    assert_string_equal(l.finding[0].text, "node07 GPU 3: NVIDIA L4 where 7 of the 8 GPUs of this "
                                           "host are NVIDIA H100 80GB HBM3");
    assert_string_equal(
        l.finding[1].text,
        "node[30-31]: NVIDIA A100, NICs of 200 Gb/s where 30 hosts have NVIDIA H100 "
        "80GB HBM3, NICs of 400 Gb/s; such pairs are judged by their own rate");
    lint_free(&l);
    topo_free(&t);
}

/* Two NICs of a host on each other's leaf, by the declared places alone. */
TEST(places_tell_of_swapped_leaves)
{
    struct lint l = {0};
    struct topo t;

    healthy(&t);
    for (int i = 0; i < HOSTS * GPUS; i++) {
        char name[16];
        int host = i / GPUS, k = i % GPUS;
        k = host == 7 && (k == 3 || k == 4) ? 7 - k : k;
        snprintf(name, sizeof(name), "leaf-%d", k);
        topo_place(&t, &t.endpoint[i], LEVEL_LEAF, name, SOURCE_USER);
    }
    assert_int_equal(lint_hosts(&l, &t), 2);
    assert_string_equal(
        l.finding[0].text,
        "node07 mlx5_3: cabled to leaf-4 where 31 of 32 hosts have theirs on leaf-3");
    assert_string_equal(l.finding[1].what, "node07 mlx5_4");
    lint_free(&l);
    topo_free(&t);
}
