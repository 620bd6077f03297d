/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"

static bool same_set(const struct declared_group *g, const struct group_set *s)
{
    return g->source == s->source && g->level == s->level && g->above == s->above &&
           !strcmp(g->origin, s->origin);
}

static void add_host(struct topo *t, const struct group_set *s, const char *name, const char *host)
{
    for (int i = t->declared_groups - 1; i >= 0; i--) { /* most likely the last one */
        struct declared_group *g = &t->declared_group[i];
        if (same_set(g, s) && !strcmp(g->name, name)) {
            MEM_PUSH(g->host, g->hosts) = mem_strdup(host);
            return;
        }
    }
    group_add(t, s->source, s->level, s->origin, name, (char *[]){(char *)host}, 1);
    t->declared_group[t->declared_groups - 1].above = s->above;
}

void group_add_host(struct topo *t, enum source source, enum level level, const char *origin,
                    const char *name, const char *host)
{
    add_host(t, &(struct group_set){.source = source, .level = level, .origin = origin}, name,
             host);
}

void group_add_above(struct topo *t, enum source source, int above, const char *origin,
                     const char *name, const char *host)
{
    add_host(t,
             &(struct group_set){
                 .source = source, .level = LEVEL_SPINE, .above = above, .origin = origin},
             name, host);
}

void groups_drop_whole(struct topo *t, enum source source, const char *origin)
{
    int kept = 0;

    for (int i = 0; i < t->declared_groups; i++) {
        struct group_set s = {.source = source,
                              .level = LEVEL_SPINE,
                              .above = t->declared_group[i].above,
                              .origin = origin};
        int groups = 0;
        for (int k = 0;
             k < t->declared_groups && s.above && same_set(&t->declared_group[i], &s) && groups < 2;
             k++)
            groups += (k < kept || k >= i) && same_set(&t->declared_group[k], &s);
        if (groups == 1)
            group_free(&t->declared_group[i]);
        else
            t->declared_group[kept++] = t->declared_group[i];
    }
    t->declared_groups = kept;
}

struct group_set *group_sets(const struct topo *t, int *count)
{
    struct group_set *s = NULL;
    int n = 0;

    for (int i = 0; i < t->declared_groups; i++) {
        const struct declared_group *g = &t->declared_group[i];
        int k = n - 1;
        while (k >= 0 && !same_set(g, &s[k]))
            k--;
        if (k < 0) {
            k = n;
            MEM_PUSH(s, n) = (struct group_set){
                .source = g->source, .level = g->level, .above = g->above, .origin = g->origin};
        }
        MEM_PUSH(s[k].group, s[k].groups) = g;
    }
    *count = n;
    return s;
}

void group_sets_free(struct group_set *s, int count)
{
    for (int i = 0; i < count; i++)
        free(s[i].group);
    free(s);
}

int *group_set_of(const struct group_set *s, const struct topo *t)
{
    int *of = mem_ints(t->hosts, -1);

    for (int i = 0; i < s->groups; i++)
        for (int k = 0; k < s->group[i]->hosts; k++) {
            int h = topo_find_host(t, s->group[i]->host[k]);
            if (h >= 0 && of[h] < 0)
                of[h] = i;
        }
    return of;
}

/* Sets of one level (or, if wide, above the spine) by source and height.  The nested loops are
 * cheap: sets are few. */
static struct group_set *pick(const struct topo *t, int *count, enum level level, bool wide)
{
    int all, n = 0, top = 0;
    struct group_set *s = group_sets(t, &all), *at = mem_calloc((size_t)all + 1, sizeof(*at));

    for (int i = 0; i < all; i++)
        top = s[i].above > top ? s[i].above : top;
    for (int source = 0; source < SOURCE_COUNT; source++)
        for (int above = wide ? 1 : 0; above <= (wide ? top : 0); above++)
            for (int i = 0; i < all; i++)
                if ((int)s[i].source == source && s[i].level == level && s[i].above == above) {
                    at[n++] = s[i];
                    s[i].group = NULL;
                }
    group_sets_free(s, all);
    *count = n;
    return at;
}

struct group_set *group_sets_at(const struct topo *t, enum level level, int *count)
{
    return pick(t, count, level, false);
}

struct group_set *group_sets_above(const struct topo *t, int *count)
{
    return pick(t, count, LEVEL_SPINE, true);
}

void groups_add_hosts(struct topo *t)
{
    for (int i = 0; i < t->declared_groups; i++)
        for (int k = 0; k < t->declared_group[i].hosts; k++)
            topo_add_host(t, t->declared_group[i].host[k]);
}

