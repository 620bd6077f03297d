/* declared.h - groups of hosts as declared by each source, compared with the measured groups.
 *
 * The measured side comes only from measurements: a campaign's points are clustered anew
 * (fit/fit.h) as if nothing were declared; a matrix alone contributes the coordinates whose
 * source is "measured".  Each declared grouping is compared with the measured layer most alike, and
 * with the groupings of the other sources. */
#ifndef RG_DECLARED_H
#define RG_DECLARED_H

#include <jansson.h>

#include "fit/fit.h"
#include "verdict/grouping.h"

struct comparison {
    int a, b; /* grouping[a]: declared; grouping[b]: measured, or of another source */
    struct compared how;
    bool differ;
    char *text;      /* one sentence */
    char **evidence; /* per misfit: "9 of 9 pairs at 770 GB/s"; NULL without points */
};

struct declared {
    struct topo topo; /* topology whose hosts are grouped */
    struct grouping *grouping;
    int groupings, measured; /* measured groupings come first */
    struct layers layers;    /* layers behind the measured groupings if points were given */
    struct obs *obs;
    int count;
    struct comparison *comparison;
    int comparisons;
    char *unmeasured; /* reason if there is no measured grouping, else NULL */
};

/* Start with a copy of t: its claims and coordinates are the declared side, its hosts those of all
 * groupings.  Call declared_free() in every case. */
void declared_init(struct declared *d, const struct topo *t);
/* Add claims and coordinates of another topology, matched by host name. */
void declared_add(struct declared *d, const struct topo *other);
/* Set the measured side; call at most one of these two.  declared_points(): points of this
 * topology's endpoints, whose strings must live as long.  declared_measured(): coordinates of t,
 * which has the same hosts. */
void declared_points(struct declared *d, const struct points *p);
void declared_measured(struct declared *d, const struct topo *t, const char *path);
/* Fill comparison[]. */
void declared_compare(struct declared *d);
void declared_free(struct declared *d);

/* Returns "r00n05 is declared in rack-02, measured with rack-00" for the first few hosts whose
 * measured group differs from the declared one, each host once.  *hosts: number of such hosts.  The
 * caller frees. */
char *declared_misplaced(const struct declared *d, int *hosts);
/* the caller frees */
char *declared_sentence(const struct declared *d, const struct comparison *c);
/* Returns EXIT_GOOD, EXIT_BELOW, or EXIT_UNJUDGED if nothing can be compared or was measured. */
int declared_code(const struct declared *d);
/* {"agree": bool or null, "unmeasured": ..., "groupings": [...], "comparisons": [...]} */
json_t *declared_json(const struct declared *d);
/* List of differences per group: " " in both, "-" declared only, "+" only on the other side.  The
 * caller frees. */
char *declared_diff(const struct declared *d, const struct comparison *c);

#endif
