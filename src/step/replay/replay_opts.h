/* replay_opts.h - the command line of replay, as railgauge and the MPI program both read it. */
#ifndef RG_REPLAY_OPTS_H
#define RG_REPLAY_OPTS_H

#include "step/job.h"
#include "step/replay/replay_case.h"

struct replay_opts {
    struct job_opts job;
    struct replay_size size;
    int steps, warmup;
    int burn; /* enum burn of replay.h */
    bool json;
    const char *output;
    bool done; /* help or version was asked for */
};

void replay_defaults(struct replay_opts *o);
/* Its input is a struct replay_opts with the defaults; never exits (see probe_argp_parse()). */
const struct argp *replay_argp(void);

#endif
