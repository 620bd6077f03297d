/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "cost/fit/parts.h"

bool parts_pass(const struct topo *t, const struct exception *e, const struct sample *s)
{
    enum level level = e->part == PART_HOST   ? LEVEL_HOST
                       : e->part == PART_LEAF ? LEVEL_LEAF
                                              : LEVEL_RACK;
    bool single = e->part == PART_ENDPOINT || e->part == PART_PAIR;
    int x = single ? s->src : t->endpoint[s->src].place.at[level],
        y = single ? s->dst : t->endpoint[s->dst].place.at[level];

    if (e->b >= 0)
        return (x == e->a && y == e->b) || (x == e->b && y == e->a);
    if (e->part == PART_RACK_UPLINKS && (x == y || x < 0 || y < 0))
        return false;
    return (e->side != SIDE_RX && x == e->a) || (e->side != SIDE_TX && y == e->a);
}

/* Has the part a sample in a tier that crosses NICs which speaks for it? */
static bool part_fine(const struct fit *f, const struct exception *e)
{
    for (int i = 0; i < f->samples; i++) {
        const struct sample *s = &f->sample[i];
        if (f->m->tier[s->tier].nic && parts_speaks_for(s, e) && parts_pass(&f->m->topo, e, s))
            return true;
    }
    return false;
}

/* The same factor in every NIC tier that was measured: the NIC, or all that joins two racks.  Other
 * tiers keep their own exception. */
void parts_tiers(struct fit *f, double tolerance)
{
    struct matrix *m = f->m;
    int *into = parts_identity(m);

    for (int i = 0, j; i < m->exceptions; i = j) {
        struct exception *x = NULL;
        bool same = m->exception[i].part == PART_ENDPOINT || m->exception[i].part == PART_RACK_PAIR;
        for (j = i;
             j < m->exceptions && m->exception[j].part == m->exception[i].part &&
             m->exception[j].a == m->exception[i].a && m->exception[j].b == m->exception[i].b;
             j++) {
            struct exception *y = &m->exception[j];
            if (y->tier < 0 || !m->tier[y->tier].nic)
                continue;
            same = same && (!x || (parts_alike(x, y, tolerance) && x->side == y->side));
            x = x ? x : y;
        }
        if (!same || !x || part_fine(f, x))
            continue;
        for (int k = (int)(x - m->exception) + 1; k < j; k++)
            if (m->exception[k].tier >= 0 && m->tier[m->exception[k].tier].nic) {
                parts_fold(x, &m->exception[k]);
                into[k] = (int)(x - m->exception);
            }
        x->tier = -1;
    }
    parts_keep(m, f, into);
    free(into);
}
