/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/gpu.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda_api.h"
#include "kernels/gpu_own.h"
#include "kernels/kernels.h"

struct gpu_own gpu_own;

const struct gpu_facts *gpu_facts(void)
{
    return gpu_own.context ? &gpu_own.facts : NULL;
}

int gpu_count(struct err *err)
{
    int n, rc;

    if (cuda_load(err))
        return -1;
    rc = cuda.DeviceGetCount(&n);
    if (rc)
        return cuda_error(err, rc, "number of GPUs");
    return n > 0 ? n : err_config(err, "the CUDA driver sees no GPU");
}

/* 0 also for an attribute that the driver is too old to know. */
static int attribute(cuda_device device, int what)
{
    int value;

    return cuda.DeviceGetAttribute(&value, what, device) == CUDA_GOOD ? value : 0;
}

static void uuid_text(char out[48], const struct cuda_uuid *u)
{
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const unsigned char *byte = u->bytes;
    char *p = out;

    for (const char *f = form; *f; f++) {
        if (*f != 'x') {
            *p++ = *f;
            continue;
        }
        p += snprintf(p, 3, "%02x", *byte++);
        f++; /* two letters a byte */
    }
    *p = '\0';
}

/* Bytes a second: both edges of the memory clock carry a bit on every line of the bus. */
static double memory_rate(cuda_device device)
{
    return 2e3 * attribute(device, CUDA_MEMORY_CLOCK_KHZ) *
           (attribute(device, CUDA_MEMORY_BUS_BITS) / 8.0);
}

static int read_facts(struct gpu_facts *f, cuda_device device, struct err *err)
{
    struct cuda_uuid uuid;
    int rc;

    if ((rc = cuda.DeviceGetName(f->name, sizeof(f->name), device)) ||
        (rc = cuda.DeviceGetPCIBusId(f->busid, sizeof(f->busid), device)) ||
        (rc = cuda.DeviceGetUuid(&uuid, device)) || (rc = cuda.DeviceTotalMem(&f->memory, device)))
        return cuda_error(err, rc, "facts of GPU %d", f->device);
    for (char *p = f->busid; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    uuid_text(f->uuid, &uuid);
    f->driver = cuda.version;
    f->sm = 10 * attribute(device, CUDA_SM_MAJOR) + attribute(device, CUDA_SM_MINOR);
    f->sms = attribute(device, CUDA_MULTIPROCESSORS);
    f->hbm_Bps = memory_rate(device);
    f->vmm = attribute(device, CUDA_HAS_VMM);
    f->fabric = attribute(device, CUDA_HAS_FABRIC);
    f->multicast = attribute(device, CUDA_HAS_MULTICAST);
    f->dma_buf = attribute(device, CUDA_HAS_DMA_BUF);
    return 0;
}

int gpu_open(int device, struct err *err)
{
    struct gpu_own own = {.facts.device = device};
    int n = gpu_count(err), rc;

    if (n < 0)
        return -1;
    if (gpu_own.context)
        return err_config(err, "GPU %d is open already: one GPU a process", gpu_own.facts.device);
    if (device < 0 || device >= n)
        return err_config(err, "there is no GPU %d: this process sees %d of them, from 0", device,
                          n);
    if ((rc = cuda.DeviceGet(&own.device, device)))
        return cuda_error(err, rc, "GPU %d", device);
    if (read_facts(&own.facts, own.device, err))
        return -1;
    if ((rc = cuda.DevicePrimaryCtxRetain(&own.context, own.device)))
        return cuda_error(err, rc, "context on GPU %d (%s)", device, own.facts.busid);
    gpu_own = own;
    rc = cuda.CtxSetCurrent(own.context);
    if (rc)
        cuda_error(err, rc, "context on GPU %d (%s)", device, own.facts.busid);
    else
        rc = gpu_answers_open(err);
    if (rc) {
        gpu_close();
        return -1;
    }
    kernels_open();
    return 0;
}

int gpu_enter(struct err *err)
{
    int rc = cuda.CtxSetCurrent(gpu_own.context);

    return rc ? cuda_error(err, rc, "context on GPU %s", gpu_own.facts.busid) : 0;
}

/* What a GPU that does not answer holds ends with the process: to free it would wait for ever. */
void gpu_close(void)
{
    struct gpu_own own = gpu_own;

    if (!own.context || gpu_answers_close())
        return;
    kernels_close();
    memset(&gpu_own, 0, sizeof(gpu_own));
    cuda.CtxSetCurrent(NULL);
    cuda.DevicePrimaryCtxRelease(own.device);
}
