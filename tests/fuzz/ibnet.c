/* SPDX-License-Identifier: BSD-3-Clause */
/* ibnetdiscover's text: refused with a reason, or read, merged, told to hosts, judged and printed.
 */
#include <string.h>

#include "fuzz.h"
#include "report/text/report.h"
#include "topo/groups.h"
#include "topo/lint/lint.h"
#include "topo/net.h"
#include "topo/sources/net/ibnet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *null = fopen("/dev/null", "w");
    struct err e = {0};
    struct lint l = {0};
    struct topo t, again;
    struct net *n;

    if (ibnet_parse(&n, (const char *)data, size, "fuzz", &e) < 0) {
        fuzz_refused(e.code, e.text);
        fclose(null);
        return 0;
    }
    topo_init(&t);
    t.net = n;
    net_declare(&t, n, "fuzz");
    groups_add_hosts(&t);
    net_apply(&t);
    groups_apply(&t);
    topo_default_tiers(&t);
    lint_net(&l, &t);
    discover_report(null, &t, &(struct discover_report){.quiet = false}, &e);
    char *text = topo_text(&t);
    if (topo_parse(&again, text, strlen(text), "saved", &e) < 0 ||
        again.net->cables != t.net->cables || again.nics != t.nics)
        abort();
    free(text);
    lint_free(&l);
    topo_free(&again);
    topo_free(&t);
    fclose(null);
    return 0;
}
