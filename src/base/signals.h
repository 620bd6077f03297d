/* signals.h - the signals by which a person, a terminal that closes or a scheduler ends a campaign;
 * they all mean the same: leave in good order, with what was measured. */
#ifndef RG_SIGNALS_H
#define RG_SIGNALS_H

#include <signal.h>

enum { SIGNALS = 4 }; /* SIGTERM, SIGINT, SIGHUP, SIGQUIT */

struct signals {
    struct sigaction old[SIGNALS];
};

/* From here on they call handler, but SIGHUP stays ignored where it is (nohup).  SA_RESTART. */
void signals_catch(struct signals *s, void (*handler)(int sig));
void signals_release(const struct signals *s); /* as it was before */
void signals_hold(sigset_t *before);           /* blocks them; `before`: the mask until now */

#endif
