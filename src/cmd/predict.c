/* SPDX-License-Identifier: BSD-3-Clause */
/* predict.c - railgauge predict: step time of a model with a layout on a fabric. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "calibrate/anchor.h"
#include "cmd/command.h"
#include "report/text/report.h"
#include "step/job.h"
#include "step/predict.h"

struct predict_args {
    struct job_opts job;
    struct budget_opts budget;
    struct variants_asked asked;
    const char *trace;
    const char *output;
    int flags; /* enum framework + 1; 0: none */
    const char *anchor, *save_anchor, *release;
    double measured; /* s; 0: not given */
    bool json, explain;
    /* Old spellings of railgauge-calibrate score and claims. */
    struct {
        const char **table, **leave_out, **name, *leave_one_out;
        int tables, leave_outs, names;
        bool score, markdown;
    } old;
};

static bool is_table(const char *name)
{
    size_t n = strlen(name);

    return n > 4 && !strcmp(name + n - 4, ".tsv");
}

/* The matrix, or a further table. */
static int take_word(void *args, char *arg, struct err *err)
{
    struct predict_args *a = args;

    if (is_table(arg) && a->old.tables)
        MEM_PUSH(a->old.table, a->old.tables) = arg;
    else if (a->job.matrix)
        return err_usage(err, "one matrix at a time: \"%s\" after \"%s\"", arg, a->job.matrix);
    else
        a->job.matrix = arg;
    return 0;
}

/* A file has a "/" or ends with ".tsv"; any other text is the setting of recipe.h. */
static int take_batch(void *args, char *arg, struct err *err)
{
    struct predict_args *a = args;
    struct err why;

    if (strchr(arg, '/') || is_table(arg)) {
        MEM_PUSH(a->old.table, a->old.tables) = arg;
        return 0;
    }
    if (recipe_set(&a->job.recipe, "batch", arg, &why) == 0)
        return 0;
    return err_usage(err, "%s", why.text + strlen("batch: ")); /* the text begins with the key */
}

static int take_measured(void *args, char *arg, struct err *err)
{
    struct predict_args *a = args;

    if (units_seconds(&a->measured, arg, err) < 0)
        return -1;
    return a->measured > 0 ? 0 : err_usage(err, "\"%s\" is no time that a step can take", arg);
}

/* The framework plus one; 0: not given. */
static int take_flags(void *args, char *arg, struct err *err)
{
    struct predict_args *a = args;

    a->flags = recipe_word("framework", arg, framework_name, FRAMEWORK_COUNT, err) + 1;
    return a->flags ? 0 : -1;
}

/* One count or several; replaces the row of a job. */
static int take_gpus(void *args, char *counts, struct err *err)
{
    return variants_options[0].call(&((struct predict_args *)args)->asked, counts, err);
}

/* Rows before those of a job, which they replace, and old spellings. */
static const struct opt first_options[] = {
    {"gpus", 0, "N[,N...]", NULL, OPT_CALL(take_gpus), .flags = OPTION_HIDDEN},
    {"batch", 0, "N|TABLE", NULL, OPT_CALL(take_batch),
     .flags = OPTION_HIDDEN}, /* N: in recipe.h */
    {"score", 0, NULL, NULL, OPT_INTO(struct predict_args, old.score), .flags = OPTION_HIDDEN},
    {"leave-one-out", 0, "GROUP", NULL, OPT_INTO(struct predict_args, old.leave_one_out),
     .flags = OPTION_HIDDEN},
    {"leave-out", 0, "CONDITIONS", NULL,
     OPT_LIST(struct predict_args, old.leave_out, old.leave_outs), .flags = OPTION_HIDDEN},
    {"case", 0, "FILE", NULL, OPT_LIST(struct predict_args, old.name, old.names),
     .flags = OPTION_HIDDEN},
    {"markdown", 0, NULL, NULL, OPT_INTO(struct predict_args, old.markdown),
     .flags = OPTION_HIDDEN},
    {0},
};

