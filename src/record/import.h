/* import.h - make a campaign (topology, plan and points) from recordings of nccl-tests.
 *
 * Each table is a round of one group.  With NCCL_TESTS_SPLIT several groups ran at the same time
 * and only the average was printed, so each group gets the average.  A repeated size is the next
 * epoch.  Endpoints are the GPUs of the rank lines, in order of appearance.  Only facts in the
 * files are recorded; all others are "not visible". */
#ifndef RG_IMPORT_H
#define RG_IMPORT_H

#include <stdbool.h>

#include "base/err.h"
#include "measure/plan.h"
#include "measure/point.h"
#include "record/recording.h"
#include "topo/topo.h"

struct import_opts {
    int op;                  /* enum op for tables without an operation; -1: not given */
    bool in_place;           /* use the in-place half instead of the other */
    const char *hosts;       /* hostlist for recordings without rank lines; NULL: not given */
    int ranks;               /* number of ranks on these hosts, in blocks; 0: not given */
    const struct topo *topo; /* topology of the ranks; NULL: from the recordings */
};

struct import {
    const struct import_opts *opts;
    struct topo topo;
    struct plan plan;
    struct point_row *row;
    int rows;
    char **said; /* sentences about missing and unused data */
    int saids;
    struct import_host *host; /* same order as topo.host */
    int hosts;
};

/* The caller frees with import_free(), also after a failure, and keeps *o until import_end(). */
void import_init(struct import *im, const struct import_opts *o);
int import_add(struct import *im, const struct recording *r, struct err *err);
/* After the last recording: set tiers, and the reason why other facts are not visible. */
void import_end(struct import *im, const char *unseen);
/* Endpoint of a rank; a new one unless the topology was given.  -1: EXIT_DATA. */
int import_endpoint(struct import *im, const char *path, const struct recording_rank *k,
                    struct err *err);
void import_say(struct import *im, char *sentence); /* takes ownership of the sentence */
void import_free(struct import *im);

#endif
