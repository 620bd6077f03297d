/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - railgauge place: which nodes, and which rank where. */
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
#include "cmd/input.h"
#include "cmd/predict_impl.h"
#include "emit/export/rank_files.h"
#include "place/place.h"
#include "step/job.h"

/* --- options --- */

struct place_args {
    struct job_opts job; /* place.nodes: the free ones, from --nodes or --nodes-file */
    const char *nodes_file, *exclude, *traffic, *output;
    struct written {
        const struct rank_file *form;
        const char *path; /* "-": standard output */
    } * write;
    int writes;
    double limit;
    int seed, per_node;
    bool json, no_scotch;
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
     "instead of a model: who sends how many bytes to whom in a step, a table with the columns "
     "src, dst and bytes, or Matrix Market",
     OPT_INTO(struct place_args, traffic), .group = 4},
    {"nodes-file", 0, "FILE", "the free nodes, a host list a line (--nodes LIST names them here)",
     OPT_INTO(struct place_args, nodes_file), .group = 4},
    {"exclude", 'x', "LIST", "nodes that are not free", OPT_INTO(struct place_args, exclude),
     .group = 4},
    {"per-node", 0, "N", "ranks of a node (default: all its endpoints)",
     OPT_INT(struct place_args, per_node, 1, 1 << 20), .group = 4},
    {"limit", 0, "TIME",
     "search for about so long (default 1s; the work is counted, so that the answer is the same "
     "everywhere)",
     OPT_CALL(take_limit), .group = 5},
    {"seed", 0, "N", "of random moves and random orders (default 1)",
     OPT_INT(struct place_args, seed, 0, INT_MAX), .group = 5},
    {"no-scotch", 0, NULL, "do not ask libscotch, where it is installed",
     OPT_INTO(struct place_args, no_scotch), .group = 5},
    {"write", 0, "FORM[=FILE]",
     "write the placement, to standard output without FILE: order, nodes, rankfile, hostfile, "
     "mpich, slurm-hostfile, sbatch, torchrun, kubernetes; may be given again",
     OPT_CALL(take_write), .group = 6},
    {"json", 0, NULL, "print place.json instead of text", OPT_INTO(struct place_args, json),
     .group = 6},
    {"output", 'o', "FILE", "write place.json too", OPT_INTO(struct place_args, output),
     .group = 6},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct place_args, job.matrix)}, {0}};

static const char doc[] =
    "Choose nodes and the order of ranks that make the step shortest: orders of the mesh's axes, "
    "blocks of ranks that stay inside a domain, rack or leaf, slow parts left out, then moves of "
    "whole blocks; each order is priced as railgauge predict does.  MATRIX is a matrix.json of "
    "railgauge fit."
    "\vExamples:\n"
    "  railgauge place matrix.json --model llama3.1-70b \\\n"
    "      --layout tp=8,dp=16 --nodes 'n[01-40]'\n"
    "  railgauge place --fabric gb200-nvl72 --racks 4 --model mixtral-8x7b \\\n"
    "      --strategy fsdp --layout dp=128,ep=8 --exclude r00n[03,07] \\\n"
    "      --write slurm-hostfile=hosts\n"
    "  railgauge place matrix.json --layout tp=4,dp=8 \\\n"
    "      --write order=order.txt --write sbatch\n"
    "  railgauge place matrix.json --traffic bytes.tsv --write rankfile=ranks.txt\n\n" EXIT_CODES(
        "1 the job does not fit in a GPU's memory, 2 could not judge (no curve, no compute rate, a "
        "dead part), ",
        "");

static int check(void *args, struct err *err)
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
    if (a->traffic && a->job.layout)
        return err_usage(err, "--traffic takes the place of --model and --layout");
    return 0;
}

/* Ends the program after --help and on bad usage, as argp does.  The caller frees write. */
static void place_args(struct place_args *a, int argc, char **argv)
{
    const struct opt_line command = {
        .options = options,
        .check = check,
        .words = words,
        .set = {{.make = job_options, .at = offsetof(struct place_args, job)}},
        .usage = "[MATRIX]",
        .doc = doc,
    };

    *a = (struct place_args){.limit = 1, .seed = 1};
    job_defaults(&a->job);
    opt_parse(&command, argc, argv, OPT_EXITS, a);
}

/* --- the answer --- */

