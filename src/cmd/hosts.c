/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd/hosts.h"

#include <stddef.h>

#include "base/hostlist.h"
#include "base/mem.h"

int hosts_read(int **host, int *hosts, const struct topo *t, const char *option, const char *list,
               struct err *err)
{
    struct err why;
    char **name;
    int count, rc = 0;

    *host = NULL;
    *hosts = 0;
    for (int h = 0; !list && h < t->hosts; h++)
        MEM_PUSH(*host, *hosts) = h;
    if (!list)
        return 0;
    if (hostlist_expand(&name, &count, list, &why) < 0)
        return err_usage(err, "%s: %s", option, why.text);
    for (int i = 0; rc == 0 && i < count; i++) {
        int h = topo_find_host(t, name[i]);
        if (h < 0)
            rc = err_usage(err, "%s: node \"%.80s\" is not among the %d of the matrix", option,
                           name[i], t->hosts);
        else
            MEM_PUSH(*host, *hosts) = h;
    }
    hostlist_free(name, count);
    return rc;
}
