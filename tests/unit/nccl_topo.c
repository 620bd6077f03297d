/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_topo.c - facts from topology files of NCCL, RCCL and clouds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/lint/lint.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/host/mnnvl.h"
#include "topo/sources/nccl/nccl_log.h"

static void read_file(struct topo *t, const char *path)
{
    struct err err = {0};

    topo_init(t);
    if (host_read(t, topo_add_host(t, "n1"), path, NCCL_XML_BYTES_MAX, nccl_topo_parse, &err) < 0)
        fail_msg("%s", err.text);
}

static const char *why(const struct topo *t, const char *what)
{
    for (int i = 0; i < t->unseens; i++)
        if (!strcmp(t->unseen[i].what, what))
            return t->unseen[i].why;
    return "(nothing)";
}

static void a_board_has_its_nics_near_its_gpus(void **state)
{
    struct lint l = {0};
    struct topo t;

    (void)state;
    read_file(&t, "tests/golden/nccl/hgx-h200-8gpu-8cx7.xml");
    assert_true(t.gpus == 8 && t.nics == 8 && t.endpoints == 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(t.gpu[i].links, 18);
        assert_int_equal(t.gpu[i].remote[0].kind, LINK_END_SWITCH);
        assert_int_equal(strlen(t.gpu[i].remote[0].busid), 12);
        assert_int_equal(t.endpoint[i].nic, i);
        assert_int_equal(t.endpoint[i].numa, i / 4);
        assert_true(t.nic[i].rate_Bps == 50e9);
        assert_int_equal(t.gpu[i].path[(i + 4) % 8], PATH_SYS);
    }
    assert_int_equal(lint_pcie(&l, &t), 0);
    assert_string_equal(why(&t, "PCIe switches of n1"), "(nothing)");
    topo_free(&t);
}

static void a_flat_tree_is_called_by_its_name(void **state)
{
    struct lint l = {0};
    struct topo t;

    (void)state;
    read_file(&t, "tests/golden/nccl/hgx-h200-8gpu-kvm-flat.xml");
    assert_int_equal(t.gpu[0].path[7], PATH_PHB);
    assert_string_equal(t.gpu[0].remote[0].busid, ""); /* hidden */
    assert_non_null(strstr(why(&t, "PCIe switches of n1"),
                           "a virtual machine shows the PCIe tree flat: 8 GPUs and 8 NICs"));
    assert_int_equal(lint_pcie(&l, &t), 1);
    assert_string_equal(l.finding[0].kind, "pcie-flat");
    assert_string_equal(l.finding[0].what, "n1");
    assert_non_null(strstr(l.finding[0].text, "8 GPUs on NVLink switches hang on one host bridge"));
    lint_free(&l);
    topo_free(&t);
}

static void a_fused_dump_is_a_domain_and_its_lost_gpu_is_named(void **state)
{
    struct topo t;
    struct mnnvl m;

    (void)state;
    read_file(&t, "tests/golden/nccl/gb300-2tray-fused-rank5-no-nvlink.xml");
    assert_int_equal(t.hosts, 2);
    assert_string_equal(t.host[1].name, "n1-2");
    assert_int_equal(t.gpus, 8);
    assert_int_equal(t.endpoints, 8);
    assert_int_equal(t.gpu[5].links, 0);
    assert_int_equal(t.group[LEVEL_DOMAIN].count, 1);
    for (int i = 0; i < 8; i++)
        assert_int_equal(t.endpoint[i].place.at[LEVEL_DOMAIN], i == 5 ? -1 : 0);
    assert_string_equal(t.tier[1].name, "mnnvl");
    assert_non_null(strstr(why(&t, "host names"), "is a dump of 2 hosts"));
    mnnvl_judge(&m, &t, NULL, 0);
    assert_int_equal(m.host[0].verdict, MNNVL_INSIDE);
    assert_int_equal(m.host[1].verdict, MNNVL_BAD);
    assert_string_equal(m.host[1].why, "GPU 1: 0 NVLinks where others have 18");
    mnnvl_free(&m);
    topo_free(&t);
}

