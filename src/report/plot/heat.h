/* heat.h - heat map of a square table of numbers in the terminal.
 *
 * Up to 16 rows that fit are printed as numbers on their colour, more rows as blocks.  If the width
 * is too small, a block of rows and columns shows its worst (smallest) value, so that a single bad
 * part stays visible.  NAN is "no data" and never looks like a low value; the diagonal is left
 * out.  Colours: viridis for amounts, white-to-red for shares; without colour the shades ░▒▓█. */
#ifndef RG_HEAT_H
#define RG_HEAT_H

#include <stdbool.h>
#include <stdio.h>

enum heat_palette { HEAT_AMOUNT, HEAT_SHARE };

struct heat {
    int n; /* number of rows and columns, in display order */
    /* Get the values of a row at n ascending columns, and those of a second table.  The value on
     * the diagonal is ignored. */
    void (*values)(void *arg, int row, const int *col, int n, double *v, double *other);
    void *arg;
    double lo, hi; /* ends of the scale; both 0 (or NAN): from the values */
    bool log;      /* logarithmic scale */
    const char *title, *unit;
    const char *(*label)(void *arg, int row); /* label, printed where it changes; may be NULL */
    enum heat_palette palette;
    /* True if this row must be included.  Tables of more than HEAT_LOOK rows are sampled evenly,
     * with these rows (known exceptions) in addition.  May be NULL. */
    bool (*special)(void *arg, int row);
    int span; /* rows per block, the last may have fewer; 0: chosen */
};

enum { HEAT_LOOK = 2048 };

/* columns: width of the terminal (table_width), at least 40 is assumed; colour: use ANSI
 * colours. */
void heat_print(FILE *out, const struct heat *h, int columns, bool colour);

/* Only the cells: blocks x blocks of them, the worst value of each.  other: NULL, or room for the
 * same number from the second table.  *pairs: number of pairs included; *missing: those without
 * data.  The caller frees. */
double *heat_cells(const struct heat *h, int blocks, double *other, long *pairs, long *missing);

/* Colour at pos 0..1 as 0xRRGGBB; shares from 50 to 105 percent.  Linear between multiples of 1/8
 * (amounts) or of one percent (shares). */
unsigned heat_rgb(enum heat_palette palette, double pos);
enum { HEAT_MISSING = 0x8b8f98 }; /* no data */

/* Three digits: "0.150", "8.00", "46.9", "749", "1440". */
enum { HEAT_NUMBER = 24 };
char *heat_number(char buf[HEAT_NUMBER], double v);

#endif
