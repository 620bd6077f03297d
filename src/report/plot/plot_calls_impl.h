/* plot_calls_impl.h - annotations of a pair map: group names, group lines, and the parts that stand
 * out.  Positions are in blocks: block b covers [b - 0.5, b + 0.5], as gnuplot draws images. */
#ifndef RG_PLOT_CALLS_H
#define RG_PLOT_CALLS_H

#include "report/plot/pair_map.h"
#include "report/plot/plot_data.h"

struct plot_axis {
    char title[PLOT_TEXT]; /* "rack gb200-": common start of the names below */
    struct plot_tick {
        double place;
        char name[PLOT_TEXT];
    } * tick;
    int ticks;
    double *line; /* borders between groups */
    int lines;
};

/* Choose names at the finest level that the picture has room for, and lines between racks, else
 * domains, leaves or hosts. */
void plot_axis_of(struct plot_axis *a, const struct pair_map *ps, int span, int pixels);
void plot_axis_free(struct plot_axis *a);

enum { CALLS_MAX = 10 };
struct plot_calls {
    struct plot_call {
        double place, at; /* row of the part; position of its label */
        char name[PLOT_TEXT], what[PLOT_TEXT];
        double factor;
    } call[CALLS_MAX];
    int count, more; /* number of labels; number of parts left out */
};

/* Choose the worst exceptions of the matrix, and runs of rows without data. */
void plot_calls_of(struct plot_calls *c, const struct pair_map *ps, const float *rate, int blocks,
                   int span);

#endif
