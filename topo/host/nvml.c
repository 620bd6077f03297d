/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/host/nvml.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/host/gpu.h"
#include "topo/host/nvml_parts.h"

enum { CLOCK_SM = 1, NOT_TOLD = 255 };

/* Library's text into a field of ours: no control characters, cut where it is too long. */
static void set_text(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; from[n] && n + 1 < size; n++)
        to[n] = iscntrl((unsigned char)from[n]) ? '?' : from[n];
    to[n] = '\0';
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
    const char *path = getenv("RAILGAUGE_NVML");
    unsigned count = 0;

    path = path && *path ? path : NULL;
    struct nvml *n = mem_calloc(1, sizeof(*n));
    *out = NULL;
    if (nvml_api_open(&n->api, path, err) < 0) {
        free(n);
        if (path && err)
            err->code = EXIT_NOINPUT;
        return path ? err_wrap(err, "RAILGAUGE_NVML") : -1;
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

/* --- one call each: the number, or -1 where it is not told --- */

static int clock_of(int (*call)(nvml_device d, int clock, unsigned *MHz), nvml_device d)
{
    unsigned MHz;

    return call && call(d, CLOCK_SM, &MHz) == NVML_SUCCESS && MHz < 100000 ? (int)MHz : -1;
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

/* The newest version that the library takes; version 1 knows nothing of health. */
static void read_fabric(const struct nvml_api *a, nvml_device d, struct gpu *g)
{
    struct nvml_fabric v3 = {.version = NVML_VERSIONED(struct nvml_fabric, 3)};
    struct nvml_fabric_v2 v2 = {.version = NVML_VERSIONED(struct nvml_fabric_v2, 2)};
    struct nvml_fabric_v1 v1 = {.status = 0};

    if (a->fabric_v && a->fabric_v(d, &v3) == NVML_SUCCESS) {
        set_fabric(g, v3.cluster, v3.status, v3.clique, v3.state);
        g->health = g->state == FABRIC_COMPLETED ? (long long)v3.health : -1;
        g->summary = g->state == FABRIC_COMPLETED && v3.summary <= 3 ? v3.summary : -1;
    } else if (a->fabric_v && a->fabric_v(d, &v2) == NVML_SUCCESS) {
        set_fabric(g, v2.cluster, v2.status, v2.clique, v2.state);
        g->health = g->state == FABRIC_COMPLETED ? (long long)v2.health : -1;
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
        pages = 0; /* with no room for addresses the library only counts */
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
    if (!d->handle)
        return err_io(err, "GPU %d: %s", i, nvml_result_word(d->lost));
    memcpy(g->busid, d->busid, sizeof(g->busid));
    set_text(g->driver, sizeof(g->driver), n->driver);
    if (n->api.name(d->handle, text, sizeof(text)) == NVML_SUCCESS)
        set_text(g->model, sizeof(g->model), text);
    if (n->api.uuid && n->api.uuid(d->handle, text, sizeof(text)) == NVML_SUCCESS)
        set_text(g->uuid, sizeof(g->uuid), text);
    nvml_read_links(&n->api, d->handle, g);
    nvml_read_paths(n, i, g);
    read_fabric(&n->api, d->handle, g);
    read_platform(&n->api, d->handle, g);
    read_state(n, i, g);
    return 0;
}
