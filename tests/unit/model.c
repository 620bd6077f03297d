/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/model.h"

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

static const struct {
    const char *name;
    double total,
        gflop_per_token; /* published totals; NVIDIA's tokens/s <-> TFLOP/s at 8192, causal */
} truth[] = {
    {"llama3.1-8b", 8.030e9, 51.5},
    {"llama3.1-70b", 70.554e9, 449.2},
    {"llama3.1-405b", 405.853e9, 2524},
};
enum { TRUTHS = sizeof(truth) / sizeof(*truth) };

static void parameters_agree_with_the_published_totals(void **state)
{
    (void)state;
    for (int i = 0; i < TRUTHS; i++) {
        struct model m;
        struct params p;
        assert_int_equal(model_load(&m, truth[i].name, NULL), 0);
        model_params(&m, &p);
        assert_float_equal(p.total / truth[i].total, 1, 0.0005);
        assert_float_equal(p.layers + p.embedding + m.hidden, p.total, 1);
        model_free(&m);
    }
}

static void flops_per_token_agree_with_published_ratios(void **state)
{
    (void)state;
    for (int i = 0; i < TRUTHS; i++) {
        struct model m;
        struct flops f, full;
        assert_int_equal(model_load(&m, truth[i].name, NULL), 0);
        model_flops(&m, 8192, true, &f);
        assert_float_equal(flops_total(&f) / 1e9 / truth[i].gflop_per_token, 1, 0.006);
        model_flops(&m, 8192, false, &full);
        assert_float_equal(full.core, 2 * f.core, 1);
        assert_float_equal(full.linear, f.linear, 1);
        model_free(&m);
    }
}

static void flops_without_a_causal_mask_are_what_mlperf_states_for_405b(void **state)
{
    struct model m;
    struct flops f;

    (void)state;
    assert_int_equal(model_load(&m, "llama3.1-405b", NULL), 0);
    model_flops(&m, 8192, false, &f);
    /* MODEL_TFLOP_PER_SAMPLE=21508 at 8192 tokens */
    assert_float_equal(flops_total(&f) * 8192 / 1e12 / 21508, 1, 0.006);
    model_free(&m);
}

static void only_core_flops_grow_with_the_sequence(void **state)
{
    struct model m;
    struct flops a, b;

    (void)state;
    assert_int_equal(model_load(&m, "llama3.1-8b", NULL), 0);
    model_flops(&m, 4096, true, &a);
    model_flops(&m, 8192, true, &b);
    assert_float_equal(b.core, 2 * a.core, 1);
    assert_float_equal(b.linear, a.linear, 0);
    model_free(&m);
}

#define HEAD                                                                                       \
    "{\"format\":\"railgauge-model\",\"version\":1,\"name\":\"x\",\"title\":\"X\",\"source\":"     \
    "\"s\","
#define SIZE "\"hidden\":64,\"vocab\":100,\"tied_embeddings\":true,"
#define ATTN "\"attention\":{\"kind\":\"gqa\",\"heads\":8,\"kv_heads\":2,\"head_dim\":8}"
#define MLP "\"mlp\":{\"kind\":\"plain\",\"ffn\":256}"

static int load_text(struct model *m, const char *text, struct err *err)
{
    char path[] = "/tmp/model-XXXXXX.json";
    int fd = mkstemps(path, 5);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int rc = model_load(m, path, err);
    unlink(path);
    return rc;
}

static void a_tied_model_counts_its_table_once(void **state)
{
    struct model m;
    struct params p;
    struct err err;

    (void)state;
    assert_int_equal(load_text(&m, HEAD SIZE "\"layers\":[{\"count\":2," ATTN "," MLP "}]}", &err),
                     0);
    model_params(&m, &p);
    assert_float_equal(p.embedding, 6400, 0);
    assert_float_equal(p.total, 6400 + 64 + 2 * (64 * 8 * 20 + 2 * 64 * 256 + 128), 0);
    assert_int_equal(m.layers, 2);
    model_free(&m);
}

static const struct {
    const char *text, *says;
} bad[] = {
    {"{", "1:"},
    {"{\"format\":\"railgauge-matrix\",\"version\":1}", "\"railgauge-model\" is needed"},
    {HEAD SIZE "\"layers\":[]}", "\"layers\" is not a list of 1..64 kinds"},
    {HEAD SIZE "\"layers\":[{\"count\":0," ATTN "," MLP "}]}",
     "layers[0]: \"count\" is 0, outside"},
    {HEAD SIZE "\"layers\":[{\"count\":1.5," ATTN "," MLP "}]}",
     "\"count\" is 1.5, not a whole number"},
    {HEAD SIZE "\"layers\":[{\"count\":1," ATTN "," MLP ",\"x\":1}]}", "x"},
    {HEAD SIZE "\"layers\":[{\"count\":1," ATTN ",\"mlp\":{\"kind\":\"moe\",\"ffn\":8}}]}",
     "layers[0].mlp: kind \"moe\" is not known (known: swiglu, plain, none)"},
    {HEAD SIZE
     "\"layers\":[{\"count\":1,\"attention\":{\"kind\":\"gqa\",\"heads\":8,\"kv_heads\":3,"
     "\"head_dim\":8}," MLP "}]}",
     "8 heads cannot share 3 kv_heads evenly"},
    {HEAD SIZE
     "\"layers\":[{\"count\":1,\"attention\":{\"kind\":\"linear\",\"heads\":8,\"kv_heads\":3,"
     "\"head_dim\":8}," MLP "}]}",
     "layers[0].attention: kind \"linear\" is not known (known: gqa, mla, mamba2, none)"},
    {HEAD "\"hidden\":-3,\"vocab\":100,\"tied_embeddings\":true,\"layers\":[{\"count\":1," ATTN
          "," MLP "}]}",
     "\"hidden\" is -3, outside"},
    {HEAD "\"hidden\":\"64\",\"vocab\":100,\"tied_embeddings\":true,\"layers\":[{\"count\":1," ATTN
          "," MLP "}]}",
     "\"hidden\" is not a number"},
};

static void a_bad_file_is_refused_with_path_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct model m;
        struct err err;
        assert_int_equal(load_text(&m, bad[i].text, &err), -1);
        assert_int_equal(err.code, EXIT_DATA);
        if (!strstr(err.text, bad[i].says) || !strstr(err.text, "/tmp/model-"))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, err.text, bad[i].says);
        model_free(&m);
    }
}

static void an_unknown_name_says_where_the_known_ones_are(void **state)
{
    struct model m;
    struct err err;

    (void)state;
    assert_int_equal(model_load(&m, "llama9", &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_non_null(strstr(err.text, "no model \"llama9\"; \"railgauge models\" lists"));
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_agree_with_the_published_totals),
        cmocka_unit_test(flops_per_token_agree_with_published_ratios),
        cmocka_unit_test(flops_without_a_causal_mask_are_what_mlperf_states_for_405b),
        cmocka_unit_test(only_core_flops_grow_with_the_sequence),
        cmocka_unit_test(a_tied_model_counts_its_table_once),
        cmocka_unit_test(a_bad_file_is_refused_with_path_and_reason),
        cmocka_unit_test(an_unknown_name_says_where_the_known_ones_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
