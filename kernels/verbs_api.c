/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernels/verbs_api.h"

#include <dlfcn.h>

#include "kernels/libraries.h"

struct verbs_api verbs;

#define NEEDED(name, type, arguments)                                                              \
    {"ibv_" #name, offsetof(struct verbs_api, name), LIBRARY_NEEDED},
#define OPTIONAL(name, type, arguments)                                                            \
    {"ibv_" #name, offsetof(struct verbs_api, name), LIBRARY_OPTIONAL},
static const struct library_call calls[] = {
    VERBS_NEEDED(NEEDED)
        VERBS_OPTIONAL(OPTIONAL) /* the header wraps this symbol in an inline function: */
    {"_ibv_query_gid_ex", offsetof(struct verbs_api, query_gid_ex), LIBRARY_OPTIONAL},
};

int verbs_load(struct err *err)
{
    struct library_found found;
    struct verbs_api api = {0};

    if (verbs.library)
        return 0;
    api.library = libraries_open(LIBRARY_IBVERBS, 0, &found, err);
    if (!api.library)
        return -1;
    if (library_resolve(&api, api.library, calls, sizeof(calls) / sizeof(*calls), LIBRARY_OPTIONAL,
                        found.file, err) < 0) {
        dlclose(api.library);
        return -1;
    }
    verbs = api;
    return 0;
}
