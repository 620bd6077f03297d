/* campaign_files.h - files of a campaign: topology and plan, the points log, and the directory used
 * if none was given. */
#ifndef RG_CAMPAIGN_FILES_H
#define RG_CAMPAIGN_FILES_H

#include <time.h>

#include "measure/probe_args.h"
#include "watch/world.h"

struct campaign_files {
    struct topo topo;       /* complete on rank 0; other ranks know the number of endpoints */
    struct plan plan;       /* identical on all ranks */
    struct points_log *log; /* rank 0 only */
    const char *output;
};

/* Collective.  f->topo must be filled in.  Rank 0 reads a->plan or makes a plan; every rank parses
 * its text. */
int campaign_files_plan(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        struct err *err);

/* Collective.  Rank 0 opens the points log of a->output (default points.tsv).  Topology and plan
 * are written beside the log, where fit looks for them, unless they were read from files. */
int campaign_files_open(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        const char *transport, struct err *err);

/* Describe failed, wrong and tainted points: "data were wrong in 2 of 40 points and 1 failed;
 * first: pair_bw of ...".  NULL: no such points.  The caller frees. */
char *campaign_files_trouble(const struct points *all);
/* True if points failed or data was wrong.  Such a campaign ends with EXIT_UNJUDGED on every
 * transport. */
bool campaign_files_failed(const struct points *all);

/* Close the log after a campaign that ended with rc; local.  Failed or wrong points become the
 * error (-1) of a campaign that had none; tainted points become a warning: "points.tsv: data were
 * wrong in 2 of 40 points ...". */
int campaign_files_close(struct campaign_files *f, int rc, struct err *err);

/* Rank 0: record the time that the campaign took and the estimate, as one line ("took 7.6 s,
 * estimated 7.1 s at its start: 74 % of it samples (5.6 s) ...") and in "measured" of a
 * campaign.json beside the points, one entry per start. */
int campaign_files_note_time(const struct campaign_files *f, const struct measure_time *t,
                             struct err *err);

/* Write topology.json beside the points, where fit looks for it.  A topology file of another name
 * or place belongs to the user and stays as it is. */
int campaign_files_save_topology(const struct campaign_files *f, struct err *err);

/* Let SIGTERM, SIGINT and SIGUSR1 set measure_stop.  (mpirun passes SIGUSR1 on to its ranks and
 * waits; on SIGTERM it kills them a second later.) */
void campaign_files_catch_signals(void);

/* --- directory names: "campaign-2026-11-22T1601-rack-03" is the start time (UTC) and, once known,
 * what was measured.  "last" beside it links to the latest.  Existing directories are never
 * replaced: "-2", "-3" ... are appended. --- */

#define CAMPAIGN_LAST "last"

/* Make "campaign-TIME" in the current directory.  NULL with EXIT_IO.  The caller frees. */
char *campaign_files_dir(time_t now, struct err *err);
/* Append the name of the measured machine to *dir (replaced) and point "last" to it.  The name is
 * the preset of a simulation, else the rack, or the host if no rack is declared; "n01+15" is n01
 * and 15 more hosts.  Characters other than letters, digits, '.', '_', '+' and '-' become '-'.  A
 * "last" that is not a link stays, with a warning. */
int campaign_files_name_dir(char **dir, const struct topo *t, struct err *err);
/* Target of the link "last", without its directory.  NULL with EXIT_NOINPUT.  The caller frees. */
char *campaign_files_last_dir(struct err *err);
/* Remove a directory that holds only campaign.json. */
void campaign_files_drop_dir(const char *dir);

#endif
