/* segments.h - are the nodes of a job where its segments need them?
 *
 * A segment is `size` nodes that follow each other in node rank, as srun --segment gives them out
 * and as ranks are counted; all of them should be in one block (NVLink domain, rack, leaf).  Which
 * block a node is in, several sources may tell; each is judged by itself, and sources that
 * contradict each other are named. */
#ifndef RG_SEGMENTS_H
#define RG_SEGMENTS_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/host/self_report.h"
#include "topo/topo.h"

struct segments {
    char **node; /* by rank */
    int nodes;
    int size;
    struct opinion {
        char *who;    /* "NVML" */
        char **block; /* of each node; NULL: not told */
        int told;
    } * opinion; /* the one that knows best first */
    int opinions;
};

static inline void segments_init(struct segments *s, int size)
{
    *s = (struct segments){.size = size};
}

void segments_free(struct segments *s);

/* Nodes in order, then NVML, the label, SLURM_TOPOLOGY_ADDR, as far as a node tells of each.  An
 * address that cannot be understood: EXIT_DATA with the node. */
int segments_from_told(struct segments *s, const struct self_report *list, int count,
                       struct err *err);
/* The finest of NVLink domain (across hosts), rack and leaf that the topology groups hosts by, and
 * what each other source declares of these levels. */
void segments_from_topo(struct segments *s, const struct topo *t, const char *name);

struct segment_verdict {
    int segments, together, split, unknown; /* unknown: nobody told of all of its nodes */
    char **word;      /* a sentence for each segment that is not known to be together */
    int words, first; /* first: that of the first split */
    char **differ;    /* sources that contradict each other */
    int differs;
    /* Whole segments could be made of the same nodes in another order, by the source of the first
     * split; and that order as a list of nodes, or NULL. */
    char *order;
};
void segments_judge(struct segment_verdict *v, const struct segments *s);
void segment_verdict_free(struct segment_verdict *v);
/* EXIT_BELOW: a segment is split.  EXIT_UNJUDGED: none is, and one is not known.  err gets one
 * sentence for either. */
int segments_exit(const struct segment_verdict *v, const struct segments *s, struct err *err);

#endif
