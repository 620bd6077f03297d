/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "topo/nic.h"
#include "topo/sources/net/rails_impl.h"

enum { CLASSES_SHOWN = 4 };

/* "=mlx5_0:1,mlx5_1:1" */
static char *append(char *list, const char *name, const char *place)
{
    return mem_append(list, "%s%s%s", list ? "," : "=", name, place);
}

/* True for a name that the kernel gives a device.  Sources outside a host may know only the text of
 * its node description ("HCA-1"), or none: NCCL would look for a device of that name. */
static bool is_device(const struct nic *n)
{
    size_t len = strspn(n->name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return n->name[0] >= 'a' && n->name[0] <= 'z' && strcmp(n->name, n->busid) != 0 &&
           (!n->name[len] || n->name[len] == ':');
}

/* NULL also if a NIC has no name that NCCL knows, or NCCL reaches it by a plugin, because the list
 * would leave it out. */
static char *ib_hca(const struct rails_host *v, bool rails)
{
    char *value = NULL, place[32];
    bool known = true;

    for (int i = 0; i < v->nics; i++) {
        const struct nic *n = rails_nic(v, i);
        const char *port = strchr(n->name, ':') ? "" : ":1";
        if (n->use != NIC_COMPUTE || !n->rdma || !n->up)
            continue;
        if (!is_device(n) || nic_is_efa(n)) {
            free(value);
            return NULL;
        }
        known = known && n->rail >= 0;
        snprintf(place, sizeof(place), "%s:%d:%d", port, n->rail, n->plane < 0 ? 0 : n->plane);
        value = append(value, n->name, rails ? place : port);
    }
    if (rails && !known) {
        free(value);
        return NULL;
    }
    return value;
}

/* Interface of the fastest management NIC; without any, interfaces of the compute NICs. */
static char *socket_of(const struct rails_host *v)
{
    const struct nic *best = NULL;
    char *value = NULL;
    bool rdma = false;

    for (int i = 0; i < v->nics; i++) {
        const struct nic *n = rails_nic(v, i);
        rdma = rdma || (n->use == NIC_COMPUTE && n->rdma);
        if (n->use == NIC_MANAGEMENT && n->up && (!best || n->rate_Bps > best->rate_Bps))
            best = n;
    }
    if (rdma && best)
        return append(NULL, best->name, "");
    for (int i = 0; i < v->nics; i++) {
        const struct nic *n = rails_nic(v, i);
        const char *name = n->rdma ? n->netdev : n->name;
        if (n->use == NIC_COMPUTE && n->up && *name)
            value = append(value, name, "");
    }
    return value;
}

/* Value for a host from either of the functions above. */
static char *value_of(const struct topo *t, int host, bool sockets, bool rails)
{
    struct rails r = {.t = (struct topo *)t, .of = net_nics_of(t, true)};
    struct rails_host v = rails_host(&r, host);
    char *value = sockets ? socket_of(&v) : ib_hca(&v, rails);
    net_nics_free(&r.of);
    return value;
}

char *rails_ib_hca(const struct topo *t, int host, bool rails)
{
    return value_of(t, host, false, rails);
}

char *rails_socket(const struct topo *t, int host)
{
    return value_of(t, host, true, false);
}

static const char *comma(const char *text)
{
    return *text ? ", " : "";
}

char *rails_nic_text(const struct nic *n)
{
    char *text = mem_strdup("");

    if (n->use != NIC_UNKNOWN)
        text = mem_append(text, "%s (%s)", nic_use_name[n->use], source_name[n->use_source]);
    if (n->rail >= 0)
        text =
            mem_append(text, "%srail %d (%s)", comma(text), n->rail, source_name[n->rail_source]);
    if (n->plane >= 0)
        text = mem_append(text, "%splane %d (%s)", comma(text), n->plane,
                          source_name[n->plane_source]);
    return text;
}

/* Append to text, source by source, the names of NICs with this source (NULL: no name). */
static char *extend_by_source(char *text, const struct rails_host *v, const char *what,
                              char *const *names, const enum source *source)
{
    char **same = mem_calloc((size_t)v->nics + 1, sizeof(*same));

    for (int s = 0; s < SOURCE_COUNT; s++) {
        int n = 0;
        for (int i = 0; i < v->nics; i++)
            if (names[i] && (int)source[i] == s)
                same[n++] = names[i];
        if (!n)
            continue;
        char *fold = hostlist_fold(same, n);
        text = mem_append(text, "%s%s%s%s (%s)", comma(text), what, *what ? " " : "", fold,
                          source_name[s]);
        free(fold);
    }
    free(same);
    return text;
}

/* "rail-[0-7] (ibnet)": distinct numbers, named as at the level. */
static char *extend_numbers(char *text, const struct rails_host *v, bool planes)
{
    char **names = mem_calloc((size_t)v->nics + 1, sizeof(*names));
    enum source *source = mem_calloc((size_t)v->nics + 1, sizeof(*source));

    for (int i = 0; i < v->nics; i++) {
        const struct nic *n = rails_nic(v, i);
        int number = planes ? n->plane : n->rail;
        char *name = number < 0 ? NULL : mem_printf("%s-%d", planes ? "plane" : "rail", number);
        source[i] = planes ? n->plane_source : n->rail_source;
        for (int k = 0; k < i && name; k++)
            if (names[k] && source[k] == source[i] && !strcmp(names[k], name)) {
                free(name);
                name = NULL;
            }
        names[i] = name;
    }
    text = extend_by_source(text, v, "", names, source);
    hostlist_free(names, v->nics);
    free(source);
    return text;
}

/* "compute mlx5_[0-7] (sysfs), storage mlx5_8 (sysfs), rail-[0-7] (ibnet)" */
static char *uses_text(const struct rails_host *v)
{
    char *text = mem_strdup(""), **names = mem_calloc((size_t)v->nics + 1, sizeof(*names));
    enum source *source = mem_calloc((size_t)v->nics + 1, sizeof(*source));

    for (int use = NIC_COMPUTE; use < NIC_USES; use++) {
        for (int i = 0; i < v->nics; i++) {
            const struct nic *n = rails_nic(v, i);
            names[i] = (int)n->use == use ? (char *)n->name : NULL;
            source[i] = n->use_source;
        }
        text = extend_by_source(text, v, nic_use_name[use], names, source);
    }
    free(names);
    free(source);
    return extend_numbers(extend_numbers(text, v, false), v, true);
}

/* Lines of a host; hosts with the same text are printed once. */
static char *host_text(const struct rails_host *v)
{
    char *uses = uses_text(v), *plain = ib_hca(v, false), *rails = ib_hca(v, true),
         *socket = socket_of(v);
    bool efa = false;

    for (int i = 0; i < v->nics; i++)
        efa = efa || nic_is_efa(rails_nic(v, i));
    char *text = mem_printf(
        "%s%s%s%s%s%s%s%s%s%s%s", uses,
        efa ? "\n           EFA: NCCL reaches these by its plugin aws-ofi-nccl, which --path"
              "\n           plugin:Libfabric proves; transport verbs cannot use them"
            : "",
        plain ? "\n           NCCL_IB_HCA='" : "", plain ? plain : "", plain ? "'" : "",
        rails ? "\n           NCCL_IB_HCA='" : "", rails ? rails : "",
        rails ? "' (NCCL 2.30 and later: with rail and plane)" : "",
        socket ? "\n           NCCL_SOCKET_IFNAME='" : "", socket ? socket : "", socket ? "'" : "");

    free(uses);
    free(plain);
    free(rails);
    free(socket);
    return text;
}

void rails_print(const struct topo *t, FILE *f)
{
    struct rails r = {.t = (struct topo *)t, .of = net_nics_of(t, true)};
    struct names texts = {0};
    char **names = mem_calloc((size_t)t->hosts + 1, sizeof(*names));
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int h = 0; h < t->hosts; h++) {
        struct rails_host v = rails_host(&r, h);
        char *text = host_text(&v);
        of[h] = *text ? names_add(&texts, text) : -1;
        free(text);
    }
    int count = texts.count;
    for (int c = 0; c < count && c < CLASSES_SHOWN; c++) {
        int n = 0;
        for (int h = 0; h < t->hosts; h++)
            if (of[h] == c)
                names[n++] = t->host[h].name;
        char *list = hostlist_fold(names, n);
        if (strlen(list) > 60) {
            free(list);
            list = mem_printf("%s ... %s (%d)", names[0], names[n - 1], n);
        }
        fprintf(f, "%-10s %s%s%s\n", c ? "" : "NIC use", count > 1 ? list : "",
                count > 1 ? ": " : "", texts.name[c]);
        free(list);
    }
    if (count > CLASSES_SHOWN)
        fprintf(f, "%-10s and %d other %s of hosts\n", "", count - CLASSES_SHOWN,
                units_plural(count - CLASSES_SHOWN, "kind", "kinds"));
    names_free(&texts);
    net_nics_free(&r.of);
    free(names);
    free(of);
}
