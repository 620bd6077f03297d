/* cuda_fake.h - the inside of the stand-in for libcuda (see fake.h).
 *
 * Device memory is a memfd, which vanishes with the last process that has it, however that ends.
 * It is mapped twice: once without any access, which is the device address, and once for the
 * stand-in's own use (fake_host()).  A stream is a thread with a queue; kernels, copies and host
 * functions run there, so that what a program does wrong shows late and at another call, as with a
 * GPU.  FAKE_FAIL="cuMemCreate:800[,NAME:CODE[:FROM]]" makes a function return that code from its
 * FROM-th call on; the code "block" is a call that never returns. */
#ifndef CUDA_FAKE_H
#define CUDA_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake.h"
#include "kernels/cuda_api.h"

/* A function of the driver, declared and begun. */
#define API(name, ...)                                                                             \
    __attribute__((visibility("default"))) int name(__VA_ARGS__);                                  \
    int name(__VA_ARGS__)
/* The first line of most: made to fail?  No context, or one that a fault has spoilt? */
#define NEEDS_CONTEXT                                                                              \
    do {                                                                                           \
        int refused = fake_refuse(__func__, true);                                                 \
        if (refused)                                                                               \
            return refused;                                                                        \
    } while (0)
#define NEEDS_INIT                                                                                 \
    do {                                                                                           \
        int refused = fake_refuse(__func__, false);                                                \
        if (refused)                                                                               \
            return refused;                                                                        \
    } while (0)

#pragma GCC visibility push(hidden)

enum {
    FAKE_DEVICES = 16,
    FAKE_MISALIGNED = 716,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_CAPTURED_EVENT = 907,
    FAKE_CAPTURE_WRONG_THREAD = 908
};
enum fake_fabric { FABRIC_NO, FABRIC_YES, FABRIC_NOT_PERMITTED };

struct fake_profile {
    char name[96];
    int devices, sm, sms, driver, clock_khz, bus_bits;
    char busid[FAKE_DEVICES][16];
    size_t memory, room;      /* what is said, what is given */
    double hbm_Bps, host_Bps; /* of copies, 0: what they really take */
    enum fake_fabric fabric;
    bool vmm, multicast, dma_buf, peer, serial;
};
const struct fake_profile *fake_profile(void);

int fake_refuse(const char *function, bool context);
int fake_device(void);       /* of the calling thread's context; its ordinal in the profile */
int fake_ordinal(void);      /* the same as cuCtxGetDevice() says it */
void fake_spoil(int result); /* a fault of the GPU: every later call says so */
/* What may not be called while a graph is recorded (cuda.h: cuThreadExchangeStreamCaptureMode):
 * FAKE_CAPTURE_UNSUPPORTED, and the graphs that it conflicts with are lost; 0: it may. */
int fake_unsafe(void);
void fake_drain(void); /* until all streams are empty */

/* What a copy may touch: the host's view of these bytes; NULL: no access, and the context is spoilt.
 * Memory that the driver does not know is the host's own. */
void *fake_touch(const void *at, size_t bytes);
/* What a kernel may touch: the same, but memory that the driver does not know is nobody's. */
void *fake_kernel_touch(const void *at, size_t bytes, size_t alignment);
void fake_forget_memory(void);

/* A kernel by name, NULL: none.  Its arguments are copied when it is launched. */
struct fake_kernel;
const struct fake_kernel *fake_kernel_find(const char *name);
size_t fake_kernel_arguments(const struct fake_kernel *k, unsigned char *copy, void **arguments);
void fake_kernel_run(const struct fake_kernel *k, unsigned blocks, unsigned threads,
                     unsigned char *arguments);

#pragma GCC visibility pop
#endif
