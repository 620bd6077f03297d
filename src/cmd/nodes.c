/* SPDX-License-Identifier: BSD-3-Clause */
/* nodes.c - railgauge nodes: cost of a job on a list of nodes, and the best of the free nodes. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/host.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "place/place.h"

/* Results; a table of seconds, segment if requested, and nodes. */
struct rows {
    struct table table;
    bool segments;
    bool exact;  /* no other set is better */
    long priced; /* number of sets; 0: not counted */
};

static const struct table_column columns[] = {
    {"seconds", "seconds", "exact"}, {"nodes", "nodes", "text"}, {0}};
static const struct table_column segment_columns[] = {{"seconds", "seconds", "exact"},
                                                      {"segment", "segment", "count"},
                                                      {"nodes", "nodes", "text"},
                                                      {0}};

/* Choice among the free hosts, as typed. */
struct rows_ask {
    const char *free_nodes; /* NULL: all */
    int need, best;
};

static void add(struct rows *rows, const struct topo *t, double sec, int segment, const int *host,
                int hosts)
{
    char **name = mem_calloc((size_t)hosts, sizeof(*name));

    for (int i = 0; i < hosts; i++)
        name[i] = t->host[host[i]].name;
    char *nodes = hostlist_fold(name, hosts);
    if (rows->segments)
        table_add(&rows->table, sec, segment, nodes);
    else
        table_add(&rows->table, sec, nodes);
    free(nodes);
    free(name);
}

/* Add segments of this size, spread as widely as possible; 0 if the racks lack the room. */
static int add_segment(struct rows *rows, const struct place_job *j, const struct rows_ask *a,
                       int segment, struct err *err)
{
    const struct topo *t = &j->matrix.topo;
    const struct placement wide = {.nodes = a->free_nodes, .segment = segment};
    int *order, given, hosts = 0, *host, ranks = a->need * (j->slots.first[1] - j->slots.first[0]);

    if (placement_make(&order, &given, t, &wide, ranks, err) < 0)
        return 0;
    host = mem_calloc((size_t)given + 1, sizeof(*host));
    for (int i = 0; i < given && hosts < a->need; i++) {
        int h = t->endpoint[order[i]].place.at[LEVEL_HOST];
        if (!hosts || host[hosts - 1] != h)
            host[hosts++] = h;
    }
    double sec = place_job_cost(j, host, hosts, err);
    if (!isnan(sec))
        add(rows, t, sec, segment, host, hosts);
    free(host);
    free(order);
    return isnan(sec) ? -1 : 0;
}

static int rows_segments(struct rows *rows, const struct place_job *j, const struct rows_ask *a,
                         struct err *err)
{
    for (int segment = 1; segment <= a->need; segment++)
        if (a->need % segment == 0 && add_segment(rows, j, a, segment, err) < 0)
            return -1;
    rows->exact = true;
    return json_array_size(rows->table.rows) ? 0 : -1; /* err is from the last size */
}

static int rows_sets(struct rows *rows, const struct place_job *j, const struct rows_ask *a,
                     const int *host, int hosts, struct err *err)
{
    struct place_sets b;
    int rc = place_job_sets(&b, j, host, hosts, a->need, a->best ? a->best : 1, 0, err);

    for (int i = 0; rc == 0 && i < b.count; i++)
        add(rows, &j->matrix.topo, b.sec[i], 0, b.host + (size_t)i * (size_t)a->need, a->need);
    rows->exact = b.exact;
    rows->priced = b.priced;
    place_sets_free(&b);
    return rc;
}

/* Add rows; -1 with err.  The functions: the listed hosts; the best sets of hosts; each size of
 * segment, spread as widely as possible. */
static int rows_price(struct rows *rows, const struct place_job *j, const int *host, int hosts,
                      struct err *err)
{
    double sec = place_job_cost(j, host, hosts, err);

    if (isnan(sec))
        return -1;
    if (isinf(sec))
        log_warn("%s", err->text);
    rows->exact = true;
    rows->priced = 1;
    add(rows, &j->matrix.topo, sec, 0, host, hosts);
    return 0;
}

enum { COUNT_MAX = 1 << 20 };

/* --- the command --- */

struct args {
    const char *job, *nodes;
    struct rows_ask of;
    bool segments;
    struct input_args in;
};

