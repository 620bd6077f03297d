/* record_job_impl.h - what the files of record_job.h share. */
#ifndef RG_RECORD_JOB_IMPL_H
#define RG_RECORD_JOB_IMPL_H

#include "probe/import/record_job.h"

/* After all processes are in the order of their ranks. */
void record_axes_make(struct record_job *j);

#endif
