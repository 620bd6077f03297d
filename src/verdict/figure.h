/* figure.h - what campaigns on the same machine have measured alike: their figures, point by point.
 *
 * A point of one campaign is matched with that of another that measured the same thing: operation,
 * the same endpoints by host name and number, size, stage, how many ran beside it, and epoch.  So
 * noise of a pair or of a group stays out of what is compared, as all have it.  A figure is all
 * matched pairs of a tier, or all matched groups of a shape; of sizes from 1 MiB on ("large", a
 * rate) or up to 8 KiB ("small", a time). */
#ifndef RG_FIGURE_H
#define RG_FIGURE_H

#include "cost/matrix.h"
#include "cost/shape.h"
#include "probe/point.h"

struct campaign {
    const char *path;
    double begun; /* s since 1970; 0: not known */
    const struct matrix *matrix;
    const struct topo *topo;
    const struct points *points;
    const struct plan *plan; /* whose groups the points are of; NULL: shapes are not known */
};

struct figure_key {
    int op, tier;       /* tier -1: a collective */
    struct shape shape; /* of collectives; only its ranks where there is no plan */
    bool large;
};

struct figure {
    struct figure_key key;
    char *what; /* "tier rail, pair_bw", "all_reduce, 72 ranks, 1 domain, large" */
    bool rate;  /* B/s, else s */
    bool nic;   /* crosses NICs, as far as the plan tells */
    int first, points;
};

/* Where a point was measured.  Sizes that one group measured in one epoch share the luck of that group and
 * that epoch, so they are one piece of evidence. */
struct figure_cell {
    int epoch : 31;
    bool alone : 1; /* nothing ran beside it */
    int unit; /* number of the pair or group, of all points with its operation, stage and neighbours */
};

/* Points of figure f are first .. first + points - 1, the cells of a unit one behind the other. */
struct figures {
    struct figure *figure;
    int figures;
    int campaigns, points;
    double *sec;              /* [point][campaign] */
    int *of;                  /* [point][campaign]: index in that campaign's points */
    double *amount;           /* [point]: bytes that a rate counts */
    struct figure_cell *cell; /* [point] */
    int *matched;             /* [campaign]: of the first's points, how many that one has */
    int *more;                /* [campaign]: points that the first does not have */
};

/* Of points that all n have; tiers, shapes and names are those of the first campaign.  The caller
 * figures_free()s. */
void figures_match(struct figures *f, const struct campaign *c, int n);
void figures_free(struct figures *f);
/* The median over a figure's points in its unit. */
double figures_median(const struct figures *f, const struct figure *g, int campaign);
/* What makes two campaigns unlike: "is of transport \"mpi\", B of \"nccl\""; NULL: nothing.  The
 * caller frees. */
char *figures_unlike(const struct campaign *a, const struct campaign *b);

#endif
