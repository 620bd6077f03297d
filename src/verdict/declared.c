/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/declared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"

enum { EVIDENCE_MAX = 256 }; /* misfits with counted pairs */
/* Groups that leave out more than this share of the hosts are no structure of the fabric: with one partner of each tier
 * (--matchings 1), half of the hosts of a healthy fabric have no place, and the others are joined wrongly. */
static const double lost_share = 0.25;

/* --- groupings --- */

static bool visible(const struct topo *t, int level, bool measured)
{
    enum source source = groups_source(t, level);

    return source != SOURCE_NONE && (source == SOURCE_MEASURED) == measured;
}

/* Rails cross hosts, and a host level groups nothing. */
static bool groups_hosts(int level)
{
    return level != LEVEL_HOST && level != LEVEL_RAIL;
}

/* True if a claim states this coordinate, so that the coordinate was filled in from the claim. */
static bool is_claimed(const struct topo *t, int level)
{
    for (int i = 0; i < t->declared_groups; i++)
        if ((int)t->declared_group[i].level == level &&
            t->declared_group[i].source == groups_source(t, level))
            return true;
    return false;
}

/* Turn coordinates into claims, so that everything declared has one form. */
static void claim_coordinates(struct topo *to, const struct topo *from)
{
    for (int level = 0; level < LEVEL_COUNT; level++) {
        char **name;
        int groups;
        if (!groups_hosts(level) || !visible(from, level, false) || is_claimed(from, level))
            continue;
        int *of = groups_of_hosts(from, (enum level)level, &name, &groups);
        for (int g = 0; g < groups; g++)
            for (int h = 0; h < from->hosts; h++)
                if (of[h] == g)
                    group_add_host(to, groups_source(from, level), (enum level)level,
                                   from->fabric ? from->fabric : "topology", name[g],
                                   from->host[h].name);
        hostlist_free(name, groups);
        free(of);
    }
}

void declared_init(struct declared *d, const struct topo *t)
{
    memset(d, 0, sizeof(*d));
    topo_copy(&d->topo, t);
    claim_coordinates(&d->topo, t);
}

void declared_add(struct declared *d, const struct topo *other)
{
    for (int i = 0; i < other->declared_groups; i++) {
        const struct declared_group *c = &other->declared_group[i];
        group_copy(&d->topo, c);
    }
    claim_coordinates(&d->topo, other);
}

static void copy_names(struct grouping *g, char *const *name, int groups)
{
    for (int i = 0; i < groups; i++)
        MEM_PUSH(g->name, g->groups) = mem_strdup(name[i]);
}

static int hosts_lost(const struct host_layer *l, int hosts)
{
    int lost = 0;

    for (int h = 0; h < hosts; h++)
        lost += l->of[h] < 0;
    return lost;
}

void declared_points(struct declared *d, const struct points *p)
{
    d->count = observe(&d->obs, p, true);
    layers_find(&d->layers, &d->topo, d->obs, d->count, NULL, false);
    for (int i = 0; i < d->layers.count; i++) {
        const struct host_layer *l = &d->layers.layer[i];
        int lost = hosts_lost(l, d->topo.hosts);
        if (lost > lost_share * d->topo.hosts) {
            d->unmeasured = mem_printf("measuring places only %d of %d hosts: too few pairs",
                                       d->topo.hosts - lost, d->topo.hosts);
            break;
        }
        struct grouping g = {.source = SOURCE_MEASURED,
                             .level = layers_level(&d->layers, i),
                             .origin = mem_strdup(clue_name(l->clue))};
        g.of = mem_calloc((size_t)d->topo.hosts + 1, sizeof(*g.of));
        memcpy(g.of, l->of, (size_t)d->topo.hosts * sizeof(*g.of));
        for (int k = 0; k < l->groups; k++)
            MEM_PUSH(g.name, g.groups) = groups_fold(&d->topo, g.of, k) /* named by its hosts */;
        MEM_PUSH(d->grouping, d->groupings) = g;
    }
    d->measured = d->groupings;
    if (d->measured) {
        free(d->unmeasured);
        d->unmeasured = NULL;
    } else if (d->unmeasured)
        return;
    else if (!d->count)
        d->unmeasured = mem_strdup("no pair was measured");
    else if (d->layers.contradictions)
        d->unmeasured = mem_printf("pairs of hosts are fast and slow ones, but no groups: %d slow "
                                   "pairs lie between hosts that fast pairs join",
                                   d->layers.contradictions);
    else
        d->unmeasured =
            mem_printf("measuring tells no groups of the %d hosts apart", d->topo.hosts);
}

void declared_measured(struct declared *d, const struct topo *t, const char *path)
{
    for (int level = 0; level < LEVEL_COUNT; level++) {
        char **name;
        int groups;
        if (!groups_hosts(level) || !visible(t, level, true))
            continue;
        struct grouping g = {
            .source = SOURCE_MEASURED, .level = (enum level)level, .origin = mem_strdup("the fit")};
        g.of = groups_of_hosts(t, (enum level)level, &name, &groups);
        copy_names(&g, name, groups);
        hostlist_free(name, groups);
        MEM_PUSH(d->grouping, d->groupings) = g;
    }
    d->measured = d->groupings;
    if (!d->measured)
        d->unmeasured =
            mem_printf("%s has no coordinate that was measured: give the campaign's directory, "
                       "whose points are clustered anew",
                       path);
}

static struct grouping of_set(const struct declared *d, const struct group_set *s)
{
    struct grouping g = {
        .source = s->source, .level = s->level, .above = s->above, .origin = mem_strdup(s->origin)};

