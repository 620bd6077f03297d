/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - railgauge run: the whole chain in one campaign directory. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/units.h"
#include "cmd/campaign/chain_impl.h"
#include "cmd/command.h"
#include "matrix/matrix.h"
#include "measure/campaign_files.h"
#include "report/plot/plot.h"
#include "report/text/nccl_tests.h"
#include "report/text/report.h"

/* --- campaign.json: options with which a campaign was started, so that --resume needs no options
 * and refuses different values --- */

#define FORMAT "railgauge-campaign"
enum { VERSION = 1 };

/* Options that may differ between starts: place and display, not the measurement. */
static const char *const free_now[] = {
    "output", "resume", "dry-run",       "no-plots",   "format",  "no-verdict", "trust-owner",
    "launch", "model",  "watch-address", "hang-after", "max-run", "budget",     NULL};
/* The first FORGOTTEN are not stored.  The next, "launch", is stored but must be typed again,
 * because a command is never taken from a file. */
enum { FORGOTTEN = 7, TYPED_AGAIN };

static bool is_among(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count && names[i]; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* {"noise": ["4%"], "fault": ["...", "..."], "blind": [null]} */
static void collect(void *options, const char *name, const char *value)
{
    json_t *values = json_object_get(options, name);

    if (!values) {
        values = json_array();
        json_object_set_new(options, name, values);
    }
    json_t *text = value ? json_string(value) : NULL;
    json_array_append_new(values, text ? text : json_null());
}

/* Save the options of this command line to DIR/campaign.json. */
static int campaign_save(const struct opt_line *c, int argc, char **argv, const char *dir,
                         struct err *err)
{
    json_t *options = json_object(), *value;
    char *path = file_join(dir, "campaign.json");
    const char *name;
    void *next;

    opt_given(c, argc, argv, collect, options);
    json_object_foreach_safe(options, next, name, value) if (is_among(name, free_now, FORGOTTEN))
        json_object_del(options, name);
    json_t *root = json_pack("{s:s, s:i, s:o, s:o}", "format", FORMAT, "version", VERSION,
                             "provenance", json_provenance(), "options", options);
    int rc = json_save(root, path, err);
    json_decref(root);
    free(path);
    return rc;
}

/* "4%", "a, b", or "given" for a flag; "not given" for NULL. */
static char *values_text(const json_t *values)
{
    char *text = mem_strdup(values ? "" : "not given");
    json_t *v;
    size_t k;

    json_array_foreach(values, k, v)
    {
        const char *value = json_string_value(v);
        text = mem_append(text, "%s%s", k ? ", " : "", value ? value : "given");
    }
    return text;
}

static int differs(const char *dir, const char *name, json_t *now, json_t *then, struct err *err)
{
    char *is = values_text(now), *was = values_text(then);

    err_usage(err, "--%s is %s and was %s when %s was begun; --resume needs no options but -o",
              name, is, was, dir);
    free(is);
    free(was);
    return -1;
}

/* Commands are not taken from files, because the author of campaign.json could run them as this
 * user. */
static int check_launch(json_t *now, json_t *then, const char *dir, struct err *err)
{
    json_t *was = json_object_get(then, "launch");

    if (!was || json_object_get(now, "launch"))
        return 0;
    char *text = values_text(was);
    err_usage(err,
              "%s was begun with --launch \"%s\", and no command is taken from a file: add it to "
              "--resume again, or another",
              dir, text);
    free(text);
    return -1;
}

static int same_options(json_t *now, json_t *then, const char *dir, struct err *err)
{
    const char *name;
    json_t *value;

    if (check_launch(now, then, dir, err) < 0)
        return -1;
    json_object_foreach(now, name, value)
    {
        json_t *was = json_object_get(then, name);
        if (!is_among(name, free_now, 100) && !json_equal(value, was))
            return differs(dir, name, value, was, err);
    }
    return 0;
}

/* Insert options that are not given now between the program's name and its words; the array is kept
 * until the program ends. */
static void put_before(int *argc, char ***argv, json_t *then, json_t *now)
{
    static char **all;
    int n = 0;
    size_t k;
    const char *name;
    json_t *values, *v;

    MEM_PUSH(all, n) = (*argv)[0];
    json_object_foreach(then, name, values) if (!json_object_get(now, name) &&
                                                !is_among(name, free_now, TYPED_AGAIN))
        json_array_foreach(values, k, v) MEM_PUSH(all, n) =
            json_is_string(v) ? mem_printf("--%s=%s", name, json_string_value(v))
                              : mem_printf("--%s", name);
    for (int i = 1; i < *argc; i++)
        MEM_PUSH(all, n) = (*argv)[i];
    *argc = n;
    MEM_PUSH(all, n) = NULL;
    *argv = all;
}

static int check_options(json_t *options, const char *path, struct err *err)
{
    const char *name;
    json_t *values, *v;
    size_t k;

    if (!json_is_object(options))
        return err_data(err, "%s: \"options\" is not an object", path);
    json_object_foreach(options, name, values)
    {
        if (!json_array_size(values))
            return err_data(err, "%s: options.%s is not a list", path, name);
        json_array_foreach(
            values, k,
            v) if (!json_is_string(v) &&
                   !json_is_null(v)) return err_data(err,
                                                     "%s: options.%s[%zu] is neither text nor null",
                                                     path, name, k);
    }
    return 0;
}

/* Insert the options stored in DIR/campaign.json before those of the command line *argv; without
 * that file (of an older version) *argv stays.  EXIT_USAGE with both values if an option given now
 * differs, unless it does not affect measurements. */
static int campaign_recall(const struct opt_line *c, int *argc, char ***argv, const char *dir,
                           struct err *err)
{
    char *path = file_join(dir, "campaign.json");
    json_t *root = NULL, *now = json_object(), *then, *unused;
    int rc = 0;

    if (access(path, F_OK) != 0)
        goto out;
    rc = json_open(&root, path, FORMAT, VERSION, err);
    if (rc == 0)
        rc = json_take(root, path, err, "{s:o, s:o, s:o, s:o, s?o}", "format", &unused, "version",
                       &unused, "provenance", &unused, "options", &then, "measured", &unused);
    if (rc == 0)
        rc = check_options(then, path, err);
    opt_given(c, *argc, *argv, collect, now);
    if (rc == 0)
        rc = same_options(now, then, dir, err);
    if (rc == 0)
        put_before(argc, argv, then, now);
out:
    json_decref(root);
    json_decref(now);
    free(path);
    return rc;
}

/* --- options --- */

struct args {
    struct chain chain;
    bool dry_run, no_plots, no_verdict, json;
    const char *format;
};

static int take_format(void *args, char *name, struct err *err)
{
    struct args *a = args;

    a->format = name;
    return strcmp(name, "nccl-tests") ? err_usage(err, "only nccl-tests is known, not \"%s\"", name)
                                      : 0;
}

static const struct opt options[] = {
    {"output", 'o', "DIR",
     "campaign directory (default campaign-TIME-WHAT, with a link \"last\" to it)",
     OPT_INTO(struct args, chain.dir)},
    {"transport", 't', "NAME",
     "library or method that moves the data: auto, nccl, copy, mpi, verbs or sim (default auto: "
     "sim with --fabric, nccl if every rank has a GPU, else mpi)",
     OPT_INTO(struct args, chain.transport), .values = transport_each},
    {"resume", 0, NULL, "finish the campaign in DIR (default: the last one)",
     OPT_INTO(struct args, chain.resume)},
    CHAIN_TRUST(struct args, chain),
    {"dry-run", 0, NULL, "print the plan, its minutes and bytes; measure nothing",
     OPT_INTO(struct args, dry_run)},
    {"model", 0, "NAME",
     "model whose step time is predicted (default: llama3.1-8b on GPUs, none on CPUs)",
     OPT_INTO(struct args, chain.model), .values = model_each},
    {"for-job", 0, "WORDS",
     "also measure the groups of this job, given as options of railgauge predict; may be given "
     "again",
     OPT_LIST(struct args, chain.job, chain.jobs)},
    {"format", 0, "nccl-tests", "also print the collectives in this form: nccl-tests",
     OPT_CALL(take_format)},
    {"json", 0, NULL, "print the summary as JSON, like show", OPT_INTO(struct args, json)},
    {"no-plots", 0, NULL, "draw no pictures", OPT_INTO(struct args, no_plots)},
    {"no-verdict", 0, NULL, "exit with 0 even if a part is named",
     OPT_INTO(struct args, no_verdict)},
    {"no-compute", 0, NULL, "with nccl and copy, skip what each GPU computes and moves alone",
     OPT_INTO(struct args, chain.no_compute)},
    {0},
};

static const struct opt_line command = {
    .options = options,
    .set = {{.rows = launch_options, .at = offsetof(struct args, chain.launch)},
            {.rows = probe_options, .at = offsetof(struct args, chain.probe)},
            {.rows = sim_options, .at = offsetof(struct args, chain.sim)},
            {.rows = device_options, .at = offsetof(struct args, chain.device)}},
    .more = transport_options,
    .doc = "Discover, plan, probe, fit, predict and plot, all in one campaign directory.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Measure this machine at a glance, with 2 ranks over MPI",
                        "railgauge run --ranks 2 --quick -o quick"),
            OPT_ELSEWHERE("Measure 18 hosts with 4 GPUs each",
                          "railgauge run --hosts 'n[01-18]:4'"),
            OPT_ELSEWHERE("Measure the nodes of a Slurm job",
                          "railgauge run --launch 'srun -N18 -n72'"),
            OPT_EXAMPLE(
                "Simulate two racks with one slow NIC",
                "railgauge run --fabric gb200-nvl72 --racks 2 --fault slow-nic=17:0.6 -o sim"),
            OPT_EXAMPLE("Finish the last campaign", "railgauge run --resume"),
            {0}},
    .exits = EXIT_CODES("1 a part is named, in any state (not with --no-verdict), 2 points failed "
                        "or data were wrong and no part is named for it, ",
                        ", 75 cut short (--resume continues), 78 configuration"),
};

