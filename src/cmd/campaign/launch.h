/* launch.h - start the MPI program: where it is, what stands before it, and how it ended.  No
 * shell. */
#ifndef RG_LAUNCH_H
#define RG_LAUNCH_H

#include <stdio.h>

#include "base/opt.h"

struct launch {
    const char *command; /* --launch: words before the program, instead of mpirun */
    const char *hosts;   /* --hosts: a host list or file (hostfile.h), or NULL for this machine */
    int ranks;           /* 0: by the cores here, with --hosts as it says, or one a host */
    const char *address; /* --watch-address: where to listen to the ranks, NULL: chosen */
    const char *dir;     /* where verdict.json goes; NULL: the ranks are left to watch themselves */
    double hang_after;   /* s, 0: as the ranks' transport has it */
    double until;        /* log_now() at which the ranks are ended as by SIGTERM; 0: never */
};

/* --hosts --ranks --launch --watch-address, into a struct launch. */
extern const struct opt launch_options[];

/* Run railgauge-probe with these words (without argv[0]) under the launcher and wait.  *code is
 * its exit code, one of the program's own; a launcher that ends with another is an error, EXIT_CONFIG before a rank began and EXIT_CUT after.  SIGTERM, SIGINT, SIGHUP and
 * SIGQUIT to us end the ranks, and that is EXIT_CUT; our death ends the launcher.  One that stays
 * for 5 s when its ranks have said goodbye is ended.
 *
 * With l->dir the ranks are watched (probe/watch/watch.h): a rank that hangs or dies makes an error
 * of EXIT_CUT with the verdict's words, after the launcher, its process group and the ranks on this
 * host are gone.  A next attempt without the culprit would begin here: verdict.json names it. */
int launch_run(const struct launch *l, const struct words *args, int *code, struct err *err);

/* Print the command that launch_run() would start, for --dry-run. */
int launch_print(const struct launch *l, const struct words *args, FILE *out, struct err *err);

/* "railgauge-probe" beside our own executable, else found in PATH; NULL: EXIT_CONFIG, there is none.
 * The caller frees. */
char *launch_program(struct err *err);
/* Replace this process by railgauge-probe, which is beside our own executable or in PATH, with these
 * words behind its name; returns only on failure. */
int launch_exec(const struct words *args, struct err *err);

#endif
