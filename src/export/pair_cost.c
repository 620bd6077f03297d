/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/pair_cost.h"

#include <endian.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "export/export_impl.h"

const char *const quantity_name[QUANTITY_COUNT] = {NULL, "bandwidth", "latency", "time"};

/* Endpoints by part, for the levels that exceptions name. */
struct members {
    const struct matrix *m;
    struct lists of[LEVEL_COUNT];
};

static const struct lists *members_of(struct members *w, int level)
{
    const struct topo *t = &w->m->topo;

    if (!w->of[level].start) {
        int *at = mem_ints(t->endpoints, 0);
        for (int i = 0; i < t->endpoints; i++)
            at[i] = topo_at(t, i, (enum level)level);
        lists_make(&w->of[level], at, NULL, t->endpoints,
                   level == LEVEL_HOST ? t->hosts : t->group[level].count);
        free(at);
    }
    return &w->of[level];
}

/* Exceptions by endpoint, each list ascending.  Linear in endpoints and members, because asking every
 * endpoint about every exception takes minutes for thousands of exceptions. */
static void list_odd(struct lists *odd, const struct matrix *m)
{
    struct members w = {.m = m};
    int *key = NULL, *which = NULL, keys = 0, n = 0;

    for (int i = 0; i < m->exceptions; i++) {
        const struct exception *e = &m->exception[i];
        const int level = part_level[e->part], part[] = {e->a, e->b};
        for (int k = 0; k < 2; k++) {
            if (part[k] < 0 || (k && part[k] == e->a))
                continue;
            const struct lists *l = level < 0 ? NULL : members_of(&w, level);
            for (int x = l ? l->start[part[k]] : 0, end = l ? l->start[part[k] + 1] : 1; x < end;
                 x++) {
                MEM_PUSH(key, keys) = l ? l->at[x] : part[k];
                MEM_PUSH(which, n) = i;
            }
        }
    }
    lists_make(odd, key, which, n, m->topo.endpoints);
    for (int l = 0; l < LEVEL_COUNT; l++)
        lists_free(&w.of[l]);
    free(key);
    free(which);
}

void pair_cost_init(struct pair_cost *q, const struct matrix *m, enum quantity quantity,
                    double bytes)
{
    *q = (struct pair_cost){.m = m, .quantity = quantity};
    q->bytes = quantity == QUANTITY_LATENCY ? 1 : bytes > 0 ? bytes : PAIR_COST_BYTES;
    for (int t = 0; t < m->tiers; t++)
        q->sec[t] = matrix_tier_time(&m->tier[t], q->bytes, 1);
    list_odd(&q->odd, m);
}

void pair_cost_free(struct pair_cost *q)
{
    lists_free(&q->odd);
}

static double seconds(const struct pair_cost *q, int src, int dst)
{
    const struct matrix *m = q->m;
    double factor = 1, add = 0;

    if (src == dst)
        return 0;
    int tier = topo_tier(&m->topo, src, dst), ends[] = {src, dst};
    if (pair_cost_plain(q, src) && pair_cost_plain(q, dst))
        return q->sec[tier];
    for (int k = 0; k < 2; k++)
        for (int i = q->odd.start[ends[k]]; i < q->odd.start[ends[k] + 1]; i++) {
            const struct exception *e = &m->exception[q->odd.at[i]];
            if (matrix_crosses(m, e, src, dst, tier)) {
                factor = fmin(factor, e->factor);
                add = fmax(add, e->alpha_add);
            }
        }
    return (factor < 1 ? matrix_tier_time(&m->tier[tier], q->bytes, factor) : q->sec[tier]) + add;
}

double pair_cost_of(const struct pair_cost *q, int src, int dst)
{
    double sec = seconds(q, src, dst);

    if (q->quantity != QUANTITY_BANDWIDTH)
        return sec;
    return src == dst ? NAN : q->bytes / sec;
}

