/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/job.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* Pairs of key and value, ended by NULL, on top of the defaults. */
static struct job_opts words(const char *const *pair)
{
    struct job_opts o;
    struct err err;

    job_defaults(&o);
    for (; *pair; pair += 2)
        if (job_set(&o, pair[0], pair[1], &err) < 0)
            fail_msg("%s", err.text);
    return o;
}
#define WORDS(...) words((const char *const[]){__VA_ARGS__, NULL})

/* Opens the job, predicts it, and returns the step. */
static double seconds_of(struct job_opts *o, struct prediction *p, struct job *j)
{
    struct err err = {0, ""};

    if (job_open(j, o, &err) < 0)
        fail_msg("%s", err.text);
    struct question q = job_question(j, o);
    if (predict_step(p, &q, &err) < 0)
        fail_msg("%s", err.text);
    return p->sec;
}

static double seconds(struct job_opts *o)
{
    struct prediction p;
    struct job j;
    double sec = seconds_of(o, &p, &j);

    prediction_free(&p);
    job_free(&j);
    return sec;
}

TEST(every_word_of_both_tables_is_taken)
{
    struct job_opts o = WORDS("model", "llama3.1-70b", "mesh_order", "torchtitan", "--gpus", "64",
                              "segment", "16", "spread", "cyclic", "flops", "4e14", "micro_batch",
                              "2", "strategy", "zero1", "nodes", "n1");

    assert_string_equal(o.model, "llama3.1-70b");
    assert_int_equal(o.mesh, ORDER_TORCHTITAN);
    assert_int_equal(o.gpus, 64);
    assert_int_equal(o.place.segment, 16);
    assert_int_equal(o.place.spread, SPREAD_CYCLIC);
    assert_string_equal(o.place.nodes, "n1");
    assert_float_equal(o.flops, 4e14, 1);
    assert_int_equal(o.recipe.micro_batch, 2);
    assert_int_equal(o.recipe.strategy, STRATEGY_ZERO1);
}

static const struct {
    const char *key, *value, *says;
} misspelt[] = {
    {"gpu", "8", "setting \"gpu\" is not known (known: model, layout, gpus, "},
    {"gpus", "0", "gpus: 0 is outside 1.."},
    {"racks", "two", "racks: \"two\" is not a whole number"},
    {"spread", "plane", "spread \"plane\" is not known (known: block, cyclic)"},
    {"flops", "-1", "flops: -1 is outside"},
    {"dtype", "int4", "dtype \"int4\" is not known"},
};

TEST(a_bad_word_is_refused_with_its_key)
{
    struct job_opts o;
    struct err err;

    job_defaults(&o);
    for (size_t i = 0; i < sizeof(misspelt) / sizeof(*misspelt); i++) {
        assert_int_equal(job_set(&o, misspelt[i].key, misspelt[i].value, &err), -1);
        assert_int_equal(err.code, EXIT_USAGE);
        if (strncmp(err.text, misspelt[i].says, strlen(misspelt[i].says)))
            fail_msg("case %zu: \"%s\"", i, err.text);
    }
}

