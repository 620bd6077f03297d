/* SPDX-License-Identifier: BSD-3-Clause */
/* The stand-in for the CUDA driver: devices, contexts, errors, faults.
 *
 * Keys of the profile that FAKE_GPU names (others are for the other stand-ins; tests/fake/gpu has
 * some), each on a line of its own, and what counts without it:
 *   devices 4          name Fake H200          sm 90          sms 4          driver 13000
 *   memory BYTES       what is said; room BYTES what can really be allocated
 *   clock_khz, bus_bits  of the memory
 *   hbm_Bps, host_Bps  of copies inside a GPU (read and written) and to the host; see fake_skip()
 *   busid 0000:1b:00.0 0000:43:00.0 ...        of each
 *   fabric no          or yes, or not-permitted
 *   vmm yes · multicast no · dma_buf yes · peer yes
 *   serial no          yes: whatever runs fills the GPU, no other stream gets on meanwhile */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_fake.h"

struct CUctx_st {
    int ordinal, users;
};

static struct CUctx_st contexts[FAKE_DEVICES];
static _Thread_local struct CUctx_st *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static int spoilt;

static bool yes(const char *value)
{
    return !strcmp(value, "yes");
}

static void read_line(struct fake_profile *p, const char *key, char *value)
{
    char *next = value, *word;

    if (!strcmp(key, "name"))
        snprintf(p->name, sizeof(p->name), "%.95s", value);
    else if (!strcmp(key, "devices"))
        p->devices = atoi(value) < FAKE_DEVICES ? atoi(value) : FAKE_DEVICES;
    else if (!strcmp(key, "sm"))
        p->sm = atoi(value);
    else if (!strcmp(key, "sms"))
        p->sms = atoi(value);
    else if (!strcmp(key, "driver"))
        p->driver = atoi(value);
    else if (!strcmp(key, "memory"))
        p->memory = strtoull(value, NULL, 10);
    else if (!strcmp(key, "room"))
        p->room = strtoull(value, NULL, 10);
    else if (!strcmp(key, "clock_khz"))
        p->clock_khz = atoi(value);
    else if (!strcmp(key, "hbm_Bps"))
        p->hbm_Bps = atof(value);
    else if (!strcmp(key, "host_Bps"))
        p->host_Bps = atof(value);
    else if (!strcmp(key, "bus_bits"))
        p->bus_bits = atoi(value);
    else if (!strcmp(key, "busid"))
        for (int i = 0; i < FAKE_DEVICES && (word = strsep(&next, " ")); i++)
            snprintf(p->busid[i], sizeof(p->busid[i]), "%.15s", word);
    else if (!strcmp(key, "fabric"))
        p->fabric = yes(value)                        ? FABRIC_YES
                    : !strcmp(value, "not-permitted") ? FABRIC_NOT_PERMITTED
                                                      : FABRIC_NO;
    else if (!strcmp(key, "vmm"))
        p->vmm = yes(value);
    else if (!strcmp(key, "multicast"))
        p->multicast = yes(value);
    else if (!strcmp(key, "dma_buf"))
        p->dma_buf = yes(value);
    else if (!strcmp(key, "serial"))
        p->serial = yes(value);
    else if (!strcmp(key, "peer"))
        p->peer = yes(value);
}

static void read_profile(struct fake_profile *p)
{
    char line[256], key[64], value[160];
    FILE *f = getenv("FAKE_GPU") ? fopen(getenv("FAKE_GPU"), "r") : NULL;

    if (getenv("FAKE_GPU") && !f) {
        fprintf(stderr, "fake libcuda: no profile %s\n", getenv("FAKE_GPU"));
        abort();
    }
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%63s %159[^\n]", key, value) == 2)
            read_line(p, key, value);
    if (f)
        fclose(f);
}

