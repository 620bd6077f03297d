/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate/batch.h"
#include "calibrate/anchor.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/batch_impl.h"
#include "step/job.h"

static struct batch batch;
static struct constants constants;

#define HEAD                                                                                       \
    "model\tid\thardware\tgpus\tinternode_fabric\tdtype\tseq_len\tglobal_batch\tmicro_batch\ttp\t" \
    "pp\tcp\tep\tdp\tzero_stage/fsdp\trecompute\tmetric\tvalue\tunit\tsource\tvp\tga\tsplit\t"     \
    "notes"
/* Further columns, "\tmtp\tetp": their cells follow that of notes. */
static const char *more = "";

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
    snprintf(text, sizeof(text), "%s%s\n%s\n", HEAD, more, line);
    assert_int_equal(load_text(text, NULL), 0);
    assert_int_equal(batch.rows, 1);
    batch_resolve(&batch, &constants);
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

TEST(a_whole_row_becomes_its_question)
{
    const struct batch_row *r =
        row("llama3.1-405b\tA\tH100\t512\tIB NDR 8x400G/node\tfp8\t8192\t252\t1\t8\t9\t1\t1\t7\t"
            "dist-opt (ZeRO-1)\tselective\tstep_time\t12.5\ts\tNVIDIA/dgxc-benchmarking@v25.05.05 "
            "llama3.1/README.md\t7\t36\tcalib\t");

    assert_int_equal(r->status, BATCH_MISS); /* 8 x 9 ranks do not divide 512 */
    assert_non_null(strstr(r->reason, "tp=8 pp=9 cp=1 do not divide 512 GPUs"));
    r = row("llama3.1-405b\tA\tH100\t512\tIB NDR 8x400G/node\tfp8\t8192\t1152\t1\t8\t8\t2\t1\t4\t"
            "dist-opt (ZeRO-1)\tselective\tstep_time\t55.1\ts\tNVIDIA/dgxc-benchmarking@v25.05.05 "
            "llama3.1/README.md\t8\t288\tcalib\t");
    assert_string_equal(r->reason, "\"dgxc-benchmarking\": expandable-segments=on grad-bytes=2");
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

TEST(words_of_torchtitan_and_fsdp)
{
    const struct batch_row *r = row(
        "llama3.1-8b\tA\tH100\t8\tn/a\tbf16 eager\t8192\t16\t2\t\t\t\t\t\tFSDP2 full\tselective "
        "(per op)\ttps_per_gpu\t5762\ttok/s/GPU (median)\tpytorch/torchtitan@b5bcd76 "
        "benchmarks/x.md Table 1\t\t\tcalib\t");

    assert_int_equal(r->status, BATCH_PREDICTED);
    assert_int_equal(r->recipe.strategy, STRATEGY_FSDP);
    assert_int_equal(r->recipe.stack, STACK_EAGER); /* the later word wins over torchtitan */
    assert_int_equal(r->mesh, ORDER_TORCHTITAN);
    assert_string_equal(r->layout, "dp_shard=8");
    assert_string_equal(r->release, "torchtitan benchmarks/x.md");
    assert_float_equal(r->measured, 16 * 8192 / (5762.0 * 8), 1e-9);
}

TEST(fsdp_with_a_number_is_hsdp_over_more_ranks)
{
    const struct batch_row *r =
        row("llama3.1-70b\tA\tGB200\t128\tIB NDR 4x400G/node\tfp8\t8192\t256\t2\t1\t1\t1\t1\t\t"
            "FSDP-64\trecipe default\ttps_per_gpu\t4224\ttok/s/GPU\tMegatron-Bridge@1 d.md (26.04 "
            "Pre-Training)\t1\t\ttest_scale\t");

    assert_int_equal(r->recipe.strategy, STRATEGY_HSDP);
    assert_string_equal(r->layout, "dp_replicate=2,dp_shard=64");
    assert_float_equal(r->recipe.grad_bytes, 2, 0);
    assert_string_equal(r->release, "megatron-bridge 26.04");
    assert_int_equal(r->segment, 16);
    assert_non_null(strstr(r->reason, "16 of the 18 hosts of a rack are taken"));
}

/* GPUs of a job, how many hosts it takes of a rack (0: all of it). */
TEST(racks_of_72_are_shared_out_as_recipes_do)
{
    static const struct {
        int gpus, segment;
    } cases[] = {{8, 0}, {64, 0}, {72, 0}, {128, 16}, {144, 0}, {512, 16}, {576, 16}, {2496, 16}};
    char line[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int per = cases[i].segment ? 64 : 72;
        snprintf(line, sizeof(line),
                 "llama3.1-8b\tA\tGB300\t%d\tRoCE Spectrum-X\tmxfp8\t8192\t%d\t1\t1\t1\t1\t1\t\t"
                 "DDP\tnone\tstep_time\t1\ts\tx\t\t\tcalib\t",
                 cases[i].gpus, cases[i].gpus);
        const struct batch_row *r = row(line);
        assert_int_equal(r->status, BATCH_PREDICTED);
        assert_string_equal(r->preset, "gb300-nvl72-spectrumx");
        assert_int_equal(r->segment, cases[i].segment);
        struct question q = batch_question(r, &constants);
        assert_int_equal(q.matrix->topo.endpoints, (cases[i].gpus + per - 1) / per * 72);
        if (r->segment)
            assert_int_equal(q.order[64], 72);
        else
            assert_null(q.order);
    }
}

/* What a publication is known for; a column of the row's own rules, and notes say nothing. */
TEST(adapters_and_experts_come_from_publications_and_columns)
{
    static const char line[] =
        "llama2-70b\tA\tB200\t8\tn/a\tfp8/nvfp4?\t8192\t8\t1\t1\t1\t1\t1\t\tDDP on LoRA "
        "adapters\tnone\tstep_time\t1300\tms\tmlcommons/training_results_v5.1 Dell/x\t1\t1\t"
        "test_fabric\tLoRA r=32 q,k; ETP 2; w/ MTP; async TP; power limited";
    char with[512];
    const struct batch_row *r = row(line);

    assert_int_equal(r->recipe.lora, LORA_ATTENTION);
    assert_int_equal(r->recipe.lora_rank, 16);
    assert_int_equal(r->recipe.strategy, STRATEGY_DDP);
    assert_string_equal(r->layout, "dp_replicate=8");
    assert_true(r->etp == 0 && !r->recipe.mtp && !r->odd);
    assert_string_equal(r->family, "llama2-70b, B200, fp8/nvfp4?, mlperf v5.1, lora");
    assert_float_equal(r->measured, 1.3, 1e-12);
    assert_non_null(strstr(r->reason, "fp8 is assumed"));
    assert_non_null(strstr(r->reason, "\"training_results_\": lora=attention"));
    more = "\tlora\tlora_rank\tstack\trelease";
    snprintf(with, sizeof(with), "%s\tall\t32\ttorchtitan\tmine 1.0", line);
    r = row(with);
    assert_int_equal(r->recipe.lora, LORA_ALL);
    assert_int_equal(r->recipe.lora_rank, 32);
    assert_int_equal(r->recipe.stack, STACK_TORCHTITAN);
    assert_string_equal(r->release, "mine 1.0");
    assert_null(strstr(r->reason, "lora="));
    snprintf(with, sizeof(with), "%s\t\t\teager dog\t", line);
    r = row(with);
    assert_int_equal(r->status, BATCH_MISS);
    assert_non_null(strstr(r->reason, "column stack \"eager dog\" is not known (known: megatron,"));
    more = "\tpublication";
    snprintf(with, sizeof(with), "%s\tNutanix", line);
    r = row(with);
    assert_int_equal(r->recipe.stack, STACK_HF); /* named, whatever the source is called */
    assert_non_null(strstr(r->reason, "\"Nutanix\": stack=hf lora=attention lora-rank=32"));
    more = "";
}

/* The machine of a row: by its columns, by its hardware, or unlike any that is known. */
TEST(a_row_says_its_machine)
{
    static const struct {
        const char *hardware, *fabric, *cells, *preset;
        int gpus_per_host, hosts_per_domain, nics;
    } cases[] = {
        {"H100", "EFA", "\t\t", "hgx-h100-efa", 8, 1, 8},
        {"A100", "Omni-Path 4x100G", "8\t8\t", "hgx-a100-omnipath", 8, 1, 4},
        {"A100", "IB", "4\t4\t", "hgx-a100", 4, 1, 4},
        {"V100-32GB", "Omni-Path", "4\t\t", "v100-omnipath", 4, 1, 4},
        {"GB200", "IB", "4\t36\t", "gb200-nvl72", 4, 9, 4},
        {"whatever", "IB", "\t\thgx-h20", "hgx-h20", 8, 1, 8},
        {"mi300x", "IB", "\t\t", "mi300x", 8, 1, 8},
        {"B9000", "IB", "\t\t", "hgx-h100", 8, 1, 8},
    };
    char line[512];

    more = "\tgpus_per_node\tnvlink_domain\tpreset";
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(line, sizeof(line),
                 "llama3.1-8b\tA\t%s\t16\t%s\tbf16\t8192\t16\t1\t1\t1\t1\t1\t\tDDP\tnone\t"
                 "step_time\t1\ts\tx\t\t\tcalib\t\t%s",
                 cases[i].hardware, cases[i].fabric, cases[i].cells);
        const struct batch_row *r = row(line);
        assert_int_equal(r->status, BATCH_PREDICTED);
        assert_string_equal(r->preset, cases[i].preset);
        struct question q = batch_question(r, &constants);
        assert_int_equal(q.fabric->gpus_per_host, cases[i].gpus_per_host);
        assert_int_equal(q.fabric->hosts_per_domain, cases[i].hosts_per_domain);
        assert_int_equal(q.fabric->nics_per_host, cases[i].nics);
        bool unknown = !strcmp(cases[i].hardware, "B9000");
        assert_true(r->odd == unknown);
        assert_true(unknown == (strstr(r->reason, "hardware \"B9000\" is not known") != NULL));
        batch_predict(&batch, &constants);
        double wide = sqrt(r->hi / r->lo);
        print_message("%s: a factor of %.2f\n", cases[i].hardware, wide);
        assert_true(unknown ? wide > 3.3 && wide < 16 : wide < 3);
    }
    more = "\tgpus_per_node\tnvlink_domain\tflops";
    assert_int_equal(row("llama3.1-8b\tA\tH100\t16\tIB\tbf16\t8192\t16\t1\t1\t1\t1\t1\t\tDDP\tnone"
                         "\tstep_time\t1\ts\tx\t\t\tcalib\t\t8\t12\t")
                         ->status,
                     BATCH_MISS);
    assert_non_null(strstr(batch.row[0].reason, "domain of 12 GPUs is not made of hosts of 8"));
    more = "";
}

