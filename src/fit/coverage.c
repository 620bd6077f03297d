/* SPDX-License-Identifier: BSD-3-Clause */
/* Coverage of a campaign: a fault of one pair shows only if that pair was measured, and a part is judged by its
 * partners (parts.c: three partners, on two hosts). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "fit/fit_impl.h"

enum { PARTNERS_MIN = 3, HOSTS_MIN = 2, RACKS_MAX = 2048 };

/* Pairs whose tier is looked up; with more endpoints, evenly chosen rows. */
enum { LOOKS_MAX = 1 << 24 };

/* Endpoints by the levels that tiers use.  Pairs that share none of these levels are all in the same tier, through
 * NICs or not. */
struct nearby {
    struct lists in[LEVEL_COUNT]; /* [level]: by group; NULL: no tier uses the level */
    int *met;                     /* [endpoint]: last endpoint that counted this endpoint, + 1 */
    int apart;                    /* tier of pairs that share no level */
};

static void near_open(struct nearby *near, const struct topo *t)
{
    int *key = mem_calloc((size_t)t->endpoints, sizeof(*key));

    *near = (struct nearby){.met = mem_calloc((size_t)t->endpoints, sizeof(*near->met))};
    while (near->apart < t->tiers - 1 && t->tier[near->apart].same)
        near->apart++;
    for (int level = 0; level < LEVEL_COUNT; level++) {
        bool asked = false;
        for (int i = 0; i < t->tiers; i++)
            asked |= t->tier[i].same >> level & 1;
        for (int i = 0; i < t->endpoints && asked; i++)
            key[i] = topo_at(t, i, level);
        if (asked)
            lists_make(&near->in[level], key, NULL, t->endpoints, t->group[level].count);
    }
    free(key);
}

static void near_close(struct nearby *near)
{
    for (int level = 0; level < LEVEL_COUNT; level++)
        lists_free(&near->in[level]);
    free(near->met);
}

/* Count a pair in its tier, and also in the tier through its NICs if the campaign had that pass (fit_meets()). */
static void count_pair(const struct fit *f, int a, int b, long *pairs)
{
    const struct topo *t = &f->m->topo;
    int tier = topo_tier(t, a, b), other = tier;

    if (f->by_nic && t->endpoint[a].nic != t->endpoint[b].nic)
        other = topo_nic_tier(t, a, b);
    pairs[tier]++;
    pairs[other] += other != tier;
}

static void count_tiers(const struct fit *f, struct nearby *near, int a, long *pairs)
{
    const struct topo *t = &f->m->topo;
    int left = t->endpoints - 1;

    near->met[a] = a + 1;
    for (int level = 0; level < LEVEL_COUNT; level++) {
        const struct lists *in = &near->in[level];
        int group = in->at ? topo_at(t, a, level) : -1;
        for (int i = group < 0 ? 0 : in->start[group]; group >= 0 && i < in->start[group + 1];
             i++) {
            int b = in->at[i];
            if (near->met[b] == a + 1)
                continue;
            near->met[b] = a + 1;
            count_pair(f, a, b, pairs);
            left--;
        }
    }
    pairs[near->apart] += left;
}

static void count_possible(struct fit *f)
{
    const int n = f->m->topo.endpoints, rows = n < LOOKS_MAX / n ? n : LOOKS_MAX / n + 1;
    long pairs[TIER_MAX] = {0};
    struct nearby near;

    near_open(&near, &f->m->topo);
    for (int i = 0; i < rows; i++)
        count_tiers(f, &near, (int)((long)i * n / rows), pairs);
    near_close(&near);
    for (int t = 0; t < f->m->tiers; t++)
        f->m->tier[t].possible = 0.5 * n / rows * (double)pairs[t];
}

/* A pair of endpoints in a tier; a < b. */
struct pair_seen {
    int a, b, tier;
};

