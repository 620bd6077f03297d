/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/worst.h"

#include <stdio.h>
#include <string.h>

void worst_open(struct worst *w)
{
    memset(w, 0, sizeof(*w));
    w->share = 1;
}

void worst_note(struct worst *w, const struct topo *t, const struct round *r, const struct point *p)
{
    if (!op_is_pair(p->op) || p->stop == STOP_FAILED)
        return;
    int tier = topo_tier(t->tier, t->tiers, &t->endpoint[p->src].place, &t->endpoint[p->dst].place);
    double *typical = &w->typical[tier][p->op], sec = p->sec.median;

    if (w->bytes[tier][p->op] != p->bytes) { /* another size: start again */
        w->bytes[tier][p->op] = p->bytes;
        *typical = sec;
        return;
    }
    double share = *typical / sec;
    *typical *= sec > *typical ? 1.02 : 0.98;
    if (share < w->share && share < 0.9) {
        w->share = share;
        snprintf(w->text, sizeof(w->text), "%d>%d %.2fx%s", p->src, p->dst, share,
                 r->groups > 1 ? " (in parallel)" : "");
    }
}
