/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/calculon.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/convert.h"
#include "base/mem.h"
#include "emit/export/nest.h"
#include "emit/text/quote.h"

static const struct {
    const char *name;
    enum op op;
} ops[] = {{"reduce_scatter", OP_REDUCE_SCATTER},
           {"all_gather", OP_ALL_GATHER},
           {"all_reduce", OP_ALL_REDUCE}};

struct net {
    const struct matrix *m; /* without its exceptions */
    const struct nodes *nodes;
    const struct nest *nest;
    double bytes;
};

/* scalar of one collective among the members of dimension d. */
static int scalar(const struct net *t, int d, enum op op, const struct line *l, double *out,
                  struct err *err)
{
    int n = t->nest->dim[d].size, stride = d ? nest_within(t->nest, d - 1) : 1;
    int *ids = mem_calloc((size_t)n, sizeof(*ids));
    struct cost c;

    for (int i = 0; i < n; i++)
        ids[i] = t->nodes->id[t->nest->order[i * stride]];
    matrix_collective(t->m, op, ids, n, t->bytes, &c);
    free(ids);
    *out = (c.sec - l->alpha) * l->Bps / (t->bytes * (1 - 1.0 / n));
    if (!(*out > 0) || isinf(*out))
        return err_data(err, "%s of %d endpoints at tier %s has no time above its latency: %s",
                        op_name(op), n, t->m->tier[t->nest->dim[d].tier].rule.name, c.source);
    return 0;
}

static json_t *scalar_json(double v, bool collective)
{
    return json_pack("[f, o]", v, collective ? json_integer(-1) : json_null());
}

static int add_network(json_t *list, const struct net *t, int d, struct err *err)
{
    const struct tier *tier = &t->m->tier[t->nest->dim[d].tier];
    json_t *op = json_object();
    struct line l;
    double v;
    int rc = quote_line(&l, t->m, t->nest->dim[d].tier, t->bytes, err);

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
                                          convert_out(CONVERT_CALCULON_RATE, sheet), "efficiency",
                                          l.Bps / sheet, "size", nest_within(t->nest, d), "latency",
                                          convert_out(CONVERT_CALCULON_LATENCY, l.alpha), "ops", op,
                                          "must_be_filled", d < t->nest->dims - 1,
                                          "processor_usage", 0.0));
    return 0;
}

int calculon_write(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
                   struct err *err)
{
    const struct nodes_limit limit = {"calculon", 2, 1 << 24, 0};
    struct matrix healthy = *m; /* borrows all from m */
    struct nodes nodes;
    struct nest nest = {.dims = 0};
    struct net t = {&healthy, &nodes, &nest, ask->bytes > 0 ? ask->bytes : QUOTE_BYTES};
    json_t *list = json_array();
    int rc = nodes_choose(&nodes, &m->topo, true, ask->hosts_per_rack, ':', &limit, err);

    (void)second;
    healthy.exceptions = 0;
    if (rc == 0)
        rc = nest_make(&nest, m, &nodes, false, err);
    for (int d = 0; d < nest.dims && rc == 0; d++)
        rc = add_network(list, &t, d, err);
    if (rc == 0) {
        json_t *root = json_pack("{s:O}", "networks", list);
        json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        fputc('\n', out);
        json_decref(root);
    }
    json_decref(list);
    nest_free(&nest);
    nodes_free(&nodes);
    return rc;
}
