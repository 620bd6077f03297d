/* SPDX-License-Identifier: BSD-3-Clause */
/* stop_rule.c - is the stop rule as good as many samples, and what does it save?
 *
 *   mpirun -n 2 stop_rule
 *
 * Measures every case as a campaign does, in epochs spread over its length: in each by the stop
 * rule and with SAMPLES times as many samples as that took; and once with a fixed 1,000.  Prints
 * TSV: op, bytes, samples by the rule, share by which its median of epoch medians differs from that
 * of the many samples, seconds by the rule, seconds of the fixed 1,000. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure/measure_impl.h"
#include "transport/mpi/world_mpi.h"

extern const struct transport_calls transport_mpi;

static const double time_cap = 0.1; /* s; a campaign chooses its own by what it has to measure */

enum { SAMPLES = 20, FIXED = 1000 };

static const struct {
    enum op op;
    size_t bytes;
} cases[] = {
    {OP_PAIR_LATENCY, 8},   {OP_PAIR_LATENCY, 4096},  {OP_PAIR_LATENCY, 65536},
    {OP_PAIR_BW, 4096},     {OP_PAIR_BW, 65536},      {OP_PAIR_BW, 1 << 20},
    {OP_PAIR_BIBW, 65536},  {OP_PAIR_BIBW, 1 << 20},  {OP_ALL_REDUCE, 8},
    {OP_ALL_REDUCE, 65536}, {OP_ALL_REDUCE, 1 << 20}, {OP_ALL_GATHER, 65536},
    {OP_ALL_TO_ALL, 65536}, {OP_SENDRECV, 65536},     {OP_BROADCAST, 65536},
};
enum { CASES = sizeof(cases) / sizeof(*cases), BYTES_MAX = 1 << 20 };

/* What one case gathers over the epochs. */
static struct {
    double rule[PLAN_EPOCHS], many[PLAN_EPOCHS]; /* s, the epochs' medians */
    int samples;                                 /* by the rule, all epochs */
    double rule_sec, fixed_sec;                  /* s, how long the measuring took */
} result[CASES];

/* One case; *sec grows by how long it took.  iters 0: by the stop rule. */
static int measure(struct sampler *s, int k, int iters, struct point *out, double *sec,
                   struct err *err)
{
    struct point_row row = {
        .point = {.op = cases[k].op, .bytes = cases[k].bytes, .ranks = 2, .flows = 1}};
    const struct point *p = &row.point;
    struct measure_opts o = MEASURE_DEFAULTS;
    double from = MPI_Wtime();

    o.time_cap = time_cap;
    o.iters = iters;
    if (sample_point(s, &row, &o, false, err) < 0)
        return -1;
    if (p->stop == STOP_FAILED)
        return err_set(err, "%s of %zu bytes failed: %s", op_name(p->op), p->bytes, p->note);
    *out = *p;
    *sec += MPI_Wtime() - from;
    return 0;
}

static int measure_case(struct sampler *s, int k, int epoch, struct err *err)
{
    struct point rule, many, fixed;
    double unused = 0;

    if (measure(s, k, 0, &rule, &result[k].rule_sec, err) < 0 ||
        measure(s, k, SAMPLES * rule.n, &many, &unused, err) < 0 ||
        (!epoch && measure(s, k, FIXED, &fixed, &result[k].fixed_sec, err) < 0))
        return -1;
    result[k].rule[epoch] = rule.sec.median;
    result[k].many[epoch] = many.sec.median;
    result[k].samples += rule.n;
    return 0;
}

static void print_results(void)
{
    puts("op\tbytes\tn\terror\trule_sec\tfixed_sec");
    for (int k = 0; k < CASES; k++) {
        double rule = stats_median(result[k].rule, PLAN_EPOCHS),
               many = stats_median(result[k].many, PLAN_EPOCHS);
        printf("%s\t%zu\t%d\t%.4f\t%.6f\t%.6f\n", op_name(cases[k].op), cases[k].bytes,
               result[k].samples, fabs(rule / many - 1), result[k].rule_sec, result[k].fixed_sec);
    }
}

static int run(struct world *w, struct sampler *s, struct err *err)
{
    if (w->size != 2)
        return err_usage(err, "%d ranks where 2 are needed", w->size);
    if (w->enter(w, s->group.members, 2, 0, &s->group.comm, err) < 0 ||
        transport_mpi.open(&s->ctx, &s->group, BYTES_MAX, err) < 0)
        return -1;
    for (int epoch = 0; epoch < PLAN_EPOCHS; epoch++)
        for (int k = 0; k < CASES; k++)
            if (measure_case(s, k, epoch, err) < 0)
                return -1;
    if (w->rank == 0)
        print_results();
    return 0;
}

int main(int argc, char **argv)
{
    static const int members[2] = {0, 1};
    struct world w;
    struct sampler s = {.group = {.members = members, .size = 2}};
    struct err err = {0, ""};
    int rc;

    MPI_Init(&argc, &argv);
    rc = world_mpi_open(&w, &err);
    if (rc == 0) {
        s.group.self = w.rank;
        s.world = &w;
        s.transport = transport_find("mpi");
        rc = run(&w, &s, &err);
    }
    if (rc < 0) {
        fprintf(stderr, "stop_rule: %s\n", err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    transport_mpi.close(s.ctx);
    w.leave(&w, &s.group.comm);
    world_mpi_close(&w);
    free(s.sec);
    free(s.slow);
    MPI_Finalize();
    return 0;
}
