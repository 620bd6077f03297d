/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/nccl_api.h"
#include "test.h"

/* Each loads from the start; what an earlier load opened stays open, as in real programs. */
static int load(const char *file, const char *version, struct err *err)
{
    nccl = (struct nccl_api){0};
    setenv("RAILGAUGE_NCCL", file, 1);
    if (version)
        setenv("FAKE_NCCL_VERSION", version, 1);
    else
        unsetenv("FAKE_NCCL_VERSION");
    return nccl_load(err);
}

static const char *fake(void)
{
    static char path[512];
    const char *build = getenv("RG_BUILD");

    snprintf(path, sizeof(path), "%s/fake/libnccl.so.2", build ? build : "build");
    return path;
}

TEST(a_library_that_is_not_there_is_told_with_the_loaders_words)
{
    struct err err = {0};

    assert_int_equal(load("/no/such/libnccl.so.2", NULL, &err), -1);
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_non_null(strstr(err.text, "NCCL cannot be loaded: /no/such/libnccl.so.2"));
    assert_int_equal(nccl.version, 0);
}

TEST(a_library_without_the_functions_is_refused_by_name)
{
    struct err err = {0};

    assert_int_equal(load("libc.so.6", NULL, &err), -1);
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_non_null(strstr(err.text, "libc.so.6 has no ncclGetVersion"));
    assert_int_equal(nccl.version, 0);
}

TEST(a_library_is_loaded_once_with_all_its_functions)
{
    struct err err = {0};

    assert_int_equal(load(fake(), NULL, &err), 0);
    assert_int_equal(nccl.version, 22809);
    assert_non_null(strstr(nccl.path, "fake/libnccl.so.2"));
    assert_non_null(nccl.AllReduce);
    assert_non_null(nccl.AlltoAll);
    assert_non_null(nccl.Scatter);
    assert_non_null(nccl.CommWindowDeregister);
    assert_string_equal(nccl.GetErrorString(NCCL_SUCCESS), "no error");
    setenv("RAILGAUGE_NCCL", "/no/such/file", 1);
    assert_int_equal(nccl_load(&err), 0);
}

TEST(an_older_library_has_only_what_came_with_it)
{
    struct err err = {0};
    struct nccl_config config;

    assert_int_equal(load(fake(), "22705", &err), 0);
    assert_null(nccl.AlltoAll);
    assert_null(nccl.Gather);
    assert_null(nccl.Scatter);
    assert_non_null(nccl.CommWindowRegister);
    nccl_config(&config);
    assert_int_equal(config.size, offsetof(struct nccl_config, n_channels_per_net_peer));
    assert_int_equal(config.version, 22705);

    assert_int_equal(load(fake(), "21903", &err), 0);
    assert_null(nccl.CommWindowRegister);
    assert_non_null(nccl.MemAlloc);
    nccl_config(&config);
    assert_int_equal(config.size, 48);
    assert_int_equal(config.magic, 0xcafebeef);
    assert_int_equal(config.blocking, NCCL_UNDEF_INT);
    assert_null(config.net_name);
}

TEST(a_newer_library_gets_the_config_that_we_know)
{
    struct err err = {0};
    struct nccl_config config;

    assert_int_equal(load(fake(), "23307", &err), 0);
    nccl_config(&config);
    assert_int_equal(config.size, sizeof(config));
    assert_in_range(config.version, 23200, 23299);
}

/* sizeof(ncclConfig_t) as the header of each release has it, 64-bit. */
TEST(each_release_gets_the_size_that_its_header_has)
{
    static const struct {
        const char *version;
        size_t size;
    } want[] = {{"21903", 48}, {"22605", 48}, {"22707", 72},  {"22809", 80},  {"22902", 88},
                {"23003", 96}, {"23007", 96}, {"23102", 112}, {"23203", 120}, {"23301", 120}};
    struct nccl_config config;
    struct err err = {0};

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        assert_int_equal(load(fake(), want[i].version, &err), 0);
        nccl_config(&config);
        assert_int_equal(config.size, want[i].size);
        assert_int_equal(config.nvls_host_mode, NCCL_UNDEF_INT);
    }
}

TEST(a_field_is_found_in_the_headers_spelling_and_any_case)
{
    assert_int_equal(nccl_config_find("ctapolicy")->at, offsetof(struct nccl_config, cta_policy));
    assert_int_equal(nccl_config_find("graphStreamOrdering")->since, 23005);
    assert_null(nccl_config_find("blocking")); /* not the user's to choose */
}

TEST(a_library_that_is_too_old_is_refused_with_its_version)
{
    struct err err = {0};

    assert_int_equal(load(fake(), "21806", &err), -1);
    assert_int_equal(err.code, EXIT_CONFIG);
    assert_non_null(strstr(err.text, "is NCCL 2.18.6; 2.19 or newer is needed"));
}

TEST(types_and_reductions_are_found_by_every_name)
{
    static const struct {
        const char *word;
        int dtype;
        size_t size;
    } want[] = {
        {"int8", NCCL_INT8, 1},          {"uint8", NCCL_UINT8, 1},
        {"int32", NCCL_INT32, 4},        {"uint32", NCCL_UINT32, 4},
        {"int64", NCCL_INT64, 8},        {"uint64", NCCL_UINT64, 8},
        {"half", NCCL_FLOAT16, 2},       {"float", NCCL_FLOAT32, 4},
        {"double", NCCL_FLOAT64, 8},     {"bfloat16", NCCL_BFLOAT16, 2},
        {"f8e4m3", NCCL_FLOAT8E4M3, 1},  {"f8e5m2", NCCL_FLOAT8E5M2, 1},
        {"BF16", NCCL_BFLOAT16, 2},      {"fp32", NCCL_FLOAT32, 4},
        {"char", NCCL_INT8, 1},          {"int", NCCL_INT32, 4},
        {"fp8e4m3", NCCL_FLOAT8E4M3, 1}, {"float8e5m2", NCCL_FLOAT8E5M2, 1},
    };

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        assert_int_equal(nccl_dtype_find(want[i].word), want[i].dtype);
        assert_int_equal(nccl_dtype_size(want[i].dtype), want[i].size);
    }
    for (int i = 0; i < NCCL_DTYPES; i++)
        assert_int_equal(nccl_dtype_find(nccl_dtype_name[i]), i);
    for (int i = 0; i < NCCL_REDOPS; i++)
        assert_int_equal(nccl_redop_find(nccl_redop_name[i]), i);
    assert_int_equal(nccl_dtype_find("fp4"), -1);
    assert_int_equal(nccl_redop_find("mulsum"), -1);
    assert_int_equal(nccl_dtype_size(NCCL_DTYPES), 0);
    assert_int_equal(nccl_dtype_size(-1), 0);
}
