/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/lint/lint_hosts.h"

#include "topo/host/mnnvl.h"
#include "topo/lint/lint_parts.h"

/* Were NVLinks of one of its GPUs named beside those of their peers? */
static bool links_named(const struct lint_view *v, int host)
{
    const struct lint_host *h = &v->host[host];

    for (int i = h->gpu; h->gpus && i < v->t->gpus && v->t->gpu[i].host == host; i++)
        if (v->named[i])
            return true;
    return false;
}

/* What is bad about NVLink, and what its list has that no majority tells. */
static void lint_mnnvl(struct lint *l, const struct lint_view *v)
{
    const struct topo *t = v->t;
    struct mnnvl m;

    mnnvl_judge(&m, t, t->trial, t->trials);
    for (int h = 0; h < m.hosts; h++) {
        const char *why = links_named(v, h) ? m.host[h].beside : m.host[h].why;
        if (m.host[h].verdict == MNNVL_BAD && why)
            lint_add(l, "mnnvl", t->host[h].name, "%s: %s", t->host[h].name, why);
    }
    for (int i = 0; i < m.odds - m.compared; i++)
        lint_add(l, "gpu", "", "%s", m.odd[i]);
    mnnvl_free(&m);
}

int hosts_lint(struct lint *l, const struct topo *t)
{
    int before = l->findings;
    struct lint_view v;

    lint_view_open(&v, t);
    lint_peers(l, &v);
    if (!t->net)
        lint_leaves(l, &v);
    lint_mnnvl(l, &v);
    lint_view_close(&v);
    return l->findings - before;
}
