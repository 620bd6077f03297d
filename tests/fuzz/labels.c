/* SPDX-License-Identifier: BSD-3-Clause */
/* What kubectl prints of nodes. */
#include "topo/sources/sched/labels.h"
#include "fuzz_topo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_declared(labels_parse, data, size);
    return 0;
}
