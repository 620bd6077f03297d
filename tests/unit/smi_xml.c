/* SPDX-License-Identifier: BSD-3-Clause */
/* smi_xml.c - nvidia-smi -q -x: the same rows and the same verdict as from NVML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "test.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/host/mnnvl.h"
#include "topo/sources/host/nvml.h"
#include "topo/sources/sources.h"

static void read_file(struct topo *t, const char *host, const char *path)
{
    struct err err = {0};

    if (host_read(t, topo_add_host(t, host), path, SMI_XML_BYTES_MAX, smi_xml_parse, &err) < 0)
        fail_msg("%s", err.text);
}

TEST(a_tray_is_read_with_every_number_that_nvml_has)
{
    char text[64];
    struct topo t;
    int told;

    topo_init(&t);
    read_file(&t, "n1", "tests/machines/smi-xml/tray1.xml");
    assert_int_equal(t.gpus, 2);
    const struct gpu *g = &t.gpu[1];
    assert_string_equal(g->busid, "0009:06:00.0");
    assert_string_equal(g->uuid, "GPU-a0000001-0000-0000-0000-000000000001");
    assert_string_equal(g->model, "NVIDIA GB300");
    assert_string_equal(g->driver, "580.65.06");
    assert_string_equal(g->chassis, "1820225190001");
    assert_true(g->slot == 5 && g->tray == 1 && g->node == 1 && g->module == 1);
    assert_true(g->pcie_gen == 1 && g->pcie_gen_max == 5);
    assert_true(g->pcie_width == 16 && g->pcie_width_max == 16 && g->pcie_replays == 3);
    assert_true(g->sm_MHz == 345 && g->sm_MHz_max == 2062 && g->throttle == 0);
    assert_true(g->ecc_corrected == 5 && g->ecc_uncorrected == 0); /* not the aggregate */
    assert_true(g->remapped_rows == 2 && g->remap == REMAP_NONE && g->retired_pages == -1);
    assert_true(g->recovery == 0 && g->links == -1);
    assert_int_equal(g->state, FABRIC_COMPLETED);
    assert_int_equal(g->status, 0);
    assert_int_equal(g->clique, 32766);
    assert_string_equal(g->cluster, "5c1a2b3c-0d1e-4f20-8a9b-0123456789ab");
    assert_int_equal(g->summary, 1);
    assert_int_equal(g->health, 0x1aa); /* what NVML gives on such a tray */
    nvml_health_words(g->health, text, sizeof(text), &told);
    assert_string_equal(text, "");
    assert_int_equal(told, 5);
    assert_int_equal(t.endpoints, 2);
    assert_int_equal(t.endpoint[1].gpu, 1);
    assert_int_equal(t.endpoint[1].source[LEVEL_DOMAIN], SOURCE_SMI);
    topo_free(&t);
}

