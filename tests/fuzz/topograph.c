/* SPDX-License-Identifier: BSD-3-Clause */
/* Models and graphs of topograph. */
#include "topo/sources/sched/topograph.h"
#include "fuzz_topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_declared(topograph_parse, data, size);
    return 0;
}
