/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.tsv for 16 endpoints: what was read is written and read again as the same plan. */
#include <string.h>

#include "fuzz.h"
#include "measure/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan p, again;
    struct err e = {0};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (plan_parse(&p, "fuzz", text, 16, &e) < 0) {
        fuzz_refused(e.code, e.text);
        return 0;
    }
    for (int i = 0; i < p.rounds; i++)
        for (int k = 0; k < plan_steps(&p.round[i]); k++)
            if (plan_size(&p.round[i], 16, k) > (size_t)2 << 50)
                abort();
    if (plan_parse(&again, "written", plan_text(&p), 16, &e) < 0 ||
        plan_crc(&p) != plan_crc(&again))
        abort();
    plan_free(&again);
    plan_free(&p);
    return 0;
}
