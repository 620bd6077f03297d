/* rank_files.h - an order of ranks as launchers and schedulers read it.
 *
 * Facts: Open MPI 4.1 and 5.0 mpirun(1) (rankfile; 5.0 names it with --map-by rankfile:file=FILE
 * and takes its nodes from no rankfile but from --hostfile, which reads one too), hydra's -f
 * (MPICH), srun(1) (SLURM_HOSTFILE: one line a task, with -m arbitrary), sbatch(1)
 * (--segment), torchrun's --node-rank, Kubernetes node affinity.  Ranks of a node take its devices
 * in ascending order, as all of these do; an order that says otherwise is refused by those that
 * cannot say it. */
#ifndef RG_RANK_FILES_H
#define RG_RANK_FILES_H

#include <stdio.h>

#include "topo/topo.h"

struct rank_map {
    const struct topo *topo;
    const int *order; /* rank -> endpoint */
    int ranks;
};
/* The nodes as a host list, each once, in the order in which ranks meet them; the caller frees. */
char *rank_map_list(const struct rank_map *s);
/* Nodes that one domain (else rack) gives the job at a time, the same number everywhere: what
 * --segment asks for; 1 where there is no such number. */
int rank_map_segment(const struct rank_map *s);

struct host_runs;
struct rank_file {
    const char *name, *help;
    void (*write)(FILE *out, const struct host_runs *v);
    const char *use; /* the command that reads it, for rank_file_use() */
    bool bare;       /* what is written goes into a command whole: no line of comment before it */
    /* What it cannot say is refused. */
    const char *in_turn; /* its name, where it gives a node's ranks its devices in turn; NULL */
    bool whole, even;    /* nodes are filled one after the other; have as many ranks each */
    bool labels;         /* nodes' names are values of Kubernetes' labels */
};

void rank_file_each(name_taker *take, void *to); /* names */
/* By name; unknown: NULL and EXIT_USAGE with the known ones. */
const struct rank_file *rank_file_find(const char *name, struct err *err);
/* The command that reads a file of this form; the caller frees. */
char *rank_file_use(const struct rank_file *f, const char *path, int ranks);
/* Its command as a comment, which all of these readers skip, then what write() says.  Streams may
 * fail: the caller checks them.  After an error nothing was written. */
int rank_file_write(const struct rank_file *f, FILE *out, const struct rank_map *s,
                    struct err *err);

#endif
