/* SPDX-License-Identifier: BSD-3-Clause */
/* A hostfile as the order of ranks: what is accepted names each endpoint once. */
#include <string.h>

#include "../unit/small.h"
#include "base/mem.h"
#include "fuzz.h"
#include "step/placement.h"

enum { RACKS = 2, HOSTS = 4, PER_HOST = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_calloc(size + 1, 1);
    bool seen[RACKS * HOSTS * PER_HOST] = {false};
    struct err e = {0, ""};
    struct topo t;
    int *order, ranks;

    memcpy(text, data, size);
    small_topo(&t, RACKS, HOSTS, PER_HOST, true, ENDPOINT_GPU);
    if (placement_parse(&order, &ranks, &t, text, "fuzz", &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        if (ranks < 1 || ranks > t.endpoints)
            abort();
        for (int r = 0; r < ranks; r++) {
            if (order[r] < 0 || order[r] >= t.endpoints || seen[order[r]])
                abort();
            seen[order[r]] = true;
        }
        free(order);
    }
    topo_free(&t);
    free(text);
    return 0;
}
