/* SPDX-License-Identifier: BSD-3-Clause */
/* search.c - railgauge search: best layouts of a model on a number of GPUs. */
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
#include "calibrate/anchor.h"
#include "cmd/command.h"
#include "step/job.h"
#include "step/predict.h"
#include "step/search/search.h"

struct search_args {
    struct job_opts job;
    const char **constraint; /* as typed, in the given order */
    int constraints;
    int top, flags;
    const char *output, *tsv;
    const char *anchor, *release;
    bool json;
};

/* The framework plus one; 0: not given. */
static int take_flags(void *args, char *arg, struct err *err)
{
    struct search_args *a = args;

    a->flags = recipe_word("framework", arg, framework_name, FRAMEWORK_COUNT, err) + 1;
    return a->flags ? 0 : -1;
}

static const struct opt options[] = {
    {"anchor", 0, "FILE|ROW", "measured step of this recipe, as in railgauge predict",
     OPT_INTO(struct search_args, anchor)},
    {"release", 0, "TEXT", "software release, for constants and anchors: \"megatron-bridge 26.04\"",
     OPT_INTO(struct search_args, release)},
    {"constraint", 'c', "TEXT",
     "condition KEY=VALUE, with = != < <= > >= and alternatives by |: "
     "\"tp<=8,pp=1,strategy=fsdp|hsdp\"; several add up",
     OPT_LIST(struct search_args, constraint, constraints)},
    {"top", 0, "N", "number of layouts to list (default 10)",
     OPT_INT(struct search_args, top, 1, SEARCH_TOP_MAX)},
    {"flags", 0, "NAME", "print the first layout as options of a framework: megatron, torchtitan",
     OPT_CALL(take_flags), .words = framework_name, .known = FRAMEWORK_COUNT},
    {"json", 0, NULL, "print search.json instead of text", OPT_INTO(struct search_args, json)},
    {"tsv", 0, "FILE", "also write the list as a table; - prints it instead of text",
     OPT_INTO(struct search_args, tsv)},
    {"output", 'o', "FILE", "also write search.json", OPT_INTO(struct search_args, output)},
    {0},
};

static const struct opt words[] = {{"matrix", OPT_INTO(struct search_args, job.matrix)}, {0}};

static int refuse_layout(void *args, struct err *err)
{
    const struct search_args *a = args;

    if (!a->job.layout)
        return 0;
    return err_usage(err,
                     "a search finds the layout: say --constraint \"%s\" where it is to be kept",
                     a->job.layout);
}

static const struct opt_line command = {
    .check = refuse_layout,
    .words = words,
    .set = {JOB_OPTIONS(struct search_args, job), {.rows = options}},
    .usage = "[MATRIX]",
    .doc = "Find the layouts with the shortest step: every layout of the GPUs that "
           "divides the model, with every strategy, pipeline, micro batch and "
           "recomputation, priced on MATRIX or a preset.\vKeys of constraints are the "
           "axes (pp, dp, dp_shard, dp_replicate, cp, tp, ep, etp) and the settings that "
           "vary. An option such as --strategy fixes its setting.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Search for a large model on a preset",
                        "railgauge search --fabric gb200-nvl72 --model llama3.1-405b --gpus 1024"),
            OPT_EXAMPLE(
                "Limit the layouts",
                "railgauge search matrix.json --model llama3.1-8b --constraint 'tp<=8,pp=1'"),
            OPT_EXAMPLE("List the best 20 of a mixture of experts",
                        "railgauge search --fabric hgx-h100 --model mixtral-8x7b \\\n"
                        "      --gpus 256 --dtype fp8 --top 20 \\\n"
                        "      --constraint 'ep>=8,strategy=zero1,recompute=none|selective'"),
            OPT_EXAMPLE("Print the list as a table",
                        "railgauge search matrix.json --model llama3.1-8b --tsv -"),
            {0}},
    .exits = EXIT_CODES("1 nothing fits in a GPU's memory, 2 nothing can be priced, ", ""),
};

static void head(FILE *out, const struct search *s, const struct job *j)
{
    const struct recipe *r = &s->best[0].candidate.recipe;
    const struct search_finalist *f = s->best;
    char sec[UNITS_TEXT], lo[UNITS_TEXT], hi[UNITS_TEXT];

    while (f->over > 1 && f < s->best + s->bests - 1)
        f++;
    const struct prediction *p = &f->step;
    table_wrap(out, 2, "%s on %d of %d endpoints%s%s, batch %d x %d tokens, %s", j->model.name,
               s->ranks, j->matrix.topo.endpoints, j->matrix.fabric ? " of " : "",
               j->matrix.fabric ? j->matrix.fabric : "", s->batch, s->seq,
               recipe_name.dtype[r->dtype]);
    fprintf(out, "%ld layouts and recipes in %.2f s: %ld priced, %ld excluded by a lower bound\n",
            s->priced + s->bounded, s->sec, s->priced, s->bounded);
    fprintf(out, "fastest: %s (90 %% interval: %s to %s), %.0f tokens/s per GPU\n\n",
            units_seconds_text(sec, p->sec), units_seconds_text(lo, p->lo),
            units_seconds_text(hi, p->hi), p->tokens_per_gpu);
}

