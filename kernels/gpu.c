/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/gpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "kernels/cuda_api.h"

/* --- the open GPU --- */

struct gpu_open gpu_now;

const struct gpu_facts *gpu_facts(void)
{
    return gpu_now.context ? &gpu_now.facts : NULL;
}

int gpu_set_current(struct err *err)
{
    int rc = cuda.CtxSetCurrent(gpu_now.context);

    return rc ? cuda_error(err, rc, "context on GPU %s", gpu_now.facts.busid) : 0;
}

/* --- memory --- */

static void *gpu_at(cuda_ptr at)
{
    return (void *)(uintptr_t)at;
}

static int alloc_plain(struct gpu_buffer *b, struct err *err)
{
    char size[UNITS_TEXT];
    cuda_ptr at;
    int rc = cuda.MemAlloc(&at, b->bytes);

    if (rc)
        return cuda_error(err, rc, "%s of GPU memory", units_bytes_text(size, (double)b->bytes));
    b->at = gpu_at(at);
    return 0;
}

static int alloc_pinned(struct gpu_buffer *b, struct err *err)
{
    char size[UNITS_TEXT];
    void *at;
    int rc = cuda.MemHostAlloc(&at, b->bytes, CUDA_HOST_PORTABLE);

    if (rc)
        return cuda_error(err, rc, "%s of page-locked host memory",
                          units_bytes_text(size, (double)b->bytes));
    b->at = at;
    return 0;
}

static struct cuda_allocation_prop fabric_prop(void)
{
    struct cuda_allocation_prop prop;
    int rdma = 0;

    memset(&prop, 0, sizeof(prop));
    prop.type = CUDA_ALLOCATION_PINNED;
    prop.handle_types = CUDA_HANDLE_FABRIC;
    prop.location.type = CUDA_LOCATION_DEVICE;
    prop.location.id = gpu_now.device;
    if (cuda.DeviceGetAttribute(&rdma, CUDA_HAS_RDMA_WITH_VMM, gpu_now.device) == CUDA_GOOD)
        prop.flags.rdma = rdma != 0; /* let NICs access it, as with cuMemAlloc() */
    return prop;
}

/* Explanation of the driver's error code.  Source: CUDA driver API, cuMemCreate() and "Fabric
 * handles"; IMEX guide, "IMEX channels". */
static const char *why_no_fabric(int result)
{
    switch (result) {
    case CUDA_NOT_PERMITTED:
        return " (this process may use no IMEX channel: there is no /dev/nvidia-caps-imex-channels"
               "/channelN that it may open, or nvidia-imex is not running)";
    case CUDA_NOT_SUPPORTED:
        return " (the GPU is in no NVLink domain that spans hosts, or its fabric state is not "
               "completed)";
    case CUDA_INVALID_VALUE:
        return " (a driver before CUDA 12.3 knows no FABRIC handles)";
    default:
        return "";
    }
}

static int no_fabric(struct err *err, int rc, const char *what)
{
    return cuda_error(err, rc, "%s with a FABRIC handle%s", what, why_no_fabric(rc));
}

/* Map b->handle into b->mapped bytes of address space, readable and writable by this GPU. */
static int map(struct gpu_buffer *b, struct err *err)
{
    struct cuda_access access = {{CUDA_LOCATION_DEVICE, gpu_now.device}, CUDA_ACCESS_READ_WRITE};
    cuda_ptr at;
    int rc = cuda.MemAddressReserve(&at, b->mapped, 0, 0, 0);

    if (rc)
        return cuda_error(err, rc, "GPU address space of %zu bytes", b->mapped);
    rc = cuda.MemMap(at, b->mapped, 0, b->handle, 0);
    if (rc == CUDA_GOOD) {
        rc = cuda.MemSetAccess(at, b->mapped, &access, 1);
        if (rc == CUDA_GOOD) {
            b->at = gpu_at(at);
            return 0;
        }
        cuda.MemUnmap(at, b->mapped);
    }
    cuda.MemAddressFree(at, b->mapped);
    return cuda_error(err, rc, "mapping %zu bytes of GPU memory", b->mapped);
}

