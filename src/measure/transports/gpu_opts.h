/* gpu_opts.h - options of the copy transport, and of measuring GPUs alone. */
#ifndef RG_GPU_OPTS_H
#define RG_GPU_OPTS_H

#include "base/opt.h"
#include "measure/device/device.h"

enum copy_engine { COPY_CE, COPY_SM }; /* copy engine, multiprocessors */
enum copy_way { COPY_WRITE, COPY_READ };
extern const char *const copy_engine_name[]; /* "ce", "sm", NULL */
extern const char *const copy_way_name[];    /* "write", "read", NULL */

struct copy_opts {
    int engine, way; /* values of the enums; default: copy engine, write */
};
/* --copy-engine and --copy-way. */
extern const struct opt_set copy_options;
extern struct copy_opts copy_opts_asked; /* values given on the command line */

/* Models whose products are measured by default. */
#define DEVICE_MODELS "llama3.1-8b,llama3.1-70b"

struct device_choice {
    const char *gemm; /* --gemm: these products; NULL: products of the models */
    size_t bytes;     /* --device-bytes; 0: by the GPU's memory */
};
/* --gemm and --device-bytes. */
extern const struct opt device_options[];

#endif
