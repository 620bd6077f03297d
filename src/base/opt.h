/* opt.h - errors of command-line options that name the option. */
#ifndef RG_OPT_H
#define RG_OPT_H

#include <argp.h>

#include "base/err.h"

/* argp_error() with "--name: " of the option with this key before the text; returns only under
 * ARGP_NO_EXIT. */
void opt_error(struct argp_state *state, const struct argp_option *options, int key,
               const struct err *err);

#endif
