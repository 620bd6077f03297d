/* SPDX-License-Identifier: BSD-3-Clause */
/* Racks, leaves and spines: found by clustering hosts if none are declared, otherwise compared. */
#include "fit/fit_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "fit/fit.h"
#include "topo/groups.h"

enum { HOSTS_MIN = 3, SHOWN = 16 };

/* Kind of the findings, and plural name of each level. */
static const char *const many[LEVEL_COUNT] = {[LEVEL_DOMAIN] = "domains",
                                              [LEVEL_LEAF] = "leaves",
                                              [LEVEL_RACK] = "racks",
                                              [LEVEL_SPINE] = "spines"};

/* Set the group of hosts that never answered to -2: they are exceptions already. */
static int set_silent_apart(struct fit *f, struct host_layer *l)
{
    bool *answered = mem_calloc((size_t)f->m->topo.hosts, sizeof(*answered));
    int left = 0;

    for (int i = 0; i < f->count; i++)
        if (f->obs[i].sec > 0)
            answered[topo_at(&f->m->topo, f->obs[i].src, LEVEL_HOST)] =
                answered[topo_at(&f->m->topo, f->obs[i].dst, LEVEL_HOST)] = true;
    for (int h = 0; h < f->m->topo.hosts; h++) {
        if (l->of[h] == -1 && !answered[h])
            l->of[h] = -2;
        left += l->of[h] == -1;
    }
    free(answered);
    return left;
}

static void say_unresolved(struct fit *f, struct host_layer *l, enum level level)
{
    if (!set_silent_apart(f, l))
        return;
    char *names = groups_fold(&f->m->topo, l->of, -1);
    matrix_find(f->m, many[level],
                "the %s of %s is unknown: none of their pairs is faster than pairs between %s, and "
                "neither latency nor shared traffic distinguishes a %s",
                level_name[level], names, many[level], level_name[level]);
    free(names);
}

static void say_found(struct fit *f, const struct host_layer *l, enum level level)
{
    char *text = mem_printf("%d %s found by %s%s", l->groups, many[level], clue_name(l->clue),
                            l->nvlink ? ", each an NVLink domain" : "");

    for (int g = 0; g < l->groups && g < SHOWN; g++) {
        char *names = groups_fold(&f->m->topo, l->of, g), *longer;
        longer = mem_printf("%s%s %.200s", text, g ? ";" : ":", names);
        free(names);
        free(text);
        text = longer;
    }
    matrix_find(f->m, many[level], "%s%s", text, l->groups > SHOWN ? "; ..." : "");
    free(text);
}

static void set_level(struct topo *t, const struct host_layer *l, enum level level)
{
    char name[32];

    topo_clear_level(t, level);
    for (int g = 0; g < l->groups; g++) {
        snprintf(name, sizeof(name), "%s-%02d", level_name[level], g);
        topo_add_group(t, level, name);
    }
    for (int i = 0; i < t->endpoints; i++) {
        int g = l->of[topo_at(t, i, LEVEL_HOST)];
        t->endpoint[i].place.at[level] = g < 0 ? -1 : g;
        t->endpoint[i].source[level] = g < 0 ? SOURCE_NONE : SOURCE_MEASURED;
    }
}

/* Insert a tier before the last tier. */
static void add_tier(struct topo *t, const char *name, enum level level)
{
    t->tier[t->tiers] = t->tier[t->tiers - 1];
    t->tier[t->tiers - 1] = (struct tier_rule){"", 1u << level};
    snprintf(t->tier[t->tiers - 1].name, sizeof(t->tier[0].name), "%s", name);
    snprintf(t->tier[t->tiers].name, sizeof(t->tier[0].name), "fabric");
    t->tiers++;
}

/* Turn the found groups into coordinates and a tier. */
static void apply(struct fit *f, struct host_layer *l, enum level level)
{
    struct topo *t = &f->m->topo;
    enum level tier = l->nvlink && !t->group[LEVEL_DOMAIN].count ? LEVEL_DOMAIN : level;

    if (t->tiers >= TIER_MAX)
        return;
    set_level(t, l, level);
    if (tier != level)
        set_level(t, l, tier);
    add_tier(t, tier == LEVEL_DOMAIN ? "mnnvl" : level_name[tier], tier);
    say_found(f, l, level);
    say_unresolved(f, l, level);
}

/* Turn leaves of rails into coordinates of endpoints and a tier: endpoints of the same rail on hosts that the layer
 * joins, or on any hosts. */
