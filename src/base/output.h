/* output.h - what another program prints, bounded in bytes and time; no shell. */
#ifndef RG_OUTPUT_H
#define RG_OUTPUT_H

#include <stddef.h>

#include "base/err.h"

/* Run argv (found through PATH) with nothing to read and keep its output; *text is NUL-terminated
 * and the caller frees it.  EXIT_NOINPUT: it cannot be started, fails (its last words on stderr are
 * in the sentence), prints more than max bytes, or is not done within `seconds` and was killed. */
int output_of(char **text, size_t *len, const char *const *argv, size_t max, double seconds,
              struct err *err);

#endif
