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

static struct log_state {
    const char *program;
    enum log_level level;
    bool line;  /* a progress line is on the screen */
    int colour; /* enum when */
    bool trusts;
} state = {"railgauge", LOG_INFO, false, 0, false};

void log_setup(const char *program, enum log_level level)
{
    state.program = program;
    state.level = level;
}

bool log_trusts_environment(void)
{
    return state.trusts;
}

bool log_is_quiet(void)
{
    return state.level < LOG_INFO;
}

static int take_verbose(void *into, char *none, struct err *err)
{
    (void)into, (void)none, (void)err;
    state.level = LOG_DEBUG;
    return 0;
}

static int take_quiet(void *into, char *none, struct err *err)
{
    (void)into, (void)none, (void)err;
    state.level = LOG_ERROR;
    return 0;
}

enum when { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };
static const char *const when_name[] = {"auto", "always", "never", NULL};

static const struct opt rows[][3] = {
    {{"verbose", 'v', NULL, "also report files that are read and written", OPT_CALL(take_verbose)},
     {"trust-environment", 0, NULL,
      "as root, also load libraries and start programs that other users can change",
      OPT_INTO(struct log_state, trusts)},
     {0}},
    {{"quiet", 'q', NULL, "print only the result and errors", OPT_CALL(take_quiet)}, {0}},
    {{"color", 0, "WHEN", "use colour: auto (on a terminal), always or never (default auto)",
      OPT_WORD(struct log_state, colour, when_name)},
     {0}}};
const struct opt_set log_options[] = {{.rows = rows[0], .into = &state},
                                      {.rows = rows[1], .into = &state},
                                      {.rows = rows[2], .into = &state},
                                      {0}};

bool log_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (state.colour != WHEN_AUTO)
        return state.colour == WHEN_ALWAYS;
    return isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

void log_mark(FILE *out, const char *word)
{
    static const struct {
        const char *begin;
        int ink; /* code of ISO 6429; 0: default */
    } known[] = {{"PASS", 32},    {"better", 32}, {"gone", 32}, {"WARN", 33},
                 {"UNKNOWN", 33}, {"unsure", 33}, {"same", 0},  {"note", 0}};
    int ink = 31;

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strncmp(word, known[i].begin, strlen(known[i].begin)))
            ink = known[i].ink;
    if (ink && log_colour(out))
        fprintf(out, "\033[%dm%s\033[0m", ink, word);
    else
        fputs(word, out);
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
    p->live = force ? *force == '1' : state.level >= LOG_INFO ? isatty(STDERR_FILENO) : false;
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
