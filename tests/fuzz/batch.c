/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of measured steps: every row is a question or has its reason. */
#include "calibrate/batch.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch b;
    struct err e = {0, ""};

    if (batch_load(&b, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        for (int i = 0; i < b.rows; i++)
            if (b.row[i].status == BATCH_MISS && !b.row[i].reason[0])
                abort();
    }
    batch_free(&b);
    return 0;
}
