/* SPDX-License-Identifier: BSD-3-Clause */
/* Predicted against measured: the table of predict --batch, or its JSON. */
#include "fuzz.h"
#include "report/plot/plot_step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tsv t;
    struct err e = {0, ""};
    FILE *null = fopen("/dev/null", "w");

    if (score_table_load(&t, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        if (plot_text_score(null, &t, NULL, &e) < 0)
            fuzz_refused(e.code, e.text);
        tsv_free(&t);
    }
    fclose(null);
    return 0;
}
