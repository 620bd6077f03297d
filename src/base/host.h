/* host.h - name of this host or node, and Slurm's host lists: "rack[01-08]n[1-4],login" (man
 * scontrol, show hostnames). */
#ifndef RG_HOST_H
#define RG_HOST_H

#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"

/* Write the kernel's name of this host to out: terminated, never empty, cut to size bytes;
 * "localhost" if the kernel has no name.  In a container that is the pod's name.  Names process
 * numbers and addresses belong to; host_self() is the name for people and schedulers.  Queried on
 * each call, because simulated ranks of one process are on different hosts.  Returns out. */
char *host_kernel(char *out, size_t size);

/* Write the name of the node that this process runs on to out, as host_kernel() does.  In this
 * order:
 *   - the node that host_map() gives for the kernel's name, the machine's id or $NODE_NAME
 *   - $NODE_NAME, which Kubernetes' downward API sets from spec.nodeName; ignored if it is no name
 *   - in a pod without it, the machine's id: EC2's instance, else the UUID of the firmware, which
 *     is status.nodeInfo.systemUUID of the node
 *   - the kernel's name
 * A pod is recognized by $KUBERNETES_SERVICE_HOST or by the kubelet's /etc/hosts, because ssh hands
 * on no environment. */
char *host_self(char *out, size_t size);
/* --node-map: lines "SEEN NODE"; SEEN is a pod, a machine's UUID or a provider id, of which the part
 * behind the last slash counts; # begins a comment.  EXIT_DATA: a line with other words, a name
 * twice.  Called before threads start; a second file is added to the first. */
int host_map(void *unused, char *path, struct err *err);
/* Row of a command line; the arguments say what becomes of the file. */
#define HOST_MAP_ROW(...)                                                                          \
    {                                                                                              \
        "node-map", 0, "FILE",                                                                     \
            "name nodes by lines \"SEEN NODE\": SEEN is a pod, a system UUID or a provider id "    \
            "(default: $NODE_NAME, in pods the machine's id, else the host's name)",               \
            __VA_ARGS__                                                                            \
    }

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