    g.of = group_set_of(s, &d->topo);
    for (int i = 0; i < s->groups; i++) {
        const struct declared_group *c = s->group[i];
        MEM_PUSH(g.name, g.groups) = mem_strdup(c->name);
        for (int h = 0; h < c->hosts; h++)
            if (topo_find_host(&d->topo, c->host[h]) < 0 && !g.strangers++)
                g.stranger = mem_strdup(c->host[h]);
    }
    return g;
}

static void add_sets(struct declared *d)
{
    int count;
    struct group_set *s = group_sets(&d->topo, &count);

    for (int i = 0; i < count; i++)
        if (groups_hosts(s[i].level)) {
            struct grouping g = of_set(d, &s[i]);
            MEM_PUSH(d->grouping, d->groupings) = g;
        }
    group_sets_free(s, count);
}

/* --- comparing --- */

/* Find the grouping in from..to-1 most like `a`, from another source or file; -1: none. */
static int most_alike(const struct declared *d, int a, int from, int to)
{
    const struct grouping *x = &d->grouping[a];
    double best = -1;
    int at = -1;

    for (int i = from; i < to; i++) {
        const struct grouping *y = &d->grouping[i];
        struct compared c;
        if (i == a || (x->source == y->source && !strcmp(x->origin, y->origin)))
            continue;
        grouping_compare(&c, x, y, d->topo.hosts);
        double alike =
            c.relation == RELATION_NONE ? -1 : c.together + (x->level == y->level) * 1e-3;
        if (alike > best) {
            best = alike;
            at = i;
        }
        compared_free(&c);
    }
    return at;
}

static bool has_comparison(const struct declared *d, int a, int b)
{
    for (int i = 0; i < d->comparisons; i++)
        if (d->comparison[i].a == b && d->comparison[i].b == a)
            return true;
    return false;
}

/* Returns the layer behind a measured grouping; NULL if it came from a matrix. */
static const struct host_layer *layer_of(const struct declared *d, int grouping)
{
    return grouping < d->measured && grouping < d->layers.count ? &d->layers.layer[grouping] : NULL;
}

/* Compare `host` with each host of its measured group: number of near ones, and their median. */
static char *evidence_of(const struct declared *d, const struct host_layer *l, int host)
{
    bool slow = l->clue == CLUE_LATENCY;
    enum op op = slow ? OP_PAIR_LATENCY : OP_PAIR_BW;
    double bytes = observe_size(d->obs, d->count, op), limit = sqrt(l->near * l->far);
    double *best = mem_calloc((size_t)d->topo.hosts + 1, sizeof(*best));
    int n = 0, near = 0;

    for (int i = 0; i < d->count; i++) {
        const struct obs *o = &d->obs[i];
        int x = topo_at(&d->topo, o->src, LEVEL_HOST), y = topo_at(&d->topo, o->dst, LEVEL_HOST),
            other = x == host ? y : x;
        double v = slow ? 1 / o->sec : o->bytes / o->sec;
        if (o->op == op && o->bytes == bytes && o->sec > 0 && x != y && (x == host || y == host) &&
            l->of[other] == l->of[host])
            best[other] = fmax(best[other], v);
    }
    for (int h = 0; h < d->topo.hosts; h++)
        if (best[h] > 0)
            best[n++] = best[h];
    for (int i = 0; i < n; i++)
        near += slow ? 1 / best[i] < limit : best[i] > limit;
    char text[UNITS_TEXT], *out = NULL;
    if (n) {
        double median = stats_median(best, n);
        out =
            mem_printf("%d of %d pairs at %s", near, n,
                       slow ? units_seconds_text(text, 1 / median) : units_rate_text(text, median));
    }
    free(best);
    return out;
}

static void find_evidence(const struct declared *d, struct comparison *c)
{
    const struct host_layer *l = c->b < d->measured ? layer_of(d, c->b) : NULL;

    c->evidence = mem_calloc((size_t)c->how.misfits + 1, sizeof(*c->evidence));
    for (int i = 0; l && i < c->how.misfits && i < EVIDENCE_MAX; i++)
        c->evidence[i] = evidence_of(d, l, c->how.misfit[i].host);
}

static void compare(struct declared *d, int a, int b)
{
    struct comparison c = {.a = a, .b = b};
    const struct grouping *x = &d->grouping[a], *y = &d->grouping[b];

    grouping_compare(&c.how, x, y, d->topo.hosts);
    c.differ = compared_differ(&c.how, x);
    find_evidence(d, &c);
    c.text = declared_sentence(d, &c);
    MEM_PUSH(d->comparison, d->comparisons) = c;
}

void declared_compare(struct declared *d)
{
    add_sets(d);
    for (int a = d->measured; a < d->groupings; a++) {
        int b = most_alike(d, a, 0, d->measured);
        if (b >= 0)
            compare(d, a, b);
    }
    for (int a = d->measured; a < d->groupings; a++) {
        int b = most_alike(d, a, d->measured, d->groupings);
        if (b >= 0 && !has_comparison(d, a, b))
            compare(d, a, b);
    }
}

void declared_free(struct declared *d)
{
    for (int i = 0; i < d->groupings; i++)
        grouping_free(&d->grouping[i]);
    free(d->grouping);
    for (int i = 0; i < d->comparisons; i++) {
        struct comparison *c = &d->comparison[i];
        for (int k = 0; k < c->how.misfits; k++)
            free(c->evidence[k]);
        free(c->evidence);
        free(c->text);
        compared_free(&c->how);
    }
    free(d->comparison);
    layers_free(&d->layers);
    free(d->obs);
    free(d->unmeasured);
    topo_free(&d->topo);
    memset(d, 0, sizeof(*d));
}
