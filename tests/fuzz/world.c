/* SPDX-License-Identifier: BSD-3-Clause */
/* A world of noise: refused with a reason, or read. */
#include "transport/sim/sim_world.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_world w;
    struct err e = {0};
    char path[64];

    /* A name without a slash is that of a shipped world. */
    snprintf(path, sizeof(path), "%s", fuzz_file(data, size));
    if (sim_world_load(&w, path, &e) < 0)
        fuzz_refused(e.code, e.text);
    return 0;
}
