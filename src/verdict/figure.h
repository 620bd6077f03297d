/* figure.h - figures that campaigns on the same machine have in common, point by point.
 *
 * A point matches a point of another campaign that measured the same thing: operation, endpoints by
 * host name and number, size, stage, number of neighbours at the same time, and epoch.  So
 * differences between pairs or groups cancel, because all campaigns have them.  A figure is all
 * matched pairs of a tier, or all matched groups of a shape, at sizes from 1 MiB ("large", a rate)
 * or up to 8 KiB ("small", a time). */
#ifndef RG_FIGURE_H
#define RG_FIGURE_H

#include "matrix/matrix.h"
#include "measure/point.h"

struct campaign {
    const char *path;
    double begun; /* s since 1970; 0: unknown */
    const struct matrix *matrix;
    const struct topo *topo;
    const struct points *points;
    const struct plan *plan; /* plan of these points; NULL: shapes are unknown */
};

struct figure_key {
    int op, tier;       /* tier -1: a collective */
    struct shape shape; /* collectives: without a plan only the ranks are set */
    bool large;
};

struct figure {
    struct figure_key key;
    char *what; /* "tier rail, pair_bw", "all_reduce, 72 ranks, 1 domain, large" */
    bool rate;  /* B/s, else s */
    bool nic;   /* crosses NICs, as far as the plan shows */
    int first, points;
};

/* Place of a point in the measurement.  Sizes that one group measured in one epoch share the luck
 * of that group and epoch, so they are one piece of evidence. */
struct figure_cell {
    int epoch : 31;
    bool alone : 1; /* measured alone */
    /* number of the pair or group among all points with its operation, stage and neighbours */
    int unit;
};

/* Points of figure f are first .. first + points - 1; the cells of a unit are adjacent. */
struct figures {
    struct figure *figure;
    int figures;
    int campaigns, points;
    double *sec;              /* [point][campaign] */
    int *of;                  /* [point][campaign]: index in that campaign's points */
    double *amount;           /* [point]: bytes counted by the rate */
    struct figure_cell *cell; /* [point] */
    /* [campaign]: number of the first campaign's points that it has too */
    int *matched;
    int *more; /* [campaign]: number of points that the first lacks */
};

/* Match the points that all n campaigns have; tiers, shapes and names are those of the first.  The
 * caller calls figures_free(). */
void figures_match(struct figures *f, const struct campaign *c, int n);
void figures_free(struct figures *f);
/* Median over a figure's points, B/s or s. */
double figures_median(const struct figures *f, const struct figure *g, int campaign);
/* Returns how two campaigns differ too much to be compared, "is of transport \"mpi\", B of
 * \"nccl\""; NULL: comparable.  The caller frees. */
char *figures_unlike(const struct campaign *a, const struct campaign *b);

#endif
