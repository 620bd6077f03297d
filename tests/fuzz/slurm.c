/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.conf, what scontrol prints, and topology.yaml, which are told apart by their text: what
 * was read becomes declared groups that can be applied. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "topo/groups.h"
#include "topo/sources/sched/slurm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct topo t;
    struct err e = {0};

    topo_init(&t);
    char *text = mem_calloc(size + 1, 1);
    memcpy(text, data, size);
    int rc = slurm_read(&t, -1, text, size, "fuzz", &e);
    free(text);
    if (rc < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        groups_add_hosts(&t);
        if (t.hosts < 64)
            for (int h = 0; h < t.hosts; h++)
                topo_add_endpoint(&t, h, ENDPOINT_GPU);
        groups_apply(&t);
    }
    topo_free(&t);
    return 0;
}
