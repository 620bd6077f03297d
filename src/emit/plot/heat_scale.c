/* SPDX-License-Identifier: BSD-3-Clause */
/* Colours and numbers of heat maps. */
#include <math.h>

#include "emit/plot/heat.h"

/* Viridis by nine anchors (matplotlib's table, public domain), and our ramp for shares. */
static const unsigned amount_rgb[] = {0x440154, 0x472c7a, 0x3b518b, 0x2c718e, 0x21908d,
                                      0x27ad81, 0x5cc863, 0xaadc32, 0xfde725};
static const unsigned share_rgb[] = {0x6d001f, 0x8b0f2a, 0xc8373f, 0xee8565,
                                     0xfbd0b5, 0xf6efe9, 0xd3e5f0};

unsigned heat_rgb(enum heat_palette palette, double pos)
{
    const unsigned *anchor = palette == HEAT_SHARE ? share_rgb : amount_rgb;
    int last =
        (palette == HEAT_SHARE ? sizeof(share_rgb) : sizeof(amount_rgb)) / sizeof(unsigned) - 1;
    unsigned rgb = 0;

    if (!(pos > 0))
        return anchor[0];
    if (pos >= 1)
        return anchor[last];
    int k = (int)(pos * last);
    double f = pos * last - k;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = anchor[k] >> shift & 255, b = anchor[k + 1] >> shift & 255;
        rgb |= (unsigned)lround(a + f * (b - a)) << shift;
    }
    return rgb;
}

char *heat_number(char buf[HEAT_NUMBER], double v)
{
    double a = fabs(v);
    int decimals = a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3;

    snprintf(buf, HEAT_NUMBER, a < 1e9 ? "%.*f" : "%.*e", decimals, v);
    return buf;
}
