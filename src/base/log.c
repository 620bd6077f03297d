/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

static struct {
    const char *program;
    enum log_level level;
    bool line; /* a progress line stands on the screen */
} state = {"railgauge", LOG_INFO, false};

void log_setup(const char *program, enum log_level level)
{
    state.program = program;
    state.level = level;
}

static void say(enum log_level level, const char *word, const char *fmt, va_list ap)
{
    char text[2048];

    if (level > state.level)
        return;
    vsnprintf(text, sizeof(text), fmt, ap);
    for (char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c) && *c != '\n' && *c != '\t')
            *c = '?';
    if (state.line)
        fputs("\r\033[K", stderr);
    state.line = false;
    fprintf(stderr, "%s: %s%s\n", state.program, word, text);
}

#define LOG_FUNCTION(name, level, word)                                                            \
    void name(const char *fmt, ...)                                                                \
    {                                                                                              \
        va_list ap;                                                                                \
                                                                                                   \
        va_start(ap, fmt);                                                                         \
        say(level, word, fmt, ap);                                                                 \
        va_end(ap);                                                                                \
    }

LOG_FUNCTION(log_error, LOG_ERROR, "")
LOG_FUNCTION(log_warn, LOG_WARN, "warning: ")
LOG_FUNCTION(log_info, LOG_INFO, "")
LOG_FUNCTION(log_debug, LOG_DEBUG, "debug: ")

double log_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_start(struct progress *p, double total)
{
    const char *force = getenv("RAILGAUGE_PROGRESS");

    memset(p, 0, sizeof(*p));
    p->total = total;
    p->started = log_now();
    p->live = force ? *force == '1' : isatty(STDERR_FILENO);
}

void progress_show(struct progress *p, double done, const char *note)
{
    double now = log_now();
    char eta[UNITS_TEXT] = "?";

    if (!p->live || now - p->shown < 0.1)
        return;
    p->shown = now;
    double share = p->total > 0 ? done / p->total : 1;
    if (share > 0)
        units_seconds_text(eta, (now - p->started) * (1 - share) / share);
    fprintf(stderr, "\r\033[K%3.0f%%  ETA %s  %.*s", 100 * share, eta, 100, note ? note : "");
    fflush(stderr);
    state.line = true;
}

void progress_end(struct progress *p)
{
    if (p->live && state.line)
        fputs("\r\033[K", stderr);
    state.line = false;
}
