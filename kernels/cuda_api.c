/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/cuda_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/libraries.h"

struct cuda_api cuda;

enum { OLDEST = 12000 };

#define ROW(name, suffix, arguments)                                                               \
    {"cu" #name suffix, offsetof(struct cuda_api, name), LIBRARY_NEEDED},
static const struct library_call functions[] = {CUDA_CALLS(ROW)};

static int resolve(struct cuda_api *api, void *library, const char *file, struct err *err)
{
    if (library_resolve(api, library, functions, sizeof(functions) / sizeof(*functions), 0, file,
                        err) < 0)
        return err_wrap(err, "the driver is older than CUDA %d.%d, the oldest that is supported",
                        OLDEST / 1000, OLDEST % 1000 / 10);
    return 0;
}

/* "CUDA_ERROR_NAME: the driver's words" */
static char *error_text(int result, char buf[160])
{
    const char *name = NULL, *words = NULL;

    if (cuda.GetErrorName && cuda.GetErrorName(result, &name))
        name = NULL;
    if (cuda.GetErrorString && cuda.GetErrorString(result, &words))
        words = NULL;
    if (name)
        snprintf(buf, 160, "%s: %s", name, words ? words : "no words for it");
    else
        snprintf(buf, 160, "error %d that this driver has no name for", result);
    return buf;
}

/* Start the driver with devices in the order of PCI addresses, as in nvidia-smi and topology.json;
 * its default puts the fastest first. */
static int start(struct cuda_api *api, struct err *err)
{
    char text[160];
    int rc;

    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
    rc = api->Init(0);
    if (rc == CUDA_NO_DEVICE)
        return err_config(err, "the CUDA driver sees no GPU (CUDA_VISIBLE_DEVICES is %s)",
                          getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES")
                                                         : "not set");
    if (rc)
        return err_config(err, "the CUDA driver does not start: %s", error_text(rc, text));
    rc = api->DriverGetVersion(&api->version);
    if (rc)
        return err_config(err, "the CUDA driver does not say its version: %s",
                          error_text(rc, text));
    if (api->version < OLDEST)
        return err_config(
            err, "the driver offers CUDA %d.%d; %d.%d (driver 525) is the oldest that is supported",
            api->version / 1000, api->version % 1000 / 10, OLDEST / 1000, OLDEST % 1000 / 10);
    return 0;
}

int cuda_load(struct err *err)
{
    static struct cuda_api api;
    struct library_found found;
    void *library;
    int rc = 0;

    if (cuda.version)
        return 0;
    library = libraries_open(LIBRARY_CUDA, 0, &found, err);
    if (!library)
        return -1;
    rc = resolve(&api, library, found.file, err);
    if (rc == 0) {
        cuda = api; /* error texts come from the driver too */
        rc = start(&api, err);
        cuda = api;
    }
    if (rc)
        memset(&cuda, 0, sizeof(cuda)); /* the library stays loaded: a driver cannot be unloaded */
    return rc;
}

int cuda_error(struct err *err, int result, const char *what, ...)
{
    char head[256], text[160];
    va_list ap;

    va_start(ap, what);
    vsnprintf(head, sizeof(head), what, ap);
    va_end(ap);
    return err_io(err, "%s: %s", head, error_text(result, text));
}
