/* SPDX-License-Identifier: BSD-3-Clause */
#include "step/release.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 80 };

/* release.NAME + part, of this release or of the version it belongs to. */
static const struct constant *find(const struct constants *c, const char *name, const char *part)
{
    char want[NAME + 32], base[NAME];

    if (!name || !*name || strlen(name) >= sizeof(base))
        return NULL;
    snprintf(base, sizeof(base), "%s", name);
    for (char *s = base; *s; s++)
        if (*s == ' ')
            *s = '-';
    for (char *end = base + strlen(base); end; end = strrchr(base, '.')) {
        *end = '\0';
        snprintf(want, sizeof(want), "release.%s%s", base, part);
        const struct constant *found = constants_find(c, want);
        if (found)
            return found;
    }
    return NULL;
}

double release_stretch(const struct rate *r, const struct constants *c, const char *name,
                       const struct model *m)
{
    bool experts = model_has_experts(m);
    const struct constant *found = find(c, name, experts ? ".experts" : "");

    if (r->basis == BASIS_MEASURED)
        return 1;
    if (!found && !experts)
        found = constants_find(c, "release.default");
    return found ? found->value : 1;
}
