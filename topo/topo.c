/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/topo.h"

#include <assert.h>
#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/groups.h"
#include "topo/net.h"
#include "topo/nic.h"

const char *const level_name[LEVEL_COUNT] = {"host", "domain", "leaf", "rack", "rail", "spine"};
const char *const level_many[LEVEL_COUNT] = {"hosts", "domains", "leaves",
                                             "racks", "rails",   "spines"};
const char *const endpoint_kind_name[2] = {"cpu", "gpu"};
#define SOURCE_NAME(x, name) name,
const char *const source_name[SOURCE_COUNT] = {SOURCES(SOURCE_NAME)};

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

void topo_init(struct topo *t)
{
    memset(t, 0, sizeof(*t));
}

void group_free(struct declared_group *g)
{
    hostlist_free(g->host, g->hosts);
    free(g->origin);
    free(g->name);
}

void topo_free(struct topo *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->hosts; i++)
        free(t->host[i].cpu);
    for (int i = 0; i < t->unseens; i++) {
        free(t->unseen[i].what);
        free(t->unseen[i].why);
    }
    for (int i = 0; i < t->declared_groups; i++)
        group_free(&t->declared_group[i]);
    for (int l = 0; l < LEVEL_COUNT; l++)
        names_free(&t->group[l]);
    free(t->declared_group);
    net_free(t->net);
    free(t->host);
    free(t->endpoint);
    free(t->nic);
    free(t->gpu);
    free(t->trial);
    free(t->unseen);
    free(t->fabric);
    json_decref(t->nccl);
    json_decref(t->mpi);
    topo_init(t);
}

int topo_add_group(struct topo *t, enum level level, const char *name)
{
    return names_add(&t->group[level], name);
}

int topo_add_host(struct topo *t, const char *name)
{
    int id = topo_add_group(t, LEVEL_HOST, name);

    assert(id <= t->hosts);
    if (id == t->hosts)
        MEM_PUSH(t->host, t->hosts) = (struct host){.name = t->group[LEVEL_HOST].name[id]};
    return id;
}

