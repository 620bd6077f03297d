/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's topology file: refused with a reason, or read, and then every pair has a path type. */
#include "fuzz.h"
#include "topo/sources/nccl/nccl_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nccl_paths p;
    struct err e = {0};

    if (nccl_xml_parse(&p, (const char *)data, size, "fuzz", &e) < 0) {
        fuzz_refused(e.code, e.text);
        return 0;
    }
    for (int i = 0; i < p.gpus * p.gpus; i++)
        if (p.pair[i].type >= NCCL_PATH_COUNT)
            abort();
    for (int i = 0; i < p.gpus * p.nets; i++)
        if (p.nic[i].type >= NCCL_PATH_COUNT)
            abort();
    nccl_paths_free(&p);
    return 0;
}
