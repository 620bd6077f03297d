/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "transport/sim/sim.h"

const struct opt sim_options[] = {
    {.help = "simulated fabric: presets, noise, faults (--transport sim)", .group = "simulation"},
    {"fabric", 0, "NAME", "preset (see railgauge discover --list-fabrics) or FILE.json",
     OPT_INTO(struct sim_opts, fabric), .values = fabric_each, .group = "simulation"},
    {"racks", 0, "N", "racks of the preset (default: as in the preset)",
     OPT_INT(struct sim_opts, racks, 1, 100000), .group = "simulation"},
    {"noise", 0, "SHARE", "standard deviation of the lognormal noise, such as 3% (default: none)",
     OPT_SHARE(struct sim_opts, noise), .group = "simulation"},
    {"sim-seed", 0, "N", "seed of the noise (default 0)", OPT_INTO(struct sim_opts, seed),
     .group = "simulation"},
    {"world", 0, "NAME",
     "noise of real fabrics: a world (see railgauge discover --list-worlds) or FILE.json",
     OPT_INTO(struct sim_opts, world), .values = sim_world_each, .group = "simulation"},
    {"machine", 0, "N",
     "seed of the noise that one machine keeps from campaign to campaign (default 0)",
     OPT_INTO(struct sim_opts, machine), .group = "simulation"},
    {"fault", 0, "SPEC",
     "inject a fault; may be given again: slow-link=A-B:F slow-cable=A-B:F slow-nic=E:F[:tx|rx] "
     "slow-gpu=E:F slow-host=H:F slow-leaf=L:F slow-uplinks=L:F[:tx|rx] lost-uplinks=L:F "
     "slow-rack=R:F slow-rack-uplinks=R:F[:tx|rx] slow-racks=A-B:F slow-fabric=F dead-host=H "
     "corrupt=E late-nic=E:TIME late-leaf=L:TIME late-rack=R:TIME (F: share of the rate that is "
     "left; hosts, leaves and "
     "racks by number or name); with states that say when, FAULT@STATE,STATE: time=S samples=S "
     "checks=S "
     "since=S after=TIME load both from=SIZE to=SIZE one-of=K",
     OPT_LIST(struct sim_opts, fault, faults), .group = "simulation"},
    {"blind", 0, NULL, "hide everything but host names from the campaign",
     OPT_INTO(struct sim_opts, blind), .group = "simulation"},
    {0},
};

void sim_opts_free(struct sim_opts *o)
{
    free(o->fault);
    memset(o, 0, sizeof(*o));
}
