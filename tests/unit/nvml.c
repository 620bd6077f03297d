/* SPDX-License-Identifier: BSD-3-Clause */
/* nvml.c - what NVML tells, through the stand-in library and its profiles (tests/fake/nvml). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/sources/host/nvml.h"
#include "topo/sources/host/nvml_api.h"

static char folder[] = "/tmp/railgauge-nvml-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder);
}

static int remove_folder(void **state)
{
    char *command = mem_printf("rm -r %s", folder);
    int rc = system(command);

    (void)state;
    free(command);
    return rc;
}

/* A profile of a few lines; what it includes is in tests/fake/nvml. */
static void profile(const char *text)
{
    char path[128], here[512];

    snprintf(path, sizeof(path), "%s/profile.txt", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_non_null(getcwd(here, sizeof(here)));
    if (!strncmp(text, "include ", 8))
        fprintf(f, "include %s/tests/fake/nvml/%s", here, text + 8);
    else
        fputs(text, f);
    fclose(f);
    setenv("FAKE_NVML", path, 1);
}

static struct nvml *open_fake(const char *text)
{
    const char *build = getenv("RG_BUILD");
    char *library = mem_printf("%s/fake/libnvidia-ml.so.1", build ? build : "build");
    struct nvml *n;
    struct err err;

    profile(text);
    setenv("RAILGAUGE_NVML", library, 1);
    free(library);
    if (nvml_open(&n, &err) < 0)
        fail_msg("%s", err.text);
    return n;
}

static struct gpu read_gpu(const char *text, int i)
{
    struct nvml *n = open_fake(text);
    struct err err;
    struct gpu g;

    if (nvml_read(n, i, &g, &err) < 0)
        fail_msg("%s", err.text);
    nvml_close(n);
    return g;
}

static void a_gb300_tells_everything(void **state)
{
    struct gpu g = read_gpu("include gb300.txt\ngpu 1 down 3 11\necc 4 0\n", 1);

    (void)state;
    assert_string_equal(g.busid, "0009:06:00.0");
    assert_string_equal(g.uuid, "GPU-00000000-0000-0000-0000-000000000001");
    assert_string_equal(g.model, "NVIDIA GB300");
    assert_string_equal(g.driver, "580.173.02");
    assert_int_equal(g.links, 18);
    assert_int_equal(g.down, 1 << 3 | 1 << 11);
    assert_int_equal(gpu_links_up(&g), 16);
    assert_true(g.link_Bps == 53125e6);
    assert_int_equal(g.remotes, 1);
    assert_int_equal(g.remote[0].kind, LINK_END_SWITCH);
    assert_string_equal(g.remote[0].busid, "");
    assert_int_equal(g.remote[0].links, 16);
    assert_int_equal(g.paths, 4);
    assert_int_equal(g.path[0], PATH_PHB);
    assert_int_equal(g.path[1], PATH_SELF);
    assert_int_equal(g.path[2], PATH_SYS);
    assert_int_equal(g.state, FABRIC_COMPLETED);
    assert_int_equal(g.status, 0);
    assert_string_equal(g.cluster, "00000001-0000-0000-0000-000000000001");
    assert_int_equal(g.clique, 32766);
    assert_int_equal(g.health, 0x1aa);
    assert_int_equal(g.summary, 1);
    assert_string_equal(g.chassis, "1820000000001");
    assert_int_equal(g.slot, 25);
    assert_int_equal(g.tray, 15);
    assert_int_equal(g.node, 1);
    assert_int_equal(g.module, 1);
    assert_int_equal(g.pcie_gen, 6);
    assert_int_equal(g.pcie_gen_max, 6);
    assert_int_equal(g.pcie_width, 16);
    assert_int_equal(g.sm_MHz, 120);
    assert_int_equal(g.sm_MHz_max, 2070);
    assert_int_equal(g.throttle, 1);
    assert_int_equal(g.ecc_corrected, 4);
    assert_int_equal(g.ecc_uncorrected, 0);
    assert_int_equal(g.retired_pages, -1);
    assert_int_equal(g.remapped_rows, 0);
    assert_int_equal(g.remap, REMAP_NONE);
    assert_int_equal(g.pcie_replays, 0);
    assert_int_equal(g.link_errors, 0);
    assert_int_equal(g.recovery, 0);
}

static void an_hgx_has_no_chassis_and_a_cluster_of_zeros(void **state)
{
    struct gpu g = read_gpu("include h100.txt\n", 5);

    (void)state;
    assert_int_equal(g.remotes, 4);
    assert_string_equal(g.remote[1].busid, "0000:02:00.0");
    assert_int_equal(g.remote[0].links + g.remote[1].links, 10);
    assert_int_equal(g.path[4], PATH_NODE);
    assert_int_equal(g.path[3], PATH_SYS);
    assert_string_equal(g.cluster, "00000000-0000-0000-0000-000000000000");
    assert_int_equal(g.summary, -1); /* its driver knows version 2 only */
    assert_int_equal(g.health, 0);
    assert_string_equal(g.chassis, "");
    assert_int_equal(g.tray, -1);
    assert_int_equal(g.module, 3); /* from the call of its own */
    g = read_gpu("include b200.txt\n", 0);
    assert_string_equal(g.chassis, "");
    assert_int_equal(g.tray, -1); /* 255 stands for none */
    assert_int_equal(g.node, 1);
    assert_int_equal(g.module, 7);
}

static void older_calls_are_tried_and_missing_ones_stay_untold(void **state)
{
    struct gpu g = read_gpu("include gb200.txt\nfabric_version 2\nplatform_version 1\n", 0);

    (void)state;
    assert_string_equal(g.chassis, "1820000000001");
    assert_int_equal(g.health, 0xaa);
    assert_int_equal(g.summary, -1);
    g = read_gpu("include gb200.txt\nfabric_version 4\n", 0); /* the calls of before are gone */
    assert_int_equal(g.state, FABRIC_COMPLETED);
    assert_int_equal(g.clique, 2);
    assert_int_equal(g.summary, 1);
    g = read_gpu("include gb200.txt\nfabric_version 0\n", 0);
    assert_int_equal(g.state, FABRIC_COMPLETED);
    assert_int_equal(g.clique, 2);
    assert_int_equal(g.health, -1);
    g = read_gpu("include rtxpro6000.txt\n", 6);
    assert_int_equal(g.state, FABRIC_NONE);
    assert_int_equal(g.links, 0);
    assert_int_equal(g.pcie_width, 8);
    assert_int_equal(g.pcie_width_max, 16);
    assert_int_equal(g.retired_pages, 0);
    g = read_gpu("gpus 1\nbusid 0000:01:00.0\n", 0);
    assert_string_equal(g.model, "");
    assert_string_equal(g.uuid, "");
    assert_int_equal(g.path[0], PATH_SELF);
    assert_int_equal(g.state, FABRIC_NONE);
    assert_int_equal(g.module, -1);
    assert_int_equal(g.pcie_gen, -1);
    assert_int_equal(g.throttle, -1);
    assert_int_equal(g.ecc_uncorrected, -1);
    assert_int_equal(g.remap, -1);
    assert_int_equal(g.link_errors, -1);
}

static void a_registration_that_is_not_complete_says_nothing_more(void **state)
{
    struct gpu g = read_gpu("include gb300.txt\nstate 2\n", 0);

    (void)state;
    assert_int_equal(g.state, FABRIC_IN_PROGRESS);
    assert_int_equal(g.status, -1);
    assert_string_equal(g.cluster, "");
    assert_int_equal(g.clique, -1);
    assert_int_equal(g.health, -1);
    g = read_gpu("include gb300.txt\nstate 9\n", 0);
    assert_int_equal(g.state, -1);
}

static void repairs_and_what_the_driver_asks_for(void **state)
{
    struct gpu g = read_gpu("include gb300.txt\nremapped 2 1 1 0\nretired 3 4\nrecovery 4\n", 0);

    (void)state;
    assert_int_equal(g.remapped_rows, 3);
    assert_int_equal(g.remap, REMAP_PENDING);
    assert_int_equal(g.retired_pages, 7);
    assert_int_equal(g.recovery, 4);
    g = read_gpu("include gb300.txt\nremapped 0 0 1 1\n", 0);
    assert_int_equal(g.remap, REMAP_FAILED);
}

static void links_lead_to_other_gpus_to_the_cpu_or_nowhere_known(void **state)
{
    static const char profile_text[] =
        "gpus 2\ngpu 0 busid 0000:01:00.0\ngpu 1 busid 0000:02:00.0\n"
        "links 4\nspeed 25000\n"
        "gpu 0 end gpu\ngpu 0 peer 0000:02:00.0\ngpu 1 end npu\n";
    struct gpu g = read_gpu(profile_text, 0);

    (void)state;
    assert_int_equal(g.remotes, 1);
    assert_int_equal(g.remote[0].kind, LINK_END_GPU);
    assert_string_equal(g.remote[0].busid, "0000:02:00.0");
    assert_int_equal(g.remote[0].links, 4);
    g = read_gpu(profile_text, 1);
    assert_int_equal(g.remote[0].kind, LINK_END_CPU);
    g = read_gpu("gpus 1\nbusid 0000:01:00.0\nlinks 4\n", 0);
    assert_int_equal(g.remote[0].kind, LINK_END_UNKNOWN);
    assert_true(g.link_Bps == 0);
}

static void numbers_of_every_type_are_read(void **state)
{
    char text[96];

    (void)state;
    for (int type = 0; type < 7; type++) {
        snprintf(text, sizeof(text), "include gb300.txt\nerror 3 41\nerror 4 1\ntype %d\n", type);
        struct gpu g = read_gpu(text, 0);
        assert_int_equal(g.link_errors, type == 6 ? -1 : 42);
    }
}

static void a_lost_gpu_is_named_and_the_others_are_read(void **state)
{
    struct nvml *n = open_fake("include gb300.txt\ngpu 2 lost 1\n");
    struct nvml_counts c;
    struct err err;
    struct gpu g;

    (void)state;
    assert_int_equal(nvml_count(n), 4);
    assert_int_equal(nvml_read(n, 2, &g, &err), 0);
    assert_true(gpu_is_lost(&g));
    assert_int_equal(g.status, GPU_LOST);
    assert_string_equal(g.busid, "");
    assert_int_equal(nvml_find(n, "0018:06:00.0"), -1);
    assert_int_equal(nvml_find(n, "0019:06:00.0"), 3);
    assert_int_equal(nvml_read(n, 3, &g, &err), 0);
    assert_false(gpu_is_lost(&g));
    assert_int_equal(g.path[2], -1);
    nvml_watch(n, 2);
    nvml_look(n, 2, &c);
    assert_int_equal(c.throttle, -1);
    nvml_close(n);
}

static void what_cannot_be_loaded_says_why(void **state)
{
    struct nvml *n;
    struct err err;

    (void)state;
    setenv("RAILGAUGE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    assert_int_equal(nvml_open(&n, &err), -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_non_null(
        strstr(err.text, "RAILGAUGE_NVML: /nonexistent/libnvidia-ml.so.1: cannot open"));
    setenv("RAILGAUGE_NVML", "libm.so.6", 1);
    assert_int_equal(nvml_open(&n, &err), -1);
    assert_non_null(strstr(err.text, "libm.so.6 has no nvmlInit_v2"));
    struct nvml *fake = open_fake("gpus 0\n");
    nvml_close(fake);
    unsetenv("FAKE_NVML");
    assert_int_equal(nvml_open(&n, &err), -1);
    assert_non_null(strstr(err.text, "nvmlInit: Driver Not Loaded"));
    assert_null(n);
    nvml_close(NULL);
}

/* --- before and after --- */

static bool harm(const char *text, char *words, size_t len)
{
    struct nvml *n = open_fake(text);
    struct nvml_counts before, after;

    nvml_watch(n, 1);
    nvml_look(n, 1, &before);
    nvml_look(n, 1, &after);
    nvml_close(n);
    return nvml_harm(&before, &after, words, len);
}

static void what_happens_between_two_looks_is_harm(void **state)
{
    char w[128];

    (void)state;
    assert_false(
        harm("include gb300.txt\nerror 4 7\nreplays 5\necc 3 3\nthrottle 7\n", w, sizeof(w)));
    assert_string_equal(w, "");
    assert_true(harm("include gb300.txt\nafter 2 throttle 0x48\n", w, sizeof(w)));
    assert_string_equal(w, "hardware thermal slowdown");
    assert_true(harm("include gb300.txt\nafter 2 slow 0 0 4000000\n", w, sizeof(w)));
    assert_string_equal(w, "hardware power brake");
    assert_true(harm("include gb300.txt\nafter 2 gpu 1 error 4 7\nafter 2 gpu 2 error 5 100\n", w,
                     sizeof(w)));
    assert_string_equal(w, "7 NVLink errors");
    assert_true(harm("include h100.txt\nafter 2 error 17 2\nafter 2 replays 3\n", w, sizeof(w)));
    assert_string_equal(w, "2 NVLink errors, 3 PCIe replays");
    assert_true(harm("include h100.txt\nafter 2 xid 79\nafter 2 ecc 0 1\n", w, sizeof(w)));
    assert_string_equal(w, "Xid 79, 1 uncorrected memory errors");
    assert_false(harm("gpus 2\nbusid 0000:01:00.0\nxid -1\n", w, sizeof(w)));
}

static void only_reasons_that_slow_down_have_words(void **state)
{
    char w[128];

    (void)state;
    nvml_throttle_words(0x1 | 0x2 | 0x4 | 0x10 | 0x100, w, sizeof(w));
    assert_string_equal(w, "");
    nvml_throttle_words(-1, w, sizeof(w));
    assert_string_equal(w, "");
    nvml_throttle_words(0x08, w, sizeof(w));
    assert_string_equal(w, "hardware slowdown");
    nvml_throttle_words(0x08 | 0x20 | 0x80, w, sizeof(w));
    assert_string_equal(w, "software thermal slowdown, hardware power brake");
}

static void each_health_field_has_its_word_and_zero_is_no_good_news(void **state)
{
    static const struct {
        long long mask;
        int told;
        const char *words;
    } cases[] = {{0, 0, ""},
                 {-1, 0, ""},
                 {0x1aa, 5, ""},
                 {0x11aa, 6, ""},
                 {0x1, 1, "bandwidth degraded"},
                 {0x4, 1, "route recovery in progress"},
                 {0x10, 1, "route unhealthy"},
                 {1 << 14, 1, ""}, /* the fabric manager is connected */
                 {2 << 14, 1, "fabric manager disconnected"},
                 {0x40, 1, "access timeout recovery in progress"},
                 {0x100, 1, ""},
                 {0x200, 1, "wrong system GUID"},
                 {0x300, 1, "wrong chassis serial number"},
                 {0x400, 1, "no partition"},
                 {0x500, 1, "too few NVLinks"},
                 {0x600, 1, "incompatible GPU firmware"},
                 {0x700, 1, "invalid location"},
                 {0x800, 1, "GPU state invalid"},
                 {0xf00, 1, "incorrect configuration of an unknown kind"},
                 {0x2000, 1, "no partition assigned"},
                 {0x199, 5, "bandwidth degraded, route unhealthy"}};
    char w[128];
    int told;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        nvml_health_words(cases[i].mask, w, sizeof(w), &told);
        assert_string_equal(w, cases[i].words);
        assert_int_equal(told, cases[i].told);
    }
    nvml_health_words(0x11, w, 8, &told);
    assert_string_equal(w, "bandwid");
}

