/* sim_opts.h - the options of the simulated fabric. */
#ifndef RG_SIM_OPTS_H
#define RG_SIM_OPTS_H

#include <argp.h>
#include <stdbool.h>

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

#endif
