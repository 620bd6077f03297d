/* nvml_api.h - the calls of libnvidia-ml.so.1 that we use, with prototypes of our own.
 *
 * Names, numbers and layouts are facts of NVIDIA's public nvml.h (read in NVIDIA/go-nvml,
 * gen/nvml/nvml.h).  A versioned structure starts with its size | version << 24, by which the
 * library knows the caller's layout. */
#ifndef RG_NVML_API_H
#define RG_NVML_API_H

#include <stddef.h>

struct err;

typedef struct nvml_device_opaque *nvml_device;
typedef struct nvml_events_opaque *nvml_events;

enum {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_VERSION_MISMATCH = 25
};

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char busid[32]; /* "00000008:06:00.0" */
};

struct nvml_field {
    unsigned id, scope; /* scope: NVLink number for fields of links */
    long long timestamp, latency_us;
    int type;   /* 0 double, 1 unsigned, 2 unsigned long, 3 and 4 long long, 5 int */
    int result; /* result of this field alone */
    union {
        double real;
        unsigned u;
        unsigned long ul;
        unsigned long long ull;
        long long sll;
        int i;
    } value;
};

/* Field numbers. */
enum {
    NVML_FIELD_LINK_SPEED_ALL = 90, /* MB/s, active links */
    NVML_FIELD_LINK_REPLAY = 161,   /* 161..163 up to Hopper, 208..215 since Blackwell */
    NVML_FIELD_LINK_RECOVERY = 162,
    NVML_FIELD_LINK_CRC = 163,
    NVML_FIELD_LINK_SPEED = 164, /* MB/s */
    NVML_FIELD_LINK_RECEIVE_ERRORS = 208,
    NVML_FIELD_LINK_INTEGRITY_ERRORS = 211,
    NVML_FIELD_LINK_RECOVERIES = 215,
    NVML_FIELD_GPU_RECOVERY = 230,  /* action that the driver requests */
    NVML_FIELD_SW_THERMAL_NS = 269, /* time spent at lower clocks */
    NVML_FIELD_HW_THERMAL_NS = 270,
    NVML_FIELD_POWER_BRAKE_NS = 271
};

