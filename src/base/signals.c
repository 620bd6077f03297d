/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/signals.h"

#include <stddef.h>

static const int ending[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

void signals_catch(struct signals *s, void (*handler)(int sig))
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

    for (int i = 0; i < SIGNALS; i++) {
        sigaction(ending[i], NULL, &s->old[i]);
        if (ending[i] != SIGHUP || s->old[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &act, NULL);
    }
}

void signals_release(const struct signals *s)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(ending[i], &s->old[i], NULL);
}

void signals_hold(sigset_t *before)
{
    sigset_t held;

    sigemptyset(&held);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&held, ending[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}