/* --- summary: one screen about a campaign --- */

enum { PARTS_SHOWN = 5, FINDINGS_SHOWN = 5 };

/* Possible files of a campaign directory, in the order of the chain. */
static void print_files(const char *dir)
{
    static const char *const files[] = {
        "topology.json",        "plan.tsv",    "points.tsv",  "sweep/",          "connections.tsv",
        "connections-nics.tsv", "compute.tsv", "matrix.json", "prediction.json", "plots/"};
    char *line = mem_printf("files in %s:", dir);

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *path = file_join(dir, files[i]);
        if (access(path, F_OK) == 0)
            line = mem_append(line, " %s", files[i]);
        free(path);
    }
    putchar('\n');
    table_wrap(stdout, 2, "%s", line);
    free(line);
    printf("as one page: railgauge report %s\n", dir);
}

static void print_steps(const struct chain *c)
{
    static const struct table_column columns[] = {{NULL, "model", "text"},
                                                  {NULL, "layout", "text"},
                                                  {NULL, "step", "seconds"},
                                                  {NULL, "from", "seconds"},
                                                  {NULL, "to", "seconds"},
                                                  {NULL, "tokens/s per GPU", "figure"},
                                                  {NULL, "exposed communication", "100*%.0f %%"},
                                                  {0}};
    char rate[UNITS_TEXT];
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < c->predictions; i++) {
        const struct prediction *p = &c->predicted[i];
        table_add(&t, p->model, p->layout, p->sec, p->lo, p->hi,
                  units_count_text(rate, p->tokens_per_gpu, 3), p->exposed / p->sec);
    }
    if (c->predictions) {
        puts("\nTraining step, predicted; 9 of 10 such predictions are within \"from\" and \"to\"");
        table_print(stdout, &t, 0);
    }
    for (int i = 0; i < c->predictions; i++) {
        const struct prediction *p = &c->predicted[i];
        if (memory_fit(&p->memory) != MEMORY_FITS)
            table_wrap(stdout, 2, "memory: %s, %s %s", p->model, p->layout,
                       memory_fit_text(&p->memory));
    }
    table_free(&t);
}

