/* SPDX-License-Identifier: BSD-3-Clause */
/* hwloc_xml.c - hwloc's XML of versions 2 and 3, read without hwloc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/nic.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/sources.h"

#define SHARED "../shared/fixtures/hwloc/"

static void read_file(struct topo *t, const char *path)
{
    struct err err = {0};

    topo_init(t);
    if (host_read(t, topo_add_host(t, "m"), path, HWLOC_XML_BYTES_MAX, hwloc_xml_parse, &err) < 0)
        fail_msg("%s", err.text);
}

/* Version 3 has bits where version 2 has numbers: GPU and co-processor, network, and OpenFabrics
 * with network. */
static void as_version_3(char *text)
{
    static const char *const edit[][2] = {{"version=\"2.0\"", "version=\"3.0\""},
                                          {"osdev_type=\"5\"", "osdev_type=\"12\""},
                                          {"osdev_type=\"2\"", "osdev_type=\"16\""},
                                          {"osdev_type=\"3\"", "osdev_type=\"48\""}};

    for (size_t i = 0; i < sizeof(edit) / sizeof(*edit); i++)
        for (char *at = text; (at = strstr(at, edit[i][0]));) {
            size_t was = strlen(edit[i][0]), is = strlen(edit[i][1]);
            memmove(at + is, at + was, strlen(at + was) + 1);
            memcpy(at, edit[i][1], is);
        }
}

static void four_gpus_and_a_switch(bool third)
{
    struct topo t;
    struct err err = {0};
    char *text, *longer;
    size_t len;

    assert_int_equal(file_read(&text, &len, "tests/machines/hwloc/hgx4.xml", 1 << 20, &err), 0);
    longer = mem_calloc(len + 256, 1);
    memcpy(longer, text, len);
    if (third)
        as_version_3(longer);
    topo_init(&t);
    if (hwloc_xml_parse(&t, topo_add_host(&t, "m"), longer, strlen(longer), "f", &err) < 0)
        fail_msg("%s", err.text);
    free(longer);
    free(text);
    assert_int_equal(t.host[0].sockets, 2);
    assert_int_equal(t.host[0].cores, 4);
    assert_true(t.host[0].memory_bytes == 2 * 68719476736.0);
    assert_string_equal(t.host[0].cpu, "Some CPU 9000");
    assert_int_equal(t.gpus, 4);
    assert_int_equal(t.endpoints, 4);
    for (int i = 0; i < 4; i++) {
        const struct gpu *g = &t.gpu[i];
        assert_int_equal(g->index, i);
        assert_string_equal(g->model, "NVIDIA H100 80GB HBM3");
        assert_int_equal(g->uuid[11], '0' + i);
        assert_int_equal(g->links, i == 2 ? 17 : 18); /* 25 GB/s each */
        assert_true(g->link_Bps == 25e9);
        assert_int_equal(g->remotes, 1);
        assert_int_equal(g->remote[0].kind, LINK_END_SWITCH);
        assert_string_equal(g->remote[0].busid, "0000:1a:00.0");
        assert_int_equal(g->path[i], PATH_SELF);
        assert_int_equal(g->path[i ^ 1], PATH_PIX);
        assert_int_equal(g->path[i ^ 2], PATH_SYS);
        assert_int_equal(t.endpoint[i].numa, i / 2);
        assert_string_equal(t.endpoint[i].busid, g->busid);
        assert_int_equal(t.endpoint[i].source[LEVEL_DOMAIN], SOURCE_HWLOC);
    }
    assert_int_equal(t.nics, 3); /* IPoIB is the card's */
    assert_string_equal(t.nic[0].name, "mlx5_0");
    assert_string_equal(t.nic[0].busid, "0000:05:00.0");
    assert_string_equal(t.nic[0].netdev, "ib0");
    assert_string_equal(t.nic[0].guid, "0xb8e924030091a2c0");
    assert_true(t.nic[0].rdma && t.nic[0].up && t.nic[0].numa == 0);
    assert_string_equal(t.nic[1].name, "eno1");
    assert_true(!t.nic[1].rdma && t.nic[1].layer == LINK_ETHERNET);
    assert_false(t.nic[2].up);
    assert_int_equal(t.endpoint[0].nic, 0);
    assert_int_equal(t.endpoint[1].nic, 0);
    /* A NIC that is up is taken before a nearer one that is down. */
    assert_int_equal(t.endpoint[3].nic, 0);
    topo_free(&t);
}