/* What is shown; nothing is owned. */
struct place_answer {
    const struct placed *placed;
    const struct matrix *matrix;
    const struct prediction *now, *before; /* in the order found, in the default one; NULL: traffic,
                                             or it needs a part of no use */
    const char *traffic;                   /* file, or NULL */
    int free_hosts;
};

static struct rank_map rank_map_of(const struct place_answer *a)
{
    return (struct rank_map){&a->matrix->topo, a->placed->order, a->placed->ranks};
}

static int nodes_used(const struct place_answer *a)
{
    const struct topo *t = &a->matrix->topo;
    bool *seen = mem_calloc((size_t)t->hosts + 1, sizeof(bool));
    int n = 0;

    for (int r = 0; r < a->placed->ranks; r++) {
        int h = t->endpoint[a->placed->order[r]].place.at[LEVEL_HOST];
        n += !seen[h];
        seen[h] = true;
    }
    free(seen);
    return n;
}

static void head(FILE *out, const struct place_answer *a)
{
    if (a->now)
        predict_unfit(out, &a->now->memory);
    if (a->now)
        fprintf(out, "%s, %s, %s\n", a->now->model, a->now->layout, a->now->strategy);
    else
        fprintf(out, "traffic of %s\n", a->traffic);
    fprintf(out, "%d ranks on %d of %d free nodes%s%s\n\n", a->placed->ranks, nodes_used(a),
            a->free_hosts, a->matrix->fabric ? " of " : "",
            a->matrix->fabric ? a->matrix->fabric : "");
}

static void add_row(struct table *t, const struct place_answer *a, const char *name, double sec,
                    const char *note)
{
    char time[UNITS_TEXT], rate[32] = "", gain[48] = "";
    double base = a->placed->in_order;

    if (a->now)
        snprintf(rate, sizeof(rate), "%.0f", a->now->tokens / sec / a->placed->ranks);
    if (sec < INFINITY && base < INFINITY)
        snprintf(gain, sizeof(gain), "%+.1f %%", 100 * (base / sec - 1));
    const char *step = isinf(sec) ? "never" : units_seconds_text(time, sec);
    if (a->now)
        table_row(t, name, step, rate, gain, note);
    else
        table_row(t, name, step, gain, note);
}

static void times(FILE *out, const struct place_answer *a)
{
    const struct placed *p = a->placed;
    struct table t;

    table_init(&t, a->now ? "lrrrl" : "lrrl");
    if (a->now)
        table_row(&t, "order", "step", "tokens/s/GPU", "throughput", "");
    else
        table_row(&t, "order", "busiest endpoint", "throughput", "");
    add_row(&t, a, "placed", p->sec, "");
    add_row(&t, a, "default", p->in_order, "nodes as given, ranks in order");
    add_row(&t, a, "random", p->random, "nodes shuffled, median of 9");
    if (p->bound > 0)
        add_row(&t, a, "bound", p->bound, "no order is faster");
    table_print(out, &t, 0);
    table_free(&t);
}

/* "1 domain", "4 domains x16", with nodes and racks. */
static char *where_text(char buf[96], const struct shape *s)
{
    int n;

    if (s->domains == 1)
        n = snprintf(buf, 96, "one domain, %d node%s", s->nodes, s->nodes == 1 ? "" : "s");
    else
        n = snprintf(buf, 96, "%d domains, %d or more in each, %d nodes", s->domains, s->per_domain,
                     s->nodes);
    if (s->racks > 1)
        snprintf(buf + n, 96 - (size_t)n, ", %d racks", s->racks);
    return buf;
}

static const struct term *same_term(const struct prediction *p, const struct term *t)
{
    for (int i = 0; p && i < p->terms; i++)
        if (p->term[i].kind == TERM_MESSAGE && !strcmp(p->term[i].label, t->label))
            return &p->term[i];
    return NULL;
}

/* The first message of each set of axes. */
static bool is_first(const struct prediction *p, int i)
{
    for (int k = 0; k < i; k++)
        if (p->term[k].kind == TERM_MESSAGE && p->term[k].axes == p->term[i].axes)
            return false;
    return p->term[i].kind == TERM_MESSAGE && p->term[i].shape.ranks > 1;
}

