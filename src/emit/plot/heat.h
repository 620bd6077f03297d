/* heat.h - a square table of numbers as a heat map in the terminal.
 *
 * Up to 16 rows that fit are printed as numbers on their colour; more as blocks; more than the
 * width has room for as the worst (smallest) value of each block of rows and columns, so that a
 * single bad part stays visible.  NAN is "no data" and never looks like a low value; the diagonal
 * is left out. Colours: viridis for amounts, white-to-red for shares; without colour the shades
 * ░▒▓█. */
#ifndef RG_HEAT_H
#define RG_HEAT_H

#include <stdbool.h>
#include <stdio.h>

enum heat_palette { HEAT_AMOUNT, HEAT_SHARE };

struct heat {
    int n; /* rows and columns, in the order they are shown */
    /* What row has at n columns, ascending, and what a second table has there; at its own: anything. */
    void (*values)(void *arg, int row, const int *col, int n, double *v, double *other);
    void *arg;
    double lo, hi; /* ends of the scale; both 0 (or NAN): from the values */
    bool log;      /* logarithmic scale */
    const char *title, *unit;
    const char *(*label)(void *arg,
                         int row); /* printed where it changes from row to row; may be NULL */
    enum heat_palette palette;
    /* Must this row be looked at?  Tables of more than HEAT_LOOK rows are sampled evenly; rows for
     * which this says true (a known exception) are looked at besides.  May be NULL. */
    bool (*special)(void *arg, int row);
    int span; /* rows of a block, the last may have fewer; 0: as many as the blocks need */
};

enum { HEAT_LOOK = 2048 };

/* columns: width of the terminal (term_columns), at least 40 is assumed; colour: ANSI colours. */
void heat_print(FILE *out, const struct heat *h, int columns, bool colour);

/* The cells alone, blocks x blocks of them, the worst value of each; the caller frees.  other: NULL, or
 * room for as many of the second table.  How many pairs were looked at, and how many of them have no
 * data. */
double *heat_cells(const struct heat *h, int blocks, double *other, long *pairs, long *missing);

/* Colour at pos 0..1 as 0xRRGGBB; shares from 50 to 105 percent.  Between it is linear from one eighth, one percent, to
 * the next. */
unsigned heat_rgb(enum heat_palette palette, double pos);
enum { HEAT_MISSING = 0x8b8f98 }; /* no data */

/* Three digits: "0.150", "8.00", "46.9", "749", "1440". */
enum { HEAT_NUMBER = 24 };
char *heat_number(char buf[HEAT_NUMBER], double v);

#endif