static void a_host_with_four_gpus_and_a_switch(void **state)
{
    (void)state;
    four_gpus_and_a_switch(false);
    four_gpus_and_a_switch(true);
}

static void refused(const char *text, const char *why)
{
    struct err err = {0};
    struct topo t;

    topo_init(&t);
    assert_int_equal(hwloc_xml_parse(&t, topo_add_host(&t, "h"), text, strlen(text), "f", &err),
                     -1);
    assert_int_equal(err.code, EXIT_DATA);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" where \"%s\" is expected", err.text, why);
    topo_free(&t);
}

static void other_versions_are_refused_with_a_way_out(void **state)
{
    (void)state;
    refused("<topology/>", "f:1: hwloc XML of version 1, where versions 2 and 3 are read");
    refused("<topology version=\"4.0\"/>",
            "f:1: hwloc XML of version \"4.0\", where versions 2 and 3 are read");
    refused("<system version=\"1\"/>", "<system> where <topology> of hwloc is needed");
    refused("<topology version=\"2.0\"/>", "f: no object in it");
}

#define INSIDE(text) "<topology version=\"2.0\"><object type=\"Machine\"/>" text "</topology>"

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    refused(INSIDE("<object/>"), "<object> without a type");
    refused(INSIDE("<object type=\"PCIDev\" pci_busid=\"x\"/>"), "pci_busid=\"x\" is no PCI");
    refused(INSIDE("<object type=\"PCIDev\" pci_type=\"0302 [10de:2330]\"/>"),
            "a PCI device without pci_busid");
    refused(INSIDE("<distances2 nbobjs=\"100000\"/>"), "nbobjs=\"100000\" is no number from 1");
    refused(INSIDE("<distances2 nbobjs=\"2\"><indexes>0 1</indexes><u64values>1 2 3</u64values>"
                   "</distances2>"),
            "distances of 2 objects have 3 values");
    refused(INSIDE("<distances2 nbobjs=\"2\"><indexes>0 one</indexes></distances2>"),
            "\"one\" among distances is no number");
    refused(INSIDE("<distances2 nbobjs=\"1\"><u64values>-5</u64values></distances2>"),
            "\"-5\" among distances is no number");
}

static void files_of_other_machines_are_read(void **state)
{
    static const struct {
        const char *name;
        int gpus, endpoints, nics, links;
    } row[] = {{"nvidiaDGX2", 16, 16, 0, 6},
               {"power8gpudistances", 4, 4, 0, 4},
               {"96em64t-4n4d3ca2co-pci", 0, 16, 8, 0},
               {"16amd64-4distances", 0, 8, 0, 0},
               {"8intel64-4n2t-memattrs", 0, 1, 0, 0}};
    struct topo t;

    (void)state;
    if (access(SHARED "v2/nvidiaDGX2.xml", R_OK) != 0) {
        print_message("no " SHARED " here\n");
        skip();
    }
    for (size_t k = 0; k < 2 * (sizeof(row) / sizeof(*row)); k++) {
        char path[128];
        size_t i = k / 2;
        snprintf(path, sizeof(path), SHARED "v%d/%s.xml", k % 2 ? 3 : 2, row[i].name);
        read_file(&t, path);
        assert_int_equal(t.gpus, row[i].gpus);
        assert_int_equal(t.endpoints, row[i].endpoints);
        if (row[i].nics)
            assert_int_equal(t.nics, row[i].nics);
        for (int g = 0; g < t.gpus; g++)
            assert_int_equal(t.gpu[g].links, row[i].links);
        topo_free(&t);
    }
    read_file(&t, SHARED "v2/nvidiaDGX2.xml");
    assert_int_equal(t.gpu[0].remotes, 6); /* six switches of its half */
    for (int i = 0; i < 6; i++)
        assert_int_equal(t.gpu[0].remote[i].kind, LINK_END_SWITCH);
    assert_true(t.gpu[0].link_Bps == 25e9);
    assert_string_equal(t.gpu[15].uuid, "GPU-bb4648d3-e72b-4bac-a32f-4c9f3e4eb547");
    topo_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_with_four_gpus_and_a_switch),
        cmocka_unit_test(other_versions_are_refused_with_a_way_out),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(files_of_other_machines_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
