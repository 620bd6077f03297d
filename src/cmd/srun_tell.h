/* srun_tell.h - ask every node of this Slurm job what it knows of its own place. */
#ifndef RG_SRUN_TELL_H
#define RG_SRUN_TELL_H

#include "base/err.h"

/* srun starts this program once on each of the job's nodes with --tell; *text is what they print
 * (topo/told.h), the caller frees.  label: variable with a label, or NULL.  No srun, or one that
 * fails: EXIT_CONFIG with its exit code (its own words go to stderr); no answer within `patience`
 * seconds: EXIT_UNJUDGED, and srun is ended. */
int srun_tell(char **text, const char *label, double patience, struct err *err);

#endif
