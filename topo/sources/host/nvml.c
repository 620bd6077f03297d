/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/host/nvml.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "topo/gpu.h"
#include "topo/sources/host/nvml_api.h"

enum { CLOCK_SM = 1, NOT_TOLD = 255, ECC_SINCE_DRIVER = 0, FIELDS_AT_ONCE = 64 };
enum { LINK_FIELDS = 6, SLOW_FIELDS = 3 };
enum { ECC_CORRECTED, ECC_UNCORRECTED };

struct nvml_gpu {
    nvml_device handle; /* NULL: lost */
    int lost;           /* reason from the library */
    char busid[16];
    /* Fields that nvml_look() reads: times, then those of links; asks -1: not chosen yet. */
    struct nvml_field ask[SLOW_FIELDS + GPU_LINKS * LINK_FIELDS];
    int asks;
};

struct nvml {
    struct nvml_api api;
    struct nvml_gpu *device;
    int devices;
    char driver[32];
    nvml_events events; /* NULL: not available */
};

/* Copy text of the library into a field: without control characters, cut if too long. */
static void set_text(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; from[n] && n + 1 < size; n++)
        to[n] = iscntrl((unsigned char)from[n]) ? '?' : from[n];
    to[n] = '\0';
}

static void nvml_busid(char to[16], const struct nvml_pci *pci)
{
    snprintf(to, 16, "%04x:%02x:%02x.0", pci->domain & 0xffffff, pci->bus & 0xff,
             pci->device & 0xff);
}

/* --- open --- */

static void open_device(struct nvml *n, unsigned i)
{
    struct nvml_gpu *d = &MEM_PUSH(n->device, n->devices);
    struct nvml_pci pci = {.domain = 0};

    memset(d, 0, sizeof(*d));
    d->asks = -1;
    d->lost = n->api.device(i, &d->handle);
    if (d->lost == NVML_SUCCESS)
        d->lost = n->api.pci(d->handle, &pci);
    if (d->lost == NVML_SUCCESS)
        nvml_busid(d->busid, &pci);
    else
        d->handle = NULL;
}

int nvml_open(struct nvml **out, struct err *err)
{
    const char *path = secure_getenv("RAILGAUGE_NVML");
    unsigned count = 0;

    struct nvml *n = mem_calloc(1, sizeof(*n));
    *out = NULL;
    if (nvml_api_open(&n->api, err) < 0) {
        free(n);
        if (path && *path && err)
            err->code = EXIT_NOINPUT;
        return path && *path ? err_wrap(err, "RAILGAUGE_NVML") : -1;
    }
    if (n->api.driver && n->api.driver(n->driver, sizeof(n->driver)) != NVML_SUCCESS)
        n->driver[0] = '\0';
    if (n->api.count(&count) == NVML_SUCCESS)
        for (unsigned i = 0; i < count && i < GPU_PEERS; i++)
            open_device(n, i);
    *out = n;
    return 0;
}

void nvml_close(struct nvml *n)
{
    if (!n)
        return;
    if (n->events)
        n->api.events_free(n->events);
    nvml_api_close(&n->api);
    free(n->device);
    free(n);
}

int nvml_count(const struct nvml *n)
{
    return n->devices;
}

int nvml_find(struct nvml *n, const char *busid)
{
    for (int i = 0; i < n->devices; i++)
        if (n->device[i].handle && !strcasecmp(n->device[i].busid, busid))
            return i;
    return -1;
}

/* --- single calls: the number, or -1 if not available --- */

static int nvml_number(int (*call)(nvml_device d, unsigned *value), nvml_device d)
{
    unsigned value;

    return call && call(d, &value) == NVML_SUCCESS && value <= 0x7fffffff ? (int)value : -1;
}

static long long nvml_ecc(const struct nvml_api *a, nvml_device d, int kind)
{
    unsigned long long count;

    return a->ecc && a->ecc(d, kind, ECC_SINCE_DRIVER, &count) == NVML_SUCCESS
               ? (long long)(count & 0x7fffffffffffffff)
               : -1;
}

