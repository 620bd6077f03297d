/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/libraries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_api.h"

const struct library_wanted libraries[LIBRARY_IDS] = {
    [LIBRARY_CUDA] = {"the CUDA driver cannot be loaded",
                      "RAILGAUGE_CUDA",
                      {"libcuda.so.1"},
                      {NULL}},
    [LIBRARY_NVML] = {NULL, "RAILGAUGE_NVML", {"libnvidia-ml.so.1"}, {NULL}},
    [LIBRARY_NCCL] = {"NCCL cannot be loaded",
                      "RAILGAUGE_NCCL",
                      {"libnccl.so.2"},
                      {"nvidia/nccl/lib", "torch/lib"}},
    [LIBRARY_CUBLASLT] = {"no cuBLASLt",
                          "RAILGAUGE_CUBLASLT",
                          {"libcublasLt.so.13", "libcublasLt.so.12"},
                          {"nvidia/cu13/lib", "nvidia/cublas/lib", "torch/lib"}},
    [LIBRARY_IBVERBS] = {"libibverbs cannot be loaded",
                         "RAILGAUGE_IBVERBS",
                         {"libibverbs.so.1"},
                         {NULL}},
};

/* The number behind ".so." */
static int number_of(const char *name)
{
    const char *at = strstr(name, ".so.");

    return at ? atoi(at + 4) : 0;
}

void *libraries_open(enum library_id id, struct library_found *found, struct err *err)
{
    struct library_wanted wanted = libraries[id];
    int out = 0;

    if (id == LIBRARY_CUBLASLT && cuda.version) {
        memset(wanted.names, 0, sizeof(wanted.names));
        for (int i = 0; libraries[id].names[i]; i++)
            if (number_of(libraries[id].names[i]) <= cuda.version / 1000)
                wanted.names[out++] = libraries[id].names[i];
    }
    return library_find(&wanted, found, err);
}
