/* SPDX-License-Identifier: BSD-3-Clause */
/* calculon.c - the "networks" of a system file of Calculon (calculon-ai/calculon,
 * calculon/network.py): one per level of equal groups, the innermost first; a processor is an
 * endpoint.  The rest of a system file (matrix, vector, mem1, mem2) is no matter of a network.
 *
 * Calculon's time is latency + S * scalar * (1 + offset / n) / (bandwidth * efficiency).  Bandwidth
 * is the data sheet's where one is known and efficiency what was measured of it, else efficiency is
 * 1.  Scalars are those that give the matrix's time for S = bytes on the first group of each level,
 * with offset -1 (a ring passes on (n - 1) / n of S; its all_reduce has scalar 2).
 * processor_usage is written 0: it is not measured.  It has no place for slow parts: all
 * numbers are of healthy groups. */
#include "emit/export/export_impl.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/units.h"
#include "emit/export/pair_cost.h"

static const struct {
    const char *name;
    enum op op;
} ops[] = {{"reduce_scatter", OP_REDUCE_SCATTER},
           {"all_gather", OP_ALL_GATHER},
           {"all_reduce", OP_ALL_REDUCE}};

struct calculon_net {
    const struct matrix *m; /* without its exceptions */
    const struct uniform_tree *tree;
    double bytes;
};

/* scalar of one collective among the members of dimension d. */
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
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops) && rc == 0; i++) {
        rc = scalar(t, d, ops[i].op, &l, &v, err);
        if (rc == 0)
            json_object_set_new(op, ops[i].name, scalar_json(v, true));
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

/* EXIT_DATA: the machine is no tree of equal groups, or a number is not known. */
int calculon_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                   struct err *err)
{
    struct matrix healthy = *m; /* borrows all from m */
    struct uniform_tree tree;
    struct calculon_net t = {&healthy, &tree, export_bytes(ask)};
    json_t *list = json_array();
    int rc = uniform_tree_make(&tree, m, ask, "calculon", true, false, err);

    (void)second;
    healthy.exceptions = 0;
    for (int d = 0; d < tree.dims && rc == 0; d++)
        rc = add_network(list, &t, d, err);
    if (rc == 0) {
        json_t *root = json_pack("{s:O}", "networks", list);
        json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        fputc('\n', out);
        json_decref(root);
    }
    json_decref(list);
    uniform_tree_free(&tree);
    return rc;
}
