/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/text/nccl_tests.h"
#include "test.h"

static struct nccl_tests_how how = {.warmup = 5};

static void add(struct points *p, int round, int group, int epoch, enum op op, size_t bytes,
                double sec)
{
    struct point pt = {.round = round,
                       .group = group,
                       .epoch = epoch,
                       .op = op,
                       .ranks = 4,
                       .src = 0,
                       .dst = 3,
                       .flows = 1,
                       .bytes = bytes,
                       .checked = true,
                       .stop = STOP_CI};

    pt.sec = point_secs(sec, sec * 0.9, sec * 1.1);
    pt.n = 16;
    MEM_PUSH(p->point, p->count) = pt;
}

static char *print(const struct points *p, const struct topo *topo, const struct plan *plan)
{
    struct err err = {0};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(nccl_tests_print(out, p, plan, topo, &how, &err), 0);
    fclose(out);
    return text;
}

/* Columns separated by blanks, as awk and Python's split() see them. */
static int split(char *line, char **column, int max)
{
    int n = 0;
    char *save = NULL;

    for (char *t = strtok_r(line, " \n", &save); t && n < max; t = strtok_r(NULL, " \n", &save))
        column[n++] = t;
    return n;
}

/* Row number `want` (from 0) of the lines that do not begin with '#'. */
static char *data_row(const char *text, int want)
{
    char *copy = mem_strdup(text), *save = NULL, *row = NULL;

    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (*line != '#' && *line && want-- == 0)
            row = mem_strdup(line);
    free(copy);
    return row;
}

TEST(a_row_has_the_thirteen_columns_of_nccl_tests)
{
    struct points p = {0};
    char *column[20];

    add(&p, 1, 0, 0, OP_ALL_GATHER, 1 << 20, 100e-6);
    add(&p, 1, 0, 0, OP_ALL_GATHER, 2 << 20, 150e-6);
    char *text = print(&p, NULL, NULL), *row = data_row(text, 0);
    assert_int_equal(split(row, column, 20), 13);
    assert_string_equal(column[0], "1048576");
    assert_string_equal(column[1], "65536"); /* words of one rank's block */
    assert_string_equal(column[2], "uint32");
    assert_string_equal(column[3], "none");
    assert_string_equal(column[4], "-1");
    assert_string_equal(column[5], "100.00"); /* us */
    assert_string_equal(column[6], "10.49");  /* 1048576 B / 100 us */
    assert_string_equal(column[7], "7.86");   /* times 3/4 */
    assert_string_equal(column[8], "0");
    for (int i = 9; i < 13; i++)
        assert_string_equal(column[i], "N/A");
    free(row);
    free(text);
    free(p.point);
}

TEST(in_place_fills_the_other_half_and_types_are_those_asked_for)
{
    struct points p = {.transport = "nccl"};
    struct nccl_opts o = NCCL_OPTS_DEFAULTS;
    char *column[20];

    o.in_place = o.dtype_given = true;
    o.dtype = NCCL_FLOAT16;
    o.redop = NCCL_MAX;
    how.nccl = &o;
    add(&p, 1, 0, 0, OP_REDUCE_SCATTER, 1 << 20, 100e-6);
    char *text = print(&p, NULL, NULL), *row = data_row(text, 0);
    how.nccl = NULL;
    assert_int_equal(split(row, column, 20), 13);
    assert_string_equal(column[1], "131072"); /* 2-byte elements of one rank's block */
    assert_string_equal(column[2], "half");
    assert_string_equal(column[3], "max");
    for (int i = 5; i < 9; i++)
        assert_string_equal(column[i], "N/A");
    assert_string_equal(column[9], "100.00");
    assert_string_equal(column[10], "10.49");
    assert_non_null(strstr(text, " warmup iters: 5 iters: 16 "));
    free(row);
    free(text);
    free(p.point);
}

TEST(header_and_footer_are_the_lines_that_parsers_look_for)
{
    struct points p = {0};

    add(&p, 1, 0, 0, OP_ALL_REDUCE, 1000000, 1e-3);
    add(&p, 1, 0, 0, OP_ALL_REDUCE, 3000000, 1e-3);
    char *text = print(&p, NULL, NULL);
    assert_non_null(strstr(text, "# Collective test starting: all_reduce_perf\n"));
    assert_non_null(strstr(text, "\n#                                                              "
                                 "out-of-place                       in-place          \n"));
    assert_non_null(strstr(text,
                           "\n#       size         count      type   redop    root     time   "
                           "algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"));
    assert_non_null(strstr(text, "\n#        (B)    (elements)                               (us)  "
                                 "(GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)"));
    assert_non_null(strstr(text, "\n# Out of bounds values : 0 OK\n"));
    /* 1 GB/s and 3 GB/s times 2 * 3/4 */
    assert_non_null(strstr(text, "\n# Avg bus bandwidth    : 3 \n"));
    assert_non_null(strstr(text, "# Collective test concluded: all_reduce_perf\n"));
    free(text);
    free(p.point);
}

