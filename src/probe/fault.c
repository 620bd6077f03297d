/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/watch/watch.h"

static void die(void)
{
    raise(SIGKILL);
}

static void segv(void)
{
    raise(SIGSEGV);
}

static void leave(void)
{
    _exit(0);
}

static void halt(void)
{
    raise(SIGSTOP);
}

static void spin(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static void ill(void)
{
    watch_symptom("device does not answer");
    spin();
}

static const struct {
    const char *name;
    void (*strike)(void);
} kinds[] = {{"kill", die},  {"segv", segv}, {"exit", leave},
             {"stop", halt}, {"spin", spin}, {"ill", ill}};

int fault_strike(int rank, int point, struct err *err)
{
    const char *text = getenv("RAILGAUGE_FAULT");
    char kind[8];
    int who, when, used = 0;

    if (!text || !*text)
        return 0;
    if (sscanf(text, "%7[a-z]:%7d:%7d%n", kind, &who, &when, &used) == 3 && !text[used])
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
            if (!strcmp(kind, kinds[i].name)) {
                if (who == rank && when == point) {
                    usleep(200000);
                    watch_flush(); /* the verdict is to say what it died in */
                    kinds[i].strike();
                }
                return 0;
            }
    return err_config(err,
                      "RAILGAUGE_FAULT=\"%s\": not KIND:RANK:POINT, KIND one of kill, segv, "
                      "exit, stop, spin, ill",
                      text);
}
