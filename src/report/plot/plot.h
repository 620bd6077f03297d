/* plot.h - pictures of a campaign, a matrix or predictions: tables from plot_data.h, drawn by
 * gnuplot.
 *
 * Tables are written to OUT/data, pictures to OUT/NAME.FORMAT.  gnuplot is started without a shell
 * and writes to a temporary name.  The picture is renamed into place only if gnuplot succeeded and
 * the file has its end marker, because gnuplot leaves half a file after an error and does not
 * report a full disk. */
#ifndef RG_PLOT_H
#define RG_PLOT_H

#include <stdbool.h>

#include "base/err.h"
#include "report/plot/plot_data.h"

enum plot_figure {
    PLOT_TIERS,
    PLOT_BUSBW,
    PLOT_HEAT,
    PLOT_DIST,
    PLOT_STEP,
    PLOT_SCALING,
    PLOT_SCORE,
    PLOT_HISTORY,
    PLOT_COMPARE,
    PLOT_FIGURES
};
extern const char
    *const plot_name[PLOT_FIGURES];          /* "tiers", "busbw", "heat", "dist", "step", ... */
enum { PLOT_ALL = (1 << PLOT_SCALING) - 1 }; /* all figures of a campaign */

enum plot_format { PLOT_PNG, PLOT_SVG, PLOT_PDF, PLOT_FORMATS };
extern const char *const plot_extension[PLOT_FORMATS]; /* "png", "svg", "pdf" */

/* Appearance of every picture; zeros: default of its script. */
struct plot_look {
    const char *title;   /* replaces the default title */
    int width, height;   /* pixels, for pdf 1/200 inch; height 0: default proportions */
    const char *palette; /* a name of plots/palettes.tsv */
};
/* "slide" (2560 x 1440), "paper" (1400 wide: 7 inches of pdf), or "1600x900". */
int plot_size(struct plot_look *l, const char *text, struct err *err);

struct plot_result {
    char *file[PLOT_FIGURES]; /* path of the picture, or NULL */
    char *why[PLOT_FIGURES];  /* reason why there is none, or NULL */
    bool gnuplot;             /* gnuplot was found */
};

/* Draw the figures whose bits are set, into the directory out (created if missing).  A figure
 * without data is skipped with a reason; EXIT_DATA if all are skipped.  Without gnuplot the tables
 * are written, r->gnuplot is false, and the result is 0.  Call plot_result_free() in every case. */
int plot_draw(const struct plot_source *s, const char *out, unsigned figures,
              enum plot_format format, const struct plot_look *look, struct plot_result *r,
              struct err *err);
/* The same for a campaign directory (matrix.json and, if present, points.tsv and prediction.json)
 * or a matrix file.  points NULL: those of the directory; out NULL: plot_folder().  With PLOT_ALL
 * the step is left out if there is no prediction. */
int plot_campaign(const char *path, const struct points *points, const char *out, unsigned figures,
                  enum plot_format format, const struct pair_only *only,
                  const struct plot_look *look, struct plot_result *r, struct err *err);
/* Directory for the pictures of path: "DIR/plots" for a campaign directory or its matrix.json; for
 * any other file a directory of its own beside it ("best-plots" for best.json), so that an
 * unrelated directory "plots" is not used.  The caller frees. */
char *plot_folder(const char *path);
void plot_result_free(struct plot_result *r);

/* Print the two campaigns (s->pair) side by side. */
int plot_text_compare(FILE *out, const struct plot_source *s, struct err *err);

/* Read the input of plot_campaign(): *points is NULL if there are none.  The caller frees both. */
int plot_load(const char *path, struct matrix *m, struct points **points, struct err *err);

#endif
