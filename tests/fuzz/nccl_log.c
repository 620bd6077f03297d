/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank's NCCL log: whatever it says becomes a profile that can be written, read, merged, judged
 * and printed. */
#include "topo/sources/nccl/nccl_log.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_profile p, q, all = {.lines = 0};
    struct err e = {0};
    FILE *null = fopen("/dev/null", "w");

    nccl_log_parse(&p, (const char *)data, size);
    json_t *json = nccl_profile_json(&p);
    if (nccl_profile_read(&q, json, "fuzz", &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    json_decref(json);
    nccl_merge(&all, &p, 0);
    nccl_merge(&all, &q, 1);
    nccl_merge_end(&all);
    nccl_judge(&all, NULL);
    nccl_print(&all, NULL, null);
    fclose(null);
    nccl_profile_free(&all);
    return 0;
}
