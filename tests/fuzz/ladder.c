/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured curves of many systems: what was read can be thinned and predicted from the rest. */
#include <math.h>

#include "fuzz.h"
#include "matrix/ladder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ladders l = {0};
    struct err e = {0, ""};

    if (ladders_load(&l, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        struct miss *miss = NULL;
        int count = 0;
        ladders_predict(&l, 1, &miss, &count);
        ladders_predict(&l, 4, &miss, &count);
        for (int i = 0; i < count; i++)
            if (isnan(miss[i].error) || miss[i].ladder >= l.count)
                abort();
        free(miss);
    }
    ladders_free(&l);
    return 0;
}
