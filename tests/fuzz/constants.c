/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants of the step model: what was read is found by its name. */
#include "step/constants.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct constants c;
    struct err e = {0, ""};

    if (constants_load(&c, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        for (int i = 0; i < c.count; i++)
            if (constants_find(&c, c.constant[i].name) != &c.constant[i])
                abort();
    }
    constants_free(&c);
    return 0;
}
