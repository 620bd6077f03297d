/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - railgauge place: choose nodes, and the node of each rank. */
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "place/place.h"
#include "place/rank_files.h"
#include "report/text/report.h"
#include "step/job.h"

/* --- options --- */

struct place_args {
    struct job_opts job; /* place.nodes: free nodes, from --nodes or --nodes-file */
    const char *nodes_file, *exclude, *traffic, *jobs, *output;
    struct written {
        const struct rank_file *form;
        const char *path; /* "-": standard output */
    } * write;
    int writes;
    double limit;
    int seed, per_node;
    bool json, dry_run;
};

enum { DAY = 86400 }; /* s */

/* FORM or FORM=FILE. */
static int take_write(void *args, char *arg, struct err *err)
{
    struct place_args *a = args;
    char *path = strchr(arg, '=');

    if (path)
        *path++ = '\0';
    if (path && !*path)
        return err_usage(err, "no file after \"%s=\"", arg);
    const struct rank_file *form = rank_file_find(arg, err);
    if (!form)
        return -1;
    MEM_PUSH(a->write, a->writes) = (struct written){form, path ? path : "-"};
    return 0;
}

static int take_limit(void *args, char *text, struct err *err)
{
    struct place_args *a = args;

    if (units_seconds(&a->limit, text, err) < 0)
        return -1;
    return a->limit > 0 && a->limit <= DAY
               ? 0
               : err_usage(err, "%s is not more than 0 s and at most a day", text);
}

static const struct opt options[] = {
    {"traffic", 0, "FILE",
     "bytes from rank to rank in a step, instead of a model: a table with the columns src, dst and "
     "bytes, or Matrix Market",
     OPT_INTO(struct place_args, traffic)},
    {"jobs", 0, "FILE",
     "several jobs on nodes of their own, instead of one model; a line each: name, number of nodes "
     "or - if its layout gives it, and the job as in railgauge nodes --job",
     OPT_INTO(struct place_args, jobs)},
    {"dry-run", 0, NULL, "with --jobs, only read the file and print what each job needs",
     OPT_INTO(struct place_args, dry_run)},
    {"nodes-file", 0, "FILE",
     "file of free nodes, a host list per line; --nodes LIST gives them here",
     OPT_INTO(struct place_args, nodes_file)},
    {"exclude", 'x', "LIST", "nodes that are not free", OPT_INTO(struct place_args, exclude)},
    {"per-node", 0, "N", "ranks per node (default: all its endpoints)",
     OPT_INT(struct place_args, per_node, 1, 1 << 20)},
    {"limit", 0, "TIME",
     "time of the search, counted in work so that the result is the same everywhere (default: 0.1s "
     "to 1s, above 16,384 ranks in proportion more)",
     OPT_CALL(take_limit)},
    {"seed", 0, "N", "seed of random moves and orders (default 1)",
     OPT_INT(struct place_args, seed, 0, INT_MAX)},
    {"write", 0, "FORM[=FILE]",
     "write the placement, without FILE to standard output: order, nodes, rankfile, hostfile, "
     "mpich, slurm-hostfile, sbatch, torchrun, kubernetes; may be given again",
     OPT_CALL(take_write), .values = rank_file_each},
    {"json", 0, NULL, "print place.json instead of text", OPT_INTO(struct place_args, json)},
    {"output", 'o', "FILE", "also write place.json", OPT_INTO(struct place_args, output)},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct place_args, job.matrix)}, {0}};

static int one_job(void *args, struct err *err)
{
    const struct place_args *a = args;
    int screens = a->json;

    for (int i = 0; i < a->writes; i++)
        screens += !strcmp(a->write[i].path, "-");
    if (screens > 1)
        return err_usage(err,
                         "only one of --json and --write without a file fits on standard output");
    if (a->job.place.order || a->job.place.segment || a->job.place.spread)
        return err_usage(err, "place finds the order of ranks: --order, --segment and --spread "
                              "belong to railgauge predict");
    if (a->job.place.nodes && a->nodes_file)
        return err_usage(err, "--nodes and --nodes-file both say which nodes are free");
    if (a->jobs && (a->traffic || a->job.layout || a->per_node))
        return err_usage(err, "--jobs takes the place of --traffic, --model, --layout and "
                              "--per-node: its lines say that of each job");
    if (a->jobs && screens > a->json)
        return err_usage(err, "with --jobs, --write needs a file: each job's is FILE.NAME");
    if (a->dry_run && !a->jobs)
        return err_usage(err, "--dry-run belongs to --jobs");
    if (a->traffic && a->job.layout)
        return err_usage(err, "--traffic takes the place of --model and --layout");
    return 0;
}

