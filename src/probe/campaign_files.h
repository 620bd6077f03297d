/* campaign_files.h - the files of a campaign: what it works on, where its points go, and the directory
 * of one that was given none. */
#ifndef RG_CAMPAIGN_FILES_H
#define RG_CAMPAIGN_FILES_H

#include <time.h>

#include "probe/probe_args.h"
#include "probe/world.h"

struct campaign_files {
    struct topo topo;       /* whole on rank 0; the others know the number of endpoints */
    struct plan plan;       /* the same everywhere */
    struct points_log *log; /* rank 0 only */
    const char *output;
};

/* Collective, with f->topo filled in: rank 0 reads a->plan or makes one, everybody parses its text.
 */
int campaign_files_plan(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        struct err *err);

/* Collective: rank 0 opens the points log of a->output (default points.tsv); a topology and a plan
 * that were not read from a file are written beside it, where fit looks for them. */
int campaign_files_open(struct campaign_files *f, const struct probe_args *a, struct world *w,
                        const char *transport, struct err *err);

/* "data were wrong in 2 of 40 points and 1 failed; first: pair_bw of ...", and what is tainted;
 * NULL when all went well.  The caller frees. */
char *campaign_files_trouble(const struct points *all);
/* Did points fail, or were data wrong?  Such a campaign ends with EXIT_UNJUDGED, whatever the
 * transport. */
bool campaign_files_failed(const struct points *all);

/* Close the log after a campaign that ended with rc; local.  Points that failed or held wrong data
 * become its error (-1) unless it has one, tainted ones a warning: "points.tsv: data were wrong in
 * 2 of 40 points ...". */
int campaign_files_close(struct campaign_files *f, int rc, struct err *err);

/* Rank 0: what the campaign took and was estimated to take, as a line ("took 7.6 s, estimated 7.1 s
 * at its start: 74 % of it samples (5.6 s) ...") and in "measured" of a campaign.json that
 * lies beside the points, one entry a start. */
int campaign_files_note_time(const struct campaign_files *f, const struct measure_time *t,
                             struct err *err);

/* topology.json beside the points, where fit looks for it; a file of another name or place that the
 * topology was read from is the user's and stays as it is. */
int campaign_files_save_topology(const struct campaign_files *f, struct err *err);

/* SIGTERM, SIGINT and SIGUSR1 set measure_stop.  (mpirun passes SIGUSR1 on to its ranks and waits;
 * on SIGTERM it kills them a second later.) */
void campaign_files_catch_signals(void);

/* --- "campaign-2026-11-22T1601-rack-03": when it began (UTC) and, once that is known, what was
 * measured; "last" beside it is a link to the latest.  Nothing that is there is ever replaced: "-2",
 * "-3" ... are put behind. --- */

#define CAMPAIGN_LAST "last"

/* Make "campaign-TIME" in the current folder; the caller frees.  NULL with EXIT_IO. */
char *campaign_files_dir(time_t now, struct err *err);
/* Put behind *dir, which is replaced, what t is, and let "last" be a link to it: the preset of a
 * simulation, else the rack, or the host where none is declared; "n01+15" is n01 and 15 more.  Other
 * characters than letters, digits, '.', '_', '+' and '-' become '-'.  A "last" that is no link stays,
 * with a warning. */
int campaign_files_name_dir(char **dir, const struct topo *t, struct err *err);
/* Where "last" leads, without its folder; NULL with EXIT_NOINPUT.  The caller frees. */
char *campaign_files_last_dir(struct err *err);
/* Remove a directory in which nothing but campaign.json came to be. */
void campaign_files_drop_dir(const char *dir);

#endif
