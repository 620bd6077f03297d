/* nodes.c - railgauge nodes: what a job costs on a list of nodes, and which free ones are best. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hostlist.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "step/nodes.h"

enum { JOB = 0x400, NODES, FREE, NEED, BEST, SEGMENTS, FABRIC, RACKS, JSON, COUNT_MAX = 1 << 20 };

struct args {
    const char *matrix, *fabric, *job, *nodes, *free_nodes;
    int racks, need, best;
    bool segments, json;
};

/* One answer: a row of the table. */
struct row {
    double sec;
    int segment; /* 0: not asked */
    char *nodes;
};

struct rows {
    struct row *row;
    int count;
    bool exact;
    long priced;
};

static const struct argp_option options[] = {
    {"job", JOB, "TEXT", 0,
     "\"model=llama3.1-70b layout=tp=4,dp=auto\" with the settings of railgauge predict, or "
     "\"all_gather 64M x 12; all_to_all 8M x 4 groups of 8\"; per_node=N, spread=cyclic",
     0},
    {"nodes", NODES, "LIST", 0, "what it costs on these, ranks in this order: r00n[00-15],r01n03",
     0},
    {"free", FREE, "LIST", 0, "nodes to choose from (default: all of the matrix)", 0},
    {"need", NEED, "N", 0, "how many nodes the job needs", 0},
    {"best", BEST, "K", 0, "how many sets to print (default 1)", 0},
    {"segments", SEGMENTS, NULL, 0,
     "instead of sets: the step for each size of segment, as wide as sbatch --segment may spread "
     "them over the racks",
     0},
    {"fabric", FABRIC, "NAME", 0, "a preset instead of a measured matrix", 0},
    {"racks", RACKS, "N", 0, "racks of the preset (default: as the preset says)", 0},
    {"json", JSON, NULL, 0, "print JSON instead of a table with tabs", 0},
    {0},
};

