/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#include "base/file.h"
#include "matrix/matrix.h"
#include "matrix/matrix_impl.h"
#include "small.h"
#include "topo/nic.h"

/* One of everything. */
static void full_matrix(struct matrix *m)
{
    small_matrix(m);
    for (int i = 0; i < m->tiers; i++)
        for (int d = 0; d < DIR_COUNT; d++)
            m->tier[i].curve[d].points = m->tier[i].curve[d].points ? 3 : 0;
    m->tier[1].loaded = 0.25;
    m->tier[1].pairs = 24;
    m->tier[2].source = mem_strdup("a page");
    struct collective c = {
        .op = OP_ALL_TO_ALL, .shape = {8, 8, 1, 8, 1, 2}, .basis = BASIS_MEASURED};
    curve_add(&c.curve, (struct curve_point){4096, 0.001, 0.0009, 0.0011, 80});
    curve_add(&c.curve, (struct curve_point){8192, 0.0015, 0.0014, 0.0016, 80});
    curve_summarise(&c.curve);
    MEM_PUSH(m->collective, m->collectives) = c;
    MEM_PUSH(m->ep, m->eps) = (struct ep_curve){.kernel = mem_strdup("DeepEP"),
                                                .ranks = 8,
                                                .domains = 2,
                                                .alpha = 1e-4,
                                                .Bps = {45e9, 44e9},
                                                .basis = BASIS_PRESET,
                                                .source = mem_strdup("a table")};
    small_exception(m, PART_HOST, 5, -1, 1, 0.3)->evidence = 7;
    small_exception(m, PART_RACK_PAIR, 0, 1, -1, 0.9)->side = SIDE_RX;
    matrix_find(m, "contention", "racks %d-%d: 4 flows at once", 0, 1);
    m->topo.endpoint[3].place.at[LEVEL_RACK] = -1;
    for (int h = 0; h < 8; h++) {
        struct nic n = {.host = h, .name = "eth0", .layer = LINK_ETHERNET, .rate_Bps = 125e6};
        n.up = true;
        n.numa = -1;
        n.source = SOURCE_SYSFS;
        MEM_PUSH(m->topo.nic, m->topo.nics) = n;
        m->topo.endpoint[2 * h].nic = h;
    }
    topo_unseen(&m->topo, "NVLink domain", "no driver");
    m->compute.flops = 1e12;
    m->compute.flops_spread = 0.25;
    m->compute.source = mem_strdup("measured here");
    m->compute.devices = 15;
    m->compute.alone[ALONE_HBM] = 4.3e12;
    m->compute.share[ALONE_HBM] = 0.9;
    m->compute.alone[ALONE_LAUNCH] = 2e-6;
    MEM_PUSH(m->compute.gemm, m->compute.gemms) = (struct gemm_rate){.dtype = "bf16",
                                                                     .m = 8192,
                                                                     .n = 6144,
                                                                     .k = 4096,
                                                                     .flops = 7e14,
                                                                     .share = 0.7,
                                                                     .spread = 0.003,
                                                                     .devices = 15};
}

static char *packed(const struct matrix *m)
{
    json_t *root = matrix_pack(m);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    assert_non_null(root);
    json_decref(root);
    return text;
}

TEST(loading_what_was_saved_gives_the_same_matrix)
{
    struct matrix m, back;
    struct err err;
    struct cost a, b;

    full_matrix(&m);
    char *text = packed(&m);
    if (matrix_parse(&back, text, strlen(text), "m.json", &err) < 0)
        fail_msg("%s", err.text);
    char *again = packed(&back);
    assert_string_equal(text, again);
    assert_int_equal(back.topo.endpoint[3].place.at[LEVEL_RACK], -1);
    assert_int_equal(back.topo.endpoint[15].local, 1);
    assert_int_equal(back.topo.endpoint[14].nic, 7);
    assert_int_equal(back.topo.endpoint[9].source[LEVEL_RACK], SOURCE_USER);
    assert_string_equal(back.topo.host[7].name, "n07");
    assert_true(isnan(back.tier[0].loaded));
    for (int i = 0; i < 16; i++) {
        matrix_pair(&m, 10, i, 65536, &a);
        matrix_pair(&back, 10, i, 65536, &b);
        assert_true(fabs(a.sec - b.sec) <= 1e-8 * a.sec);
        assert_string_equal(a.source, b.source);
    }
    free(text);
    free(again);
    matrix_free(&m);
    matrix_free(&back);
}

