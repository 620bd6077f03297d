/* SPDX-License-Identifier: BSD-3-Clause */
/* A limits file: refused with a reason, or rows that all have a source and a bound. */
#include "verdict/limits.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct limits l = {0};
    struct err e = {0};

    if (limits_load(&l, fuzz_file(data, size), &e) < 0)
        fuzz_refused(e.code, e.text);
    for (int i = 0; i < l.count; i++)
        if (!l.limit[i].source || !(l.limit[i].bound >= 0))
            abort();
    limits_free(&l);
    return 0;
}
