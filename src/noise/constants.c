/* SPDX-License-Identifier: BSD-3-Clause */
#include "noise/constants.h"

#define NOISE_VALUE(name, value, reason) .name = (value),
struct noise_constants noise_constants = {NOISE_CONSTANTS(NOISE_VALUE)};
