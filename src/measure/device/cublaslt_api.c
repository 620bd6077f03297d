/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/device/cublaslt_api.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cuda_api.h"
#include "kernels/libraries.h"

#define ROW(name, type, arguments)                                                                 \
    {"cublasLt" #name, offsetof(struct cublaslt_api, name), LIBRARY_NEEDED},
static const struct library_call functions[] = {CUBLASLT_CALLS(ROW)};
struct cublaslt_api cublaslt;

/* Check that the library is not newer than the driver.  A library named by a variable may be of any
 * CUDA, and would only report CUBLAS_STATUS_NOT_INITIALIZED. */
static int suits_driver(int version, const char *file, struct err *err)
{
    if (!cuda.version || version / 10000 <= cuda.version / 1000)
        return 0;
    return err_config(err,
                      "%s is cuBLASLt %d.%d; the driver offers CUDA %d.%d and runs those up to %d",
                      file, version / 10000, version / 100 % 100, cuda.version / 1000,
                      cuda.version % 1000 / 10, cuda.version / 1000);
}

int cublaslt_load(struct err *err)
{
    struct cublaslt_api api = {0};
    struct library_found found;

    if (cublaslt.version)
        return 0;
    void *library = libraries_open(LIBRARY_CUBLASLT, cuda.version, &found, err);
    if (!library || library_resolve(&api, library, functions,
                                    sizeof(functions) / sizeof(*functions), 0, found.file, err) < 0)
        return -1;
    const char *slash = strrchr(found.file, '/');
    snprintf(api.name, sizeof(api.name), "%.63s", slash ? slash + 1 : found.file);
    snprintf(api.path, sizeof(api.path), "%s", found.file);
    api.by = found.by;
    api.version = (int)api.GetVersion();
    if (suits_driver(api.version, api.path, err) < 0)
        return -1;
    cublaslt = api; /* the library stays loaded */
    return 0;
}
