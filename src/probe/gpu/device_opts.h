/* device_opts.h - what to measure of GPUs on their own. */
#ifndef RG_DEVICE_OPTS_H
#define RG_DEVICE_OPTS_H

#include <argp.h>

#include "probe/gpu/device.h"

/* Models whose products are measured where nothing else is said. */
#define DEVICE_MODELS "llama3.1-8b,llama3.1-70b"

struct device_choice {
    const char *gemm; /* --gemm: these products; NULL: those of models */
    size_t bytes;     /* --device-bytes; 0: by the GPU's memory */
};
/* --gemm and --device-bytes, as a child of a command's argp; its input is a struct device_choice.
 */
extern const struct argp device_argp;
/* The same as words for the MPI program; the caller frees each and the array. */
char **device_opts_words(const struct device_choice *o, int *count);

#endif
