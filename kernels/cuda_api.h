/* cuda_api.h - libcuda.so.1, the CUDA driver, loaded at run time.
 *
 * Declarations of our own for cuda.h (facts of its ABI, CUDA 12.0 to 13.0): names without the "cu"
 * prefix; sizes and values are checked against the real header by tests/unit/cuda_abi.c where that
 * is installed.  The driver exports several versions of some functions ("cuMemAlloc_v2"); the
 * table in cuda_api.c uses those that every driver since CUDA 12.0 has and keeps. */
#ifndef RG_CUDA_API_H
#define RG_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/gpu.h"

enum cuda_result {
    CUDA_GOOD = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_STUB_LIBRARY = 34,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_ALREADY_MAPPED = 208,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_PEER_ACCESS_UNSUPPORTED = 217,
    CUDA_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_NOT_PERMITTED = 800,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_UNMATCHED = 903,
    CUDA_UNKNOWN = 999
};
enum { /* CUjit_option */
       CUDA_JIT_ERROR_LOG = 5,
       CUDA_JIT_ERROR_LOG_BYTES = 6
};

enum cuda_attribute {
    CUDA_MULTIPROCESSORS = 16,
    CUDA_MEMORY_CLOCK_KHZ = 36,
    CUDA_MEMORY_BUS_BITS = 37,
    CUDA_SM_MAJOR = 75,
    CUDA_SM_MINOR = 76,
    CUDA_HAS_VMM = 102,
    CUDA_HAS_RDMA_WITH_VMM = 110,
    CUDA_HAS_DMA_BUF = 124,
    CUDA_HAS_FABRIC = 128,
    CUDA_HAS_MULTICAST = 132
};

enum {
    CUDA_STREAM_NON_BLOCKING = 1, /* does not synchronise with the default stream */
    CUDA_EVENT_EXTERNAL = 1,      /* the record becomes a node of the graph being captured */
    CUDA_CAPTURE_THREAD_LOCAL = 1,
    CUDA_IPC_LAZY_PEER = 1, /* enable access between GPUs when needed */
    CUDA_ALLOCATION_PINNED = 1,
    CUDA_LOCATION_DEVICE = 1,
    CUDA_HANDLE_FABRIC = 8,
    CUDA_RANGE_DMA_BUF = 1,
    CUDA_ACCESS_READ_WRITE = 3,
    CUDA_GRANULARITY_RECOMMENDED = 1,
    CUDA_HOST_PORTABLE = 1 /* page-locked for all contexts */
};

typedef int cuda_device; /* the driver's handle types */
typedef unsigned long long cuda_ptr;
typedef unsigned long long cuda_allocation;
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUevent_st *cuda_event;
typedef struct CUgraph_st *cuda_graph;
typedef struct CUgraphExec_st *cuda_graph_exec;

struct cuda_location {
    int type, id;
};
struct cuda_allocation_prop {
    int type, handle_types;
    struct cuda_location location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};
struct cuda_access {
    struct cuda_location location;
    int flags;
};
struct cuda_handle { /* used by CUDA IPC and by FABRIC handles */
    unsigned char bytes[64];
};
struct cuda_uuid {
    unsigned char bytes[16];
};