const struct fake_profile *fake_profile(void)
{
    static struct fake_profile p = {.name = "Fake H200",
                                    .devices = 4,
                                    .sm = 90,
                                    .sms = 4,
                                    .driver = 13000,
                                    .clock_khz = 3201000,
                                    .bus_bits = 6144,
                                    .busid = {"0000:1b:00.0", "0000:43:00.0", "0000:52:00.0",
                                              "0000:61:00.0", "0000:9d:00.0", "0000:c3:00.0",
                                              "0000:d1:00.0", "0000:df:00.0"},
                                    .memory = 4ull << 30,
                                    .room = 4ull << 30,
                                    .fabric = FABRIC_NO,
                                    .vmm = true,
                                    .dma_buf = true,
                                    .peer = true};
    static bool read;

    pthread_mutex_lock(&lock);
    if (!read)
        read_profile(&p);
    read = true;
    pthread_mutex_unlock(&lock);
    return &p;
}

/* --- faults --- */
__attribute__((visibility("default"))) int fake_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

__attribute__((visibility("default"))) bool fake_fault(const char *kind, int now, double *more)
{
    const char *list = getenv("FAKE_FAULT");

    for (const char *one = list; one; one = strchr(one, ',') ? strchr(one, ',') + 1 : NULL) {
        size_t n = strcspn(one, ":,");
        int rank = -1, after = 1;
        double rest = 0;

        if (n != strlen(kind) || strncmp(one, kind, n) || one[n] != ':')
            continue;
        sscanf(one + n, ":%d:%d:%lf", &rank, &after, &rest);
        if (rank != fake_rank() || now < after)
            continue;
        if (more)
            *more = rest;
        return true;
    }
    return false;
}

/* How often `function` was called: one counter for each entry of FAKE_FAIL. */
static int made_to_fail(const char *function)
{
    static int calls[16];
    const char *one = getenv("FAKE_FAIL");
    int rc = 0;

    for (int i = 0; one && i < 16; i++, one = strchr(one, ',') ? strchr(one, ',') + 1 : NULL) {
        size_t n = strcspn(one, ":,");
        int code = -1, from = 1;

        if (n != strlen(function) || strncmp(one, function, n))
            continue;
        sscanf(one + n, ":%d:%d", &code, &from);
        if (!strncmp(one + n, ":block", 6)) {
            sscanf(one + n, ":block:%d", &from);
            code = -1;
        }
        pthread_mutex_lock(&lock);
        calls[i]++;
        rc = calls[i] >= from ? code : rc;
        pthread_mutex_unlock(&lock);
    }
    while (rc < 0)
        pause();
    return rc;
}

int fake_refuse(const char *function, bool context)
{
    int rc = made_to_fail(function);

    if (rc)
        return rc;
    if (!started)
        return CUDA_NOT_INITIALIZED;
    if (context && !current)
        return CUDA_INVALID_CONTEXT;
    return context ? __atomic_load_n(&spoilt, __ATOMIC_ACQUIRE) : CUDA_GOOD;
}

void fake_spoil(int result)
{
    __atomic_store_n(&spoilt, result, __ATOMIC_RELEASE);
}

/* --- errors --- */
static const struct {
    int result;
    const char *name, *words;
} results[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "operation would result in a merge of separate capture sequences"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int describe(int result, const char **out, bool words)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
        if (results[i].result == result) {
            *out = words ? results[i].words : results[i].name;
            return CUDA_GOOD;
        }
    *out = NULL;
    return CUDA_INVALID_VALUE;
}

API(cuGetErrorName, int result, const char **name)
{
    return describe(result, name, false);
}

API(cuGetErrorString, int result, const char **words)
{
    return describe(result, words, true);
}

/* --- devices --- */
API(cuDriverGetVersion, int *version)
{
    *version = fake_profile()->driver;
    return made_to_fail(__func__);
}

/* The n-th visible device's ordinal in the profile, -1 past the end: CUDA_VISIBLE_DEVICES=2,0. */
static int visible(int n)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int ordinal;

    if (!list)
        return n < fake_profile()->devices ? n : -1;
    for (; n > 0 && list; n--)
        list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
    if (!list || sscanf(list, "%d", &ordinal) != 1 || ordinal < 0 ||
        ordinal >= fake_profile()->devices)
        return -1;
    return ordinal;
}

API(cuInit, unsigned flags)
{
    int rc = made_to_fail(__func__);

    if (rc || flags)
        return rc ? rc : CUDA_INVALID_VALUE;
    if (visible(0) < 0)
        return CUDA_NO_DEVICE;
    started = true;
    return CUDA_GOOD;
}

