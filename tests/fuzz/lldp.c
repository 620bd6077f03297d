/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/sources/net/lldp.h"
#include "fuzz_topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_topo(lldp_parse, data, size, 2);
    return 0;
}
