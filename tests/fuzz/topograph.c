/* SPDX-License-Identifier: BSD-3-Clause */
/* Models and graphs of topograph. */
#include "fuzz_topo.h"
#include "topo/sources/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_declared(topograph_parse, data, size);
    return 0;
}
