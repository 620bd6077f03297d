/* SPDX-License-Identifier: BSD-3-Clause */
/* smi_xml.c - reader of `nvidia-smi -q -x`: one element <gpu> per GPU, in NVML's order.  Values
 * are words with units ("1830 MHz", "16x"); "N/A" and sentences ("Requested functionality has been
 * deprecated") mean unknown.  Words are converted to NVML's numbers (nvml.h), so that one verdict
 * serves both.  Elements and the words of healthy GPUs are those of recordings of drivers 570 to
 * 595 (NVIDIA/k8s-test-infra, tests/e2e/go/assertions/nvidiasmi/testdata/hardware); the numbers
 * are NVML's (docs.nvidia.com/deploy/nvml-api: group nvmlFabricDefs,
 * nvmlDeviceGpuRecoveryAction_t).  Faults that no recording shows are recognised by the words of
 * their names, with any separator. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/gpu.h"
#include "topo/sources/host/host_devices_impl.h"
#include "topo/sources/sources.h"
#include "topo/xml.h"

enum { DEPTHS = 16, ELEMENTS = 1 << 20, NAME = 64 };

struct reader {
    struct topo *t;
    int host;
    char open[DEPTHS][NAME]; /* names of open elements, indexed by depth - 1 */
    char driver[32];
    struct gpu gpu; /* GPU being read */
    int gpus;
    int lost;  /* GPU_LOST or GPU_TO_RESET: what it answers instead of a value; 0: it answers */
    int split; /* number of such GPUs */
};

/* --- words --- */

struct word {
    const char *part; /* part of the text, in any case */
    int number;
};

/* Number of the first entry contained in the text; other: none is. */
static int find_word(const struct word *w, const char *text, int other)
{
    for (; w->part; w++)
        if (strcasestr(text, w->part))
            return w->number;
    return other;
}

static const struct word state_words[] = {{"Completed", FABRIC_COMPLETED},
                                          {"In Progress", FABRIC_IN_PROGRESS},
                                          {"Not Started", FABRIC_NOT_STARTED},
                                          {"Not Supported", FABRIC_NONE},
                                          {NULL, 0}};
static const struct word status_words[] = {{"Success", 0},
                                           {"Not Supported", 3},
                                           {"Insufficient Permissions", 4},
                                           {"Not Found", 6},
                                           {"Timeout", 10},
                                           {"GPU is lost", 15},
                                           {"reset", 16},
                                           {"Operating System", 17},
                                           {"mismatch", 18},
                                           {"In use", 19},
                                           {"Insufficient Memory", 20},
                                           {"No data", 21},
                                           {"Insufficient Res", 23},
                                           {"Not Ready", 27},
                                           {"Invalid State", 29},
                                           {"Invalid", 2},
                                           {NULL, 0}};
static const struct word summary_words[] = {
    {"Unhealthy", 2}, {"Healthy", 1}, {"Limited", 3}, {"Not Supported", 0}, {NULL, 0}};
static const struct word configuration_words[] = {
    {"None", 1},    {"False", 1},     {"SysGUID", 2}, {"System GUID", 2},
    {"Chassis", 3}, {"Partition", 4}, {"NVLinks", 5}, {"firmware", 6},
    {"FW", 6},      {"Location", 7},  {"State", 8},   {NULL, 0}};
/* Both spellings occur: "Drain and Reset", "GPU_RESET". */
static const struct word recovery_words[] = {
    {"None", 0},   {"IMEX", 5},   {"and Reset", 4}, {"and_Reset", 4}, {"Drain", 3},
    {"System", 7}, {"Reboot", 2}, {"Bus", 6},       {"Reset", 1},     {NULL, 0}};
/* Two-bit fields: 1 means true, which is bad; 0 would be "not supported". */
static const struct word bad_words[] = {
    {"Degraded", 1}, {"True", 1}, {"Full", 2}, {"False", 2}, {NULL, 0}};
/* partition_assigned: 2 means that there is none. */
static const struct word good_words[] = {{"True", 1}, {"False", 2}, {NULL, 0}};

