/* plot_busbw.h - the picture of bus bandwidth while it is put together: panels of lines. */
#ifndef RG_PLOT_BUSBW_H
#define RG_PLOT_BUSBW_H

#include "cost/reference.h"
#include "emit/plot/plot_data.h"

enum { BUSBW_LINES = 6 /* shapes that get a colour */, BUSBW_SIZES = 96 };

struct busbw_line {
    const struct collective *c;
    int *ids; /* a group of this shape, or NULL */
    double size[BUSBW_SIZES];
    int sizes;
    double peak; /* GB/s, NAN: not known */
};

struct busbw_panel {
    enum op op;
    struct busbw_line line[BUSBW_LINES];
    int lines;
    double lo, hi; /* GB/s */
};

struct busbw_figure {
    const struct matrix *m;
    struct reference reference;
    struct matrix ideal; /* the same fabric with every tier at its data-sheet rate */
    struct shape shape[BUSBW_LINES];
    int shapes;
    struct busbw_panel panel[OP_COUNT];
    int panels;
    double from, to; /* bytes */
};

int busbw_colour(const struct busbw_figure *f, const struct shape *s); /* 1.., 0: none */
double busbw_rate(enum op op, int ranks, double bytes, double sec);    /* GB/s */
double busbw_value(const struct busbw_line *l, int i);                 /* GB/s at l->size[i] */
/* GB/s that a healthy fabric would give; NAN: there is no reference (see reference.h).  words:
 * NULL, or what it rests on. */
double busbw_expected(const struct busbw_figure *f, const struct busbw_line *l, double bytes,
                      char words[80]);

/* The tables; see plot_data.h. */
int busbw_write_lines(struct busbw_figure *f, const char *dir, struct err *err);
int busbw_write_panels(struct busbw_figure *f, const char *dir, struct err *err);
int busbw_write_words(struct busbw_figure *f, const char *dir, struct err *err);

#endif
