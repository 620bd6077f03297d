/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver that the stand-in for NCCL works with: the one beside it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_fake.h"

struct fake_cuda cuda;

#define SYMBOL(name, symbol)                                                                       \
    {                                                                                              \
        offsetof(struct fake_cuda, name), symbol                                                   \
    }
static const struct {
    size_t at;
    const char *name;
} symbols[] = {
    SYMBOL(LaunchHostFunc, "cuLaunchHostFunc"),
    SYMBOL(StreamIsCapturing, "cuStreamIsCapturing"),
    SYMBOL(MemAlloc, "cuMemAlloc_v2"),
    SYMBOL(MemFree, "cuMemFree_v2"),
    SYMBOL(CtxGetDevice, "cuCtxGetDevice"),
    SYMBOL(DeviceGetPCIBusId, "cuDeviceGetPCIBusId"),
    SYMBOL(DeviceGetAttribute, "cuDeviceGetAttribute"),
    SYMBOL(find, "fake_find"),
    SYMBOL(host, "fake_host"),
    SYMBOL(reach, "fake_reach"),
    SYMBOL(owner, "fake_owner"),
    SYMBOL(fault, "fake_fault"),
    SYMBOL(rank, "fake_rank"),
    SYMBOL(skip, "fake_skip"),
};

/* Beside this library first: programs that name it by its path need no LD_LIBRARY_PATH. */
static void *open_driver(void)
{
    Dl_info info;
    char path[4200];
    void *driver = NULL;

    if (dladdr(symbols, &info) && info.dli_fname && strrchr(info.dli_fname, '/')) {
        snprintf(path, sizeof(path), "%.*s/libcuda.so.1",
                 (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
        driver = dlopen(path, RTLD_NOW);
    }
    return driver ? driver : dlopen("libcuda.so.1", RTLD_NOW);
}

bool cuda_load(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (!cuda.find) {
        void *driver = open_driver();

        for (size_t i = 0; driver && i < sizeof(symbols) / sizeof(*symbols); i++) {
            void *symbol = dlsym(driver, symbols[i].name);
            memcpy((char *)&cuda + symbols[i].at, &symbol, sizeof(symbol));
        }
    }
    pthread_mutex_unlock(&once);
    return cuda.find && cuda.host && cuda.LaunchHostFunc && cuda.CtxGetDevice;
}