/* List pairs with a measured bandwidth or without any answer, once per tier. */
static int pairs_seen(const struct fit *f, struct pair_seen **out)
{
    const int ends = f->m->topo.endpoints, tiers = f->m->tiers;
    int *low = mem_calloc((size_t)f->count + 1, sizeof(*low)), n = 0,
        *last = mem_calloc((size_t)ends * (size_t)tiers + 1, sizeof(*last)); /* last partner, + 1 */
    struct lists by;

    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        bool is = fit_is_bandwidth(f, o) && (obs_epochs(o) || o->failed);
        low[i] = !is ? -1 : o->src < o->dst ? o->src : o->dst;
    }
    lists_make(&by, low, NULL, f->count, ends);
    *out = mem_calloc((size_t)by.start[ends] + 1, sizeof(**out));
    for (int i = 0; i < by.start[ends]; i++) {
        const struct obs *o = &f->obs[by.at[i]];
        int a = low[by.at[i]], b = o->src + o->dst - a, *met = &last[b * tiers + o->tier];
        if (*met != a + 1)
            (*out)[n++] = (struct pair_seen){a, b, o->tier};
        *met = a + 1;
    }
    free(low);
    free(last);
    lists_free(&by);
    return n;
}

/* --- partners of parts --- */

/* Partners of a part, as far as they matter: their number, and whether they are in two groups. */
struct met {
    int times, first, others; /* first: group of the first, + 1 */
};

static void meet(struct met *m, int group)
{
    m->times++;
    m->others += m->first && m->first != group + 1;
    m->first = m->first ? m->first : group + 1;
}

struct coverage {
    struct fit *f;
    struct pair_seen *pair;
    int pairs;
    int *by[2];       /* [endpoint]: partners in tiers without NICs, with NICs */
    int *could[2];    /* possible partners */
    struct met *host; /* partners of each host */
};

static void coverage_close(struct coverage *c)
{
    free(c->pair);
    for (int k = 0; k < 2; k++) {
        free(c->by[k]);
        free(c->could[k]);
    }
    free(c->host);
}

/* Number of endpoints in each group of a level, or at each NIC (level -1). */
static int *sizes(const struct topo *t, int level, int count)
{
    int *n = mem_calloc((size_t)count + 1, sizeof(*n));

    for (int i = 0; i < t->endpoints; i++) {
        int at = level < 0 ? t->endpoint[i].nic : topo_at(t, i, level);
        if (at >= 0)
            n[at]++;
    }
    return n;
}

/* Count the possible partners of each endpoint in tiers without NICs, and in tiers that cross NICs. */
static void count_could(struct coverage *c)
{
    const struct topo *t = &c->f->m->topo;
    int domains = t->group[LEVEL_DOMAIN].count, *host = sizes(t, LEVEL_HOST, t->hosts),
        *domain = sizes(t, LEVEL_DOMAIN, domains), *nic = sizes(t, -1, t->nics);
    bool wide = false;

    for (int k = 0; k < c->f->m->tiers; k++)
        wide = wide || t->tier[k].same == 1u << LEVEL_DOMAIN;
    for (int i = 0; i < t->endpoints; i++) {
        int at = wide ? topo_at(t, i, LEVEL_DOMAIN) : -1, own = t->endpoint[i].nic;
        int near = at >= 0 ? domain[at] : host[topo_at(t, i, LEVEL_HOST)];
        c->could[0][i] = near - 1;
        c->could[1][i] = t->endpoints - (c->f->by_nic && own >= 0 ? nic[own] : near);
    }
    free(host);
    free(domain);
    free(nic);
}

static void coverage_open(struct coverage *c, struct fit *f)
{
    const struct topo *t = &f->m->topo;

    *c = (struct coverage){.f = f};
    c->pairs = pairs_seen(f, &c->pair);
    for (int k = 0; k < 2; k++) {
        c->by[k] = mem_calloc((size_t)t->endpoints, sizeof(int));
        c->could[k] = mem_calloc((size_t)t->endpoints, sizeof(int));
    }
    count_could(c);
    c->host = mem_calloc((size_t)t->hosts, sizeof(*c->host));
    for (int i = 0; i < c->pairs; i++) {
        const struct pair_seen *p = &c->pair[i];
        int *by = c->by[f->m->tier[p->tier].nic], x = topo_at(t, p->a, LEVEL_HOST),
            y = topo_at(t, p->b, LEVEL_HOST);
        by[p->a]++;
        by[p->b]++;
        if (x != y) {
            meet(&c->host[x], y);
            meet(&c->host[y], x);
        }
    }
}

/* True if the endpoint has enough of its possible partners. */
static bool enough(const struct coverage *c, int endpoint, bool nic)
{
    int could = c->could[nic][endpoint], met = c->by[nic][endpoint];

    return met && met >= (could < PARTNERS_MIN ? could : PARTNERS_MIN);
}