struct nvml_fabric_v1 {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

struct nvml_fabric { /* versions 2 (up to `health`) and 3 */
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
    unsigned char summary; /* version 3 */
};

struct nvml_fabric_v2 {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

struct nvml_fabric_v4 { /* a call of its own, without a version; newer than NVML 610 */
    unsigned char cluster[16];
    int status;
    struct {
        unsigned char type; /* 0: reach of unicast by pointer, the clique of older versions */
        unsigned id;
    } clique[64];
    unsigned cliques;
    unsigned char state;
    unsigned health;
    unsigned char summary;
};

struct nvml_platform { /* version 1 calls the chassis "rack GUID"; the layout is the same */
    unsigned version;
    unsigned char ib_guid[16], chassis[16];
    unsigned char slot, tray, node, peer_type, module;
};

struct nvml_event {
    nvml_device device;
    unsigned long long type, data; /* data: the Xid */
    unsigned gpu_instance, compute_instance;
};
#define NVML_EVENT_XID 8ULL

#define NVML_VERSIONED(type, v) ((unsigned)sizeof(type) | (unsigned)(v) << 24)

/* Functions: member of struct nvml_api, symbol, parameters; all return a result code.  Optional
 * members are NULL if the library lacks the function. */
#define NVML_NEEDED(CALL)                                                                          \
    CALL(init, nvmlInit_v2, (void))                                                                \
    CALL(shutdown, nvmlShutdown, (void))                                                           \
    CALL(count, nvmlDeviceGetCount_v2, (unsigned *n))                                              \
    CALL(device, nvmlDeviceGetHandleByIndex_v2, (unsigned i, nvml_device *d))                      \
    CALL(pci, nvmlDeviceGetPciInfo_v3, (nvml_device d, struct nvml_pci * pci))                     \
    CALL(name, nvmlDeviceGetName, (nvml_device d, char *name, unsigned len))
#define NVML_OPTIONAL(CALL)                                                                        \
    CALL(driver, nvmlSystemGetDriverVersion, (char *version, unsigned len))                        \
    CALL(uuid, nvmlDeviceGetUUID, (nvml_device d, char *uuid, unsigned len))                       \
    CALL(module, nvmlDeviceGetModuleId, (nvml_device d, unsigned *id))                             \
    CALL(link_state, nvmlDeviceGetNvLinkState, (nvml_device d, unsigned link, int *active))        \
    CALL(link_end, nvmlDeviceGetNvLinkRemoteDeviceType, (nvml_device d, unsigned link, int *kind)) \
    CALL(link_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2,                                            \
         (nvml_device d, unsigned link, struct nvml_pci *pci))                                     \
    CALL(ancestor, nvmlDeviceGetTopologyCommonAncestor,                                            \
         (nvml_device a, nvml_device b, int *level))                                               \
    CALL(fabric_v, nvmlDeviceGetGpuFabricInfoV, (nvml_device d, void *fabric))                     \
    CALL(fabric_v4, nvmlDeviceGetGpuFabricInfo_v4,                                                 \
         (nvml_device d, struct nvml_fabric_v4 * fabric))                                          \
    CALL(mig, nvmlDeviceGetMigMode, (nvml_device d, unsigned *current, unsigned *pending))         \
    CALL(fabric_v1, nvmlDeviceGetGpuFabricInfo, (nvml_device d, struct nvml_fabric_v1 * fabric))   \
    CALL(platform, nvmlDeviceGetPlatformInfo, (nvml_device d, struct nvml_platform * platform))    \
    CALL(fields, nvmlDeviceGetFieldValues, (nvml_device d, int n, struct nvml_field *fields))      \
    CALL(clock, nvmlDeviceGetClockInfo, (nvml_device d, int clock, unsigned *MHz))                 \
    CALL(clock_max, nvmlDeviceGetMaxClockInfo, (nvml_device d, int clock, unsigned *MHz))          \
    CALL(throttle, nvmlDeviceGetCurrentClocksEventReasons,                                         \
         (nvml_device d, unsigned long long *reasons))                                             \
    CALL(throttle_old, nvmlDeviceGetCurrentClocksThrottleReasons,                                  \
         (nvml_device d, unsigned long long *reasons))                                             \
    CALL(ecc, nvmlDeviceGetTotalEccErrors,                                                         \
         (nvml_device d, int kind, int counter, unsigned long long *count))                        \
    CALL(retired, nvmlDeviceGetRetiredPages,                                                       \
         (nvml_device d, int cause, unsigned *count, unsigned long long *pages))                   \
    CALL(remapped, nvmlDeviceGetRemappedRows,                                                      \
         (nvml_device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,            \
          unsigned *failed))                                                                       \
    CALL(replays, nvmlDeviceGetPcieReplayCounter, (nvml_device d, unsigned *count))                \
    CALL(gen, nvmlDeviceGetCurrPcieLinkGeneration, (nvml_device d, unsigned *gen))                 \
    CALL(gen_max, nvmlDeviceGetMaxPcieLinkGeneration, (nvml_device d, unsigned *gen))              \
    CALL(width, nvmlDeviceGetCurrPcieLinkWidth, (nvml_device d, unsigned *width))                  \
    CALL(width_max, nvmlDeviceGetMaxPcieLinkWidth, (nvml_device d, unsigned *width))               \
    CALL(events_create, nvmlEventSetCreate, (nvml_events * set))                                   \
    CALL(events_register, nvmlDeviceRegisterEvents,                                                \
         (nvml_device d, unsigned long long types, nvml_events set))                               \
    CALL(events_wait, nvmlEventSetWait_v2,                                                         \
         (nvml_events set, struct nvml_event * event, unsigned timeout_ms))                        \
    CALL(events_free, nvmlEventSetFree, (nvml_events set))
#define NVML_MEMBER(member, symbol, takes) int(*member) takes;
struct nvml_api {
    NVML_NEEDED(NVML_MEMBER)
    NVML_OPTIONAL(NVML_MEMBER)
    const char *(*error)(int result); /* optional too */
    void *library;
};

/* Load (libraries.h) and start the library.  EXIT_CONFIG, with the loader's or the library's
 * message: missing, incomplete, or does not start. */
int nvml_api_open(struct nvml_api *a, struct err *err);
void nvml_api_close(struct nvml_api *a);

#endif
