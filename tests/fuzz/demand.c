/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic of a job: a table, or Matrix Market. */
#include <string.h>

#include "fuzz.h"
#include "place/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct demand d;
    struct err e = {0};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (demand_parse(&d, text, size, "fuzz", &e) < 0) {
        fuzz_refused(e.code, e.text);
        return 0;
    }
    for (int i = 0; i < d.flows; i++)
        if (d.flow[i].src < 0 || d.flow[i].src >= d.ranks || d.flow[i].dst < 0 ||
            d.flow[i].dst >= d.ranks || !(d.flow[i].bytes >= 0))
            abort();
    demand_free(&d);
    return 0;
}
