/* SPDX-License-Identifier: BSD-3-Clause */
/* nvidia-ml.c - a stand-in for libnvidia-ml.so.1: it says what a text profile says.
 *
 * FAKE_NVML names the profile, or a folder with HOSTNAME.txt (else default.txt) for each host of a
 * rack on one kernel; without it the driver "is not loaded".  A profile has one "KEY VALUE ..." a
 * line, '#' begins a comment:
 *   include FILE         beside this one, or an absolute name; what follows overrides it
 *   gpu N KEY VALUE ...  of GPU N only (of all from N on with "gpu N+")
 *   after N ...          from the N-th look at the clock reasons of a GPU on
 * The keys are in the table below; what is not said is "not supported". */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/sources/host/nvml_api.h"

enum { GPUS = 16, LINKS = 36, LINES = 64, LINE = 256 };
enum { FUNCTION_NOT_FOUND = 13, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7 };

struct nvml_device_opaque {
    char name[96], busid[32], uuid[80], chassis[17], end[12], cluster[40];
    char peer[LINKS][32];
    int peers;
    long long links, speed, state, status, clique, health, summary, fabric_version;
    long long slot, tray, node, module, platform_version, gen[2], width[2], clock[2];
    long long throttle, slow[3], ecc[2], remapped[4], retired[2], replays, recovery, near, lost,
        mig;
    long long errors[LINKS], nvlink, numa, xid, type;
    bool down[LINKS], said_xid;
    int looks;
};

static struct nvml_device_opaque gpu[GPUS];
static int gpus, started;
static char driver[80] = "580.00.00";
static struct {
    int after;
    char line[LINE];
} later[LINES];
static int laters;

#define NUMBER(key)                                                                                \
    {                                                                                              \
#key, offsetof(struct nvml_device_opaque, key), 1, 0                                       \
    }
#define NUMBERS(key, n)                                                                            \
    {                                                                                              \
#key, offsetof(struct nvml_device_opaque, key), n, 0                                       \
    }
#define WORDS(key)                                                                                 \
    {                                                                                              \
#key, offsetof(struct nvml_device_opaque, key), 0, sizeof(gpu->key)                        \
    }

static const struct {
    const char *key;
    size_t at;
    int numbers;
    size_t text;
} keys[] = {
    WORDS(name),
    WORDS(busid),
    WORDS(uuid),
    WORDS(chassis),
    WORDS(end),     /* what NVLinks lead to: switch, gpu, npu, unknown */
    WORDS(cluster), /* 16 bytes as a UUID */
    NUMBER(links),  /* how many; then "down I ..." */
    NUMBER(nvlink), /* generation: 5 counts errors in other fields */
    NUMBER(speed),  /* MB/s a link */
    NUMBER(state),
    NUMBER(status),
    NUMBER(clique),
    NUMBER(health),
    NUMBER(summary),
    NUMBER(fabric_version), /* newest that it takes; 0: only the old call; -1: none */
    NUMBER(slot),
    NUMBER(tray),
    NUMBER(node),
    NUMBER(module),
    NUMBER(platform_version),
    NUMBERS(gen, 2),
    NUMBERS(width, 2), /* now, at most */
    NUMBERS(clock, 2),
    NUMBER(throttle),
    NUMBERS(slow, 3),     /* ns: sw, hw thermal, brake */
    NUMBERS(ecc, 2),      /* corrected, uncorrected */
    NUMBERS(remapped, 4), /* corrected, uncorrected, pending, failed */
    NUMBERS(retired, 2),
    NUMBER(replays),
    NUMBER(recovery),
    NUMBER(near), /* common ancestor with GPUs of the same NUMA node; others: 50 */
    NUMBER(numa),
    NUMBER(type), /* of error counts: 0 double, 2 unsigned long, 3, 4 long long, 5 int */

    NUMBER(lost),
    NUMBER(mig), /* 1: on; -1: not supported */
    NUMBER(xid),
};

