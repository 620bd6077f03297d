/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/table.h"
#include "base/units.h"
#include "export/export_impl.h"
#include "report/text/nccl_tests.h"

/* Common data of the campaign's files. */
struct origin {
    struct topo topo;
    bool placed; /* topo is loaded */
};

static const char *tuner_algo(int combo)
{
    return nccl_algo_name[combo / TUNER_PROTOS];
}

static const char *tuner_proto(int combo)
{
    return nccl_proto_name[combo % TUNER_PROTOS];
}

static int tuner_best(const struct tuner_row *r)
{
    int best = -1;

    for (int i = 0; i < TUNER_COMBOS; i++)
        if (!isnan(r->sec[i]) && (best < 0 || r->sec[i] < r->sec[best]))
            best = i;
    return best;
}

/* --- reading --- */

static int nodes_of(const struct origin *s, const struct plan *plan, const struct point *p)
{
    struct shape shape;
    int i = 0;

    while (i < plan->rounds && plan->round[i].id != p->round)
        i++;
    if (!s->placed || i == plan->rounds || p->group >= plan->round[i].groups)
        return -1;
    const struct plan_group *g = &plan->round[i].group[p->group];
    shape_of(&shape, &s->topo, g->members, g->size);
    return shape.nodes;
}

static struct tuner_row *row_for(struct tuner *t, enum op op, int ranks, int nodes, size_t bytes)
{
    for (int i = 0; i < t->rows; i++) {
        struct tuner_row *r = &t->row[i];
        if (r->op == op && r->ranks == ranks && r->nodes == nodes && r->bytes == bytes)
            return r;
    }
    struct tuner_row fresh = {op, ranks, nodes, bytes, {0}, NAN};
    for (int i = 0; i < TUNER_COMBOS; i++)
        fresh.sec[i] = NAN;
    MEM_PUSH(t->row, t->rows) = fresh;
    return &t->row[t->rows - 1];
}

static bool same_refusal(const struct tuner_refusal *a, const struct tuner_refusal *b)
{
    return a->op == b->op && a->ranks == b->ranks && a->nodes == b->nodes;
}

static void note_refusal(struct tuner *t, const struct point *p, int nodes, int combo)
{
    struct tuner_refusal r = {p->op, p->ranks, nodes, combo, ""};

    for (int i = 0; i < t->refusals; i++)
        if (t->refusal[i].combo == combo && same_refusal(&t->refusal[i], &r))
            return;
    snprintf(r.why, sizeof(r.why), "%s", point_words(p));
    MEM_PUSH(t->refusal, t->refusals) = r;
}

/* If there are several groups of one shape, the slowest counts.  combo -1: NCCL's choice. */
static void take(struct tuner *t, const struct origin *s, const struct plan *plan,
                 const struct points *points, int combo)
{
    struct epochs_point *series = NULL;
    int n = epochs_merge(&series, points);

    for (int i = 0; i < n; i++) {
        const struct point *p = series[i].first;
        int nodes = nodes_of(s, plan, p);
        if (!op_table[p->op].tuner)
            continue;
        if (isnan(series[i].sec)) {
            if (combo >= 0)
                note_refusal(t, p, nodes, combo);
            continue;
        }
        struct tuner_row *r = row_for(t, p->op, p->ranks, nodes, series[i].bytes);
        double *sec = combo < 0 ? &r->own : &r->sec[combo];
        *sec = isnan(*sec) || series[i].sec > *sec ? series[i].sec : *sec;
    }
    free(series);
}

/* Check that all files add the same type in the same way. */
static int same_kinds(struct tuner *t, const struct points *points, const char *path,
                      struct err *err)
{
    for (int i = 0; i < points->count; i++) {
        const struct point *p = &points->point[i];
        if (!t->kind[p->op].n && p->n)
            t->kind[p->op] = *p;
    }
    for (int op = 0; op < OP_COUNT; op++)
        if (t->kind[op].n && points_alike(points, &t->kind[op], err) < 0)
            return err_wrap(err, "%s", path);
    return 0;
}

/* Read a points file with its plan; a missing file is not an error. */
static int take_file(struct tuner *t, const struct origin *s, const char *path,
                     const char *plan_path, int combo, struct err *err)
{
    struct points points;
    struct plan plan = {NULL, 0};
    int rc;

    if (access(path, F_OK) != 0)
        return 0;
    if (points_load(&points, path, err) < 0)
        return -1;
    rc = plan_load(&plan, plan_path, points.endpoints, err);
    if (rc == 0 && s->placed && s->topo.endpoints != points.endpoints)
        rc = err_data(err, "%s has %d endpoints, but topology.json has %d", path, points.endpoints,
                      s->topo.endpoints);
    if (rc == 0)
        rc = same_kinds(t, &points, path, err);
    if (rc == 0)
        take(t, s, &plan, &points, combo);
    plan_free(&plan);
    points_free(&points);
    return rc;
}

