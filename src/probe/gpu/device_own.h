/* device_own.h - the inside of device.h: what its files share. */
#ifndef RG_DEVICE_OWN_H
#define RG_DEVICE_OWN_H

#include "probe/gpu/device.h"

enum { DEVICE_BATCH = 256 }; /* operations in a stream before it is waited for */

struct device_bench {
    const struct device_opts *o;
    size_t bytes;
    gpu_stream stream[2]; /* measured, and what runs beside it */
    struct gpu_clock *clock;
    struct gpu_buffer from, to, word, pinned, host[2];
    struct gemm_job *job; /* of the product being measured */
    size_t chased;        /* steps along the chain */
    double busy;          /* s that a load beside a copy lasts */
    double *sec;
    int samples;
};

/* Put one operation into a stream. */
typedef int (*device_put)(struct device_bench *b, gpu_stream s, struct err *err);

/* The stop rule: seconds of one, while as many of `beside` (NULL: none) run in the other stream. */
int device_sample(struct device_bench *b, device_put put, device_put beside, struct summary *out,
                  struct err *err);
/* Median and interval of an amount per second, or of seconds per amount, by the row's unit. */
void device_value(struct device_row *r, const struct summary *sec, double amount);
void device_none(struct device_row *r, const char *why); /* the note; cut to its room */
int device_cut(struct err *err);                         /* -1 after a signal, EXIT_CUT */
/* device_gemm.c: rows of o->shape. */
int device_products(struct device_bench *b, struct device_row *rows, struct err *err);

#endif
