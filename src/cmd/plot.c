/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - railgauge plot: pictures of a campaign, a matrix or predictions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "cmd/campaigns_impl.h"
#include "cmd/command.h"
#include "cmd/input_impl.h"
#include "report/plot/pair_map.h"
#include "report/plot/plot.h"
#include "report/text/report.h"

/* A picture from PLOT_STEP on, with files.  A path that is not a file but LABEL=FILE names the
 * steps, or the campaign. */
struct plot_files {
    enum plot_figure figure;
    struct pair_only only;
    const char **path;
    int paths, top;            /* top 0: STEP_TOP */
    const char *measured, *by; /* or NULL */
};

/* Contents of the files. */
struct held {
    struct step_bars steps;
    struct scaling scaling;
    struct tsv score;
    bool has_score;
    struct campaigns campaigns;
    struct history history;
    char *name[2];
};

/* File of LABEL=FILE; if a file with this whole name exists, it is the file. */
static const char *file_of(const char *word)
{
    const char *equal = strchr(word, '=');

    return equal && access(word, F_OK) < 0 ? equal + 1 : word;
}

static int load_steps(struct held *h, const struct plot_files *f, struct err *err)
{
    for (int i = 0; i < f->paths; i++) {
        const char *file = file_of(f->path[i]);
        char *label = mem_strdup(f->path[i]);
        label[file > f->path[i] ? file - f->path[i] - 1 : 0] = '\0';
        int rc = step_bars_add(&h->steps, *label ? label : NULL, file, err);
        free(label);
        if (rc < 0)
            return -1;
    }
    return f->measured ? step_bars_measured(&h->steps, f->measured, err) : 0;
}

static int load_scaling(struct held *h, const struct plot_files *f, struct err *err)
{
    const char *file = file_of(f->path[0]);

    if (f->paths == 1 && access(file, R_OK) == 0 && !step_is_json(file)) {
        if (f->measured)
            return err_usage(err, "--measured: %s has a column for that", file);
        return scaling_load(&h->scaling, file, err);
    }
    if (load_steps(h, f, err) < 0)
        return -1;
    return scaling_of_steps(&h->scaling, &h->steps, err);
}

/* LABEL, else the last part of a path; for DIR/matrix.json that of DIR.  The caller frees. */
static char *name_of(const char *word)
{
    static const char matrix[] = "/matrix.json";
    const char *file = file_of(word);
    size_t len = strlen(word), cut = sizeof(matrix) - 1, from;

    if (file > word)
        return mem_strndup(word, (size_t)(file - word) - 1);
    if (len > cut && !strcmp(word + len - cut, matrix))
        len -= cut;
    while (len > 1 && word[len - 1] == '/')
        len--;
    for (from = len; from > 0 && word[from - 1] != '/';)
        from--;
    return mem_strndup(word + from, len - from);
}

static int load_campaigns(struct held *h, const struct plot_files *f, struct err *err)
{
    static const double tolerance = 0.01; /* same as in compare */
    const char **dir = mem_calloc((size_t)f->paths, sizeof(*dir));

    for (int i = 0; i < f->paths; i++)
        dir[i] = file_of(f->path[i]);
    int rc = campaigns_open(&h->campaigns, dir, f->paths, f->figure == PLOT_HISTORY, err);
    if (rc == 0 && f->figure == PLOT_HISTORY)
        rc = history_make(&h->history, h->campaigns.campaign, f->paths, tolerance, err);
    for (int i = 0; i < 2 && f->figure == PLOT_COMPARE; i++)
        h->name[i] = name_of(f->path[i]);
    free(dir);
    return rc;
}

static int load(struct held *h, const struct plot_files *f, struct err *err)
{
    *h = (struct held){.has_score = false};
    if (f->figure >= PLOT_HISTORY)
        return load_campaigns(h, f, err);
    if (f->figure == PLOT_STEP)
        return load_steps(h, f, err);
    if (f->figure == PLOT_SCALING)
        return load_scaling(h, f, err);
    if (f->paths > 1)
        return err_usage(err, "score is drawn of one table, and %d are given", f->paths);
    h->has_score = score_table_load(&h->score, f->path[0], err) == 0;
    return h->has_score ? 0 : -1;
}

static void release(struct held *h)
{
    step_bars_free(&h->steps);
    scaling_free(&h->scaling);
    if (h->has_score)
        tsv_free(&h->score);
    history_free(&h->history);
    campaigns_free(&h->campaigns);
    free(h->name[0]);
    free(h->name[1]);
}