static void add_seen(struct fit *f, enum seen kind, double parts, double judged)
{
    if (parts > 0)
        MEM_PUSH(f->m->seen, f->m->seens) = (struct seen_parts){kind, parts, judged};
}

/* Check devices in tiers without NICs, or across NICs if an endpoint has no possible partner without NICs. */
static void see_endpoints(struct coverage *c)
{
    const int n = c->f->m->topo.endpoints;
    int judged = 0;

    for (int i = 0; i < n; i++)
        judged += enough(c, i, !c->could[0][i]);
    add_seen(c->f, SEEN_ENDPOINT, n, judged);
}

/* Check NICs that are the nearest of an endpoint, if pairs can cross them. */
static void see_nics(struct coverage *c)
{
    const struct topo *t = &c->f->m->topo;
    const bool hidden = topo_hides_nics(t);
    int *met = mem_calloc((size_t)t->nics + 1, sizeof(*met)), parts = 0, judged = 0;

    for (int i = 0; i < t->endpoints; i++) {
        int nic = t->endpoint[i].nic;
        if (nic < 0 || !(c->could[1][i] || hidden))
            continue;
        met[nic] = met[nic] == 2 || enough(c, i, true) ? 2 : 1;
    }
    for (int i = 0; i < t->nics; i++) {
        parts += met[i] > 0;
        judged += met[i] == 2;
    }
    free(met);
    add_seen(c->f, SEEN_NIC, parts, judged);
}

static void see_hosts(struct coverage *c)
{
    int n = c->f->m->topo.hosts, judged = 0;

    for (int i = 0; i < n; i++)
        judged += c->host[i].times && (c->host[i].others || n <= HOSTS_MIN);
    add_seen(c->f, SEEN_HOST, n > 1 ? n : 0, judged);
}

/* Check leaves: three endpoints with partners over their NICs, or all endpoints of the leaf. */
static void see_leaves(struct coverage *c)
{
    const struct topo *t = &c->f->m->topo;
    int n = t->group[LEVEL_LEAF].count, judged = 0;
    int *all = mem_calloc(2 * (size_t)n + 1, sizeof(*all)), *met = all + n;

    for (int i = 0; i < t->endpoints; i++) {
        int leaf = topo_at(t, i, LEVEL_LEAF);
        if (leaf < 0)
            continue;
        all[leaf]++;
        met[leaf] += c->by[1][i] > 0;
    }
    for (int i = 0; i < n; i++)
        judged += met[i] && (met[i] >= PARTNERS_MIN || met[i] == all[i]);
    free(all);
    add_seen(c->f, SEEN_LEAF, n, judged);
}

/* --- uplinks: at least half of the NICs of a leaf or rack send up at once, to two other groups --- */

struct climb {
    int endpoints, round, epoch, flows, most;
    struct met to;
};

static void count_climbs(const struct fit *f, enum level level, struct climb *of)
{
    const struct topo *t = &f->m->topo;

    for (int i = 0; i < f->points->count; i++) {
        const struct point *p = &f->points->point[i];
        if (!fit_is_crowded(f, p))
            continue;
        int x = topo_at(t, p->src, (int)level), y = topo_at(t, p->dst, (int)level);
        if (x < 0 || y < 0 || x == y || !f->m->tier[fit_tier(f, p)].nic)
            continue;
        struct climb *c = &of[x];
        bool again = c->flows && c->round == p->round && c->epoch == p->epoch;
        c->round = p->round;
        c->epoch = p->epoch;
        c->flows = again ? c->flows + 1 : 1;
        c->most = c->flows > c->most ? c->flows : c->most;
        meet(&c->to, y);
    }
}

static void see_uplinks(struct coverage *c)
{
    const struct topo *t = &c->f->m->topo;
    enum level level = t->group[LEVEL_LEAF].count ? LEVEL_LEAF : LEVEL_RACK;
    int n = t->group[level].count, judged = 0;
    struct climb *of = mem_calloc((size_t)n + 1, sizeof(*of));

    for (int i = 0; i < t->endpoints; i++)
        if (topo_at(t, i, (int)level) >= 0)
            of[topo_at(t, i, (int)level)].endpoints++;
    count_climbs(c->f, level, of);
    for (int i = 0; i < n; i++)
        judged += of[i].most && 2 * of[i].most >= of[i].endpoints && (of[i].to.others || n == 2);
    free(of);
    add_seen(c->f, SEEN_UPLINKS, n > 1 ? n : 0, judged);
}