static const struct opt options[] = {
    {"anchor", 0, "FILE|ROW",
     "measured step of this recipe that scales compute: a file of --save-anchor, or TABLE.tsv:ID",
     OPT_INTO(struct predict_args, anchor)},
    {"measured", 0, "TIME", "measured step time of this job: 13.2s", OPT_CALL(take_measured)},
    {"save-anchor", 0, "FILE", "write this job and --measured as an anchor",
     OPT_INTO(struct predict_args, save_anchor)},
    {"release", 0, "TEXT", "software release, for constants and anchors: \"megatron-bridge 26.04\"",
     OPT_INTO(struct predict_args, release)},
    {"explain", 0, NULL, "print source, group and bytes below each term",
     OPT_INTO(struct predict_args, explain)},
    {"trace", 0, "FILE", "write the step as a timeline of Chrome trace events, for ui.perfetto.dev",
     OPT_INTO(struct predict_args, trace)},
    {"flags", 0, "NAME", "print the layout as options of a framework: megatron, torchtitan",
     OPT_CALL(take_flags), .words = framework_name, .known = FRAMEWORK_COUNT},
    {"json", 0, NULL, "print prediction.json instead of text", OPT_INTO(struct predict_args, json)},
    {"output", 'o', "FILE", "also write prediction.json", OPT_INTO(struct predict_args, output)},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_CALL(take_word), .repeats = true}, {0}};

static bool asks_several(const struct predict_args *a)
{
    return a->asked.counts > 1 || a->asked.whats || a->asked.weak;
}

static int one_answer(void *args, struct err *err)
{
    const struct predict_args *a = args;

    if (!a->measured != !a->save_anchor)
        return err_usage(err, "--measured and --save-anchor belong together");
    if (asks_several(a) && (a->save_anchor || a->explain))
        return err_usage(err,
                         "several --gpus, --weak and --what-if make a table of one job: no --%s",
                         a->save_anchor ? "save-anchor" : "explain");
    if (a->trace && asks_several(a))
        return err_usage(err, "--trace draws one step, and these are several");
    if ((a->old.tables || a->old.names) &&
        (asks_several(a) || a->trace || a->save_anchor || budget_asked(&a->budget)))
        return err_usage(err,
                         "--%s takes none of --weak, --what-if, --trace, --save-anchor, --tokens, "
                         "--power and --checkpoint, which are about one job",
                         a->old.tables ? "batch TABLE" : "case");
    if (!a->old.tables && (a->old.leave_one_out || a->old.leave_outs))
        return err_usage(err,
                         "--leave-one-out and --leave-out belong to railgauge-calibrate score");
    if (a->old.tables && a->job.matrix)
        return err_usage(err, "a table has machines of its own: leave out %s", a->job.matrix);
    if (a->anchor && a->save_anchor)
        return err_usage(err, "--anchor brings a measured step, and --measured is another");
    return 0;
}

static const struct opt_line command = {
    .options = first_options,
    .check = one_answer,
    .words = words,
    .set = {JOB_OPTIONS(struct predict_args, job),
            VARIANTS_OPTIONS(struct predict_args, asked),
            {.rows = options},
            BUDGET_OPTIONS(struct predict_args, budget)},
    .usage = "[MATRIX]",
    .doc = "Predict the time of one training step on MATRIX, a matrix.json of railgauge "
           "fit, or on a preset.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE(
                "Predict a step on a preset",
                "railgauge predict --fabric gb200-nvl72 --model llama3.1-8b --layout dp=72"),
            OPT_EXAMPLE("Predict on a measured machine",
                        "railgauge predict matrix.json --model llama3.1-8b \\\n"
                        "      --layout tp=4,dp=auto --strategy zero1"),
            OPT_EXAMPLE("Predict a large job, and print the source of each term",
                        "railgauge predict --fabric hgx-h100 --model llama3.1-405b --dtype fp8 \\\n"
                        "      --layout tp=8,pp=8,cp=2,dp=4 --stages-per-rank 2 --batch 256 \\\n"
                        "      --strategy zero1 --explain"),
            OPT_EXAMPLE("Write a measured step as an anchor, and predict a larger job from it",
                        "railgauge predict --fabric hgx-h100 --layout dp=8 \\\n"
                        "      --measured 2.1s --save-anchor a.json &&\n"
                        "    railgauge predict --fabric hgx-h100 --layout dp=64 --anchor a.json"),
            OPT_EXAMPLE("Predict days, cost, energy and failures of a whole run",
                        "railgauge predict --fabric hgx-h100 --layout dp=1024 \\\n"
                        "      --tokens 15T --price 2.5 --power 1.3kW \\\n"
                        "      --mtbf 50000h/gpu --checkpoint 30s --restart 5m"),
            OPT_EXAMPLE(
                "Compare three numbers of GPUs",
                "railgauge predict --fabric hgx-h100 --model llama3.1-70b --strategy zero1 \\\n"
                "      --layout tp=8,dp=auto --batch 512 --gpus 64,128,256"),
            OPT_EXAMPLE(
                "Compare with faster NICs and memory",
                "railgauge predict matrix.json --layout dp=auto --what-if exceptions=none \\\n"
                "      --what-if nic=2x,hbm=1.2x"),
            OPT_EXAMPLE(
                "Write a timeline for ui.perfetto.dev",
                "railgauge predict --fabric hgx-h100 --layout tp=8,pp=2,dp=4 --trace t.json"),
            {0}},
    .exits = EXIT_CODES("1 the job does not fit in a GPU's memory, 2 could not judge (no compute "
                        "rate, no curve, a dead part), ",
                        ""),
};

