/* host.h - names of hosts: this one's, and Slurm's lists of them: "rack[01-08]n[1-4],login" (man
 * scontrol, show hostnames). */
#ifndef RG_HOST_H
#define RG_HOST_H

#include <stddef.h>

#include "base/err.h"

/* The kernel's name of this host into out, size bytes of it: terminated, never empty, cut to what
 * has room; "localhost" where the kernel has no name to tell.  Asked anew each time: simulated
 * ranks of one process stand on different hosts.  Returns out. */
char *host_self(char *out, size_t size);

enum { HOSTLIST_MAX = 1 << 20 };

/* Expand to an array of names; names[] and each name belong to the caller (hostlist_free).  More
 * than HOSTLIST_MAX names, unbalanced brackets, empty names, control characters or a dash in front
 * (an option, to whom the name is given) are refused (EXIT_DATA). */
int hostlist_expand(char ***names, int *count, const char *text, struct err *err);
/* The same where more than `max` names are refused: a short text can stand for very many. */
int hostlist_expand_max(char ***names, int *count, const char *text, int max, struct err *err);
void hostlist_free(char **names, int count);
/* The shortest list that expands to exactly these names in this order (the last number is folded
 * into ranges while prefix and width stay the same).  The caller frees. */
char *hostlist_fold(char *const *names, int count);

#endif
