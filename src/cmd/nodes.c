/* nodes.c - railgauge nodes: what a job costs on a list of nodes, and which free ones are best. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/hosts.h"
#include "cmd/input.h"
#include "cmd/nodes_rows.h"

enum { COUNT_MAX = 1 << 20 };

struct args {
    const char *job, *nodes;
    struct rows_ask of;
    bool segments;
    struct input_args in;
};

static const struct opt options[] = {
    {"job", 0, "TEXT",
     "\"model=llama3.1-70b layout=tp=4,dp=auto\" with the settings of railgauge predict, or "
     "\"all_gather 64M x 12; all_to_all 8M x 4 groups of 8\"; per_node=N, spread=cyclic",
     OPT_INTO(struct args, job)},
    {"nodes", 0, "LIST", "what it costs on these, ranks in this order: r00n[00-15],r01n03",
     OPT_INTO(struct args, nodes)},
    {"free", 0, "LIST", "nodes to choose from (default: all of the matrix)",
     OPT_INTO(struct args, of.free_nodes)},
    {"need", 0, "N", "how many nodes the job needs", OPT_INT(struct args, of.need, 1, COUNT_MAX)},
    {"best", 0, "K", "how many sets to print (default 1)",
     OPT_INT(struct args, of.best, 1, COUNT_MAX)},
    {"segments", 0, NULL,
     "instead of sets: the step for each size of segment, as wide as sbatch --segment may spread "
     "them over the racks",
     OPT_INTO(struct args, segments)},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct args, in.file)}, {0}};

static int check(void *args, struct err *err)
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

static const struct command command = {
    .options = options,
    .words = words,
    .check = check,
    .takes = INPUT_PRESET | INPUT_JSON,
    .input = offsetof(struct args, in),
    .usage = "MATRIX",
    .doc = "Print what a step of a job costs on a list of nodes, or the cheapest of the free ones, "
           "for schedulers: a header, then a line per answer, with tabs."
           "\vSets keep the order of --free, and ranks are dealt over them in that order.\n\n"
           "  railgauge nodes matrix.json --job 'all_reduce 1G' --nodes 'r00n[00-07]'\n"
           "  railgauge nodes matrix.json --job 'model=llama3.1-8b layout=tp=4,dp=auto' \\\n"
           "      --free 'r00n[00-17],r01n[00-03]' --need 8 --best 4\n"
           "  railgauge nodes matrix.json --job 'all_to_all 64M groups of 32' \\\n"
           "      --need 16 --segments\n\n" EXIT_CODES("2 no set of nodes has a price, ", ""),
};

static int answer(struct rows *rows, const struct nodes_job *j, const struct args *a,
                  struct err *err)
{
    int *host, hosts;
    int rc = hosts_read(&host, &hosts, &j->matrix.topo, a->nodes ? "--nodes" : "--free",
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
    struct nodes_job j;

    if (matrix_open(&m, a->in.file, a->in.fabric, a->in.racks, err) < 0)
        return -1;
    int rc = nodes_job_open(&j, &m, a->job, err);
    if (rc == 0)
        rc = answer(rows, &j, a, err);
    else
        err_wrap(err, "--job");
    nodes_job_close(&j);
    matrix_free(&m);
    return rc;
}

int cmd_nodes(int argc, char **argv)
{
    struct rows rows = {0};
    struct args a = {0};
    struct err err = {0, ""};

    command_parse(&command, argc, argv, &a);
    int rc = open_and_answer(&rows, &a, &err);
    json_t *json = rc == 0 && a.in.json ? rows_json(&rows, a.job) : NULL;
    if (json)
        json_print(stdout, json);
    else if (rc == 0)
        rows_table(stdout, &rows, a.segments);
    json_decref(json);
    rows_free(&rows);
    return rc < 0 ? cmd_fail("nodes", &err) : EXIT_GOOD;
}
