/* SPDX-License-Identifier: BSD-3-Clause */
/* aiconfigurator.c - what NVIDIA's aiconfigurator (ai-dynamo/aiconfigurator; aisimulate reads the
 * same keys) knows of a network: the "node" section of systems/NAME.yaml in bytes/s and s, and as
 * the second file nccl_perf.txt, one row for each collective that the matrix has a curve of.
 *
 * num_gpus_per_rack and inter_rack_* are written where the machine has a level between host and
 * whole.  nccl_perf: message_size counts elements of half (2 bytes) of the size that op.h calls S,
 * latency is in ms; of several shapes with as many GPUs the one in the fewest domains counts, for
 * the file knows no shapes.  The "gpu" section is the data sheet's, where a preset is known; "misc"
 * and data_dir are left to the user.  No place for slow parts. */
#include "emit/export/export_impl.h"

#include <string.h>

#include "base/units.h"
#include "emit/export/pair_cost.h"

/* Its names of our operations; collectors write these four. */
static const struct {
    enum op op;
    const char *name;
} ops[] = {{OP_ALL_GATHER, "all_gather"},
           {OP_ALL_TO_ALL, "alltoall"},
           {OP_REDUCE_SCATTER, "reduce_scatter"},
           {OP_ALL_REDUCE, "all_reduce"}};

/* --- systems/NAME.yaml --- */

static int put_line(FILE *out, const struct matrix *m, int tier, double bytes, const char *rate,
                    const char *latency, struct err *err)
{
    struct pair_line l;

    if (pair_cost_line(&l, m, tier, bytes, err) < 0)
        return -1;
    fprintf(out, "  %s: %.0f  # bytes/s per GPU, one direction; tier %s\n", rate,
            units_out(FOREIGN_AIC_RATE, l.Bps), m->tier[tier].rule.name);
    if (latency)
        fprintf(out, "  %s: %.9f  # s\n", latency, units_out(FOREIGN_AIC_LATENCY, l.alpha));
    return 0;
}

/* dim 0 is the host, the next one the rack, the last one the machine. */
static int put_node(FILE *out, const struct matrix *m, const struct uniform_tree *n, double bytes,
                    struct err *err)
{
    int last = n->dims - 1;

    fprintf(out, "node:\n  num_gpus_per_node: %d\n", n->dim[0].size);
    if (n->dims > 2)
        fprintf(out, "  num_gpus_per_rack: %d\n", uniform_tree_within(n, 1));
    if (put_line(out, m, n->dim[0].tier, bytes, "intra_node_bw",
                 n->dims == 1 ? "p2p_latency" : NULL, err) < 0)
        return -1;
    if (n->dims > 1 &&
        put_line(out, m, n->dim[1].tier, bytes, "inter_node_bw", "p2p_latency", err) < 0)
        return -1;
    if (n->dims > 2 &&
        put_line(out, m, n->dim[last].tier, bytes, "inter_rack_bw", "inter_rack_latency", err) < 0)
        return -1;
    return 0;
}

static void put_gpu(FILE *out, const struct fabric *f)
{
    static const struct {
        const char *dtype, *key;
    } peak[] = {{"bf16", "bfloat16_tc_flops"}, {"fp8", "fp8_tc_flops"}, {"nvfp4", "fp4_tc_flops"}};

    fprintf(out, "gpu:  # data sheet, preset %s\n", f->name);
    if (f->gpu.hbm_Bps.value > 0)
        fprintf(out, "  mem_bw: %.0f\n", f->gpu.hbm_Bps.value);
    if (f->gpu.memory_bytes.value > 0)
        fprintf(out, "  mem_capacity: %.0f\n", f->gpu.memory_bytes.value);
    for (size_t k = 0; k < sizeof(peak) / sizeof(*peak); k++)
        for (int i = 0; i < f->gpu.peaks; i++)
            if (!strcmp(f->gpu.peak[i].dtype, peak[k].dtype))
                fprintf(out, "  %s: %.0f\n", peak[k].key, f->gpu.peak[i].flops.value);
}

static int put_system(FILE *out, const struct matrix *m, const struct export_ask *ask,
                      struct err *err)
{
    double bytes = export_bytes(ask);
    struct uniform_tree n;
    struct fabric f = {.name = NULL};
    int rc = uniform_tree_make(&n, m, ask, "aiconfigurator", true, true, err);

    if (rc == 0 && n.dim[0].level != LEVEL_HOST)
        rc = err_data(err, "aiconfigurator describes hosts of several GPUs: here each has one");
    if (rc == 0)
        rc = matrix_preset(&f, m, NULL, err);
    if (rc == 0) {
        fprintf(out,
                "# railgauge %s: the network, for messages of %.0f bytes; data_dir, pcie_bw and "
                "misc are to be added\n",
                RG_VERSION, bytes);
        if (f.name)
            put_gpu(out, &f);
        rc = put_node(out, m, &n, bytes, err);
    }
    if (f.name)
        fabric_free(&f);
    uniform_tree_free(&n);
    return rc;
}

/* --- nccl_perf.txt --- */

static void put_csv(FILE *out, const char *text)
{
    bool quote = strpbrk(text, ",\"") != NULL;

    if (quote)
        fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    if (quote)
        fputc('"', out);
}

/* Is there a curve of the same op and ranks that comes before c? */
static bool hidden(const struct matrix *m, int c)
{
    const struct collective *x = &m->collective[c];

    for (int i = 0; i < m->collectives; i++) {
        const struct collective *y = &m->collective[i];
        if (i == c || y->op != x->op || y->shape.ranks != x->shape.ranks)
            continue;
        if (y->shape.domains < x->shape.domains || (y->shape.domains == x->shape.domains && i < c))
            return true;
    }
    return false;
}

static int put_curve(FILE *out, const struct matrix *m, const struct collective *c,
                     const char *name)
{
    const char *device = m->topo.endpoints ? m->topo.endpoint[0].model : "";
    int rows = 0;

    for (int i = 0; i < c->curve.points; i++) {
        const struct curve_point *p = &c->curve.point[i];
        double elements = units_out(FOREIGN_AIC_MESSAGE, p->bytes);
        if (elements < 1)
            continue;
        fprintf(out, "railgauge,%s,", RG_VERSION);
        put_csv(out, *device ? device : "unknown");
        fprintf(out, ",%s,", name);
        put_csv(out, m->transport ? m->transport : "unknown");
        fprintf(out, ",half,%d,%.0f,%.9g\n", c->shape.ranks, elements,
                units_out(FOREIGN_AIC_PERF, p->sec));
        rows++;
    }
    return rows;
}

static int put_perf(FILE *out, const struct matrix *m, struct err *err)
{
    int rows = 0;

    fputs("framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,"
          "latency\n",
          out);
    for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++)
        for (int i = 0; i < m->collectives; i++)
            if (m->collective[i].op == ops[k].op && !hidden(m, i))
                rows += put_curve(out, m, &m->collective[i], ops[k].name);
    return rows ? 0
                : err_data(err, "the matrix has no curve of all_gather, all_to_all, reduce_scatter "
                                "or all_reduce");
}

/* EXIT_DATA: hosts with one endpoint, no tree of equal groups, tiers that were not measured; with a
 * second file: no collective curve. */
int aiconfigurator_write(FILE *out, FILE *second, const struct matrix *m,
                         const struct export_ask *ask, struct err *err)
{
    if (put_system(out, m, ask, err) < 0)
        return -1;
    return second ? put_perf(second, m, err) : 0;
}