/* Map the handle, or release it if that fails. */
static int map_or_release(struct gpu_buffer *b, struct err *err)
{
    if (map(b, err) == 0)
        return 0;
    cuda.MemRelease(b->handle);
    return -1;
}

static int alloc_fabric(struct gpu_buffer *b, struct err *err)
{
    struct cuda_allocation_prop prop = fabric_prop();
    size_t grain;
    int rc;

    if (!gpu_now.facts.vmm)
        return err_io(err, "GPU %s has no virtual memory management, which FABRIC handles need",
                      gpu_now.facts.busid);
    rc = cuda.MemGetAllocationGranularity(&grain, &prop, CUDA_GRANULARITY_RECOMMENDED);
    if (rc)
        return no_fabric(err, rc, "granularity of GPU memory");
    if (b->bytes > SIZE_MAX - grain)
        return err_io(err, "%zu bytes of GPU memory: too many", b->bytes);
    b->mapped = (b->bytes + grain - 1) / grain * grain;
    rc = cuda.MemCreate(&b->handle, b->mapped, &prop, 0);
    if (rc)
        return no_fabric(err, rc, "GPU memory");
    return map_or_release(b, err);
}

int gpu_alloc(struct gpu_buffer *out, enum gpu_memory kind, size_t bytes, struct err *err)
{
    static int (*const alloc[])(struct gpu_buffer *, struct err *) = {
        [GPU_PLAIN] = alloc_plain, [GPU_FABRIC] = alloc_fabric, [GPU_PINNED] = alloc_pinned};
    struct gpu_buffer b = {.bytes = bytes, .kind = kind};

    memset(out, 0, sizeof(*out));
    if (kind == GPU_FOREIGN || bytes == 0)
        return err_io(err, "no memory of kind %d and %zu bytes can be allocated", (int)kind, bytes);
    if (alloc[kind](&b, err))
        return -1;
    *out = b;
    return 0;
}

void gpu_free(struct gpu_buffer *b)
{
    cuda_ptr at = gpu_ptr(b->at);

    if (!b->at)
        return;
    if (b->mapped) {
        cuda.MemUnmap(at, b->mapped);
        cuda.MemAddressFree(at, b->mapped);
        cuda.MemRelease(b->handle);
    } else if (b->kind == GPU_FOREIGN) {
        cuda.IpcCloseMemHandle(at);
    } else if (b->kind == GPU_PINNED) {
        cuda.MemFreeHost(b->at);
    } else {
        cuda.MemFree(at);
    }
    memset(b, 0, sizeof(*b));
}

int gpu_export(const struct gpu_buffer *b, struct gpu_export *out, struct err *err)
{
    struct cuda_handle handle;
    int rc;

    memset(out, 0, sizeof(*out));
    memset(&handle, 0, sizeof(handle));
    if (!b->at || (b->kind != GPU_PLAIN && b->kind != GPU_FABRIC))
        return err_io(err, "only GPU memory of one's own can be exported");
    if (b->kind == GPU_FABRIC) {
        rc = cuda.MemExportToShareableHandle(&handle, b->handle, CUDA_HANDLE_FABRIC, 0);
        if (rc)
            return no_fabric(err, rc, "export of GPU memory");
    } else {
        rc = cuda.IpcGetMemHandle(&handle, gpu_ptr(b->at));
        if (rc)
            return cuda_error(err, rc, "export of GPU memory by CUDA IPC");
    }
    memcpy(out->bytes, handle.bytes, sizeof(out->bytes));
    out->size = b->bytes;
    out->mapped = b->mapped;
    out->kind = b->kind;
    return 0;
}

static int import_fabric(struct gpu_buffer *b, struct cuda_handle *handle, struct err *err)
{
    int rc = cuda.MemImportFromShareableHandle(&b->handle, handle, CUDA_HANDLE_FABRIC);

    if (rc)
        return no_fabric(err, rc, "import of GPU memory");
    return map_or_release(b, err);
}

