/* plot.c - railgauge plot: pictures of a campaign, a matrix or predictions. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/plot_files.h"
#include "emit/pairs.h"
#include "emit/plot.h"
#include "emit/term.h"

enum { MEASURED = 0x400, TOP, BY };

struct args {
    const char *path, *out;
    unsigned figures;
    enum plot_format format;
    bool terminal;
    struct plot_files files; /* figure: step, scaling or score of files; else of path */
    bool of_files;
};

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "png (default), svg or pdf", 0},
    {"output", 'o', "OUTDIR", 0, "folder for the pictures (default: plots/ beside the input)", 0},
    {"terminal", 't', NULL, 0, "print it here instead of drawing pictures", 0},
    {"measured", MEASURED, "LIST", 0, "step, scaling: measured seconds of the steps: 4.7,-,5.1", 0},
    {"top", TOP, "N", 0, "step: only the first N (default 20, at most 60)", 0},
    {"by", BY, "COLUMN", 0, "score: colour by this column (default hardware, else family)", 0},
    {0},
};

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static void parse_format(struct args *a, const char *arg, struct argp_state *state)
{
    int format = find(plot_extension, PLOT_FORMATS, arg);

    if (format < 0)
        argp_error(state, "--format: \"%s\" is none of png, svg, pdf", arg);
    a->format = (enum plot_format)format;
}

/* A first word that names a picture of predictions makes the others files. */
static void parse_word(struct args *a, const char *arg, struct argp_state *state)
{
    int figure = find(plot_name, PLOT_FIGURES, arg);

    if (a->of_files)
        MEM_PUSH(a->files.path, a->files.paths) = arg;
    else if (!a->path && figure >= PLOT_STEP) {
        a->of_files = true;
        a->files.figure = (enum plot_figure)figure;
    } else if (!a->path)
        a->path = arg;
    else if (!strcmp(arg, "all"))
        a->figures |= PLOT_ALL;
    else if (figure >= 0 && figure <= PLOT_STEP)
        a->figures |= 1u << figure;
    else if (figure >= 0)
        argp_error(state, "%s is drawn of files: railgauge plot %s FILE...", arg, arg);
    else
        argp_error(state, "no picture \"%s\"; there are busbw, heat, dist, step and all", arg);
}

static void parse_end(struct args *a, struct argp_state *state)
{
    static const char *const holds[] = {"predictions", "predictions or which table",
                                        "table of predict --batch"};
    const struct plot_files *f = &a->files;

    if (a->of_files && !f->paths)
        argp_error(state, "%s: which %s?", plot_name[f->figure], holds[f->figure - PLOT_STEP]);
    if (!a->of_files && !a->path)
        argp_error(state, "which campaign or matrix?");
    if (f->measured && (!a->of_files || f->figure == PLOT_SCORE))
        argp_error(state, "--measured is for step and scaling");
    if (f->top && (!a->of_files || f->figure != PLOT_STEP))
        argp_error(state, "--top is for step");
    if (f->by && (!a->of_files || f->figure != PLOT_SCORE))
        argp_error(state, "--by is for score");
}

static void parse_top(struct args *a, const char *arg, struct argp_state *state)
{
    struct err err = {0, ""};

    if (units_int(&a->files.top, arg, 1, STEP_TOP_MAX, &err) < 0)
        argp_error(state, "--top: %s", err.text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct args *a = state->input;

    switch (key) {
    case 'f':
        parse_format(a, arg, state);
        break;
    case 'o':
        a->out = arg;
        break;
    case 't':
        a->terminal = true;
        break;
    case MEASURED:
        a->files.measured = arg;
        break;
    case TOP:
        parse_top(a, arg, state);
        break;
    case BY:
        a->files.by = arg;
        break;
    case ARGP_KEY_ARG:
        parse_word(a, arg, state);
        break;
    case ARGP_KEY_END:
        parse_end(a, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DIR|MATRIX [busbw|heat|dist|step|all]...\n"
                "step|scaling [LABEL=]PREDICTION...\n"
                "scaling|score TABLE",
    .doc = "Draw a campaign folder, a cost matrix alone, or predictions."
           "\vbusbw is bus bandwidth against message size with expected and peak; heat is the "
           "bandwidth of every pair and its share of what that kind of pair gives; dist is how the "
           "pairs of each kind are spread and their slow tail.  step is what predicted steps are "
           "made of (of predict, search or predict --batch as JSON); scaling is the speed of a GPU "
           "against how many there are (of predictions, or a table with series, gpus and "
           "tokens_per_gpu or seconds); score is predicted against measured steps (of predict "
           "--batch).  The tables behind them are left in OUTDIR/data.  Pictures need gnuplot 5.4 "
           "or newer; without it the same is printed in the terminal.\n\n"
           "  railgauge plot campaign\n"
           "  railgauge plot campaign heat --format svg -o pictures\n"
           "  railgauge plot --terminal matrix.json\n"
           "  railgauge plot step fsdp.json tp8.json --measured 4.7,5.1\n"
           "  railgauge plot scaling rail=r64.json rail=r512.json tree=t64.json tree=t512.json\n"
           "  railgauge plot score batch.tsv --by split\n\n"
           "Exit codes: 0 good, 64 usage, 65 bad data or nothing to draw, 66 no input, 74 I/O, 78 "
           "configuration.",
};

static int print_terminal(const struct args *a, struct err *err)
{
    struct points *p;
    struct matrix m;
    struct pairs ps;
    int rc;

    if (plot_load(a->path, &m, &p, err) < 0)
        return -1;
    rc = pairs_init(&ps, &m, p, err);
    if (rc == 0) {
        pairs_print(stdout, &ps, term_columns(stdout), term_colour(stdout));
        pairs_free(&ps);
    }
    matrix_free(&m);
    if (p)
        points_free(p);
    free(p);
    return rc;
}

/* Drawn, or printed where gnuplot is not. */
static int draw(const struct args *a, struct err *err)
{
    struct plot_result r;
    int rc = a->of_files ? plot_files_draw(&a->files, a->out, a->format, &r, err)
                         : plot_campaign(a->path, a->out, a->figures, a->format, &r, err);

    for (int i = 0; rc == 0 && i < PLOT_FIGURES; i++) {
        if (r.file[i])
            puts(r.file[i]);
        else if (r.why[i] && r.gnuplot)
            log_warn("%s: %s", plot_name[i], r.why[i]);
    }
    if (rc == 0 && !r.gnuplot) {
        log_warn("no pictures: gnuplot was not found in PATH (Debian: apt-get install "
                 "gnuplot-nox); their tables are written, and %s here",
                 a->of_files ? "the numbers follow" : "the pair maps follow");
        rc = a->of_files ? plot_files_print(&a->files, err) : print_terminal(a, err);
    }
    plot_result_free(&r);
    return rc;
}

int cmd_plot(int argc, char **argv)
{
    struct args a = {0};
    struct err err = {0};
    int rc;

    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (!a.figures)
        a.figures = PLOT_ALL;
    if (!a.terminal)
        rc = draw(&a, &err);
    else
        rc = a.of_files ? plot_files_print(&a.files, &err) : print_terminal(&a, &err);
    free(a.files.path);
    return rc < 0 ? cmd_fail("plot", &err) : EXIT_GOOD;
}
