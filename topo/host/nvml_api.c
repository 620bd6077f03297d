/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/host/nvml_api.h"

#include <dlfcn.h>
#include <string.h>

#include "base/library.h"

#define CALL(symbol, member, since)                                                                \
    {                                                                                              \
#symbol, offsetof(struct nvml_api, member), since                                          \
    }
enum { NEEDED = LIBRARY_NEEDED, OPTIONAL = LIBRARY_OPTIONAL };

static const struct library_call calls[] = {
    CALL(nvmlInit_v2, init, NEEDED),
    CALL(nvmlShutdown, shutdown, NEEDED),
    CALL(nvmlDeviceGetCount_v2, count, NEEDED),
    CALL(nvmlDeviceGetHandleByIndex_v2, device, NEEDED),
    CALL(nvmlDeviceGetPciInfo_v3, pci, NEEDED),
    CALL(nvmlDeviceGetName, name, NEEDED),
    CALL(nvmlErrorString, error, OPTIONAL),
    CALL(nvmlSystemGetDriverVersion, driver, OPTIONAL),
    CALL(nvmlDeviceGetUUID, uuid, OPTIONAL),
    CALL(nvmlDeviceGetModuleId, module, OPTIONAL),
    CALL(nvmlDeviceGetNvLinkState, link_state, OPTIONAL),
    CALL(nvmlDeviceGetNvLinkRemoteDeviceType, link_end, OPTIONAL),
    CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, link_pci, OPTIONAL),
    CALL(nvmlDeviceGetTopologyCommonAncestor, ancestor, OPTIONAL),
    CALL(nvmlDeviceGetGpuFabricInfoV, fabric_v, OPTIONAL),
    CALL(nvmlDeviceGetGpuFabricInfo, fabric_v1, OPTIONAL),
    CALL(nvmlDeviceGetPlatformInfo, platform, OPTIONAL),
    CALL(nvmlDeviceGetFieldValues, fields, OPTIONAL),
    CALL(nvmlDeviceGetClockInfo, clock, OPTIONAL),
    CALL(nvmlDeviceGetMaxClockInfo, clock_max, OPTIONAL),
    CALL(nvmlDeviceGetCurrentClocksEventReasons, throttle, OPTIONAL),
    CALL(nvmlDeviceGetCurrentClocksThrottleReasons, throttle_old, OPTIONAL),
    CALL(nvmlDeviceGetTotalEccErrors, ecc, OPTIONAL),
    CALL(nvmlDeviceGetRetiredPages, retired, OPTIONAL),
    CALL(nvmlDeviceGetRemappedRows, remapped, OPTIONAL),
    CALL(nvmlDeviceGetPcieReplayCounter, replays, OPTIONAL),
    CALL(nvmlDeviceGetCurrPcieLinkGeneration, gen, OPTIONAL),
    CALL(nvmlDeviceGetMaxPcieLinkGeneration, gen_max, OPTIONAL),
    CALL(nvmlDeviceGetCurrPcieLinkWidth, width, OPTIONAL),
    CALL(nvmlDeviceGetMaxPcieLinkWidth, width_max, OPTIONAL),
    CALL(nvmlEventSetCreate, events_create, OPTIONAL),
    CALL(nvmlDeviceRegisterEvents, events_register, OPTIONAL),
    CALL(nvmlEventSetWait_v2, events_wait, OPTIONAL),
    CALL(nvmlEventSetFree, events_free, OPTIONAL),
};

int nvml_api_open(struct nvml_api *a, const char *path, struct err *err)
{
    const char *const names[] = {path ? path : "libnvidia-ml.so.1", NULL};
    int rc;

    memset(a, 0, sizeof(*a));
    a->library = library_open(names, NULL, &path, err);
    if (!a->library)
        return -1;
    rc = library_resolve(a, a->library, calls, sizeof(calls) / sizeof(*calls), OPTIONAL, path, err);
    if (rc < 0)
        err_wrap(err, "a driver older than R450");
    if (rc == 0) {
        int result = a->init();
        if (result != NVML_SUCCESS)
            rc = err_config(err, "%s: nvmlInit: %s", path,
                            a->error ? a->error(result) : "no reason told");
    }
    if (rc < 0) {
        dlclose(a->library);
        memset(a, 0, sizeof(*a));
    }
    return rc;
}

void nvml_api_close(struct nvml_api *a)
{
    if (!a->library)
        return;
    a->shutdown();
    dlclose(a->library);
    memset(a, 0, sizeof(*a));
}
