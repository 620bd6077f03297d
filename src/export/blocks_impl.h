/* blocks_impl.h - the machine as blocks of hosts, and what lies between the blocks: what block
 * schedulers, tree exports and rank orders are made from.
 *
 * A block is a group of hosts at one level (NVLink domain, rack, leaf, spine; with rails: hosts on
 * the same set of leaves).  The time between two blocks is the median over pairs of hosts of
 * moving `bytes` both ways; at most BLOCKS_PAIRS pairs are asked.  Blocks are ordered so that near
 * ones are neighbours: average-linkage merging of the nearest, the smaller index first on ties;
 * times within 5 % of each other are ties. */
#ifndef RG_BLOCKS_H
#define RG_BLOCKS_H

#include "matrix/matrix.h"

enum { BLOCKS_PAIRS = 9, BLOCKS_MAX = 4096 };

struct block {
    char *name;
    int *host; /* indices, ascending */
    int hosts;
};

struct blocks {
    enum level level;
    enum source source; /* source of the grouping */
    struct block *block;
    int count;
    int *of;     /* block of each host of the topology, -1: none */
    double *sec; /* [count][count]; the diagonal is inside a block (NAN: one host); NAN unknown */
};

/* level -1: the first of domain (with more than one host), rack, leaf, spine that groups hosts.
 * No grouping is known: EXIT_UNJUDGED.  m->tiers may lack curves: sec is NAN and the order that of
 * the topology. */
int blocks_make(struct blocks *b, const struct matrix *m, int level, double bytes, struct err *err);
void blocks_free(struct blocks *b);

#endif