static const struct opt_line command = {
    .check = one_job,
    .words = words,
    .set = {JOB_OPTIONS(struct place_args, job), {.rows = options}},
    .usage = "[MATRIX]",
    .doc = "Choose nodes and an order of ranks that make the step shortest, on MATRIX, a "
           "matrix.json of railgauge fit, or on a preset.\vTried are orders of the axes, "
           "blocks of ranks inside a domain, rack or leaf, slow parts left out, then "
           "moves of whole blocks. Each order has the price that railgauge predict gives.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Choose from a list of free nodes",
                        "railgauge place --fabric hgx-h100 --racks 2 --model llama3.1-8b \\\n"
                        "      --layout tp=8,dp=4 --nodes 'r00n[00-03],r01n[00-03]'"),
            OPT_EXAMPLE("Leave nodes out, and write a host file for Slurm",
                        "railgauge place --fabric gb200-nvl72 --racks 2 --model mixtral-8x7b \\\n"
                        "      --strategy fsdp --layout dp=128,ep=8 --exclude 'r00n[03,07]' \\\n"
                        "      --write slurm-hostfile=hosts.slurm"),
            OPT_EXAMPLE(
                "Write the order of ranks and a batch script",
                "railgauge place matrix.json --layout tp=4,dp=4 --write order=order.txt --write "
                "sbatch"),
            OPT_EXAMPLE(
                "Place measured traffic instead of a model",
                "railgauge place matrix.json --traffic bytes.tsv --write rankfile=ranks.txt"),
            OPT_EXAMPLE("Place several jobs",
                        "railgauge place matrix.json --jobs jobs.txt --write slurm-hostfile=hosts"),
            {0}},
    .exits = EXIT_CODES("1 the job does not fit in a GPU's memory, 2 could not judge (no curve, no "
                        "compute rate, a dead part), ",
                        ""),
};

/* --- the command --- */

enum { NODES_MAX = 16 << 20 };

struct placing {
    struct place_args args;
    struct job job;
    struct demand demand;
    char *listed; /* contents of --nodes-file, as one list */
    int *host, hosts;
    struct placed placed;
    struct prediction now, before;
    bool compares; /* `before` is set */
};

/* "n1\nn[2-3] # rack 7\n" becomes "n1,n[2-3]". */
static int read_nodes(char **list, const char *path, struct err *err)
{
    char *text, *rest, *line;
    size_t len;

    if (file_read(&text, &len, path, NODES_MAX, err) < 0)
        return -1;
    rest = text;
    *list = mem_strdup("");
    while ((line = strsep(&rest, "\n")) != NULL) {
        line[strcspn(line, "#")] = '\0';
        for (char *word; (word = strsep(&line, " \t\r")) != NULL;) {
            if (*word)
                *list = mem_append(*list, "%s%s", **list ? "," : "", word);
        }
    }
    free(text);
    return **list ? 0 : err_data(err, "%s: no node is named", path);
}

static int open_job(struct placing *p, struct err *err)
{
    struct place_args *a = &p->args;
    int ranks;

    if (!a->traffic)
        return job_open(&p->job, &a->job, err);
    if (demand_load(&p->demand, a->traffic, err) < 0)
        return -1;
    if (a->job.gpus && a->job.gpus < p->demand.ranks)
        return err_usage(err, "--gpus %d is less than the %d ranks of %s", a->job.gpus,
                         p->demand.ranks, a->traffic);
    if (a->job.gpus)
        p->demand.ranks = a->job.gpus;
    a->job.gpus = p->demand.ranks;
    return job_open_ranks(&p->job, &a->job, &ranks, err);
}

/* Free hosts in the given order, without the excluded hosts. */
static int free_hosts(struct placing *p, struct err *err)
{
    const struct topo *t = &p->job.matrix.topo;
    const char *exclude = p->args.exclude;
    int *out = NULL, outs = 0, n = 0;
    int rc = input_hosts(&p->host, &p->hosts, t, "--nodes", p->args.job.place.nodes, err);

    if (rc == 0 && exclude)
        rc = input_hosts(&out, &outs, t, "--exclude", exclude, err);
    for (int i = 0; rc == 0 && i < p->hosts; i++) {
        int k = 0;
        while (k < outs && out[k] != p->host[i])
            k++;
        if (k == outs)
            p->host[n++] = p->host[i];
    }
    p->hosts = n;
    free(out);
    return rc;
}

