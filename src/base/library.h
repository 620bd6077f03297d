/* library.h - shared libraries that are loaded where they are: one table says what each function is
 * called and where its address goes. */
#ifndef RG_LIBRARY_H
#define RG_LIBRARY_H

#include <stddef.h>

#include "base/err.h"

struct library_call {
    const char *symbol;
    size_t at; /* offset of the function pointer in the caller's struct */
    int since; /* LIBRARY_NEEDED, or the version of the library that brought it: see below */
};
enum { LIBRARY_NEEDED = 0, LIBRARY_OPTIONAL = 1 };

/* Load the first of `names` (NULL at the end) that is there; *name, unless NULL, is which.  NULL:
 * EXIT_CONFIG with "WHAT: " (unless what is NULL) and the loader's words for each. */
void *library_open(const char *const *names, const char *what, const char **name, struct err *err);
/* Fill the pointers of `calls` (n of them) at `api`.  A needed one that is missing: EXIT_CONFIG
 * "NAME has no SYMBOL".  Others are NULL where the library lacks them or `version` is below since:
 * previews export what they do not yet keep. */
int library_resolve(void *api, void *library, const struct library_call *calls, size_t n,
                    int version, const char *name, struct err *err);

#endif
