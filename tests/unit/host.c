/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's answer is the test's own: gethostname() below stands before that of libc. */
#include "base/host.h"

#include <errno.h>
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

static const char *told; /* NULL: gethostname() fails */

/* As glibc's: cut without a terminator, and an error, where there is no room for all. */
int gethostname(char *name, size_t size)
{
    size_t need = told ? strlen(told) + 1 : 0;

    if (told)
        memcpy(name, told, need < size ? need : size);
    if (told && need <= size)
        return 0;
    errno = told ? ENAMETOOLONG : EFAULT;
    return -1;
}

static void the_name_is_the_kernels(void **state)
{
    char name[64];

    (void)state;
    told = "node0003.rack7";
    assert_ptr_equal(host_self(name, sizeof(name)), name);
    assert_string_equal(name, "node0003.rack7");
    told = "other"; /* nothing is remembered */
    assert_string_equal(host_self(name, sizeof(name)), "other");
}

static void a_long_name_is_cut_and_terminated(void **state)
{
    char name[8 + 1];

    (void)state;
    memset(name, '#', sizeof(name));
    told = "node0003.rack7";
    assert_string_equal(host_self(name, 8), "node000");
    assert_int_equal(name[8], '#');
    assert_string_equal(host_self(name, 1), "");
}

static void no_name_is_localhost(void **state)
{
    char name[64];

    (void)state;
    told = NULL;
    assert_string_equal(host_self(name, sizeof(name)), "localhost");
    told = "";
    assert_string_equal(host_self(name, sizeof(name)), "localhost");
}

/* --- nodes of pods --- */

static char sys[] = "/tmp/railgauge-host-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", sys, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* A pod "worker-0" on a machine whose firmware says nothing. */
static int a_pod(void **state)
{
    static const char *const dirs[] = {"", "/class", "/class/dmi", "/class/dmi/id"};
    char path[200];

    (void)state;
    strcpy(sys + sizeof(sys) - 7, "XXXXXX");
    assert_non_null(mkdtemp(sys));
    for (size_t i = 1; i < 4; i++) {
        snprintf(path, sizeof(path), "%s%s", sys, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    told = "worker-0";
    setenv("RAILGAUGE_SYS", sys, 1);
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    unsetenv("NODE_NAME");
    return 0;
}

static int no_pod(void **state)
{
    static const char *const left[] = {"/class/dmi/id/board_asset_tag",
                                       "/class/dmi/id/product_uuid",
                                       "/map",
                                       "/class/dmi/id",
                                       "/class/dmi",
                                       "/class",
                                       ""};
    char path[200];

    (void)state;
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        snprintf(path, sizeof(path), "%s%s", sys, left[i]);
        remove(path);
    }
    unsetenv("RAILGAUGE_SYS");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("NODE_NAME");
    return 0;
}

static const char *self(void)
{
    static char name[64];

    return host_self(name, sizeof(name));
}

static void the_downward_api_names_the_node(void **state)
{
    char name[64];

    (void)state;
    put("class/dmi/id/product_uuid", "4c4c4544-0042-4a10-8054-b2c04f4d3532\n");
    setenv("NODE_NAME", "gb200-007.rack1", 1);
    assert_string_equal(self(), "gb200-007.rack1");
    assert_string_equal(host_kernel(name, sizeof(name)), "worker-0");
    setenv("NODE_NAME", "", 1); /* what is no name is none */
    assert_string_equal(self(), "4c4c4544-0042-4a10-8054-b2c04f4d3532");
    setenv("NODE_NAME", "$(NODE_NAME)", 1); /* not expanded: the variable stands behind its use */
    assert_string_equal(self(), "4c4c4544-0042-4a10-8054-b2c04f4d3532");
    setenv("NODE_NAME", "-n", 1);
    assert_string_equal(self(), "4c4c4544-0042-4a10-8054-b2c04f4d3532");
}

static void a_pod_without_it_is_named_after_the_machine(void **state)
{
    static const char *const no_ids[] = {
        "03000200-0400-0500-0006-000700080009", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "00000000-0000-0000-0000-000000000000", "Not Specified",
        "4c4c4544-0042-4a10-8054-b2c04f4d353",  "4c4c4544-0042-4a10-8054-b2c04f4d3532x"};

    (void)state;
    assert_string_equal(self(), "worker-0"); /* nothing is readable */
    for (size_t i = 0; i < sizeof(no_ids) / sizeof(*no_ids); i++) {
        put("class/dmi/id/product_uuid", no_ids[i]);
        assert_string_equal(self(), "worker-0");
    }
    put("class/dmi/id/product_uuid", "4C4C4544-0042-4A10-8054-B2C04F4D3532\n");
    assert_string_equal(self(), "4c4c4544-0042-4a10-8054-b2c04f4d3532");
    put("class/dmi/id/board_asset_tag", "7783-7084-3265-9085-8269-3286-77\n"); /* all of Azure */
    assert_string_equal(self(), "4c4c4544-0042-4a10-8054-b2c04f4d3532");
    put("class/dmi/id/board_asset_tag", "i-0123456\n"); /* shorter than EC2's oldest */
    assert_string_equal(self(), "4c4c4544-0042-4a10-8054-b2c04f4d3532");
    put("class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n");
    assert_string_equal(self(), "i-0123456789abcdef0");
    unsetenv("KUBERNETES_SERVICE_HOST"); /* a machine has its own name */
    assert_string_equal(self(), "worker-0");
}

static int read_map(const char *text, struct err *err)
{
    char path[200];

    put("map", text);
    snprintf(path, sizeof(path), "%s/map", sys);
    return host_map(NULL, path, err);
}

/* Last: rows stay for the whole process. */
static void a_map_names_pods_machines_and_provider_ids(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"a b\nworker-1\n", "map:2: a line is \"SEEN NODE\", two words"},
        {"worker-1 n1 n2\n", "map:1: a line is \"SEEN NODE\", two words"},
        {"worker-1 <none>\n", "map:1: \"<none>\" cannot be the name of a node"},
        {"worker-1 n1\n# again\nWORKER-1 n2\n", "map:3: WORKER-1 is on node n1 and on node n2"},
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(read_map(bad[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        assert_non_null(strstr(err.text, bad[i].why));
    }
    put("class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n");
    assert_int_equal(read_map("# pod node\n\n  worker-0\tgpu-07  \r\nworker-0 gpu-07\n"
                              "aws:///us-west-2a/i-0123456789abcdef0 ip-10-0-0-7\n"
                              "old new\n",
                              &err),
                     0);
    assert_string_equal(self(), "gpu-07");
    told = "worker-9";
    assert_string_equal(self(), "ip-10-0-0-7");
    unsetenv("KUBERNETES_SERVICE_HOST"); /* the file says that names are wanted */
    assert_string_equal(self(), "ip-10-0-0-7");
    put("class/dmi/id/board_asset_tag", "i-0123456789abcdef1\n");
    setenv("NODE_NAME", "old", 1);
    assert_string_equal(self(), "new");
    setenv("NODE_NAME", "other", 1);
    assert_string_equal(self(), "other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_the_kernels),
        cmocka_unit_test(a_long_name_is_cut_and_terminated),
        cmocka_unit_test(no_name_is_localhost),
        cmocka_unit_test_setup_teardown(the_downward_api_names_the_node, a_pod, no_pod),
        cmocka_unit_test_setup_teardown(a_pod_without_it_is_named_after_the_machine, a_pod, no_pod),
        cmocka_unit_test_setup_teardown(a_map_names_pods_machines_and_provider_ids, a_pod, no_pod),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