static long long throttle_of(const struct nvml_api *a, nvml_device d)
{
    int (*call)(nvml_device, unsigned long long *) = a->throttle ? a->throttle : a->throttle_old;
    unsigned long long mask;

    return call && call(d, &mask) == NVML_SUCCESS ? (long long)(mask & 0xffffffff) : -1;
}

static long long nvml_value(const struct nvml_field *f)
{
    switch (f->result == NVML_SUCCESS ? f->type : -1) {
    case 0:
        return f->value.real >= 0 && f->value.real < 9e18 ? (long long)f->value.real : -1;
    case 1:
        return f->value.u;
    case 2:
        return (long long)(f->value.ul & 0x7fffffffffffffff);
    case 3:
        return (long long)(f->value.ull & 0x7fffffffffffffff);
    case 4:
        return f->value.sll;
    case 5:
        return f->value.i;
    default:
        return -1;
    }
}

/* Read many fields at once; each has its own result.  -1: the call itself fails. */
static int nvml_ask(const struct nvml_api *a, nvml_device d, struct nvml_field *f, int n)
{
    int rc = a->fields ? 0 : -1;

    for (int i = 0; i < n; i++)
        f[i].result = NVML_NOT_SUPPORTED;
    for (int i = 0; i < n && rc == 0; i += FIELDS_AT_ONCE)
        if (a->fields(d, n - i < FIELDS_AT_ONCE ? n - i : FIELDS_AT_ONCE, f + i) != NVML_SUCCESS)
            rc = -1;
    return rc;
}

static long long nvml_field_of(const struct nvml_api *a, nvml_device d, unsigned id)
{
    struct nvml_field f = {.id = id};

    return nvml_ask(a, d, &f, 1) < 0 ? -1 : nvml_value(&f);
}

static int clock_of(int (*call)(nvml_device d, int clock, unsigned *MHz), nvml_device d)
{
    unsigned MHz;

    return call && call(d, CLOCK_SM, &MHz) == NVML_SUCCESS && MHz < 100000 ? (int)MHz : -1;
}

/* --- NVLinks and their other ends; PCI paths to other GPUs --- */

static void add_remote(struct gpu *g, enum link_end kind, const char *busid)
{
    struct gpu_remote *r = g->remote;

    while (r < g->remote + g->remotes && (r->kind != kind || strcmp(r->busid, busid) != 0))
        r++;
    if (r == g->remote + g->remotes) {
        g->remotes++;
        r->kind = kind;
        snprintf(r->busid, sizeof(r->busid), "%s", busid);
        r->links = 0;
    }
    r->links++;
}

static void read_remote(const struct nvml_api *a, nvml_device d, unsigned link, struct gpu *g)
{
    static const enum link_end ends[] = {LINK_END_GPU, LINK_END_CPU, LINK_END_SWITCH};
    struct nvml_pci pci = {.domain = 0};
    char busid[16] = "";
    int kind = -1;

    if (!a->link_end || a->link_end(d, link, &kind) != NVML_SUCCESS || kind < 0 || kind > 2)
        kind = -1;
    /* Virtual machines and switches of a rack hide the address: all its bits are ones. */
    if (a->link_pci && a->link_pci(d, link, &pci) == NVML_SUCCESS && pci.domain < 0xfffffff &&
        pci.bus < 0xff)
        nvml_busid(busid, &pci);
    add_remote(g, kind < 0 ? LINK_END_UNKNOWN : ends[kind], busid);
}

/* Speed of the slowest active link; fields are in MB/s. */
static double read_speed(const struct nvml_api *a, nvml_device d, unsigned long long active)
{
    struct nvml_field f[GPU_LINKS] = {{.id = 0}};
    double slowest = 0;
    int n = 0;

    for (unsigned i = 0; i < GPU_LINKS; i++)
        if (active >> i & 1)
            f[n++] = (struct nvml_field){.id = NVML_FIELD_LINK_SPEED, .scope = i};
    nvml_ask(a, d, f, n);
    for (int i = 0; i < n; i++) {
        double Bps = units_in(FOREIGN_NVML_LINK, (double)nvml_value(&f[i]));
        if (Bps > 0 && (slowest == 0 || Bps < slowest))
            slowest = Bps;
    }
    long long common = slowest == 0 && n ? nvml_field_of(a, d, NVML_FIELD_LINK_SPEED_ALL) : 0;
    return common > 0 ? units_in(FOREIGN_NVML_LINK, (double)common) : slowest;
}

