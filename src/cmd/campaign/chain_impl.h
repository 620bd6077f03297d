/* chain_impl.h - a campaign directory and the steps that fill it; each step passes on a file. */
#ifndef RG_CHAIN_H
#define RG_CHAIN_H

#include <stdbool.h>

#include "cmd/campaign/launch_impl.h"
#include "fit/fit.h"
#include "measure/probe_args.h"
#include "measure/transports/nccl_opts.h"
#include "measure/transports/transport.h"
#include "step/predict.h"
#include "transport/sim/sim_bed.h"

enum { CHAIN_LAYOUTS = 2 }; /* layouts of one model in the summary */

struct chain {
    const struct opt_line *line; /* command line as typed: the MPI program gets the same options */
    int argc;
    char **argv;
    const char *dir;       /* NULL: a new directory is made (campaign_files_dir) */
    char *made;            /* name of the new directory; owned */
    const char *transport; /* "sim", "mpi", "nccl"; "auto": until the ranks report their hardware */
    struct probe_opts probe;
    struct device_choice device;
    bool no_compute;
    /* log_now() at which measuring ends, complete or not; the plan is shortened and there is no
     * prediction; 0: none */
    double until;
    bool spent;        /* the time ended before the plan did */
    const char *model; /* model of predictions; its products are measured, too */
    struct sim_opts sim;
    struct launch launch;
    const char **job; /* words of --for-job; the array is owned, the words are not */
    int jobs;
    bool resume;
    bool trust;  /* also use directories and files of other users */
    bool probed; /* the start for discovery has measured the plan, too */
    int lock;    /* descriptor of the locked directory, or of a file in it */
    char *owner; /* file that says who uses the directory, where there are no locks; owned */
    /* results of the steps */
    struct sim_bed bed;
    struct topo topo; /* valid until the fit, which moves it to the matrix in a simulation */
    struct plan plan;
    struct points points; /* as in the file */
    struct matrix matrix;
    struct prediction predicted[CHAIN_LAYOUTS];
    int predictions;
    char *trouble; /* campaign_files_trouble(); the exit code is EXIT_UNJUDGED */
};

/* True if the campaign is simulated, in this process. */
static inline bool chain_is_sim(const struct chain *c)
{
    const struct transport *t = transport_find(c->transport);

    return t && !t->ranks;
}

/* Replace "auto" if no rank need be started for it: sim with a fabric.  Refuses options that
 * exclude each other. */
int chain_transport(struct chain *c, struct err *err);
#define CHAIN_TRUST(type, member)                                                                  \
    {                                                                                              \
        "trust-owner", 0, NULL, "use directories, links and files that belong to another user",    \
            OPT_INTO(type, member.trust)                                                           \
    }
/* EXIT_CONFIG if `path`, a link or a directory, or a file in it belongs to a user other than the
 * caller and root, unless allowed (--trust-owner). */
int chain_trusts(const struct chain *c, const char *path, struct err *err);
/* Make the directory (default: named after the measured machine) and lock it.  EXIT_IO if another
 * run holds the lock: flock(), where that does not exist (Lustre without -o flock, some NFS servers)
 * fcntl() on DIR/.lock, else DIR/.owner with host, process and its start.  EXIT_CONFIG if the
 * directory already holds a campaign, unless resume, or belongs to another user (chain_trusts()). */
int chain_open(struct chain *c, struct err *err);
/* Run all steps in order, each writing its file: topology.json, plan.tsv, points.tsv, compute.tsv
 * if ranks have GPUs, matrix.json, prediction.json. */
int chain_run(struct chain *c, struct err *err);
/* Write matrix.json and prediction.json from the measurements so far; for callers that continue
 * after chain_run() was interrupted. */
int chain_fit(struct chain *c, struct err *err);
void chain_close(struct chain *c);

/* Print the cost of the plan and the command that would run, without writing files. */
int chain_dry_run(struct chain *c, FILE *out, struct err *err);

/* Fit files that belong together: topology.json, plan.tsv and points.tsv (EXIT_DATA if not).  Adds
 * data that points lack: `compute` (compute.tsv with the speed of devices alone, NULL: not
 * measured), the data-sheet peaks of the topology's preset, and on hosts without GPUs the measured
 * compute rate of this host.  Points already loaded are not read again.  The caller frees m with
 * matrix_free(), and points, also after a failure. */
int chain_fit_files(struct matrix *m, const char *topology, const char *plan_path,
                    const char *points_path, struct points *points, const char *compute,
                    const struct fit_opts *o, struct err *err);

#endif