int topo_find_host(const struct topo *t, const char *name)
{
    return names_find(&t->group[LEVEL_HOST], name);
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

void topo_place(struct topo *t, struct endpoint *e, enum level level, const char *group,
                enum source source)
{
    e->place.at[level] = topo_add_group(t, level, group);
    e->source[level] = (unsigned char)source;
}

void topo_clear_level(struct topo *t, enum level level)
{
    assert(level != LEVEL_HOST);
    names_free(&t->group[level]);
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

/* --- declared groups --- */

void group_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *name, char *const *host, int hosts)
{
    struct declared_group g = {
        .source = source, .level = level, .origin = mem_strdup(origin), .name = mem_strdup(name)};

    for (int i = 0; i < hosts; i++)
        MEM_PUSH(g.host, g.hosts) = mem_strdup(host[i]);
    MEM_PUSH(t->declared_group, t->declared_groups) = g;
}

void group_copy(struct topo *to, const struct declared_group *g)
{
    group_add(to, g->source, g->level, g->origin, g->name, g->host, g->hosts);
    to->declared_group[to->declared_groups - 1].above = g->above;
}

/* --- one topology behind another --- */

int topo_append_host(struct topo *to, const struct host *from)
{
    int h = topo_add_host(to, from->name);
    char *name = to->host[h].name;

    to->host[h] = *from;
    to->host[h].name = name;
    to->host[h].cpu = from->cpu ? mem_strdup(from->cpu) : NULL;
    to->host[h].endpoints = 0; /* counted as endpoints are added */
    return h;
}

static void append_endpoint(struct topo *to, const struct topo *from, const struct endpoint *e,
                            int host, int first_nic, int first_gpu)
{
    int id = topo_add_endpoint(to, host, e->kind);
    struct endpoint *out = &to->endpoint[id];
    struct place place = out->place;

    for (int l = LEVEL_HOST + 1; l < LEVEL_COUNT; l++)
        if (e->place.at[l] >= 0)
            place.at[l] = topo_add_group(to, (enum level)l, from->group[l].name[e->place.at[l]]);
    *out = *e;
    out->place = place;
    out->gpu = e->gpu < 0 ? -1 : first_gpu + e->gpu;
    out->nic = e->nic < 0 ? -1 : first_nic + e->nic;
}

static void append_net(struct topo *to, const struct topo *from, const int *host)
{
    if (to->net || !from->net)
        return;
    to->net = net_copy(from->net);
    for (int i = 0; i < to->net->nodes; i++)
        if (to->net->node[i].host >= 0)
            to->net->node[i].host = host[to->net->node[i].host];
}

/* Append all of `from`; `to` has none of the hosts.  Arrays grow from their count alone
 * (MEM_PUSH), so elements are pushed singly. */
static void append_all(struct topo *to, const struct topo *from)
{
    int *host = mem_calloc((size_t)from->hosts + 1, sizeof(*host)), first_nic = to->nics,
        first_gpu = to->gpus;

    for (int h = 0; h < from->hosts; h++)
        host[h] = topo_append_host(to, &from->host[h]);
    for (int i = 0; i < from->nics; i++) {
        MEM_PUSH(to->nic, to->nics) = from->nic[i];
        to->nic[to->nics - 1].host = host[from->nic[i].host];
    }
    for (int i = 0; i < from->gpus; i++) {
        MEM_PUSH(to->gpu, to->gpus) = from->gpu[i];
        to->gpu[to->gpus - 1].host = host[from->gpu[i].host];
    }
    for (int i = 0; i < from->trials; i++) {
        MEM_PUSH(to->trial, to->trials) = from->trial[i];
        to->trial[to->trials - 1].host = host[from->trial[i].host];
    }
    for (int i = 0; i < from->endpoints; i++)
        append_endpoint(to, from, &from->endpoint[i], host[from->endpoint[i].place.at[LEVEL_HOST]],
                        first_nic, first_gpu);
    for (int i = 0; i < from->declared_groups; i++)
        group_copy(to, &from->declared_group[i]);
    for (int i = 0; i < from->unseens; i++)
        topo_unseen(to, from->unseen[i].what, "%s", from->unseen[i].why);
    append_net(to, from, host);
    free(host);
}

int topo_append(struct topo *to, const struct topo *from, struct err *err)
{
    for (int h = 0; h < from->hosts; h++)
        if (topo_find_host(to, from->host[h].name) >= 0)
            return err_data(err, "host %s is there twice", from->host[h].name);
    append_all(to, from);
    topo_link_gpus(to);
    return 0;
}

void topo_copy(struct topo *to, const struct topo *from)
{
    topo_init(to);
    /* Indices are kept, so groups without members are added too. */
    for (int l = LEVEL_HOST + 1; l < LEVEL_COUNT; l++)
        for (int i = 0; i < from->group[l].count; i++)
            topo_add_group(to, l, from->group[l].name[i]);
    append_all(to, from);
    memcpy(to->tier, from->tier, sizeof(to->tier));
    to->tiers = from->tiers;
    to->fabric = from->fabric ? mem_strdup(from->fabric) : NULL;
    to->nccl = json_incref(from->nccl);
    to->mpi = json_incref(from->mpi);
}

/* --- tiers --- */

static bool shares(unsigned same, const struct place *a, const struct place *b)
{
    for (; same; same &= same - 1) {
        int l = __builtin_ctz(same);
        if (a->at[l] < 0 || a->at[l] != b->at[l])
            return false;
    }
    return true;
}

/* Pairs within the same host or domain need no NIC. */
static const unsigned nvlink_levels = 1u << LEVEL_HOST | 1u << LEVEL_DOMAIN;

int topo_tier_by(const struct topo *t, int a, int b, bool by_nic)
{
    const unsigned left = by_nic ? nvlink_levels : 0;

    for (int i = 0; i < t->tiers; i++)
        if (!(t->tier[i].same & left) &&
            shares(t->tier[i].same, &t->endpoint[a].place, &t->endpoint[b].place))
            return i;
    return t->tiers - 1;
}

void topo_tiers_make(struct topo_tiers *x, const struct topo *t)
{
    int level[LEVEL_COUNT];

    *x = (struct topo_tiers){.tiers = t->tiers};
    for (int l = 0; l < LEVEL_COUNT; l++) {
        unsigned used = 0;
        for (int i = 0; i < t->tiers; i++) {
            unsigned bit = t->tier[i].same >> l & 1;
            x->rule[0][i] |= bit << x->levels;
            x->rule[1][i] |= (bit && nvlink_levels >> l & 1 ? 1u << LEVEL_COUNT : bit << x->levels);
            used |= bit;
        }
        level[x->levels] = l;
        x->levels += (int)used;
    }
    x->at = mem_calloc((size_t)t->endpoints * (size_t)x->levels + 1, sizeof(*x->at));
    for (int i = 0; i < t->endpoints; i++)
        for (int l = 0; l < x->levels; l++) {
            int at = topo_at(t, i, level[l]);
            x->at[i * x->levels + l] = at < 0 ? -2 - i : at;
        }
}

static bool all_in_one(const struct topo *t, enum level level)
{
    for (int i = 0; i < t->endpoints; i++)
        if (topo_at(t, i, level) < 0 || topo_at(t, i, level) != topo_at(t, 0, level))
            return false;
    return t->endpoints > 0;
}

bool topo_hides_nics(const struct topo *t)
{
    bool several = false;

    for (int i = 0; i < t->endpoints; i++) {
        const struct endpoint *e = &t->endpoint[i];
        if (e->kind != ENDPOINT_GPU || e->nic < 0 || !t->nic[e->nic].rdma)
            return false;
        several = several || e->nic != t->endpoint[0].nic;
    }
    return several && (all_in_one(t, LEVEL_HOST) || all_in_one(t, LEVEL_DOMAIN));
}

/* True if the level joins endpoints that no tier so far joins; tiers with a level of `left` do not
 * count.  Comparing each endpoint with the first of its group is enough, in O(n). */
static bool adds_pairs(const struct topo *t, enum level level, unsigned left)
{
    int count = t->group[level].count, found = 0;
    int *first = mem_calloc((size_t)count + 1, sizeof(*first)); /* id + 1 */

    for (int i = 0; i < t->endpoints && !found; i++) {
        int g = t->endpoint[i].place.at[level];
        if (g < 0)
            continue;
        if (!first[g]) {
            first[g] = i + 1;
            continue;
        }
        const struct place *a = &t->endpoint[first[g] - 1].place, *b = &t->endpoint[i].place;
        found = 1;
        for (int k = 0; k < t->tiers; k++)
            found = found && (t->tier[k].same & left || !shares(t->tier[k].same, a, b));
    }
    free(first);
    return found;
}

static void add_tier(struct topo *t, const char *name, unsigned same)
{
    struct tier_rule *r = &t->tier[t->tiers++];

    snprintf(r->name, sizeof(r->name), "%s", name);
    r->same = same;
}

static const char *host_tier(const struct topo *t)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].kind == ENDPOINT_CPU)
            return "shm";
    return t->group[LEVEL_DOMAIN].count ? "nvlink" : "host";
}

