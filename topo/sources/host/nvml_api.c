/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/host/nvml_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels/libraries.h"
#include "topo/sources/host/nvml.h"

#define NEEDED(member, symbol, takes) {#symbol, offsetof(struct nvml_api, member), LIBRARY_NEEDED},
#define OPTIONAL(member, symbol, takes)                                                            \
    {#symbol, offsetof(struct nvml_api, member), LIBRARY_OPTIONAL},
static const struct library_call calls[] = {NVML_NEEDED(NEEDED) NVML_OPTIONAL(OPTIONAL)
                                                OPTIONAL(error, nvmlErrorString, )};

int nvml_api_open(struct nvml_api *a, struct err *err)
{
    struct library_found found;
    int rc;

    memset(a, 0, sizeof(*a));
    a->library = libraries_open(LIBRARY_NVML, 0, &found, err);
    if (!a->library)
        return -1;
    rc = library_resolve(a, a->library, calls, sizeof(calls) / sizeof(*calls), LIBRARY_OPTIONAL,
                         found.file, err);
    if (rc < 0)
        err_wrap(err, "a driver older than R450");
    if (rc == 0) {
        int result = a->init();
        if (result != NVML_SUCCESS)
            rc = err_config(err, "%s: nvmlInit: %s", found.file,
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

/* --- masks and numbers in words (source: nvml.h) --- */

static void add_word(char *text, size_t len, const char *word)
{
    size_t at = strlen(text);

    if (at < len)
        snprintf(text + at, len - at, "%s%s", at ? ", " : "", word);
}

/* Fields of fabricInfo.healthMask; NULL: a healthy value. */
static const struct {
    int shift, width;
    const char *bad[9];
} health[] = {
    {0, 3, {NULL, "bandwidth degraded"}},
    {2, 3, {NULL, "route recovery in progress"}},
    {4, 3, {NULL, "route unhealthy"}},
    {6, 3, {NULL, "access timeout recovery in progress"}},
    {8,
     15,
     {NULL, NULL, "wrong system GUID", "wrong chassis serial number", "no partition",
      "too few NVLinks", "incompatible GPU firmware", "invalid location", "GPU state invalid"}},
    {12, 3, {NULL, NULL, "no partition assigned"}},
    /* newer than NVML 610; open-gpu-kernel-modules: NVLINK_INBAND_FABRIC_HEALTH_MASK_GFM_STATE */
    {14, 3, {NULL, NULL, "fabric manager disconnected"}},
};

void nvml_health_words(long long mask, char *text, size_t len, int *told)
{
    if (len)
        *text = '\0';
    *told = 0;
    for (size_t i = 0; mask > 0 && i < sizeof(health) / sizeof(*health); i++) {
        int value = (int)(mask >> health[i].shift) & health[i].width;
        *told += value != 0;
        if (value > 8)
            add_word(text, len, "incorrect configuration of an unknown kind");
        else if (health[i].bad[value])
            add_word(text, len, health[i].bad[value]);
    }
}

/* Only reasons that are faults.  Idle, clocks set by the user, power capping by software,
 * synchronized boost and display clocks are normal. */
static const struct {
    long long bit;
    const char *word;
} throttle[] = {
    {0x20, "software thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "hardware power brake"},
};
enum { HW_SLOWDOWN = 0x08, HW_REASONS = 0xc0 };

void nvml_throttle_words(long long mask, char *text, size_t len)
{
    if (len)
        *text = '\0';
    if (mask <= 0)
        return;
    for (size_t i = 0; i < sizeof(throttle) / sizeof(*throttle); i++)
        if (mask & throttle[i].bit)
            add_word(text, len, throttle[i].word);
    if ((mask & HW_SLOWDOWN) && !(mask & HW_REASONS))
        add_word(text, len, "hardware slowdown");
}

const char *nvml_result_word(int status)
{
    static const struct {
        int status;
        const char *word;
    } results[] = {{0, "success"},
                   {1, "not initialized"},
                   {2, "invalid argument"},
                   {3, "not supported"},
                   {4, "no permission"},
                   {6, "not found"},
                   {9, "driver not loaded"},
                   {10, "timeout"},
                   {15, "GPU is lost"},
                   {16, "GPU needs a reset"},
                   {17, "blocked by the operating system"},
                   {18, "driver and library do not match"},
                   {19, "in use"},
                   {20, "out of memory"},
                   {21, "no data"},
                   {23, "insufficient resources"},
                   {27, "not ready"},
                   {29, "invalid state"},
                   {999, "unknown error"}};

    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
        if (results[i].status == status)
            return results[i].word;
    return "an error without a name here";
}

const char *nvml_recovery_word(int action)
{
    static const char *const words[] = {"",
                                        "reset the GPU",
                                        "reboot the host",
                                        "drain peer-to-peer traffic",
                                        "drain peer-to-peer traffic and reset the GPU",
                                        "recover the IMEX domain",
                                        "reset the GPU's PCIe bus",
                                        "reboot the system"};

    if (action <= 0)
        return "";
    return action < (int)(sizeof(words) / sizeof(*words)) ? words[action] : "recover";
}

static long long grown(long long before, long long after)
{
    return before >= 0 && after > before ? after - before : 0;
}

bool nvml_harm(const struct nvml_counts *before, const struct nvml_counts *after, char *text,
               size_t len)
{
    const struct {
        long long by;
        const char *what;
    } counts[] = {
        {grown(before->link_errors, after->link_errors), "NVLink errors"},
        {grown(before->pcie_replays, after->pcie_replays), "PCIe replays"},
        {grown(before->ecc_uncorrected, after->ecc_uncorrected), "uncorrected memory errors"}};
    long long mask =
        (before->throttle > 0 ? before->throttle : 0) | (after->throttle > 0 ? after->throttle : 0);
    char one[48];

    for (size_t i = 0; i < sizeof(throttle) / sizeof(*throttle); i++)
        if (grown(before->slow_ns[i], after->slow_ns[i]))
            mask |= throttle[i].bit;
    nvml_throttle_words(mask, text, len);
    if (after->xid) {
        snprintf(one, sizeof(one), "Xid %d", after->xid);
        add_word(text, len, one);
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        if (counts[i].by) {
            snprintf(one, sizeof(one), "%lld %s", counts[i].by, counts[i].what);
            add_word(text, len, one);
        }
    return *text != '\0';
}