static const struct opt options[] = {
    {"job", 0, "TEXT",
     "job, with settings of railgauge predict: \"model=llama3.1-70b layout=tp=4,dp=auto\", or "
     "messages: \"all_gather 64M x 12; all_to_all 8M x 4 groups of 8\"; per_node=N, spread=cyclic",
     OPT_INTO(struct args, job)},
    {"nodes", 0, "LIST", "nodes of the job in rank order: r00n[00-15],r01n03",
     OPT_INTO(struct args, nodes)},
    {"free", 0, "LIST", "free nodes (default: all of the matrix)",
     OPT_INTO(struct args, of.free_nodes)},
    {"need", 0, "N", "number of nodes that the job needs",
     OPT_INT(struct args, of.need, 1, COUNT_MAX)},
    {"best", 0, "K", "number of sets to print (default 1)",
     OPT_INT(struct args, of.best, 1, COUNT_MAX)},
    {"segments", 0, NULL,
     "print the step time for each segment size, at the widest spread that sbatch --segment "
     "allows, instead of sets",
     OPT_INTO(struct args, segments)},
    INPUT_JSON(struct args, in.json),
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct args, in.file)}, {0}};

static int one_question(void *args, struct err *err)
{
    const struct args *a = args;

    if (!a->in.file && !a->in.fabric)
        return err_usage(err, "give a matrix file or --fabric");
    if (!a->job)
        return err_usage(err, "--job is missing");
    if (!a->nodes == !a->of.need)
        return err_usage(err,
                         "give --nodes LIST for a cost, or --need N for the best of the free ones");
    if (a->nodes && (a->of.free_nodes || a->of.best || a->segments))
        return err_usage(err,
                         "--nodes says which nodes: --free, --best and --segments choose some");
    if (a->of.best && a->segments)
        return err_usage(err, "--best ranks sets of nodes, --segments sizes of segments");
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = one_question,
    .set = {INPUT_PRESET(struct args, in)},
    .usage = "MATRIX",
    .doc = "Print the cost of a job on a list of nodes, or the best of the free nodes, "
           "for schedulers: a header, then one line per answer, with tabs.\vSets keep the "
           "order of --free, and ranks fill the nodes in that order.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Print the cost of a collective on eight nodes",
                        "railgauge nodes --fabric gb200-nvl72 --racks 1 --job 'all_reduce 1G' \\\n"
                        "      --nodes 'r00n[00-07]'"),
            OPT_EXAMPLE("Print the four best sets of eight free nodes for a training job",
                        "railgauge nodes --fabric gb200-nvl72 --racks 2 \\\n"
                        "      --job 'model=llama3.1-8b layout=tp=4,dp=auto' \\\n"
                        "      --free 'r00n[00-17],r01n[00-03]' --need 8 --best 4"),
            OPT_EXAMPLE("Print the step time for each segment size",
                        "railgauge nodes --fabric gb200-nvl72 --racks 2 --need 16 --segments \\\n"
                        "      --job 'all_to_all 64M groups of 32'"),
            {0}},
    .exits = EXIT_CODES("2 no set of nodes has a price, ", ""),
};

static int answer(struct rows *rows, const struct place_job *j, const struct args *a,
                  struct err *err)
{
    int *host, hosts;
    int rc = input_hosts(&host, &hosts, &j->matrix.topo, a->nodes ? "--nodes" : "--free",
                         a->nodes ? a->nodes : a->of.free_nodes, err);

    if (rc == 0)
        rc = a->nodes      ? rows_price(rows, j, host, hosts, err)
             : a->segments ? rows_segments(rows, j, &a->of, err)
                           : rows_sets(rows, j, &a->of, host, hosts, err);
    free(host);
    return rc;
}

static int open_and_answer(struct rows *rows, const struct args *a, struct err *err)
{
    struct matrix m;
    struct place_job j;

    if (matrix_open(&m, a->in.file, a->in.fabric, a->in.racks, err) < 0)
        return -1;
    int rc = place_job_open(&j, &m, a->job, err);
    if (rc == 0)
        rc = answer(rows, &j, a, err);
    else
        err_wrap(err, "--job");
    place_job_close(&j);
    matrix_free(&m);
    return rc;
}

/* Print JSON, or a header and a line per row, separated by tabs. */
static int print(struct rows *rows, const struct args *a, struct err *err)
{
    if (!a->in.json) {
        table_tsv(stdout, &rows->table);
        return 0;
    }
    json_t *json =
        json_pack("{s:s, s:O, s:b}", "job", a->job, "sets", rows->table.rows, "exact", rows->exact);
    if (rows->priced)
        json_object_set_new(json, "priced", json_integer(rows->priced));
    return json_answer(json_framed("railgauge-nodes", NULL, json), NULL, true, err);
}

static int cmd_nodes(int argc, char **argv, struct err *err)
{
    struct args a = {0};

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    struct rows rows = {.segments = a.segments};
    table_open(&rows.table, a.segments ? segment_columns : columns);
    int rc = open_and_answer(&rows, &a, err);
    if (rc == 0)
        rc = print(&rows, &a, err);
    table_free(&rows.table);
    return rc;
}

const struct command nodes_command = {&command, cmd_nodes};
