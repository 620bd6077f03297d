/* log.h - messages to the user: levels, and one progress line with an ETA.
 *
 * All output goes to stderr.  The progress line appears only if stderr is a terminal (or
 * RAILGAUGE_PROGRESS=1) and is wiped before any other message.  Control characters in foreign text
 * are shown as '?'. */
#ifndef RG_LOG_H
#define RG_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/opt.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_setup(const char *program, enum log_level level); /* program: prefix of each message */
/* True if only warnings and errors are shown. */
bool log_is_quiet(void);
/* True if a process of root may also run code that other users can change (--trust-environment). */
bool log_trusts_environment(void);
/* --verbose with --trust-environment, --quiet, and --color of every command line, one set each; ends
 * with {0}. */
extern const struct opt_set log_options[];
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Show "done/total  ETA  note", at most ten times per second.  ETA = elapsed * (total - done) /
 * done, in units of work that the caller chooses (expected seconds are best). */
struct progress {
    double total, started;
    double shown; /* time of the last drawing */
    bool live;
};
void progress_start(struct progress *p, double total);
void progress_show(struct progress *p, double done, const char *note);
void progress_end(struct progress *p);

/* True if colour is wanted on this stream: by --color, else a terminal, with $NO_COLOR unset or
 * empty (no-color.org) and $TERM set and not "dumb". */
bool log_colour(FILE *out);
/* Write a word that stands out, in colour if wanted: good words green, doubtful ones yellow, all
 * others (the name of a slow part) red. */
void log_mark(FILE *out, const char *word);

double log_now(void); /* CLOCK_MONOTONIC, seconds */

#endif