static void apply(struct nvml_device_opaque *d, char *key, char *rest)
{
    char *at = rest, *word;

    if (!strcmp(key, "down"))
        while ((word = strtok_r(at, " ", &at)))
            d->down[atoi(word) % LINKS] = true;
    else if (!strcmp(key, "error")) { /* link, how many */
        word = strtok_r(at, " ", &at);
        d->errors[atoi(word) % LINKS] += atoi(at);
    } else if (!strcmp(key, "peer")) /* PCI addresses that the links lead to in turn; "hidden" */
        for (d->peers = 0; d->peers < LINKS && (word = strtok_r(at, " ", &at));)
            snprintf(d->peer[d->peers++], sizeof(d->peer[0]), "%s", word);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        if (strcmp(keys[i].key, key) != 0)
            continue;
        if (keys[i].text)
            snprintf((char *)d + keys[i].at, keys[i].text, "%s", rest);
        long long *to = (long long *)(void *)((char *)d + keys[i].at);
        for (int k = 0; k < keys[i].numbers && (word = strtok_r(at, " ", &at)); k++)
            to[k] = strtoll(word, NULL, 0);
    }
}

static void read_profile(const char *path, int depth);

static void read_line(char *line, const char *folder, int depth)
{
    char *at = line, path[1024];
    char *key = strtok_r(at, " ", &at);
    int from = 0, to = GPUS - 1;

    if (!key || *key == '#')
        return;
    if (!strcmp(key, "include") && depth < 4) {
        snprintf(path, sizeof(path), "%s%s%s", *at == '/' ? "" : folder, *at == '/' ? "" : "/", at);
        read_profile(path, depth + 1);
        return;
    }
    if (!strcmp(key, "after") && laters < LINES) {
        later[laters].after = atoi(strtok_r(at, " ", &at));
        snprintf(later[laters++].line, LINE, "%s", at);
        return;
    }
    if (!strcmp(key, "gpu")) {
        char *which = strtok_r(at, " ", &at);
        from = atoi(which);
        to = strchr(which, '+') ? GPUS - 1 : from;
        key = strtok_r(at, " ", &at);
    }
    if (!strcmp(key, "gpus"))
        gpus = atoi(at);
    else if (!strcmp(key, "driver"))
        snprintf(driver, sizeof(driver), "%s", at);
    for (int i = from; i <= to && i < GPUS; i++) {
        char copy[LINE];
        snprintf(copy, sizeof(copy), "%s", at);
        apply(&gpu[i], key, copy);
    }
}

static void read_profile(const char *path, int depth)
{
    FILE *f = fopen(path, "r");
    char line[LINE], folder[512];

    if (!f) {
        fprintf(stderr, "fake nvidia-ml: no profile %s\n", path);
        exit(99);
    }
    snprintf(folder, sizeof(folder), "%.*s",
             (int)(strrchr(path, '/') ? strrchr(path, '/') - path : 0), path);
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        read_line(line, folder, depth);
    }
    fclose(f);
}

/* From this look on: what a profile keeps for later. */
static void look(struct nvml_device_opaque *d)
{
    char line[LINE];

    d->looks++;
    for (int i = 0; i < laters; i++) {
        int which = -1, skip = 0;
        if (later[i].after != d->looks)
            continue;
        if (sscanf(later[i].line, "gpu %d %n", &which, &skip) == 1 && which != d - gpu)
            continue;
        snprintf(line, sizeof(line), "%s", later[i].line + skip);
        char *at = line, *key = strtok_r(at, " ", &at);
        apply(d, key, at);
    }
}

static int or_unsupported(long long value, unsigned *out)
{
    *out = (unsigned)value;
    return value < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

/* --- the library --- */

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    const char *path = getenv("FAKE_NVML");
    char host[256] = "", file[1024];

    if (!path || !*path)
        return NVML_DRIVER_NOT_LOADED;
    if (started++)
        return NVML_SUCCESS;
    for (int i = 0; i < GPUS; i++) {
        struct nvml_device_opaque *d = &gpu[i];
        memset(d, 0, sizeof(*d));
        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
            for (int n = 0; n < keys[k].numbers; n++)
                ((long long *)(void *)((char *)d + keys[k].at))[n] = -1;
        d->links = 0;
        d->lost = d->xid = 0;
        d->fabric_version = 3;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(file, sizeof(file), "%s/%s.txt", path, host);
    if (access(file, R_OK) != 0)
        snprintf(file, sizeof(file), "%s/default.txt", path);
    read_profile(access(file, R_OK) == 0 ? file : path, 0);
    return NVML_SUCCESS;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
    return result == NVML_DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Some Error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned len);
int nvmlSystemGetDriverVersion(char *version, unsigned len)
{
    return snprintf(version, len, "%s", driver) < (int)len ? NVML_SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = (unsigned)gpus;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device *d);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, nvml_device *d)
{
    if (i >= (unsigned)gpus)
        return INVALID_ARGUMENT;
    *d = &gpu[i];
    return gpu[i].lost ? NVML_GPU_IS_LOST : NVML_SUCCESS;
}

