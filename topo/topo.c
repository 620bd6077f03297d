/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/topo.h"

#include <assert.h>
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/claim.h"
#include "topo/net/net.h"

const char *const level_name[LEVEL_COUNT] = {"host", "domain", "leaf", "rack", "rail", "spine"};
const char *const level_many[LEVEL_COUNT] = {"hosts", "domains", "leaves",
                                             "racks", "rails",   "spines"};
const char *const nic_use_name[NIC_USES] = {"unknown", "compute", "storage", "management"};
const char *const source_name[SOURCE_COUNT] = {
    "none",  "hwloc", "sysfs",      "nvml", "mpi",   "preset", "measured", "user",
    "ibnet", "lldp",  "nvidia-smi", "nccl", "slurm", "label",  "topograph"};

static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

int level_find(const char *name)
{
    return find_name(level_name, LEVEL_COUNT, name);
}

int source_find(const char *name)
{
    return find_name(source_name, SOURCE_COUNT, name);
}

void nic_init(struct nic *n, int host)
{
    memset(n, 0, sizeof(*n));
    n->host = host;
    n->numa = n->rail = n->plane = n->gid_index = -1;
}

enum source nic_teller(const struct nic *n)
{
    return n->source == SOURCE_NONE ? SOURCE_USER : n->source;
}

void topo_init(struct topo *t)
{
    memset(t, 0, sizeof(*t));
}

static void free_names(struct topo *t, enum level level)
{
    for (int i = 0; i < t->group[level].count; i++)
        free(t->group[level].name[i]);
    free(t->group[level].name);
    map_free(&t->group[level].index);
    memset(&t->group[level], 0, sizeof(t->group[level]));
}

void topo_free(struct topo *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->hosts; i++) {
        free(t->host[i].name);
        free(t->host[i].cpu);
    }
    for (int i = 0; i < t->unseens; i++) {
        free(t->unseen[i].what);
        free(t->unseen[i].why);
    }
    for (int i = 0; i < t->claims; i++)
        claim_free(&t->claim[i]);
    for (int l = 0; l < LEVEL_COUNT; l++)
        free_names(t, l);
    free(t->claim);
    net_free(t->net);
    free(t->host);
    free(t->endpoint);
    free(t->nic);
    free(t->gpu);
    free(t->trial);
    free(t->unseen);
    free(t->fabric);
    json_decref(t->nccl);
    topo_init(t);
}

struct wanted_name {
    char *const *name;
    const char *text;
};

static bool is_name(const void *wanted, int value)
{
    const struct wanted_name *w = wanted;

    return !strcmp(w->name[value], w->text);
}

int topo_add_group(struct topo *t, enum level level, const char *name)
{
    struct wanted_name w = {t->group[level].name, name};
    int *at = map_at(&t->group[level].index, map_text(name), is_name, &w);

    if (*at == MAP_NONE) {
        *at = t->group[level].count;
        MEM_PUSH(t->group[level].name, t->group[level].count) = mem_strdup(name);
    }
    return *at;
}

int topo_add_host(struct topo *t, const char *name)
{
    int id = topo_add_group(t, LEVEL_HOST, name);

    assert(id <= t->hosts);
    if (id == t->hosts)
        MEM_PUSH(t->host, t->hosts) = (struct host){.name = mem_strdup(name)};
    return id;
}

int topo_find_host(const struct topo *t, const char *name)
{
    struct wanted_name w = {t->group[LEVEL_HOST].name, name};

    return map_find(&t->group[LEVEL_HOST].index, map_text(name), is_name, &w);
}

char *topo_host_family(const char *name)
{
    char *family = mem_strdup(name), *to = family;

    for (; *name; name++)
        if (!isdigit((unsigned char)*name))
            *to++ = *name;
        else if (to == family || to[-1] != '#')
            *to++ = '#';
    *to = '\0';
    return family;
}

int topo_add_endpoint(struct topo *t, int host, enum endpoint_kind kind)
{
    struct endpoint e = {.kind = kind, .numa = -1, .nic = -1, .gpu = -1};

    assert(host >= 0 && host < t->hosts);
    for (int l = 0; l < LEVEL_COUNT; l++)
        e.place.at[l] = -1;
    e.place.at[LEVEL_HOST] = host;
    e.source[LEVEL_HOST] = SOURCE_MPI;
    e.local = t->host[host].endpoints++;
    MEM_PUSH(t->endpoint, t->endpoints) = e;
    return t->endpoints - 1;
}

void topo_clear_level(struct topo *t, enum level level)
{
    assert(level != LEVEL_HOST);
    free_names(t, level);
    for (int i = 0; i < t->endpoints; i++) {
        t->endpoint[i].place.at[level] = -1;
        t->endpoint[i].source[level] = SOURCE_NONE;
    }
}

void topo_unseen(struct topo *t, const char *what, const char *fmt, ...)
{
    char why[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    for (int i = 0; i < t->unseens; i++)
        if (!strcmp(t->unseen[i].what, what)) {
            free(t->unseen[i].why);
            t->unseen[i].why = mem_strdup(why);
            return;
        }
    MEM_PUSH(t->unseen, t->unseens) = (struct unseen){mem_strdup(what), mem_strdup(why)};
}

/* Arrays grow from their count alone (MEM_PUSH), so a copy is built by pushing, not by one block.
 */
void topo_copy(struct topo *to, const struct topo *from)
{
    topo_init(to);
    for (int i = 0; i < from->hosts; i++) {
        int h = topo_add_host(to, from->host[i].name);
        char *name = to->host[h].name;
        to->host[h] = from->host[i];
        to->host[h].name = name;
        to->host[h].cpu = from->host[i].cpu ? mem_strdup(from->host[i].cpu) : NULL;
    }
    for (int l = 0; l < LEVEL_COUNT; l++)
        for (int i = 0; i < from->group[l].count; i++)
            topo_add_group(to, l, from->group[l].name[i]);
    for (int i = 0; i < from->endpoints; i++)
        MEM_PUSH(to->endpoint, to->endpoints) = from->endpoint[i];
    for (int i = 0; i < from->nics; i++)
        MEM_PUSH(to->nic, to->nics) = from->nic[i];
    for (int i = 0; i < from->gpus; i++)
        MEM_PUSH(to->gpu, to->gpus) = from->gpu[i];
    for (int i = 0; i < from->trials; i++)
        MEM_PUSH(to->trial, to->trials) = from->trial[i];
    for (int i = 0; i < from->claims; i++) {
        const struct claim *c = &from->claim[i];
        claim_copy(to, c);
    }
    to->net = net_copy(from->net);
    for (int i = 0; i < from->unseens; i++)
        topo_unseen(to, from->unseen[i].what, "%s", from->unseen[i].why);
    memcpy(to->tier, from->tier, sizeof(to->tier));
    to->tiers = from->tiers;
    to->fabric = from->fabric ? mem_strdup(from->fabric) : NULL;
    to->nccl = json_incref(from->nccl);
}