/* A note tells in which way the picture differs from the prediction. */
static int draw(const struct job *j, const struct predict_args *a, struct prediction *p,
                struct err *err)
{
    char is[UNITS_TEXT], step[UNITS_TEXT];
    double drawn;

    if (timeline_save(p, &j->layout, &a->job.recipe, a->trace, &drawn, err) < 0)
        return -1;
    if (drawn > p->sec * (1 + 1e-6))
        predict_note(p,
                     "the timeline has the order of the schedule and takes %s, %.1f %% more than "
                     "the %s that its formula has",
                     units_seconds_text(is, drawn), 100 * (drawn / p->sec - 1),
                     units_seconds_text(step, p->sec));
    return 0;
}

static int print(const struct job *j, const struct predict_args *a, struct prediction *p,
                 struct err *err)
{
    bool run = budget_asked(&a->budget);
    struct budget b;

    if (run && budget_of(&b, &a->budget, p, &a->job.recipe, job_nodes(j), err) < 0)
        return -1;
    json_t *json = predict_json(p, &j->matrix);
    if (run)
        json_object_set_new(json, "run", budget_json(&b));
    int rc = json_answer(json, a->output, a->json && !a->flags, err);
    if (rc == 0 && a->flags) {
        framework_flags(stdout, (enum framework)(a->flags - 1), &j->model, &j->layout,
                        &a->job.recipe);
    } else if (rc == 0 && !a->json) {
        predict_text(stdout, p, &j->matrix, &a->job.recipe, a->explain);
        if (run)
            budget_text(stdout, &b);
    }
    return rc;
}

/* p: the prediction from the anchor, with the changes. */
static int from_anchor(struct prediction *p, struct question *q, const struct predict_args *a,
                       const char *name, struct err *err)
{
    struct anchor anchor;
    int rc = predict_step(p, q, err);
    double without = p->sec;

    if (rc == 0)
        prediction_free(p);
    if (anchor_open(&anchor, name, q->constants, err) < 0 ||
        anchor_apply(&anchor, q, a->release, err) < 0)
        rc = -1;
    if (rc == 0)
        rc = predict_step(p, q, err);
    if (rc == 0)
        anchor_notes(p, &anchor, q, a->release, without);
    anchor_free(&anchor);
    return rc;
}

/* *fits: the job fits into GPU memory, or may fit. */
static int answer(const struct job *j, const struct predict_args *a, bool *fits, struct err *err)
{
    struct question q = job_question(j, &a->job);
    q.release = a->release;
    const char *anchor = a->anchor ? a->anchor : a->save_anchor;
    struct prediction p;

    if (a->save_anchor && anchor_save(&a->job, j, a->measured, a->release, a->save_anchor, err) < 0)
        return -1;
    int rc = anchor ? from_anchor(&p, &q, a, anchor, err) : predict_step(&p, &q, err);
    if (rc == 0) {
        if (j->habit)
            predict_note(
                &p,
                "%d of the %d hosts of a rack are taken, as jobs on %s do; --segment %d takes all",
                j->habit, j->fabric.hosts_per_rack, j->fabric.name, j->fabric.hosts_per_rack);
        job_hint(&p, j, &a->job, &q);
        rc = a->trace ? draw(j, a, &p, err) : 0;
    }
    if (rc == 0)
        rc = print(j, a, &p, err);
    *fits = rc == 0 && memory_fit(&p.memory) != MEMORY_UNFIT;
    prediction_free(&p);
    return rc;
}

