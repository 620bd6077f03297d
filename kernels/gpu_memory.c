/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/units.h"
#include "kernels/cuda_api.h"
#include "kernels/gpu.h"
#include "kernels/gpu_own.h"

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
    prop.location.id = gpu_own.device;
    if (cuda.DeviceGetAttribute(&rdma, CUDA_HAS_RDMA_WITH_VMM, gpu_own.device) == CUDA_GOOD)
        prop.flags.rdma = rdma != 0; /* NICs may read it, as they may what cuMemAlloc() gives */
    return prop;
}

/* What the driver's bare words leave open.  Source: CUDA driver API, cuMemCreate() and "Fabric
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

/* Address space of b->mapped bytes over b->handle, readable and writable by this GPU. */
static int map(struct gpu_buffer *b, struct err *err)
{
    struct cuda_access access = {{CUDA_LOCATION_DEVICE, gpu_own.device}, CUDA_ACCESS_READ_WRITE};
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

/* The handle goes with the buffer also when it could not be mapped. */
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

    if (!gpu_own.facts.vmm)
        return err_io(err, "GPU %s has no virtual memory management, which FABRIC handles need",
                      gpu_own.facts.busid);
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
