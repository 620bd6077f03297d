/* SPDX-License-Identifier: BSD-3-Clause */
/* What each row of the table of transports says, and that a new one is a file with its calls and a
 * row: `constant`, for which every operation takes the same time. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/measure.h"
#include "measure/transports/gpu_opts.h"
#include "measure/transports/mpi_opts.h"
#include "measure/transports/transport.h"
#include "test.h"
#include "topo/fabrics/fabric.h"

/* --- the file --- */

#define COST 12.5e-6 /* s */

static int constant_open(void **ctx, const struct group *g, size_t max_bytes, struct err *err)
{
    (void)g;
    (void)max_bytes;
    (void)err;
    *ctx = NULL;
    return 0;
}

static int constant_run(void *ctx, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    (void)ctx;
    (void)op;
    (void)bytes;
    (void)err;
    for (int i = 0; i < n; i++)
        sec[i] = COST;
    return 0;
}

static void constant_close(void *ctx)
{
    (void)ctx;
}

static const struct transport_calls transport_constant = {
    .open = constant_open, .run = constant_run, .close = constant_close};

/* --- the row --- */

static const struct transport constant = {.name = "constant",
                                          .help = "every operation takes the same time",
                                          .ops = 1 << OP_ALL_REDUCE | 1 << OP_PAIR_BW,
                                          .only = "it is for tests (all_reduce, pair_bw)",
                                          .patience = 1,
                                          .calls = &transport_constant};

TEST(a_campaign_over_a_new_row)
{
    char path[] = "/tmp/rg-transport-XXXXXX";
    struct measure_opts m = MEASURE_DEFAULTS;
    struct points_log *log;
    struct fabric fabric;
    struct plan plan = {NULL, 0};
    struct plan_opts o;
    struct topo topo;
    struct err err;

    close(mkstemp(path));
    unlink(path);
    assert_int_equal(fabric_load(&fabric, "hgx-h100", &err), 0);
    assert_int_equal(fabric_topo(&fabric, 1, false, &topo, &err), 0);
    plan_defaults(&o);
    o.max_bytes = o.pair_bytes = 1 << 16;
    assert_int_equal(transport_limit(&o.ops, &constant, &err), 0);
    assert_int_equal(o.ops & ~constant.ops, 0);
    assert_int_equal(plan_make(&plan, &topo, &o, &err), 0);
    assert_int_equal(points_open(&log, path, plan_crc(&plan), &topo, constant.name, &err), 0);
    assert_int_equal(measure_plan(&world_solo, &constant, &topo, &plan, &m, log, &err), 0);
    const struct points *p = points_all(log);
    assert_string_equal(p->transport, "constant");
    assert_true(p->count > 10);
    for (int i = 0; i < p->count; i++) {
        assert_true(fabs(p->point[i].sec.median - COST) < 1e-15);
        assert_false(p->point[i].checked); /* it has no check() */
    }
    assert_int_equal(points_close(log, &err), 0);
    unlink(path);
    plan_free(&plan);
    topo_free(&topo);
    fabric_free(&fabric);
}

TEST(what_a_row_has_not_is_left_out_or_refused)
{
    unsigned ops = 1u << OP_ALL_REDUCE | 1u << OP_SENDRECV;
    struct err err;

    assert_int_equal(transport_limit(&ops, NULL, &err), 0);
    assert_int_equal(ops, 1u << OP_ALL_REDUCE | 1u << OP_SENDRECV);
    assert_int_equal(transport_limit(&ops, transport_find("copy"), &err), 0);
    assert_int_equal(ops, 1u << OP_SENDRECV);
    ops = 1u << OP_ALL_REDUCE;
    assert_int_equal(transport_limit(&ops, transport_find("copy"), &err), -1);
    assert_int_equal(err.code, EXIT_USAGE);
    assert_string_equal(err.text,
                        "transport copy has none of these operations: it copies between two GPUs "
                        "(pair_latency, pair_bw, pair_bibw, sendrecv)");
    ops = 1u << OP_SENDRECV;
    assert_int_equal(transport_limit(&ops, &constant, &err), -1);
}

TEST(rows_say_what_they_are)
{
    char names[TRANSPORT_NAMES];

    assert_string_equal(transport_names(names, true), "mpi, nccl, copy, verbs and sim");
    assert_string_equal(transport_names(names, false), "mpi, nccl, copy and verbs");
    assert_ptr_equal(transport_find("mpi"), &transports[0]);
    assert_string_equal(transport_solo()->name, "sim");
    assert_string_equal(transport_of_gpus()->name, "nccl");
    assert_null(transport_find("preset"));
    assert_null(transport_find(NULL));
    assert_true(transports[0].patience == 30 && transport_find("nccl")->patience == 8);
    for (const struct transport *t = transports; t->name; t++) {
        assert_true(t->patience > 0 && t->ops && *t->help);
        assert_true(t->only || t->ops == (1u << OP_COUNT) - 1);
        assert_true(t->ranks || !t->automatic);
    }
    assert_null(transports[0].calls); /* MPI's are not linked into this program */
}

TEST(options_of_all_rows_are_there_once_and_lie_with_the_transport)
{
    static const struct opt_line line = {.more = transport_options};
    char *block[] = {(char *)"test", (char *)"--reduce-scatter=block", (char *)"--copy-way=read"};
    char *bad[] = {(char *)"test", (char *)"--reduce-scatter=both"};
    const struct opt_set *const *sets = transport_options();
    int n = 0;

    for (; sets[n]; n++)
        for (int k = 0; k < n; k++)
            assert_ptr_not_equal(sets[k], sets[n]);
    assert_int_equal(n, 4); /* copy has nccl's as well */
    assert_int_equal(opt_parse(&line, 3, block, OPT_SILENT, NULL), 0);
    assert_int_equal(mpi_opts_asked.scatter_by_block, 1);
    assert_int_equal(copy_opts_asked.way, COPY_READ);
    assert_int_equal(opt_parse(&line, 2, bad, OPT_SILENT, NULL), -1);
}