static int by_row(const void *a, const void *b)
{
    const struct tuner_row *x = a, *y = b;

    return stats_order((double[]){x->op, x->ranks, x->nodes, (double)x->bytes},
                       (double[]){y->op, y->ranks, y->nodes, (double)y->bytes}, 4);
}

static int take_sweep(struct tuner *t, const struct origin *s, const char *dir, struct err *err)
{
    char *sweep = file_join(dir, "sweep"), *plan = file_join(sweep, "plan.tsv");
    int rc = access(plan, R_OK) == 0
                 ? 0
                 : err_noinput(err, "%s holds no sweep (railgauge run --sweep makes one)", dir);

    for (int i = 0; i < TUNER_COMBOS && rc == 0; i++) {
        char *name = mem_printf("%s-%s.tsv", tuner_algo(i), tuner_proto(i));
        char *path = file_join(sweep, name);
        rc = take_file(t, s, path, plan, i, err);
        free(path);
        free(name);
    }
    free(plan);
    free(sweep);
    return rc;
}

int tuner_load(struct tuner *t, const char *dir, struct err *err)
{
    char *topology = file_join(dir, "topology.json"), *plan = file_join(dir, "plan.tsv");
    char *points = file_join(dir, "points.tsv");
    struct origin s = {.placed = access(topology, F_OK) == 0};
    int rc = s.placed ? topo_load(&s.topo, topology, err) : 0;

    memset(t, 0, sizeof(*t));
    if (rc == 0)
        rc = take_sweep(t, &s, dir, err);
    if (rc == 0 && access(plan, F_OK) == 0) /* a plan from elsewhere: only the sweep has one here */
        rc = take_file(t, &s, points, plan, -1, err);
    if (rc == 0 && t->rows)
        qsort(t->row, (size_t)t->rows, sizeof(*t->row), by_row);
    if (rc < 0)
        tuner_free(t);
    if (s.placed)
        topo_free(&s.topo);
    free(points);
    free(plan);
    free(topology);
    return rc;
}

void tuner_free(struct tuner *t)
{
    free(t->row);
    free(t->refusal);
    memset(t, 0, sizeof(*t));
}

/* --- writing --- */

static bool same_shape(const struct tuner_row *a, const struct tuner_row *b)
{
    return a->op == b->op && a->ranks == b->ranks && a->nodes == b->nodes;
}

static char *group_text(char out[48], int ranks, int nodes)
{
    if (nodes > 0)
        snprintf(out, 48, "%d ranks, %d node%s", ranks, nodes, nodes == 1 ? "" : "s");
    else
        snprintf(out, 48, "%d ranks", ranks);
    return out;
}

static void print_row(struct table *table, const struct tuner_row *r, bool first)
{
    char group[48], next[64];
    int best = tuner_best(r), second = -1;

    for (int i = 0; i < TUNER_COMBOS; i++)
        if (i != best && !isnan(r->sec[i]) && (second < 0 || r->sec[i] < r->sec[second]))
            second = i;
    if (second >= 0)
        snprintf(next, sizeof(next), "%s %s %+.1f %%", tuner_algo(second), tuner_proto(second),
                 100 * (r->sec[second] / r->sec[best] - 1));
    table_add(table, op_name(r->op), r->ranks, r->nodes, first ? op_name(r->op) : "",
              first ? group_text(group, r->ranks, r->nodes) : "", (double)r->bytes,
              tuner_algo(best), tuner_proto(best), r->sec[best],
              (double)r->bytes * op_bus_factor(r->op, r->ranks) / r->sec[best],
              r->sec[best] / r->own - 1, second >= 0 ? next : NULL);
}

/* Print the refused combinations of each operation, with one of the reasons, because they differ
 * only in the names of rank, algorithm and protocol. */
static void print_refusals(FILE *out, const struct tuner *t)
{
    const struct tuner_refusal *r = t->refusal;
    char group[48];

    for (int i = 0; i < t->refusals; i++) {
        int k = 0, last = -1;
        while (k < i && !same_refusal(&r[k], &r[i]))
            k++;
        if (k < i)
            continue;
        fprintf(out, "%s%s on %s:", i ? "" : "\nrefused by NCCL:\n", op_name(r[i].op),
                group_text(group, r[i].ranks, r[i].nodes));
        for (k = i; k < t->refusals; k++) {
            int algo = r[k].combo / TUNER_PROTOS;
            if (!same_refusal(&r[k], &r[i]))
                continue;
            if (algo == last)
                fprintf(out, ", %s", tuner_proto(r[k].combo));
            else
                fprintf(out, "%s %s %s", last < 0 ? "" : ";", tuner_algo(r[k].combo),
                        tuner_proto(r[k].combo));
            last = algo;
        }
        fprintf(out, "\n  for instance %s\n", r[i].why);
    }
}

