/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/fabrics/fabric.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/nic.h"

const char *const fabric_kind_name[KIND_COUNT] = {"measured", "stated", "spec", "inferred"};

static void free_number(struct fabric_number *n)
{
    free(n->source);
}

void fabric_free(struct fabric *f)
{
    if (!f)
        return;
    for (int i = 0; i < f->gpu.peaks; i++)
        free_number(&f->gpu.peak[i].flops);
    for (int i = 0; i < f->tiers; i++) {
        free_number(&f->tier[i].alpha);
        free_number(&f->tier[i].Bps);
        free_number(&f->tier[i].bi_Bps);
        free_number(&f->tier[i].peak);
    }
    for (int i = 0; i < f->collectives; i++) {
        free_number(&f->collective[i].alpha);
        free_number(&f->collective[i].busbw);
        free(f->collective[i].point);
        free(f->collective[i].points_source);
    }
    for (int i = 0; i < f->eps; i++) {
        free(f->ep[i].kernel);
        free_number(&f->ep[i].alpha);
        free_number(&f->ep[i].Bps[0]);
        free_number(&f->ep[i].Bps[1]);
    }
    free(f->ep);
    free_number(&f->gpu.memory_bytes);
    free_number(&f->gpu.hbm_Bps);
    free_number(&f->gpu.power_W);
    free_number(&f->gpu.nvlink_Bps);
    free_number(&f->nic.Bps);
    free(f->gpu.peak);
    free(f->gpu.name);
    free(f->gpu.generation);
    free(f->nic.name);
    free(f->tier);
    free(f->collective);
    free(f->name);
    free(f->title);
    memset(f, 0, sizeof(*f));
}

/* --- job sizes and host shapes --- */

int fabric_segment(const struct fabric *f, int gpus)
{
    int rack = f->gpus_per_host * f->hosts_per_rack, take = f->gpus_per_host * f->job_hosts;

    return take == 0 || gpus <= rack || (gpus % take && gpus % rack == 0) ? 0 : f->job_hosts;
}

int fabric_reshape(struct fabric *f, int gpus_per_host, int gpus_per_domain, struct err *err)
{
    if (!gpus_per_host && !gpus_per_domain)
        return 0;
    int gpus = gpus_per_host ? gpus_per_host : f->gpus_per_host;
    int domain = gpus_per_domain ? gpus_per_domain : f->hosts_per_domain * f->gpus_per_host;

    if (gpus_per_host && !gpus_per_domain) /* same number of hosts, or same size of domain */
        domain = f->hosts_per_domain > 1 ? domain : f->hosts_per_domain * gpus;
    if (f->hosts_per_domain ? domain % gpus || domain < gpus : gpus_per_domain > 1)
        return err_usage(err, "%s: an NVLink domain of %d GPUs is not made of hosts of %d", f->name,
                         domain, gpus);
    int nics = (f->nics_per_host * gpus + f->gpus_per_host - 1) / f->gpus_per_host;
    f->nics_per_host = gpus == f->gpus_per_host ? f->nics_per_host : nics;
    f->hosts_per_domain = f->hosts_per_domain ? domain / gpus : 0;
    f->gpus_per_host = gpus;
    return 0;
}

/* --- a preset as a topology --- */

enum { ENDPOINTS_MAX = 1 << 20 };

/* Index of a group with a name of `fmt` and one or two numbers.  Called once per host or GPU. */
static int group(struct topo *t, enum level level, const char *fmt, int i, int k)
{
    char name[64];

    /* cppcheck-suppress wrongPrintfScanfArgNum ; a name may have one number or two */
    snprintf(name, sizeof(name), fmt, i, k);
    return topo_add_group(t, level, name);
}

static void place_at(struct endpoint *e, enum level level, int index)
{
    e->place.at[level] = index;
    e->source[level] = SOURCE_PRESET;
}

static void add_nics(struct topo *t, const struct fabric *f, int host)
{
    for (int k = 0; k < f->nics_per_host; k++) {
        struct nic n;
        nic_init(&n, host);
        n.layer = f->nic.layer;
        n.rdma = f->nic.rdma;
        n.rate_Bps = f->nic.Bps.value;
        n.up = true;
        n.source = SOURCE_PRESET;
        snprintf(n.name, sizeof(n.name), f->nic.rdma ? "mlx5_%d" : "eth%d", k);
        snprintf(n.busid, sizeof(n.busid), "0001:%02x:00.0", k & 0xff);
        MEM_PUSH(t->nic, t->nics) = n;
    }
}

