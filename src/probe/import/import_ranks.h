/* import_ranks.h - the ranks of a table of nccl-tests as groups of endpoints.  For import.c.
 *
 * A rank is its host's device: the endpoint of the given topology, which must have it, or else one
 * that is made when it is first met. */
#ifndef RG_IMPORT_RANKS_H
#define RG_IMPORT_RANKS_H

#include "probe/import/import.h"

struct import_seat {
    int device, endpoint;
};
/* Which endpoint is which device of one host, in the order in which they were met. */
struct import_host {
    struct import_seat *seat;
    int seats;
};

/* Those of im->topo; import_hosts_free() frees im->host. */
void import_hosts(struct import *im);
void import_hosts_free(struct import *im);

/* Group g is member[at[g]] .. member[at[g + 1] - 1]: endpoints in the order of ranks. */
struct import_groups {
    int *member, *at, count;
};

/* Sorts t's ranks by group; where there are none, those of im->opts.  Groups are of one size, at
 * least 2, and no endpoint is in two: EXIT_DATA.  import_groups_free() also after an error. */
int import_groups(struct import_groups *g, struct import *im, const struct recording *r,
                  struct recording_table *t, struct err *err);
void import_groups_free(struct import_groups *g);

#endif
