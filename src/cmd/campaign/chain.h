/* chain.h - a campaign directory and the steps that fill it; every arrow is a file. */
#ifndef RG_CHAIN_H
#define RG_CHAIN_H

#include <stdbool.h>

#include "cmd/campaign/launch.h"
#include "cost/fit/fit.h"
#include "cost/sim_bed.h"
#include "probe/gpu/gpu_opts.h"
#include "probe/nccl/nccl_opts.h"
#include "probe/probe_opts.h"
#include "probe/transport.h"
#include "step/predict.h"

enum { CHAIN_LAYOUTS = 2 }; /* of one model, in the summary */

struct chain {
    const struct opt_line *line; /* what was typed: the MPI program is given the same options */
    int argc;
    char **argv;
    const char *dir;       /* NULL: one of its own is made (campaign_files_dir) */
    char *made;            /* that one; owned */
    const char *transport; /* "sim", "mpi", "nccl"; "auto": until the ranks say what they have */
    struct probe_opts probe;
    struct device_choice device;
    bool no_compute;
    double until; /* log_now() by which measuring is over, whatever is missing then, and a shorter
                   * plan; no prediction; 0: none */
    bool spent;   /* it was over before the plan was */
    const char *model; /* of predictions; its products are measured too */
    struct sim_opts sim;
    struct launch launch;
    const char **job; /* words of --for-job; owned, the words are not */
    int jobs;
    bool resume;
    bool trust;  /* folders and files of other users are used, too */
    bool probed; /* the start that discovered has measured the plan, too */
    int lock;    /* descriptor of the locked directory */
    /* what the steps leave behind */
    struct sim_bed bed;
    struct topo topo; /* until it is fitted: of a simulation it is the matrix's then */
    struct plan plan;
    struct points points; /* as the file has them */
    struct matrix matrix;
    struct prediction predicted[CHAIN_LAYOUTS];
    int predictions;
    char *trouble; /* campaign_files_trouble(); the end is EXIT_UNJUDGED */
};

/* Is it simulated, in this process? */
static inline bool chain_is_sim(const struct chain *c)
{
    const struct transport *t = transport_find(c->transport);

    return t && !t->ranks;
}

/* What "auto" is where no rank has to be asked: sim with a fabric.  Refuses what does not go
 * together. */
int chain_transport(struct chain *c, struct err *err);
#define CHAIN_TRUST(type, member)                                                                  \
    {                                                                                              \
        "trust-owner", 0, NULL,                                                                    \
            "use folders, links and files although they belong to another user",                   \
            OPT_INTO(type, member.trust), .group = 1                                               \
    }
/* EXIT_CONFIG where `path`, a link or a folder, or a file in it belongs to another user than us and
 * root, unless that is fine (--trust-owner). */
int chain_trusts(const struct chain *c, const char *path, struct err *err);
/* Make the directory, which a campaign without one names after what it measures, lock it (EXIT_IO when another run holds it), and refuse one that already
 * holds a campaign unless resume (EXIT_CONFIG), or is another user's (chain_trusts). */
int chain_open(struct chain *c, struct err *err);
/* Every step in turn, each leaving its file: topology.json, plan.tsv, points.tsv, compute.tsv where
 * ranks have GPUs, matrix.json, prediction.json. */
int chain_run(struct chain *c, struct err *err);
/* matrix.json and prediction.json of what was measured until then; for who goes on after chain_run()
 * was cut short. */
int chain_fit(struct chain *c, struct err *err);
void chain_close(struct chain *c);

/* What the plan costs, and the command that would run, without writing anything. */
int chain_dry_run(struct chain *c, FILE *out, struct err *err);

/* topology.json, plan.tsv and points.tsv must belong together (EXIT_DATA).  Adds what no point
 * tells: what devices do alone, from `compute` (compute.tsv, NULL: not measured), the data-sheet
 * peaks of the preset that the topology names, and on hosts without GPUs the compute rate of this
 * host, measured.  Points that are there are not read again.  The caller frees m with matrix_free() and
 * points, also after a failure. */
int chain_fit_files(struct matrix *m, const char *topology, const char *plan_path,
                    const char *points_path, struct points *points, const char *compute,
                    const struct fit_opts *o, struct err *err);

#endif