API(cuDeviceGetCount, int *count)
{
    NEEDS_INIT;
    for (*count = 0; visible(*count) >= 0; ++*count)
        ;
    return CUDA_GOOD;
}

/* Devices are numbered as they are visible. */
API(cuDeviceGet, cuda_device *device, int ordinal)
{
    NEEDS_INIT;
    *device = ordinal;
    return ordinal < 0 || visible(ordinal) < 0 ? CUDA_INVALID_DEVICE : CUDA_GOOD;
}

API(cuDeviceGetName, char *name, int size, cuda_device device)
{
    NEEDS_INIT;
    (void)device;
    snprintf(name, (size_t)size, "%s", fake_profile()->name);
    return CUDA_GOOD;
}

API(cuDeviceGetUuid_v2, struct cuda_uuid *uuid, cuda_device device)
{
    NEEDS_INIT;
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (unsigned char)(0xf0 + i);
    sscanf(fake_profile()->busid[visible(device)], "%*x:%hhx", &uuid->bytes[15]);
    return CUDA_GOOD;
}

API(cuDeviceGetPCIBusId, char *busid, int size, cuda_device device)
{
    NEEDS_INIT;
    snprintf(busid, (size_t)size, "%s", fake_profile()->busid[visible(device)]);
    for (char *p = busid; *p; p++)
        *p = (char)toupper((unsigned char)*p); /* as the driver writes it */
    return CUDA_GOOD;
}

API(cuDeviceTotalMem_v2, size_t *bytes, cuda_device device)
{
    NEEDS_INIT;
    (void)device;
    *bytes = fake_profile()->memory;
    return CUDA_GOOD;
}

API(cuDeviceGetAttribute, int *value, int attribute, cuda_device device)
{
    const struct fake_profile *p = fake_profile();

    NEEDS_INIT;
    (void)device;
    *value = attribute == CUDA_MULTIPROCESSORS    ? p->sms
             : attribute == CUDA_MEMORY_CLOCK_KHZ ? p->clock_khz
             : attribute == CUDA_MEMORY_BUS_BITS  ? p->bus_bits
             : attribute == CUDA_SM_MAJOR         ? p->sm / 10
             : attribute == CUDA_SM_MINOR         ? p->sm % 10
             : attribute == CUDA_HAS_VMM          ? p->vmm
             : attribute == CUDA_HAS_DMA_BUF      ? p->dma_buf
             : attribute == CUDA_HAS_MULTICAST    ? p->multicast
             : attribute == CUDA_HAS_FABRIC       ? p->fabric != FABRIC_NO
                                                  : 0;
    if (attribute >= CUDA_HAS_FABRIC && p->driver < 12030) /* which came with CUDA 12.3 */
        return CUDA_INVALID_VALUE;
    return CUDA_GOOD;
}

/* --- contexts --- */
API(cuDevicePrimaryCtxRetain, cuda_context *context, cuda_device device)
{
    NEEDS_INIT;
    contexts[device].ordinal = device;
    contexts[device].users++;
    *context = &contexts[device];
    return CUDA_GOOD;
}

API(cuDevicePrimaryCtxRelease_v2, cuda_device device)
{
    NEEDS_INIT;
    if (contexts[device].users == 0)
        return CUDA_INVALID_CONTEXT;
    if (--contexts[device].users == 0)
        fake_forget_memory();
    return CUDA_GOOD;
}

API(cuCtxSetCurrent, cuda_context context)
{
    NEEDS_INIT;
    current = context;
    return CUDA_GOOD;
}

API(cuCtxGetCurrent, cuda_context *context)
{
    NEEDS_INIT;
    *context = current;
    return CUDA_GOOD;
}

API(cuCtxGetDevice, cuda_device *device)
{
    NEEDS_CONTEXT;
    *device = current->ordinal;
    return CUDA_GOOD;
}

API(cuCtxGetStreamPriorityRange, int *least, int *greatest)
{
    NEEDS_CONTEXT;
    *least = 0;
    *greatest = -5;
    return CUDA_GOOD;
}

int fake_ordinal(void)
{
    return current ? current->ordinal : -1;
}

int fake_device(void)
{
    return current ? visible(current->ordinal) : -1;
}