static void check_words(const struct args *a, struct argp_state *state)
{
    if (!a->matrix && !a->fabric)
        argp_error(state, "give a matrix file or --fabric");
    if (!a->job)
        argp_error(state, "--job is missing");
    if (!a->nodes == !a->need)
        argp_error(state,
                   "give --nodes LIST for a cost, or --need N for the best of the free ones");
    if (a->nodes && (a->free_nodes || a->best || a->segments))
        argp_error(state, "--nodes says which nodes: --free, --best and --segments choose some");
    if (a->best && a->segments)
        argp_error(state, "--best ranks sets of nodes, --segments sizes of segments");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;
    struct err err = {0, ""};
    int rc = 0;

    switch (key) {
    case JOB:
        a->job = arg;
        break;
    case NODES:
        a->nodes = arg;
        break;
    case FREE:
        a->free_nodes = arg;
        break;
    case NEED:
        rc = units_int(&a->need, arg, 1, COUNT_MAX, &err);
        break;
    case BEST:
        rc = units_int(&a->best, arg, 1, COUNT_MAX, &err);
        break;
    case SEGMENTS:
        a->segments = true;
        break;
    case FABRIC:
        a->fabric = arg;
        break;
    case RACKS:
        rc = units_int(&a->racks, arg, 1, COUNT_MAX, &err);
        break;
    case JSON:
        a->json = true;
        break;
    case ARGP_KEY_ARG:
        if (a->matrix)
            argp_error(state, "one matrix at a time: \"%s\" after \"%s\"", arg, a->matrix);
        a->matrix = arg;
        break;
    case ARGP_KEY_END:
        check_words(a, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MATRIX",
    .doc =
        "Print what a step of a job costs on a list of nodes, or the cheapest of the free ones, "
        "for schedulers: a header, then a line per answer, with tabs."
        "\vSets keep the order of --free, and ranks are dealt over them in that order.\n\n"
        "  railgauge nodes matrix.json --job 'all_reduce 1G' --nodes 'r00n[00-07]'\n"
        "  railgauge nodes matrix.json --job 'model=llama3.1-8b layout=tp=4,dp=auto' \\\n"
        "      --free 'r00n[00-17],r01n[00-03]' --need 8 --best 4\n"
        "  railgauge nodes matrix.json --job 'all_to_all 64M groups of 32' --need 16 --segments\n",
};

/* The hosts of a list, or all. */
static int read_hosts(int **host, int *hosts, const struct topo *t, const char *option,
                      const char *list, struct err *err)
{
    struct err why;
    char **name;
    int count, rc = 0;

    *host = NULL;
    *hosts = 0;
    for (int h = 0; !list && h < t->hosts; h++)
        MEM_PUSH(*host, *hosts) = h;
    if (!list)
        return 0;
    if (hostlist_expand(&name, &count, list, &why) < 0)
        return err_usage(err, "%s: %s", option, why.text);
    for (int i = 0; rc == 0 && i < count; i++) {
        int h = topo_find_host(t, name[i]);
        if (h < 0)
            rc = err_usage(err, "%s: node \"%.80s\" is not among the %d of the matrix", option,
                           name[i], t->hosts);
        else
            MEM_PUSH(*host, *hosts) = h;
    }
    hostlist_free(name, count);
    return rc;
}

static void add(struct rows *rows, const struct topo *t, double sec, int segment, const int *host,
                int hosts)
{
    char **name = mem_calloc((size_t)hosts, sizeof(*name));

    for (int i = 0; i < hosts; i++)
        name[i] = t->host[host[i]].name;
    MEM_PUSH(rows->row, rows->count) = (struct row){sec, segment, hostlist_fold(name, hosts)};
    free(name);
}

/* Segments of this size as wide as they may lie; 0 when the racks have no room for them. */
static int add_segment(struct rows *rows, const struct nodes_job *j, const struct args *a,
                       int segment, struct err *err)
{
    const struct topo *t = &j->matrix.topo;
    const struct placement wide = {.nodes = a->free_nodes, .segment = segment};
    int *order, given, hosts = 0, *host, ranks = a->need * (j->first[1] - j->first[0]);

    if (placement_make(&order, &given, t, &wide, ranks, err) < 0)
        return 0;
    host = mem_calloc((size_t)given + 1, sizeof(*host));
    for (int i = 0; i < given && hosts < a->need; i++) {
        int h = t->endpoint[order[i]].place.at[LEVEL_HOST];
        if (!hosts || host[hosts - 1] != h)
            host[hosts++] = h;
    }
    double sec = nodes_cost(j, host, hosts, err);
    if (!isnan(sec))
        add(rows, t, sec, segment, host, hosts);
    free(host);
    free(order);
    return isnan(sec) ? -1 : 0;
}

static int rank_segments(struct rows *rows, const struct nodes_job *j, const struct args *a,
                         struct err *err)
{
    for (int segment = 1; segment <= a->need; segment++)
        if (a->need % segment == 0 && add_segment(rows, j, a, segment, err) < 0)
            return -1;
    rows->exact = true;
    return rows->count ? 0 : -1; /* err is of the last one */
}

static int rank_sets(struct rows *rows, const struct nodes_job *j, const struct args *a,
                     const int *host, int hosts, struct err *err)
{
    struct nodes_best b;
    int rc = nodes_best(&b, j, host, hosts, a->need, a->best ? a->best : 1, err);

    for (int i = 0; rc == 0 && i < b.count; i++)
        add(rows, &j->matrix.topo, b.sec[i], 0, b.host + (size_t)i * (size_t)a->need, a->need);
    rows->exact = b.exact;
    rows->priced = b.priced;
    nodes_best_free(&b);
    return rc;
}

static int price(struct rows *rows, const struct nodes_job *j, const int *host, int hosts,
                 struct err *err)
{
    double sec = nodes_cost(j, host, hosts, err);

    if (isnan(sec))
        return -1;
    if (isinf(sec))
        log_warn("%s", err->text);
    rows->exact = true;
    rows->priced = 1;
    add(rows, &j->matrix.topo, sec, 0, host, hosts);
    return 0;
}

static int answer(struct rows *rows, const struct nodes_job *j, const struct args *a,
                  struct err *err)
{
    int *host, hosts;
    int rc = read_hosts(&host, &hosts, &j->matrix.topo, a->nodes ? "--nodes" : "--free",
                        a->nodes ? a->nodes : a->free_nodes, err);

    if (rc == 0)
        rc = a->nodes      ? price(rows, j, host, hosts, err)
             : a->segments ? rank_segments(rows, j, a, err)
                           : rank_sets(rows, j, a, host, hosts, err);
    free(host);
    return rc;
}

static void print_json(const struct rows *rows, const struct args *a)
{
    json_t *sets = json_array();

    for (int i = 0; i < rows->count; i++) {
        const struct row *r = &rows->row[i];
        json_t *set = json_pack("{s:o, s:s}", "seconds",
                                isinf(r->sec) ? json_null() : json_real(r->sec), "nodes", r->nodes);
        if (r->segment)
            json_object_set_new(set, "segment", json_integer(r->segment));
        json_array_append_new(sets, set);
    }
    json_t *out = json_pack("{s:s, s:o, s:b}", "job", a->job, "sets", sets, "exact", rows->exact);
    if (rows->priced)
        json_object_set_new(out, "priced", json_integer(rows->priced));
    json_dumpf(out, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(out);
}

static void print_table(const struct rows *rows, const struct args *a)
{
    puts(a->segments ? "seconds\tsegment\tnodes" : "seconds\tnodes");
    for (int i = 0; i < rows->count; i++) {
        const struct row *r = &rows->row[i];
        if (a->segments)
            printf("%.9g\t%d\t%s\n", r->sec, r->segment, r->nodes);
        else
            printf("%.9g\t%s\n", r->sec, r->nodes);
    }
}

static int open_and_answer(struct rows *rows, const struct args *a, struct err *err)
{
    struct matrix m;
    struct nodes_job j;

    if (matrix_open(&m, a->matrix, a->fabric, a->racks, err) < 0)
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

    argp_err_exit_status = EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
        return EXIT_USAGE;
    int rc = open_and_answer(&rows, &a, &err);
    if (rc == 0 && a.json)
        print_json(&rows, &a);
    else if (rc == 0)
        print_table(&rows, &a);
    for (int i = 0; i < rows.count; i++)
        free(rows.row[i].nodes);
    free(rows.row);
    return rc < 0 ? cmd_fail("nodes", &err) : EXIT_GOOD;
}
