/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "topo/fabrics/fabric.h"

/* How many characters of the device's name are this preset's GPU; 0: it is another one.  " SXM" and
 * what follows are the preset's words, not the driver's. */
static size_t same_gpu(const char *device, const char *gpu)
{
    const char *form = strstr(gpu, " SXM");
    size_t len = form ? (size_t)(form - gpu) : strlen(gpu);

    if (strncmp(device, gpu, len) || (device[len] && device[len] != ' ' && device[len] != '-'))
        return 0;
    if (form && (strcasestr(device + len, "PCIe") || strcasestr(device + len, "NVL")))
        return 0;
    return len;
}

char *fabric_of_gpu(const char *device)
{
    char **name = NULL, *found = NULL;
    size_t best = 0;
    int count = 0;

    if (fabric_list(&name, &count, NULL) < 0)
        return NULL;
    for (int i = 0; i < count; i++) {
        struct fabric f = {.name = NULL};
        size_t len = fabric_load(&f, name[i], NULL) == 0 ? same_gpu(device, f.gpu.name) : 0;
        fabric_free(&f);
        if (len > best) {
            free(found);
            found = mem_strdup(name[i]);
            best = len;
        }
    }
    hostlist_free(name, count);
    return found;
}