TEST(a_recipes_defaults_depend_on_source_model_and_machine)
{
    static const struct {
        const char *model, *hardware, *dtype, *source, *column;
        bool mtp, overlap;
        int dispatch;
    } cases[] = {
        {"deepseek-v3", "B200", "mxfp8", "Megatron-Bridge@1 d.md (26.04 x)", "", true, true,
         DISPATCH_KERNEL},
        {"deepseek-v3", "GB200", "mxfp8", "Megatron-Bridge@1 d.md (26.04 x)", "off", false, false,
         DISPATCH_KERNEL},
        {"deepseek-v3", "B200", "fp8", "Megatron-Bridge@1 d.md (26.04 x)", "", true, false,
         DISPATCH_KERNEL},
        {"deepseek-v3", "B200", "mxfp8", "mlcommons/training_results_v5.1 x", "", false, false,
         DISPATCH_NCCL},
        {"qwen3-235b-a22b", "H100", "bf16", "Megatron-Bridge@1 d.md (26.04 x)", "", false, true,
         DISPATCH_NCCL},
        {"qwen3-235b-a22b", "GB200", "bf16", "Megatron-Bridge@1 d.md (26.04 x)", "", false, false,
         DISPATCH_KERNEL},
    };
    char line[512];

    more = "\tmtp";
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(line, sizeof(line),
                 "%s\tA\t%s\t64\tIB\t%s\t4096\t256\t1\t1\t1\t1\t8\t\tdist-opt\trecipe default\t"
                 "step_time\t1\ts\t%s\t\t\tcalib\t\t%s",
                 cases[i].model, cases[i].hardware, cases[i].dtype, cases[i].source,
                 cases[i].column);
        const struct batch_row *r = row(line);
        assert_int_equal(r->status, BATCH_PREDICTED);
        assert_int_equal(r->recipe.mtp, cases[i].mtp);
        assert_int_equal(r->recipe.ep_overlap, cases[i].overlap);
        assert_int_equal(r->recipe.dispatch, cases[i].dispatch);
    }
    more = "";
}