/* Set the coordinates of GPU `local` on host h of the whole fabric. */
static void locate(struct topo *t, const struct fabric *f, struct endpoint *e, int h)
{
    int rail = e->local * f->nics_per_host / f->gpus_per_host;

    place_at(e, LEVEL_RACK, group(t, LEVEL_RACK, "rack-%02d", h / f->hosts_per_rack, 0));
    if (f->hosts_per_domain)
        place_at(e, LEVEL_DOMAIN,
                 group(t, LEVEL_DOMAIN, "domain-%02d", h / f->hosts_per_domain, 0));
    if (f->hosts_per_spine)
        place_at(e, LEVEL_SPINE, group(t, LEVEL_SPINE, "spine-%02d", h / f->hosts_per_spine, 0));
    if (f->rail_optimised)
        place_at(e, LEVEL_RAIL, group(t, LEVEL_RAIL, "rail-%d", rail, 0));
    if (f->hosts_per_leaf && f->rail_optimised)
        place_at(e, LEVEL_LEAF, group(t, LEVEL_LEAF, "leaf-%02d-%d", h / f->hosts_per_leaf, rail));
    else if (f->hosts_per_leaf)
        place_at(e, LEVEL_LEAF, group(t, LEVEL_LEAF, "leaf-%02d", h / f->hosts_per_leaf, 0));
}

static void add_host(struct topo *t, const struct fabric *f, int h, bool blind)
{
    char name[64];

    snprintf(name, sizeof(name), "r%02dn%02d", h / f->hosts_per_rack, h % f->hosts_per_rack);
    int host = topo_add_host(t, name), nic = t->nics;
    if (!blind)
        add_nics(t, f, host);
    for (int g = 0; g < f->gpus_per_host; g++) {
        int id = topo_add_endpoint(t, host, ENDPOINT_GPU);
        struct endpoint *e = &t->endpoint[id];
        snprintf(e->model, sizeof(e->model), "%s", f->gpu.name);
        snprintf(e->busid, sizeof(e->busid), "0000:%02x:00.0", (0x10 + 8 * g) & 0xff);
        e->source[LEVEL_HOST] = SOURCE_PRESET;
        if (blind)
            continue;
        e->nic = nic + g * f->nics_per_host / f->gpus_per_host;
        locate(t, f, e, h);
    }
}

static void say_unseen(struct topo *t, const struct fabric *f, bool blind)
{
    static const struct {
        enum level level;
        const char *what;
    } levels[] = {{LEVEL_DOMAIN, "NVLink domain"},
                  {LEVEL_LEAF, "leaf switch"},
                  {LEVEL_RACK, "rack"},
                  {LEVEL_RAIL, "rail"}};

    for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++)
        if (blind)
            topo_unseen(t, levels[i].what, "hidden by --blind");
        else if (!t->group[levels[i].level].count)
            topo_unseen(t, levels[i].what, "the preset %s has none", f->name);
    if (blind)
        topo_unseen(t, "NICs", "hidden by --blind");
}

int fabric_topo(const struct fabric *f, int racks, bool blind, struct topo *t, struct err *err)
{
    long long hosts = (long long)(racks ? racks : f->default_racks) * f->hosts_per_rack;

    topo_init(t);
    if (racks < 0)
        return err_usage(err, "%d racks", racks);
    if (hosts * f->gpus_per_host > ENDPOINTS_MAX)
        return err_usage(err, "%d racks of %s are %lld endpoints, more than %d", racks, f->name,
                         hosts * f->gpus_per_host, ENDPOINTS_MAX);
    t->fabric = mem_strdup(f->name);
    for (int h = 0; h < hosts; h++)
        add_host(t, f, h, blind);
    say_unseen(t, f, blind);
    if (blind) {
        topo_default_tiers(t);
        return 0;
    }
    t->tiers = f->tiers;
    for (int i = 0; i < f->tiers; i++)
        t->tier[i] = f->tier[i].rule;
    return 0;
}
