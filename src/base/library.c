/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int library_resolve(void *api, void *library, const struct library_call *calls, size_t n,
                    int version, const char *name, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        void *symbol = dlsym(library, calls[i].symbol);
        if (!symbol && calls[i].since == LIBRARY_NEEDED)
            return err_config(err, "%s has no %s", name, calls[i].symbol);
        if (version < calls[i].since)
            symbol = NULL;
        /* ISO C cannot cast an object pointer to a function pointer; POSIX: equal bytes. */
        memcpy((char *)api + calls[i].at, &symbol, sizeof(symbol));
    }
    return 0;
}
