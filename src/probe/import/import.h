/* import.h - recordings of nccl-tests become a campaign: topology, plan and points.
 *
 * Each table is a round of one group (several with NCCL_TESTS_SPLIT: they ran at the same time and
 * their average was printed, so each gets it); the same size again is the next epoch.  Endpoints
 * are the GPUs of the rank lines, in the order in which they appear.  Only what the files say
 * becomes a fact; the rest is "not visible". */
#ifndef RG_IMPORT_H
#define RG_IMPORT_H

#include <stdbool.h>

#include "base/err.h"
#include "probe/import/recording.h"
#include "probe/plan.h"
#include "probe/point.h"
#include "topo/topo.h"

struct import_opts {
    int op;                  /* enum op for tables that do not say theirs, -1: not given */
    bool in_place;           /* the in-place half instead of the other */
    const char *hosts;       /* hostlist for recordings without rank lines, NULL */
    int ranks;               /* on them, in blocks; 0: not given */
    const struct topo *topo; /* what the ranks are; NULL: from the recordings */
};

struct import {
    const struct import_opts *opts;
    struct topo topo;
    struct plan plan;
    struct point_row *row;
    int rows;
    char **said; /* sentences on what was left out or is not known */
    int saids;
    struct import_host *host; /* as topo.host */
    int hosts;
};

/* The caller frees with import_free(), also after a failure, and keeps *o until import_end(). */
void import_init(struct import *im, const struct import_opts *o);
int import_add(struct import *im, const struct recording *r, struct err *err);
/* After the last recording: tiers, and why the rest is not visible. */
void import_end(struct import *im, const char *unseen);
/* The endpoint that a rank is, a new one unless the topology was given; -1: EXIT_DATA. */
int import_endpoint(struct import *im, const char *path, const struct recording_rank *k,
                    struct err *err);
void import_say(struct import *im, char *sentence); /* takes it over */
void import_free(struct import *im);

/* --- models --- */

struct json_t;

/* A config.json of Hugging Face Transformers as a file of jobs/training/models, a new reference; NULL with EXIT_DATA where it has what no layer
 * there can say (linear attention, block lists).  path is for messages. */
struct json_t *model_from_hf(struct json_t *config, const char *path, struct err *err);

#endif