static struct plot_source source_of(const struct held *h, const struct plot_files *f)
{
    return (struct plot_source){.steps = &h->steps,
                                .top = f->top,
                                .scaling = &h->scaling,
                                .score = &h->score,
                                .by = f->by,
                                .only = f->only,
                                .history = &h->history,
                                .pair = h->campaigns.campaign,
                                .pair_name = {h->name[0], h->name[1]}};
}

/* With several campaigns, use the directory of the last. */
static char *folder_of(const struct plot_files *f)
{
    return plot_folder(file_of(f->path[f->figure >= PLOT_HISTORY ? f->paths - 1 : 0]));
}

static int plot_files_draw(const struct plot_files *f, const char *out, enum plot_format format,
                           const struct plot_look *look, struct plot_result *r, struct err *err)
{
    struct held h;
    int rc = load(&h, f, err);

    *r = (struct plot_result){.gnuplot = true};
    if (rc == 0) {
        const struct plot_source s = source_of(&h, f);
        char *folder = out ? mem_strdup(out) : folder_of(f);
        rc = plot_draw(&s, folder, 1u << f->figure, format, look, r, err);
        free(folder);
    }
    release(&h);
    return rc;
}

static int plot_files_print(const struct plot_files *f, struct err *err)
{
    struct held h;
    int rc = load(&h, f, err);

    if (rc == 0 && f->figure == PLOT_STEP)
        rc = plot_text_step(stdout, &h.steps, f->top, table_width(stdout), err);
    else if (rc == 0 && f->figure == PLOT_SCALING)
        rc = plot_text_scaling(stdout, &h.scaling, err);
    else if (rc == 0 && f->figure == PLOT_HISTORY)
        history_print(stdout, &h.history, false);
    else if (rc == 0 && f->figure == PLOT_COMPARE) {
        const struct plot_source s = source_of(&h, f);
        rc = plot_text_compare(stdout, &s, err);
    } else if (rc == 0)
        rc = plot_text_score(stdout, &h.score, f->by, err);
    release(&h);
    return rc;
}

/* --- the command --- */

struct args {
    const char *path, *out;
    unsigned figures;
    enum plot_format format;
    struct plot_look look;
    struct pair_only only;
    bool terminal, json;
    struct plot_files files; /* figure: step, scaling or score from files; else from path */
    bool of_files;
};

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static int take_format(void *args, char *name, struct err *err)
{
    struct args *a = args;
    int format = find(plot_extension, PLOT_FORMATS, name);

    if (format < 0)
        return err_usage(err, "\"%s\" is none of png, svg, pdf", name);
    a->format = (enum plot_format)format;
    return 0;
}

static int take_size(void *args, char *size, struct err *err)
{
    return plot_size(&((struct args *)args)->look, size, err);
}

static int take_only(void *args, char *names, struct err *err)
{
    struct args *a = args;

    for (char *next = names, *name; (name = strsep(&next, ","));) {
        if (!*name)
            return err_usage(err, "--only: a name is missing in \"%.60s\"", names);
        MEM_PUSH(a->only.name, a->only.names) = name;
    }
    return 0;
}

/* If the first word names a picture of predictions or of several campaigns, the others are
 * files. */
static int take_word(void *args, char *word, struct err *err)
{
    struct near near = {.word = word};
    struct args *a = args;
    int figure = find(plot_name, PLOT_FIGURES, word);

    if (a->of_files)
        MEM_PUSH(a->files.path, a->files.paths) = word;
    else if (!a->path && figure >= PLOT_STEP) {
        a->of_files = true;
        a->files.figure = (enum plot_figure)figure;
    } else if (!a->path)
        a->path = word;
    else if (!strcmp(word, "all"))
        a->figures |= PLOT_ALL;
    else if (figure >= 0 && figure <= PLOT_STEP)
        a->figures |= 1u << figure;
    else if (figure >= 0)
        return err_usage(err, "%s is drawn of files: railgauge plot %s FILE...", word, word);
    else {
        for (int i = 0; i <= PLOT_STEP; i++)
            near_try(&near, plot_name[i]);
        return err_usage(err,
                         "no picture \"%s\"%s; there are tiers, busbw, heat, dist, step and all",
                         word, near_text(&near));
    }
    return 0;
}

static void each_format(name_taker *take, void *to)
{
    for (int i = 0; i < PLOT_FORMATS; i++)
        take(to, plot_extension[i]);
}

static void each_figure(name_taker *take, void *to)
{
    for (int i = 0; i < PLOT_FIGURES; i++)
        take(to, plot_name[i]);
}

