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
/* --- libraries of an application, which users have in more places than the loader knows --- */

struct library_wanted {
    const char *what;     /* "NCCL cannot be loaded", or NULL */
    const char *variable; /* of the environment: a file that is taken, and nothing else then */
    const char *names[4]; /* by preference; NULL at the end */
    const char
        *folder[4]; /* of site-packages (site.h); NULL at the end, or at once: no wheel has it */
};

struct library_found {
    char file[512]; /* as the loader has it, or as the variable says */
    const char *by; /* "RAILGAUGE_NCCL", "the loader", "Python's packages", "conda" */
};

/* The file that the variable names, else the first of the names that the loader finds by itself,
 * else the first in a folder of Python's packages or in lib of a conda environment.  NULL:
 * EXIT_CONFIG with "WHAT: ", the loader's words for each, where else it was looked for, and the
 * variable that helps.  `found` (not NULL) is filled where something was loaded. */
void *library_find(const struct library_wanted *w, struct library_found *found, struct err *err);
/* The file of a library that is loaded, as the loader has it; "": it does not say. */
void library_file(void *library, char *file, size_t size);

/* Fill the pointers of `calls` (n of them) at `api`.  A needed one that is missing: EXIT_CONFIG
 * "NAME has no SYMBOL".  Others are NULL where the library lacks them or `version` is below since:
 * previews export what they do not yet keep. */
int library_resolve(void *api, void *library, const struct library_call *calls, size_t n,
                    int version, const char *name, struct err *err);

#endif