int pair_cost_known(const struct pair_cost *q, double value, int src, int dst, struct err *err)
{
    const struct topo *t = &q->m->topo;
    const struct endpoint *a = &t->endpoint[src], *b = &t->endpoint[dst];

    if (!isnan(value))
        return 0;
    int tier = topo_tier(t, src, dst);
    return err_data(err, "%s from %s:%d to %s:%d is not known: tier %s was not measured",
                    quantity_name[q->quantity], t->host[a->place.at[LEVEL_HOST]].name, a->local,
                    t->host[b->place.at[LEVEL_HOST]].name, b->local, t->tier[tier].name);
}

int pair_cost_line(struct pair_line *l, const struct matrix *m, int tier, double bytes,
                   struct err *err)
{
    const double small = 8, large = bytes > small ? bytes : PAIR_COST_BYTES;
    double t = matrix_tier_time(&m->tier[tier], small, 1);

    l->Bps = (large - small) / (matrix_tier_time(&m->tier[tier], large, 1) - t);
    l->alpha = fmax(0, t - small / l->Bps);
    if (!(l->alpha >= 0) || !(l->Bps > 0) || isinf(l->Bps))
        return err_data(err, "tier %s has no latency or no bandwidth: was it measured?",
                        m->tier[tier].rule.name);
    return 0;
}

/* --- formats with every pair ---
 *
 * The number of every pair in the formats of numeric tools: Matrix Market, NumPy, a long table.
 *
 * Rows are sources, columns destinations, in rank order.  Units are SI (bytes/s, s); the table has
 * us and GB/s, given in its header.  Without --bytes messages are 64 MiB.  The numbers are those of
 * `railgauge cost`: bandwidth = bytes / time.  A dead pair has time inf and bandwidth 0; an unknown
 * pair is nan, which Matrix Market refuses. */

/* Largest files: 8 GiB for npy, some GiB of text for the others. */
enum { DENSE_NPY_MAX = 32768, DENSE_TEXT_MAX = 8192 };

/* State of a writer: chosen nodes and their numbers. */
struct dense {
    struct export_nodes nodes;
    struct pair_cost q;
    struct progress progress;
};

static int open_dense(struct dense *d, const struct export_run *e, const struct export_limit *limit,
                      enum quantity quantity, struct err *err)
{
    memset(d, 0, sizeof(*d));
    if (export_nodes_choose(&d->nodes, e, limit, err) < 0)
        return -1;
    pair_cost_init(&d->q, e->m, quantity, e->ask->bytes);
    if (d->nodes.count > 4096)
        progress_start(&d->progress, d->nodes.count);
    return 0;
}

static void close_dense(struct dense *d)
{
    if (d->progress.live)
        progress_end(&d->progress);
    pair_cost_free(&d->q);
    export_nodes_free(&d->nodes);
}

static double number(struct dense *d, int row, int column)
{
    if (column == 0 && d->progress.live)
        progress_show(&d->progress, row, "rows");
    return pair_cost_of(&d->q, d->nodes.id[row], d->nodes.id[column]);
}

/* --- Matrix Market --- */

