/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "measure/device/gemm.h"

enum { DIMENSION_MAX = 1 << 24 };

const char *const gemm_dtype_name[GEMM_DTYPES] = {"bf16", "fp8", "mxfp8", "nvfp4"};

/* Parse "bf16:8192x4096x4096". */
static int parse_shape(struct gemm_shape *s, char *text, struct err *err)
{
    char *sizes = strchr(text, ':'), *save = NULL;
    int *const at[] = {&s->m, &s->n, &s->k};
    int dtype = -1, n = 0;

    if (sizes)
        *sizes++ = '\0';
    for (int i = 0; i < GEMM_DTYPES; i++)
        if (!strcmp(text, gemm_dtype_name[i]))
            dtype = i;
    if (dtype < 0)
        return err_usage(err, "\"%s\" is not bf16, fp8, mxfp8 or nvfp4", text);
    s->dtype = (enum gemm_dtype)dtype;
    for (char *t = sizes ? strtok_r(sizes, "x", &save) : NULL; t; t = strtok_r(NULL, "x", &save))
        if (n == 3 || units_int(at[n++], t, 1, DIMENSION_MAX, err) < 0)
            return err_usage(err, "\"%s\" in the sizes M x N x K of a product", t);
    return n == 3 ? 0 : err_usage(err, "%d sizes of a product where M x N x K are three", n);
}

int gemm_shapes_parse(struct gemm_shape **out, int *count, const char *text, struct err *err)
{
    char *copy = mem_strdup(text), *save = NULL;
    int rc = 0;

    *out = NULL;
    *count = 0;
    for (char *t = strtok_r(copy, ",", &save); t && rc == 0; t = strtok_r(NULL, ",", &save)) {
        struct gemm_shape s;
        rc = parse_shape(&s, t, err);
        MEM_PUSH(*out, *count) = s;
    }
    free(copy);
    if (rc == 0 && !*count)
        rc = err_usage(err, "no product in \"%s\"", text);
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
