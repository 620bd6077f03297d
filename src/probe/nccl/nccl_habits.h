/* nccl_habits.h - the options of nccl-tests that railgauge has not, for hands that are used to
 * them.
 *
 * -b -e -f -n -w -c -d mean the same there and here.  Each of the others is accepted with the value
 * that says what is done here anyway, and refused with any other: the message names the option to
 * use instead.  Facts: NVIDIA nccl-tests 2.19.6, README.md and src/common.cu. */
#ifndef RG_NCCL_HABITS_H
#define RG_NCCL_HABITS_H

#include <argp.h>

/* A child without input; hidden from --help, which has a line on it: the manual has the list. */
extern const struct argp nccl_habits_argp;

/* What nccl-tests' user means by this word after -t or -o, or NULL: "-t 1" are threads there. */
const char *nccl_habit_of(int key, const char *word);

#endif
