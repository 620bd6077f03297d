/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the facts in nvml_api.h those of the nvml.h that is installed here?  The compiler decides
 * while it builds this file; without the header (cuda-nvml-dev) or with an old one there is nothing
 * to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#if defined(__has_include)
#if __has_include(<nvml.h>)
#include <nvml.h>
#endif
#endif

#define NVML_SUCCESS OUR_NVML_SUCCESS
#include "topo/sources/host/nvml_api.h"
#undef NVML_SUCCESS

#if defined(nvmlGpuFabricInfo_v3) && defined(nvmlPlatformInfo_v2)

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
SAME(OUR_NVML_SUCCESS, NVML_SUCCESS);
SAME(NVML_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME(NVML_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME(NVML_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME(NVML_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME(NVML_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME(NVML_FIELD_LINK_SPEED_ALL, NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON);
SAME(NVML_FIELD_LINK_REPLAY, NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY);
SAME(NVML_FIELD_LINK_RECOVERY, NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY);
SAME(NVML_FIELD_LINK_CRC, NVML_FI_DEV_NVLINK_ERROR_DL_CRC);
SAME(NVML_FIELD_LINK_SPEED, NVML_FI_DEV_NVLINK_GET_SPEED);
SAME(NVML_FIELD_LINK_RECEIVE_ERRORS, NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS);
SAME(NVML_FIELD_LINK_INTEGRITY_ERRORS, NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS);
SAME(NVML_FIELD_LINK_RECOVERIES, NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS);
SAME(NVML_FIELD_GPU_RECOVERY, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION);
SAME(NVML_FIELD_SW_THERMAL_NS, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN);
SAME(NVML_FIELD_HW_THERMAL_NS, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN);
SAME(NVML_FIELD_POWER_BRAKE_NS, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN);
SAME(NVML_EVENT_XID, nvmlEventTypeXidCriticalError);
SAME(NVML_VERSIONED(struct nvml_fabric, 3), nvmlGpuFabricInfo_v3);
SAME(NVML_VERSIONED(struct nvml_fabric_v2, 2), nvmlGpuFabricInfo_v2);
SAME(NVML_VERSIONED(struct nvml_platform, 2), nvmlPlatformInfo_v2);

#define PLACE(struct_ours, ours, struct_theirs, theirs)                                            \
    SAME(offsetof(struct struct_ours, ours), offsetof(struct_theirs, theirs));                     \
    SAME(sizeof(((struct struct_ours *)0)->ours), sizeof(((struct_theirs *)0)->theirs))
PLACE(nvml_fabric, cluster, nvmlGpuFabricInfo_v3_t, clusterUuid);
PLACE(nvml_fabric, status, nvmlGpuFabricInfo_v3_t, status);
PLACE(nvml_fabric, clique, nvmlGpuFabricInfo_v3_t, cliqueId);
PLACE(nvml_fabric, state, nvmlGpuFabricInfo_v3_t, state);
PLACE(nvml_fabric, health, nvmlGpuFabricInfo_v3_t, healthMask);
PLACE(nvml_fabric, summary, nvmlGpuFabricInfo_v3_t, healthSummary);
PLACE(nvml_fabric_v2, health, nvmlGpuFabricInfo_v2_t, healthMask);
PLACE(nvml_fabric_v1, state, nvmlGpuFabricInfo_t, state);
PLACE(nvml_platform, chassis, nvmlPlatformInfo_v2_t, chassisSerialNumber);
PLACE(nvml_platform, slot, nvmlPlatformInfo_v2_t, slotNumber);
PLACE(nvml_platform, tray, nvmlPlatformInfo_v2_t, trayIndex);
PLACE(nvml_platform, node, nvmlPlatformInfo_v2_t, hostId);
PLACE(nvml_platform, module, nvmlPlatformInfo_v2_t, moduleId);
PLACE(nvml_pci, domain, nvmlPciInfo_t, domain);
PLACE(nvml_pci, bus, nvmlPciInfo_t, bus);
PLACE(nvml_pci, device, nvmlPciInfo_t, device);
PLACE(nvml_pci, busid, nvmlPciInfo_t, busId);
PLACE(nvml_field, id, nvmlFieldValue_t, fieldId);
PLACE(nvml_field, scope, nvmlFieldValue_t, scopeId);
PLACE(nvml_field, type, nvmlFieldValue_t, valueType);
PLACE(nvml_field, result, nvmlFieldValue_t, nvmlReturn);
PLACE(nvml_field, value, nvmlFieldValue_t, value);
PLACE(nvml_event, type, nvmlEventData_t, eventType);
PLACE(nvml_event, data, nvmlEventData_t, eventData);
SAME(sizeof(struct nvml_pci), sizeof(nvmlPciInfo_t));
SAME(sizeof(struct nvml_field), sizeof(nvmlFieldValue_t));
SAME(sizeof(struct nvml_event), sizeof(nvmlEventData_t));
SAME(sizeof(struct nvml_fabric_v1), sizeof(nvmlGpuFabricInfo_t));

#define CHECKED 1
#else
#define CHECKED 0
#endif

static void our_facts_are_those_of_the_header(void **state)
{
    (void)state;
    if (!CHECKED)
        skip(); /* no nvml.h of a driver from 570 on is installed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(our_facts_are_those_of_the_header)};

    return cmocka_run_group_tests_name("nvml_abi", tests, NULL, NULL);
}