static int import_ipc(struct gpu_buffer *b, const struct cuda_handle *handle, struct err *err)
{
    cuda_ptr at;
    int rc = cuda.IpcOpenMemHandle(&at, *handle, CUDA_IPC_LAZY_PEER);

    if (rc)
        return cuda_error(err, rc, "import of GPU memory by CUDA IPC%s",
                          rc == CUDA_PEER_ACCESS_UNSUPPORTED
                              ? " (no NVLink or PCIe peer access between the two GPUs)"
                              : "");
    b->at = gpu_at(at);
    return 0;
}

int gpu_import(struct gpu_buffer *out, const struct gpu_export *from, struct err *err)
{
    struct gpu_buffer b = {.bytes = from->size, .mapped = from->mapped, .kind = GPU_FOREIGN};
    struct cuda_handle handle;
    int rc;

    memset(out, 0, sizeof(*out));
    memcpy(handle.bytes, from->bytes, sizeof(handle.bytes));
    if (from->kind == GPU_FABRIC && from->mapped)
        rc = import_fabric(&b, &handle, err);
    else if (from->kind == GPU_PLAIN && !from->mapped)
        rc = import_ipc(&b, &handle, err);
    else
        return err_io(err, "not an export of GPU memory: kind %d, %llu bytes mapped", from->kind,
                      (unsigned long long)from->mapped);
    if (rc)
        return -1;
    *out = b;
    return 0;
}

/* Export whole host pages, because the driver accepts nothing else. */
int gpu_dma_buf(const struct gpu_buffer *b, int *fd, size_t *offset, struct err *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    cuda_ptr from = gpu_ptr(b->at) / page * page;
    size_t bytes = (gpu_ptr(b->at) + b->bytes - from + page - 1) / page * page;
    int rc = cuda.MemGetHandleForAddressRange(fd, from, bytes, CUDA_RANGE_DMA_BUF, 0);

    *offset = gpu_ptr(b->at) - from;
    return rc ? cuda_error(err, rc, "a dma-buf of %zu bytes of GPU memory", bytes) : 0;
}

/* --- streams, clock, graphs --- */

int gpu_stream_open(gpu_stream *out, struct err *err)
{
    int rc = cuda.StreamCreateWithPriority(out, CUDA_STREAM_NON_BLOCKING, 0);

    if (rc == CUDA_GOOD)
        return 0;
    *out = NULL;
    return cuda_error(err, rc, "stream");
}

void gpu_stream_close(gpu_stream s)
{
    if (s)
        cuda.StreamDestroy(s);
}

int gpu_stream_done(gpu_stream s, struct err *err)
{
    int rc = cuda.StreamQuery(s);

    if (rc == CUDA_NOT_READY)
        return 0;
    return rc == CUDA_GOOD ? 1 : cuda_error(err, rc, "GPU %s", gpu_now.facts.busid);
}

/* Query without pause for one millisecond, which measured operations of interest exceed by little;
 * then sleep 50 us between queries, 5 % of that time, to leave the core to others. */
int gpu_stream_wait(gpu_stream s, struct err *err)
{
    struct timespec nap = {0, 50000};
    double start = log_now();
    int done;

    while ((done = gpu_stream_done(s, err)) == 0)
        if (log_now() - start > 1e-3)
            nanosleep(&nap, NULL);
    return done < 0 ? -1 : 0;
}

struct gpu_clock {
    int marks;
    cuda_event event[];
};

int gpu_clock_open(struct gpu_clock **out, int marks, struct err *err)
{
    struct gpu_clock *c;
    int rc;

    *out = NULL;
    if (marks < 2)
        return err_io(err, "a clock of %d events measures nothing", marks);
    c = mem_calloc(1, sizeof(*c) + (size_t)marks * sizeof(*c->event));
    for (; c->marks < marks; c->marks++) {
        rc = cuda.EventCreate(&c->event[c->marks], 0);
        if (rc) {
            gpu_clock_close(c);
            return cuda_error(err, rc, "event");
        }
    }
    *out = c;
    return 0;
}

