/* SPDX-License-Identifier: BSD-3-Clause */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/measure_impl.h"

#include "probe/watch/watch.h"

static const struct fault_hook {
    const char *name;
    int signal;   /* that it raises */
    bool symptom; /* says "device does not answer" */
} faults[] = {
    {"kill", SIGKILL, false}, {"segv", SIGSEGV, false},
    {"stop", SIGSTOP, false}, {"exit", -1, false}, /* _exit(0) */
    {"spin", 0, false},                            /* never ends */
    {"ill", 0, true},                              /* nor does this */
};

static void strike(const struct fault_hook *k)
{
    usleep(200000);
    watch_flush(); /* the verdict is to say what it died in */
    if (k->symptom)
        watch_symptom("device does not answer");
    if (k->signal < 0)
        _exit(0);
    if (k->signal)
        raise(k->signal);
    for (volatile unsigned i = 0; !k->signal; i++)
        ;
}

int measure_fault(int rank, int point, struct err *err)
{
    const char *text = getenv("RAILGAUGE_FAULT");
    char kind[8];
    int who, when, used = 0;

    if (!text || !*text)
        return 0;
    if (sscanf(text, "%7[a-z]:%7d:%7d%n", kind, &who, &when, &used) == 3 && !text[used])
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
            if (!strcmp(kind, faults[i].name)) {
                if (who == rank && when == point)
                    strike(&faults[i]);
                return 0;
            }
    return err_config(err,
                      "RAILGAUGE_FAULT=\"%s\": not KIND:RANK:POINT, KIND one of kill, segv, "
                      "exit, stop, spin, ill",
                      text);
}
