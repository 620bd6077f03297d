/* calibrate_text.h - what a calibration did, for people: rows, constants, how far off steps are. */
#ifndef RG_CALIBRATE_TEXT_H
#define RG_CALIBRATE_TEXT_H

#include <stdio.h>

#include "step/score/calibrate.h"

void calibrate_text(FILE *out, const struct batch *b, const struct calibration *k,
                    const struct calibrate_opts *o);

#endif
