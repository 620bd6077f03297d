/* plot_data.h - tables for the scripts in plots/: TSV with a header line, square matrices of 32-bit
 * floats (gnuplot's "binary matrix": the count, the column positions, then each row after its
 * position), and pictures of bytes red, green, blue.
 *
 * All decisions (order, ranges, choice of lines, label positions without overlap) are made here;
 * the scripts only draw.  The tables of a figure with their columns are listed at the end of its
 * file; NAME_meta.tsv has keys and values.  Text cells have no tab, control character, double quote
 * or backslash, because gnuplot would interpret them. */
#ifndef RG_PLOT_DATA_H
#define RG_PLOT_DATA_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/tsv.h"
#include "matrix/matrix.h"
#include "measure/point.h"
#include "report/plot/pair_map.h"
#include "report/plot/plot_step.h"
#include "verdict/history.h"

/* Input; only parts needed by the requested figures must be set.  All pointers are borrowed. */
struct plot_source {
    const struct matrix *matrix; /* for tiers, busbw, heat, dist */
    const struct points *points; /* for heat, dist; NULL: all data comes from the matrix */
    const char *points_file;     /* read before first use; NULL: no file */
    struct pair_only only;       /* pairs shown: heat, dist, history, compare */
    struct pair_map *pairs;      /* for heat, dist: zero, made at first use; the caller frees it */
    const struct step_bars *steps; /* for step; tiers: says what the first one waits */
    int top;                       /* number of steps shown; 0: STEP_TOP */
    const struct scaling *scaling;
    const struct tsv *score;
    const struct history *history;
    const struct campaign *pair; /* two campaigns to compare */
    const char *pair_name[2];
    const char *
        by; /* column that gives the score's colours; NULL: hardware, else family, else a single one */
};

/* Write the tables of a figure into the existing directory dir.  EXIT_DATA with the reason if there
 * is nothing to draw. */
typedef int plot_writer(const struct plot_source *s, const char *dir, struct err *err);
plot_writer plot_data_tiers, plot_data_busbw, plot_data_heat, plot_data_dist;
plot_writer plot_data_step, plot_data_scaling, plot_data_score;
plot_writer plot_data_history, plot_data_compare;

/* --- shared by the figures --- */

/* Pairs of heat and dist; NULL: nothing to draw. */
static inline const struct pair_map *plot_pairs(const struct plot_source *s, struct err *err)
{
    bool made = s->pairs->n || pair_map_init(s->pairs, s->matrix, s->points, &s->only, err) == 0;

    return made ? s->pairs : NULL;
}

struct plot_table {
    const char *name, *header; /* NULL: a matrix has no header */
    void (*put)(FILE *out, const void *figure);
};
/* Write the tables in order, up to the one without a name. */
int plot_tables_write(const struct plot_table *table, const void *figure, const char *dir,
                      struct err *err);

/* Make text safe for a cell, in the caller's buffer; cut to `most` characters with an ellipsis. */
enum { PLOT_TEXT = 128 };
char *plot_text(char buf[PLOT_TEXT], const char *text, int most);
/* Write a tab and v; "NaN" unless v is finite. */
void plot_number(FILE *out, double v);
/* Text colour that is readable on rgb: white or black. */
static inline unsigned plot_ink_on(unsigned rgb)
{
    unsigned light = (rgb >> 16 & 255) * 3 + (rgb >> 8 & 255) * 6 + (rgb & 255);

    return light < 1280 ? 0xffffff : 0x1a1a1a;
}

/* Next value of the 1-2-5 series: above v, or below. */
double plot_nice(double v, bool up);
/* Move the sorted positions y[0..n) apart to at least `gap` inside [lo, hi], each as little as
 * possible. */
void plot_spread(double *y, int n, double gap, double lo, double hi);
/* "1,440", or with a noun "3 racks", "1 host". */
char *plot_count(char buf[PLOT_TEXT], long n, const char *noun);

#endif