/* Settings besides the axes: "zero1, v=4, micro batch 2, recompute full". */
static char *recipe_words(char buf[160], const struct recipe *r)
{
    static const bool odd[SCHEDULE_COUNT] = {
        [SCHEDULE_ZB_H1] = true, [SCHEDULE_ZB_H2] = true, [SCHEDULE_DUALPIPE] = true};
    int used = snprintf(buf, 160, "%s", recipe_name.strategy[r->strategy]);

    if (odd[r->schedule])
        used += snprintf(buf + used, 160 - (size_t)used, ", %s", recipe_name.schedule[r->schedule]);
    if (r->stages > 1)
        used += snprintf(buf + used, 160 - (size_t)used, ", %d stages", r->stages);
    used += snprintf(buf + used, 160 - (size_t)used, ", micro batch %d", r->micro_batch);
    if (r->recompute != RECOMPUTE_NONE)
        snprintf(buf + used, 160 - (size_t)used, ", recompute %s",
                 recipe_name.recompute[r->recompute]);
    return buf;
}

/* "= +0.8 +- 24 %": of the fastest's time; = if the two are not distinguishable. */
static char *over_words(char buf[48], const struct search_finalist *f)
{
    int used = snprintf(buf, 48, "%s %+.1f", f->alike ? "=" : " ", 100 * (f->over - 1));

    if (f->over == 1)
        snprintf(buf, 48, "= fastest");
    else if (isfinite(f->error))
        snprintf(buf + used, 48 - (size_t)used, " +- %.0f %%", 100 * expm1(f->error));
    return buf;
}

static void list(FILE *out, const struct search_finalist *f, int n)
{
    static const struct table_column columns[] = {{NULL, "#", "count"},
                                                  {NULL, "step", "seconds"},
                                                  {NULL, "than fastest", "figure"},
                                                  {NULL, "MFU", "%.1f %%"},
                                                  {NULL, "memory", "figure"},
                                                  {NULL, "layout and recipe", "text"},
                                                  {0}};
    char recipe[160], both[256], over[48], memory[32];
    bool some = false;
    struct table t;

    table_open(&t, columns);
    for (int i = 0; i < n; i++, f++) {
        bool doubt = memory_fit(&f->step.memory) == MEMORY_MAY_NOT_FIT;
        snprintf(memory, sizeof(memory), "%.1f GB%s", f->candidate.bytes / 1e9, doubt ? "?" : "");
        snprintf(both, sizeof(both), "%s, %s", f->step.layout,
                 recipe_words(recipe, &f->candidate.recipe));
        table_add(&t, i + 1, f->step.sec, over_words(over, f), 100 * f->step.mfu, memory, both);
        some |= doubt;
    }
    table_print(out, &t, 0);
    table_free(&t);
    if (some)
        fputs("?: may not fit, the interval of its memory reaches beyond the GPU's\n", out);
}

/* Ranges "1-7, 9" of equal layouts. */
static void alike_ranges(FILE *out, const struct search *s)
{
    const char *joint = "";

    for (int i = 0, end; i < s->bests; i = end + 1) {
        for (end = i; end < s->bests && s->best[end].alike; end++)
            ;
        if (end == i)
            continue;
        fprintf(out, end - i > 1 ? "%s%d-%d" : "%s%d", joint, i + 1, end);
        joint = ", ";
    }
}

/* Print the ties, and why the first is first if not by its time. */
static void ties(FILE *out, const struct search *s)
{
    int alike = 0, equals = search_equals(s);
    double widest = 0;
    char *text;
    size_t size;

    for (int i = 0; i < s->bests; i++) {
        alike += s->best[i].alike;
        widest = s->best[i].alike && s->best[i].over > 1 ? fmax(widest, s->best[i].error) : widest;
    }
    if (alike < 2)
        return;
    FILE *line = mem_stream(&text, &size);
    fputs(alike == s->bests ? "none of " : "", line);
    alike_ranges(line, s);
    fprintf(line,
            " can%s be told apart from the fastest: a comparison of two layouts is good for %.0f "
            "%%, without the errors that both share",
            alike == s->bests ? "" : "not", 100 * expm1(widest));
    if (equals > 1)
        fprintf(line,
                "; %d are within %.0f %% of it, the simplest first (fewest axes, no context "
                "parallelism of short sequences, plain schedule, no recompute, memory that fits)",
                equals, 100 * SEARCH_EQUAL);
    mem_stream_end(line);
    fputc('\n', out);
    table_wrap(out, 0, "%s", text);
    free(text);
}

