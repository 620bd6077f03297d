/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "step/batch_words.h"

static struct batch batch;
static struct constants constants;

#define HEAD                                                                                       \
    "model\tid\thardware\tgpus\tinternode_fabric\tdtype\tseq_len\tglobal_batch\tmicro_batch\ttp\t" \
    "pp\tcp\tep\tdp\tzero_stage/fsdp\trecompute\tmetric\tvalue\tunit\tsource\tvp\tga\tsplit\t"     \
    "notes\n"

static int load_text(const char *text, struct err *err)
{
    char path[] = "/tmp/rg-batch-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int rc = batch_load(&batch, path, err);
    unlink(path);
    return rc;
}

/* One row below HEAD. */
static const struct batch_row *row(const char *line)
{
    char text[2048];

    batch_free(&batch);
    snprintf(text, sizeof(text), "%s%s\n", HEAD, line);
    assert_int_equal(load_text(text, NULL), 0);
    assert_int_equal(batch.rows, 1);
    batch_ask(&batch);
    return &batch.row[0];
}

static int setup(void **state)
{
    (void)state;
    return constants_load(&constants, NULL, NULL);
}

static int teardown(void **state)
{
    (void)state;
    batch_free(&batch);
    constants_free(&constants);
    return 0;
}

static void a_whole_row_becomes_its_question(void **state)
{
    const struct batch_row *r =
        row("llama3.1-405b\tA\tH100\t512\tIB NDR 8x400G/node\tfp8\t8192\t252\t1\t8\t9\t1\t1\t7\t"
            "dist-opt (ZeRO-1)\tselective\tstep_time\t12.5\ts\tNVIDIA/dgxc-benchmarking@v25.05.05 "
            "llama3.1/README.md\t7\t36\tcalib\t");

    (void)state;
    assert_int_equal(r->status, BATCH_MISS); /* 8 x 9 ranks do not divide 512 */
    assert_non_null(strstr(r->reason, "tp=8 pp=9 cp=1 do not divide 512 GPUs"));
    r = row("llama3.1-405b\tA\tH100\t512\tIB NDR 8x400G/node\tfp8\t8192\t1152\t1\t8\t8\t2\t1\t4\t"
            "dist-opt (ZeRO-1)\tselective\tstep_time\t55.1\ts\tNVIDIA/dgxc-benchmarking@v25.05.05 "
            "llama3.1/README.md\t8\t288\tcalib\t");
    assert_string_equal(r->reason, "");
    assert_int_equal(r->status, BATCH_PREDICTED);
    assert_string_equal(r->preset, "hgx-h100");
    assert_string_equal(r->layout, "pp=8,dp_shard=4,cp=2,tp=8");
    assert_string_equal(r->release, "dgxc v25.05.05");
    assert_string_equal(r->family, "llama3.1-405b, H100, fp8, dgxc v25.05.05");
    assert_int_equal(r->recipe.strategy, STRATEGY_ZERO1);
    assert_int_equal(r->recipe.dtype, DTYPE_FP8);
    assert_int_equal(r->recipe.recompute, RECOMPUTE_SELECTIVE);
    assert_int_equal(r->recipe.stages, 8);
    assert_int_equal(r->recipe.global_batch, 1152);
    assert_int_equal(r->recipe.stack, STACK_MEGATRON);
    assert_int_equal(r->mesh, ORDER_MEGATRON);
    assert_float_equal(r->measured, 55.1, 1e-12);
    assert_true(r->dense);
}

