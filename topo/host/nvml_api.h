/* nvml_api.h - the part of libnvidia-ml.so.1 that we call, with our own prototypes.
 *
 * Names, numbers and layouts are facts of NVIDIA's public nvml.h (read in NVIDIA/go-nvml,
 * gen/nvml/nvml.h).  A versioned structure starts with its size | version << 24, which tells the
 * library what the caller was built for. */
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
    unsigned id, scope; /* scope: number of the NVLink where the field is of one */
    long long timestamp, latency_us;
    int type;   /* 0 double, 1 unsigned, 2 unsigned long, 3 and 4 long long, 5 int */
    int result; /* of this field alone */
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
    NVML_FIELD_LINK_SPEED_ALL = 90, /* MB/s, of active links */
    NVML_FIELD_LINK_REPLAY = 161,   /* 161..163 up to Hopper, 208..215 from Blackwell on */
    NVML_FIELD_LINK_RECOVERY = 162,
    NVML_FIELD_LINK_CRC = 163,
    NVML_FIELD_LINK_SPEED = 164, /* MB/s */
    NVML_FIELD_LINK_RECEIVE_ERRORS = 208,
    NVML_FIELD_LINK_INTEGRITY_ERRORS = 211,
    NVML_FIELD_LINK_RECOVERIES = 215,
    NVML_FIELD_GPU_RECOVERY = 230,  /* what the driver asks for */
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

/* The functions; a member is NULL where the library does not have it, but the first six are there.
 */
struct nvml_api {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*device)(unsigned i, nvml_device *d);
    int (*pci)(nvml_device d, struct nvml_pci *pci);
    int (*name)(nvml_device d, char *name, unsigned len);
    /* --- optional --- */
    const char *(*error)(int result);
    int (*driver)(char *version, unsigned len);
    int (*uuid)(nvml_device d, char *uuid, unsigned len);
    int (*module)(nvml_device d, unsigned *id);
    int (*link_state)(nvml_device d, unsigned link, int *active);
    int (*link_end)(nvml_device d, unsigned link, int *kind);
    int (*link_pci)(nvml_device d, unsigned link, struct nvml_pci *pci);
    int (*ancestor)(nvml_device a, nvml_device b, int *level);
    int (*fabric_v)(nvml_device d, void *fabric);
    int (*fabric_v1)(nvml_device d, struct nvml_fabric_v1 *fabric);
    int (*platform)(nvml_device d, struct nvml_platform *platform);
    int (*fields)(nvml_device d, int n, struct nvml_field *fields);
    int (*clock)(nvml_device d, int clock, unsigned *MHz);
    int (*clock_max)(nvml_device d, int clock, unsigned *MHz);
    int (*throttle)(nvml_device d, unsigned long long *reasons);
    int (*throttle_old)(nvml_device d, unsigned long long *reasons);
    int (*ecc)(nvml_device d, int kind, int counter, unsigned long long *count);
    int (*retired)(nvml_device d, int cause, unsigned *count, unsigned long long *pages);
    int (*remapped)(nvml_device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                    unsigned *failed);
    int (*replays)(nvml_device d, unsigned *count);
    int (*gen)(nvml_device d, unsigned *gen);
    int (*gen_max)(nvml_device d, unsigned *gen);
    int (*width)(nvml_device d, unsigned *width);
    int (*width_max)(nvml_device d, unsigned *width);
    int (*events_create)(nvml_events *set);
    int (*events_register)(nvml_device d, unsigned long long types, nvml_events set);
    int (*events_wait)(nvml_events set, struct nvml_event *event, unsigned timeout_ms);
    int (*events_free)(nvml_events set);
    void *library;
};

/* Load and start the library; path NULL is "libnvidia-ml.so.1".  EXIT_CONFIG: it is not there, not
 * complete, or does not start, with the loader's or its own words. */
int nvml_api_open(struct nvml_api *a, const char *path, struct err *err);
void nvml_api_close(struct nvml_api *a);

#endif