static void why(FILE *out, const struct search *s)
{
    int next = s->whys - s->rivals;

    if (s->whys)
        fprintf(out, "\n%s\n",
                s->best[0].over > 1 ? "the first, beside others" : "why the first wins");
    for (int i = 0; i < s->whys; i++) {
        const struct search_finalist *f = i < next ? &s->best[1] : &s->rival[i - next];
        table_wrap(out, 6, "  %s%s (%s, %+.1f %%%s%s): %s",
                   i < next ? "over the next" : "over the best of ", i < next ? "" : f->family,
                   f->step.layout, 100 * (f->step.sec / s->best[0].step.sec - 1),
                   f->alike ? ", not told apart" : "", f->candidate.tight ? ", may not fit" : "",
                   s->why[i]);
    }
}

/* Layouts slower than twice the best save memory, which only --json shows. */
static void front(FILE *out, const struct search *s)
{
    int shown = 0;

    while (shown < s->fronts && s->front[shown].step.sec <= 2 * s->best[0].step.sec)
        shown++;
    fprintf(out, "\nmemory against time: no other is both faster and smaller\n");
    list(out, s->front, shown);
    if (shown < s->fronts)
        fprintf(out, "and %d that take more than twice as long, down to %.1f GB\n",
                s->fronts - shown, s->front[s->fronts - 1].candidate.bytes / 1e9);
}

static void dropped(FILE *out, const struct search *s)
{
    const struct {
        long count;
        const char *why;
    } rows[] = {
        {s->unfit, "layouts and recipes do not fit in memory as predicted"},
        {s->may_fit, "of these, and their larger micro batches, may fit within the error of that"},
        {s->dead, "layouts and recipes need a dead part"},
        {s->unknown, "layouts and recipes need a cost that the matrix does not have"},
        {s->count.refused_candidates,
         "recipes: stages or micro batch do not divide layers or batch"},
    };

    fprintf(out, "\ndropped, of %ld meshes and %ld recipes on them\n", s->count.meshes,
            s->count.candidates);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].count)
            table_wrap(out, 11, "%10ld %s", rows[i].count, rows[i].why);
    for (int i = 0; i < REFUSALS; i++)
        if (s->count.refused[i])
            table_wrap(out, 11, "%10ld meshes: %s", s->count.refused[i], refusal_name[i]);
    if (!(s->capacity > 0))
        fprintf(out, "the memory of this GPU is not known: nothing was dropped for it\n");
}

/* Print the best, why the first wins, memory against time, dropped layouts, and how to repeat the
 * search. */
static void search_text(FILE *out, const struct search *s, const struct job *j, const char *again)
{
    head(out, s, j);
    list(out, s->best, s->bests);
    ties(out, s);
    why(out, s);
    front(out, s);
    dropped(out, s);
    fprintf(out, "\nthe first with every term:\n  %s\n", again);
}

/* Print the best as a TSV with a header line; bytes and seconds. */
static void search_tsv(FILE *out, const struct search *s)
{
    fprintf(out,
            "rank\tstep_s\tlo_s\thi_s\ttokens_per_s_per_gpu\tmfu\tmemory_bytes\tfront\tlayout\t"
            "strategy\tschedule\tstages_per_rank\tmicro_batch\trecompute\tfamily\t"
            "over_fastest\tover_error\talike\n");
    for (int i = 0; i < s->bests; i++) {
        const struct search_finalist *f = &s->best[i];
        const struct recipe *r = &f->candidate.recipe;
        fprintf(out,
                "%d\t%.9g\t%.9g\t%.9g\t%.9g\t%.6g\t%.9g\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t"
                "%.6g\t%.3g\t%s\n",
                i + 1, f->step.sec, f->step.lo, f->step.hi, f->step.tokens_per_gpu, f->step.mfu,
                f->candidate.bytes, f->front ? "yes" : "no", f->step.layout,
                recipe_name.strategy[r->strategy], recipe_name.schedule[r->schedule], r->stages,
                r->micro_batch, recipe_name.recompute[r->recompute], f->family, f->over, f->error,
                f->alike ? "yes" : "no");
    }
}

