/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "transport/sim/sim.h"

const struct opt sim_options[] = {
    {.help = "Simulated fabric (--transport sim):", .group = 50},
    {"fabric", 0, "NAME", "preset (railgauge discover --list-fabrics) or FILE.json",
     OPT_INTO(struct sim_opts, fabric), .values = fabric_each, .group = 50},
    {"racks", 0, "N", "racks of it", OPT_INT(struct sim_opts, racks, 1, 100000), .group = 50},
    {"noise", 0, "SHARE", "sigma of the lognormal noise, such as 3%",
     OPT_SHARE(struct sim_opts, noise), .group = 50},
    {"sim-seed", 0, "N", "seed of the noise", OPT_INTO(struct sim_opts, seed), .group = 50},
    {"world", 0, "NAME",
     "noise of real fabrics: a shipped world (railgauge discover --list-worlds) or FILE.json",
     OPT_INTO(struct sim_opts, world), .values = sim_world_each, .group = 50},
    {"machine", 0, "N", "seed of what the world's machine keeps from campaign to campaign",
     OPT_INTO(struct sim_opts, machine), .group = 50},
    {"fault", 0, "SPEC",
     "inject a fault, may be repeated: slow-link=A-B:F slow-cable=A-B:F slow-nic=E:F[:tx|rx] "
     "slow-gpu=E:F slow-host=H:F slow-leaf=L:F slow-uplinks=L:F[:tx|rx] lost-uplinks=L:F "
     "slow-rack=R:F slow-rack-uplinks=R:F[:tx|rx] slow-racks=A-B:F slow-fabric=F dead-host=H "
     "corrupt=E late-nic=E:TIME late-leaf=L:TIME late-rack=R:TIME (F: rate left; hosts, leaves and "
     "racks by number or name); with states behind it, FAULT@STATE,STATE: time=S samples=S "
     "checks=S "
     "since=S after=TIME load both from=SIZE to=SIZE one-of=K",
     OPT_LIST(struct sim_opts, fault, faults), .group = 50},
    {"blind", 0, NULL, "hide everything but host names from the campaign",
     OPT_INTO(struct sim_opts, blind), .group = 50},
    {0},
};

void sim_opts_free(struct sim_opts *o)
{
    free(o->fault);
    memset(o, 0, sizeof(*o));
}