static const char *rest_tier(const struct topo *t)
{
    bool tcp = t->nics > 0;

    for (int i = 0; i < t->nics; i++)
        tcp = tcp && !t->nic[i].rdma && t->nic[i].layer == LINK_ETHERNET;
    return tcp ? "tcp" : "fabric";
}

void topo_default_tiers(struct topo *t)
{
    static const struct {
        enum level level;
        const char *name; /* NULL: host_tier() */
    } steps[] = {{LEVEL_HOST, NULL},
                 {LEVEL_DOMAIN, "mnnvl"},
                 {LEVEL_LEAF, "rail"},
                 {LEVEL_RACK, "rack"},
                 {LEVEL_SPINE, "spine"}};
    const unsigned left = topo_hides_nics(t) ? nvlink_levels : 0;

    memset(t->tier, 0, sizeof(t->tier));
    t->tiers = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (adds_pairs(t, steps[i].level, steps[i].level == LEVEL_LEAF ? left : 0))
            add_tier(t, steps[i].name ? steps[i].name : host_tier(t), 1u << steps[i].level);
    add_tier(t, rest_tier(t), 0);
}

int topo_same_read(unsigned *mask, const json_t *from, const char *where, struct err *err)
{
    *mask = 0;
    if (!json_is_array(from))
        return err_data(err, "%s: \"same\" is not a list of levels", where);
    for (size_t i = 0; i < json_array_size(from); i++) {
        const char *name = json_string_value(json_array_get(from, i));
        int level = name ? level_find(name) : -1;
        if (level < 0 || (*mask >> level & 1))
            return err_data(err, "%s: same[%zu] \"%.60s\" is %s", where, i, name ? name : "",
                            level < 0 ? "not host, domain, leaf, rack, rail or spine"
                                      : "there twice");
        *mask |= 1u << level;
    }
    return 0;
}
