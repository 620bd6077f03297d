/* record_job_impl.h - internal functions of the files that implement record_job.h. */
#ifndef RG_RECORD_JOB_IMPL_H
#define RG_RECORD_JOB_IMPL_H

#include "record/record_job.h"

/* Call once all processes are sorted by rank. */
void record_axes_make(struct record_job *j);

#endif
