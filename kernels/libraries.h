/* libraries.h - libraries loaded at run time: one table with their names, the variable that names
 * another file, and their folders in Python wheels (library_find() defines the order).
 *
 * Folders of wheels: nvidia-nccl-cu12 and -cu13 2.32, nvidia-cublas-cu12 12.9, nvidia-cublas
 * 13.10; torch/lib is used by builds of PyTorch without those wheels. */
#ifndef RG_KERNELS_LIBRARIES_H
#define RG_KERNELS_LIBRARIES_H

#include <stddef.h>

#include "base/err.h"
#include "base/process.h"

struct library_wanted {
    const char *what;     /* "NCCL cannot be loaded", or NULL */
    const char *variable; /* environment variable: the file that it names, and no other, is used */
    const char *names[4]; /* by preference; NULL-terminated */
    /* Below site-packages (site_find()), NULL-terminated; no entry: no wheel has the library. */
    const char *folder[4];
};

struct library_found {
    char file[512]; /* as named by the loader or the variable */
    const char *by; /* "RAILGAUGE_NCCL", "the loader", "Python's packages", "conda" */
};

/* Load the file that the variable names; else the first of the names that the loader finds; else
 * the first file in a folder of Python's packages or in lib of a conda environment.  A file that
 * the environment leads root to must pass file_for_root().  NULL: EXIT_CONFIG with "WHAT: ", the
 * loader's message for each name, the other places tried, and the variable that helps.  `found`
 * (unless NULL) is set if a library was loaded. */
void *library_find(const struct library_wanted *w, struct library_found *found, struct err *err);

enum library_id {
    LIBRARY_CUDA,
    LIBRARY_NVML,
    LIBRARY_NCCL,
    LIBRARY_CUBLASLT,
    LIBRARY_IBVERBS,
    LIBRARY_IDS
};

extern const struct library_wanted libraries[LIBRARY_IDS];

/* Call library_find() for a row.  cuBLASLt newer than the driver's CUDA (12080; 0: unknown) is
 * skipped: a toolkit's libraries run on drivers of their own major version and newer ones (NVIDIA,
 * "CUDA Compatibility": minor version and backward compatibility). */
void *libraries_open(enum library_id id, int cuda_version, struct library_found *found,
                     struct err *err);

/* --- site ---
 *
 * Folders of the user's Python packages, for libraries from a wheel or conda that the
 * loader does not find.
 *
 * Searched in Python's order: $PYTHONPATH; $VIRTUAL_ENV; $CONDA_PREFIX; the python3 on PATH by its
 * pyvenv.cfg (PEP 405), or by the prefix of the file that it links to, with the user's own
 * packages (PEP 370) first and Debian's dist-packages last.  Python is run, for at most two
 * seconds, only if python3 is a script (a shim of pyenv or asdf) that hides the real one. */

struct site {
    struct words packages; /* existing folders, without repetition */
    struct words lib; /* PREFIX/lib of conda environments, where their packages put libraries */
};

void site_find(struct site *s);
void site_free(struct site *s);

/* --- library ---
 *
 * Shared libraries loaded at run time: one table with the name of each function and
 * the place of its address. */

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