/* Count the entries; fails if one cannot be written. */
static int count_entries(struct dense *d, long *entries, struct err *err)
{
    const struct export_nodes *n = &d->nodes;

    *entries = 0;
    for (int i = 0; i < n->count; i++)
        for (int k = 0; k < n->count; k++) {
            double v = i == k ? 0 : number(d, i, k);
            if (pair_cost_known(&d->q, v, n->id[i], n->id[k], err) < 0)
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

static const char *const quantity_unit[QUANTITY_COUNT] = {NULL, "bytes/s", "s", "s"};

/* %%MatrixMarket matrix coordinate real general (math.nist.gov/MatrixMarket/formats.html): pairs of
 * bandwidth 0 and the diagonal are left out; names are in comments.  EXIT_DATA: unknown pairs, and
 * dead ones unless bandwidth is requested. */
int dense_matrix_market_write(const struct export_run *e, struct err *err)
{
    const struct export_limit limit = {"matrix-market", 2, DENSE_TEXT_MAX, 24, ':'};
    enum quantity quantity = export_quantity(e, QUANTITY_BANDWIDTH);
    struct dense d;
    long entries = 0;
    int rc = open_dense(&d, e, &limit, quantity, err);

    if (rc == 0)
        rc = count_entries(&d, &entries, err);
    if (rc == 0) {
        fprintf(e->out,
                "%%%%MatrixMarket matrix coordinate real general\n"
                "%% %s in %s of messages of %.0f bytes, row to column; railgauge %s\n",
                quantity_name[quantity], quantity_unit[quantity], d.q.bytes, RG_VERSION);
        for (int i = 0; i < d.nodes.count; i++)
            fprintf(e->out, "%% %d %s\n", i + 1, d.nodes.name[i]);
        fprintf(e->out, "%d %d %ld\n", d.nodes.count, d.nodes.count, entries);
        for (int i = 0; i < d.nodes.count; i++)
            for (int k = 0; k < d.nodes.count; k++) {
                double v = number(&d, i, k);
                if (i != k && v > 0)
                    fprintf(e->out, "%d %d %.9g\n", i + 1, k + 1, v);
            }
        export_nodes_put(e, &d.nodes);
    }
    close_dense(&d);
    return rc;
}

/* --- NumPy --- */

/* Magic, version, length, dictionary: together a multiple of 64 bytes, ending with a newline. */
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

/* NumPy .npy version 1.0 (numpy/lib/format.py), '<f8', C order.  Diagonal: 0 s, bandwidth nan. */
int dense_npy_write(const struct export_run *e, struct err *err)
{
    const struct export_limit limit = {"npy", 1, DENSE_NPY_MAX, sizeof(double), ':'};
    struct dense d;
    int rc = open_dense(&d, e, &limit, export_quantity(e, QUANTITY_BANDWIDTH), err);

    if (rc == 0 && isatty(fileno(e->out)))
        rc = err_usage(err, "npy is binary, and the output a terminal: -o FILE");
    if (rc == 0) {
        put_npy_head(e->out, d.nodes.count);
        for (int i = 0; i < d.nodes.count && !ferror(e->out); i++)
            for (int k = 0; k < d.nodes.count; k++)
                put_double(e->out, number(&d, i, k));
        export_nodes_put(e, &d.nodes);
    }
    close_dense(&d);
    return rc;
}

/* --- a table --- */

/* Columns src dst op bytes us GB/s; op is "pair", as in `railgauge cost --json`. */
int dense_tsv_write(const struct export_run *e, struct err *err)
{
    const struct export_limit limit = {"tsv", 2, DENSE_TEXT_MAX, 48, ':'};
    struct dense d;
    int rc = open_dense(&d, e, &limit, QUANTITY_TIME, err);

    for (int i = 0; i < d.nodes.count && rc == 0; i++)
        if (d.nodes.name[i][0] == '#' || d.nodes.name[i][0] == '"')
            rc = err_data(err, "a line that begins with %c means something else: %s",
                          d.nodes.name[i][0], d.nodes.name[i]);
    if (rc == 0)
        fputs("src\tdst\top\tbytes\tus\tGB/s\n", e->out);
    for (int i = 0; rc == 0 && i < d.nodes.count && !ferror(e->out); i++)
        for (int k = 0; k < d.nodes.count; k++) {
            double sec = number(&d, i, k);
            if (i != k)
                fprintf(e->out, "%s\t%s\tpair\t%.0f\t%.9g\t%.9g\n", d.nodes.name[i],
                        d.nodes.name[k], d.q.bytes, units_out(FOREIGN_TABLE_TIME, sec),
                        units_out(FOREIGN_TABLE_RATE, d.q.bytes / sec));
        }
    close_dense(&d);
    return rc;
}
