/* plot.c - railgauge plot: pictures of a campaign or a matrix. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "emit/pairs.h"
#include "emit/plot.h"
#include "emit/term.h"

struct args {
    const char *path, *out;
    unsigned figures;
    enum plot_format format;
    bool terminal;
};

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "png (default), svg or pdf", 0},
    {"output", 'o', "OUTDIR", 0, "folder for the pictures (default: plots/ beside the matrix)", 0},
    {"terminal", 't', NULL, 0, "print the pair maps here instead of drawing pictures", 0},
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

static void parse_word(struct args *a, const char *arg, struct argp_state *state)
{
    int figure = find(plot_name, PLOT_FIGURES, arg);

    if (!a->path)
        a->path = arg;
    else if (!strcmp(arg, "all"))
        a->figures |= PLOT_ALL;
    else if (figure >= 0)
        a->figures |= 1u << figure;
    else
        argp_error(state, "no picture \"%s\"; there are busbw, heat, dist and all", arg);
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
    case ARGP_KEY_ARG:
        parse_word(a, arg, state);
        break;
    case ARGP_KEY_END:
        if (!a->path)
            argp_error(state, "which campaign or matrix?");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "DIR|MATRIX [busbw|heat|dist|all]...",
    .doc = "Draw a campaign folder, or a cost matrix alone."
           "\vbusbw is bus bandwidth against message size with expected and peak; heat is the "
           "bandwidth "
           "of every pair and its share of what that kind of pair gives; dist is how the pairs of "
           "each "
           "kind are spread and their slow tail.  The tables behind them are left in OUTDIR/data.  "
           "Pictures need gnuplot 5.4 or newer; without it the pair maps are printed in the "
           "terminal.\n\n"
           "  railgauge plot campaign\n"
           "  railgauge plot campaign heat --format svg -o pictures\n"
           "  railgauge plot --terminal matrix.json\n\n"
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

static int draw(const struct args *a, struct err *err)
{
    struct plot_result r;
    int rc = plot_campaign(a->path, a->out, a->figures, a->format, &r, err);

    for (int i = 0; rc == 0 && i < PLOT_FIGURES; i++) {
        if (r.file[i])
            puts(r.file[i]);
        else if (r.why[i] && r.gnuplot)
            log_warn("%s: %s", plot_name[i], r.why[i]);
    }
    if (rc == 0 && !r.gnuplot) {
        log_warn(
            "no pictures: gnuplot was not found in PATH (Debian: apt-get install gnuplot-nox); "
            "their tables are written, and the pair maps follow here");
        rc = print_terminal(a, err);
    }
    plot_result_free(&r);
    return rc;
}

int cmd_plot(int argc, char **argv)
{
    struct args a = {0};
    struct err err = {0};

    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (!a.figures)
        a.figures = PLOT_ALL;
    if ((a.terminal ? print_terminal(&a, &err) : draw(&a, &err)) < 0)
        return cmd_fail("plot", &err);
    return EXIT_GOOD;
}
