/* nodes.h - which endpoints stand in an export, and what they are called there. */
#ifndef RG_NODES_H
#define RG_NODES_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/topo.h"

struct nodes {
    int *id;     /* endpoint of each node, ascending */
    char **name; /* "n03", or of endpoints "n03:1" */
    int count;
};

/* What a writer can hold; `pairs` formats grow with the square. */
struct nodes_limit {
    const char *format; /* for messages */
    int min, max;
    double pair_bytes; /* of file for each pair; 0: it does not grow with the square */
};

/* Every endpoint, or else the first one of each host, named HOST, separator, local index.
 * hosts_per_rack > 0: only the first ones of each rack.  EXIT_USAGE: outside the limit (with the
 * size that it would be), or hosts_per_rack where a rack is not known.  nodes_free() also after an
 * error. */
int nodes_choose(struct nodes *n, const struct topo *t, bool endpoints, int hosts_per_rack,
                 char separator, const struct nodes_limit *limit, struct err *err);
void nodes_free(struct nodes *n);

/* Names that stand as words in files without quotes: letters, digits, . _ - only, else EXIT_DATA
 * with `reader`. */
int nodes_plain(const struct nodes *n, const char *reader, struct err *err);

#endif
