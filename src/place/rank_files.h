/* rank_files.h - order of ranks in the formats of launchers and schedulers.
 *
 * Facts: Open MPI 4.1 and 5.0 mpirun(1) (rankfile; 5.0 names it with --map-by rankfile:file=FILE
 * and does not take its nodes from a rankfile but from --hostfile, which reads one too), hydra's -f
 * (MPICH), srun(1) (SLURM_HOSTFILE: one line per task, with -m arbitrary), sbatch(1) (--segment),
 * torchrun's --node-rank, Kubernetes node affinity.  All of these give the ranks of a node its
 * devices in ascending order.  An order that differs is refused for formats that cannot express
 * it. */
#ifndef RG_RANK_FILES_H
#define RG_RANK_FILES_H

#include <stdio.h>

#include "topo/topo.h"

struct rank_map {
    const struct topo *topo;
    const int *order; /* rank -> endpoint */
    int ranks;
};
/* Nodes as a host list, each once, in order of their first ranks.  The caller frees. */
char *rank_map_list(const struct rank_map *s);
/* Number of nodes that each domain (else rack) gives the job at a time, for --segment; 1 if it is
 * not the same everywhere. */
int rank_map_segment(const struct rank_map *s);

struct host_runs;
struct rank_file {
    const char *name, *help;
    void (*write)(FILE *out, const struct host_runs *v);
    const char *use; /* command that reads the file, for rank_file_use() */
    bool bare;       /* the text is inserted into a command: no comment line before it */
    /* Properties that an order must have, else it is refused. */
    const char *in_turn; /* name, if ranks of a node get its devices in order; else NULL */
    bool whole, even;    /* nodes are filled one after the other; equal numbers of ranks per node */
    bool labels;         /* node names are values of Kubernetes labels */
};

void rank_file_each(name_taker *take, void *to); /* lists the names */
/* Find by name.  Unknown: NULL and EXIT_USAGE with the known names. */
const struct rank_file *rank_file_find(const char *name, struct err *err);
/* Command that reads a file of this format.  The caller frees. */
char *rank_file_use(const struct rank_file *f, const char *path, int ranks);
/* Write the command as a comment, which all of these readers skip, and then the output of write().
 * The caller checks the stream for errors.  After an error nothing was written. */
int rank_file_write(const struct rank_file *f, FILE *out, const struct rank_map *s,
                    struct err *err);

#endif
