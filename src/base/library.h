/* library.h - functions of shared libraries loaded at run time (kernels/libraries.h): one table with
 * the name of each function and the place of its address. */
#ifndef RG_LIBRARY_H
#define RG_LIBRARY_H

#include <stddef.h>

#include "base/err.h"

struct library_call {
    const char *symbol;
    size_t at; /* offset of the function pointer in the caller's struct */
    int since; /* LIBRARY_NEEDED, or the first library version with it: see library_resolve() */
};
enum { LIBRARY_NEEDED = 0, LIBRARY_OPTIONAL = 1 };

/* Set the function pointers listed in `calls` (n of them) in `api`.  A needed function that is
 * missing: EXIT_CONFIG "NAME has no SYMBOL".  Others become NULL if the library lacks them or if
 * `version` is below since: previews export functions that may still change. */
int library_resolve(void *api, void *library, const struct library_call *calls, size_t n,
                    int version, const char *name, struct err *err);

#endif