void gpu_clock_close(struct gpu_clock *c)
{
    for (int i = 0; c && i < c->marks; i++)
        cuda.EventDestroy(c->event[i]);
    free(c);
}

/* Inside a graph the event must be a node of its own, so that every launch records it; a plain
 * record would only order nodes and never complete. */
int gpu_clock_record(struct gpu_clock *c, int i, gpu_stream s, struct err *err)
{
    unsigned flags = s && s == gpu_now.recording ? CUDA_EVENT_EXTERNAL : 0;
    int rc;

    if (i < 0 || i >= c->marks)
        return err_io(err, "mark %d of a clock of %d", i, c->marks);
    rc = cuda.EventRecordWithFlags(c->event[i], s, flags);
    return rc ? cuda_error(err, rc, "event") : 0;
}

int gpu_clock_read(struct gpu_clock *c, int n, double *sec, struct err *err)
{
    float ms;
    int rc;

    if (n < 1 || n >= c->marks)
        return err_io(err, "%d intervals of a clock of %d events", n, c->marks);
    for (int i = 0; i < n; i++) {
        rc = cuda.EventElapsedTime(&ms, c->event[i], c->event[i + 1]);
        if (rc)
            return cuda_error(err, rc, "time between events");
        sec[i] = 1e-3 * (double)ms;
    }
    return 0;
}

struct gpu_graph {
    cuda_graph graph;
    cuda_graph_exec exec;
};

/* Capture in thread-local mode: NCCL's and other threads may allocate meanwhile, only this thread
 * must not make calls that cannot be captured. */
int gpu_graph_begin(gpu_stream s, struct err *err)
{
    int rc;

    if (gpu_now.recording)
        return err_io(err, "a graph is being recorded already");
    rc = cuda.StreamBeginCapture(s, CUDA_CAPTURE_THREAD_LOCAL);
    if (rc)
        return cuda_error(err, rc, "recording a graph");
    gpu_now.recording = s;
    return 0;
}

int gpu_graph_end(struct gpu_graph **out, gpu_stream s, struct err *err)
{
    struct gpu_graph g = {0};
    int rc;

    *out = NULL;
    gpu_now.recording = NULL;
    rc = cuda.StreamEndCapture(s, &g.graph);
    if (rc || !g.graph)
        return cuda_error(err, rc ? rc : CUDA_UNKNOWN, "end of a recorded graph");
    rc = cuda.GraphInstantiateWithFlags(&g.exec, g.graph, 0);
    if (rc) {
        cuda.GraphDestroy(g.graph);
        return cuda_error(err, rc, "instance of a graph");
    }
    *out = mem_calloc(1, sizeof(g));
    **out = g;
    return 0;
}

int gpu_graph_launch(struct gpu_graph *g, gpu_stream s, struct err *err)
{
    int rc = cuda.GraphLaunch(g->exec, s);

    return rc ? cuda_error(err, rc, "launch of a graph") : 0;
}

void gpu_graph_free(struct gpu_graph *g)
{
    if (!g)
        return;
    cuda.GraphExecDestroy(g->exec);
    cuda.GraphDestroy(g->graph);
    free(g);
}

int gpu_memcpy(void *to, const void *from, size_t bytes, gpu_stream s, struct err *err)
{
    int rc = bytes ? cuda.MemcpyAsync(gpu_ptr(to), gpu_ptr(from), bytes, s) : CUDA_GOOD;

    return rc ? cuda_error(err, rc, "copy of %zu bytes", bytes) : 0;
}

int gpu_memset(void *at, unsigned char value, size_t bytes, gpu_stream s, struct err *err)
{
    int rc = bytes ? cuda.MemsetD8Async(gpu_ptr(at), value, bytes, s) : CUDA_GOOD;

    return rc ? cuda_error(err, rc, "fill of %zu bytes", bytes) : 0;
}