static double seen_of(const struct prediction *p, unsigned axes)
{
    double sec = 0;

    for (int i = 0; i < p->terms; i++)
        if (p->term[i].kind == TERM_MESSAGE && p->term[i].axes == axes)
            sec += p->term[i].sec;
    return sec;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->domains == b->domains && a->per_domain == b->per_domain && a->nodes == b->nodes &&
           a->racks == b->racks;
}

/* A line for each set of axes, and one below where the default order is another matter. */
static void axes_lines(FILE *out, const struct place_answer *a)
{
    struct table t;

    table_init(&t, "lrrl");
    table_row(&t, "axes", "ranks", "seen", "slowest group");
    for (int i = 0; i < a->now->terms; i++) {
        const struct term *x = &a->now->term[i];
        const struct term *old = is_first(a->now, i) ? same_term(a->before, x) : NULL;
        char axes[AXES_TEXT], ranks[32], at[96], sec[UNITS_TEXT];
        if (!is_first(a->now, i) || (a->before && !old))
            continue;
        double seen = seen_of(a->now, x->axes), before = old ? seen_of(a->before, x->axes) : NAN;
        snprintf(ranks, sizeof(ranks), "%d x %d", x->groups, x->shape.ranks);
        table_row(&t, axes_text(axes, x->axes), ranks, units_seconds_text(sec, seen),
                  where_text(at, &x->shape));
        if (old && (!same_shape(&x->shape, &old->shape) || fabs(before - seen) > 1e-6 * seen))
            table_row(&t, "  default", "", units_seconds_text(sec, before),
                      where_text(at, &old->shape));
    }
    fputc('\n', out);
    table_print(out, &t, 0);
    table_free(&t);
}

/* A line of 80 columns: a list of thousands of nodes is for --write. */
static void nodes_line(FILE *out, const struct place_answer *a)
{
    enum { WHOLE = 72, CUT = 30 };
    struct rank_map s = rank_map_of(a);
    char *nodes = rank_map_list(&s), *comma;

    if (strlen(nodes) > WHOLE) {
        nodes[CUT] = '\0';
        if ((comma = strrchr(nodes, ',')) != NULL)
            *comma = '\0';
        fprintf(out, "nodes: %s,... (%d in all; --write nodes=FILE)\n", nodes, nodes_used(a));
    } else {
        fprintf(out, "nodes: %s\n", nodes);
    }
    free(nodes);
}

static void place_text(FILE *out, const struct place_answer *a)
{
    const struct placed *p = a->placed;

    head(out, a);
    times(out, a);
    if (a->now)
        axes_lines(out, a);
    if (p->sec >= p->in_order)
        fprintf(out, "\nthe default order is as good as any that was tried\n");
    else
        fprintf(out, "\nhow: %s\n", p->how);
    fprintf(out, "%ld orders priced in %.2f s\n", p->tried, p->took);
    nodes_line(out, a);
}

static json_t *order_json(const struct place_answer *a)
{
    const struct topo *t = &a->matrix->topo;
    json_t *list = json_array();

    for (int r = 0; r < a->placed->ranks; r++) {
        const struct endpoint *e = &t->endpoint[a->placed->order[r]];
        json_array_append_new(
            list, json_sprintf("%s %d", t->host[e->place.at[LEVEL_HOST]].name, e->local));
    }
    return list;
}

static json_t *shape_json(const struct shape *s)
{
    return json_pack("{s:i,s:i,s:i,s:i}", "domains", s->domains, "per_domain", s->per_domain,
                     "nodes", s->nodes, "racks", s->racks);
}

static json_t *axes_json(const struct place_answer *a)
{
    json_t *list = json_array();

    for (int i = 0; a->now && i < a->now->terms; i++) {
        const struct term *x = &a->now->term[i];
        const struct term *old = is_first(a->now, i) ? same_term(a->before, x) : NULL;
        char axes[AXES_TEXT];
        if (old)
            json_array_append_new(
                list,
                json_pack("{s:s,s:i,s:i,s:o,s:o,s:f,s:f}", "axes", axes_text(axes, x->axes),
                          "groups", x->groups, "ranks", x->shape.ranks, "placed",
                          shape_json(&x->shape), "default", shape_json(&old->shape), "seen_s",
                          seen_of(a->now, x->axes), "default_seen_s", seen_of(a->before, x->axes)));
    }
    return list;
}