static const struct {
    const char *name;
    int shift;
    const struct word *words;
} health[] = {{"bandwidth", 0, bad_words},
              {"route_recovery_in_progress", 2, bad_words},
              {"route_unhealthy", 4, bad_words},
              {"access_timeout_recovery", 6, bad_words},
              {"incorrect_configuration", 8, configuration_words},
              {"partition_assigned", 12, good_words}};

/* Names after "clocks_event_reason_" or, before release 530, "clocks_throttle_reason_". */
static const struct {
    const char *name;
    long long bit;
} reason[] = {{"gpu_idle", 0x1},
              {"applications_clocks_setting", 0x2},
              {"sw_power_cap", 0x4},
              {"hw_slowdown", 0x8},
              {"sync_boost", 0x10},
              {"sw_thermal_slowdown", 0x20},
              {"hw_thermal_slowdown", 0x40},
              {"hw_power_brake_slowdown", 0x80},
              {"display_clocks_setting", 0x100}};

/* --- values by their element and its parent --- */

enum cell { TEXT, NUMBER, SUM, WORD };

#define VALUE(cell, parent, name, member) parent, name, cell, offsetof(struct gpu, member)
#define TEXT_OF(member) sizeof(((struct gpu *)0)->member), NULL, 0
static const struct {
    const char *parent, *name; /* parent "": any */
    enum cell cell;
    size_t at;
    int size; /* TEXT: bytes; NUMBER: largest */
    const struct word *words;
    int other; /* WORD: number of any other text */
} value[] = {
    {VALUE(TEXT, "gpu", "product_name", model), TEXT_OF(model)},
    {VALUE(TEXT, "gpu", "uuid", uuid), TEXT_OF(uuid)},
    {VALUE(WORD, "gpu", "gpu_recovery_action", recovery), 0, recovery_words, 255},
    {VALUE(TEXT, "", "chassis_serial_number", chassis), TEXT_OF(chassis)},
    {VALUE(NUMBER, "", "slot_number", slot), 255, NULL, 0},
    {VALUE(NUMBER, "", "tray_index", tray), 255, NULL, 0},
    {VALUE(NUMBER, "", "host_id", node), 255, NULL, 0},
    {VALUE(NUMBER, "", "module_id", module), 65535, NULL, 0},
    {VALUE(NUMBER, "pcie_gen", "max_link_gen", pcie_gen_max), 255, NULL, 0},
    {VALUE(NUMBER, "pcie_gen", "current_link_gen", pcie_gen), 255, NULL, 0},
    {VALUE(NUMBER, "link_widths", "max_link_width", pcie_width_max), 255, NULL, 0},
    {VALUE(NUMBER, "link_widths", "current_link_width", pcie_width), 255, NULL, 0},
    {VALUE(SUM, "pci", "replay_counter", pcie_replays), 0, NULL, 0},
    {VALUE(NUMBER, "clocks", "sm_clock", sm_MHz), 99999, NULL, 0},
    {VALUE(NUMBER, "max_clocks", "sm_clock", sm_MHz_max), 99999, NULL, 0},
    {VALUE(WORD, "fabric", "state", state), 0, state_words, -1},
    {VALUE(WORD, "fabric", "status", status), 0, status_words, 999},
    {VALUE(SUM, "fabric", "cliqueId", clique), 0, NULL, 0},
    {VALUE(TEXT, "fabric", "clusterUuid", cluster), TEXT_OF(cluster)},
    {VALUE(WORD, "health", "summary", summary), 0, summary_words, -1},
    {VALUE(SUM, "volatile", "sram_correctable", ecc_corrected), 0, NULL, 0},
    {VALUE(SUM, "volatile", "dram_correctable", ecc_corrected), 0, NULL, 0},
    {VALUE(SUM, "volatile", "sram_uncorrectable", ecc_uncorrected), 0, NULL, 0},
    {VALUE(SUM, "volatile", "sram_uncorrectable_parity", ecc_uncorrected), 0, NULL, 0},
    {VALUE(SUM, "volatile", "sram_uncorrectable_secded", ecc_uncorrected), 0, NULL, 0},
    {VALUE(SUM, "volatile", "dram_uncorrectable", ecc_uncorrected), 0, NULL, 0},
    {VALUE(SUM, "multiple_single_bit_retirement", "retired_count", retired_pages), 0, NULL, 0},
    {VALUE(SUM, "double_bit_retirement", "retired_count", retired_pages), 0, NULL, 0},
    {VALUE(SUM, "remapped_rows", "remapped_row_corr", remapped_rows), 0, NULL, 0},
    {VALUE(SUM, "remapped_rows", "remapped_row_unc", remapped_rows), 0, NULL, 0},
};

