/* launch_impl.h - start the MPI program: find the program, choose the launcher, judge the end.  No shell
 * is used. */
#ifndef RG_LAUNCH_H
#define RG_LAUNCH_H

#include <stdio.h>

#include "base/opt.h"

struct launch {
    const char *command; /* --launch: words before the program; NULL: mpirun */
    const char *hosts;   /* --hosts: a host list or file (hostfile_read()); NULL: this machine */
    int ranks;           /* 0: number of cores here; with --hosts as listed, or one per host */
    const char *address; /* --watch-address: address to listen on for the ranks; NULL: chosen */
    const char *dir;     /* directory of verdict.json; NULL: the ranks watch themselves */
    double hang_after;   /* s; 0: default of the ranks' transport */
    double until;        /* log_now() at which the ranks are ended as by SIGTERM; 0: never */
    char reason[512];    /* set by launch_run(): why the ranks failed; "": not told */
};

/* --hosts --ranks --launch --watch-address, into a struct launch. */
extern const struct opt launch_options[];

/* Run railgauge-probe with these words (without argv[0]) under the launcher and wait.  *code is the
 * exit code of the program, from its own list.  A launcher that ends with a different code is an
 * error: EXIT_CONFIG before a rank started, EXIT_CUT after.  SIGTERM, SIGINT, SIGHUP and SIGQUIT to
 * this process end the ranks, with EXIT_CUT; the death of this process ends the launcher.  A
 * launcher that still runs 5 s after the ranks have said goodbye is ended.
 *
 * With l->dir the ranks are watched (watch/watch.h): a rank that hangs or dies causes an
 * error of EXIT_CUT with the verdict's text, after the launcher, its process group and the ranks on
 * this host are gone.  A retry without the culprit would start here: verdict.json names the
 * culprit. */
int launch_run(struct launch *l, const struct words *args, int *code, struct err *err);

/* Print the command that launch_run() would start, for --dry-run. */
int launch_print(const struct launch *l, const struct words *args, FILE *out, struct err *err);

/* Path of "railgauge-probe" (with RAILGAUGE_MPI=NAME: "railgauge-probe-NAME") beside this executable, else in PATH.  NULL with EXIT_CONFIG: none.
 * The caller frees. */
char *launch_program(struct err *err);
/* Replace this process by railgauge-probe, beside this executable or in PATH, with these words
 * after its name.  Returns only on failure. */
int launch_exec(const struct words *args, struct err *err);

#endif