static int set_pci(struct nvml_pci *pci, const char *busid)
{
    unsigned domain, bus, device;

    memset(pci, 0, sizeof(*pci));
    if (sscanf(busid, "%x:%x:%x", &domain, &bus, &device) != 3)
        return NVML_NOT_SUPPORTED;
    pci->domain = domain;
    pci->bus = bus;
    pci->device = device;
    snprintf(pci->busid, sizeof(pci->busid), "%08X:%02X:%02X.0", domain, bus, device);
    return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(nvml_device d, struct nvml_pci *pci);
int nvmlDeviceGetPciInfo_v3(nvml_device d, struct nvml_pci *pci)
{
    return set_pci(pci, d->busid);
}

int nvmlDeviceGetName(nvml_device d, char *name, unsigned len);
int nvmlDeviceGetName(nvml_device d, char *name, unsigned len)
{
    return snprintf(name, len, "%s", d->name) < (int)len ? NVML_SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetUUID(nvml_device d, char *uuid, unsigned len);
int nvmlDeviceGetUUID(nvml_device d, char *uuid, unsigned len)
{
    if (!*d->uuid)
        return NVML_NOT_SUPPORTED;
    return snprintf(uuid, len, "%s", d->uuid) < (int)len ? NVML_SUCCESS : INSUFFICIENT_SIZE;
}

int nvmlDeviceGetModuleId(nvml_device d, unsigned *id);
int nvmlDeviceGetModuleId(nvml_device d, unsigned *id)
{
    return or_unsupported(d->module, id);
}

int nvmlDeviceGetNvLinkState(nvml_device d, unsigned link, int *active);
int nvmlDeviceGetNvLinkState(nvml_device d, unsigned link, int *active)
{
    if (link >= d->links)
        return INVALID_ARGUMENT;
    *active = !d->down[link];
    return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device d, unsigned link, int *kind);
int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device d, unsigned link, int *kind)
{
    static const char *const ends[] = {"gpu", "npu", "switch"};

    *kind = 255;
    for (int i = 0; i < 3; i++)
        if (!strcmp(d->end, ends[i]))
            *kind = i;
    return link < d->links && *d->end ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device d, unsigned link, struct nvml_pci *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device d, unsigned link, struct nvml_pci *pci)
{
    const char *peer = d->peers ? d->peer[link % (unsigned)d->peers] : "";

    return set_pci(pci, strcmp(peer, "hidden") != 0 ? peer : "fffffff:ff:ff.0");
}

int nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, int *level);
int nvmlDeviceGetTopologyCommonAncestor(nvml_device a, nvml_device b, int *level)
{
    *level = a->numa == b->numa ? (int)a->near : 50;
    return a->near < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

static void set_cluster(unsigned char to[16], const char *uuid)
{
    memset(to, 0, 16);
    for (int i = 0; i < 16 && *uuid; uuid++) {
        unsigned byte;
        if (*uuid == '-' || sscanf(uuid, "%2x", &byte) != 1)
            continue;
        to[i++] = (unsigned char)byte;
        uuid++;
    }
}

int nvmlDeviceGetGpuFabricInfoV(nvml_device d, void *fabric);
int nvmlDeviceGetGpuFabricInfoV(nvml_device d, void *fabric)
{
    struct nvml_fabric *v3 = fabric;
    struct nvml_fabric_v2 *v2 = fabric;
    bool third = v2->version == NVML_VERSIONED(struct nvml_fabric, 3) && d->fabric_version >= 3;

    if (d->fabric_version < 0)
        return NVML_NOT_SUPPORTED;
    if (d->fabric_version == 0 || d->fabric_version == 4)
        return FUNCTION_NOT_FOUND;
    if (!third && v2->version != NVML_VERSIONED(struct nvml_fabric_v2, 2))
        return NVML_VERSION_MISMATCH;
    if (d->state < 0)
        return NVML_NOT_SUPPORTED;
    set_cluster(v2->cluster, d->cluster);
    v2->status = (int)d->status;
    v2->clique = (unsigned)d->clique;
    v2->state = (unsigned char)d->state;
    v2->health = d->health < 0 ? 0 : (unsigned)d->health;
    if (third)
        v3->summary = d->summary < 0 ? 0 : (unsigned char)d->summary;
    return NVML_SUCCESS;
}

/* A clique for each kind of reach, the lowest type first. */
int nvmlDeviceGetGpuFabricInfo_v4(nvml_device d, struct nvml_fabric_v4 *fabric);
int nvmlDeviceGetGpuFabricInfo_v4(nvml_device d, struct nvml_fabric_v4 *fabric)
{
    if (d->fabric_version != 4)
        return FUNCTION_NOT_FOUND;
    memset(fabric, 0, sizeof(*fabric));
    set_cluster(fabric->cluster, d->cluster);
    fabric->status = (int)d->status;
    fabric->cliques = 2;
    fabric->clique[0].id = (unsigned)d->clique;
    fabric->clique[1].type = 2;
    fabric->clique[1].id = 99;
    fabric->state = (unsigned char)d->state;
    fabric->health = d->health < 0 ? 0 : (unsigned)d->health;
    fabric->summary = d->summary < 0 ? 0 : (unsigned char)d->summary;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMigMode(nvml_device d, unsigned *current, unsigned *pending);
int nvmlDeviceGetMigMode(nvml_device d, unsigned *current, unsigned *pending)
{
    *current = *pending = d->mig > 0;
    return d->mig < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetGpuFabricInfo(nvml_device d, struct nvml_fabric_v1 *fabric);
int nvmlDeviceGetGpuFabricInfo(nvml_device d, struct nvml_fabric_v1 *fabric)
{
    if (d->state < 0 || d->fabric_version < 0 || d->fabric_version == 4)
        return NVML_NOT_SUPPORTED;
    set_cluster(fabric->cluster, d->cluster);
    fabric->status = (int)d->status;
    fabric->clique = (unsigned)d->clique;
    fabric->state = (unsigned char)d->state;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPlatformInfo(nvml_device d, struct nvml_platform *p);
int nvmlDeviceGetPlatformInfo(nvml_device d, struct nvml_platform *p)
{
    if (d->platform_version < 1)
        return NVML_NOT_SUPPORTED;
    if (p->version != NVML_VERSIONED(struct nvml_platform, d->platform_version))
        return NVML_VERSION_MISMATCH;
    memcpy(p->chassis, d->chassis, 16);
    p->slot = (unsigned char)d->slot; /* not said: 255, as on a board without a rack */
    p->tray = (unsigned char)d->tray;
    p->node = (unsigned char)d->node;
    p->module = (unsigned char)d->module;
    return NVML_SUCCESS;
}

static long long field(const struct nvml_device_opaque *d, unsigned id, unsigned link, int *type)
{
    bool up = link < d->links && !d->down[link];

    *type = 3;
    switch (id) {
    case NVML_FIELD_LINK_SPEED:
        *type = 1;
        return up ? d->speed : -1;
    case NVML_FIELD_LINK_CRC:
        return up && d->nvlink < 5 ? d->errors[link] : -1;
    case NVML_FIELD_LINK_REPLAY:
        return up && d->nvlink < 5 ? 0 : -1;
    case NVML_FIELD_LINK_RECEIVE_ERRORS:
        return up && d->nvlink >= 5 ? d->errors[link] : -1;
    case NVML_FIELD_GPU_RECOVERY:
        *type = 1;
        return d->recovery;
    case NVML_FIELD_SW_THERMAL_NS:
    case NVML_FIELD_HW_THERMAL_NS:
    case NVML_FIELD_POWER_BRAKE_NS:
        return d->slow[id - NVML_FIELD_SW_THERMAL_NS];
    default:
        return -1;
    }
}

int nvmlDeviceGetFieldValues(nvml_device d, int n, struct nvml_field *f);
int nvmlDeviceGetFieldValues(nvml_device d, int n, struct nvml_field *f)
{
    for (int i = 0; i < n; i++) {
        long long value = field(d, f[i].id, f[i].scope, &f[i].type);
        f[i].result = value < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
        if (f[i].type == 3 && d->type >= 0)
            f[i].type = (int)d->type;
        if (f[i].type == 0)
            f[i].value.real = (double)value;
        else if (f[i].type == 1)
            f[i].value.u = (unsigned)value;
        else if (f[i].type == 5)
            f[i].value.i = (int)value;
        else
            f[i].value.ull = (unsigned long long)value;
    }
    return NVML_SUCCESS;
}

int nvmlDeviceGetClockInfo(nvml_device d, int clock, unsigned *MHz);
int nvmlDeviceGetClockInfo(nvml_device d, int clock, unsigned *MHz)
{
    return or_unsupported(clock == 1 ? d->clock[0] : -1, MHz);
}

int nvmlDeviceGetMaxClockInfo(nvml_device d, int clock, unsigned *MHz);
int nvmlDeviceGetMaxClockInfo(nvml_device d, int clock, unsigned *MHz)
{
    return or_unsupported(clock == 1 ? d->clock[1] : -1, MHz);
}

int nvmlDeviceGetCurrentClocksEventReasons(nvml_device d, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksEventReasons(nvml_device d, unsigned long long *reasons)
{
    look(d);
    *reasons = (unsigned long long)d->throttle;
    return d->throttle < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(nvml_device d, int kind, int counter, unsigned long long *count);
int nvmlDeviceGetTotalEccErrors(nvml_device d, int kind, int counter, unsigned long long *count)
{
    *count = (unsigned long long)d->ecc[kind & 1];
    return counter || d->ecc[kind & 1] < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPages(nvml_device d, int cause, unsigned *count, unsigned long long *pages);
int nvmlDeviceGetRetiredPages(nvml_device d, int cause, unsigned *count, unsigned long long *pages)
{
    if (d->retired[cause & 1] < 0)
        return NVML_NOT_SUPPORTED;
    *count = (unsigned)d->retired[cause & 1];
    return *count && !pages ? INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetRemappedRows(nvml_device d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed);
int nvmlDeviceGetRemappedRows(nvml_device d, unsigned *corrected, unsigned *uncorrected,
                              unsigned *pending, unsigned *failed)
{
    *corrected = (unsigned)d->remapped[0];
    *uncorrected = (unsigned)d->remapped[1];
    *pending = (unsigned)d->remapped[2];
    *failed = (unsigned)d->remapped[3];
    return d->remapped[0] < 0 ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetPcieReplayCounter(nvml_device d, unsigned *count);
int nvmlDeviceGetPcieReplayCounter(nvml_device d, unsigned *count)
{
    return or_unsupported(d->replays, count);
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device d, unsigned *gen);
int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device d, unsigned *gen)
{
    return or_unsupported(d->gen[0], gen);
}

int nvmlDeviceGetMaxPcieLinkGeneration(nvml_device d, unsigned *gen);
int nvmlDeviceGetMaxPcieLinkGeneration(nvml_device d, unsigned *gen)
{
    return or_unsupported(d->gen[1], gen);
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_device d, unsigned *width);
int nvmlDeviceGetCurrPcieLinkWidth(nvml_device d, unsigned *width)
{
    return or_unsupported(d->width[0], width);
}

int nvmlDeviceGetMaxPcieLinkWidth(nvml_device d, unsigned *width);
int nvmlDeviceGetMaxPcieLinkWidth(nvml_device d, unsigned *width)
{
    return or_unsupported(d->width[1], width);
}

/* --- events: one set, each Xid told once --- */

int nvmlEventSetCreate(nvml_events *set);
int nvmlEventSetCreate(nvml_events *set)
{
    *set = (nvml_events)(void *)gpu;
    return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(nvml_device d, unsigned long long types, nvml_events set);
int nvmlDeviceRegisterEvents(nvml_device d, unsigned long long types, nvml_events set)
{
    (void)set;
    return types == NVML_EVENT_XID && d->xid >= 0 ? NVML_SUCCESS : NVML_NOT_SUPPORTED;
}

int nvmlEventSetWait_v2(nvml_events set, struct nvml_event *event, unsigned timeout_ms);
int nvmlEventSetWait_v2(nvml_events set, struct nvml_event *event, unsigned timeout_ms)
{
    (void)set;
    (void)timeout_ms;
    for (int i = 0; i < gpus; i++)
        if (gpu[i].xid > 0 && !gpu[i].said_xid) {
            gpu[i].said_xid = true;
            *event = (struct nvml_event){
                .device = &gpu[i], .type = NVML_EVENT_XID, .data = (unsigned long long)gpu[i].xid};
            return NVML_SUCCESS;
        }
    return NVML_TIMEOUT;
}

int nvmlEventSetFree(nvml_events set);
int nvmlEventSetFree(nvml_events set)
{
    (void)set;
    return NVML_SUCCESS;
}
