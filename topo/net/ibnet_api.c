/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/ibnet_api.h"

#include <dlfcn.h>
#include <string.h>

#include "base/library.h"

static const struct library_call calls[] = {
    {"ibnd_discover_fabric", offsetof(struct ibnet_api, discover), LIBRARY_NEEDED},
    {"ibnd_destroy_fabric", offsetof(struct ibnet_api, destroy), LIBRARY_NEEDED},
    {"ibnd_get_agg_linkspeedext", offsetof(struct ibnet_api, extended), LIBRARY_OPTIONAL},
};

int ibnet_api_open(struct ibnet_api *a, struct err *err)
{
    static const char *const names[] = {"libibnetdisc.so.5", NULL};
    const char *name;

    memset(a, 0, sizeof(*a));
    a->library = library_open(names, "the InfiniBand subnet cannot be read", &name, err);
    if (!a->library)
        return -1;
    if (library_resolve(a, a->library, calls, sizeof(calls) / sizeof(*calls), 1, name, err) < 0) {
        ibnet_api_close(a);
        return -1;
    }
    return 0;
}

void ibnet_api_close(struct ibnet_api *a)
{
    if (a->library)
        dlclose(a->library);
    memset(a, 0, sizeof(*a));
}