static int run(struct placing *p, struct err *err)
{
    struct place_ask ask = {.matrix = &p->job.matrix,
                            .host = p->host,
                            .hosts = p->hosts,
                            .per_host = p->args.per_node,
                            .limit = p->args.limit,
                            .seed = (unsigned)p->args.seed,
                            .progress = true};
    struct question q = job_question(&p->job, &p->args.job);
    struct place_step step;

    if (p->args.traffic)
        ask.demand = &p->demand;
    else if (place_step_of(&step, &q, err) < 0)
        return -1;
    else
        ask.step = &step;
    if (place_run(&p->placed, &ask, err) < 0 || p->args.traffic)
        return p->placed.order ? 0 : -1;
    q.order = p->placed.order;
    if (predict_step(&p->now, &q, err) < 0)
        return -1;
    if (isinf(p->placed.in_order)) /* an unusable part is needed: nothing to compare with */
        return 0;
    q.order = p->placed.given;
    p->compares = true;
    return predict_step(&p->before, &q, err);
}

static int write_form(const struct written *w, const struct rank_map *s, FILE *says,
                      struct err *err)
{
    struct file_out f;

    if (!strcmp(w->path, "-"))
        return rank_file_write(w->form, stdout, s, err);
    if (file_begin(&f, w->path, err) < 0)
        return -1;
    int rc = rank_file_write(w->form, f.stream, s, err);
    if (rc == 0)
        rc = file_commit(&f, err);
    file_abort(&f);
    char *use = rank_file_use(w->form, w->path, s->ranks);
    if (rc == 0 && says) {
        table_wrap(says, 2, "wrote %s: %s", w->path, use);
    }
    free(use);
    return rc;
}

static int show(const struct placing *p, struct err *err)
{
    const struct place_args *a = &p->args;
    struct place_answer answer = {.placed = &p->placed,
                                  .matrix = &p->job.matrix,
                                  .now = a->traffic ? NULL : &p->now,
                                  .before = p->compares ? &p->before : NULL,
                                  .traffic = a->traffic,
                                  .free_hosts = p->hosts};
    struct rank_map map = {&p->job.matrix.topo, p->placed.order, p->placed.ranks};
    FILE *says = a->json ? NULL : stdout; /* no text beside a form on standard output */
    int rc = json_answer(place_json(&answer), a->output, a->json, err);

    for (int i = 0; i < a->writes; i++)
        says = strcmp(a->write[i].path, "-") != 0 ? says : stderr;
    if (rc == 0 && !a->json) {
        if (answer.now)
            predict_unfit(says, &answer.now->memory);
        place_text(says, &answer);
        if (!a->writes)
            fputs("to use it: --write sbatch=FILE, slurm-hostfile=FILE or order=FILE\n", says);
    }
    for (int i = 0; rc == 0 && i < a->writes; i++)
        rc = write_form(&a->write[i], &map, says, err);
    return rc;
}

/* --- several jobs --- */

static const struct table_column job_columns[] = {{"name", "job", "text"},
                                                  {"ranks", "ranks", "count"},
                                                  {"node_count", "nodes", "count"},
                                                  {"step_s", "step", "seconds"},
                                                  {"alone_s", "alone", "seconds"},
                                                  {"bound_s", "bound", "seconds"},
                                                  {NULL, "lies in", "text"},
                                                  {"groups", NULL, "json"},
                                                  {"how", NULL, "text"},
                                                  {"nodes", NULL, "text"},
                                                  {"order", NULL, "json"},
                                                  {0}};
static const struct table_column level_columns[] = {{"level", "level", "text"},
                                                    {"groups", "groups", "count"},
                                                    {"whole", "all free", "count"},
                                                    {"split", "free in part", "count"},
                                                    {"split_nodes", "nodes", "count"},
                                                    {"largest", "most in one", "count"},
                                                    {0}};
static const struct table_column need_columns[] = {
    {"name", "job", "text"}, {"ranks", "ranks", "count"}, {"node_count", "nodes", "count"}, {0}};

static void add_job(struct table *t, const struct placing *p, const struct place_pack *b, int i)
{
    const struct place_entry *e = &b->entry[i];
    const struct topo *topo = &p->job.matrix.topo;
    struct rank_map map = {topo, e->placed.order, e->placed.ranks};
    char *nodes = rank_map_list(&map), lies[160] = "", *at = lies;
    json_t *groups = json_object(), *order = json_array();

    for (int l = 0; l < b->levels; l++) {
        int level = b->level[l].level;
        at += snprintf(at, 32, "%s%d %s", l ? ", " : "", e->touched[l],
                       e->touched[l] == 1 ? level_name[level] : level_many[level]);
        at += e->touched[l] > e->fewest[l] ? snprintf(at, 24, " (%d would do)", e->fewest[l]) : 0;
        json_object_set_new(
            groups, level_name[level],
            json_pack("{s:i,s:i}", "touched", e->touched[l], "fewest", e->fewest[l]));
    }
    for (int r = 0; r < e->placed.ranks; r++) {
        const struct endpoint *x = &topo->endpoint[e->placed.order[r]];
        json_array_append_new(
            order, json_sprintf("%s %d", topo->host[x->place.at[LEVEL_HOST]].name, x->local));
    }
    table_add(t, b->entry[i].name, e->placed.ranks, e->need, e->placed.sec, e->alone,
              e->placed.bound, lies, groups, e->placed.how, nodes, order);
    free(nodes);
}

