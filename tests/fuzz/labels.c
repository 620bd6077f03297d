/* SPDX-License-Identifier: BSD-3-Clause */
/* What kubectl prints of nodes. */
#include "fuzz_topo.h"
#include "topo/sources/sched/labels_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_declared(labels_parse, data, size);
    return 0;
}