TEST(the_golden_example_is_what_is_written)
{
    const char *path = "tests/golden/matrix.json";
    struct matrix m;
    struct err err;
    char *golden = NULL, *text = NULL, written[] = "/tmp/railgauge-matrix-XXXXXX";

    full_matrix(&m);
    close(mkstemp(written));
    if (getenv("UPDATE_GOLDEN"))
        assert_int_equal(matrix_save(&m, path, &err), 0);
    if (file_read(&golden, NULL, path, 1 << 20, &err) < 0 || matrix_save(&m, written, &err) < 0 ||
        file_read(&text, NULL, written, 1 << 20, &err) < 0)
        fail_msg("%s", err.text);
    unlink(written);
    assert_string_equal(golden, text);
    free(text);
    free(golden);
    matrix_free(&m);
}

/* A hundred thousand endpoints: small, fast, the same again. */
TEST(a_hundred_thousand_endpoints_stay_small)
{
    struct matrix m, back;
    struct err err;

    matrix_init(&m);
    m.transport = mem_strdup("sim");
    small_topo(&m.topo, 1389, 18, 4, true, ENDPOINT_GPU);
    small_tier(&m, "rack", 1u << LEVEL_RACK, 2e-6, 700e9, false);
    small_tier(&m, "fabric", 0, 5e-6, 49e9, true);
    char *text = packed(&m);
    assert_true(strlen(text) < 500000);
    clock_t start = clock(); /* of this process alone: a busy machine is not what is tested */
    if (matrix_parse(&back, text, strlen(text), "m.json", &err) < 0)
        fail_msg("%s", err.text);
    if (!getenv("RG_SAN") || !*getenv("RG_SAN"))
        assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 1);
    assert_int_equal(back.topo.endpoints, 100008);
    for (int i = 0; i < back.topo.endpoints; i++)
        assert_memory_equal(&back.topo.endpoint[i].place, &m.topo.endpoint[i].place,
                            sizeof(struct place));
    free(text);
    matrix_free(&m);
    matrix_free(&back);
}

