/* libraries.h - the libraries that are loaded at run time: one table of what each is called, which
 * variable names another file, and where wheels have it (library_find() says in which order).
 *
 * Folders of wheels: nvidia-nccl-cu12 and -cu13 2.32, nvidia-cublas-cu12 12.9, nvidia-cublas 13.10;
 * torch/lib is where builds of PyTorch without those keep their own. */
#ifndef RG_KERNELS_LIBRARIES_H
#define RG_KERNELS_LIBRARIES_H

#include "base/library.h"

enum library_id {
    LIBRARY_CUDA,
    LIBRARY_NVML,
    LIBRARY_NCCL,
    LIBRARY_CUBLASLT,
    LIBRARY_IBVERBS,
    LIBRARY_IDS
};

extern const struct library_wanted libraries[LIBRARY_IDS];

/* library_find() of a row.  Of cuBLASLt what is newer than the driver's CUDA is left out, once the
 * driver is loaded: a toolkit's libraries run on drivers of their own major version and newer ones
 * (NVIDIA, "CUDA Compatibility": minor version and backward compatibility). */
void *libraries_open(enum library_id id, struct library_found *found, struct err *err);

#endif
