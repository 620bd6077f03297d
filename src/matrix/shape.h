/* shape.h - the shape of a group: what a collective's cost depends on besides its size.
 *
 * ranks n, domains d, g = members per domain (the fewest, because the slowest part rules), nodes,
 * NICs that the group can drive from one domain, and racks touched.  A domain is the NVLink domain
 * where one is known and the host elsewhere. */
#ifndef RG_SHAPE_H
#define RG_SHAPE_H

#include <stdbool.h>

#include "railgauge.h"
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
/* True if both shapes cost the same: equal ranks, domains and members per domain; across domains also equal NICs, and
 * equal racks if both are known (nodes inside a domain do not matter). */
bool shape_equal(const struct shape *a, const struct shape *b);
/* "64 ranks, 8 domains of 8", "72 ranks, 1 domain" */
char *shape_text(char buf[48], const struct shape *s);

/* Ids of s->ranks endpoints whose shape_of() equals *s, in topology order, or NULL when there is no such group of
 * equal domains (neighbouring ones and every 2nd, 4th, 8th ... are tried).  A curve is kept by shape, without its
 * members; to ask what it should cost, members are needed again.  The caller frees. */
int *shape_group(const struct topo *t, const struct shape *s);

/* --- groups that are ranges of endpoints: counted by the blocks that they touch, not by members --- */

/* One level along the ids of endpoints.  A block is one group or, where `deal` is more, so many whose
 * members take turns in it: the rails of the hosts below some leaves. */
struct stair {
    int *block;         /* block of each endpoint, ascending; NULL: the level is not visible */
    int *start, *alike; /* first endpoint by block; the next block of another size */
    int *turn;          /* block * deal + position in the block, by group; -1: empty group */
    int blocks, least, most, deal; /* least, most: endpoints of one */
};

/* All levels that a group's cost asks for.  regular: each is a stair or nowhere visible, and their
 * blocks lie in each other; else only members tell. */
enum { STAIR_NIC = LEVEL_COUNT, STAIRS };
struct stairs {
    struct stair at[STAIRS];
    int link[LEVEL_COUNT], links; /* visible levels, the finest first */
    int depth[LEVEL_COUNT];       /* index in link[]; -1: not visible */
    int domain; /* the level that is the domain: that of hosts where none is known */
    int deal;   /* deal of the levels that interleave; 1: none does */
    bool regular;
    int *column; /* level by level, then of NICs, where each endpoint is: what is asked of all lies
                    side by side.  Whoever needs it no more may free it, and set it to NULL */
    int endpoints;
};
static inline const int *stairs_column(const struct stairs *s, int link)
{
    return s->column + (size_t)link * (size_t)s->endpoints;
}
void stairs_make(struct stairs *s, const struct topo *t);
void stairs_free(struct stairs *s);

/* Ranges in a row, each after the one before, of endpoints that are there. */
struct ranges {
    const struct stairs *stairs;
    const struct railgauge_range *at;
    int count, ranks;
};
static inline int range_last(const struct railgauge_range *r)
{
    return r->first + (r->count - 1) * r->step;
}
/* Members with ids from `from` up to `end`; dealt: only those that are as many ids from `like` as
 * stairs->deal divides. */
int ranges_within(const struct ranges *g, int from, int end, bool dealt, int like);
/* Steps of range r to another block; -1: only members tell. */
static inline int range_climbs(const struct stair *s, const struct railgauge_range *r)
{
    if (r->step >= s->most)
        return r->count - 1;
    return r->step > s->least ? -1 : s->block[range_last(r)] - s->block[r->first];
}
/* shape_of(), and the lone member's id; -1: only members tell. */
int shape_of_ranges(struct shape *s, const struct ranges *g);

#endif
