/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/where.h"

#include <stdarg.h>
#include <stdio.h>

char *where_at(char buf[WHERE], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, WHERE, fmt, ap);
    va_end(ap);
    return buf;
}
