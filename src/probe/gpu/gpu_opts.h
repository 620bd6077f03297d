/* gpu_opts.h - how the copy transport moves bytes, and what to measure of GPUs on their own. */
#ifndef RG_GPU_OPTS_H
#define RG_GPU_OPTS_H

#include <argp.h>

#include "base/err.h"
#include "probe/gpu/device.h"

enum copy_engine { COPY_CE, COPY_SM }; /* copy engine, multiprocessors */
enum copy_way { COPY_WRITE, COPY_READ };
extern const char *const copy_engine_name[]; /* "ce", "sm", NULL */
extern const char *const copy_way_name[];    /* "write", "read", NULL */

struct copy_opts {
    int engine, way; /* of the enums; default: copy engine, write */
};
/* --copy-engine and --copy-way, as a child of a command's argp; its input is a struct copy_opts. */
extern const struct argp copy_argp;
/* The same as words for the MPI program; the caller frees each and the array. */
char **copy_opts_words(const struct copy_opts *o, int *count);

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
