/* discover_report.h - what railgauge discover says of a topology. */
#ifndef RG_DISCOVER_REPORT_H
#define RG_DISCOVER_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "topo/topo.h"

struct discover_report {
    bool quiet; /* no picture */
    bool json;  /* {"format": "railgauge-discover", ...} with the verdicts instead of the picture */
    bool check; /* a bad verdict is EXIT_BELOW, none possible EXIT_UNJUDGED */
};

int discover_report(FILE *out, const struct topo *t, const struct discover_report *what,
                    struct err *err);

#endif
