/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/fit/coverage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "probe/plan.h"

enum {
    LOOKS_MAX = 1 << 24
}; /* pairs whose tier is looked up; more endpoints: evenly chosen ones */

static int tier_of(const struct fit *f, int a, int b)
{
    const struct topo *t = &f->m->topo;

    return topo_tier(t->tier, t->tiers, &t->endpoint[a].place, &t->endpoint[b].place);
}

static void count_possible(struct fit *f)
{
    const int n = f->m->topo.endpoints, rows = n < LOOKS_MAX / n ? n : LOOKS_MAX / n + 1;

    for (int i = 0; i < rows; i++) {
        int a = (int)((long)i * n / rows);
        for (int b = 0; b < n; b++)
            if (b != a)
                f->m->tier[tier_of(f, a, b)].possible += 0.5 * n / rows;
    }
}

static int by_pair(const void *a, const void *b)
{
    const long long *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Pairs of which the bandwidth was measured or nobody answered, each once: lower * n + higher. */
static int pairs_seen(const struct fit *f, long long **out)
{
    int n = 0;

    *out = mem_calloc((size_t)f->count + 1, sizeof(**out));
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        long long lo = o->src < o->dst ? o->src : o->dst, hi = o->src < o->dst ? o->dst : o->src;
        if (fit_is_bandwidth(f, o) && (o->epochs || o->failed))
            (*out)[n++] = lo * f->m->topo.endpoints + hi;
    }
    qsort(*out, (size_t)n, sizeof(**out), by_pair);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (!i || (*out)[i] != (*out)[i - 1])
            (*out)[kept++] = (*out)[i];
    return kept;
}

/* The middle endpoint's number of partners in each tier, of those that have any. */
static void count_measured(struct fit *f)
{
    const int ends = f->m->topo.endpoints, tiers = f->m->tiers;
    int *met = mem_calloc((size_t)ends * (size_t)tiers + 1, sizeof(*met));
    double *v = mem_calloc((size_t)ends + 1, sizeof(*v));
    long long *pair;
    int n = pairs_seen(f, &pair);

    for (int i = 0; i < n; i++) {
        int a = (int)(pair[i] / ends), b = (int)(pair[i] % ends), tier = tier_of(f, a, b);
        f->m->tier[tier].measured++;
        met[a * tiers + tier]++;
        met[b * tiers + tier]++;
    }
    for (int t = 0; t < tiers; t++) {
        int used = 0;
        for (int e = 0; e < ends; e++)
            if (met[e * tiers + t])
                v[used++] = met[e * tiers + t];
        f->m->tier[t].partners = used ? (int)stats_median(v, used) : 0;
    }
    free(pair);
    free(met);
    free(v);
}

void coverage_tell(struct fit *f)
{
    char each[512] = "", took[UNITS_TEXT];
    double measured = 0, possible = 0;
    size_t at = 0;

    count_possible(f);
    count_measured(f);
    for (int i = 0; i < f->m->tiers; i++) {
        const struct tier *t = &f->m->tier[i];
        measured += t->measured;
        possible += t->possible;
        if (t->possible > 0 && at < sizeof(each) - 1)
            at += (size_t)snprintf(each + at, sizeof(each) - at, "%s%s %.0f of %.0f (%d each)",
                                   *each ? ", " : "", t->rule.name, t->measured, t->possible,
                                   t->partners);
    }
    if (!f->bw_bytes || measured >= 0.999 * possible)
        return;
    double sec = plan_exact_seconds(&f->m->topo, (size_t)f->bw_bytes);
    matrix_find(f->m, "coverage",
                "%.2g %% of all pairs were measured: %s; a fault of one pair, such as a cable "
                "between two switches, shows only where that pair is among them; --exact measures "
                "all, about %s",
                100 * measured / possible, each, units_seconds_text(took, sec));
}
