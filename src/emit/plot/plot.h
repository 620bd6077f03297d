/* plot.h - pictures of a campaign, a matrix or predictions: tables from plot_data.h, drawn by
 * gnuplot.
 *
 * OUT/data gets the tables, OUT/NAME.FORMAT the pictures.  gnuplot is started without a shell,
 * writes to a temporary name, and the picture is renamed into place only when gnuplot succeeded and
 * the file has its end marker (gnuplot leaves half a file after an error and says nothing on a full
 * disk). */
#ifndef RG_PLOT_H
#define RG_PLOT_H

#include <stdbool.h>

#include "base/err.h"
#include "emit/plot/plot_data.h"

enum plot_figure {
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
extern const char *const plot_name[PLOT_FIGURES]; /* "busbw", "heat", "dist", "step", ... */
enum { PLOT_ALL = (1 << PLOT_SCALING) - 1 };      /* that a campaign can have */

enum plot_format { PLOT_PNG, PLOT_SVG, PLOT_PDF, PLOT_FORMATS };
extern const char *const plot_extension[PLOT_FORMATS]; /* "png", "svg", "pdf" */

/* How every picture looks; zeros: as its script likes it. */
struct plot_look {
    const char *title;   /* instead of its own */
    int width, height;   /* pixels, of pdf 1/200 inch; height 0: in its own proportions */
    const char *palette; /* a name of plots/palettes.tsv */
};
/* "slide" (2560 x 1440), "paper" (1400 wide: 7 inches of pdf), or "1600x900". */
int plot_size(struct plot_look *l, const char *text, struct err *err);

struct plot_result {
    char *file[PLOT_FIGURES]; /* the picture, or NULL */
    char *why[PLOT_FIGURES];  /* why there is none, or NULL */
    bool gnuplot;             /* gnuplot was found */
};

/* The figures whose bits are set, into the folder out (made if absent).  A figure without data is
 * skipped with a reason; with none at all, EXIT_DATA.  Without gnuplot the tables are written,
 * r->gnuplot is false, and 0 is returned.  plot_result_free() in every case. */
int plot_draw(const struct plot_source *s, const char *out, unsigned figures,
              enum plot_format format, const struct plot_look *look, struct plot_result *r,
              struct err *err);
/* The same for a campaign folder (matrix.json and, if there, points.tsv and prediction.json) or a
 * matrix file; points NULL: those of the folder; out NULL: plot_folder().  Of PLOT_ALL the step is left out when nothing was
 * predicted. */
int plot_campaign(const char *path, const struct points *points, const char *out, unsigned figures,
                  enum plot_format format, const struct pair_only *only,
                  const struct plot_look *look, struct plot_result *r, struct err *err);
/* Where the pictures of path go: "DIR/plots" of a campaign folder or of its matrix.json; of any
 * other file a folder of its own beside it ("best-plots" of best.json), so that nothing is drawn
 * into a folder "plots" that somebody else made.  The caller frees. */
char *plot_folder(const char *path);
void plot_result_free(struct plot_result *r);

/* What two campaigns (s->pair) give, beside each other. */
int plot_text_compare(FILE *out, const struct plot_source *s, struct err *err);

/* What plot_campaign() reads: *points is NULL when there are none.  The caller frees both. */
int plot_load(const char *path, struct matrix *m, struct points **points, struct err *err);

#endif