static void words_of_torchtitan_and_fsdp(void **state)
{
    const struct batch_row *r = row(
        "llama3.1-8b\tA\tH100\t8\tn/a\tbf16 eager\t8192\t16\t2\t\t\t\t\t\tFSDP2 full\tselective "
        "(per op)\ttps_per_gpu\t5762\ttok/s/GPU (median)\tpytorch/torchtitan@b5bcd76 "
        "benchmarks/x.md Table 1\t\t\tcalib\t");

    (void)state;
    assert_int_equal(r->status, BATCH_PREDICTED);
    assert_int_equal(r->recipe.strategy, STRATEGY_FSDP);
    assert_int_equal(r->recipe.stack, STACK_EAGER); /* the later word wins over torchtitan */
    assert_int_equal(r->mesh, ORDER_TORCHTITAN);
    assert_string_equal(r->layout, "dp_shard=8");
    assert_string_equal(r->release, "torchtitan benchmarks/x.md");
    assert_float_equal(r->measured, 16 * 8192 / (5762.0 * 8), 1e-9);
}

static void fsdp_with_a_number_is_hsdp_over_more_ranks(void **state)
{
    const struct batch_row *r =
        row("llama3.1-70b\tA\tGB200\t128\tIB NDR 4x400G/node\tfp8\t8192\t256\t2\t1\t1\t1\t1\t\t"
            "FSDP-64\trecipe default\ttps_per_gpu\t4224\ttok/s/GPU\tMegatron-Bridge@1 d.md (26.04 "
            "Pre-Training)\t1\t\ttest_scale\t");

    (void)state;
    assert_int_equal(r->recipe.strategy, STRATEGY_HSDP);
    assert_string_equal(r->layout, "dp_replicate=2,dp_shard=64");
    assert_float_equal(r->recipe.grad_bytes, 2, 0);
    assert_string_equal(r->release, "megatron-bridge 26.04");
    assert_int_equal(r->per_rack, 64);
}

/* GPUs of a job, how many it takes of a rack (0: all of it). */
static void racks_of_72_are_shared_out_as_recipes_do(void **state)
{
    static const struct {
        int gpus, per_rack;
    } cases[] = {{8, 0}, {64, 0}, {72, 0}, {128, 64}, {144, 0}, {512, 64}, {576, 64}, {2496, 64}};
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(line, sizeof(line),
                 "llama3.1-8b\tA\tGB300\t%d\tRoCE Spectrum-X\tmxfp8\t8192\t%d\t1\t1\t1\t1\t1\t\t"
                 "DDP\tnone\tstep_time\t1\ts\tx\t\t\tcalib\t",
                 cases[i].gpus, cases[i].gpus);
        const struct batch_row *r = row(line);
        assert_int_equal(r->status, BATCH_PREDICTED);
        assert_string_equal(r->preset, "gb300-nvl72-spectrumx");
        assert_int_equal(r->per_rack, cases[i].per_rack);
        struct question q = batch_question(r, &constants);
        int racks = (cases[i].gpus + (r->per_rack ? r->per_rack : 72) - 1) /
                    (r->per_rack ? r->per_rack : 72);
        assert_int_equal(q.matrix->topo.endpoints, racks * 72);
        if (r->per_rack)
            assert_int_equal(q.order[64], 72);
        else
            assert_null(q.order);
    }
}

static void adapters_experts_and_lora_come_from_the_notes(void **state)
{
    const struct batch_row *r =
        row("llama2-70b\tA\tB200\t8\tn/a\tfp8/nvfp4?\t8192\t8\t1\t1\t1\t1\t1\t\tDDP on LoRA "
            "adapters\tnone\tstep_time\t1300\tms\tmlcommons/training_results_v5.1 Dell/x\t1\t1\t"
            "test_fabric\tLoRA r=32 q,k; ETP 1");

    (void)state;
    assert_int_equal(r->recipe.lora, LORA_ATTENTION);
    assert_int_equal(r->recipe.lora_rank, 32);
    assert_int_equal(r->recipe.strategy, STRATEGY_DDP);
    assert_string_equal(r->layout, "dp_replicate=8");
    assert_int_equal(r->etp, 1);
    assert_string_equal(r->family, "llama2-70b, B200, fp8/nvfp4?, mlperf v5.1, lora");
    assert_float_equal(r->measured, 1.3, 1e-12);
    assert_non_null(strstr(r->reason, "fp8 is assumed"));
}

