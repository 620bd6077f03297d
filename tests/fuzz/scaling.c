/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of speed against the number of GPUs. */
#include "fuzz.h"
#include "report/plot/plot_step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scaling s = {0};
    struct err e = {0, ""};
    FILE *null = fopen("/dev/null", "w");

    if (scaling_load(&s, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        for (int i = 0; i < s.count; i++)
            for (int k = 1; k < s.series[i].points; k++)
                if (!(s.series[i].point[k - 1].gpus < s.series[i].point[k].gpus))
                    abort();
        if (plot_text_scaling(null, &s, &e) < 0)
            fuzz_refused(e.code, e.text);
    }
    scaling_free(&s);
    fclose(null);
    return 0;
}
