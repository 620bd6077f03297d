/* segments.h - check that the nodes of each segment of a job lie in one block.
 *
 * A segment is `size` nodes with consecutive node ranks, as srun --segment assigns them and ranks
 * are counted.  All of its nodes should be in one block (NVLink domain, rack, leaf).  Several
 * sources may name the block of a node: each source is judged separately, and contradictions
 * between sources are reported. */
#ifndef RG_SEGMENTS_H
#define RG_SEGMENTS_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/sources/host/self_report.h"
#include "topo/topo.h"

struct segments {
    char **node; /* by rank */
    int nodes;
    int size;
    struct opinion {
        char *who;    /* "NVML" */
        char **block; /* per node; NULL: unknown */
        int told;
    } * opinion; /* most reliable source first */
    int opinions;
};

static inline void segments_init(struct segments *s, int size)
{
    *s = (struct segments){.size = size};
}

void segments_free(struct segments *s);

/* Fill s from nodes in order: NVML, the label, SLURM_TOPOLOGY_ADDR, as far as a node reports each.
 * EXIT_DATA names the node whose address cannot be parsed. */
int segments_from_told(struct segments *s, const struct self_report *list, int count,
                       struct err *err);
/* Fill s from the finest of NVLink domain (across hosts), rack and leaf by which the topology
 * groups hosts, and from the declarations of these levels by each other source. */
void segments_from_topo(struct segments *s, const struct topo *t, const char *name);

struct segment_verdict {
    int segments, together, split, unknown; /* unknown: no source covers all nodes of the segment */
    char **word;      /* a sentence for each segment not known to be together */
    int words, first; /* first: index of the sentence for the first split segment */
    char **differ;    /* sources that contradict each other */
    int differs;
    /* Order of the same nodes, as a list, that makes whole segments according to the source of the
     * first split; NULL: none. */
    char *order;
};
void segments_judge(struct segment_verdict *v, const struct segments *s);
void segment_verdict_free(struct segment_verdict *v);
/* Returns EXIT_BELOW if a segment is split, EXIT_UNJUDGED if none is split and one is unknown.  err
 * gets one sentence in both cases. */
int segments_exit(const struct segment_verdict *v, const struct segments *s, struct err *err);

#endif
