/* SPDX-License-Identifier: BSD-3-Clause */
#include "fuzz_topo.h"
#include "topo/sources/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_topo(smi_xml_parse, data, size, 2);
    return 0;
}