/* Write a word, in single quotes if the shell would change it. */
static void put_word(FILE *out, const char *word)
{
    if (*word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_./,=:+-@%")] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

static void put_option(FILE *out, const char *key, const char *value)
{
    if (!value)
        return;
    fprintf(out, " --%s ", key);
    put_word(out, value);
}

static void put_job(FILE *out, const struct job_opts *o, const struct argument *a)
{
    const void *at = (const char *)o + a->at;
    char text[64]; /* for a word or a number: typed text may be longer */

    if (argument_given(o, a))
        put_option(out, a->key,
                   a->kind == ARGUMENT_TEXT ? *(const char *const *)at
                                            : argument_get(text, sizeof(text), o, a));
}

/* "railgauge predict ..." with the candidate's step, quoted for the shell.  The caller frees. */
static char *predict_words(const struct search_args *a, const struct search_candidate *c)
{
    const struct job_opts *o = &a->job;
    char layout[96], mine[64], usual[64], *text;
    struct recipe defaults;
    size_t size;
    FILE *out = mem_stream(&text, &size);

    recipe_defaults(&defaults);
    fputs("railgauge predict", out);
    if (o->matrix) {
        fputc(' ', out);
        put_word(out, o->matrix);
    }
    for (const struct argument *x = job_argument; x->key; x++)
        if (strcmp(x->key, "layout") != 0 && strcmp(x->key, "gpus") != 0)
            put_job(out, o, x);
    if (c->layout.ranks > 1)
        fprintf(out, " --layout %s", layout_text(layout, sizeof(layout), &c->layout));
    else
        fputs(" --layout dp=1", out);
    for (const struct argument *x = recipe_argument; x->key; x++) {
        argument_get(mine, sizeof(mine), &c->recipe, x);
        argument_get(usual, sizeof(usual), &defaults, x);
        if (strcmp(mine, usual) != 0)
            fprintf(out, " --%s %s", x->key, mine);
    }
    put_option(out, "anchor", a->anchor);
    put_option(out, "release", a->release);
    mem_stream_end(out);
    return text;
}

static int write_tsv(const struct search *s, const char *path, struct err *err)
{
    struct file_out f;

    if (file_begin(&f, path, err) < 0)
        return -1;
    search_tsv(f.stream, s);
    return file_commit(&f, err);
}

static int answer(const struct search *s, const struct job *j, const struct search_args *a,
                  struct err *err)
{
    char *again = predict_words(a, &s->best[0].candidate);
    json_t *json = search_json(s, j->model.name, again);
    bool tsv = a->tsv && !strcmp(a->tsv, "-");
    int rc = a->tsv && !tsv ? write_tsv(s, a->tsv, err) : 0;

    rc = json_answer(json, rc == 0 ? a->output : NULL, rc == 0 && a->json && !tsv && !a->flags,
                     err) < 0
             ? -1
             : rc;
    if (rc == 0 && a->flags)
        framework_flags(stdout, (enum framework)(a->flags - 1), &j->model,
                        &s->best[0].candidate.layout, &s->best[0].candidate.recipe);
    else if (rc == 0 && tsv)
        search_tsv(stdout, s);
    else if (rc == 0 && !a->json)
        search_text(stdout, s, j, again);
    free(again);
    return rc;
}

static int find(struct search *s, const struct job *j, const struct search_args *a, int ranks,
                struct err *err)
{
    struct question q = job_question(j, &a->job);
    q.release = a->release;
    struct anchor anchor = {0};
    struct space space;

    if (a->anchor) {
        int rc = anchor_open(&anchor, a->anchor, q.constants, err) < 0 ||
                 anchor_apply(&anchor, &q, a->release, err) < 0;
        anchor_free(&anchor);
        if (rc)
            return -1;
    }
    space_init(&space, ranks, (enum mesh_order)a->job.mesh, &a->job.recipe);
    for (int i = 0; i < a->constraints; i++)
        if (space_constrain(&space, a->constraint[i], err) < 0)
            return -1;
    return search_run(s, &q, &space, a->top, 0, err);
}

static int cmd_search(int argc, char **argv, struct err *err)
{
    struct search_args a = {.top = 10};
    struct search s = {0};
    struct job j;
    int ranks;

    job_defaults(&a.job);
    space_open(&a.job.recipe);
    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    int rc = job_open_ranks(&j, &a.job, &ranks, err) < 0 || find(&s, &j, &a, ranks, err) < 0 ||
             answer(&s, &j, &a, err) < 0;
    search_free(&s);
    job_free(&j);
    free(a.constraint);
    return rc ? -1 : EXIT_GOOD;
}

const struct command search_command = {&command, cmd_search};
