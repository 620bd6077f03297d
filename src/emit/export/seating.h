/* seating.h - which rank sits where, and what can be said of it: nodes in order, stays, segments.
 */
#ifndef RG_SEATING_H
#define RG_SEATING_H

#include "topo/topo.h"

struct seating {
    const struct topo *topo;
    const int *order; /* rank -> endpoint */
    int ranks;
};

/* Ranks of one node, one after another. */
struct stay {
    int host, first, ranks;
};

struct stays {
    struct stay *stay; /* the caller frees */
    int count;
    int back; /* the first rank that comes back to a node that others followed; -1: none */
};

int seating_host(const struct seating *s, int rank);
void seating_stays(struct stays *v, const struct seating *s);
/* EXIT_DATA: a name that some launcher would read as something else; a device that is not next on
 * its node; a node that is left and come back to.  `what` is who cannot say it. */
int seating_names(const struct seating *s, struct err *err);
int seating_local(const struct seating *s, const char *what, struct err *err);
int seating_whole(struct stays *v, const struct seating *s, const char *what, struct err *err);
/* Each node once, in the order in which ranks meet it; the caller frees the array, not the names.
 */
char **seating_nodes(const struct seating *s, int *count);
/* The same as a host list; the caller frees. */
char *seating_list(const struct seating *s);
/* Nodes that one domain (else rack) gives the job at a time, the same number everywhere: what
 * --segment asks for; 1 where there is no such number. */
int seating_segment(const struct seating *s);

#endif
