/* host.h - name of this host, and Slurm's host lists: "rack[01-08]n[1-4],login" (man scontrol,
 * show hostnames). */
#ifndef RG_HOST_H
#define RG_HOST_H

#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"

/* Write the kernel's name of this host to out: terminated, never empty, cut to size bytes;
 * "localhost" if the kernel has no name.  Queried on each call, because simulated ranks of one
 * process are on different hosts.  Returns out. */
char *host_self(char *out, size_t size);

/* Folder of the kernel's devices: /sys, or that of $RAILGAUGE_SYS. */
static inline const char *host_sys(void)
{
    const char *sys = getenv("RAILGAUGE_SYS");

    return sys && *sys ? sys : "/sys";
}

enum { HOSTLIST_MAX = 1 << 20 };

/* Expand a list to an array of names; the caller frees it with hostlist_free().  Refused with
 * EXIT_DATA: more than HOSTLIST_MAX names, unbalanced brackets, empty names, control characters,
 * or a leading dash (commands would take the name as an option). */
int hostlist_expand(char ***names, int *count, const char *text, struct err *err);
/* Like hostlist_expand(), with at most `max` names: a short text can expand to very many. */
int hostlist_expand_max(char ***names, int *count, const char *text, int max, struct err *err);
void hostlist_free(char **names, int count);
/* Shortest list that expands to exactly these names in this order: the last number is folded into
 * ranges while prefix and width stay the same.  The caller frees. */
char *hostlist_fold(char *const *names, int count);

/* The characters of host names that every exported format takes. */
#define HOST_PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

#endif