/* JSON has no infinity: a dead part on the way is null. */
static json_t *place_json(const struct place_answer *a)
{
    const struct placed *p = a->placed;
    struct rank_map s = rank_map_of(a);
    char *nodes = rank_map_list(&s);
    json_t *root = json_pack(
        "{s:s,s:i,s:o,s:s*,s:s*,s:s*,s:s*,s:i,s:i,s:s,s:i}", "format", "railgauge-place", "version",
        1, "provenance", json_provenance(), "model", a->now ? a->now->model : NULL, "layout",
        a->now ? a->now->layout : NULL, "strategy", a->now ? a->now->strategy : NULL, "traffic",
        a->traffic, "ranks", p->ranks, "free_nodes", a->free_hosts, "nodes", nodes, "segment",
        rank_map_segment(&s));

    json_object_set_new(root, "step_s", json_finite(p->sec));
    json_object_set_new(root, "default_s", json_finite(p->in_order));
    json_object_set_new(root, "random_s", json_finite(p->random));
    json_object_set_new(root, "bound_s", json_finite(p->bound > 0 ? p->bound : NAN));
    json_object_set_new(root, "tokens_per_s_per_gpu",
                        a->now ? json_real(a->now->tokens_per_gpu) : json_null());
    json_object_set_new(root, "default_tokens_per_s_per_gpu",
                        a->before ? json_real(a->before->tokens_per_gpu) : json_null());
    json_object_set_new(root, "how", json_string(p->how));
    json_object_set_new(root, "tried", json_integer(p->tried));
    json_object_set_new(root, "took_s", json_real(p->took));
    json_object_set_new(root, "axes", axes_json(a));
    json_object_set_new(root, "order", order_json(a));
    free(nodes);
    return root;
}

/* --- the command --- */

enum { NODES_MAX = 16 << 20 };

/* A question whole, and what came out. */
struct placing {
    struct place_args args;
    struct job job;
    struct demand demand;
    char *listed; /* what --nodes-file holds, as one list */
    int *host, hosts;
    struct placed placed;
    struct prediction now, before;
    bool compares; /* before is there */
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
            if (!*word)
                continue;
            char *more = mem_printf("%s%s%s", *list, **list ? "," : "", word);
            free(*list);
            *list = more;
        }
    }
    free(text);
    return **list ? 0 : err_data(err, "%s: no node is named", path);
}

static int open_job(struct placing *p, struct err *err)
{
    struct place_args *a = &p->args;
    int ranks;

    if (a->nodes_file && read_nodes(&p->listed, a->nodes_file, err) < 0)
        return -1;
    if (p->listed)
        a->job.place.nodes = p->listed;
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

/* The free hosts in the order given, without those that are excluded. */
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
                            .scotch = !p->args.no_scotch,
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
    if (isinf(p->placed.in_order)) /* it needs a part that is of no use: nothing to compare with */
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
    if (rc == 0 && says)
        fprintf(says, "wrote %s: %s\n", w->path, use);
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
    json_t *json = place_json(&answer);
    FILE *says = a->json ? NULL : stdout; /* prices go beside a form that standard output has */
    int rc = a->output ? json_save(json, a->output, err) : 0;

    for (int i = 0; i < a->writes; i++)
        says = strcmp(a->write[i].path, "-") != 0 ? says : stderr;
    if (a->json && rc == 0) {
        json_print(stdout, json);
    } else if (rc == 0) {
        place_text(says, &answer);
    }
    json_decref(json);
    for (int i = 0; rc == 0 && i < a->writes; i++)
        rc = write_form(&a->write[i], &map, says, err);
    return rc;
}

int cmd_place(int argc, char **argv)
{
    struct placing p = {.hosts = 0};
    struct err err = {0, ""};

    place_args(&p.args, argc, argv);
    int rc = open_job(&p, &err);
    if (rc == 0)
        rc = free_hosts(&p, &err);
    if (rc == 0)
        rc = run(&p, &err);
    if (rc == 0)
        rc = show(&p, &err);
    bool fits = memory_fits(&p.now.memory); /* traffic: nothing is known, so it does */
    prediction_free(&p.now);
    prediction_free(&p.before);
    placed_free(&p.placed);
    demand_free(&p.demand);
    job_free(&p.job);
    free(p.host);
    free(p.listed);
    free(p.args.write);
    return rc < 0 ? cmd_fail("place", &err) : fits ? EXIT_GOOD : EXIT_BELOW;
}