/* Read all links.  Numbers may have gaps: calls for missing links fail. */
static void read_links(const struct nvml_api *a, nvml_device d, struct gpu *g)
{
    unsigned long long active = 0;
    int is;

    if (!a->link_state)
        return;
    g->links = 0;
    for (unsigned i = 0; i < GPU_LINKS; i++) {
        if (a->link_state(d, i, &is) != NVML_SUCCESS)
            continue;
        g->links++;
        active |= (unsigned long long)!!is << i;
        g->down |= (unsigned long long)!is << i;
        if (is)
            read_remote(a, d, i, g);
    }
    g->link_Bps = read_speed(a, d, active);
}

static void read_paths(const struct nvml *n, int i, struct gpu *g)
{
    static const int level[] = {0, 10, 20, 30, 40, 50}; /* in the order of enum gpu_path */

    for (int k = 0; n->api.ancestor && k < n->devices && k < GPU_PEERS; k++) {
        int is = -1, path = k == i ? PATH_SELF : -1;
        if (k != i && n->device[k].handle &&
            n->api.ancestor(n->device[i].handle, n->device[k].handle, &is) == NVML_SUCCESS)
            for (int p = PATH_SELF; p <= PATH_SYS; p++)
                path = level[p] == is ? p : path;
        g->path[g->paths++] = path;
    }
}

/* --- counters that change while a GPU works: read before and after a measurement --- */

/* Error counters of one NVLink: the first three up to Hopper, the others since Blackwell. */
static const unsigned link_fields[LINK_FIELDS] = {
    NVML_FIELD_LINK_REPLAY,         NVML_FIELD_LINK_RECOVERY,         NVML_FIELD_LINK_CRC,
    NVML_FIELD_LINK_RECEIVE_ERRORS, NVML_FIELD_LINK_INTEGRITY_ERRORS, NVML_FIELD_LINK_RECOVERIES};
static const unsigned slow_fields[SLOW_FIELDS] = {
    NVML_FIELD_SW_THERMAL_NS, NVML_FIELD_HW_THERMAL_NS, NVML_FIELD_POWER_BRAKE_NS};

void nvml_watch(struct nvml *n, int i)
{
    const struct nvml_api *a = &n->api;

    if (n->events || !n->device[i].handle || !a->events_create || !a->events_register ||
        !a->events_wait || !a->events_free || a->events_create(&n->events) != NVML_SUCCESS)
        return;
    if (a->events_register(n->device[i].handle, NVML_EVENT_XID, n->events) == NVML_SUCCESS)
        return;
    a->events_free(n->events);
    n->events = NULL;
}

/* Choose the fields that the GPU supports, once per GPU. */
static void choose_fields(const struct nvml_api *a, struct nvml_gpu *d)
{
    int n = 0, kept = 0, active;

    for (int i = 0; i < SLOW_FIELDS; i++)
        d->ask[n++] = (struct nvml_field){.id = slow_fields[i]};
    for (unsigned link = 0; a->link_state && link < GPU_LINKS; link++) {
        if (a->link_state(d->handle, link, &active) != NVML_SUCCESS)
            continue;
        for (int k = 0; active && k < LINK_FIELDS; k++)
            d->ask[n++] = (struct nvml_field){.id = link_fields[k], .scope = link};
    }
    nvml_ask(a, d->handle, d->ask, n);
    for (int i = 0; i < n; i++)
        if (d->ask[i].result == NVML_SUCCESS)
            d->ask[kept++] = d->ask[i];
    d->asks = kept;
}

static void look_fields(const struct nvml_api *a, struct nvml_gpu *d, struct nvml_counts *out)
{
    if (d->asks < 0)
        choose_fields(a, d);
    nvml_ask(a, d->handle, d->ask, d->asks);
    for (int i = 0; i < d->asks; i++) {
        long long value = nvml_value(&d->ask[i]);
        if (value < 0)
            continue;
        for (int k = 0; k < SLOW_FIELDS; k++)
            if (d->ask[i].id == slow_fields[k])
                out->slow_ns[k] = value;
        for (int k = 0; k < LINK_FIELDS; k++)
            if (d->ask[i].id == link_fields[k])
                out->link_errors = (out->link_errors < 0 ? 0 : out->link_errors) + value;
    }
}

