/* cublasLt_fake.h - what the files of the stand-in for cuBLASLt share. */
#ifndef CUBLASLT_FAKE_H
#define CUBLASLT_FAKE_H

#include <stdbool.h>

#include "measure/device/cublaslt_api.h"

struct cublaslt_context {
    int (*launch)(gpu_stream s, void (*fn)(void *), void *arg);
    void *(*host)(const void *device);
    bool (*fault)(const char *kind, int now, double *more);
    void (*skip)(double seconds);
    int sm;
};
struct cublaslt_layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
};

/* What A and B may be. */
struct lt_format {
    const char *name;
    int type, bits, mode, along, sm;
    uint64_t m, k; /* multiples of */
    double rate;
};

struct lt_task {
    cublaslt_handle h;
    const struct lt_format *format;
    const unsigned char *operand[2], *scale[2];
    unsigned char *out;
    struct cublaslt_layout in[2], ol;
};

/* KEY=VALUE of FAKE_GEMM. */
double lt_setting(const char *key, double otherwise);
/* A struct lt_task, in a stream; frees it. */
void lt_run(void *task);

#endif
