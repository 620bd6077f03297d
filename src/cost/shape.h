/* shape.h - the shape of a group: what a collective's cost depends on besides its size.
 *
 * ranks n, domains d, g = members per domain (the fewest, because the slowest part rules), nodes, and
 * NICs the group can drive from one domain.  A domain is the NVLink domain where one is known and the
 * host elsewhere. */
#ifndef RG_SHAPE_H
#define RG_SHAPE_H

#include <stdbool.h>

#include "topo/topo.h"

struct shape {
    int ranks, domains, per_domain, nodes, nics;
};

void shape_of(struct shape *s, const struct place *place, const int *ids, int n);
bool shape_equal(const struct shape *a, const struct shape *b);
char *shape_text(char buf[48], const struct shape *s); /* "64r 8d x8" */

#endif