/* Reason of the exit code beside the parts. */
static const char *exit_words(const struct chain *c, bool no_verdict)
{
    if (matrix_faults(&c->matrix))
        return no_verdict ? "" : " (exit code 1)";
    return c->trouble ? ", but points failed or had wrong data (exit code 2)" : "";
}

/* Print parts, tiers, collectives, predicted steps, findings, files. */
static void summarise(const struct chain *c, bool no_verdict)
{
    const struct matrix *m = &c->matrix;

    matrix_report_parts(stdout, m, PARTS_SHOWN, exit_words(c, no_verdict), c->dir);
    putchar('\n');
    matrix_report_tiers(stdout, m, 0);
    putchar('\n');
    matrix_report_collectives(stdout, m, 0, true);
    print_steps(c);
    putchar('\n');
    matrix_report_findings(stdout, m, FINDINGS_SHOWN);
    print_files(c->dir);
}

/* --- the chain --- */

/* Pictures are optional: failures are reported but do not end the run. */
static int draw(struct args *a, struct err *err)
{
    struct plot_result r = {0};
    int rc = 0;

    if (!a->no_plots)
        rc = plot_campaign(a->chain.dir, &a->chain.points, NULL, PLOT_ALL, PLOT_PNG,
                           &(struct pair_only){0}, &(struct plot_look){0}, &r, err);
    for (int i = 0; i < PLOT_FIGURES && rc == 0 && r.gnuplot; i++)
        if (r.why[i])
            log_info("no %s picture: %s", plot_name[i], r.why[i]);
    if (!a->no_plots && rc == 0 && !r.gnuplot)
        log_warn("gnuplot is not installed: no pictures; railgauge plot %s --terminal shows the "
                 "pair map here",
                 a->chain.dir);
    plot_result_free(&r);
    return rc;
}

