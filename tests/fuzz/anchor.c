/* SPDX-License-Identifier: BSD-3-Clause */
/* A measured step that calibrates a recipe. */
#include "calibrate/anchor.h"
#include "fuzz.h"
#include "step/constants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct constants c;
    struct anchor a;
    struct err e = {0, ""};

    if (!c.count && constants_load(&c, NULL, &e) < 0)
        abort();
    /* Of a step too short to explain nothing can be told: no fault of the file. */
    if (anchor_open(&a, fuzz_file(data, size), &c, &e) < 0 &&
        (e.code != EXIT_UNJUDGED || !e.text[0]))
        fuzz_refused(e.code, e.text);
    anchor_free(&a);
    return 0;
}