/* Whole number with or without a unit; -1: not a number ("N/A"). */
static long long number(struct xml *x, const char *name, const char *text, long long max)
{
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text)
        return -1;
    if (errno || v < 0 || v > max || (*end && *end != ' ' && strcmp(end, "x") != 0)) {
        xml_bad(x, "%s is \"%.40s\", not a number from 0 to %lld", name, text, max);
        return -1;
    }
    return v;
}

/* Texts of nvmlErrorString() that stand in place of any value, "[GPU is lost]" in some. */
static int is_lost(const char *text)
{
    return strstr(text, "GPU is lost")          ? GPU_LOST
           : strstr(text, "GPU requires reset") ? GPU_TO_RESET
                                                : 0;
}

static bool told(const char *text)
{
    return *text && strcmp(text, "N/A") != 0 && strncmp(text, "Requested functionality", 23) != 0 &&
           !strstr(text, "Unknown Error") && !is_lost(text);
}

static void set_value(struct xml *x, struct gpu *g, size_t i, const char *text)
{
    char *at = (char *)g + value[i].at;
    long long sum;
    int n;

    switch (value[i].cell) {
    case TEXT:
        xml_keep(at, (size_t)value[i].size, text);
        break;
    case NUMBER:
        n = (int)number(x, value[i].name, text, value[i].size);
        memcpy(at, &n, sizeof(n));
        break;
    case WORD:
        n = find_word(value[i].words, text, value[i].other);
        memcpy(at, &n, sizeof(n));
        break;
    case SUM: {
        long long more = number(x, value[i].name, text, 1LL << 60);
        memcpy(&sum, at, sizeof(sum));
        if (more >= 0)
            sum = (sum < 0 ? 0 : sum) + more;
        sum = sum > 1LL << 60 ? 1LL << 60 : sum;
        memcpy(at, &sum, sizeof(sum));
        break;
    }
    }
}

static void set_health(struct gpu *g, const char *name, const char *text)
{
    for (size_t i = 0; i < sizeof(health) / sizeof(*health); i++)
        if (!strcmp(name, health[i].name))
            g->health = (g->health < 0 ? 0 : g->health) |
                        (long long)find_word(health[i].words, text,
                                             health[i].words == configuration_words ? 15 : 0)
                            << health[i].shift;
}

static void set_reason(struct gpu *g, const char *name, const char *text)
{
    const char *what = strstr(name, "_reason_");

    for (size_t i = 0; what && i < sizeof(reason) / sizeof(*reason); i++)
        if (!strcmp(what + 8, reason[i].name))
            g->throttle = (g->throttle < 0 ? 0 : g->throttle) |
                          (strcmp(text, "Active") != 0 ? 0 : reason[i].bit);
}

static void set_remap(struct gpu *g, const char *name, const char *text)
{
    int what = !strcmp(name, "remapped_row_pending")   ? REMAP_PENDING
               : !strcmp(name, "remapped_row_failure") ? REMAP_FAILED
                                                       : -1;

    if (what >= 0 && !strcmp(text, "Yes"))
        g->remap = what > g->remap ? what : g->remap;
    else if (what >= 0 && g->remap < 0)
        g->remap = REMAP_NONE;
}

/* --- elements --- */