static void results_and_recoveries_have_words(void **state)
{
    (void)state;
    assert_string_equal(nvml_result_word(0), "success");
    assert_string_equal(nvml_result_word(23), "insufficient resources");
    assert_string_equal(nvml_result_word(12345), "an error without a name here");
    assert_string_equal(nvml_recovery_word(-1), "");
    assert_string_equal(nvml_recovery_word(0), "");
    assert_string_equal(nvml_recovery_word(5), "recover the IMEX domain");
    assert_string_equal(nvml_recovery_word(6), "reset the GPU's PCIe bus");
    assert_string_equal(nvml_recovery_word(7), "reboot the system");
    assert_string_equal(nvml_recovery_word(8), "recover");
}

/* --- IMEX --- */

static void put_file(const char *path, const char *text)
{
    char *full = mem_printf("%s%s", folder, path);
    FILE *f = fopen(full, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(full);
}

static void put_folder(const char *path)
{
    char *full = mem_printf("%s%s", folder, path);

    assert_int_equal(mkdir(full, 0755), 0);
    free(full);
}

static void check_imex(int channels, int nodes)
{
    struct topo t;
    struct err err;

    nvml_close(open_fake("include gb300.txt"));
    topo_init(&t);
    assert_int_equal(topo_read_nvml(&t, topo_add_host(&t, "h"), folder, &err), 0);
    assert_int_equal(t.gpu[0].imex_channels, channels);
    assert_int_equal(t.gpu[0].imex_nodes, nodes);
    topo_free(&t);
}

static void channels_and_nodes_are_counted_below_a_root(void **state)
{
    (void)state;
    check_imex(-1, -1);
    put_folder("/dev");
    check_imex(0, -1);
    put_folder("/dev/nvidia-caps-imex-channels");
    put_file("/dev/nvidia-caps-imex-channels/channel0", "");
    put_file("/dev/nvidia-caps-imex-channels/channel7", "");
    put_file("/dev/nvidia-caps-imex-channels/other", "");
    check_imex(2, -1);
    put_folder("/etc");
    put_folder("/etc/nvidia-imex");
    put_file("/etc/nvidia-imex/nodes_config.cfg",
             "# nodes\n10.0.0.1\n  10.0.0.2\n\n \n#10.0.0.3\n");
    check_imex(2, 2);
}

/* --- structures: the sizes that libraries of drivers 550 and 580 check --- */

static void versioned_structures_have_the_sizes_of_nvml(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct nvml_pci), 68);
    assert_int_equal(sizeof(struct nvml_field), 40);
    assert_int_equal(sizeof(struct nvml_fabric_v2), 36);
    assert_int_equal(sizeof(struct nvml_fabric), 40);
    assert_int_equal(sizeof(struct nvml_platform), 44);
    assert_int_equal(sizeof(struct nvml_event), 32);
    assert_int_equal(NVML_VERSIONED(struct nvml_platform, 2), 0x200002c);
    assert_int_equal(NVML_VERSIONED(struct nvml_fabric_v2, 2), 0x2000024);
    assert_int_equal(NVML_VERSIONED(struct nvml_fabric, 3), 0x3000028);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gb300_tells_everything),
        cmocka_unit_test(an_hgx_has_no_chassis_and_a_cluster_of_zeros),
        cmocka_unit_test(older_calls_are_tried_and_missing_ones_stay_untold),
        cmocka_unit_test(a_registration_that_is_not_complete_says_nothing_more),
        cmocka_unit_test(repairs_and_what_the_driver_asks_for),
        cmocka_unit_test(links_lead_to_other_gpus_to_the_cpu_or_nowhere_known),
        cmocka_unit_test(numbers_of_every_type_are_read),
        cmocka_unit_test(a_lost_gpu_is_named_and_the_others_are_read),
        cmocka_unit_test(what_cannot_be_loaded_says_why),
        cmocka_unit_test(what_happens_between_two_looks_is_harm),
        cmocka_unit_test(only_reasons_that_slow_down_have_words),
        cmocka_unit_test(each_health_field_has_its_word_and_zero_is_no_good_news),
        cmocka_unit_test(results_and_recoveries_have_words),
        cmocka_unit_test(channels_and_nodes_are_counted_below_a_root),
        cmocka_unit_test(versioned_structures_have_the_sizes_of_nvml),
    };

    return cmocka_run_group_tests_name("nvml", tests, make_folder, remove_folder);
}
