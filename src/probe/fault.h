/* fault.h - a hook for tests of the watch: RAILGAUGE_FAULT="KIND:RANK:POINT" in the environment
 * makes that rank ill 0.2 s into its POINT-th point (from 1), where the others of its group wait:
 *
 *   kill, segv   SIGKILL, SIGSEGV      exit   _exit(0)
 *   stop         SIGSTOP               spin   never ends
 *   ill          symptom "device does not answer", and spin */
#ifndef RG_FAULT_H
#define RG_FAULT_H

#include "base/err.h"

/* Does what is asked when this is the rank and the point; words that it does not know: EXIT_CONFIG.
 */
int fault_strike(int rank, int point, struct err *err);

#endif
