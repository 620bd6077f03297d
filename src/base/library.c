/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

void *library_open(const char *const *names, const char *what, const char **name, struct err *err)
{
    char why[400] = "";
    size_t used = 0;

    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library) {
            if (name)
                *name = names[i];
            return library;
        }
        const char *said = dlerror();
        if (used < sizeof(why))
            used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%.160s", i ? "; " : "",
                                     said ? said : names[i]);
    }
    err_config(err, "%s%s%s", what ? what : "", what ? ": " : "", why);
    return NULL;
}

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
