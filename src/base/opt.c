/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/opt.h"

void opt_error(struct argp_state *state, const struct argp_option *options, int key,
               const struct err *err)
{
    for (const struct argp_option *o = options; o->name || o->doc; o++)
        if (o->key == key && o->name) {
            argp_error(state, "--%s: %s", o->name, err->text);
            return; /* only under ARGP_NO_EXIT */
        }
    argp_error(state, "%s", err->text);
}
