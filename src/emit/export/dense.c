/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/export/dense.h"

#include <endian.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/convert.h"
#include "base/log.h"
#include "emit/export/nodes.h"
#include "emit/text/quote.h"

/* A job of writing: nodes chosen, numbers ready. */
struct dense {
    struct nodes nodes;
    struct quote q;
    struct progress progress;
};

static int open_dense(struct dense *d, const struct matrix *m, const struct export_ask *ask,
                      const struct nodes_limit *limit, enum quantity quantity, struct err *err)
{
    memset(d, 0, sizeof(*d));
    if (nodes_choose(&d->nodes, &m->topo, ask->endpoints, ask->hosts_per_rack, ':', limit, err) < 0)
        return -1;
    quote_init(&d->q, m, quantity, ask->bytes);
    if (d->nodes.count > 4096)
        progress_start(&d->progress, d->nodes.count);
    return 0;
}

static void close_dense(struct dense *d)
{
    if (d->progress.live)
        progress_end(&d->progress);
    quote_free(&d->q);
    nodes_free(&d->nodes);
}

static double number(struct dense *d, int row, int column)
{
    if (column == 0 && d->progress.live)
        progress_show(&d->progress, row, "rows");
    return quote_pair(&d->q, d->nodes.id[row], d->nodes.id[column]);
}

static void put_names(FILE *second, const struct nodes *n)
{
    for (int i = 0; second && i < n->count; i++)
        fprintf(second, "%s\n", n->name[i]);
}

/* --- Matrix Market --- */

/* How many entries there are, and whether all can be written. */
static int count_entries(struct dense *d, long *entries, struct err *err)
{
    const struct nodes *n = &d->nodes;

    *entries = 0;
    for (int i = 0; i < n->count; i++)
        for (int k = 0; k < n->count; k++) {
            double v = i == k ? 0 : number(d, i, k);
            if (quote_known(&d->q, v, n->id[i], n->id[k], err) < 0)
                return -1;
            if (isinf(v))
                return err_data(err,
                                "%s does not reach %s: the file cannot hold for ever; "
                                "--quantity bandwidth can",
                                n->name[i], n->name[k]);
            *entries += v > 0;
        }
    return 0;
}

int dense_matrix_market(FILE *out, FILE *second, const struct matrix *m,
                        const struct export_ask *ask, struct err *err)
{
    const struct nodes_limit limit = {"matrix-market", 2, DENSE_TEXT_MAX, 24};
    enum quantity quantity = quantity_find(ask->quantity, QUANTITY_BANDWIDTH);
    struct dense d;
    long entries = 0;
    int rc = open_dense(&d, m, ask, &limit, quantity, err);

    if (rc == 0)
        rc = count_entries(&d, &entries, err);
    if (rc == 0) {
        fprintf(out,
                "%%%%MatrixMarket matrix coordinate real general\n"
                "%% %s in %s of messages of %.0f bytes, row to column; railgauge %s\n",
                quantity_name[quantity], quantity_unit[quantity], d.q.bytes, RG_VERSION);
        for (int i = 0; i < d.nodes.count; i++)
            fprintf(out, "%% %d %s\n", i + 1, d.nodes.name[i]);
        fprintf(out, "%d %d %ld\n", d.nodes.count, d.nodes.count, entries);
        for (int i = 0; i < d.nodes.count; i++)
            for (int k = 0; k < d.nodes.count; k++) {
                double v = number(&d, i, k);
                if (i != k && v > 0)
                    fprintf(out, "%d %d %.9g\n", i + 1, k + 1, v);
            }
        put_names(second, &d.nodes);
    }
    close_dense(&d);
    return rc;
}

/* --- NumPy --- */

/* Magic, version, length, dictionary: together a multiple of 64 bytes, ending in a new line. */
static void put_npy_head(FILE *out, int n)
{
    char text[128];
    int used = snprintf(text, sizeof(text),
                        "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }", n, n);
    int padded = 128 - 10;

    fwrite("\x93NUMPY\x01\x00", 1, 8, out);
    fputc(padded & 0xff, out);
    fputc(padded >> 8, out);
    fprintf(out, "%s%*s\n", text, padded - used - 1, "");
}

static void put_double(FILE *out, double v)
{
    union {
        double d;
        uint64_t u;
    } x = {v};

    x.u = htole64(x.u);
    fwrite(&x.u, sizeof(x.u), 1, out);
}

int dense_npy(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
              struct err *err)
{
    const struct nodes_limit limit = {"npy", 1, DENSE_NPY_MAX, sizeof(double)};
    struct dense d;
    int rc = open_dense(&d, m, ask, &limit, quantity_find(ask->quantity, QUANTITY_BANDWIDTH), err);

    if (rc == 0) {
        put_npy_head(out, d.nodes.count);
        for (int i = 0; i < d.nodes.count && !ferror(out); i++)
            for (int k = 0; k < d.nodes.count; k++)
                put_double(out, number(&d, i, k));
        put_names(second, &d.nodes);
    }
    close_dense(&d);
    return rc;
}

/* --- a table --- */

int dense_tsv(FILE *out, FILE *second, const struct matrix *m, const struct export_ask *ask,
              struct err *err)
{
    const struct nodes_limit limit = {"tsv", 2, DENSE_TEXT_MAX, 48};
    struct dense d;
    int rc = open_dense(&d, m, ask, &limit, QUANTITY_TIME, err);

    (void)second;
    for (int i = 0; i < d.nodes.count && rc == 0; i++)
        if (d.nodes.name[i][0] == '#' || d.nodes.name[i][0] == '"')
            rc = err_data(err, "a line that begins with %c means something else: %s",
                          d.nodes.name[i][0], d.nodes.name[i]);
    if (rc == 0)
        fputs("src\tdst\top\tbytes\tus\tGB/s\n", out);
    for (int i = 0; rc == 0 && i < d.nodes.count && !ferror(out); i++)
        for (int k = 0; k < d.nodes.count; k++) {
            double sec = number(&d, i, k);
            if (i != k)
                fprintf(out, "%s\t%s\tpair\t%.0f\t%.9g\t%.9g\n", d.nodes.name[i], d.nodes.name[k],
                        d.q.bytes, convert_out(CONVERT_TABLE_TIME, sec),
                        convert_out(CONVERT_TABLE_RATE, d.q.bytes / sec));
        }
    close_dense(&d);
    return rc;
}
