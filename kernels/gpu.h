/* gpu.h - the GPU of this process through the CUDA driver.
 *
 * libcuda.so.1 is loaded at run time (own prototypes in cuda_api.h), so the same program starts on
 * a login node and with any driver; what a driver lacks is said, not crashed into.  One GPU a
 * process, one thread (the one that called gpu_open(), and those that say gpu_set_current()).  NCCL and
 * cuBLASLt use the same primary context, and a gpu_stream is the CUstream that they take.
 *
 * Errors: -1 with "what: CUDA_ERROR_NAME: the driver's words"; no driver or no device EXIT_CONFIG,
 * out of memory and everything else EXIT_IO. */
#ifndef RG_KERNELS_GPU_H
#define RG_KERNELS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct gpu_facts {
    char name[96];  /* "NVIDIA H200" */
    char busid[16]; /* "0000:1b:00.0", as topo.h writes it */
    char uuid[48];  /* "GPU-8f0e..." */
    int device;     /* index among the visible ones, PCI order */
    int driver;     /* version of CUDA that the driver offers, 13000 = 13.0 */
    int sm;         /* 90, 100, 103, 120 */
    int sms;        /* multiprocessors */
    size_t memory;  /* bytes in all */
    double hbm_Bps; /* limit from bus width and memory clock; 0: the driver does not say */
    bool vmm, fabric, multicast, dma_buf;
};

/* How many GPUs this process may use; -1 with the reason when there is no driver or none. */
int gpu_count(struct err *err);
/* CUDA_DEVICE_ORDER=PCI_BUS_ID is set before the driver starts unless the user set it. */
int gpu_open(int device, struct err *err);
const struct gpu_facts *gpu_facts(void); /* NULL: not open */
int gpu_set_current(struct err *err); /* the calling thread, too, works on this GPU from here on */
void gpu_close(void);

/* --- memory --- */
enum gpu_memory {
    GPU_PLAIN,  /* cuMemAlloc: exported to processes of this host (CUDA IPC) */
    GPU_FABRIC, /* cuMemCreate with a FABRIC handle: exported to every host of the NVLink domain;
                 * needs an IMEX channel */
    GPU_PINNED, /* page-locked host memory, not exported */
    GPU_FOREIGN /* imported from another process */
};

struct gpu_buffer {
    unsigned char *at; /* device address; GPU_PINNED: host address; NULL: none */
    size_t bytes;
    enum gpu_memory kind;
    size_t mapped;             /* GPU_FABRIC and imports of it: bytes of address space; else 0 */
    unsigned long long handle; /* of GPU_FABRIC memory and imports of it */
};

int gpu_alloc(struct gpu_buffer *out, enum gpu_memory kind, size_t bytes, struct err *err);
void gpu_free(struct gpu_buffer *b); /* {NULL} is fine; also ends an import */

/* What another process needs to map a buffer; plain bytes, sent as they are. */
struct gpu_export {
    unsigned char bytes[64];
    uint64_t size, mapped;
    int32_t kind; /* enum gpu_memory of the exporter */
    int32_t pad;
};
int gpu_export(const struct gpu_buffer *b, struct gpu_export *out, struct err *err);
/* Not what this process exported itself: the driver refuses to open such a CUDA IPC handle. */
int gpu_import(struct gpu_buffer *out, const struct gpu_export *from, struct err *err);

/* A dma-buf of GPU_PLAIN memory, for NICs: its file, which the caller closes, and where in it the
 * buffer begins. */
int gpu_dma_buf(const struct gpu_buffer *b, int *fd, size_t *offset, struct err *err);

/* --- streams and the clock --- */
typedef struct CUstream_st *gpu_stream; /* the driver's own type */

int gpu_stream_open(gpu_stream *out, struct err *err);
void gpu_stream_close(gpu_stream s);
/* cuStreamQuery: 1 done, 0 not yet, -1 a fault of the GPU. */
int gpu_stream_done(gpu_stream s, struct err *err);
/* As cuStreamSynchronize, but sleeps between looks once a look takes long. */
int gpu_stream_wait(gpu_stream s, struct err *err);
/* Does the GPU still answer?  A tiny fill on a stream of its own within `seconds`: 1, 0 (no), -1 (a
 * fault).  Any thread may ask, and none waits longer, even where the driver itself does not return.
 */
int gpu_answers(double seconds, struct err *err);

/* CUDA events: gpu_clock_record(c, i) puts event i < marks into the stream (or into the graph that
 * is being recorded); gpu_clock_read() after the stream is done gives sec[i] = from event i to
 * i + 1, i < n, n < marks. */
struct gpu_clock;
int gpu_clock_open(struct gpu_clock **out, int marks, struct err *err);
int gpu_clock_record(struct gpu_clock *c, int i, gpu_stream s, struct err *err);
int gpu_clock_read(struct gpu_clock *c, int n, double *sec, struct err *err);
void gpu_clock_close(struct gpu_clock *c);

/* --- CUDA graphs: what is put into the stream between begin and end is recorded, not run --- */
struct gpu_graph;
int gpu_graph_begin(gpu_stream s, struct err *err);
int gpu_graph_end(struct gpu_graph **out, gpu_stream s, struct err *err);
int gpu_graph_launch(struct gpu_graph *g, gpu_stream s, struct err *err);
void gpu_graph_free(struct gpu_graph *g);

/* --- copies (between device, pinned and pageable memory) and fills (of device memory only),
 * asynchronous in the stream, by copy engines; a copy from or to pageable memory may wait inside
 * the call for all that is in the stream --- */
int gpu_memcpy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err);
int gpu_memset(void *at, unsigned char value, size_t bytes, gpu_stream s, struct err *err);

#endif
