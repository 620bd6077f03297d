/* self_report.h - place of one node in a job as one line of text, written and read: for checks at
 * the start of a job, when nothing is known yet and no privileges are available.
 *
 *   node05 rank=4 addr=rack2.node05 pattern=block.node nvlink=UUID.3 label=su-1
 *
 * Only the node's name is required; slots=N of hostfiles is accepted and ignored; '#' starts a
 * comment.  A name may be a list, node[01-08], if nothing but slots follows. */
#ifndef RG_SELF_REPORT_H
#define RG_SELF_REPORT_H

#include "base/err.h"

struct self_report { /* texts: NULL if unknown */
    char *node;
    long rank;            /* rank of the node, or of a task on it; -1: order of lines */
    char *addr, *pattern; /* SLURM_TOPOLOGY_ADDR and its pattern */
    char *nvlink;         /* cluster UUID and clique of its GPUs, from NVML */
    char *label;
};

/* Describe this node: name (from Slurm if possible), rank from the launcher's environment (Slurm,
 * Open MPI, MPICH, PMIx, an indexed Job of Kubernetes), place from Slurm's variables, GPUs from
 * the driver, and the value of `label_variable` unless NULL (Kubernetes' downward API). */
void self_report_here(struct self_report *t, const char *label_variable);
char *self_report_line(const struct self_report *t); /* without newline; the caller frees */
void self_report_free(struct self_report *t);

/* Read lines of many nodes, sorted by rank if all have one; a node reported by several tasks
 * counts once.  text is modified.  EXIT_DATA with path, line and value. */
int self_report_parse(struct self_report **list, int *count, char *text, const char *path,
                      struct err *err);
void self_report_list_free(struct self_report *list, int count);

#endif
