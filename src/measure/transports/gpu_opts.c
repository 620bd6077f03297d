/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/transports/gpu_opts.h"

#include <stdlib.h>

/* --- copies between GPUs --- */

const char *const copy_engine_name[] = {"ce", "sm", NULL};
const char *const copy_way_name[] = {"write", "read", NULL};

static const struct opt copy_rows[] = {
    {.help = "copies between GPUs (--transport copy)", .group = "gpu"},
    {"copy-engine", 0, "WHO", "engine that copies: ce (copy engine) or sm (kernel) (default ce)",
     OPT_WORD(struct copy_opts, engine, copy_engine_name), .group = "gpu"},
    {"copy-way", 0, "WAY",
     "write: the sender's GPU writes into the receiver's memory; read: the receiver's GPU reads "
     "(default write)",
     OPT_WORD(struct copy_opts, way, copy_way_name), .group = "gpu"},
    {0},
};

struct copy_opts copy_opts_asked;
const struct opt_set copy_options = {.rows = copy_rows, .into = &copy_opts_asked};

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
    {.help = "each GPU alone", .group = "gpu"},
    {"gemm", 0, "LIST",
     "multiply these matrices instead of those of a model, M x N x K in bf16, fp8, mxfp8 or nvfp4: "
     "bf16:8192x6144x4096,fp8:...",
     OPT_CALL(take_gemm), .group = "gpu"},
    {"device-bytes", 0, "SIZE",
     "size of the buffers that are copied, read and filled (default 256M)",
     OPT_INTO(struct device_choice, bytes), .group = "gpu"},
    {0},
};
