/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/export.h"

#include <string.h>

#include "base/mem.h"
#include "export/export_impl.h"

#define EXPORTER(x, name, help, needs, second) {name, help, EXPORT_##needs, second, x##_write},
const struct exporter exporters[] = {EXPORTERS(EXPORTER)};
const int exporter_count = sizeof(exporters) / sizeof(*exporters);

const struct exporter *exporter_find(const char *name, struct err *err)
{
    struct near near = {.word = name};
    char known[512] = "";
    size_t used = 0;

    for (int i = 0; i < exporter_count; i++) {
        if (!strcmp(exporters[i].name, name))
            return &exporters[i];
        near_try(&near, exporters[i].name);
        if (used < sizeof(known))
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                                     exporters[i].name);
    }
    err_usage(err, "no format \"%.60s\"%s; known: %s", name, near_text(&near), known);
    return NULL;
}

void export_wrap(struct matrix *m, struct topo *t)
{
    matrix_init(m);
    m->transport = mem_strdup("none");
    m->topo = *t;
    topo_init(t);
    for (int i = 0; i < m->topo.tiers; i++)
        m->tier[m->tiers++] = (struct tier){.rule = m->topo.tier[i], .basis = BASIS_ASSUMED};
}
