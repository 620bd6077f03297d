/* gpu.h - the GPU of this process through the CUDA driver.
 *
 * libcuda.so.1 is loaded at run time (prototypes in cuda_api.h), so the same program starts on a
 * login node and with any driver; a function that a driver lacks gives an error.  One GPU per
 * process and one thread: the caller of gpu_open(), and threads that called gpu_set_current().
 * NCCL and cuBLASLt use the same primary context, and a gpu_stream is the CUstream that they
 * accept.
 *
 * Errors: -1 with "what: CUDA_ERROR_NAME: the driver's words".  EXIT_CONFIG: no driver or no
 * device.  EXIT_IO: out of memory and everything else.
 *
 * Example:
 *
 *     struct gpu_buffer a = {0}, b = {0};
 *     gpu_stream s = NULL;
 *     int rc = gpu_open(0, err);
 *
 *     if (rc == 0 && gpu_stream_open(&s, err) == 0 && gpu_alloc(&a, GPU_PLAIN, 1 << 20, err) == 0 &&
 *         gpu_alloc(&b, GPU_PLAIN, 1 << 20, err) == 0 && gpu_memset(a.at, 7, a.bytes, s, err) == 0 &&
 *         gpu_memcpy(b.at, a.at, a.bytes, s, err) == 0)
 *         rc = gpu_stream_wait(s, err);               // both are asynchronous until here
 *     else
 *         rc = -1;
 *     gpu_free(&b);
 *     gpu_free(&a);
 *     gpu_stream_close(s);
 *     gpu_close();
 *     return rc; */
#ifndef RG_KERNELS_GPU_H
#define RG_KERNELS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct gpu_facts {
    char name[96];  /* "NVIDIA H200" */
    char busid[16]; /* "0000:1b:00.0", as in topo.h */
    char uuid[48];  /* "GPU-8f0e..." */
    int device;     /* index among visible GPUs, in PCI order */
    int driver;     /* CUDA version that the driver supports, 13000 = 13.0 */
    int sm;         /* 90, 100, 103, 120 */
    int sms;        /* number of multiprocessors */
    size_t memory;  /* total, bytes */
    double hbm_Bps; /* limit from bus width and memory clock, B/s; 0: unknown */
    bool vmm, fabric, multicast, dma_buf;
};

/* Number of GPUs that this process may use; -1 with the reason if there is no driver or no GPU. */
int gpu_count(struct err *err);
/* Open a GPU.  Sets CUDA_DEVICE_ORDER=PCI_BUS_ID before the driver starts, unless set already. */
int gpu_open(int device, struct err *err);
const struct gpu_facts *gpu_facts(void); /* NULL: not open */
int gpu_set_current(struct err *err);    /* let the calling thread use this GPU too */
void gpu_close(void);

/* --- memory --- */
enum gpu_memory {
    GPU_PLAIN, /* cuMemAlloc: can be exported to processes of this host (CUDA IPC) */
    /* cuMemCreate with a FABRIC handle: can be exported to every host of the NVLink domain; needs
     * an IMEX channel. */
    GPU_FABRIC,
    GPU_PINNED, /* page-locked host memory, cannot be exported */
    GPU_FOREIGN /* imported from another process */
};

struct gpu_buffer {
    unsigned char *at; /* device address; GPU_PINNED: host address; NULL: none */
    size_t bytes;
    enum gpu_memory kind;
    size_t mapped;             /* GPU_FABRIC and imports: bytes of address space; else 0 */
    unsigned long long handle; /* GPU_FABRIC memory and imports only */
};

int gpu_alloc(struct gpu_buffer *out, enum gpu_memory kind, size_t bytes, struct err *err);
void gpu_free(struct gpu_buffer *b); /* {NULL} is allowed; also ends an import */

/* Data that another process needs to map a buffer; plain bytes, sent as they are. */
struct gpu_export {
    unsigned char bytes[64];
    uint64_t size, mapped;
    int32_t kind; /* enum gpu_memory of the exporter */
    int32_t pad;
};
int gpu_export(const struct gpu_buffer *b, struct gpu_export *out, struct err *err);
/* Import a buffer of another process.  The driver refuses a CUDA IPC handle that this process
 * exported itself. */
int gpu_import(struct gpu_buffer *out, const struct gpu_export *from, struct err *err);

/* Export GPU_PLAIN memory as a dma-buf for NICs: a file, which the caller closes, and the offset
 * of the buffer in it. */
int gpu_dma_buf(const struct gpu_buffer *b, int *fd, size_t *offset, struct err *err);

/* --- streams and clock --- */
typedef struct CUstream_st *gpu_stream; /* the driver's type */

int gpu_stream_open(gpu_stream *out, struct err *err);
void gpu_stream_close(gpu_stream s);
/* cuStreamQuery: 1 done, 0 not yet, -1 error of the GPU. */
int gpu_stream_done(gpu_stream s, struct err *err);
/* Like cuStreamSynchronize, but sleeps between queries once the wait is long. */
int gpu_stream_wait(gpu_stream s, struct err *err);
/* Check that the GPU responds, with a tiny fill on a stream of its own within `seconds`.  Returns
 * 1, 0 (no response), or -1 (error).  Callable from any thread; waits no longer even if the driver
 * itself does not return. */
int gpu_answers(double seconds, struct err *err);

/* CUDA events.  gpu_clock_record(c, i) puts event i < marks into the stream (or into the graph
 * being captured).  gpu_clock_read(), once the stream is done, sets sec[i] to the time from event
 * i to i + 1, i < n, n < marks. */
struct gpu_clock;
int gpu_clock_open(struct gpu_clock **out, int marks, struct err *err);
int gpu_clock_record(struct gpu_clock *c, int i, gpu_stream s, struct err *err);
int gpu_clock_read(struct gpu_clock *c, int n, double *sec, struct err *err);
void gpu_clock_close(struct gpu_clock *c);

/* --- CUDA graphs: operations between begin and end are captured, not run --- */
struct gpu_graph;
int gpu_graph_begin(gpu_stream s, struct err *err);
int gpu_graph_end(struct gpu_graph **out, gpu_stream s, struct err *err);
int gpu_graph_launch(struct gpu_graph *g, gpu_stream s, struct err *err);
void gpu_graph_free(struct gpu_graph *g);

/* --- copies (between device, pinned and pageable memory) and fills (device memory only),
 * asynchronous in the stream, by copy engines; a copy from or to pageable memory may wait inside
 * the call until the stream is done --- */
int gpu_memcpy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err);
int gpu_memset(void *at, unsigned char value, size_t bytes, gpu_stream s, struct err *err);

#endif