/* Functions: name in the driver after "cu", version suffix that cuda.h maps it to, parameters. */
// clang-format off
#define CUDA_CALLS(CALL)                                                                           \
    CALL(Init, "", (unsigned flags))                                                               \
    CALL(DriverGetVersion, "", (int *version))                                                     \
    CALL(GetErrorName, "", (int result, const char **name))                                        \
    CALL(GetErrorString, "", (int result, const char **words))                                     \
    CALL(DeviceGetCount, "", (int *count))                                                         \
    CALL(DeviceGet, "", (cuda_device *device, int ordinal))                                        \
    CALL(DeviceGetName, "", (char *name, int size, cuda_device device))                            \
    CALL(DeviceGetUuid, "_v2", (struct cuda_uuid *uuid, cuda_device device))                       \
    CALL(DeviceGetPCIBusId, "", (char *busid, int size, cuda_device device))                       \
    CALL(DeviceTotalMem, "_v2", (size_t *bytes, cuda_device device))                               \
    CALL(DeviceGetAttribute, "", (int *value, int attribute, cuda_device device))                  \
    CALL(DevicePrimaryCtxRetain, "", (cuda_context *context, cuda_device device))                  \
    CALL(DevicePrimaryCtxRelease, "_v2", (cuda_device device))                                     \
    CALL(CtxSetCurrent, "", (cuda_context context))                                                \
    CALL(CtxGetStreamPriorityRange, "", (int *least, int *greatest))                               \
    CALL(MemAlloc, "_v2", (cuda_ptr *at, size_t bytes))                                            \
    CALL(MemFree, "_v2", (cuda_ptr at))                                                            \
    CALL(MemHostAlloc, "", (void **at, size_t bytes, unsigned flags))                              \
    CALL(MemFreeHost, "", (void *at))                                                              \
    CALL(IpcGetMemHandle, "", (struct cuda_handle *handle, cuda_ptr at))                           \
    CALL(IpcOpenMemHandle, "_v2", (cuda_ptr *at, struct cuda_handle handle, unsigned flags))       \
    CALL(IpcCloseMemHandle, "", (cuda_ptr at))                                                     \
    CALL(MemGetAllocationGranularity, "", (size_t *bytes,                                          \
         const struct cuda_allocation_prop *prop, int option))                                     \
    CALL(MemCreate, "", (cuda_allocation *allocation, size_t bytes,                                \
         const struct cuda_allocation_prop *prop, unsigned long long flags))                       \
    CALL(MemRelease, "", (cuda_allocation allocation))                                             \
    CALL(MemAddressReserve, "", (cuda_ptr *at, size_t bytes, size_t alignment, cuda_ptr wish,      \
         unsigned long long flags))                                                                \
    CALL(MemAddressFree, "", (cuda_ptr at, size_t bytes))                                          \
    CALL(MemMap, "", (cuda_ptr at, size_t bytes, size_t offset, cuda_allocation allocation,        \
         unsigned long long flags))                                                                \
    CALL(MemUnmap, "", (cuda_ptr at, size_t bytes))                                                \
    CALL(MemSetAccess, "", (cuda_ptr at, size_t bytes, const struct cuda_access *access,           \
         size_t count))                                                                            \
    CALL(MemExportToShareableHandle, "", (void *handle, cuda_allocation allocation, int type,      \
         unsigned long long flags))                                                                \
    CALL(MemImportFromShareableHandle, "", (cuda_allocation *allocation, void *handle, int type))  \
    CALL(MemGetHandleForAddressRange, "", (void *handle, cuda_ptr at, size_t bytes, int type,      \
         unsigned long long flags))                                                                \
    CALL(StreamCreateWithPriority, "", (gpu_stream *stream, unsigned flags, int priority))         \
    CALL(StreamDestroy, "_v2", (gpu_stream stream))                                                \
    CALL(StreamQuery, "", (gpu_stream stream))                                                     \
    CALL(EventCreate, "", (cuda_event *event, unsigned flags))                                     \
    CALL(EventDestroy, "_v2", (cuda_event event))                                                  \
    CALL(EventRecordWithFlags, "", (cuda_event event, gpu_stream stream, unsigned flags))          \
    CALL(EventElapsedTime, "", (float *milliseconds, cuda_event from, cuda_event to))              \
    CALL(StreamBeginCapture, "_v2", (gpu_stream stream, int mode))                                 \
    CALL(StreamEndCapture, "", (gpu_stream stream, cuda_graph *graph))                             \
    CALL(GraphInstantiateWithFlags, "", (cuda_graph_exec *exec, cuda_graph graph,                  \
         unsigned long long flags))                                                                \
    CALL(GraphLaunch, "", (cuda_graph_exec exec, gpu_stream stream))                               \
    CALL(GraphExecDestroy, "", (cuda_graph_exec exec))                                             \
    CALL(GraphDestroy, "", (cuda_graph graph))                                                     \
    CALL(MemcpyAsync, "", (cuda_ptr to, cuda_ptr from, size_t bytes, gpu_stream stream))           \
    CALL(MemsetD8Async, "", (cuda_ptr at, unsigned char value, size_t bytes, gpu_stream stream))   \
    CALL(ModuleLoadDataEx, "", (cuda_module *module, const void *image, unsigned count,            \
         int *options, void **values))                                                             \
    CALL(ModuleUnload, "", (cuda_module module))                                                   \
    CALL(ModuleGetFunction, "", (cuda_function *function, cuda_module module, const char *name))   \
    CALL(LaunchKernel, "", (cuda_function function, unsigned grid_x, unsigned grid_y,              \
         unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,   \
         gpu_stream stream, void **arguments, void **extra))
// clang-format on

struct cuda_api {
    int version; /* 13000; 0: not loaded */
#define CUDA_MEMBER(name, suffix, arguments) int(*name) arguments;
    CUDA_CALLS(CUDA_MEMBER)
};
extern struct cuda_api cuda;

/* Load and start libcuda.so.1, once.  EXIT_CONFIG with the message of the loader or driver. */
int cuda_load(struct err *err);

/* Set err to "what: CUDA_ERROR_NAME: the driver's words" (EXIT_IO) and return -1. */
int cuda_error(struct err *err, int result, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* --- the open GPU (gpu.c) --- */

struct gpu_open {
    struct gpu_facts facts;
    cuda_device device;
    cuda_context context; /* NULL: not open */
    gpu_stream recording; /* stream being captured into a graph; NULL: none */
};
extern struct gpu_open gpu_now;

/* Convert a pointer to a device address. */
static inline cuda_ptr gpu_ptr(const void *at)
{
    return (cuda_ptr)(uintptr_t)at;
}

#endif