/* --format nccl-tests: the table for existing parsers, before the summary. */
static int print_format(const struct args *a, struct err *err)
{
    const struct chain *c = &a->chain;

    return !a->format
               ? 0
               : nccl_tests_print(
                     stdout, &c->points, &c->plan, &c->matrix.topo,
                     &(struct nccl_tests_how){c->probe.measure.warmup, &nccl_opts_asked}, err);
}

static int chain(struct args *a, struct err *err)
{
    struct chain *c = &a->chain;

    if (chain_open(c, err) < 0 ||
        (!c->resume && campaign_save(&command, c->argc, c->argv, c->dir, err) < 0) ||
        chain_run(c, err) < 0 || draw(a, err) < 0 || print_format(a, err) < 0)
        return -1;
    if (!a->json)
        summarise(c, a->no_verdict);
    else if (json_answer(json_framed("railgauge-show", NULL, matrix_report(NULL, &c->matrix, 0)),
                         NULL, true, err) < 0)
        return -1;
    if (c->trouble && !matrix_faults(&c->matrix))
        return err_set(err, "%s: %s", c->dir, c->trouble);
    if (c->trouble) /* the cause is reported above */
        log_warn("%s: %s", c->dir, c->trouble);
    return 0;
}

static void parse(struct args *a, int argc, char **argv)
{
    *a = (struct args){.chain = {.line = &command, .argc = argc, .argv = argv}};
    probe_opts_defaults(&a->chain.probe);
    opt_parse(&command, argc, argv, OPT_EXITS, a);
}

/* --resume: add the words with which the campaign was started; `last` is the directory without
 * -o. */
static int parse_again(struct args *a, int argc, char **argv, const char *last, struct err *err)
{
    const char *dir = a->chain.dir ? a->chain.dir : last;
    int rc = dir ? chain_trusts(&a->chain, a->chain.dir ? dir : CAMPAIGN_LAST, err) : -1;

    if (rc == 0)
        rc = campaign_recall(&command, &argc, &argv, dir, err);

    chain_close(&a->chain);
    parse(a, argc, argv);
    if (!a->chain.dir)
        a->chain.dir = last;
    return rc;
}

static int cmd_run(int argc, char **argv, struct err *err)
{
    struct args a;
    char *last = NULL;
    int rc = 0;

    parse(&a, argc, argv);
    if (a.chain.resume) {
        last = a.chain.dir ? NULL : campaign_files_last_dir(err);
        rc = parse_again(&a, argc, argv, last, err);
    }
    if (rc == 0)
        rc = chain_transport(&a.chain, err);
    if (rc == 0)
        rc = a.dry_run ? chain_dry_run(&a.chain, stdout, err) : chain(&a, err);
    int verdict = matrix_faults(&a.chain.matrix) && !a.no_verdict ? EXIT_BELOW : EXIT_GOOD;
    chain_close(&a.chain);
    free(last);
    return rc < 0 ? -1 : verdict;
}

const struct command run_command = {&command, cmd_run};
