/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "probe/gpu/device_own.h"
#include "probe/watch/watch.h"

static int put_product(struct device_bench *b, gpu_stream s, struct err *err)
{
    return gemm_put(b->job, s, err);
}

static int measure_product(struct device_bench *b, struct gemm *g, struct device_row *r,
                           struct err *err)
{
    struct err why = {0, ""};
    struct summary sec;

    /* No algorithm for it, or no room: nobody's fault, and the other shapes go on. */
    if (gemm_prepare(&b->job, g, &r->shape, b->stream[0], &why) < 0) {
        device_none(r, why.text);
        return 0;
    }
    watch_enter("%s product %dx%dx%d", gemm_dtype_name[r->shape.dtype], r->shape.m, r->shape.n,
                r->shape.k);
    int rc = device_sample(b, put_product, NULL, &sec, err);
    watch_leave();
    if (rc == 0)
        device_value(r, &sec, gemm_flops(&r->shape));
    gemm_finish(b->job);
    b->job = NULL;
    return rc;
}

/* Wrong products end the measuring; a dtype that is not there is told in its rows. */
static int verify(struct device_bench *b, struct gemm *g, char why[GEMM_DTYPES][120],
                  struct err *err)
{
    for (int d = 0; d < GEMM_DTYPES; d++) {
        struct err said = {0, ""};
        why[d][0] = '\0';
        if (gemm_verify(g, (enum gemm_dtype)d, b->stream[0], &said) == 0)
            continue;
        if (said.code != EXIT_CONFIG)
            return err_code(err, said.code, "%s", said.text);
        snprintf(why[d], 120, "%.119s", said.text);
    }
    return 0;
}

int device_products(struct device_bench *b, struct device_row *rows, struct err *err)
{
    char missing[GEMM_DTYPES][120];
    struct err why = {0, ""};
    struct gemm *g = NULL;
    int rc = 0;

    if (gemm_open(&g, &why) < 0) {
        for (int i = 0; i < b->o->shapes; i++)
            device_none(&rows[i], why.text);
        return 0;
    }
    rc = verify(b, g, missing, err);
    for (int i = 0; i < b->o->shapes && rc == 0; i++) {
        if (missing[rows[i].shape.dtype][0])
            device_none(&rows[i], missing[rows[i].shape.dtype]);
        else
            rc = measure_product(b, g, &rows[i], err);
        if (rc == 0)
            rc = device_cut(err);
    }
    gemm_close(g);
    return rc;
}
