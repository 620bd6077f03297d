/* report.h - what the two programs tell people of what they found, as text and as JSON. */
#ifndef RG_REPORT_H
#define RG_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "place/place.h"
#include "probe/gpu/device.h"
#include "step/predict.h"
#include "step/replay/replay.h"
#include "step/replay/replay_mpi.h"
#include "topo/topo.h"

/* One line per figure: the slowest, the middle and the fastest device, and the middle's share of
 * what the hardware allows; products by dtype, with the shape that is fastest. */
void device_text(FILE *out, const struct device_table *t);

/* What railgauge discover says of a topology. */
struct discover_report {
    bool quiet; /* no picture */
    bool json;  /* {"format": "railgauge-discover", ...} with the verdicts instead of the picture */
    bool check; /* a bad verdict is EXIT_BELOW, none possible EXIT_UNJUDGED */
};

int discover_report(FILE *out, const struct topo *t, const struct discover_report *what,
                    struct err *err);

/* A replay beside its prediction. */
void replay_text(FILE *out, const struct replay_case *c, const struct replay_result *r);
json_t *replay_json(const struct replay_case *c, const struct replay_result *r,
                    const struct matrix *m); /* new reference */

/* What railgauge place found; nothing is owned. */
struct place_answer {
    const struct placed *placed;
    const struct matrix *matrix;
    const struct prediction *now, *before; /* in the order found, in the default one; NULL: traffic,
                                             or it needs a part of no use */
    const char *traffic;                   /* file, or NULL */
    int free_hosts;
};

void place_text(FILE *out, const struct place_answer *a);
/* JSON has no infinity: a dead part on the way is null.  New reference. */
json_t *place_json(const struct place_answer *a);

#endif
