/* record_load.h - the folder of a job's records: every file of probe/record/record.h in it.
 *
 * A rank's time in a collective is what its GPU says of the channels, where NCCL told it (interface 4
 * on), else what the host saw of them; calls of which neither is known, and those under way when the
 * file ends, are left out and counted.  Clocks of a host are one by way of its monotonic clock; a
 * GPU's timer is its own.  Sends and receives that NCCL launched together become
 *
 *   all_to_all   from each to all others, as many bytes
 *   sendrecv     to the next rank and from the one before
 *   messages     what is left
 *
 * Errors name file and byte: EXIT_DATA for what is no such file, cut short, of another version or of
 * another job; EXIT_NOINPUT for a folder without any. */
#ifndef RG_RECORD_LOAD_H
#define RG_RECORD_LOAD_H

#include "probe/import/record_job.h"

/* After record_job_init(); record_job_end() included. */
int record_load(struct record_job *j, const char *dir, struct err *err);

#endif