/* --- two racks --- */

static void see_rack_pairs(struct coverage *c)
{
    const struct topo *t = &c->f->m->topo;
    const size_t racks = (size_t)t->group[LEVEL_RACK].count;
    int judged = 0;

    if (racks < 2 || racks > RACKS_MAX)
        return;
    struct met *host = mem_calloc(racks * racks, sizeof(*host)); /* hosts of x with partners in y */
    for (int i = 0; i < c->pairs; i++) {
        int a = c->pair[i].a, b = c->pair[i].b;
        int x = topo_at(t, a, LEVEL_RACK), y = topo_at(t, b, LEVEL_RACK);
        if (x < 0 || y < 0 || x == y)
            continue;
        meet(&host[(size_t)x * racks + (size_t)y], topo_at(t, a, LEVEL_HOST));
        meet(&host[(size_t)y * racks + (size_t)x], topo_at(t, b, LEVEL_HOST));
    }
    for (size_t x = 0; x < racks; x++)
        for (size_t y = x + 1; y < racks; y++) {
            const struct met *there = &host[x * racks + y], *back = &host[y * racks + x];
            judged += there->times >= PARTNERS_MIN && there->others && back->others;
        }
    free(host);
    add_seen(c->f, SEEN_RACK_PAIR, 0.5 * (double)racks * (double)(racks - 1), judged);
}

/* --- pairs --- */

/* Median number of partners in each tier, over endpoints with a partner. */
static void count_partners(struct coverage *c)
{
    struct matrix *m = c->f->m;
    const int ends = m->topo.endpoints, tiers = m->tiers;
    int *met = mem_calloc((size_t)ends * (size_t)tiers + 1, sizeof(*met));
    double *v = mem_calloc((size_t)ends + 1, sizeof(*v));

    for (int i = 0; i < c->pairs; i++) {
        const struct pair_seen *p = &c->pair[i];
        m->tier[p->tier].measured++;
        met[p->a * tiers + p->tier]++;
        met[p->b * tiers + p->tier]++;
    }
    for (int t = 0; t < tiers; t++) {
        int used = 0;
        for (int e = 0; e < ends; e++)
            if (met[e * tiers + t])
                v[used++] = met[e * tiers + t];
        m->tier[t].partners = used ? (int)stats_middle(v, used) : 0;
    }
    free(met);
    free(v);
}

static void see_pairs(struct fit *f)
{
    double all[2] = {0, 0}, seen[2] = {0, 0};

    for (int t = 0; t < f->m->tiers; t++) {
        all[f->m->tier[t].nic] += f->m->tier[t].possible;
        seen[f->m->tier[t].nic] += f->m->tier[t].measured;
    }
    add_seen(f, SEEN_CABLE, all[1], seen[1]);
    add_seen(f, SEEN_PAIR, all[0] + all[1], seen[0] + seen[1]);
}

/* Report the coverage, the faults that it can miss, and the option that measures all pairs. */
static void say_coverage(struct fit *f)
{
    char each[512] = "", took[UNITS_TEXT];
    double measured = 0, possible = 0;
    size_t at = 0;

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
    char share[UNITS_TEXT], exact[UNITS_TEXT + 32] = "--cables TIME measures more";
    double sec = plan_exact_seconds(&f->m->topo, (size_t)f->bw_bytes);
    if (f->m->topo.endpoints <= PLAN_EVERY_TO)
        snprintf(exact, sizeof(exact), "--exact measures all, about %s",
                 units_seconds_text(took, sec));
    matrix_find(f->m, "coverage",
                "%s of all pairs were measured: %s; a fault of one pair, such as a cable "
                "between two switches, shows only where that pair is among them; %s",
                units_share_text(share, measured / possible), each, exact);
}

void fit_coverage(struct fit *f)
{
    struct coverage c;

    count_possible(f);
    coverage_open(&c, f);
    count_partners(&c);
    see_endpoints(&c);
    see_nics(&c);
    see_hosts(&c);
    see_leaves(&c);
    see_uplinks(&c);
    see_rack_pairs(&c);
    see_pairs(f);
    coverage_close(&c);
    say_coverage(f);
}
