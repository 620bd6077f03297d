/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/command.h"

#include <stdio.h>

#include "base/log.h"
#include "cost/matrix.h"

int cmd_verdict(const struct matrix *m)
{
    return m->exceptions ? EXIT_BELOW : EXIT_GOOD;
}

int cmd_fail(const char *name, const struct err *err)
{
    char program[64];

    snprintf(program, sizeof(program), "railgauge %s", name);
    log_setup(program, LOG_INFO);
    log_error("%s", err->text);
    return err->code;
}
