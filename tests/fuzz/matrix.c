/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.json: a matrix that was taken answers every question without falling over. */
#include "cost/matrix.h"
#include "fuzz.h"
#include "railgauge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    struct railgauge *r = NULL;
    char why[256] = "";
    int ids[64], n = 0;

    if (railgauge_open(&r, path, why) < 0) {
        fuzz_refused(65, why);
        return 0;
    }
    for (; n < railgauge_count(r) && n < 64; n++)
        ids[n] = n;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j += 7)
            if (railgauge_pair(r, ids[i], ids[j], (size_t)1 << (i & 31)) < 0)
                abort();
    for (int op = 0; op < OP_COUNT; op++)
        if (railgauge_collective(r, op_name((enum op)op), ids, n, 1 << 20) < 0)
            abort();
    railgauge_close(r);
    return 0;
}