static void on_start(struct xml *x, const char *name, const char **attributes)
{
    struct reader *r = x->user;

    snprintf(r->open[x->depth - 1], NAME, "%s", name);
    if (x->depth == 1 && strcmp(name, "nvidia_smi_log") != 0)
        xml_bad(x, "<%.40s> where <nvidia_smi_log> of nvidia-smi -q -x is needed", name);
    if (x->depth != 2 || strcmp(name, "gpu") != 0)
        return;
    gpu_init(&r->gpu);
    r->lost = 0;
    if (!host_busid(r->gpu.busid, xml_attribute(attributes, "id")))
        xml_bad(x, "gpu id=\"%.40s\" is no PCI address",
                xml_attribute(attributes, "id") ? xml_attribute(attributes, "id") : "");
}

/* Registration facts count only if it is completed (as from NVML). */
static void end_gpu(struct xml *x)
{
    struct reader *r = x->user;
    struct gpu *g = &r->gpu;

    if (g->state != FABRIC_COMPLETED) {
        g->status = g->summary = -1;
        g->clique = g->health = -1;
        g->cluster[0] = '\0';
    }
    if (r->lost && g->state < 0)
        g->status = r->lost;
    r->split += g->split;
    struct gpu *to = host_gpu(r->t, r->host, r->gpus++, g->busid);
    if (!to) {
        xml_bad(x, "more than %d GPUs", GPU_PEERS);
        return;
    }
    g->host = to->host;
    g->index = to->index;
    /* Keep links and paths: this file has none. */
    g->links = to->links;
    g->down = to->down;
    g->counted = to->counted;
    g->link_Bps = to->link_Bps;
    g->remotes = to->remotes;
    g->paths = to->paths;
    memcpy(g->remote, to->remote, sizeof(g->remote));
    memcpy(g->path, to->path, sizeof(g->path));
    g->imex_channels = to->imex_channels;
    g->imex_nodes = to->imex_nodes;
    *to = *g;
}

static void on_end(struct xml *x, const char *name, const char *text)
{
    struct reader *r = x->user;
    const char *parent = x->depth > 1 ? r->open[x->depth - 2] : "";
    bool in_gpu = x->depth > 2 && !strcmp(r->open[1], "gpu");

    if (x->depth == 2 && !strcmp(name, "driver_version"))
        xml_keep(r->driver, sizeof(r->driver), text);
    if (x->depth == 2 && !strcmp(name, "gpu")) {
        memcpy(r->gpu.driver, r->driver, sizeof(r->driver));
        end_gpu(x);
    }
    if (in_gpu && is_lost(text))
        r->lost = is_lost(text);
    if (!in_gpu || !told(text))
        return;
    if (!strcmp(name, "current_mig"))
        r->gpu.split = !strcmp(text, "Enabled");
    for (size_t i = 0; i < sizeof(value) / sizeof(*value); i++)
        if (!strcmp(name, value[i].name) &&
            (!value[i].parent[0] || !strcmp(parent, value[i].parent)))
            set_value(x, &r->gpu, i, text);
    if (!strcmp(parent, "health"))
        set_health(&r->gpu, name, text);
    else if (!strcmp(parent, "remapped_rows"))
        set_remap(&r->gpu, name, text);
    else if (!strcmp(parent, "clocks_event_reasons") || !strcmp(parent, "clocks_throttle_reasons"))
        set_reason(&r->gpu, name, text);
}

int smi_xml_parse(struct topo *t, int host, const char *text, size_t len, const char *path,
                  struct err *err)
{
    static const struct xml_reader reader = {.what = "what nvidia-smi prints",
                                             .bytes = SMI_XML_BYTES_MAX,
                                             .elements = ELEMENTS,
                                             .depths = DEPTHS,
                                             .doctype = true,
                                             .start = on_start,
                                             .end = on_end};
    struct reader *r = mem_calloc(1, sizeof(*r));

    r->t = t;
    r->host = host;
    int rc = xml_read(&reader, r, text, len, path, err);
    if (rc == 0 && !r->gpus)
        rc = err_data(err, "%s: no <gpu> in it", path);
    if (rc == 0)
        host_mig(t, host, r->split);
    free(r);
    host_finish(t, host, SOURCE_SMI);
    return rc;
}
