/* record_load.h - load the directory of a job's records: every file of record/plugin/record.h in it.
 *
 * The time of a rank in a collective comes from the GPU times of the channels, if reported by NCCL
 * (interface 4 on), else from the host times.  Calls without either, and calls under way when the
 * file ends, are left out and counted.  Clocks of a host are related by its monotonic clock; a
 * GPU's timer is a separate clock.  Sends and receives that NCCL launched together become
 *
 *   all_to_all   the same number of bytes from each rank to all others
 *   sendrecv     to the next rank and from the previous rank
 *   messages     otherwise
 *
 * Errors name file and byte.  EXIT_DATA: wrong kind of file, cut short, of another version or job.
 * EXIT_NOINPUT: a directory without records. */
#ifndef RG_RECORD_LOAD_H
#define RG_RECORD_LOAD_H

#include "record/record_job.h"

/* Call after record_job_init(); includes record_job_end(). */
int record_load(struct record_job *j, const char *dir, struct err *err);

#endif
