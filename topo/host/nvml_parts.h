/* nvml_parts.h - what the parts of nvml*.c share; nobody else includes it. */
#ifndef RG_NVML_PARTS_H
#define RG_NVML_PARTS_H

#include "topo/host/gpu.h"
#include "topo/host/nvml.h"
#include "topo/host/nvml_api.h"

enum { LINK_FIELDS = 6, SLOW_FIELDS = 3 };
enum { ECC_CORRECTED, ECC_UNCORRECTED };

struct nvml_gpu {
    nvml_device handle; /* NULL: lost */
    int lost;           /* the library's reason */
    char busid[16];
    /* What nvml_look() asks: the time fields, then those of links; -1: not yet chosen. */
    struct nvml_field ask[SLOW_FIELDS + GPU_LINKS * LINK_FIELDS];
    int asks;
};

struct nvml {
    struct nvml_api api;
    struct nvml_gpu *device;
    int devices;
    char driver[32];
    nvml_events events; /* NULL: not told */
};

void nvml_busid(char to[16], const struct nvml_pci *pci);
/* One call each: the number, or -1 where it is not told. */
int nvml_number(int (*call)(nvml_device d, unsigned *value), nvml_device d);
long long nvml_ecc(const struct nvml_api *a, nvml_device d, int kind);
long long nvml_field_of(const struct nvml_api *a, nvml_device d, unsigned id);
/* Fields asked at once: each has its own result; -1 when the call itself fails. */
int nvml_ask(const struct nvml_api *a, nvml_device d, struct nvml_field *f, int n);
long long nvml_value(const struct nvml_field *f);
/* NVLinks with their ends, and the paths to the other GPUs of the host. */
void nvml_read_links(const struct nvml_api *a, nvml_device d, struct gpu *g);
void nvml_read_paths(const struct nvml *n, int i, struct gpu *g);

#endif