/* --- hosts at a level: coordinates first, then declarations --- */

enum { NOWHERE = -1, SEVERAL = -2 };

struct work {
    const struct topo *t;
    enum level level;
    struct names words; /* names of groups */
    int *of;            /* index into words, or NOWHERE */
};

static int group(struct work *w, const char *name)
{
    return names_add(&w->words, name);
}

/* Coordinate of each host; NOWHERE, or SEVERAL if its endpoints differ. */
static int *held_by(const struct topo *t, enum level level)
{
    int *held = mem_ints(t->hosts, NOWHERE);

    for (int i = 0; i < t->endpoints; i++) {
        int at = t->endpoint[i].place.at[level], *h = &held[t->endpoint[i].place.at[LEVEL_HOST]];
        if (at >= 0)
            *h = *h == NOWHERE || *h == at ? at : SEVERAL;
    }
    return held;
}

/* Source of each host's coordinate at the level. */
static int *tellers(const struct topo *t, enum level level)
{
    int *source = mem_calloc((size_t)t->hosts + 1, sizeof(*source));

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[level] >= 0)
            source[t->endpoint[i].place.at[LEVEL_HOST]] = t->endpoint[i].source[level];
    return source;
}

/* Place of each group of the set: where more than half of its placed hosts are; NOWHERE: no host
 * is placed; SEVERAL: no majority.  The caller frees. */
static int *places(const struct group_set *s, const int *member, const int *of, int hosts)
{
    int *place = mem_calloc((size_t)s->groups + 1, sizeof(*place)),
        *lead = mem_calloc((size_t)s->groups + 1, sizeof(*lead)),
        *votes = mem_calloc((size_t)s->groups + 1, sizeof(*votes)),
        *known = mem_calloc((size_t)s->groups + 1, sizeof(*known));

    for (int h = 0; h < hosts; h++) { /* majority vote: leaves the only candidate */
        int c = member[h];
        if (c < 0 || of[h] == NOWHERE)
            continue;
        known[c]++;
        place[c] = lead[c] ? place[c] : of[h];
        lead[c] += place[c] == of[h] ? 1 : -1;
    }
    for (int h = 0; h < hosts; h++)
        if (member[h] >= 0 && of[h] != NOWHERE)
            votes[member[h]] += of[h] == place[member[h]];
    for (int c = 0; c < s->groups; c++)
        place[c] = !known[c] ? NOWHERE : 2 * votes[c] > known[c] ? place[c] : SEVERAL;
    free(lead);
    free(votes);
    free(known);
    return place;
}

/* --- groups --- */

/* Place the hosts of the set that have no group yet: where the other hosts of their declared
 * group are, else in that group.  teller: only hosts whose coordinates have the set's source;
 * NULL: all. */
static void take_declared(struct work *w, const struct group_set *s, const int *teller)
{
    int *member = group_set_of(s, w->t), *place = places(s, member, w->of, w->t->hosts);

    for (int h = 0; h < w->t->hosts; h++) {
        int c = member[h];
        if (c >= 0 && w->of[h] == NOWHERE && place[c] != SEVERAL &&
            (!teller || teller[h] == (int)s->source))
            w->of[h] = place[c] >= 0 ? place[c] : group(w, s->group[c]->name);
    }
    free(place);
    free(member);
}

/* "leaf-0", "leaf-0..leaf-3 (4)" */
static char *name_of(const struct work *w, const struct leaf_groups *g, int number)
{
    char **name = w->t->group[w->level].name;
    int first = -1, last = -1, n = 0;

    for (int l = 0; l < g->leaves; l++)
        if (g->of_leaf[l] == number) {
            first = first < 0 ? l : first;
            last = l;
            n++;
        }
    return n == 1 ? mem_strdup(name[first]) : mem_printf("%s..%s (%d)", name[first], name[last], n);
}

/* Place the remaining hosts by their coordinates. */
static void take_coordinates(struct work *w)
{
    const struct topo *t = w->t;
    struct leaf_link *port = NULL;
    struct leaf_groups g;
    int ports = 0;

    for (int i = 0; i < t->endpoints; i++) {
        const int *at = t->endpoint[i].place.at;
        if (at[w->level] >= 0 && w->of[at[LEVEL_HOST]] == NOWHERE)
            MEM_PUSH(port, ports) = (struct leaf_link){at[LEVEL_HOST], at[w->level]};
    }
    leaf_groups_make(&g, port, ports);
    char **name = mem_calloc((size_t)g.groups + 1, sizeof(*name));
    for (int i = 0; i < g.groups; i++)
        name[i] = name_of(w, &g, i);
    for (int h = 0; h < g.hosts; h++)
        if (g.of_host[h] >= 0)
            w->of[h] = group(w, name[g.of_host[h]]);
    for (int i = 0; i < g.groups; i++)
        free(name[i]);
    free(name);
    free(port);
    leaf_groups_free(&g);
}

