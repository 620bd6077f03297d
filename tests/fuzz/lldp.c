/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_topo.h"
#include "topo/sources/net/lldp_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_topo(lldp_parse, data, size, 2);
    return 0;
}