TEST(batch_micro_batch_and_accumulation_follow_from_each_other)
{
    const struct batch_row *r =
        row("llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t8192\t\t2\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t1"
            "\ts\tx\t\t4\tcalib\t");

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

TEST(unknown_words_are_assumed_where_that_is_possible)
{
    const struct batch_row *r = row(
        "llama3.1-8b\tA\tH100\t32\tIB\tbf16\t8192\t40\t1\t1\t4\t1\t1\t8\tsome sharding\tblockwise\t"
        "step_time\t1\ts\tx\t2\t\tcalib\t");

    assert_int_equal(r->status, BATCH_PREDICTED);
    assert_int_equal(r->recipe.strategy, STRATEGY_ZERO1);
    assert_int_equal(r->recipe.recompute, RECOMPUTE_NONE);
    assert_int_equal(r->recipe.stages, 1); /* 5 microbatches are no multiple of 4 stages */
    assert_non_null(strstr(r->reason, "zero_stage/fsdp \"some sharding\" is not known: "
                                      "strategy=zero1 is assumed"));
    assert_non_null(strstr(r->reason, "recompute \"blockwise\" is not known"));
    assert_non_null(strstr(r->reason, "vp=2 is left out: "));
}

/* A row by the words that matter here: batch 64, ZeRO-1 or as said. */
static const struct batch_row *short_row(const char *model, const char *hardware, int gpus,
                                         const char *dtype, const char *shape, const char *zero,
                                         const char *recompute, const char *source,
                                         const char *notes)
{
    static char line[512];

    snprintf(line, sizeof(line),
             "%s\tA\t%s\t%d\tIB\t%s\t%s\t\t%s\t%s\tstep_time\t10\ts\t%s\t\t\tcalib\t%s", model,
             hardware, gpus, dtype, shape, zero, recompute, source, notes);
    return row(line);
}

static const char bridge[] = "Megatron-Bridge@1 d.md (26.04 x)", titan[] = "pytorch/torchtitan@1 d";

/* seq, batch, micro, tp, pp, cp, ep.  What ran fits: with more recompute, weights shared out, or by
 * means that recipes are known for and that take no time. */
TEST(what_ran_must_fit)
{
    static const struct {
        const char *model, *hardware, *shape, *zero, *recompute, *source;
        int gpus, timed, fits, strategy;
        const char *says;
    } cases[] = {
        {"llama3.1-8b", "H100", "8192\t8\t1\t1\t1\t1\t1", "FSDP2", "none", titan, 8, RECOMPUTE_NONE,
         RECOMPUTE_NONE, STRATEGY_FSDP, NULL},
        /* 81,920 tokens on each GPU */
        {"llama4-scout", "GB200", "8192\t2560\t10\t1\t1\t1\t16", "FSDP2 full", "none", titan, 256,
         RECOMPUTE_FULL, RECOMPUTE_FULL, STRATEGY_FSDP,
         "recompute full assumed: without it 802 GB of 198"},
        {"llama3.1-70b", "GB200", "8192\t256\t2\t1\t1\t1\t1", "FSDP-64", "recipe default", bridge,
         64, RECOMPUTE_NONE, RECOMPUTE_FULL, STRATEGY_FSDP,
         "413 GB of 198 as read: modules redone or layers in host memory, less than recompute "
         "full"},
        {"llama3.1-70b", "GB300", "8192\t256\t2\t1\t1\t1\t1", "dist-opt (ZeRO-1)", "recipe default",
         bridge, 64, RECOMPUTE_NONE, RECOMPUTE_FULL, STRATEGY_FSDP,
         "fsdp assumed: with zero1 686 GB of 297"},
        /* a twentieth too much may be the estimate's own error */
        {"llama3.1-70b", "H100", "8192\t64\t1\t4\t1\t1\t1", "FSDP2", "none", "x", 32,
         RECOMPUTE_NONE, RECOMPUTE_FULL, STRATEGY_FSDP, "as read: within the error of that"},
        {"llama3.1-405b", "H100", "8192\t8\t1\t1\t1\t1\t1", "ZeRO-1", "none", "x", 8,
         RECOMPUTE_NONE, RECOMPUTE_COUNT, STRATEGY_ZERO1, "it does not fit, however it is read"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct batch_row *r =
            short_row(cases[i].model, cases[i].hardware, cases[i].gpus, "bf16", cases[i].shape,
                      cases[i].zero, cases[i].recompute, cases[i].source, "");
        assert_int_equal(r->status, BATCH_PREDICTED);
        assert_int_equal(r->recipe.recompute, cases[i].timed);
        assert_int_equal(r->fits_with, cases[i].fits);
        assert_int_equal(r->recipe.strategy, cases[i].strategy);
        if (cases[i].says)
            assert_non_null(strstr(r->reason, cases[i].says));
        else
            assert_true(!strstr(r->reason, "assumed") && !strstr(r->reason, "as read"));
    }
}

/* torchtitan's H100s hold 96 GB: what does not fit elsewhere fits there. */
TEST(some_builds_have_other_memory)
{
    struct memory mem[2];

    for (int i = 0; i < 2; i++)
        batch_memory(&mem[i],
                     short_row("llama3.1-8b", "H100", 8, "bf16", "8192\t16\t2\t1\t1\t1\t1", "FSDP2",
                               "full", i ? titan : "x", ""),
                     &constants);
    assert_float_equal(mem[1].capacity, 96 * 1073741824.0, 1);
    assert_true(mem[0].capacity < 86e9);
}

TEST(chunks_that_are_not_stated_come_from_the_source)
{
    static const char paper[] = "Llama 3 paper table",
                      mlperf[] = "training_results_v6.0 (copy)@1 N";
    static const struct {
        const char *model, *shape, *source;
        int gpus, chunks;
    } cases[] = {
        {"llama3.1-405b", "8192\t2048\t1\t8\t16\t1\t1", paper, 16384, 8}, /* 128 / 16 */
        {"llama3.1-405b", "8192\t2048\t1\t8\t1\t1\t1", paper, 1024, 1},
        {"llama3.1-405b", "8192\t2048\t1\t8\t16\t1\t1", "x", 16384, 1},
        {"deepseek-v3", "4096\t15360\t1\t2\t4\t1\t32", mlperf, 512, 4},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct batch_row *r =
            short_row(cases[i].model, "H100", cases[i].gpus, "bf16", cases[i].shape, "ZeRO-1",
                      "none", cases[i].source, "");
        assert_int_equal(r->status, BATCH_PREDICTED);
        assert_int_equal(r->recipe.stages, cases[i].chunks);
        assert_int_equal(strstr(r->reason, "vp is not stated") != NULL, cases[i].chunks > 1);
        assert_null(strstr(r->reason, "is left out"));
    }
}

/* Two dtypes: Hopper has only one of them, a source may settle it, else the interval holds both. */
TEST(a_dtype_in_doubt_widens_the_interval)
{
    static const char shape[] = "8192\t64\t1\t1\t1\t1\t1";
    const char *source = "training_results_v6.0 x/CoreWeave_B200_8x8/llama31_8b";
    double lo[2], hi[2], sec[2];

    assert_int_equal(
        short_row("llama3.1-8b", "H100", 8, "fp8/nvfp4?", shape, "DDP", "none", "x", "")
            ->other_dtype,
        -1);
    const struct batch_row *r =
        short_row("llama3.1-8b", "B200", 64, "fp8/nvfp4?", shape, "DDP", "none", source, "");
    assert_int_equal(r->recipe.dtype, DTYPE_NVFP4);
    assert_int_equal(r->other_dtype, -1);
    for (int i = 0; i < 2; i++) {
        r = short_row("llama3.1-8b", "B200", 8, i ? "fp8/nvfp4?" : "fp8", shape, "DDP", "none", "x",
                      "");
        batch_predict(&batch, &constants);
        sec[i] = r->predicted;
        lo[i] = r->lo;
        hi[i] = r->hi;
    }
    assert_int_equal(r->other_dtype, DTYPE_NVFP4);
    assert_non_null(strstr(r->reason, "fp8 is assumed, and the interval reaches the other"));
    r = short_row("llama3.1-8b", "B200", 8, "nvfp4", shape, "DDP", "none", "x", "");
    batch_predict(&batch, &constants);
    assert_float_equal(sec[1], sec[0], 0);
    assert_true(lo[1] < lo[0] && hi[1] > hi[0]);
    assert_true(lo[1] < r->predicted && r->predicted < sec[1]);
}

/* PaLM's utilisation counts the whole core of attention, Megatron's half of it. */
TEST(flops_are_those_of_the_source)
{
    static const char *const source[] = {"Megatron-Bridge@1 d.md (26.04 x)", "Llama 3 paper table"};
    double sec[2];

    for (int i = 0; i < 2; i++) {
        char line[512];
        snprintf(line, sizeof(line),
                 "llama3.1-405b\tA\tH100\t16384\tIB\tbf16\t131072\t128\t1\t8\t16\t16\t1\t\tFSDP\t"
                 "none\ttflops_per_gpu\t380\tTFLOP/s/GPU\t%s\t\t\tcalib\t",
                 source[i]);
        sec[i] = row(line)->measured;
    }
    /* 6 x 403.7e9 of products (without the input embedding) and 12 x 126 x 128 x 128 x 131072 of
     * the core, for 128 sequences on 16384 GPUs at 380 TFLOP/s */
    double products = 6 * 403.7e9, core = 12.0 * 126 * 128 * 128 * 131072;
    double tokens = 128.0 * 131072 / 16384 / 380e12;
    assert_float_equal(sec[1] / ((products + core) * tokens), 1, 0.002);
    assert_float_equal(sec[0] / ((products + core / 2) * tokens), 1, 0.002);
}

TEST(published_configurations_set_what_tables_leave_out)
{
    static const char mlperf[] = "training_results_v6.0 (copy)@1 N";
    const struct batch_row *r =
        short_row("deepseek-v3", "GB300", 256, "mxfp8", "4096\t15360\t1\t1\t4\t1\t32", "ZeRO-1",
                  "none", mlperf, "");

    assert_true(r->recipe.mtp && r->recipe.ep_overlap);
    assert_int_equal(r->recipe.dispatch, DISPATCH_KERNEL);
    r = short_row("gpt-oss-20b", "B200", 64, "mxfp8", "8192\t64\t1\t1\t1\t2\t4", "ZeRO-1", "none",
                  mlperf, "");
    assert_int_equal(r->recipe.dispatch, DISPATCH_KERNEL);
    assert_int_equal(r->recipe.context, CONTEXT_ULYSSES);
    r = short_row("llama3.1-405b", "H100", 16384, "bf16", "131072\t128\t1\t8\t16\t16\t1", "FSDP",
                  "none", "Llama 3 paper", "");
    assert_int_equal(r->recipe.context, CONTEXT_GATHER);
    more = "\ttp_overlap";
    r = short_row("llama3.1-8b", "H100", 64, "bf16", "8192\t96\t12\t8\t1\t1\t1", "FSDP2", "full",
                  titan, "\ton");
    assert_true(recipe_overlaps_tp(&r->recipe));
    r = short_row("llama3.1-8b", "H100", 64, "bf16", "8192\t96\t12\t8\t1\t1\t1", "FSDP2", "full",
                  titan, "\toff");
    assert_false(recipe_overlaps_tp(&r->recipe));
    more = "";
    r = short_row("llama3.1-8b", "GB200", 4, "bf16", "2048\t128\t32\t1\t1\t1\t1", "FSDP2",
                  "unknown", titan, "");
    assert_int_equal(r->recipe.recompute, RECOMPUTE_SELECTIVE);
}

/* Switches that a release turned on: from it on, and for the dtype it did so for. */
TEST(recipes_change_with_releases)
{
    static const struct {
        const char *release, *dtype;
        int graphs;
        bool fused;
    } cases[] = {
        {"26.08 ", "mxfp8", CUDA_GRAPHS_STEP, true},
        {"26.06 ", "mxfp8", CUDA_GRAPHS_STEP, true},
        {"26.06.01 ", "mxfp8", CUDA_GRAPHS_STEP, true},
        {"26.06 ", "bf16", CUDA_GRAPHS_LAYERS, false},
        {"26.04.01 ", "mxfp8", CUDA_GRAPHS_LAYERS, false},
        {"25.11 ", "mxfp8", CUDA_GRAPHS_LAYERS, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char source[96];
        snprintf(source, sizeof(source), "NVIDIA-NeMo/Megatron-Bridge@1 (%sPre-Training)",
                 cases[i].release);
        const struct recipe *q =
            &short_row("qwen3-30b-a3b", "GB200", 8, cases[i].dtype, "4096\t512\t4\t1\t1\t1\t8",
                       "ZeRO-1", "none", source, "")
                 ->recipe;
        assert_int_equal(q->cuda_graphs, cases[i].graphs);
        assert_int_equal(q->moe_fusion, cases[i].fused);
        assert_int_equal(q->fp8_attention, cases[i].fused);
        assert_int_equal(q->ep_overlap, cases[i].fused);
    }
}

/* Memory that was read, in the source's GB, of what it reads; other tables have 10^9 bytes of a
 * device.  What is predicted is the same. */
TEST(memory_is_read_as_its_source_reads_it)
{
    static const struct {
        const char *column, *source, *cell;
        double bytes;
        int reads;
    } cases[] = {
        {"memory_read_GB", "huggingface/nanotron@2411b02 x", "50.2", 50.2 * 1073741824,
         MEMORY_RESERVED},
        {"memory_GB", "johnny19436/dp-tp-pp-lab@1509c6d x", "36.4", 36.4e9, MEMORY_ALLOCATED},
        {"memory_GB", "a laboratory", "61", 61e9, MEMORY_DEVICE},
        {"memory_GB", "a laboratory", "", NAN, MEMORY_DEVICE},
    };
    char text[1024];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        snprintf(text, sizeof(text),
                 "model\thardware\tgpus\tdtype\tseq_len\tglobal_batch\tvalue\tzero_stage/"
                 "fsdp\trecompute\tsource\t%s\n"
                 "llama3.1-8b\tH100\t8\tbf16\t8192\t8\t10\tFSDP2\tfull\t%s\t%s\n",
                 cases[i].column, cases[i].source, cases[i].cell);
        batch_free(&batch);
        assert_int_equal(load_text(text, NULL), 0);
        batch_resolve(&batch, &constants);
        const struct batch_row *r = batch.row;
        struct memory mem;
        batch_memory(&mem, r, &constants);
        assert_int_equal(r->reads, cases[i].reads);
        assert_true(isnan(cases[i].bytes) ? isnan(r->read_bytes)
                                          : fabs(r->read_bytes / cases[i].bytes - 1) < 1e-12);
        assert_true(r->bytes_lo < r->bytes && r->bytes < r->bytes_hi);
        assert_float_equal(r->bytes / memory_of_kind(&mem, (enum memory_kind)r->reads), 1, 1e-9);
    }
    batch_free(&batch);
    assert_int_equal(load_text("model\thardware\tgpus\tseq_len\tglobal_batch\tdtype\tvalue\t"
                               "memory_GB\nllama3.1-8b\tH100\t8\t8192\t8\tbf16\t10\tmuch\n",
                               NULL),
                     0);
    assert_int_equal(batch.row[0].status, BATCH_MISS);
    assert_non_null(strstr(batch.row[0].reason, "memory: "));
}

/* What cannot be asked says which cell and why; nothing is dropped. */
/* What ran without a habit of today's software is read so: by name of the source. */
TEST(what_a_source_ran_without_is_not_assumed)
{
    static const struct {
        const char *source;
        bool sequence_parallel;
        int tp_overlap, stack;
        double grad_bytes;
    } cases[] = {
        {"huggingface/nanotron@2411b02 x", true, TP_OVERLAP_ON, STACK_MEGATRON, 4},
        {"[aa_13b_2k_g64_fa1] Aleph-Alpha/NeurIPS x", false, TP_OVERLAP_OFF, STACK_MEGATRON, 2},
        {"[aa_13b_8k_g64_fa2rms_sp] Aleph-Alpha/N x", true, TP_OVERLAP_OFF, STACK_MEGATRON, 2},
        {"bigscience-workshop/bigscience@9e64ede x", false, TP_OVERLAP_OFF, STACK_MEGATRON, 2},
        {"mosaicml/llm-foundry@061f2c7 x", true, TP_OVERLAP_STACK, STACK_EAGER, 2},
        {"a laboratory", true, TP_OVERLAP_STACK, STACK_MEGATRON, 2},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct recipe *q =
            &short_row("llama3.1-8b", "A100", 64, "bf16", "2048\t1024\t1\t2\t1\t1\t1", "ZeRO-1",
                       "none", cases[i].source, "")
                 ->recipe;
        assert_int_equal(q->sequence_parallel, cases[i].sequence_parallel);
        assert_int_equal(q->tp_overlap, cases[i].tp_overlap);
        assert_int_equal(q->stack, cases[i].stack);
        assert_float_equal(recipe_grad_bytes(q), cases[i].grad_bytes, 0);
    }
}

/* What cannot be asked says which cell and why; nothing is dropped. */
TEST(misses_and_claims_say_why)
{
    static const struct {
        const char *line, *reason;
        enum batch_status status;
    } cases[] = {
        {"llama3.1-8b\tA\tH100\t8\tn/a\tbf16\t\t\t\t1\t1\t1\t1\t8\tDDP\tnone\tstep_time\t4.7\ts/"
         "it\t"
         "x\t\t\ttest_seed\t",
         "global_batch and seq_len are not stated", BATCH_MISS},
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

TEST(the_anchor_is_the_smallest_job_and_is_met)
{
    batch_free(&batch);
    assert_int_equal(load_text(family, NULL), 0);
    batch_resolve(&batch, &constants);
    batch_predict(&batch, &constants);
    anchor_batch(&batch, &constants);
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

/* gpus, cp, seconds: the job of cp 1 on 8 GPUs was measured four times, once on an odd machine. */
TEST(of_repeated_measurements_the_middle_one_anchors)
{
    static const struct {
        int gpus, cp;
        double sec;
    } rows[] = {{8, 2, 0.5}, {8, 1, 9}, {16, 1, 1}, {8, 1, 1.0}, {8, 1, 1.2}, {8, 1, 1.1}};
    char text[4096];
    int used = snprintf(text, sizeof(text), "%s\n", HEAD);

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         "llama3.1-8b\tR%zu\tH100\t%d\tIB\tbf16\t8192\t16\t1\t1\t1\t%d\t1\t\t"
                         "ZeRO-1\tnone\tstep_time\t%g\ts\tx\t1\t\tcalib\t\n",
                         i, rows[i].gpus, rows[i].cp, rows[i].sec);
    batch_free(&batch);
    assert_int_equal(load_text(text, NULL), 0);
    batch_resolve(&batch, &constants);
    batch_predict(&batch, &constants);
    anchor_batch(&batch, &constants);
    for (int i = 0; i < batch.rows; i++)
        assert_int_equal(batch.row[i].anchor, 5);
    assert_float_equal(batch.row[5].anchored, 1.1, 1e-6);
}

/* The way without words must not drift from predict_step(). */
TEST(seconds_without_words_are_those_of_predict_step)
{
    static const char *const lines[] = {
        "llama3.1-405b\tA\tH100\t512\tIB\tfp8\t8192\t1152\t1\t8\t8\t2\t1\t4\tZeRO-1\tnone\t"
        "step_time\t55.1\ts\tx\t8\t\tcalib\t",
        "llama3.1-70b\tA\tGB200\t128\tIB\tfp8\t8192\t256\t2\t1\t1\t1\t1\t\tFSDP-64\t\t"
        "tps_per_gpu\t4224\ttok/s/GPU\tx\t1\t\ttest_scale\t",
        "llama3.1-8b\tA\tB200\t64\tIB\tbf16\t8192\t128\t2\t1\t1\t1\t1\t\tDDP\tfull\t"
        "step_time\t1\ts\tx\t1\t\tcalib\t",
    };

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

/* --- the same job as a row and as a command line --- */

/* What a job may say; in a table under the same words but for these. */
static const struct {
    const char *key, *column, *words;
} said[] = {
    {"fabric", "fabric",
     "gb200-nvl72 gb300-nvl72 hgx-h100 hgx-b200 hgx-h100-efa hgx-a100-omnipath v100-omnipath "
     "mi300x"},
    {"model", "model", "llama3.1-8b llama3.1-70b qwen3-30b-a3b deepseek-v3"},
    {"dtype", "dtype", "bf16 fp8"},
    {"seq", "seq_len", "2048 4096 8192"},
    {"micro-batch", "micro_batch", "1 2"},
    {"recompute", "recompute", "none selective full"},
    {"strategy", "strategy", "ddp zero1 zero2 zero3 fsdp"},
    {"stack", "stack", "megatron torchtitan eager hf"},
    {"mesh-order", "mesh_order", "megatron torchtitan tp-pp-dp"},
    {"sequence-parallel", "sequence_parallel", "on off"},
    {"dispatch", "dispatch", "nccl kernel"},
    {"dispatch-bytes", "dispatch_bytes", "1 2"},
    {"combine-bytes", "combine-bytes", "1 2"},
    {"ep-overlap", "ep_overlap", "on off"},
    {"cuda-graphs", "cuda_graphs", "off layers step"},
    {"attention", "attention", "flash fused unfused"},
    {"prefetch", "prefetch", "on off"},
    {"segment", "segment", "- - - 2 4"},
    {"gpus-per-node", "gpus_per_node", "- - - 4"},
    {"flops", "flops", "- - - 3e14"},
    {"grad-bytes", "grad_bytes", "- 2 4"},
    {"mtp", "mtp", "off - on"},
};
enum { SAID = sizeof(said) / sizeof(*said) };

static unsigned draw(unsigned *seed, unsigned n)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % n;
}

/* The i-th of words parted by spaces; "" for "-". */
static void pick(char *out, size_t size, const char *words, unsigned *seed)
{
    unsigned n = 1;

    for (const char *c = words; *c; c++)
        n += *c == ' ';
    for (unsigned i = draw(seed, n); i > 0; i--)
        words = strchr(words, ' ') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(words, " "), words);
    if (!strcmp(out, "-"))
        *out = '\0';
}

/* Seconds and interval as the command line has them; NAN: it is refused. */
static void asked(double out[3], char cell[SAID][32], int batch_size, int gpus, const char *layout)
{
    struct job_opts o;
    struct job j;
    struct prediction p;
    struct err err;

    out[0] = out[1] = out[2] = NAN;
    job_defaults(&o);
    for (int i = 0; i < SAID; i++)
        if (*cell[i])
            assert_int_equal(job_set(&o, said[i].key, cell[i], &err), 0);
    o.layout = layout;
    o.gpus = gpus;
    o.recipe.global_batch = batch_size;
    if (job_open(&j, &o, &err) == 0) {
        struct question q = job_question(&j, &o);
        q.release = "mine 1.0";
        q.constants = &constants;
        if (predict_step(&p, &q, &err) == 0) {
            out[0] = p.sec;
            out[1] = p.lo;
            out[2] = p.hi;
        }
        prediction_free(&p);
    }
    job_free(&j);
}

/* Rows where something was assumed that the job had not said are another question. */
static bool assumed(const struct batch_row *r)
{
    return strstr(r->reason, "assumed") || strstr(r->reason, "as read") ||
           strstr(r->reason, "does not fit") || strstr(r->reason, "left out");
}

TEST(table_and_command_line_agree)
{
    unsigned seed = 20261123;
    int compared = 0, racks = 0;

    for (int n = 0; n < 400; n++) {
        static const int sizes[] = {8, 16, 64, 128, 144, 256};
        char cell[SAID][32], text[4096], layout[96];
        int gpus = sizes[draw(&seed, 6)], tp = 1 << draw(&seed, 4), pp = 1 << draw(&seed, 2);
        int ep = 1 << draw(&seed, 4), used = 0;
        for (int i = 0; i < SAID; i++)
            pick(cell[i], sizeof(cell[i]), said[i].words, &seed);
        if (gpus % (tp * pp))
            continue;
        int dp = gpus / tp / pp, batch_size = dp * pp * 8 * (cell[4][0] - '0');
        ep = strstr(cell[1], "llama") ? 1 : ep;
        snprintf(layout, sizeof(layout), "pp=%d,dp=%d,tp=%d,ep=%d", pp, dp, tp, ep);
        used = snprintf(text, sizeof(text),
                        "hardware\tgpus\tvalue\ttp\tpp\tep\tglobal_batch\trelease");
        for (int i = 0; i < SAID; i++)
            used += snprintf(text + used, sizeof(text) - (size_t)used, "\t%s", said[i].column);
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         "\nX\t%d\t1\t%d\t%d\t%d\t%d\tmine 1.0", gpus, tp, pp, ep, batch_size);
        for (int i = 0; i < SAID; i++)
            used += snprintf(text + used, sizeof(text) - (size_t)used, "\t%s", cell[i]);
        snprintf(text + used, sizeof(text) - (size_t)used, "\n");
        batch_free(&batch);
        assert_int_equal(load_text(text, NULL), 0);
        batch_resolve(&batch, &constants);
        batch_predict(&batch, &constants);
        const struct batch_row *r = &batch.row[0];
        double want[3];
        asked(want, cell, batch_size, gpus, layout);
        if (assumed(r))
            continue;
        if (isnan(want[0]) != (r->status == BATCH_MISS))
            fail_msg("%d: command line %g, table %g: %s\n%s", n, want[0], r->predicted, r->reason,
                     text);
        if (isnan(want[0]))
            continue;
        if (want[0] != r->predicted || want[1] != r->lo || want[2] != r->hi)
            fail_msg("%d: command line %.17g (%g .. %g), table %.17g (%g .. %g): %s\n%s", n,
                     want[0], want[1], want[2], r->predicted, r->lo, r->hi, r->reason, text);
        compared++;
        racks += r->segment == 16;
    }
    assert_true(compared > 80 && racks > 3);
}

TEST(a_bad_table_is_refused)
{
    struct err err = {0, ""};

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

TEST_GROUP(setup, teardown)