json_t *tuner_report(FILE *out, const struct tuner *t)
{
    static const struct table_column columns[] = {
        {"op", NULL, "text"},
        {"ranks", NULL, "count"},
        {"nodes", NULL, "count"},
        {NULL, "collective", "text"},
        {NULL, "group", "text"},
        {"bytes", "size", "bytes"},
        {"algorithm", "best", "text"},
        {"protocol", "", "text"},
        {"seconds", "time", "seconds"},
        {"busbw_Bps", "bus", "rate"},
        {"to_own_choice", "to NCCL's own", "100*%+.1f %%"},
        {"next", "next", "text"},
        {0}};
    struct table table;

    table_open(&table, columns);
    for (int i = 0; i < t->rows; i++)
        if (tuner_best(&t->row[i]) >= 0)
            print_row(&table, &t->row[i], i == 0 || !same_shape(&t->row[i], &t->row[i - 1]));
    if (!out)
        return table_rows(&table);
    table_print(out, &table, 0);
    table_free(&table);
    print_refusals(out, t);
    return NULL;
}

/* The plugin's words, in the order of nccl_algo_name and nccl_proto_name. */
static const char *const csv_algo[TUNER_ALGOS] = {
    "ring", "tree", "nvls", "nvls_tree", "pat", "collnet_direct", "collnet_chain"};
static const char *const csv_proto[TUNER_PROTOS] = {"ll", "ll128", "simple"};

/* Two ranges meet halfway (on the ladder's scale) between two measured sizes; the first begins at 0
 * and the last has no end. */
void tuner_csv(FILE *out, const struct tuner *t)
{
    char kind[POINT_KIND];
    size_t from = 0;

    fprintf(out, "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
                 "numPipeOps,regBuff\n");
    for (int op = 0; op < OP_COUNT; op++) /* the plugin's table has no column for it */
        if (t->kind[op].n && *point_kind_text(point_kind(&t->kind[op]), kind))
            fprintf(out, "# %s: %s\n",
                    op_table[op].tuner ? op_table[op].tuner : op_name((enum op)op), kind);
    for (int i = 0; i < t->rows; i++) {
        const struct tuner_row *r = &t->row[i];
        int best = tuner_best(r), k = i + 1;
        if (i == 0 || !same_shape(r, &t->row[i - 1]))
            from = 0;
        if (best < 0)
            continue;
        while (k < t->rows && same_shape(r, &t->row[k]) && tuner_best(&t->row[k]) < 0)
            k++;
        bool last = k == t->rows || !same_shape(r, &t->row[k]);
        size_t to = last ? UINT32_MAX : (size_t)sqrt((double)r->bytes * (double)t->row[k].bytes);
        if (last && r->bytes > to)
            to = SIZE_MAX;
        if (!last && tuner_best(&t->row[k]) == best)
            continue; /* merged with the next line */
        fprintf(out, "%s,%zu,%zu,%s,%s,-1,%d,%d,-1,-1\n", op_table[r->op].tuner, from, to,
                csv_algo[best / TUNER_PROTOS], csv_proto[best % TUNER_PROTOS], r->nodes, r->ranks);
        from = to + 1;
    }
}

/* Write every measured combination in the format of the plugin's scripts/optimize_config.py:
 *   collective,size_bytes,algorithm,protocol,channels,nodes,ranks,pipeOps,regBuff,cost_metric,
 *   bandwidth_gbps,latency_us
 * bandwidth is busbw in GB/s; cost_metric repeats the time in us (lower is better). */
static void put_records(FILE *out, const struct tuner *t)
{
    fprintf(out, "collective,size_bytes,algorithm,protocol,channels,nodes,ranks,pipeOps,regBuff,"
                 "cost_metric,bandwidth_gbps,latency_us\n");
    for (int i = 0; i < t->rows; i++)
        for (int c = 0; c < TUNER_COMBOS; c++) {
            const struct tuner_row *r = &t->row[i];
            double us = units_out(FOREIGN_TUNER_LATENCY, r->sec[c]);
            if (isnan(us))
                continue;
            fprintf(out, "%s,%zu,%s,%s,-1,%d,%d,-1,-1,%.9g,%.9g,%.9g\n", op_table[r->op].tuner,
                    r->bytes, csv_algo[c / TUNER_PROTOS], csv_proto[c % TUNER_PROTOS], r->nodes,
                    r->ranks, us,
                    units_out(FOREIGN_TUNER_BANDWIDTH,
                              (double)r->bytes * op_bus_factor(r->op, r->ranks) / r->sec[c]),
                    us);
        }
}

int nccl_tuner_write(const struct export_run *e, struct err *err)
{
    struct tuner t;

    if (!e->ask->campaign)
        return err_usage(err, "nccl-tuner is made from a campaign's folder with a sweep (railgauge "
                              "run --sweep -o DIR), not from a matrix");
    if (tuner_load(&t, e->ask->campaign, err) < 0)
        return -1;
    tuner_csv(e->out, &t);
    if (e->second)
        put_records(e->second, &t);
    tuner_free(&t);
    return 0;
}
