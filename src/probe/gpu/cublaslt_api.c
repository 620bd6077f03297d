/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/gpu/cublaslt_api.h"

#include <stdio.h>

#include "base/library.h"

struct cublaslt_api cublaslt;

#define FUNCTION(name)                                                                             \
    {                                                                                              \
        "cublasLt" #name, offsetof(struct cublaslt_api, name), LIBRARY_NEEDED                      \
    }
static const struct library_call functions[] = {
    FUNCTION(GetVersion),
    FUNCTION(GetStatusName),
    FUNCTION(Create),
    FUNCTION(Destroy),
    FUNCTION(MatmulDescCreate),
    FUNCTION(MatmulDescDestroy),
    FUNCTION(MatmulDescSetAttribute),
    FUNCTION(MatrixLayoutCreate),
    FUNCTION(MatrixLayoutDestroy),
    FUNCTION(MatmulPreferenceCreate),
    FUNCTION(MatmulPreferenceDestroy),
    FUNCTION(MatmulPreferenceSetAttribute),
    FUNCTION(MatmulAlgoGetHeuristic),
    FUNCTION(Matmul),
};

int cublaslt_load(struct err *err)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    const char *name;

    if (cublaslt.path[0])
        return 0;
    void *library = library_open(names, "no cuBLASLt", &name, err);
    if (!library || library_resolve(&cublaslt, library, functions,
                                    sizeof(functions) / sizeof(*functions), 0, name, err) < 0)
        return -1;
    snprintf(cublaslt.path, sizeof(cublaslt.path), "%s", name);
    return 0;
}

int cublaslt_check(int status, const char *what, struct err *err)
{
    if (status == CUBLASLT_SUCCESS)
        return 0;
    return err_io(err, "%s: %s (%d)", what, cublaslt.GetStatusName(status), status);
}