static void apply_rails(struct fit *f, const struct host_rails *r, const struct host_layer *reach)
{
    struct topo *t = &f->m->topo;
    char name[32];

    if (t->tiers >= TIER_MAX || t->group[LEVEL_LEAF].count)
        return;
    for (int i = 0; i < t->endpoints; i++) {
        int rail = host_rails_of(r, t, i),
            g = reach ? reach->of[topo_at(&f->m->topo, i, LEVEL_HOST)] : 0;
        if (rail < 0 || g < 0)
            continue;
        snprintf(name, sizeof(name), "leaf-%02d-%d", g, rail);
        t->endpoint[i].place.at[LEVEL_LEAF] = topo_add_group(t, LEVEL_LEAF, name);
        t->endpoint[i].source[LEVEL_LEAF] = SOURCE_MEASURED;
    }
    add_tier(t, "rail", LEVEL_LEAF);
    matrix_find(f->m, many[LEVEL_LEAF],
                "%d leaves found by latency: endpoints with %s on their hosts are nearer to each "
                "other than to others",
                t->group[LEVEL_LEAF].count,
                r->count == t->host[0].endpoints ? "the same number" : "numbers of the same rail");
}

/* Apply layers from the inside out; if leaves join only endpoints of a rail, leaves come first. */
static void apply_all(struct fit *f, struct layers *l)
{
    for (int i = 0; i <= l->count; i++) {
        bool rails = l->rails.region == i;
        if (rails)
            apply_rails(f, &l->rails, i < l->count ? &l->layer[i] : NULL);
        if (i < l->count && !l->layer[i].only_leaves)
            apply(f, &l->layer[i], layers_level(l, i));
    }
}

/* Declared group of each host; -1: not visible. */
static int *declared(const struct fit *f, enum level level)
{
    int *rack = mem_calloc((size_t)f->m->topo.hosts, sizeof(*rack));

    for (int h = 0; h < f->m->topo.hosts; h++)
        rack[h] = -1;
    for (int i = 0; i < f->m->topo.endpoints; i++)
        rack[topo_at(&f->m->topo, i, LEVEL_HOST)] = topo_at(&f->m->topo, i, level);
    return rack;
}

/* Count hosts whose group mostly belongs to another declared rack (majority: Boyer & Moore 1981). */
static int misfits(const struct fit *f, const struct host_layer *c, const int *rack, int *first,
                   int *image)
{
    int *votes = mem_calloc((size_t)c->groups, sizeof(*votes)), count = 0;

    for (int h = 0; h < f->m->topo.hosts; h++) {
        int g = c->of[h];
        if (g < 0 || rack[h] < 0)
            continue;
        if (votes[g] == 0)
            image[g] = rack[h];
        votes[g] += image[g] == rack[h] ? 1 : -1;
    }
    for (int h = f->m->topo.hosts - 1; h >= 0; h--)
        if (c->of[h] >= 0 && rack[h] >= 0 && image[c->of[h]] != rack[h]) {
            count++;
            *first = h;
        }
    free(votes);
    return count;
}

/* --- hosts with a wrong declaration move to their measured group before parts are judged: otherwise all pairs of
 * such a host would look slow, or fast --- */

static const double moved_most =
    0.25; /* share of hosts: above this the declaration is of another machine */
enum {
    MOVED_PEERS = 2
}; /* hosts of its measured group with that declaration: a single host may be wrong itself */

/* A host whose declared group differs from its measured group. */
struct misplaced {
    int host, peer, mate; /* peer: of the measured group; mate: of the declared one, -1: none */
};

/* Return a host h of measured group g that is declared in rack `in`; peers: number of such hosts. */
static int host_in(const struct fit *f, const struct host_layer *l, const int *rack, int g, int in,
                   int *peers)
{
    int first = -1;

    *peers = 0;
    for (int h = 0; h < f->m->topo.hosts; h++)
        if (l->of[h] == g && rack[h] == in && !(*peers)++)
            first = h;
    return first;
}

/* Return a host that is both measured and declared in rack `in`; -1: none. */
static int host_at_home(const struct fit *f, const struct host_layer *l, const int *rack,
                        const int *image, int in)
{
    for (int h = 0; h < f->m->topo.hosts; h++)
        if (rack[h] == in && l->of[h] >= 0 && image[l->of[h]] == in)
            return h;
    return -1;
}

static struct misplaced *find_misplaced(const struct fit *f, const struct host_layer *l,
                                        const int *rack, const int *image, int *n)
{
    struct misplaced *v = NULL;
    int peers;

    *n = 0;
    for (int h = 0; h < f->m->topo.hosts; h++) {
        int g = l->of[h];
        if (g < 0 || rack[h] < 0 || image[g] == rack[h])
            continue;
        struct misplaced x = {h, host_in(f, l, rack, g, image[g], &peers),
                              host_at_home(f, l, rack, image, rack[h])};
        if (peers >= MOVED_PEERS)
            MEM_PUSH(v, *n) = x;
    }
    return v;
}

/* Return the endpoint with this number on a host; -1: none. */
static int endpoint_on(const struct topo *t, int host, int local)
{
    for (int i = 0; i < t->endpoints && host >= 0; i++)
        if (topo_at(t, i, LEVEL_HOST) == host && t->endpoint[i].local == local)
            return i;
    return -1;
}

/* Move a host: coordinates shared with the declared rack become those of the measured rack.  Other coordinates have
 * another source and are kept. */