TEST(ranks_dealt_out_round_robin_survive)
{
    struct matrix m, back;
    struct err err;

    matrix_init(&m);
    m.transport = mem_strdup("mpi");
    for (int i = 0; i < 9; i++)
        topo_add_endpoint(&m.topo, topo_add_host(&m.topo, (const char *[]){"a", "b7", "c"}[i % 3]),
                          ENDPOINT_CPU);
    small_tier(&m, "all", 0, 1e-6, 1e9, true);
    char *text = packed(&m);
    if (matrix_parse(&back, text, strlen(text), "m.json", &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(back.topo.endpoint[i].place.at[LEVEL_HOST], i % 3);
        assert_int_equal(back.topo.endpoint[i].local, i / 3);
    }
    free(text);
    matrix_free(&m);
    matrix_free(&back);
}

TEST(runs_fold_equal_and_growing_rows)
{
    const int v[] = {0, 1, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, -1, -1};
    int back[14];
    struct err err;
    json_t *runs = rows_pack(v, 14, 2);
    char *text = json_dumps(runs, JSON_COMPACT);

    assert_string_equal(text, "[[3,[0,1]],[3,[2,3],2],[1,-1]]");
    assert_int_equal(rows_unpack(back, 14, &(struct rows){runs, 2, -1, 7}, "x", &err), 0);
    assert_memory_equal(v, back, sizeof(v));
    assert_int_equal(rows_unpack(back, 14, &(struct rows){runs, 2, -1, 6}, "x", &err), -1);
    assert_string_equal(err.text, "x[1]: its last value 7 is outside -1..6");
    free(text);
    json_decref(runs);
}

/* Replace `from` by `to` in the golden text, and see it refused with `message`. */
static void refused(const char *from, const char *to, const char *message)
{
    struct matrix m, back;
    struct err err = {0};

    full_matrix(&m);
    json_t *root = matrix_pack(&m);
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
    char *at = strstr(text, from);
    if (!at)
        fail_msg("the text has no %s", from);
    char *bad = mem_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    if (matrix_parse(&back, bad, strlen(bad), "m.json", &err) == 0)
        fail_msg("%s was taken", to);
    assert_int_equal(err.code, EXIT_DATA);
    if (!strstr(err.text, message))
        fail_msg("\"%s\" where \"%s\" was expected", err.text, message);
    free(bad);
    free(text);
    json_decref(root);
    matrix_free(&m);
}

TEST(bad_files_are_refused_with_place_value_and_reason)
{
    static const struct {
        const char *from, *to, *message;
    } bad[] = {
        {"railgauge-matrix", "railgauge-topology", "m.json: format is \"railgauge-topology\""},
        {"\"version\":1", "\"version\":2", "m.json: version 2"},
        {"\"transport\":\"mpi\"", "\"transport\":7",
         "m.json: \"transport\" is a whole number where text is needed"},
        {"\"transport\":\"mpi\"", "\"x\":\"mpi\"", "m.json: key \"transport\" is missing"},
        {"\"findings\"", "\"more\":1,\"findings\"", "m.json: unknown key: more"},
        {"\"endpoints\":16", "\"endpoints\":0", "places: 0 endpoints in rows of 2"},
        {"\"endpoints\":16", "\"endpoints\":99999999", "places: 99999999 endpoints"},
        {"\"row\":2", "\"row\":3", "places: 16 endpoints in rows of 3"},
        {"n[00-07]", "n[00-07", "unbalanced brackets"},
        {"n[00-07]", "n[00-06],n00", "the name \"n00\" appears twice"},
        {"n[00-07]", "n[00-06]", "levels.host[0]: its last value 7 is outside 0..6"},
        {"[[8,0,1]]", "[[7,0,1]]", "levels.host: 1 rows are missing"},
        {"[[8,0,1]]", "[[9,0,1]]", "levels.host[0]: the number of rows 9 is outside 1..8"},
        {"[[8,0,1]]", "[[8,0.5,1]]", "levels.host[0]: the value is not an integer"},
        {"[[8,0,1]]", "[8,0,1]", "levels.host[0] is not [rows, values]"},
        {"[[8,0,1]]", "[[8,[0,1,2],1]]", "levels.host[0]: 3 values where a row has 2"},
        {"\"rack\":{", "\"shelf\":{", "places.levels.shelf: no such level"},
        {"\"source\":\"user\"", "\"source\":\"oracle\"", "source: \"oracle\" is no source"},
        {"\"kind\":\"cpu\"", "\"kind\":\"tpu\"", "devices.kinds[0]: \"tpu\", \"\" is no device"},
        {"\"layer\":\"ethernet\"", "\"layer\":\"rope\"",
         "nics.kinds[0]: \"rope\" is no link layer"},
        {"\"rate_Bps\":125000000.0", "\"rate_Bps\":-1", "nics.kinds[0]: \"rate_Bps\" is -1"},
        {"\"same\":[\"host\"]", "\"same\":[\"desk\"]", "tiers[0].same[0]: \"desk\" is no level"},
        {"\"basis\":\"measured\"", "\"basis\":\"felt\"", "tiers[0]: \"felt\" is no basis"},
        {"\"oneway\":{", "\"sideways\":{",
         "tiers[0].curves.sideways: \"sideways\" is no direction"},
        {"\"alpha_s\":1e-6", "\"alpha_s\":-1e-06", "tiers[0].curves.oneway: \"alpha_s\" is -1e-06"},
        {"\"points\":[[8.0,", "\"points\":[[-8.0,", "points[0][0] is -8, outside 0..1e+18"},
        {"\"points\":[[8.0,", "\"points\":[[0,", "points[0]: 0 bytes in"},
        {"\"points\":[[8.0,", "\"points\":[[80,", "points[1]: size 12 does not come after 80"},
        {"\"points\":[[8.0,", "\"points\":[[\"8\",", "points[0][0] is not a number"},
        {"\"points\":[[8.0,", "\"points\":[[1,8.0,", "points[0] is not [bytes, seconds"},
        {"\"op\":\"all_to_all\"", "\"op\":\"pair_bw\"",
         "collectives[0]: \"pair_bw\" is no collective"},
        {"\"ranks\":8", "\"ranks\":1", "collectives[0]: no group has 1 ranks, 8 domains"},
        {"\"part\":\"host\"", "\"part\":\"cable\"", "exceptions[0]: \"cable\" is no part"},
        {"\"side\":\"both\"", "\"side\":\"top\"", "exceptions[0]: \"top\" is no side"},
        {"\"a\":5", "\"a\":8", "exceptions[0]: host 8, -1 where there are 8"},
        {"\"b\":1", "\"b\":2", "exceptions[1]: rack_pair 0, 2 where there are 2"},
        {"\"tier\":\"rack\"", "\"tier\":\"row\"", "exceptions[0]: no tier \"row\""},
        {"\"factor\":0.3", "\"factor\":1.3", "exceptions[0]: \"factor\" is 1.3, outside 0..1"},
        {"\"text\":\"racks", "\"words\":\"racks", "findings[0]: key \"text\" is missing"},
        {"\"flops\":1e12", "\"flops\":\"many\"", "compute: \"flops\" is not a number"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(bad[i].from, bad[i].to, bad[i].message);
}

TEST(a_missing_file_is_no_input)
{
    struct matrix m;
    struct err err;

    assert_int_equal(matrix_load(&m, "/nowhere/m.json", MATRIX_WHOLE, &err), -1);
    assert_int_equal(err.code, EXIT_NOINPUT);
    assert_non_null(strstr(err.text, "/nowhere/m.json"));
}
