/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

static int fill(struct err *err, int code, const char *fmt, va_list ap)
{
    if (err) {
        err->code = code;
        vsnprintf(err->text, sizeof(err->text), fmt, ap);
    }
    return -1;
}

#define ERR_FUNCTION(name, code)                                                                   \
    int name(struct err *err, const char *fmt, ...)                                                \
    {                                                                                              \
        va_list ap;                                                                                \
                                                                                                   \
        va_start(ap, fmt);                                                                         \
        fill(err, code, fmt, ap);                                                                  \
        va_end(ap);                                                                                \
        return -1;                                                                                 \
    }

ERR_FUNCTION(err_set, EXIT_UNJUDGED)
ERR_FUNCTION(err_usage, EXIT_USAGE)
ERR_FUNCTION(err_data, EXIT_DATA)
ERR_FUNCTION(err_noinput, EXIT_NOINPUT)
ERR_FUNCTION(err_io, EXIT_IO)
ERR_FUNCTION(err_config, EXIT_CONFIG)

int err_code(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, code, fmt, ap);
    va_end(ap);
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    struct err inner;
    va_list ap;

    if (!err)
        return -1;
    inner = *err;
    va_start(ap, fmt);
    fill(err, inner.code, fmt, ap);
    va_end(ap);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner.text);
    return -1;
}