static void move_host(struct topo *t, const struct misplaced *x)
{
    static const enum level levels[] = {LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_RACK, LEVEL_SPINE};

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        int peer, mate;
        if (e->place.at[LEVEL_HOST] != x->host)
            continue;
        peer = endpoint_on(t, x->peer, e->local);
        mate = endpoint_on(t, x->mate, e->local);
        for (size_t k = 0; k < sizeof(levels) / sizeof(*levels) && peer >= 0; k++)
            if (mate < 0 || e->place.at[levels[k]] == topo_at(t, mate, levels[k]))
                e->place.at[levels[k]] = topo_at(t, peer, levels[k]);
    }
}

static void say_moved(struct fit *f, const struct misplaced *v, int n, enum level level,
                      const int *rack)
{
    const struct topo *t = &f->m->topo;
    char *const *name = t->group[level].name, *text = NULL;

    for (int i = 0; i < n && i < SHOWN; i++)
        text = mem_append(text, "%shost %s is measured in %s, declared in %s", i ? "; " : "",
                          t->host[v[i].host].name, name[rack[v[i].peer]], name[rack[v[i].host]]);
    matrix_find(f->m, many[level], "%s%s: the declaration is wrong; the measured %s used", text,
                n > SHOWN ? "; ..." : "", n == 1 ? "group is" : "groups are");
    free(text);
}

/* Returns true if the hosts that differ were moved. */
static bool resolve(struct fit *f, const struct host_layer *l, enum level level, const int *rack,
                    const int *image, int differ)
{
    int n;
    struct misplaced *v = find_misplaced(f, l, rack, image, &n);
    bool sure = n == differ && differ <= moved_most * f->m->topo.hosts;

    for (int i = 0; i < n && sure; i++)
        move_host(&f->m->topo, &v[i]);
    if (sure)
        say_moved(f, v, n, level, rack);
    free(v);
    return sure;
}

static void compare(struct fit *f, const struct host_layer *l, enum level level)
{
    const struct topo *t = &f->m->topo;
    int *rack = declared(f, level), *image = mem_calloc((size_t)l->groups, sizeof(*image)),
        first = 0, racks = t->group[level].count;
    int differ = misfits(f, l, rack, &first, image);
    char *const *name = t->group[level].name;

    if (groups_nested(rack, racks, l->of, t->hosts)) { /* several may measure alike */
        if (l->groups == racks)
            matrix_find(f->m, many[level],
                        "%d %s: the measured groups of hosts are the declared ones", l->groups,
                        many[level]);
    } else if (differ && resolve(f, l, level, rack, image, differ)) {
    } else if (differ) {
        matrix_find(f->m, many[level],
                    "%d host%s in another %s by measurement than declared, the first is %s: "
                    "declared %s, measured with %s; the declared %s are used",
                    differ, differ == 1 ? " is" : "s are", level_name[level], t->host[first].name,
                    name[rack[first]], name[image[l->of[first]]], many[level]);
    } else {
        matrix_find(f->m, many[level],
                    "%d %s are declared, %d groups measured: some %s consist of several", racks,
                    many[level], l->groups, many[level]);
    }
    free(rack);
    free(image);
}

static bool blind(const struct topo *t)
{
    for (int l = LEVEL_DOMAIN; l < LEVEL_COUNT; l++)
        if (t->group[l].count)
            return false;
    return true;
}

/* Declared groups that can form spines, from the first level with enough groups.  The caller frees the list.  NULL:
 * none. */
static int *declared_units(const struct topo *t)
{
    static const enum level order[] = {LEVEL_RACK, LEVEL_DOMAIN, LEVEL_LEAF};
    char **name;
    int groups;

    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        int *of = groups_of_hosts(t, order[i], &name, &groups);
        hostlist_free(name, groups);
        if (groups >= HOSTS_MIN && groups < t->hosts)
            return of;
        free(of);
    }
    return NULL;
}

/* Compare declared spines with the outermost layer; if none are declared, search for spines in pairs between racks. */
static void find_spines(struct fit *f, const struct layers *inner)
{
    struct topo *t = &f->m->topo;
    bool known = t->group[LEVEL_SPINE].count > 0;
    int *unit = inner->count ? NULL : declared_units(t);
    struct layers l;

    if (!inner->count && !unit)
        return;
    layers_find(&l, t, f->obs, f->count, unit ? unit : inner->layer[0].of, !known);
    if (known && l.count)
        compare(f, &l.layer[l.count - 1], LEVEL_SPINE);
    else if (l.count)
        apply(f, &l.layer[0], LEVEL_SPINE);
    layers_free(&l);
    free(unit);
}

void fit_racks(struct fit *f)
{
    struct topo *t = &f->m->topo;
    struct layers l;

    if (t->hosts < HOSTS_MIN)
        return;
    layers_find(&l, t, f->obs, f->count, NULL, false);
    if (blind(t)) {
        apply_all(f, &l);
    } else {
        if (l.count && t->group[LEVEL_RACK].count)
            compare(f, &l.layer[0], LEVEL_RACK);
        else if (l.count)
            apply(f, &l.layer[0], LEVEL_RACK);
        find_spines(f, &l);
    }
    f->contradictions = l.contradictions;
    layers_free(&l);
}
