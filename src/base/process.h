/* process.h - the words that start another program, what it prints, and the signals that end this
 * one. */
#ifndef RG_PROCESS_H
#define RG_PROCESS_H

#include <signal.h>
#include <stddef.h>

#include "base/err.h"

/* Texts that it owns; word[count] is NULL once there is one. */
struct words {
    char **word;
    int count;
};
void words_add(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void words_free(struct words *w);

/* Bounded in bytes and time; no shell. */
/* Run argv (found through PATH) with nothing to read and keep its output; *text is NUL-terminated
 * and the caller frees it.  EXIT_NOINPUT: it cannot be started, fails (its last words on stderr are
 * in the sentence), prints more than max bytes, or is not done within `seconds` and was killed. */
int process_output(char **text, size_t *len, const char *const *argv, size_t max, double seconds,
                   struct err *err);

/* --- the signals by which a person, a terminal that closes or a scheduler ends a campaign; they all
 * mean the same: leave in good order, with what was measured --- */

enum { SIGNALS = 4 }; /* SIGTERM, SIGINT, SIGHUP, SIGQUIT */

struct signals {
    struct sigaction old[SIGNALS];
};

/* From here on they call handler, but SIGHUP stays ignored where it is (nohup).  SA_RESTART. */
void signals_catch(struct signals *s, void (*handler)(int sig));
void signals_release(const struct signals *s); /* as it was before */
void signals_hold(sigset_t *before);           /* blocks them; `before`: the mask until now */

#endif
