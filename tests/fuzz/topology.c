/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.json: what was read can be asked, copied, printed, saved and read again. */
#include "fuzz_topo.h"
#include "report/text/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct topo t, copy;
    struct err e = {0};
    FILE *null = fopen("/dev/null", "w");

    if (topo_load(&t, fuzz_file(data, size), &e) < 0) {
        fuzz_refused(e.code, e.text);
        fclose(null);
        return 0;
    }
    topo_copy(&copy, &t);
    for (int i = 0; i + 1 < t.endpoints && i < 64; i++)
        if (topo_tier(&t, i, i + 1) < 0)
            abort();
    topo_default_tiers(&copy);
    discover_report(null, &copy, &(struct discover_report){.quiet = false}, &e);
    sources_done(&copy);
    fuzz_again(&copy);
    fclose(null);
    topo_free(&copy);
    topo_free(&t);
    return 0;
}
