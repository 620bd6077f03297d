/* SPDX-License-Identifier: BSD-3-Clause */
/* compute.tsv. */
#include <string.h>

#include "fuzz.h"
#include "measure/device/device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct device_table t;
    struct err e = {0};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (device_parse(&t, "fuzz", text, &e) < 0)
        fuzz_refused(e.code, e.text);
    else
        device_free(&t);
    return 0;
}
