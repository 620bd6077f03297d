/* SPDX-License-Identifier: BSD-3-Clause */
/* A case file, and the layouts and expressions in it: refused with a reason, or read, its layouts
 * parsed, its expressions valued. */
#include <string.h>

#include "calibrate/case.h"
#include "calibrate/case_impl.h"
#include "fuzz.h"

/* Any text as a layout: what is accepted writes itself back as the same mesh. */
static void layout(const char *text)
{
    struct layout l, again;
    struct err e = {0};
    char buf[256];

    if (layout_parse(&l, text, STRATEGY_FSDP, ORDER_MEGATRON, 64, &e) < 0) {
        fuzz_refused(e.code, e.text);
        return;
    }
    layout_text(buf, sizeof(buf), &l);
    if (*buf && (layout_parse(&again, buf, STRATEGY_FSDP, ORDER_MEGATRON, 0, &e) < 0 ||
                 memcmp(l.size, again.size, sizeof(l.size)) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct casefile c;
    struct err e = {0};

    if (size < 256) {
        char *text = malloc(size + 1);
        memcpy(text, data, size);
        text[size] = '\0';
        layout(text);
        free(text);
    }
    if (case_parse(&c, (const char *)data, size, "fuzz", NULL, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        struct case_values none = {.file = &c, .scaled = -1};
        double x;
        for (int i = 0; i < c.claims; i++)
            if (case_value_in(&x, c.claim[i].expression, c.claim[i].unit, &none, &e) < 0)
                abort();
        for (int i = 0; i < c.jobs; i++)
            if (c.job[i].opts.layout)
                layout(c.job[i].opts.layout);
        json_decref(cases_json(&c, 1));
    }
    case_free(&c);
    return 0;
}
