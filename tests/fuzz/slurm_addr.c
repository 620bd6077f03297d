/* SPDX-License-Identifier: BSD-3-Clause */
/* SLURM_TOPOLOGY_ADDR: pattern, the node's name (empty: not known) and the address, a line each. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "topo/sources/sched/slurm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_calloc(size + 1, 1), *rest = text;
    struct slurm_addr a;
    struct err e = {0};

    for (size_t i = 0; i < size; i++)
        text[i] = (char)data[i];
    char *pattern = strsep(&rest, "\n"), *node = rest ? strsep(&rest, "\n") : NULL;
    const char *addr = rest ? rest : "";
    if (slurm_addr_parse(&a, addr, pattern, node && *node ? node : NULL, &e) < 0) {
        fuzz_refused(e.code, e.text);
    } else {
        size_t len = 0;
        for (int i = 0; i < a.parts; i++)
            len += strlen(a.part[i].text) + (i > 0);
        if (len != strlen(addr)) /* all of it is in some part */
            abort();
    }
    slurm_addr_free(&a);
    free(text);
    return 0;
}
