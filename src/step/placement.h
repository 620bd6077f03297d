/* placement.h - which endpoint does rank i run on: hostfiles and rank lists.
 *
 * One line per host or rank, '#' starts a comment:
 *   r00n01            every endpoint of that host, in local order
 *   r00n01 slots=2    its first two not yet taken (mpirun's hostfile); "r00n01:2" is the same
 *   r00n01 3          its endpoint with local index 3
 *   17                endpoint 17
 * A line may be a host list ("r00n[01-18]"), then it stands for all of those hosts in turn. */
#ifndef RG_PLACEMENT_H
#define RG_PLACEMENT_H

#include "base/err.h"
#include "topo/topo.h"

/* order[rank] = endpoint; the caller frees.  An unknown host, an endpoint given twice or not there:
 * EXIT_DATA with file, line and the text. */
int placement_load(int **order, int *ranks, const struct topo *t, const char *path,
                   struct err *err);
/* The same from memory; `path` is for messages, text is changed. */
int placement_parse(int **order, int *ranks, const struct topo *t, char *text, const char *path,
                    struct err *err);

#endif