static const struct opt options[] = {
    {"format", 'f', "FORMAT", "png, svg or pdf (default png)", OPT_CALL(take_format),
     .values = each_format},
    {"output", 'o', "OUTDIR",
     "directory of the pictures (default: plots/ of a campaign, NAME-plots beside a file)",
     OPT_INTO(struct args, out)},
    {"title", 0, "TEXT", "title instead of the picture's own", OPT_INTO(struct args, look.title)},
    {"size", 0, "SIZE", "slide, paper or WIDTHxHEIGHT in pixels (pdf: in 1/200 inch)",
     OPT_CALL(take_size)},
    {"only", 0, "NAME,...", "draw only pairs of these tiers and racks", OPT_CALL(take_only)},
    {"palette", 0, "NAME",
     "colours of lines: okabe-ito, tol-bright, tol-vibrant, petroff or grey (default okabe-ito)",
     OPT_INTO(struct args, look.palette)},
    INPUT_JSON(struct args, json),
    {"terminal", 't', NULL, "print heat or step in the terminal instead of drawing",
     OPT_INTO(struct args, terminal)},
    {"measured", 0, "LIST", "step, scaling: measured seconds of the steps: 4.7,-,5.1",
     OPT_INTO(struct args, files.measured)},
    {"top", 0, "N", "step: draw only the first N (default 20, at most 60)",
     OPT_INT(struct args, files.top, 1, STEP_TOP_MAX)},
    {"by", 0, "COLUMN", "score: column that sets the colour (default hardware, else family)",
     OPT_INTO(struct args, files.by)},
    {0},
};

static const struct opt words[] = {{"input", .help = "which campaign or matrix?",
                                    OPT_CALL(take_word), .repeats = true, .values = each_figure},
                                   {0}};

static int fit_figures(void *args, struct err *err)
{
    static const char *const holds[] = {"predictions", "predictions or which table",
                                        "table of predict --batch", "campaigns", "campaigns"};
    const struct args *a = args;
    const struct plot_files *f = &a->files;

    if (a->of_files && !f->paths)
        return err_usage(err, "%s: which %s?", plot_name[f->figure], holds[f->figure - PLOT_STEP]);
    if (a->of_files && f->figure == PLOT_HISTORY && f->paths < HISTORY_LEAST)
        return err_usage(err, "a history is of %d campaigns or more", HISTORY_LEAST);
    if (a->of_files && f->figure == PLOT_COMPARE && f->paths != 2)
        return err_usage(err, "two campaigns are compared; history takes more");
    if (a->only.names &&
        (a->of_files ? f->figure < PLOT_HISTORY
                     : !a->figures || a->figures & ~(1u << PLOT_HEAT | 1u << PLOT_DIST)))
        return err_usage(err,
                         "--only is for heat, dist, history and compare: the others are not of "
                         "pairs");
    if (a->terminal && !a->of_files && a->figures & ~(1u << PLOT_HEAT | 1u << PLOT_STEP) &&
        a->figures != PLOT_ALL)
        return err_usage(err,
                         "--terminal shows heat and step; the numbers of busbw: railgauge show "
                         "MATRIX collectives; those of dist are in OUTDIR/data");
    if (f->measured && (!a->of_files || f->figure == PLOT_SCORE))
        return err_usage(err, "--measured is for step and scaling");
    if (f->top && (!a->of_files || f->figure != PLOT_STEP))
        return err_usage(err, "--top is for step");
    if (f->by && (!a->of_files || f->figure != PLOT_SCORE))
        return err_usage(err, "--by is for score");
    return 0;
}