static void a_recipes_defaults_depend_on_source_model_and_machine(void **state)
{
    static const struct {
        const char *model, *hardware, *dtype, *source, *notes;
        bool mtp, overlap;
        int dispatch;
    } cases[] = {
        {"deepseek-v3", "B200", "mxfp8", "Megatron-Bridge@1 d.md (26.04 x)", "", true, true,
         DISPATCH_KERNEL},
        {"deepseek-v3", "GB200", "mxfp8", "Megatron-Bridge@1 d.md (26.04 x)", "(w/o MTP)", false,
         false, DISPATCH_KERNEL},
        {"deepseek-v3", "B200", "fp8", "Megatron-Bridge@1 d.md (26.04 x)", "", true, false,
         DISPATCH_KERNEL},
        {"deepseek-v3", "B200", "mxfp8", "mlcommons/training_results_v6.0 x", "", false, false,
         DISPATCH_NCCL},
        {"qwen3-235b-a22b", "H100", "bf16", "Megatron-Bridge@1 d.md (26.04 x)", "", false, true,
         DISPATCH_NCCL},
        {"qwen3-235b-a22b", "GB200", "bf16", "Megatron-Bridge@1 d.md (26.04 x)", "", false, false,
         DISPATCH_KERNEL},
    };
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(line, sizeof(line),
                 "%s\tA\t%s\t64\tIB\t%s\t4096\t256\t1\t1\t1\t1\t8\t\tdist-opt\trecipe default\t"
                 "step_time\t1\ts\t%s\t\t\tcalib\t%s",
                 cases[i].model, cases[i].hardware, cases[i].dtype, cases[i].source,
                 cases[i].notes);
        const struct batch_row *r = row(line);
        assert_string_equal(r->reason, "");
        assert_int_equal(r->recipe.mtp, cases[i].mtp);
        assert_int_equal(r->recipe.ep_overlap, cases[i].overlap);
        assert_int_equal(r->recipe.dispatch, cases[i].dispatch);
    }
}

static void batch_micro_batch_and_accumulation_follow_from_each_other(void **state)
{
    const struct batch_row *r =
        row("llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t\t2\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t1"
            "\ts\tx\t\t4\tcalib\t");

    (void)state;
    assert_int_equal(r->recipe.global_batch, 64);
    r = row("llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t64\t\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t1"
            "\ts\tx\t\t4\tcalib\t");
    assert_int_equal(r->recipe.micro_batch, 2);
    r = row("llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t64\t\t1\t1\t1\t1\t4\tDDP\tnone\tstep_time\t1"
            "\ts\tx\t\t\tcalib\t");
    assert_int_equal(r->recipe.micro_batch, 1);
    assert_non_null(strstr(r->reason, "micro_batch is not stated: 1 is assumed"));
    assert_non_null(strstr(r->reason, "dp is printed as 4, and 8 GPUs leave 8"));
}

static void unknown_words_are_assumed_where_that_is_possible(void **state)
{
    const struct batch_row *r = row(
        "llama3.1-8b\tA\tH100\t32\tIB\tbf16\t8192\t40\t1\t1\t4\t1\t1\t8\tsome sharding\tblockwise\t"
        "step_time\t1\ts\tx\t2\t\tcalib\t");

    (void)state;
    assert_int_equal(r->status, BATCH_PREDICTED);
    assert_int_equal(r->recipe.strategy, STRATEGY_ZERO1);
    assert_int_equal(r->recipe.recompute, RECOMPUTE_NONE);
    assert_int_equal(r->recipe.stages, 1); /* 5 microbatches are no multiple of 4 stages */
    assert_non_null(strstr(r->reason, "zero_stage/fsdp \"some sharding\" is not known: "
                                      "strategy=zero1 is assumed"));
    assert_non_null(strstr(r->reason, "recompute \"blockwise\" is not known"));
    assert_non_null(strstr(r->reason, "vp=2 is left out: "));
}

