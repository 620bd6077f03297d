/* libraries.h - the libraries that are loaded at run time: one table of what each is called, which
 * variable names another file, and where wheels have it (library_find() says in which order).
 *
 * Folders of wheels: nvidia-nccl-cu12 and -cu13 2.32, nvidia-cublas-cu12 12.9, nvidia-cublas 13.10;
 * torch/lib is where builds of PyTorch without those keep their own. */
#ifndef RG_KERNELS_LIBRARIES_H
#define RG_KERNELS_LIBRARIES_H

#include "base/library.h"

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

enum library_id {
    LIBRARY_CUDA,
    LIBRARY_NVML,
    LIBRARY_NCCL,
    LIBRARY_CUBLASLT,
    LIBRARY_IBVERBS,
    LIBRARY_IDS
};

extern const struct library_wanted libraries[LIBRARY_IDS];

/* library_find() of a row.  Of cuBLASLt what is newer than the driver's CUDA (12080; 0: not known) is
 * left out: a toolkit's libraries run on drivers of their own major version and newer ones
 * (NVIDIA, "CUDA Compatibility": minor version and backward compatibility). */
void *libraries_open(enum library_id id, int cuda_version, struct library_found *found,
                     struct err *err);

#endif
