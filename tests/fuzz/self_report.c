/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes of a job tell: lines that were read can be judged, and written again. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "place/segments.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_calloc(size + 1, 1);
    struct self_report *list;
    struct segments s;
    struct segment_verdict v;
    struct err e = {0};
    int count;

    for (size_t i = 0; i < size; i++)
        text[i] = data[i] ? (char)data[i] : ' ';
    if (self_report_parse(&list, &count, text, "lines", &e) < 0) {
        fuzz_refused(e.code, e.text);
        free(text);
        return 0;
    }
    segments_init(&s, 2);
    /* A list of a hundred thousand nodes is read in a moment; the fuzzer has not the time to judge
     * it. */
    int few = count < 4096 ? count : 4096;
    if (segments_from_told(&s, list, few, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        segments_judge(&v, &s);
        if (v.together + v.split + v.unknown != v.segments)
            abort();
        segment_verdict_free(&v);
    }
    segments_free(&s);
    self_report_list_free(list, count);
    free(text);
    return 0;
}
