/* sim_opts.h - the options of the simulated fabric and the bed that they make. */
#ifndef RG_SIM_OPTS_H
#define RG_SIM_OPTS_H

#include <argp.h>
#include <stdbool.h>

#include "probe/sim.h"

struct sim_opts {
    const char *fabric; /* preset or file; NULL: none asked */
    int racks;          /* 0: the preset's default */
    double noise;       /* sigma, share */
    unsigned long long seed;
    bool blind;         /* the measured topology knows hosts only */
    const char **fault; /* --fault arguments, as typed */
    int faults;
};

/* --fabric --racks --noise --sim-seed --fault --blind, as a child of a command's argp; its input is
 * a struct sim_opts that started as all zeros. */
extern const struct argp sim_argp;
void sim_opts_free(struct sim_opts *o);

/* A fabric with its truth and what a campaign may know of it. */
struct sim_bed {
    struct fabric fabric;
    struct topo truth, seen;
    struct sim sim;
};
/* Also makes it the bed of world_solo.  The caller frees, also after a failure. */
int sim_bed_open(struct sim_bed *b, const struct sim_opts *o, struct err *err);
void sim_bed_free(struct sim_bed *b);

#endif
