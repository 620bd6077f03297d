/* declared.h - who belongs together: what sources declare beside what was measured.
 *
 * The measured side comes from measurements only: a campaign's points are clustered anew
 * (cost/fit/layers.h) as if nothing were declared; of a matrix alone, coordinates count whose
 * source is "measured".  Each declared grouping is set beside the measured layer that it is most
 * alike, and beside the other sources' groupings. */
#ifndef RG_DECLARED_H
#define RG_DECLARED_H

#include <jansson.h>

#include "cost/fit/layers.h"
#include "verdict/grouping.h"

struct comparison {
    int a, b; /* groupings: a declared one, and a measured or another declared one */
    struct compared how;
    bool differ;
    char *text;      /* one sentence */
    char **evidence; /* by misfit: "9 of 9 pairs at 770 GB/s", NULL without points */
};

struct declared {
    struct topo topo; /* whose hosts the groupings are of */
    struct grouping *grouping;
    int groupings, measured; /* the measured ones first */
    struct layers layers;    /* behind them, when points were given */
    struct obs *obs;
    int count;
    struct comparison *comparison;
    int comparisons;
    char *unmeasured; /* why there is no measured grouping, or NULL */
};

/* A topology with claims and coordinates is the declared side, and its hosts are those of all
 * groupings; it is copied.  declared_free() in any case. */
void declared_init(struct declared *d, const struct topo *t);
/* Claims and coordinates of another topology, found by host name. */
void declared_add(struct declared *d, const struct topo *other);
/* The measured side, one of these (or none): points of this topology's endpoints, whose strings
 * must live as long; coordinates of `t`, which has the same hosts. */
void declared_points(struct declared *d, const struct points *p);
void declared_measured(struct declared *d, const struct topo *t, const char *path);
/* Fills in comparison[]. */
void declared_compare(struct declared *d);
void declared_free(struct declared *d);

/* Hosts that measuring puts elsewhere than a declaration does, each once: "r00n05 is declared in rack-02,
 * measured with rack-00", of several the first few; how many there are.  The caller frees. */
char *declared_misplaced(const struct declared *d, int *hosts);
char *declared_sentence(const struct declared *d, const struct comparison *c); /* caller frees */
/* EXIT_GOOD, EXIT_BELOW, EXIT_UNJUDGED: nothing to compare, or nothing measured. */
int declared_code(const struct declared *d);
/* {"agree": bool or null, "unmeasured": ..., "groupings": [...], "comparisons": [...]} */
json_t *declared_json(const struct declared *d);
/* As a list of differences per group: " " where both agree, "-" declared only, "+" by the other
 * side only; the caller frees. */
char *declared_diff(const struct declared *d, const struct comparison *c);

#endif
