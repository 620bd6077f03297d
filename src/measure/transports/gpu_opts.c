/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/gpu_opts.h"

#include <stdlib.h>

/* --- copies between GPUs --- */

const char *const copy_engine_name[] = {"ce", "sm", NULL};
const char *const copy_way_name[] = {"write", "read", NULL};

static const struct opt copy_rows[] = {
    {.help = "Copies between GPUs (--transport copy):", .group = 45},
    {"copy-engine", 0, "WHO", "ce: the copy engine (default), sm: a kernel",
     OPT_WORD(struct copy_opts, engine, copy_engine_name), .group = 45},
    {"copy-way", 0, "WAY",
     "write: the sender's GPU writes into the receiver's memory (default); read: the receiver's "
     "reads",
     OPT_WORD(struct copy_opts, way, copy_way_name), .group = 45},
    {0},
};

struct copy_opts copy_opts_asked;
const struct opt_set copy_options = {.rows = copy_rows, .into = &copy_opts_asked, .group = 45};

/* --- GPUs alone --- */

static int take_gemm(void *into, char *list, struct err *err)
{
    struct device_choice *o = into;
    struct gemm_shape *shape = NULL;
    int count;

    o->gemm = list;
    int rc = gemm_shapes_parse(&shape, &count, list, err);
    free(shape);
    return rc;
}

const struct opt device_options[] = {
    {.help = "GPUs on their own (--compute):", .group = 46},
    {"gemm", 0, "LIST",
     "these products instead of a model's, in bf16, fp8, mxfp8 or nvfp4: "
     "bf16:8192x6144x4096,fp8:... (M x N x K)",
     OPT_CALL(take_gemm), .group = 46},
    {"device-bytes", 0, "SIZE", "buffers that are copied, read and filled (default 256M)",
     OPT_INTO(struct device_choice, bytes), .group = 46},
    {0},
};
