/* record_clock.h - put the clocks of a job's processes on one clock.
 *
 * Collectives that synchronise end on all ranks at about the same time, so the ends show how the
 * clocks differ.  With end(p, c) of process p in call c, iterated until T, offset and drift are
 * stable:
 *
 *   T(c) = median over p of (end(p, c) - offset(p) - drift(p) T(c))
 *   offset, drift of p: median of the differences, and the line through those of the first and the
 *     last third (Tukey's resistant line, 1970)
 *
 * Medians are used because a rank may end late now and then.  Processes of a host share its clock:
 * the median of the single values, if these agree within RECORD_CLOCK_HOST.  The common clock is
 * that of the first process.  A process that no collective connects to the first keeps its own
 * (unsure is NAN). */
#ifndef RG_RECORD_CLOCK_H
#define RG_RECORD_CLOCK_H

#include "record/record_job.h"

#define RECORD_CLOCK_HOST 1e-3 /* s */

/* Call after record_job_end().  Afterwards all entries are on one clock. */
void record_clock_align(struct record_job *j);
/* Largest uncertainty of the connected processes, s; 0: there is only one process. */
double record_clock_unsure(const struct record_job *j);

#endif