/* Number groups and names in the order of the hosts. */
static int *in_order(struct work *w, char ***name, int *groups)
{
    int words = w->words.count;
    int *to = mem_calloc((size_t)words + 1, sizeof(*to));

    *name = NULL;
    *groups = 0;
    for (int h = 0; h < w->t->hosts; h++) {
        if (w->of[h] < 0)
            continue;
        if (!to[w->of[h]]) {
            MEM_PUSH(*name, *groups) = mem_strdup(w->words.name[w->of[h]]);
            to[w->of[h]] = *groups;
        }
        w->of[h] = to[w->of[h]] - 1;
    }
    free(to);
    return w->of;
}

int *groups_of_hosts(const struct topo *t, enum level level, char ***name, int *groups)
{
    struct work w = {.t = t, .level = level, .of = mem_ints(t->hosts, NOWHERE)};
    int *teller = tellers(t, level), sets;
    struct group_set *s = group_sets_at(t, level, &sets);

    for (int i = 0; i < sets; i++)
        take_declared(&w, &s[i], teller);
    take_coordinates(&w);
    for (int i = 0; i < sets; i++)
        take_declared(&w, &s[i], NULL);
    group_sets_free(s, sets);
    free(teller);
    int *of = in_order(&w, name, groups);
    names_free(&w.words);
    return of;
}

char *groups_fold(const struct topo *t, const int *of, int g)
{
    char **name = mem_calloc((size_t)t->hosts + 1, sizeof(*name));
    int n = 0;

    for (int h = 0; h < t->hosts; h++)
        if (of[h] == g)
            name[n++] = t->host[h].name;
    char *text = n ? hostlist_fold(name, n) : mem_strdup("");
    free(name);
    return text;
}

bool groups_nested(const int *x, int groups, const int *y, int n)
{
    int *in = mem_calloc((size_t)groups + 1, sizeof(*in)); /* group of y + 1; 0: none yet */
    bool good = true;

    for (int i = 0; i < n; i++)
        if (x[i] >= 0 && y[i] >= 0) {
            good = good && (!in[x[i]] || in[x[i]] == y[i] + 1);
            in[x[i]] = y[i] + 1;
        }
    free(in);
    return good;
}

int groups_shared(const int *of, int n, int groups)
{
    int *size = mem_calloc((size_t)groups + 1, sizeof(*size)), several = 0;

    for (int i = 0; i < n; i++)
        several += of[i] >= 0 && ++size[of[i]] == 2;
    free(size);
    return several;
}

enum source groups_source(const struct topo *t, enum level level)
{
    enum source first = SOURCE_NONE;

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[level] >= 0)
            return (enum source)t->endpoint[i].source[level];
    for (int i = 0; i < t->declared_groups; i++)
        if (t->declared_group[i].level == level && !t->declared_group[i].above &&
            (!first || t->declared_group[i].source < first))
            first = t->declared_group[i].source;
    return first;
}

/* --- declared groups as coordinates --- */

/* Give coordinates to hosts whose endpoints have none at the level. */
static bool apply(struct topo *t, const struct group_set *s)
{
    int *held = held_by(t, s->level), *member = group_set_of(s, t);
    int *place = places(s, member, held, t->hosts);
    bool changed = false;

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        int h = e->place.at[LEVEL_HOST], c = member[h];
        if (c < 0 || held[h] != NOWHERE || place[c] == SEVERAL)
            continue;
        e->place.at[s->level] =
            place[c] >= 0 ? place[c] : topo_add_group(t, s->level, s->group[c]->name);
        e->source[s->level] = (unsigned char)s->source;
        changed = true;
    }
    free(place);
    free(member);
    free(held);
    return changed;
}

void groups_apply(struct topo *t)
{
    static const enum level order[] = {LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_RACK, LEVEL_RAIL,
                                       LEVEL_SPINE};
    bool changed = false;

    for (size_t l = 0; l < sizeof(order) / sizeof(*order); l++) {
        int sets;
        struct group_set *s = group_sets_at(t, order[l], &sets);
        for (int i = 0; i < sets; i++)
            changed |= apply(t, &s[i]);
        group_sets_free(s, sets);
    }
    if (changed)
        topo_default_tiers(t);
}
