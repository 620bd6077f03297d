/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"
#include "probe/sim/sim.h"

enum { RACKS = 0x300, NOISE, SIM_SEED, FAULT, BLIND, FABRIC };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Simulated fabric (--transport sim):", 50},
    {"fabric", FABRIC, "NAME", 0, "preset (railgauge discover --list-fabrics) or FILE.json", 50},
    {"racks", RACKS, "N", 0, "racks of it", 50},
    {"noise", NOISE, "SHARE", 0, "sigma of the lognormal noise, such as 3%", 50},
    {"sim-seed", SIM_SEED, "N", 0, "seed of the noise", 50},
    {"fault", FAULT, "SPEC", 0,
     "inject a fault, may be repeated: slow-link=A-B:F slow-nic=E:F[:tx|rx] slow-gpu=E:F "
     "slow-host=H:F "
     "slow-racks=A-B:F dead-host=H corrupt=E (F: rate left)",
     50},
    {"blind", BLIND, NULL, 0, "hide everything but host names from the campaign", 50},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct sim_opts *o = state->input;
    struct err err = {0, ""};
    uint64_t seed;
    int rc = 0;

    switch (key) {
    case FABRIC:
        o->fabric = arg;
        break;
    case RACKS:
        rc = units_int(&o->racks, arg, 1, 100000, &err);
        break;
    case NOISE:
        rc = units_share(&o->noise, arg, &err);
        break;
    case SIM_SEED:
        rc = units_u64(&seed, arg, &err);
        o->seed = seed;
        break;
    case FAULT:
        MEM_PUSH(o->fault, o->faults) = arg;
        break;
    case BLIND:
        o->blind = true;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

const struct argp sim_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

void sim_opts_free(struct sim_opts *o)
{
    free(o->fault);
    memset(o, 0, sizeof(*o));
}
