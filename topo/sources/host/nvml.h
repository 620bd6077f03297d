/* nvml.h - facts about this host's GPUs from the NVIDIA driver's management library.
 *
 * libnvidia-ml.so.1 is loaded at run time; RAILGAUGE_NVML names another file, which is then used
 * even for a recorded machine.  Every call of the library may fail by itself; facts that a driver
 * or GPU does not report stay "unknown". */
#ifndef RG_NVML_H
#define RG_NVML_H

#include <stdbool.h>

#include "base/err.h"
#include "topo/topo.h"

struct nvml;

/* EXIT_CONFIG: no library, or it does not start; EXIT_NOINPUT if RAILGAUGE_NVML names it. */
int nvml_open(struct nvml **out, struct err *err);
void nvml_close(struct nvml *n); /* NULL is allowed */
int nvml_count(const struct nvml *n);
/* Read GPU i in the library's order, except host and the facts about IMEX.  EXIT_IO: no
 * answer.  A GPU that is lost has no other fact, see gpu_is_lost(). */
int nvml_read(struct nvml *n, int i, struct gpu *out, struct err *err);
int nvml_find(struct nvml *n, const char *busid); /* index, or -1 */

/* --- before and after a measurement --- */
struct nvml_counts {    /* -1: unknown */
    long long throttle; /* reasons at this moment */
    /* Time at lower clocks, ns: software thermal, hardware thermal, power brake. */
    long long slow_ns[3];
    long long ecc_uncorrected, pcie_replays, link_errors;
    int xid; /* critical error since the last nvml_look(); 0: none */
};
/* Let nvml_look() also report Xids of this GPU, and of no other GPU of `n`. */
void nvml_watch(struct nvml *n, int i);
/* Read the counters; after the first call only supported ones: a few calls, fields of each link. */
void nvml_look(struct nvml *n, int i, struct nvml_counts *out);
/* Events between two readings of one GPU that disturb a measurement: "hardware thermal slowdown, 3
 * NVLink errors"; false and "" if there are none. */
bool nvml_harm(const struct nvml_counts *before, const struct nvml_counts *after, char *text,
               size_t len);

/* --- words for codes; one table each --- */
/* Bad fields of a health mask: "bandwidth degraded, route unhealthy"; "" if none.  A field of 0 is
 * not supported, which is no proof of health: *told counts the others. */
void nvml_health_words(long long mask, char *text, size_t len, int *told);
/* Words for the reasons that slow the GPU down; others are left out. */
void nvml_throttle_words(long long mask, char *text, size_t len);
const char *nvml_result_word(int status);   /* "insufficient resources" */
const char *nvml_recovery_word(int action); /* "reset the GPU"; "" for 0 and unknown */

#endif
