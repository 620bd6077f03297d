/* plot_data.h - the tables that the scripts in plots/ draw: TSV with a header line, and two square
 * matrices of 32-bit floats (gnuplot's "binary matrix": the count, the column places, then each row
 * with its place first).  Everything that needs a decision (order, ranges, which lines are drawn,
 * where labels go so that none cover each other) is decided here; the scripts only draw.
 *
 *   busbw.tsv          series op shape bytes busbw_GBps lo_GBps hi_GBps expected_GBps peak_GBps
 *                      expected_from
 *   busbw_panel.tsv    panel op from_bytes to_bytes lo_GBps hi_GBps peaks
 *   busbw_label.tsv    panel colour label value at_GBps   (one a line: what is written at its end)
 *   busbw_peak.tsv     panel GBps text
 *   heat_GBps.bin, heat_share.bin   rows send, columns receive; NaN: no data; share in percent
 *   heat_seen.bin      1: some pair of the cell was measured, or none was at all; 0: the cost
 * matrix heat_meta.tsv      key value heat_tick.tsv      place name;  heat_line.tsv  place;
 * heat_cell.tsv  the numbers of small tables heat_call.tsv      from to name what   (parts that
 * stand out: place, place of the label) dist.tsv           series tier share_percent GBps pairs
 * aside   (a row stands for that many pairs; aside: where its dot stands, NaN where there is an
 * outline instead) dist_tier.tsv      one row a tier: quantiles of the share;  dist_density.tsv its
 * outline dist_meta.tsv      key value Text cells have no tab, control character, double quote or
 * backslash: gnuplot would read those.
 */
#ifndef RG_PLOT_DATA_H
#define RG_PLOT_DATA_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/file.h"
#include "cost/matrix.h"
#include "emit/plot/pair_map.h"

/* Each writes its files into the existing folder dir; nothing to draw is EXIT_DATA with the reason.
 */
int plot_data_busbw(const struct matrix *m, const char *dir, struct err *err);
int plot_data_heat(const struct pair_map *ps, const char *dir, struct err *err);
int plot_data_dist(const struct pair_map *ps, const char *dir, struct err *err);

/* --- shared by the three --- */

/* Begin dir/name and print the header line. */
int plot_begin(struct file_out *f, const char *dir, const char *name, const char *header,
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