static int write_jobs(const struct placing *p, const struct place_pack *b, struct err *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < b->entries; i++)
        for (int k = 0; rc == 0 && k < p->args.writes; k++) {
            const struct placed *placed = &b->entry[i].placed;
            struct rank_map map = {&p->job.matrix.topo, placed->order, placed->ranks};
            char *path = mem_printf("%s.%s", p->args.write[k].path, b->entry[i].name);
            struct written w = {p->args.write[k].form, path};
            rc = write_form(&w, &map, p->args.json ? NULL : stdout, err);
            free(path);
        }
    return rc;
}

static int show_jobs(const struct placing *p, const struct place_pack *b, struct err *err)
{
    bool dry = p->args.dry_run;
    struct table jobs, levels;
    json_t *root = json_pack("{s:s,s:i,s:o}", "format", "railgauge-place-jobs", "version", 1,
                             "provenance", json_provenance());

    table_open(&jobs, dry ? need_columns : job_columns);
    table_open(&levels, level_columns);
    for (int i = 0; i < b->entries; i++)
        if (dry)
            table_add(&jobs, b->entry[i].name, b->entry[i].ranks, b->entry[i].need);
        else
            add_job(&jobs, p, b, i);
    for (int l = 0; l < b->levels; l++) {
        const struct place_level *x = &b->level[l];
        table_add(&levels, level_name[x->level], x->groups, x->whole, x->split, x->nodes,
                  x->largest);
    }
    if (!p->args.json) {
        table_print(stdout, &jobs, 0);
        if (!dry)
            printf("\n%d of %d nodes stay free\n", b->free_hosts, p->hosts);
        if (b->levels)
            table_print(stdout, &levels, 0);
    }
    json_object_set_new(root, "jobs", table_rows(&jobs));
    json_object_set_new(root, "free_nodes", json_integer(dry ? p->hosts : b->free_hosts));
    json_object_set_new(root, "levels", table_rows(&levels));
    int rc = json_answer(root, p->args.output, p->args.json, err);
    return rc == 0 && !dry ? write_jobs(p, b, err) : rc;
}

static int run_jobs(struct placing *p, struct err *err)
{
    const struct place_args *a = &p->args;
    struct place_pack b = {.path = a->jobs};
    int rc = matrix_open(&p->job.matrix, a->job.matrix, a->job.fabric, a->job.racks, err);

    if (rc == 0)
        rc = free_hosts(p, err);
    if (rc == 0)
        rc = place_pack_read(&b, &p->job.matrix, p->hosts, err);
    if (rc == 0 && !a->dry_run)
        rc = place_pack(&b, &p->job.matrix, p->host, p->hosts, a->limit, err);
    if (rc == 0)
        rc = show_jobs(p, &b, err);
    place_pack_free(&b);
    return rc;
}

static int run_one(struct placing *p, struct err *err)
{
    return open_job(p, err) < 0 || free_hosts(p, err) < 0 || run(p, err) < 0 ? -1 : show(p, err);
}

static int cmd_place(int argc, char **argv, struct err *err)
{
    struct placing p = {.args = {.seed = 1}};

    job_defaults(&p.args.job);
    opt_parse(&command, argc, argv, OPT_EXITS, &p.args);
    int rc = p.args.nodes_file ? read_nodes(&p.listed, p.args.nodes_file, err) : 0;
    if (p.listed)
        p.args.job.place.nodes = p.listed;
    if (rc == 0)
        rc = p.args.jobs ? run_jobs(&p, err) : run_one(&p, err);
    bool fits =
        /* traffic: nothing is known, so assume that it fits */
        memory_fit(&p.now.memory) != MEMORY_UNFIT;
    prediction_free(&p.now);
    prediction_free(&p.before);
    placed_free(&p.placed);
    demand_free(&p.demand);
    job_free(&p.job);
    free(p.host);
    free(p.listed);
    free(p.args.write);
    return rc < 0 ? -1 : fits ? EXIT_GOOD : EXIT_BELOW;
}

const struct command place_command = {&command, cmd_place};
