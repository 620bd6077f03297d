/* plot_data.h - the tables that the scripts in plots/ draw: TSV with a header line, square matrices of
 * 32-bit floats (gnuplot's "binary matrix": the count, the column places, then each row with its place
 * first), and pictures of bytes red, green, blue.
 *
 * Everything that needs a decision (order, ranges, which lines are drawn, where labels go so that
 * none cover each other) is decided here; the scripts only draw.  Which tables a figure has, with
 * their columns, stands at the end of its file; NAME_meta.tsv has keys and values.  Text cells have
 * no tab, control character, double quote or backslash: gnuplot would read those.
 */
#ifndef RG_PLOT_DATA_H
#define RG_PLOT_DATA_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/tsv.h"
#include "cost/matrix.h"
#include "emit/plot/pair_map.h"
#include "emit/plot/plot_step.h"
#include "probe/point.h"
#include "verdict/history.h"

/* What is drawn; only what the asked figures need must be there.  Nothing is owned. */
struct plot_source {
    const struct matrix *matrix; /* busbw, heat, dist */
    const struct points *points; /* heat, dist; NULL: everything comes from the matrix */
    const char *points_file;     /* read before the first of these asks; NULL: they are not */
    struct pair_only only;       /* of pairs: heat, dist, history, compare */
    struct pair_map *pairs; /* heat, dist: zero, made by the first that asks; the caller frees it */
    const struct step_bars *steps;
    int top; /* of the steps; 0: STEP_TOP */
    const struct scaling *scaling;
    const struct tsv *score;
    const struct history *history;
    const struct campaign *pair; /* two that are compared */
    const char *pair_name[2];
    const char *
        by; /* column by which the score is coloured; NULL: hardware, else family, else all are alike */
};

/* The tables of a figure into the existing folder dir; nothing to draw is EXIT_DATA with the reason.
 */
typedef int plot_writer(const struct plot_source *s, const char *dir, struct err *err);
plot_writer plot_data_busbw, plot_data_heat, plot_data_dist;
plot_writer plot_data_step, plot_data_scaling, plot_data_score;
plot_writer plot_data_history, plot_data_compare;

/* --- shared by the figures --- */

/* The pairs of heat and dist; NULL: there is nothing to draw. */
static inline const struct pair_map *plot_pairs(const struct plot_source *s, struct err *err)
{
    bool made = s->pairs->n || pair_map_init(s->pairs, s->matrix, s->points, &s->only, err) == 0;

    return made ? s->pairs : NULL;
}

struct plot_table {
    const char *name, *header; /* NULL: a matrix has none */
    void (*put)(FILE *out, const void *figure);
};
/* One table after the other, up to the one without a name. */
int plot_tables_write(const struct plot_table *table, const void *figure, const char *dir,
                      struct err *err);

/* Text made safe for a cell, in a buffer of the caller's; cut to `most` characters with an
 * ellipsis. */
enum { PLOT_TEXT = 128 };
char *plot_text(char buf[PLOT_TEXT], const char *text, int most);
/* A tab and v, "NaN" for what is no finite number. */
void plot_number(FILE *out, double v);
/* The colour of letters that can be read on this one: white or black. */
static inline unsigned plot_ink_on(unsigned rgb)
{
    unsigned light = (rgb >> 16 & 255) * 3 + (rgb >> 8 & 255) * 6 + (rgb & 255);

    return light < 1280 ? 0xffffff : 0x1a1a1a;
}

/* v in the 1-2-5 series: the next one up, or down. */
double plot_nice(double v, bool up);
/* Move the sorted places y[0..n) apart to at least `gap` inside [lo, hi], each as little as
 * possible. */
void plot_spread(double *y, int n, double gap, double lo, double hi);
/* "1,440", and "3 racks", "1 host": count with its noun. */
char *plot_count(char buf[PLOT_TEXT], long n, const char *noun);

#endif
