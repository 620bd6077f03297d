/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu/gpu_opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/units.h"

/* --- copies between GPUs --- */

enum { ENGINE = 0x680, WAY };

const char *const copy_engine_name[] = {"ce", "sm", NULL};
const char *const copy_way_name[] = {"write", "read", NULL};

static const struct argp_option copy_options[] = {
    {NULL, 0, NULL, 0, "Copies between GPUs (--transport copy):", 45},
    {"copy-engine", ENGINE, "WHO", 0, "ce: the copy engine (default), sm: a kernel", 45},
    {"copy-way", WAY, "WAY", 0,
     "write: the sender's GPU writes into the receiver's memory (default); read: the receiver's "
     "reads",
     45},
    {0},
};

static int find(const char *const *names, const char *word)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], word))
            return i;
    return -1;
}

static error_t parse_copy(int key, char *arg, struct argp_state *state)
{
    struct copy_opts *o = state->input;
    struct err err = {0, ""};
    int *at = key == ENGINE ? &o->engine : &o->way;
    const char *const *names = key == ENGINE ? copy_engine_name : copy_way_name;

    if (key != ENGINE && key != WAY)
        return ARGP_ERR_UNKNOWN;
    *at = find(names, arg);
    if (*at >= 0)
        return 0;
    err_usage(&err, "\"%s\" is neither %s nor %s", arg, names[0], names[1]);
    opt_error(state, copy_options, key, &err);
    return EINVAL;
}

const struct argp copy_argp = {copy_options, parse_copy, NULL, NULL, NULL, NULL, NULL};

char **copy_opts_words(const struct copy_opts *o, int *count)
{
    char **w = NULL;

    *count = 0;
    MEM_PUSH(w, *count) = mem_printf("--copy-engine=%s", copy_engine_name[o->engine]);
    MEM_PUSH(w, *count) = mem_printf("--copy-way=%s", copy_way_name[o->way]);
    return w;
}

/* --- GPUs on their own --- */

enum { GEMM = 0x6a0, BYTES };

static const struct argp_option device_options[] = {
    {NULL, 0, NULL, 0, "GPUs on their own (--compute):", 46},
    {"gemm", GEMM, "LIST", 0,
     "these products instead of a model's, in bf16, fp8, mxfp8 or nvfp4: "
     "bf16:8192x6144x4096,fp8:... (M x N x K)",
     46},
    {"device-bytes", BYTES, "SIZE", 0, "buffers that are copied, read and filled (default 256M)",
     46},
    {0},
};

static error_t parse_device(int key, char *arg, struct argp_state *state)
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
        opt_error(state, device_options, key, &err);
    return rc < 0 ? EINVAL : 0;
}

const struct argp device_argp = {device_options, parse_device, NULL, NULL, NULL, NULL, NULL};

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
