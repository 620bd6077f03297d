/* process.h - the words that start another program, what it prints, and the signals that end this
 * one. */
#ifndef RG_PROCESS_H
#define RG_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Texts that it owns; word[count] is NULL once there is one. */
struct words {
    char **word;
    int count;
};
void words_add(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void words_free(struct words *w);

/* A program to run with nothing to read, found through PATH, without a shell; and how it went. */
struct process {
    const char *const *argv;
    size_t max;     /* bytes that it may print */
    double seconds; /* that it may take */
    int end_by;     /* the signal for one that prints or takes more */
    bool speaks;    /* what it says on stderr is for the person, not kept */

    int failed; /* errno: it could not be started; what follows is nothing then */
    bool whole; /* it was neither late nor printed too much */
    int status; /* as waitpid() has it */
    char *text; /* what it printed, NUL-terminated; the caller frees */
    size_t len;
    char said[201]; /* its first words on stderr, printable */
};
void process_run(struct process *p);

/* The output of argv; *text is NUL-terminated and the caller frees it.  EXIT_NOINPUT: it cannot be
 * started, fails (its first words on stderr are in the sentence), prints more than max bytes, or is
 * not done within `seconds` and was killed. */
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
