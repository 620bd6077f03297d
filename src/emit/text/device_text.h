/* device_text.h - what GPUs do alone, as a table for people. */
#ifndef RG_DEVICE_TEXT_H
#define RG_DEVICE_TEXT_H

#include <stdio.h>

#include "probe/gpu/device.h"

/* One line per figure: the slowest, the middle and the fastest device, and the middle's share of
 * what the hardware allows; products by dtype, with the shape that is fastest. */
void device_text(FILE *out, const struct device_table *t);

#endif