TEST(trays_of_a_rack_share_domain_and_verdict)
{
    struct topo t;
    struct mnnvl m;

    topo_init(&t);
    /* The later host first: rows stay in the order of hosts. */
    topo_add_host(&t, "n1");
    read_file(&t, "n2", "tests/machines/smi-xml/tray2.xml");
    read_file(&t, "n1", "tests/machines/smi-xml/tray1.xml");
    read_file(&t, "n3", "tests/machines/smi-xml/tray3-bad.xml");
    assert_int_equal(t.gpus, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(t.gpu[i].host, i / 2);
    assert_int_equal(t.group[LEVEL_DOMAIN].count, 1);
    assert_string_equal(t.group[LEVEL_DOMAIN].name[0],
                        "5c1a2b3c-0d1e-4f20-8a9b-0123456789ab.32766");
    assert_int_equal(t.group[LEVEL_RACK].count, 1);
    for (int i = 0; i < t.endpoints; i++) {
        const struct endpoint *e = &t.endpoint[i];
        assert_string_equal(e->busid, t.gpu[e->gpu].busid);
        assert_int_equal(e->place.at[LEVEL_HOST], t.gpu[e->gpu].host);
        assert_int_equal(e->place.at[LEVEL_DOMAIN] < 0, t.gpu[e->gpu].status != 0);
    }
    assert_string_equal(t.tier[1].name, "mnnvl");
    mnnvl_judge(&m, &t, NULL, 0);
    assert_int_equal(m.host[0].verdict, MNNVL_GOOD);
    assert_int_equal(m.host[1].verdict, MNNVL_GOOD);
    assert_int_equal(m.host[2].verdict, MNNVL_BAD);
    assert_non_null(strstr(m.host[2].why, "GPU 0: fabric unhealthy: bandwidth degraded"));
    assert_non_null(
        strstr(m.host[2].why,
               "GPU 1: fabric registration completed with an error: insufficient resources"));
    char *odd = mem_strdup("");
    for (int i = 0; i < m.odds; i++) {
        char *more = mem_printf("%s%s|", odd, m.odd[i]);
        free(odd);
        odd = more;
    }
    assert_non_null(strstr(odd, "host n3 GPU 1: hardware thermal slowdown|"));
    assert_non_null(strstr(odd, "host n3 GPU 1: PCIe x8 of x16|"));
    assert_non_null(strstr(odd, "host n3 GPU 1: 2 uncorrected memory errors"));
    assert_non_null(strstr(odd, "host n3 GPU 1: remapping of bad memory rows waits for a reset|"));
    free(odd);
    mnnvl_free(&m);
    topo_free(&t);
}

TEST(links_that_are_not_told_are_not_said_to_be_missing)
{
    struct topo t;
    struct err err;
    struct mnnvl m;

    topo_init(&t);
    read_file(&t, "n1", "tests/machines/smi-xml/hgx.xml");
    assert_int_equal(t.gpu[7].health, 0x1a8);
    mnnvl_judge(&m, &t, NULL, 0);
    assert_int_equal(m.host[0].verdict, MNNVL_UNSEEN);
    assert_string_equal(m.host[0].why, "8 GPUs, NVLinks not told");
    mnnvl_free(&m);
    /* The matrix tells them. */
    assert_int_equal(host_read(&t, 0, "tests/machines/smi-topo/hgx-h100-8gpu-8nic.txt",
                               SMI_TOPO_BYTES_MAX, smi_topo_parse, &err),
                     0);
    assert_int_equal(t.gpus, 8);
    assert_int_equal(t.endpoints, 8);
    assert_string_equal(t.gpu[7].busid, "0000:88:00.0");
    assert_int_equal(t.gpu[7].links, 18);
    mnnvl_judge(&m, &t, NULL, 0);
    assert_int_equal(m.host[0].verdict, MNNVL_INSIDE);
    mnnvl_free(&m);
    assert_string_equal(t.nic[t.endpoint[7].nic].name, "mlx5_7");
    topo_free(&t);
}

TEST(a_second_reading_changes_no_count)
{
    struct topo t;

    topo_init(&t);
    read_file(&t, "n1", "tests/machines/smi-xml/tray1.xml");
    read_file(&t, "n1", "tests/machines/smi-xml/tray1.xml");
    assert_int_equal(t.gpus, 2);
    assert_int_equal(t.endpoints, 2);
    topo_free(&t);
}

TEST(what_a_driver_asks_for_is_known_in_both_spellings)
{
    static const struct {
        const char *text;
        int action;
    } row[] = {{"None", 0},
               {"GPU_RESET", 1},
               {"GPU Reset", 1},
               {"Node Reboot", 2},
               {"Drain P2P", 3},
               {"Drain and Reset", 4},
               {"DRAIN_AND_RESET", 4},
               {"Recover IMEX Domain", 5},
               {"BUS_RESET", 6},
               {"System Reboot", 7},
               {"Sing", 255},
               {"N/A", -1}};

    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *text = mem_printf("<nvidia_smi_log><gpu id=\"00000000:01:00.0\">"
                                "<gpu_recovery_action>%s</gpu_recovery_action></gpu>"
                                "</nvidia_smi_log>",
                                row[i].text);
        struct topo t;
        struct err err;
        topo_init(&t);
        assert_int_equal(smi_xml_parse(&t, topo_add_host(&t, "h"), text, strlen(text), "f", &err),
                         0);
        assert_int_equal(t.gpu[0].recovery, row[i].action);
        topo_free(&t);
        free(text);
    }
}

static void refused(const char *text, const char *why)
{
    struct err err = {0};
    struct topo t;

    topo_init(&t);
    assert_int_equal(smi_xml_parse(&t, topo_add_host(&t, "h"), text, strlen(text), "f.xml", &err),
                     -1);
    assert_int_equal(err.code, EXIT_DATA);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" where \"%s\" is expected", err.text, why);
    topo_free(&t);
}

TEST(what_is_no_log_of_nvidia_smi_is_refused)
{
    refused("", "f.xml:1: no element found");
    refused("<system/>", "f.xml:1: <system> where <nvidia_smi_log>");
    refused("<nvidia_smi_log/>", "f.xml: no <gpu> in it");
    refused("<nvidia_smi_log>\n<gpu/></nvidia_smi_log>", "f.xml:2: gpu id=\"\" is no PCI address");
    refused("<nvidia_smi_log><gpu id=\"0:0\"/></nvidia_smi_log>", "\"0:0\" is no PCI address");
    refused("<nvidia_smi_log><gpu id=\"0:1:0.0\"><slot_number>9999</slot_number></gpu>"
            "</nvidia_smi_log>",
            "slot_number is \"9999\", not a number from 0 to 255");
    refused("<!DOCTYPE nvidia_smi_log [<!ENTITY a \"b\">]><nvidia_smi_log/>",
            "declarations have no place");
}

TEST(the_real_logs_are_read)
{
    static const struct {
        const char *name, *model;
        int gpus, domain;
    } row[] = {{"a100", "NVIDIA A100-SXM4-40GB", 1, 0},
               {"b200", "NVIDIA B200", 8, 0},
               {"gb200", "NVIDIA GB200", 4, 1},
               {"gb300", "NVIDIA GB300", 4, 1},
               {"h100", "NVIDIA H100 80GB HBM3", 8, 0},
               {"l40s", "NVIDIA L40S", 1, 0},
               {"t4", "Tesla T4", 1, 0}};

    if (access("../shared/fixtures/nvidia-smi-xml/qx-t4.xml", R_OK) != 0) {
        print_message("no ../shared/fixtures/nvidia-smi-xml here\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        char *path = mem_printf("../shared/fixtures/nvidia-smi-xml/qx-%s.xml", row[i].name);
        struct topo t;
        topo_init(&t);
        read_file(&t, "n", path);
        assert_int_equal(t.gpus, row[i].gpus);
        assert_int_equal(t.endpoints, row[i].gpus);
        assert_string_equal(t.gpu[0].model, row[i].model);
        assert_int_equal(t.group[LEVEL_DOMAIN].count, row[i].domain);
        assert_true(t.gpu[0].pcie_width_max == 16 && t.gpu[0].sm_MHz_max > 1000);
        topo_free(&t);
        free(path);
    }
}