void nvml_look(struct nvml *n, int i, struct nvml_counts *out)
{
    struct nvml_gpu *d = &n->device[i];
    struct nvml_event event = {.device = NULL};

    *out = (struct nvml_counts){-1, {-1, -1, -1}, -1, -1, -1, 0};
    if (!d->handle)
        return;
    out->throttle = throttle_of(&n->api, d->handle);
    out->ecc_uncorrected = nvml_ecc(&n->api, d->handle, ECC_UNCORRECTED);
    out->pcie_replays = nvml_number(n->api.replays, d->handle);
    look_fields(&n->api, d, out);
    while (n->events && n->api.events_wait(n->events, &event, 0) == NVML_SUCCESS)
        if (event.type == NVML_EVENT_XID && event.device == d->handle)
            out->xid = (int)(event.data & 0xffff);
}

/* --- fabric and rack --- */

static void set_cluster(char to[40], const unsigned char *uuid)
{
    int at = 0;

    for (int i = 0; i < 16; i++)
        at += snprintf(to + at, (size_t)(40 - at), "%s%02x",
                       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static void set_fabric(struct gpu *g, const unsigned char *cluster, int status, unsigned clique,
                       int state)
{
    g->state = state <= FABRIC_COMPLETED ? state : -1;
    if (g->state != FABRIC_COMPLETED)
        return;
    g->status = status >= 0 && status <= 9999 ? status : 999;
    g->clique = clique;
    set_cluster(g->cluster, cluster);
}

/* The lowest type, which is the first: a GPU of a Rubin rack has a clique for each kind of reach. */
static unsigned first_clique(const struct nvml_fabric_v4 *v)
{
    return v->cliques && v->cliques <= sizeof(v->clique) / sizeof(*v->clique) ? v->clique[0].id : 0;
}

/* Use the newest version with one clique that the library supports; version 1 has no health. */
static void read_fabric(const struct nvml_api *a, nvml_device d, struct gpu *g)
{
    struct nvml_fabric v3 = {.version = NVML_VERSIONED(struct nvml_fabric, 3)};
    struct nvml_fabric_v2 v2 = {.version = NVML_VERSIONED(struct nvml_fabric_v2, 2)};
    struct nvml_fabric_v1 v1 = {.status = 0};
    struct nvml_fabric_v4 v4 = {.status = 0};

    if (a->fabric_v && a->fabric_v(d, &v3) == NVML_SUCCESS) {
        set_fabric(g, v3.cluster, v3.status, v3.clique, v3.state);
        g->health = g->state == FABRIC_COMPLETED ? (long long)v3.health : -1;
        g->summary = g->state == FABRIC_COMPLETED && v3.summary <= 3 ? v3.summary : -1;
    } else if (a->fabric_v && a->fabric_v(d, &v2) == NVML_SUCCESS) {
        set_fabric(g, v2.cluster, v2.status, v2.clique, v2.state);
        g->health = g->state == FABRIC_COMPLETED ? (long long)v2.health : -1;
    } else if (a->fabric_v4 && a->fabric_v4(d, &v4) == NVML_SUCCESS) {
        set_fabric(g, v4.cluster, v4.status, first_clique(&v4), v4.state);
        g->health = g->state == FABRIC_COMPLETED ? (long long)v4.health : -1;
        g->summary = g->state == FABRIC_COMPLETED && v4.summary <= 3 ? v4.summary : -1;
    } else if (a->fabric_v1) {
        int result = a->fabric_v1(d, &v1);
        if (result == NVML_SUCCESS)
            set_fabric(g, v1.cluster, v1.status, v1.clique, v1.state);
        else if (result == NVML_NOT_SUPPORTED)
            g->state = FABRIC_NONE;
    } else if (a->fabric_v && a->fabric_v(d, &v2) == NVML_NOT_SUPPORTED) {
        g->state = FABRIC_NONE;
    }
}

static int place_or_none(unsigned char value)
{
    return value == NOT_TOLD ? -1 : value;
}

static void read_platform(const struct nvml_api *a, nvml_device d, struct gpu *g)
{
    struct nvml_platform p = {.version = NVML_VERSIONED(struct nvml_platform, 2)};
    int result = a->platform ? a->platform(d, &p) : NVML_NOT_SUPPORTED;

    if (result == NVML_VERSION_MISMATCH) {
        p.version = NVML_VERSIONED(struct nvml_platform, 1);
        result = a->platform(d, &p);
    }
    if (result == NVML_SUCCESS) {
        char serial[17];
        memcpy(serial, p.chassis, 16);
        serial[16] = '\0';
        set_text(g->chassis, sizeof(g->chassis), serial);
        g->slot = place_or_none(p.slot);
        g->tray = place_or_none(p.tray);
        g->node = place_or_none(p.node);
        g->module = place_or_none(p.module);
    } else {
        g->module = nvml_number(a->module, d);
        g->module = g->module > 65535 ? -1 : g->module;
    }
}

/* --- state --- */

static void read_repairs(const struct nvml_api *a, nvml_device d, struct gpu *g)
{
    unsigned corrected, uncorrected, pending, failed, pages;

    if (a->remapped &&
        a->remapped(d, &corrected, &uncorrected, &pending, &failed) == NVML_SUCCESS) {
        g->remapped_rows = (long long)corrected + uncorrected;
        g->remap = failed ? REMAP_FAILED : pending ? REMAP_PENDING : REMAP_NONE;
    }
    for (int cause = 0; a->retired && cause < 2; cause++) {
        pages = 0; /* without room for addresses the library only counts */
        int result = a->retired(d, cause, &pages, NULL);
        if (result == NVML_SUCCESS || pages)
            g->retired_pages = (g->retired_pages < 0 ? 0 : g->retired_pages) + pages;
    }
}

static void read_state(struct nvml *n, int i, struct gpu *g)
{
    const struct nvml_api *a = &n->api;
    nvml_device d = n->device[i].handle;
    struct nvml_counts counts;

    nvml_look(n, i, &counts);
    g->throttle = counts.throttle;
    g->ecc_uncorrected = counts.ecc_uncorrected;
    g->ecc_corrected = nvml_ecc(a, d, ECC_CORRECTED);
    g->pcie_replays = counts.pcie_replays;
    g->link_errors = counts.link_errors;
    g->pcie_gen = nvml_number(a->gen, d);
    g->pcie_gen_max = nvml_number(a->gen_max, d);
    g->pcie_width = nvml_number(a->width, d);
    g->pcie_width_max = nvml_number(a->width_max, d);
    g->sm_MHz = clock_of(a->clock, d);
    g->sm_MHz_max = clock_of(a->clock_max, d);
    long long recovery = nvml_field_of(a, d, NVML_FIELD_GPU_RECOVERY);
    g->recovery = recovery >= 0 && recovery <= 255 ? (int)recovery : -1;
    read_repairs(a, d, g);
}

int nvml_read(struct nvml *n, int i, struct gpu *g, struct err *err)
{
    const struct nvml_gpu *d = &n->device[i];
    char text[96] = "";

    gpu_init(g);
    g->index = i;
    if (!d->handle && (d->lost == GPU_LOST || d->lost == GPU_TO_RESET)) {
        g->status = d->lost;
        return 0;
    }
    if (!d->handle)
        return err_io(err, "GPU %d: %s", i, nvml_result_word(d->lost));
    memcpy(g->busid, d->busid, sizeof(g->busid));
    set_text(g->driver, sizeof(g->driver), n->driver);
    if (n->api.name(d->handle, text, sizeof(text)) == NVML_SUCCESS)
        set_text(g->model, sizeof(g->model), text);
    if (n->api.uuid && n->api.uuid(d->handle, text, sizeof(text)) == NVML_SUCCESS)
        set_text(g->uuid, sizeof(g->uuid), text);
    unsigned now = 0, later;
    g->split = n->api.mig && n->api.mig(d->handle, &now, &later) == NVML_SUCCESS && now == 1;
    read_links(&n->api, d->handle, g);
    read_paths(n, i, g);
    read_fabric(&n->api, d->handle, g);
    read_platform(&n->api, d->handle, g);
    read_state(n, i, g);
    return 0;
}