TEST(a_preset_has_as_many_racks_as_the_placement_needs)
{
    static const struct {
        const char *key, *value;
        int racks;
    } want[] = {
        {"batch", "144", 2},  /* 144 GPUs fill two racks of 72 */
        {"segment", "16", 3}, /* 64 of a rack's 72 are whole segments */
        {"segment", "1", 2},  {"nodes", "r04n[00-17],r01n[00-17]", 5}, {"racks", "7", 7},
    };

    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct job_opts o =
            WORDS("fabric", "gb200-nvl72", "layout", "dp_shard=144", want[i].key, want[i].value);
        struct job j;
        struct err err = {0, ""};
        if (job_open(&j, &o, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(j.matrix.topo.endpoints, want[i].racks * 72);
        job_free(&j);
    }
}

/* What was really measured names no preset, and other placements are priced on its own matrix. */
TEST(a_measured_matrix_is_priced_placed_another_way)
{
    struct job_opts o = WORDS("layout", "dp_shard=2");
    struct prediction p;
    struct job j, again;
    struct err err = {0, ""};

    o.matrix = "tests/golden/matrix.json";
    assert_true(seconds_of(&o, &p, &j) > 0);
    assert_null(j.fabric.name);
    struct question q = job_question(&j, &o);
    job_hint(&p, &j, &o, &q);
    assert_int_equal(job_open_again(&again, &j, &o, &o, &err), 0);
    assert_ptr_equal(again.matrix.topo.endpoint, j.matrix.topo.endpoint);
    job_close_again(&again, &j);
    prediction_free(&p);
    job_free(&j);
}

/* tp=8 within a node's reach and across racks: two nodes of a rack at a time keep it inside. */
TEST(segments_keep_groups_inside_racks)
{
    struct job_opts near = WORDS("fabric", "gb200-nvl72", "layout", "tp=8,dp=9", "strategy",
                                 "zero1", "racks", "2", "segment", "2");
    struct job_opts far = WORDS("fabric", "gb200-nvl72", "layout", "tp=8,dp=9", "strategy", "zero1",
                                "racks", "2", "segment", "1");

    assert_true(seconds(&far) > 1.05 * seconds(&near));
}

TEST(ranks_dealt_round_the_nodes_tear_groups_apart)
{
    struct job_opts block = WORDS("fabric", "hgx-h100", "layout", "tp=8,dp=4", "strategy", "zero1");
    struct job_opts cyclic =
        WORDS("fabric", "hgx-h100", "layout", "tp=8,dp=4", "strategy", "zero1", "spread", "cyclic");

    assert_true(seconds(&cyclic) > 1.05 * seconds(&block));
}

/* A matrix file with this exception; the caller unlinks and frees. */
static char *matrix_with(struct exception x)
{
    struct fabric f;
    struct matrix m;
    char *path = mem_strdup("/tmp/railgauge-job-XXXXXX");

    close(mkstemp(path));
    assert_int_equal(fabric_load(&f, "gb200-nvl72", NULL), 0);
    assert_int_equal(matrix_from_fabric(&m, &f, 3, NULL), 0);
    x.why = mem_strdup("every partner sees it");
    MEM_PUSH(m.exception, m.exceptions) = x;
    assert_int_equal(matrix_save(&m, path, NULL), 0);
    matrix_free(&m);
    fabric_free(&f);
    return path;
}

/* Steps on the same file, on nodes that meet the exception and on nodes that do not. */
static void meets(struct exception x, const char *with, const char *without, const char *named)
{
    char *path = matrix_with(x), text[320];
    struct job_opts bad = WORDS("nodes", with, "layout", "dp_shard=32");
    struct job_opts good = WORDS("nodes", without, "layout", "dp_shard=32");
    struct prediction p;
    struct job j;
    int found = -1;

    bad.matrix = good.matrix = path;
    double slow = seconds_of(&bad, &p, &j);
    for (int i = 0; i < p.terms; i++)
        if (p.term[i].exception >= 0)
            found = p.term[i].exception;
    assert_int_equal(found, 0);
    predict_exception_text(text, sizeof(text), &j.matrix, found);
    if (!strstr(text, named))
        fail_msg("\"%s\" does not name %s", text, named);
    prediction_free(&p);
    job_free(&j);
    double fast = seconds_of(&good, &p, &j);
    for (int i = 0; i < p.terms; i++)
        assert_int_equal(p.term[i].exception, -1);
    assert_true(slow > 1.02 * fast);
    prediction_free(&p);
    job_free(&j);
    unlink(path);
    free(path);
}

/* One rank of each rack drives the ring over the NICs: the ends of each rack's nodes. */
TEST(a_slow_nic_reaches_the_answer_where_the_placement_uses_it)
{
    struct exception x = {
        .part = PART_ENDPOINT, .a = 15, .b = -1, .tier = -1, .factor = 0.05, .evidence = 9};

    meets(x, "r00n[00-03],r01n[00-03]", "r00n[04-07],r01n[00-03]", "NIC mlx5_3 of r00n03 (GPU 3)");
}

TEST(a_slow_rack_pair_reaches_the_answer_where_the_placement_uses_it)
{
    struct exception x = {
        .part = PART_RACK_PAIR, .a = 0, .b = 1, .tier = -1, .factor = 0.05, .evidence = 9};

    meets(x, "r00n[00-03],r01n[00-03]", "r00n[00-03],r02n[00-03]", "racks rack-00 and rack-01");
}

TEST(accumulation_makes_the_batch)
{
    struct job_opts o = WORDS("fabric", "hgx-h100", "layout", "tp=8,dp_shard=4", "micro-batch", "2",
                              "accumulation", "3");
    struct job j;
    struct err err;

    assert_int_equal(job_open(&j, &o, NULL), 0);
    assert_int_equal(o.recipe.global_batch, 24);
    job_free(&j);
    o.recipe.global_batch = 8;
    assert_int_equal(job_open(&j, &o, &err), -1);
    assert_string_equal(err.text, "an accumulation of 3 makes a batch of 24, and 8 is given");
    job_free(&j);
}

static const struct {
    const char *key, *value, *says;
} refused[] = {
    {"nodes", "r00n00", "--nodes: r00n00 has 4 endpoints, and the job has 8 ranks"},
    {"nodes", "r00n[00-01],x",
     "--nodes: node \"x\" is not among the 18 of the matrix (r00n00 .. r00n17)"},
    {"segment", "20", "--segment: the racks have room for 0 segments of 20 nodes"},
    {"model", "gpt9", "no model \"gpt9\""},
    {"layout", "tp=8,ep=2", "axis ep"},
};

TEST(what_cannot_be_opened_is_refused)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        struct job_opts o =
            WORDS("fabric", "gb200-nvl72", "layout", "dp=8", refused[i].key, refused[i].value);
        struct job j;
        struct err err = {0, ""};
        assert_int_equal(job_open(&j, &o, &err), -1);
        if (!strstr(err.text, refused[i].says))
            fail_msg("case %zu: \"%s\"", i, err.text);
        job_free(&j);
    }
}