static const struct opt_line command = {
    .options = options,
    .words = words,
    .check = fit_figures,
    .usage = "DIR|MATRIX [tiers|busbw|heat|dist|step|all]...\n"
             "step|scaling [LABEL=]PREDICTION...\n"
             "scaling|score TABLE\n"
             "history DIR DIR DIR...\n"
             "compare [LABEL=]DIR|MATRIX|PRESET [LABEL=]...",
    .doc = "Draw a campaign directory, a cost matrix, predictions, or several "
           "campaigns.\vtiers: bandwidth and latency by message size, a line per kind of link. "
           "busbw: bus bandwidth by message size, with expected and peak. "
           "heat: bandwidth of every pair, and its share of what such pairs give. dist: "
           "distribution of the pairs of each kind, and their slow tail. step: terms of "
           "predicted steps (JSON of predict, search or railgauge-calibrate score). "
           "scaling: speed per GPU by number of GPUs (predictions, or a table with "
           "series, gpus and tokens_per_gpu or seconds). score: predicted against "
           "measured steps (of railgauge-calibrate score). history: each figure from "
           "campaign to campaign (JSON of compare --history). compare: two campaigns, "
           "matrices or presets in one picture.\n"
           "The tables behind the pictures are left in OUTDIR/data. Pictures need "
           "gnuplot 5.4 or newer; without it the same is printed in the terminal.",
    .examples =
        (const struct opt_example[]){
            OPT_EXAMPLE("Draw all pictures of a campaign", "railgauge plot campaign"),
            OPT_EXAMPLE("Draw the map of pairs as SVG",
                        "railgauge plot campaign heat --format svg -o pictures"),
            OPT_EXAMPLE("Print the map of pairs in the terminal",
                        "railgauge plot --terminal matrix.json"),
            OPT_EXAMPLE("Compare two predicted steps with measured ones",
                        "railgauge plot step fsdp.json tp8.json --measured 4.7,5.1"),
            OPT_ELSEWHERE("Draw the scaling of two fabrics",
                          "railgauge plot scaling rail=r64.json rail=r512.json tree=t512.json"),
            OPT_EXAMPLE(
                "Compare two campaigns",
                "railgauge plot compare before=last-month after=today --title 'New firmware'"),
            {0}},
    .exits = EXIT_CODES("", ", 78 configuration"),
};

static int print_terminal(const struct args *a, struct err *err)
{
    struct points *p;
    struct matrix m;
    struct pair_map ps;
    int rc;

    if (plot_load(a->path, &m, &p, err) < 0)
        return -1;
    rc = pair_map_init(&ps, &m, p, NULL, err);
    if (rc == 0) {
        pair_map_print(stdout, &ps, table_width(stdout), log_colour(stdout));
        pair_map_free(&ps);
    }
    matrix_free(&m);
    if (p)
        points_free(p);
    free(p);
    return rc;
}

/* Print for --terminal the pair maps of a campaign, or its predicted steps. */
static int print_figures(const struct args *a, struct err *err)
{
    struct plot_files steps = {.figure = PLOT_STEP};
    int rc = 0;

    if (a->figures == PLOT_ALL || a->figures & (1u << PLOT_HEAT))
        rc = print_terminal(a, err);
    if (rc == 0 && a->figures != PLOT_ALL && a->figures & (1u << PLOT_STEP)) {
        char *file = file_join(a->path, "prediction.json");
        MEM_PUSH(steps.path, steps.paths) = file;
        rc = plot_files_print(&steps, err);
        free(file);
        free(steps.path);
    }
    return rc;
}

/* Draw, or print if gnuplot is missing. */
static int draw(const struct args *a, struct err *err)
{
    struct plot_result r;
    int rc = a->of_files ? plot_files_draw(&a->files, a->out, a->format, &a->look, &r, err)
                         : plot_campaign(a->path, NULL, a->out, a->figures, a->format, &a->only,
                                         &a->look, &r, err);

    json_t *list = a->json ? json_array() : NULL;
    for (int i = 0; rc == 0 && i < PLOT_FIGURES; i++) {
        if (r.file[i] && list)
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "figure", plot_name[i], "file", r.file[i]));
        else if (r.file[i])
            puts(r.file[i]);
        else if (r.why[i] && r.gnuplot)
            log_warn("%s: %s", plot_name[i], r.why[i]);
    }
    list = json_framed("railgauge-plot", "files", list);
    if (json_answer(list, NULL, rc == 0 && list, err) < 0)
        rc = -1;
    if (rc == 0 && !r.gnuplot && a->json)
        log_warn("no pictures: gnuplot was not found in PATH");
    else if (rc == 0 && !r.gnuplot) {
        log_warn("no pictures: gnuplot was not found in PATH (Debian: apt-get install "
                 "gnuplot-nox); their tables are written, and %s here",
                 a->of_files ? "the numbers follow" : "the pair maps follow");
        rc = a->of_files ? plot_files_print(&a->files, err) : print_terminal(a, err);
    }
    plot_result_free(&r);
    return rc;
}

static int cmd_plot(int argc, char **argv, struct err *err)
{
    struct args a = {0};
    int rc;

    opt_parse(&command, argc, argv, OPT_EXITS, &a);
    a.files.only = a.only;
    if (!a.figures)
        a.figures = PLOT_ALL;
    if (!a.terminal)
        rc = draw(&a, err);
    else
        rc = a.of_files ? plot_files_print(&a.files, err) : print_figures(&a, err);
    free(a.files.path);
    free(a.only.name);
    return rc;
}

const struct command plot_command = {&command, cmd_plot};
