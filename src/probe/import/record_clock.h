/* record_clock.h - the clocks of a job's processes as one.
 *
 * Collectives that synchronise end on all ranks at about the same time, so the ends tell how the
 * clocks differ.  With end(p, c) of process p in call c, in turns until nothing changes:
 *
 *   T(c) = median over p of (end(p, c) - offset(p) - drift(p) T(c))
 *   offset, drift of p: median of the differences, and the line through those of the first and the
 *                       last third (Tukey's resistant line, 1970)
 *
 * Medians, because a rank may end late now and then.  Processes of a host share its clock: theirs is
 * the median of what each says, where these agree within RECORD_CLOCK_HOST.  The common clock is that of the
 * first process; those that no collective joins to it have one of their own (unsure is NAN). */
#ifndef RG_RECORD_CLOCK_H
#define RG_RECORD_CLOCK_H

#include "probe/import/record_job.h"

#define RECORD_CLOCK_HOST 1e-3 /* s */

/* After record_job_end().  Entries are on one clock afterwards. */
void record_clock_align(struct record_job *j);
/* The largest uncertainty of those that are joined, s; 0: there is one process. */
double record_clock_unsure(const struct record_job *j);

#endif