/* What cannot be asked says which cell and why; nothing is dropped. */
static void misses_and_claims_say_why(void **state)
{
    static const struct {
        const char *line, *reason;
        enum batch_status status;
    } cases[] = {
        {"llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t\t\t\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4.7\ts/"
         "it\t"
         "x\t\t\ttest_seed\t",
         "global_batch and seq_len are not stated", BATCH_MISS},
        {"llama3.1-8b\tA\tTPUv5\t8\tn/"
         "a\tbf16\t8192\t8\t1\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4\ts"
         "\tx\t\t\tcalib\t",
         "no preset is known for hardware \"TPUv5\"", BATCH_MISS},
        {"llama3.1-8b\tA\tH100\t8\tn/a\tint4\t8192\t8\t1\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4\ts"
         "\tx\t\t\tcalib\t",
         "dtype \"int4\" is not known", BATCH_MISS},
        {"llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t8\t1\ttwo\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4"
         "\ts\tx\t\t\tcalib\t",
         "tp: \"two\" is not a whole number", BATCH_MISS},
        {"nosuch-1b\tA\tH100\t8\tn/a\tbf16\t8192\t8\t1\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4\ts\t"
         "x\t\t\tcalib\t",
         "no model \"nosuch-1b\"", BATCH_MISS},
        {"llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t8\t1\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t>4\t"
         "s\tx\t\t\tcalib\t",
         "value: \">4\" is not a number", BATCH_MISS},
        {"llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t8\t1\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4\t"
         "fortnights\tx\t\t\tcalib\t",
         "unit \"fortnights\" of metric step_time is not known", BATCH_MISS},
        {"llama3.1-8b\tA\tH100\t8\tn/"
         "a\tbf16\t8192\t8\t1\t1\t1\t1\t1\t8\tDDP\tnone\tmpg\t4\ts\tx\t\t"
         "\tcalib\t",
         "metric \"mpg\" is not known", BATCH_MISS},
        {"llama3.1-8b\tA\tH100\t12\tn/"
         "a\tbf16\t8192\t8\t1\t8\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4\ts"
         "\tx\t\t\tcalib\t",
         "do not divide 12 GPUs", BATCH_MISS},
        {"llama3.1-70b\tA\tH100\t32\tn/"
         "a\tbf16\t\t\t\t1\t1\t1\t1\t8\tZeRO-1\t\toom\tOOM\tbool\tx\t\t"
         "\ttest_seed\t",
         "oom: whether it fits, not a time", BATCH_CLAIM},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct batch_row *r = row(cases[i].line);
        if (!strstr(r->reason, cases[i].reason))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].reason, r->reason);
        assert_int_equal(r->status, cases[i].status);
        assert_true(isnan(r->predicted));
    }
}

/* Rows of one recipe at three scales. */
static const char family[] =
    "model\thardware\tgpus\tdtype\tseq_len\tglobal_batch\ttp\tpp\tzero_stage/fsdp\tvalue\tsplit\n"
    "llama3.1-70b\tH100\t128\tbf16\t8192\t512\t4\t4\tZeRO-1\t12\tcalib\n"
    "llama3.1-70b\tH100\t64\tbf16\t8192\t128\t4\t4\tZeRO-1\t11.5\ttest_scale\n"
    "llama3.1-70b\tH100\t64\tbf16\t8192\t128\t4\t4\tZeRO-1\t11.0\tcalib\n"
    "llama3.1-70b\tH200\t64\tbf16\t8192\t128\t4\t4\tZeRO-1\t9\tcalib\n";

