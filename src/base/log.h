/* log.h - words for the person at the terminal: levels, and one progress line with an ETA.
 *
 * Everything goes to stderr.  The progress line appears only when stderr is a terminal (or
 * RAILGAUGE_PROGRESS=1) and is wiped before any other message.  Control characters in text that
 * came from elsewhere are shown as '?'. */
#ifndef RG_LOG_H
#define RG_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/opt.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_setup(const char *program, enum log_level level); /* program appears before each message */
/* Does nobody wait for what is no warning? */
bool log_is_quiet(void);
/* --verbose, --quiet and --color of every command line, a set each; {0} ends them. */
extern const struct opt_set log_options[];
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Show "done/total  ETA  note"; at most ten times a second.  The ETA is elapsed * (total-done)/done
 * in units of work that the caller chooses (expected seconds serve best). */
struct progress {
    double total, started;
    double shown; /* when the line was last drawn */
    bool live;
};
void progress_start(struct progress *p, double total);
void progress_show(struct progress *p, double done, const char *note);
void progress_end(struct progress *p);

/* Is colour wanted on this stream?  As --color says; else a terminal, $NO_COLOR unset or empty
 * (no-color.org), $TERM set and not "dumb". */
bool log_colour(FILE *out);
/* A word that stands out, in colour where that is wanted: good words green, doubtful ones yellow,
 * others, as the name of a slow part, red. */
void log_mark(FILE *out, const char *word);

double log_now(void); /* CLOCK_MONOTONIC, seconds */

#endif
