/* shape.h - the shape of a group: what a collective's cost depends on besides its size.
 *
 * ranks n, domains d, g = members per domain (the fewest, because the slowest part rules), nodes,
 * NICs that the group can drive from one domain, and racks touched.  A domain is the NVLink domain
 * where one is known and the host elsewhere. */
#ifndef RG_SHAPE_H
#define RG_SHAPE_H

#include <stdbool.h>

#include "topo/topo.h"

struct shape {
    int ranks, domains, per_domain, nodes, nics;
    int racks; /* 0: some member's rack is not visible, or the curve holds for any number of racks
                */
};

/* The NIC of an endpoint, as a number below those of t, its hosts and endpoints together: where none
 * was seen, a GPU is taken to have one of its own and the CPUs of a host to share one. */
static inline int shape_nic(const struct topo *t, int id)
{
    const struct endpoint *e = &t->endpoint[id];

    if (e->nic >= 0)
        return e->nic;
    return t->nics + (e->kind == ENDPOINT_GPU ? t->hosts + id : e->place.at[LEVEL_HOST]);
}

/* n >= 1 and every id valid.  Allocates nothing; O(n) up to thousands of domains.  Returns the first
 * member of a domain that has the fewest of them: what leaves a domain is the most there. */
int shape_of(struct shape *s, const struct topo *t, const int *ids, int n);
/* Do both cost the same?  Ranks, domains and members per domain are equal; when domains are
 * crossed, NICs too, and racks where both know them (nodes inside a domain do not matter). */
bool shape_equal(const struct shape *a, const struct shape *b);
char *shape_text(char buf[48], const struct shape *s); /* "64r 8d x8" */

#endif
