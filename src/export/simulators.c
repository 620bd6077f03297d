/* SPDX-License-Identifier: BSD-3-Clause */
/* simulators.c - the network in the formats of simulators of training and serving: ASTRA-sim,
 * Calculon, aiconfigurator. */
#include "export/export_impl.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "export/pair_cost.h"

/* --- ASTRA-sim ---
 *
 * Network file of ASTRA-sim 2's analytical back end (astra-network-analytical,
 * common/network-parser/NetworkParser.cpp): lists of topology, npus_count (> 1), bandwidth (> 0)
 * and latency (>= 0), one entry per dimension, the innermost first; an NPU is an endpoint.
 *
 * Every dimension is a Switch, where a message crosses two links, so latency is half of a pair's.
 * Its "GB/s" are 2^30 bytes/s (common/NetworkFunction.cpp).  Slow parts have no place in it. */

enum { LINKS = 2 }; /* of a Switch: up and down */

static void put_list(FILE *out, const char *key, const double *v, int n)
{
    fprintf(out, "%s: [", key);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%.9g", i ? ", " : "", v[i]);
    fputs("]\n", out);
}

static void put_head(FILE *out, const struct matrix *m, const struct uniform_tree *n, double bytes)
{
    fprintf(out, "# railgauge %s: %d endpoints; exact for messages of %.0f bytes\n", RG_VERSION,
            n->nodes.count, bytes);
    for (int d = 0; d < n->dims; d++)
        fprintf(out, "# dimension %d: %d in %s, tier %s\n", d, n->dim[d].size,
                n->dim[d].level < 0 ? "the machine" : level_name[n->dim[d].level],
                m->tier[n->dim[d].tier].rule.name);
    fputs("# bandwidth: units of 2^30 bytes/s; latency: ns of one of the two links of a switch\n"
          "topology: [",
          out);
    for (int d = 0; d < n->dims; d++)
        fprintf(out, "%sSwitch", d ? ", " : "");
    fputs("]\n", out);
}

/* Groups are always of endpoints here, whatever --endpoints says. */
static int endpoint_tree(struct uniform_tree *n, const struct export_run *e, const char *format,
                         bool hosts, struct err *err)
{
    struct export_ask ask = *e->ask;
    struct export_run each = *e;

    ask.endpoints = true;
    each.ask = &ask;
    return uniform_tree_make(n, &each, format, hosts, err);
}

/* EXIT_DATA: the machine is not a tree of equal groups, or a tier was not measured. */
int astra_write(const struct export_run *e, struct err *err)
{
    double count[TIER_MAX + 1], bandwidth[TIER_MAX + 1], latency[TIER_MAX + 1];
    struct uniform_tree n;
    struct pair_line l;
    int rc = endpoint_tree(&n, e, "astra-sim", false, err);

    for (int d = 0; d < n.dims && rc == 0; d++) {
        rc = pair_cost_line(&l, e->m, n.dim[d].tier, export_bytes(e), err);
        count[d] = n.dim[d].size;
        bandwidth[d] = units_out(FOREIGN_ASTRA_BANDWIDTH, l.Bps);
        latency[d] = units_out(FOREIGN_ASTRA_LATENCY, l.alpha / LINKS);
    }
    if (rc == 0) {
        put_head(e->out, e->m, &n, export_bytes(e));
        put_list(e->out, "npus_count", count, n.dims);
        put_list(e->out, "bandwidth", bandwidth, n.dims);
        put_list(e->out, "latency", latency, n.dims);
    }
    uniform_tree_free(&n);
    return rc;
}

/* --- Calculon ---
 *
 * The "networks" of a system file of Calculon (calculon-ai/calculon, calculon/network.py): one per
 * level of equal groups, the innermost first; a processor is an endpoint.  The other sections of a
 * system file (matrix, vector, mem1, mem2) are not about the network.
 *
 * Calculon's time is latency + S * scalar * (1 + offset / n) / (bandwidth * efficiency).  Bandwidth
 * is that of the data sheet if known, with the measured share as efficiency; else efficiency is 1.
 * Scalars give the matrix's time for S = bytes on the first group of each level, with offset -1 (a
 * ring passes on (n - 1) / n of S; its all_reduce has scalar 2).  processor_usage is 0, because it
 * is not measured.  Slow parts have no place in it: all numbers are of healthy groups. */

static const struct {
    const char *name;
    enum op op;
} calculon_op[] = {{"reduce_scatter", OP_REDUCE_SCATTER},
                   {"all_gather", OP_ALL_GATHER},
                   {"all_reduce", OP_ALL_REDUCE}};

struct calculon_net {
    const struct matrix *m; /* matrix without its exceptions */
    const struct uniform_tree *tree;
    double bytes;
};

/* Scalar of one collective among the members of dimension d. */
static int scalar(const struct calculon_net *t, int d, enum op op, const struct pair_line *l,
                  double *out, struct err *err)
{
    int n = t->tree->dim[d].size, stride = d ? uniform_tree_within(t->tree, d - 1) : 1;
    int *ids = mem_calloc((size_t)n, sizeof(*ids));
    struct cost c;

    for (int i = 0; i < n; i++)
        ids[i] = t->tree->nodes.id[t->tree->order[i * stride]];
    matrix_collective(t->m, op, ids, n, t->bytes, &c);
    free(ids);
    *out = (c.sec - l->alpha) * l->Bps / (t->bytes * (1 - 1.0 / n));
    if (!(*out > 0) || isinf(*out))
        return err_data(err, "%s of %d endpoints at tier %s has no time above its latency: %s",
                        op_name(op), n, t->m->tier[t->tree->dim[d].tier].rule.name, c.source);
    return 0;
}

