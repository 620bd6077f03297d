/* nvml.h - what the NVIDIA driver's management library tells of this host's GPUs.
 *
 * libnvidia-ml.so.1 is loaded at run time; RAILGAUGE_NVML names another file, which is then asked
 * even where a recorded machine is read.  What a driver or a GPU does not tell stays "not told":
 * every call of the library may fail by itself. */
#ifndef RG_NVML_H
#define RG_NVML_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/topo.h"

struct nvml;

/* EXIT_CONFIG: no library, or it does not start; EXIT_NOINPUT when RAILGAUGE_NVML names it. */
int nvml_open(struct nvml **out, struct err *err);
void nvml_close(struct nvml *n); /* NULL is fine */
int nvml_count(const struct nvml *n);
/* GPU i in the library's order; host and the facts about IMEX are the caller's.  EXIT_IO: lost. */
int nvml_read(struct nvml *n, int i, struct gpu *out, struct err *err);
int nvml_find(struct nvml *n, const char *busid); /* index or -1 */

/* --- before and after a measurement --- */
struct nvml_counts {    /* -1: not told */
    long long throttle; /* reasons at this moment */
    long long
        slow_ns[3]; /* time at lower clocks: software thermal, hardware thermal, power brake */
    long long ecc_uncorrected, pcie_replays, link_errors;
    int xid; /* of a critical error since the last look; 0: none */
};
/* From now on nvml_look() at this GPU, and at no other of `n`, also hears of Xids. */
void nvml_watch(struct nvml *n, int i);
/* Only what the GPU supports is asked after the first time: a few calls, and fields of each link.
 */
void nvml_look(struct nvml *n, int i, struct nvml_counts *out);
/* What happened between two looks at one GPU that a measurement in between suffers from: "hardware
 * thermal slowdown, 3 NVLink errors"; false and "" when nothing did. */
bool nvml_harm(const struct nvml_counts *before, const struct nvml_counts *after, char *text,
               size_t len);

/* --- words; each in its own table --- */
/* Of a health mask: what is bad, "bandwidth degraded, route unhealthy"; "" when no field says so. A
 * field that is 0 is not supported, which is not good news either: *told counts the others. */
void nvml_health_words(long long mask, char *text, size_t len, int *told);
void nvml_throttle_words(long long mask, char *text, size_t len); /* only reasons that slow down */
const char *nvml_result_word(int status);                         /* "insufficient resources" */
const char *nvml_recovery_word(int action); /* "reset the GPU"; "" for 0 and not told */

#endif
