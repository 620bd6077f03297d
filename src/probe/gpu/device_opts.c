/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu/device_opts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"

enum { GEMM = 0x6a0, BYTES };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "GPUs on their own (--compute):", 46},
    {"gemm", GEMM, "LIST", 0,
     "these products instead of a model's, in bf16, fp8, mxfp8 or nvfp4: "
     "bf16:8192x6144x4096,fp8:... (M x N x K)",
     46},
    {"device-bytes", BYTES, "SIZE", 0, "buffers that are copied, read and filled (default 256M)",
     46},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct device_choice *o = state->input;
    struct gemm_shape *shape = NULL;
    struct err err = {0, ""};
    int count, rc = 0;

    switch (key) {
    case GEMM:
        o->gemm = arg;
        rc = gemm_shapes_parse(&shape, &count, arg, &err);
        free(shape);
        break;
    case BYTES:
        rc = units_bytes(&o->bytes, arg, &err);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (rc < 0)
        opt_error(state, options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

const struct argp device_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

char **device_opts_words(const struct device_choice *o, int *count)
{
    char **w = NULL;

    *count = 0;
    if (o->gemm)
        MEM_PUSH(w, *count) = mem_printf("--gemm=%s", o->gemm);
    if (o->bytes)
        MEM_PUSH(w, *count) = mem_printf("--device-bytes=%zu", o->bytes);
    return w;
}