static void the_anchor_is_the_smallest_job_and_is_met(void **state)
{
    (void)state;
    batch_free(&batch);
    assert_int_equal(load_text(family, NULL), 0);
    batch_ask(&batch);
    batch_predict(&batch, &constants);
    batch_anchor(&batch, &constants);
    const struct batch_row *r = batch.row;
    assert_string_equal(r[0].id, "line 2");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r[i].status, BATCH_PREDICTED);
        assert_int_equal(r[i].anchor, 2); /* of the two smallest the one that is no test row */
        assert_float_equal(r[i].stretch, r[2].stretch, 0);
    }
    assert_int_equal(r[3].anchor, 3);
    assert_float_equal(r[2].anchored / 11.0, 1, 1e-6);
    assert_float_equal(r[1].anchored, r[2].anchored, 1e-9); /* the same question */
    /* 64 microbatches for 32, and the bubble of 3 stays: (64 + 3) / (32 + 3) */
    assert_float_equal(r[0].anchored / r[2].anchored, 67.0 / 35, 0.03);
    assert_float_equal(batch_seconds(&r[0], &constants, r[0].stretch, NULL), r[0].anchored, 0);
}

/* The way without words must not drift from predict_step(). */
static void seconds_without_words_are_those_of_predict_step(void **state)
{
    static const char *const lines[] = {
        "llama3.1-405b\tA\tH100\t512\tIB\tfp8\t8192\t1152\t1\t8\t8\t2\t1\t4\tZeRO-1\tnone\t"
        "step_time\t55.1\ts\tx\t8\t\tcalib\t",
        "llama3.1-70b\tA\tGB200\t128\tIB\tfp8\t8192\t256\t2\t1\t1\t1\t1\t\tFSDP-64\t\t"
        "tps_per_gpu\t4224\ttok/s/GPU\tx\t1\t\ttest_scale\t",
        "llama3.1-8b\tA\tB200\t64\tIB\tbf16\t8192\t128\t2\t1\t1\t1\t1\t\tDDP\tfull\t"
        "step_time\t1\ts\tx\t1\t\tcalib\t",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const struct batch_row *r = row(lines[i]);
        assert_int_equal(r->status, BATCH_PREDICTED);
        for (double stretch = 0; stretch < 2; stretch += 0.7) {
            struct question q = batch_question(r, &constants);
            struct prediction p;
            q.stretch = stretch;
            assert_int_equal(predict_step(&p, &q, NULL), 0);
            assert_float_equal(batch_seconds(r, &constants, stretch, NULL) / p.sec, 1, 1e-9);
            prediction_free(&p);
        }
    }
}

static void a_bad_table_is_refused(void **state)
{
    struct err err = {0, ""};

    (void)state;
    batch_free(&batch);
    assert_int_equal(load_text("model\tgpus\tvalue\nllama3.1-8b\t8\t1\n", &err), -1);
    assert_int_equal(err.code, EXIT_DATA);
    assert_non_null(strstr(err.text, "no column \"hardware\""));
    batch_free(&batch);
    assert_int_equal(load_text("model\tgpus\tvalue\thardware\tcolour\nx\t8\t1\tH100\tred\n", &err),
                     0);
    assert_int_equal(batch.notes, 1);
    assert_non_null(strstr(batch.note[0], "column \"colour\" is not known and was ignored"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_row_becomes_its_question),
        cmocka_unit_test(words_of_torchtitan_and_fsdp),
        cmocka_unit_test(fsdp_with_a_number_is_hsdp_over_more_ranks),
        cmocka_unit_test(racks_of_72_are_shared_out_as_recipes_do),
        cmocka_unit_test(adapters_experts_and_lora_come_from_the_notes),
        cmocka_unit_test(a_recipes_defaults_depend_on_source_model_and_machine),
        cmocka_unit_test(batch_micro_batch_and_accumulation_follow_from_each_other),
        cmocka_unit_test(unknown_words_are_assumed_where_that_is_possible),
        cmocka_unit_test(misses_and_claims_say_why),
        cmocka_unit_test(the_anchor_is_the_smallest_job_and_is_met),
        cmocka_unit_test(seconds_without_words_are_those_of_predict_step),
        cmocka_unit_test(a_bad_table_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
