/* hosts.h - a host list that was typed, as hosts of a topology. */
#ifndef RG_HOSTS_H
#define RG_HOSTS_H

#include "topo/topo.h"

/* The hosts of "n[01-18],login" in that order, all of t without a list (NULL).  A message
 * (EXIT_USAGE) begins with the option.  The caller frees *host. */
int hosts_read(int **host, int *hosts, const struct topo *t, const char *option, const char *list,
               struct err *err);

#endif
