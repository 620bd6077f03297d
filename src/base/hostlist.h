/* hostlist.h - Slurm's host lists: "rack[01-08]n[1-4],login" (man scontrol, show hostnames). */
#ifndef RG_HOSTLIST_H
#define RG_HOSTLIST_H

#include "base/err.h"

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
