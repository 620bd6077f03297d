/* gpu_opts.h - how the copy transport moves bytes, and what to measure of GPUs on their own. */
#ifndef RG_GPU_OPTS_H
#define RG_GPU_OPTS_H

#include "base/opt.h"
#include "probe/gpu/device.h"

enum copy_engine { COPY_CE, COPY_SM }; /* copy engine, multiprocessors */
enum copy_way { COPY_WRITE, COPY_READ };
extern const char *const copy_engine_name[]; /* "ce", "sm", NULL */
extern const char *const copy_way_name[];    /* "write", "read", NULL */

struct copy_opts {
    int engine, way; /* of the enums; default: copy engine, write */
};
/* --copy-engine and --copy-way. */
extern const struct opt_set copy_options;
extern struct copy_opts copy_opts_asked; /* what they said */

/* Models whose products are measured where nothing else is said. */
#define DEVICE_MODELS "llama3.1-8b,llama3.1-70b"

struct device_choice {
    const char *gemm; /* --gemm: these products; NULL: those of models */
    size_t bytes;     /* --device-bytes; 0: by the GPU's memory */
};
/* --gemm and --device-bytes. */
extern const struct opt device_options[];

#endif