static json_t *scalar_json(double v, bool collective)
{
    return json_pack("[f, o]", v, collective ? json_integer(-1) : json_null());
}

static int add_network(json_t *list, const struct calculon_net *t, int d, struct err *err)
{
    const struct tier *tier = &t->m->tier[t->tree->dim[d].tier];
    json_t *op = json_object();
    struct pair_line l;
    double v;
    int rc = pair_cost_line(&l, t->m, t->tree->dim[d].tier, t->bytes, err);

    json_object_set_new(op, "p2p", scalar_json(1, false));
    for (size_t i = 0; i < sizeof(calculon_op) / sizeof(*calculon_op) && rc == 0; i++) {
        rc = scalar(t, d, calculon_op[i].op, &l, &v, err);
        if (rc == 0)
            json_object_set_new(op, calculon_op[i].name, scalar_json(v, true));
    }
    if (rc < 0) {
        json_decref(op);
        return -1;
    }
    double sheet = tier->peak_Bps >= l.Bps ? tier->peak_Bps : l.Bps;
    json_array_append_new(list, json_pack("{s:f, s:f, s:i, s:f, s:o, s:b, s:f}", "bandwidth",
                                          units_out(FOREIGN_CALCULON_RATE, sheet), "efficiency",
                                          l.Bps / sheet, "size", uniform_tree_within(t->tree, d),
                                          "latency", units_out(FOREIGN_CALCULON_LATENCY, l.alpha),
                                          "ops", op, "must_be_filled", d < t->tree->dims - 1,
                                          "processor_usage", 0.0));
    return 0;
}

/* EXIT_DATA: the machine is not a tree of equal groups, or a number is not known. */
int calculon_write(const struct export_run *e, struct err *err)
{
    struct matrix healthy = *e->m; /* borrows all contents */
    struct uniform_tree tree;
    struct calculon_net t = {&healthy, &tree, export_bytes(e)};
    json_t *list = json_array();
    int rc = endpoint_tree(&tree, e, "calculon", false, err);

    healthy.exceptions = 0;
    for (int d = 0; d < tree.dims && rc == 0; d++)
        rc = add_network(list, &t, d, err);
    if (rc == 0) {
        json_t *root = json_pack("{s:O}", "networks", list);
        json_dumpf(root, e->out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        fputc('\n', e->out);
        json_decref(root);
    }
    json_decref(list);
    uniform_tree_free(&tree);
    return rc;
}

/* --- aiconfigurator ---
 *
 * Network data of NVIDIA's aiconfigurator (ai-dynamo/aiconfigurator; aisimulate reads the same
 * keys): the "node" section of systems/NAME.yaml in bytes/s and s, and as second file nccl_perf.txt
 * with a row for each collective of which the matrix has a curve.
 *
 * num_gpus_per_rack and inter_rack_* are written if the machine has a level between host and
 * whole.  nccl_perf: message_size counts elements of half (2 bytes) of op.h's S; latency is in ms.
 * If several shapes have the same number of GPUs, the one in the fewest domains is used, because
 * the file has no shapes.  The "gpu" section is from the data sheet if a preset is known; "misc"
 * and data_dir are left to the user.  Slow parts have no place in it. */

/* aiconfigurator's names of operations; collectors write these four. */
static const struct {
    enum op op;
    const char *name;
} aic_op[] = {{OP_ALL_GATHER, "all_gather"},
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

static int put_system(const struct export_run *e, struct err *err)
{
    struct uniform_tree n;
    struct fabric f = {.name = NULL};
    int rc = endpoint_tree(&n, e, "aiconfigurator", true, err);

    if (rc == 0 && n.dim[0].level != LEVEL_HOST)
        rc = err_data(err, "aiconfigurator describes hosts of several GPUs: here each has one");
    if (rc == 0)
        rc = matrix_preset(&f, e->m, NULL, err);
    if (rc == 0) {
        fprintf(e->out,
                "# railgauge %s: the network, for messages of %.0f bytes; data_dir, pcie_bw and "
                "misc are to be added\n",
                RG_VERSION, export_bytes(e));
        if (f.name)
            put_gpu(e->out, &f);
        rc = put_node(e->out, e->m, &n, export_bytes(e), err);
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

/* True if an earlier curve has the same op and ranks. */
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
    for (size_t k = 0; k < sizeof(aic_op) / sizeof(*aic_op); k++)
        for (int i = 0; i < m->collectives; i++)
            if (m->collective[i].op == aic_op[k].op && !hidden(m, i))
                rows += put_curve(out, m, &m->collective[i], aic_op[k].name);
    return rows ? 0
                : err_data(err, "the matrix has no curve of all_gather, all_to_all, reduce_scatter "
                                "or all_reduce");
}

/* EXIT_DATA: hosts with one endpoint, not a tree of equal groups, tiers that were not measured;
 * with a second file: no collective curve. */
int aiconfigurator_write(const struct export_run *e, struct err *err)
{
    if (put_system(e, err) < 0)
        return -1;
    return e->second ? put_perf(e->second, e->m, err) : 0;
}
