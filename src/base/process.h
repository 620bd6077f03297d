/* process.h - argument lists, running of other programs, and the signals that end this one. */
#ifndef RG_PROCESS_H
#define RG_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* List of owned texts; word[count] is NULL unless the list is empty. */
struct words {
    char **word;
    int count;
};
void words_add(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void words_free(struct words *w);

/* Return the path of the first program with this name in PATH, which for root must pass
 * file_for_root(): to_start: that path, so that no link can be changed before it is started.  A name
 * with a slash is returned unchanged.  NULL: none.  The caller frees. */
char *process_find(const char *name, bool to_start);

/* Program to run with empty input, found in PATH, without a shell; and its result. */
struct process {
    const char *const *argv;
    size_t max;     /* limit of its output, bytes */
    double seconds; /* limit of its run time */
    int end_by;     /* signal if it exceeds a limit */
    bool speaks;    /* pass its stderr on instead of keeping it */

    int failed; /* errno if it could not start; then the rest is not set */
    bool whole; /* no limit was exceeded */
    int status; /* status of waitpid() */
    char *text; /* output, NUL-terminated; the caller frees */
    size_t len;
    char said[201]; /* beginning of its stderr, printable */
};
void process_run(struct process *p);

/* Run argv and return its output; *text is NUL-terminated and the caller frees it.  EXIT_NOINPUT:
 * it cannot start, fails (the message has the beginning of its stderr), prints more than max
 * bytes, or exceeds `seconds` and was killed. */
int process_output(char **text, size_t *len, const char *const *argv, size_t max, double seconds,
                   struct err *err);

/* --- signals by which a user, a closing terminal or a scheduler ends a campaign; all mean: end in
 * good order, and keep what was measured --- */

enum { SIGNALS = 4 }; /* SIGTERM, SIGINT, SIGHUP, SIGQUIT */

struct signals {
    struct sigaction old[SIGNALS];
};

/* Install handler for these signals, with SA_RESTART.  SIGHUP stays ignored if it was (nohup). */
void signals_catch(struct signals *s, void (*handler)(int sig));
void signals_release(const struct signals *s); /* restores the previous handlers */
void signals_hold(sigset_t *before);           /* blocks them; `before`: previous mask */

#endif