/* --- --gpus N,... and --what-if --- */

static int ask_one(void *args, struct prediction *p, struct question *q, struct err *err)
{
    const struct predict_args *a = args;

    q->release = a->release;
    return a->anchor ? from_anchor(p, q, a, a->anchor, err) : predict_step(p, q, err);
}

/* Every row has its own result; if no row has a step, the error is that of the last. */
static int predict_variants(struct predict_args *a, struct err *err)
{
    const struct variants_opts o = {
        .job = &a->job, .budget = &a->budget, .asked = &a->asked, .ask = ask_one, .ctx = a};
    struct variants v;
    int rc = variants_make(&v, &o, err);

    if (rc == 0 && v.steps == 0)
        rc = err_code(err, v.code, "%s", v.row[v.rows - 1].why);
    if (rc == 0)
        rc = json_answer(variants_json(&v), a->output, a->json, err);
    if (rc == 0 && !a->json)
        variants_text(stdout, &v, &a->job);
    if (rc == 0)
        rc = v.fitting ? EXIT_GOOD : EXIT_BELOW;
    variants_free(&v);
    variants_asked_free(&a->asked);
    return rc;
}

/* --- old spellings: --batch TABLE and --case NAME --- */

static int run_old(const struct predict_args *a, struct err *err)
{
    const char *name = a->old.tables ? "score" : "claims";
    struct words w = {NULL, 0};

    words_add(&w, "%s %s", CALIBRATE_PROGRAM, name);
    log_info("predict --%s is now %s %s; the old options end with the next release",
             a->old.tables ? "batch TABLE" : "case", CALIBRATE_PROGRAM, name);
    for (int i = 0; i < a->old.tables; i++)
        words_add(&w, "%s", a->old.table[i]);
    for (int i = 0; !a->old.tables && i < a->old.names; i++)
        words_add(&w, "%s", a->old.name[i]);
    for (int i = 0; i < a->old.leave_outs; i++)
        words_add(&w, "--leave-out=%s", a->old.leave_out[i]);
    if (a->old.leave_one_out)
        words_add(&w, "--leave-one-out=%s", a->old.leave_one_out);
    if (a->old.tables && !a->old.score)
        words_add(&w, "--rows");
    if (!a->old.tables && a->old.markdown)
        words_add(&w, "--markdown");
    if (a->job.constants)
        words_add(&w, "--constants=%s", a->job.constants);
    if (a->json)
        words_add(&w, "--json");
    if (a->output)
        words_add(&w, "--output=%s", a->output);
    int rc = (a->old.tables ? &score_command : &claims_command)->run(w.count, w.word, err);
    words_free(&w);
    return rc;
}

static int predict_old(const struct predict_args *a, struct err *err)
{
    const struct job_opts *o = &a->job;

    if (!a->old.tables && (o->matrix || o->fabric || o->layout || o->gpus || o->racks))
        return err_usage(err, "--case has its own jobs: of the options that say which job, only "
                              "--constants goes with it");
    int rc = run_old(a, err);
    free(a->old.table);
    free(a->old.leave_out);
    free(a->old.name);
    return rc;
}

/* --- the command --- */

static int cmd_predict(int argc, char **argv, struct err *err)
{
    struct predict_args a = {.trace = NULL};
    struct job j;

    job_defaults(&a.job);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    if (a.old.tables || a.old.names)
        return predict_old(&a, err);
    if (a.asked.counts == 1) { /* a count given for the job itself */
        a.job.gpus = a.asked.gpus[0];
        a.asked.counts = 0;
    }
    if (asks_several(&a))
        return predict_variants(&a, err);
    bool fits = false;
    int rc = job_open(&j, &a.job, err) < 0 || answer(&j, &a, &fits, err) < 0;
    job_free(&j);
    variants_asked_free(&a.asked);
    return rc ? -1 : fits ? EXIT_GOOD : EXIT_BELOW;
}

const struct command predict_command = {&command, cmd_predict};
