/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/protocol.h"

#include <math.h>
#include <stddef.h>

static const struct {
    const char *name;
    double hop;   /* s */
    double share; /* of the ring's rate */
} protocol[] = {
    {"LL", PROTOCOL_HOP_LL, 0.25},
    {"LL128", 1.9e-6, 0.92},
    {"Simple", PROTOCOL_HOP_SIMPLE, 1},
};

double protocol_ring(double hops, double hop, double full, double least)
{
    double best = INFINITY;

    for (size_t i = 0; i < sizeof(protocol) / sizeof(*protocol); i++)
        best =
            fmin(best, hops * fmin(hop, protocol[i].hop) + fmax(least, full / protocol[i].share));
    return isnan(full) ? NAN : best;
}
