/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions as pictures: bars of steps, and their scaling. */
#include "fuzz.h"
#include "report/plot/plot_step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct step_bars b = {0};
    struct scaling s = {0};
    struct err e = {0, ""};
    FILE *null = fopen("/dev/null", "w");

    if (step_bars_add(&b, NULL, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        if (plot_text_step(null, &b, 0, 80, &e) < 0)
            fuzz_refused(e.code, e.text);
        if (scaling_of_steps(&s, &b, &e) < 0)
            fuzz_refused(e.code, e.text);
        scaling_free(&s);
    }
    step_bars_free(&b);
    fclose(null);
    return 0;
}
