/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_names.c - names of machines and sources in tables: presets, releases, conventions. */
#include <stdio.h>
#include <string.h>

#include "step/score/batch_words.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Recipes for NVL72 racks take 16 of the 18 trays (srun --segment=16).  First match rules; fabric
 * words are looked for in internode_fabric, "" fits all. */
static const struct {
    const char *hardware, *fabric, *preset;
    int per_rack, rack; /* GPUs that a job takes of a rack, and that it has; 0: whole racks */
} machines[] = {
    {"GB300", "Spectrum-X", "gb300-nvl72-spectrumx", 64, 72},
    {"GB300", "RoCE", "gb300-nvl72-spectrumx", 64, 72},
    {"GB300", "", "gb300-nvl72", 64, 72},
    {"GB200", "", "gb200-nvl72", 64, 72},
    {"B300", "", "hgx-b300", 0, 0},
    {"B200", "", "hgx-b200", 0, 0},
    {"H200-NVL", "", "h200-nvl", 0, 0},
    {"H200", "", "hgx-h200", 0, 0},
    {"H100", "", "hgx-h100", 0, 0},
    {"A100", "", "hgx-a100", 0, 0},
    {"RTX_PRO_6000_BW_SE", "", "rtxpro6000-100gbe", 0, 0},
};

/* Builds with other memory than the preset's GPU. */
static const struct {
    const char *source, *hardware;
    double bytes;
} builds[] = {
    /* "equipped with 96GB HBM2e": benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md */
    {"torchtitan@", "H100", 96 * 1073741824.0},
};

int batch_machine(struct batch_row *r, const char *fabric, struct err *err)
{
    for (size_t i = 0; i < COUNT(machines); i++) {
        if (strcmp(machines[i].hardware, r->hardware) != 0 || !strstr(fabric, machines[i].fabric))
            continue;
        r->preset = machines[i].preset;
        for (size_t k = 0; k < COUNT(builds); k++)
            if (strstr(r->source, builds[k].source) && !strcmp(r->hardware, builds[k].hardware))
                r->gpu_bytes = builds[k].bytes;
        r->per_rack = machines[i].per_rack;
        /* A job that fits into a rack, or that is made of whole racks, takes whole racks. */
        if (r->gpus <= machines[i].rack ||
            (machines[i].rack && r->gpus % r->per_rack && r->gpus % machines[i].rack == 0))
            r->per_rack = 0;
        return 0;
    }
    return err_set(err, "no preset is known for hardware \"%s\"", r->hardware);
}

/* The release begins after `after` and ends at one of `until`. */
static const struct {
    const char *has, *after, *until, *name;
} releases[] = {
    {"Megatron-Bridge", "(", " )", "megatron-bridge"},
    {"dgxc-benchmarking@", "dgxc-benchmarking@", " /", "dgxc"},
    {"training_results_", "training_results_", " @/", "mlperf"},
    {"NeMo@", "(NeMo ", ",)", "nemo"},
    {"torchtitan@", " ", " ", "torchtitan"},
    {"", "", "", ""},
};

void batch_release(char out[BATCH_RELEASE], const char *source)
{
    for (size_t i = 0; i < COUNT(releases); i++) {
        const char *begin =
            strstr(source, releases[i].has) ? strstr(source, releases[i].after) : NULL;
        if (!begin)
            continue;
        begin += strlen(releases[i].after);
        int n = *releases[i].until ? (int)strcspn(begin, releases[i].until) : (int)strlen(begin);
        const char *space = *releases[i].name ? " " : "";
        int max = BATCH_RELEASE - 1 - (int)strlen(releases[i].name) - 1;
        snprintf(out, BATCH_RELEASE, "%s%s%.*s", releases[i].name, space, n < max ? n : max, begin);
        return;
    }
}

/* Megatron-LM counts half the core; torchtitan, the DGX Cloud recipes and MLPerf's tables all of
 * it (their own FLOP formulas).  The Llama 3 paper (3.3.2) takes utilisation as Chowdhery et al.
 * 2022 do, whose appendix B counts 12 L H Q T for the core of a token: all of it. */
bool batch_counts_causal(const char *source)
{
    static const char *const all[] = {"torchtitan@", "dgxc-benchmarking", "training_results",
                                      "Llama 3 paper"};

    for (size_t i = 0; i < COUNT(all); i++)
        if (strstr(source, all[i]))
            return false;
    return true;
}
