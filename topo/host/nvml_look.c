/* SPDX-License-Identifier: BSD-3-Clause */
/* What changes while a GPU works: numbers that are asked before and after a measurement. */
#include <string.h>

#include "topo/host/gpu.h"
#include "topo/host/nvml_parts.h"

enum { ECC_SINCE_DRIVER = 0, FIELDS_AT_ONCE = 64 };

/* Counters of errors of one NVLink: the first three up to Hopper, the others from Blackwell on. */
static const unsigned link_fields[LINK_FIELDS] = {
    NVML_FIELD_LINK_REPLAY,         NVML_FIELD_LINK_RECOVERY,         NVML_FIELD_LINK_CRC,
    NVML_FIELD_LINK_RECEIVE_ERRORS, NVML_FIELD_LINK_INTEGRITY_ERRORS, NVML_FIELD_LINK_RECOVERIES};
static const unsigned slow_fields[SLOW_FIELDS] = {
    NVML_FIELD_SW_THERMAL_NS, NVML_FIELD_HW_THERMAL_NS, NVML_FIELD_POWER_BRAKE_NS};

int nvml_number(int (*call)(nvml_device d, unsigned *value), nvml_device d)
{
    unsigned value;

    return call && call(d, &value) == NVML_SUCCESS && value <= 0x7fffffff ? (int)value : -1;
}

long long nvml_ecc(const struct nvml_api *a, nvml_device d, int kind)
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

long long nvml_value(const struct nvml_field *f)
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

int nvml_ask(const struct nvml_api *a, nvml_device d, struct nvml_field *f, int n)
{
    int rc = a->fields ? 0 : -1;

    for (int i = 0; i < n; i++)
        f[i].result = NVML_NOT_SUPPORTED;
    for (int i = 0; i < n && rc == 0; i += FIELDS_AT_ONCE)
        if (a->fields(d, n - i < FIELDS_AT_ONCE ? n - i : FIELDS_AT_ONCE, f + i) != NVML_SUCCESS)
            rc = -1;
    return rc;
}

long long nvml_field_of(const struct nvml_api *a, nvml_device d, unsigned id)
{
    struct nvml_field f = {.id = id};

    return nvml_ask(a, d, &f, 1) < 0 ? -1 : nvml_value(&f);
}

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

/* Once for each GPU: which of the fields it answers. */
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
