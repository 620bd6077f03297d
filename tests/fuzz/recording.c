/* SPDX-License-Identifier: BSD-3-Clause */
/* What nccl-tests printed, text or JSON, and the campaign made of it. */
#include <string.h>

#include "fuzz.h"
#include "record/import.h"

static void make(const struct recording *r, const struct import_opts *o)
{
    struct import im;
    struct err e = {0};

    import_init(&im, o);
    if (import_add(&im, r, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        import_end(&im, "nccl-tests does not print them");
        char *plan = plan_text(&im.plan);
        struct plan again;
        if (!im.rows || plan_parse(&again, "again", plan, im.topo.endpoints, &e) < 0)
            abort();
        plan_free(&again);
    }
    import_free(&im);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_opts said = {.op = -1},
                                    given = {.op = OP_ALL_REDUCE, .hosts = "n[1-2]", .ranks = 8};
    struct recording r;
    struct err e = {0};
    char *text = malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (recording_parse(&r, "fuzz", text, size, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        make(&r, &said);
        make(&r, &given);
        recording_free(&r);
    }
    free(text);
    return 0;
}