/* NVML may number GPUs in another order than that of their addresses; ranks, logs and nvidia-smi
 * have that number. */
static void gpus_have_the_numbers_that_the_file_tells(void **state)
{
    static const char *const dev[][3] = {
        {"dev=\"1\"", "dev=\"4\"", "0000:02:00.0"}, /* told: GPU 1 is the second, GPU 4 the first */
        {"", "dev=\"4\"", "0000:01:00.0"},          /* told of one alone: by address */
        {"dev=\"40\"", "dev=\"41\"", "0000:01:00.0"}, /* beyond what a host has */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(dev) / sizeof(*dev); i++) {
        struct err err = {0};
        struct topo t;
        char text[600];
        snprintf(text, sizeof(text),
                 "<system version=\"1\"><cpu numaid=\"0\">"
                 "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu %s sm=\"90\"/></pci>"
                 "<pci busid=\"0000:02:00.0\" class=\"0x030200\"><gpu %s sm=\"90\"/></pci>"
                 "</cpu></system>",
                 dev[i][1], dev[i][0]);
        topo_init(&t);
        if (nccl_topo_parse(&t, topo_add_host(&t, "h"), text, strlen(text), "f", &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(t.gpus, 2);
        assert_string_equal(t.gpu[0].busid, dev[i][2]);
        assert_int_equal(t.gpu[0].index, i ? 0 : 1);
        assert_int_equal(t.gpu[1].index, i ? 1 : 4);
        topo_free(&t);
    }
}

static void a_link_less_is_named(void **state)
{
    static const char head[] = "<system version=\"1\"><cpu numaid=\"0\">",
                      gpu[] = "<pci busid=\"0000:%02x:00.0\" class=\"0x030200\" device=\"0x2941\">"
                              "<gpu dev=\"%d\" sm=\"100\"><nvlink target=\"fffffff:ff:ff.0\" "
                              "count=\"%d\" tclass=\"0x068000\"/></gpu></pci>";
    char *text = mem_strdup(head);
    struct err err = {0};
    struct topo t;
    struct mnnvl m;

    (void)state;
    for (int i = 0; i < 4; i++) {
        char *more = mem_printf(gpu, i + 1, i, i == 2 ? 17 : 18);
        char *longer = mem_printf("%s%s%s", text, more, i == 3 ? "</cpu></system>" : "");
        free(more);
        free(text);
        text = longer;
    }
    topo_init(&t);
    assert_int_equal(nccl_topo_parse(&t, topo_add_host(&t, "h"), text, strlen(text), "f", &err), 0);
    mnnvl_judge(&m, &t, NULL, 0);
    assert_string_equal(m.host[0].why, "GPU 2: 17 NVLinks where others have 18");
    mnnvl_free(&m);
    t.gpu[2].counted = false; /* as a source that tells of each link */
    mnnvl_judge(&m, &t, NULL, 0);
    assert_string_equal(m.host[0].why, "GPU 2: 17 NVLinks up where others have 18");
    mnnvl_free(&m);
    topo_free(&t);
    free(text);
}

static void files_of_clouds_name_devices_by_address(void **state)
{
    struct topo t;
    struct err err;

    (void)state;
    read_file(&t, "tests/machines/nccl/cloud.xml");
    assert_true(t.gpus == 2 && t.nics == 2);
    assert_int_equal(t.gpu[0].links, -1);
    assert_string_equal(t.nic[1].name, "0102:00:00.0");
    assert_int_equal(t.endpoint[1].nic, 1);
    topo_free(&t);
    /* A NIC that is known by its name keeps it. */
    topo_init(&t);
    int h = topo_add_host(&t, "n1");
    struct nic n;
    nic_init(&n, h);
    strcpy(n.name, "mlx5_9");
    strcpy(n.busid, "0102:00:00.0");
    MEM_PUSH(t.nic, t.nics) = n;
    assert_int_equal(host_read(&t, h, "tests/machines/nccl/cloud.xml", NCCL_XML_BYTES_MAX,
                               nccl_topo_parse, &err),
                     0);
    assert_int_equal(t.nics, 2);
    assert_string_equal(t.nic[t.endpoint[1].nic].name, "mlx5_9");
    topo_free(&t);
}

static void rccl_s_files_have_links_rails_and_planes(void **state)
{
    struct topo t;

    (void)state;
    read_file(&t, "tests/machines/nccl/rails.xml");
    assert_int_equal(t.gpus, 2);
    assert_int_equal(t.gpu[0].links, 2);
    assert_int_equal(t.gpu[0].remote[0].kind, LINK_END_GPU);
    assert_string_equal(t.gpu[0].remote[0].busid, "0000:46:00.0");
    assert_int_equal(t.gpu[0].path[1], PATH_PHB);
    assert_string_equal(t.nic[1].name, "mlx5_1:2");
    assert_true(t.nic[1].rail == 1 && t.nic[1].plane == 1 && t.nic[1].numa == 1);
    assert_int_equal(t.nic[1].rail_source, SOURCE_NCCL);
    assert_int_equal(t.nic[1].plane_source, SOURCE_NCCL);
    assert_int_equal(t.nic[1].use_source, SOURCE_NONE); /* not asked yet */
    assert_true(t.nic[1].rate_Bps == 25e9);
    topo_free(&t);
}

static void files_that_nccl_would_cut_are_said(void **state)
{
    char *text = mem_strdup("<system version=\"1\"><cpu numaid=\"0\">");
    struct err err;
    struct topo t;

    (void)state;
    for (int i = 0; i < 260; i++) {
        char *longer =
            mem_printf("%s<pci busid=\"0000:%02x:%02x.0\" class=\"0x%s\"/>%s", text, i / 16, i % 16,
                       i < 4 ? "030200" : "060400", i == 259 ? "</cpu></system>" : "");
        free(text);
        text = longer;
    }
    topo_init(&t);
    assert_int_equal(nccl_topo_parse(&t, topo_add_host(&t, "h"), text, strlen(text), "f", &err), 0);
    assert_string_equal(why(&t, "NCCL_TOPO_FILE"),
                        "f has 262 elements, and NCCL takes 256 of a host (nccl issue 2160)");
    topo_free(&t);
    free(text);
}

static void all_shared_files_are_read(void **state)
{
    static const struct {
        const char *name;
        int gpus, nics;
    } row[] = {{"aws-p4d-24xl-topo", 8, 4},           {"azure-ndv5-topo", 8, 8},
               {"rccl-models/topo_8p_940", 8, 8},     {"rccl-models/topo_collnet_n4", -1, -1},
               {"rccl-models/topo_16p1h_vm", 16, -1}, {"synthetic/gb300-18tray-fused", 72, -1}};

    (void)state;
    if (access("../shared/fixtures/nccl-topo/azure-ndv5-topo.xml", R_OK) != 0) {
        print_message("no ../shared/fixtures/nccl-topo here\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *path = mem_printf("../shared/fixtures/nccl-topo/%s.xml", row[i].name);
        struct topo t;
        read_file(&t, path);
        if (row[i].gpus >= 0)
            assert_int_equal(t.gpus, row[i].gpus);
        if (row[i].nics >= 0)
            assert_int_equal(t.nics, row[i].nics);
        topo_free(&t);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_has_its_nics_near_its_gpus),
        cmocka_unit_test(a_flat_tree_is_called_by_its_name),
        cmocka_unit_test(a_fused_dump_is_a_domain_and_its_lost_gpu_is_named),
        cmocka_unit_test(gpus_have_the_numbers_that_the_file_tells),
        cmocka_unit_test(a_link_less_is_named),
        cmocka_unit_test(files_of_clouds_name_devices_by_address),
        cmocka_unit_test(rccl_s_files_have_links_rails_and_planes),
        cmocka_unit_test(files_that_nccl_would_cut_are_said),
        cmocka_unit_test(all_shared_files_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
