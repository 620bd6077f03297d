/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/net/ibnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/net/net_topo.h"

#define FILE_MAX ((size_t)1 << 30)

bool ibnet_aggregation(const char *name, long device_id)
{
    /* 0xcf08..0xcf0a: SHARP nodes of Switch-IB 2, Quantum and Quantum-2 (PCI ids of Mellanox). */
    return (device_id >= 0xcf08 && device_id <= 0xcf0a) || strstr(name, "Aggregation Node");
}

void ibnet_name(char name[65], const char *text, size_t len)
{
    while (len && text[len - 1] == ' ')
        len--;
    len = len < 64 ? len : 64;
    for (size_t i = 0; i < len; i++)
        name[i] = (char)(text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
    name[len] = '\0';
}

static int read_file(struct net **n, const char *path, struct err *err)
{
    char *text;
    size_t len;

    if (file_read(&text, &len, path, FILE_MAX, err) < 0)
        return -1;
    int rc = ibnet_parse(n, text, len, path, err);
    free(text);
    return rc;
}

/* "live", "live:mlx5_0", "live:mlx5_0:2" */
static int read_live(struct net **n, const char *text, struct err *err)
{
    char device[64] = "";
    int port = 0;
    const char *colon = text[4] ? strchr(text + 5, ':') : NULL;

    if (text[4])
        snprintf(device, sizeof(device), "%.*s",
                 colon ? (int)(colon - text - 5) : (int)sizeof(device) - 1, text + 5);
    if (text[4] && !*device)
        return err_usage(err, "--ibnet %s: no name of an adapter behind \"live:\"", text);
    if (colon && units_int(&port, colon + 1, 1, NET_PORTS, err) < 0)
        return err_wrap(err, "--ibnet %s: port", text);
    return ibnet_live(n, *device ? device : NULL, port, err);
}

int ibnet_read(struct topo *t, int host, const char *path, struct err *err)
{
    bool live = !strcmp(path, "live") || !strncmp(path, "live:", 5);
    struct net *n;

    (void)host;
    if ((live ? read_live(&n, path, err) : read_file(&n, path, err)) < 0)
        return -1;
    if (!net_count(n, NET_HCA)) {
        int nodes = n->nodes;
        net_free(n);
        return err_data(err, "%s: %d node%s and no host's adapter among them (no Ca)", path, nodes,
                        units_s(nodes));
    }
    if (!t->net)
        t->net = mem_calloc(1, sizeof(*t->net));
    int rc = net_merge(t->net, n, path, err);
    if (rc == 0) {
        net_hosts(n, t);
        net_claim(t, n, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
    }
    net_free(n);
    return rc;
}