TEST(epochs_become_one_row_with_the_median_of_their_medians)
{
    struct points p = {0};
    char *column[20];

    add(&p, 1, 0, 0, OP_BROADCAST, 4096, 10e-6);
    add(&p, 1, 0, 1, OP_BROADCAST, 4096, 90e-6);
    add(&p, 1, 0, 2, OP_BROADCAST, 4096, 20e-6);
    char *text = print(&p, NULL, NULL), *row = data_row(text, 0);
    assert_null(data_row(text, 1));
    assert_int_equal(split(row, column, 20), 13);
    assert_string_equal(column[4], "0"); /* broadcast has a root */
    assert_string_equal(column[5], "20.00");
    free(row);
    free(text);
    free(p.point);
}

TEST(wrong_data_is_counted_and_said_in_the_footer)
{
    struct points p = {0};
    char *column[20];

    add(&p, 1, 0, 0, OP_ALL_TO_ALL, 4096, 10e-6);
    p.point[0].wrong = true;
    char *text = print(&p, NULL, NULL), *row = data_row(text, 0);
    split(row, column, 20);
    assert_string_equal(column[8], "1");
    assert_non_null(strstr(text, "# Out of bounds values : 1 FAILED\n"));
    free(row);
    free(text);
    free(p.point);
}

TEST(data_that_was_not_verified_is_not_called_right)
{
    struct points p = {0};
    char *column[20];

    add(&p, 1, 0, 0, OP_SENDRECV, 4096, 10e-6);
    p.point[0].checked = false;
    char *text = print(&p, NULL, NULL), *row = data_row(text, 0);
    split(row, column, 20);
    assert_string_equal(column[8], "N/A");
    free(row);
    free(text);
    free(p.point);
}

TEST(a_failed_size_is_a_comment_with_its_reason)
{
    struct points p = {0};

    add(&p, 1, 0, 0, OP_ALL_REDUCE, 4096, 10e-6);
    add(&p, 1, 0, 0, OP_ALL_REDUCE, 8192, 0);
    p.point[1].stop = STOP_FAILED;
    point_note(&p.point[1], "rank 3 ran out of memory");
    char *text = print(&p, NULL, NULL);
    assert_non_null(strstr(text, "\n# 8192 bytes: not measured: rank 3 ran out of memory\n"));
    assert_null(data_row(text, 1));
    free(text);
    free(p.point);
}

TEST(every_group_of_every_op_has_its_own_table)
{
    struct points p = {0};
    int tables = 0;

    add(&p, 2, 1, 0, OP_ALL_REDUCE, 4096, 10e-6);
    add(&p, 2, 0, 0, OP_ALL_REDUCE, 4096, 10e-6);
    add(&p, 1, 0, 0, OP_REDUCE_SCATTER, 4096, 10e-6);
    add(&p, 0, 0, 0, OP_PAIR_BW, 4096, 10e-6);
    char *text = print(&p, NULL, NULL);
    for (const char *at = text; (at = strstr(at, "# Avg bus bandwidth")); at++)
        tables++;
    assert_int_equal(tables, 3);
    free(text);
    free(p.point);
}

TEST(devices_are_named_when_plan_and_topology_are_known)
{
    struct points p = {0};
    struct topo t;
    int members[4];
    struct plan_group group = {members, 4};
    struct round round = {.id = 1, .group = &group, .groups = 1};
    struct plan plan = {&round, 1};

    topo_init(&t);
    for (int i = 0; i < 4; i++)
        members[i] =
            topo_add_endpoint(&t, topo_add_host(&t, i / 2 ? "nodeb" : "nodea"), ENDPOINT_GPU);
    snprintf(t.endpoint[3].busid, sizeof(t.endpoint[3].busid), "0000:1b:00.0");
    add(&p, 1, 0, 0, OP_ALL_REDUCE, 4096, 10e-6);
    char *text = print(&p, &t, &plan);
    assert_non_null(
        strstr(text, "#  Rank  3 Group  0 Pid      0 on      nodeb device  1 [0000:1b:00] "));
    free(text);
    free(p.point);
    topo_free(&t);
}

TEST(large_numbers_keep_the_columns_apart)
{
    struct points p = {0};
    char *column[20];

    add(&p, 1, 0, 0, OP_BROADCAST, (size_t)1 << 40, 12345.678901);
    add(&p, 1, 0, 0, OP_BROADCAST, (size_t)1 << 41, 1e-4);
    char *text = print(&p, NULL, NULL), *row = data_row(text, 0);
    assert_int_equal(split(row, column, 20), 13);
    assert_string_equal(column[5], "1.2e+10");
    free(row);
    row = data_row(text, 1);
    assert_int_equal(split(row, column, 20), 13);
    free(row);
    free(text);
    free(p.point);
}

TEST(pairs_alone_are_refused_with_a_reason)
{
    struct points p = {0};
    struct err err = {0};

    add(&p, 0, 0, 0, OP_PAIR_BW, 4096, 10e-6);
    assert_int_equal(nccl_tests_print(stdout, &p, NULL, NULL, &how, &err), -1);
    assert_string_equal(err.text, "no collective was measured: 1 points of pairs only");
    assert_int_equal(err.code, EXIT_DATA);
    free(p.point);
}
