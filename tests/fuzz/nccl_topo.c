/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_topo.h"
#include "topo/sources/nccl/nccl_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_topo(nccl_topo_parse, data, size, 2);
    return 0;
}
