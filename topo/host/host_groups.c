/* SPDX-License-Identifier: BSD-3-Clause */
/* host_groups.c - the hosts at a level as groups: what coordinates say, then what is claimed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "topo/claim.h"
#include "topo/net/leaf_groups.h"

enum { NOWHERE = -1, SEVERAL = -2 };

struct work {
    const struct topo *t;
    enum level level;
    struct topo words; /* LEVEL_LEAF: names of groups */
    int *of;           /* index into words, NOWHERE */
};

static int group(struct work *w, const char *name)
{
    return topo_add_group(&w->words, LEVEL_LEAF, name);
}

/* The coordinate of each host: NOWHERE, or SEVERAL. */
static int *held_by(const struct topo *t, enum level level)
{
    int *held = mem_calloc((size_t)t->hosts + 1, sizeof(*held));

    for (int h = 0; h < t->hosts; h++)
        held[h] = NOWHERE;
    for (int i = 0; i < t->endpoints; i++) {
        int at = t->endpoint[i].place.at[level], *h = &held[t->endpoint[i].place.at[LEVEL_HOST]];
        if (at >= 0)
            *h = *h == NOWHERE || *h == at ? at : SEVERAL;
    }
    return held;
}

/* Who told the level of each host. */
static int *tellers(const struct topo *t, enum level level)
{
    int *source = mem_calloc((size_t)t->hosts + 1, sizeof(*source));

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[level] >= 0)
            source[t->endpoint[i].place.at[LEVEL_HOST]] = t->endpoint[i].source[level];
    return source;
}

/* By claim of the set: where most of its hosts are that are somewhere; NOWHERE: none of them is,
 * SEVERAL: not one place.  The caller frees. */
static int *places(const struct claim_set *s, const int *claim, const int *of, int hosts)
{
    int *place = mem_calloc((size_t)s->claims + 1, sizeof(*place)),
        *lead = mem_calloc((size_t)s->claims + 1, sizeof(*lead)),
        *votes = mem_calloc((size_t)s->claims + 1, sizeof(*votes)),
        *known = mem_calloc((size_t)s->claims + 1, sizeof(*known));

    for (int h = 0; h < hosts; h++) { /* the only place that can have more than half */
        int c = claim[h];
        if (c < 0 || of[h] == NOWHERE)
            continue;
        known[c]++;
        place[c] = lead[c] ? place[c] : of[h];
        lead[c] += place[c] == of[h] ? 1 : -1;
    }
    for (int h = 0; h < hosts; h++)
        if (claim[h] >= 0 && of[h] != NOWHERE)
            votes[claim[h]] += of[h] == place[claim[h]];
    for (int c = 0; c < s->claims; c++)
        place[c] = !known[c] ? NOWHERE : 2 * votes[c] > known[c] ? place[c] : SEVERAL;
    free(lead);
    free(votes);
    free(known);
    return place;
}

/* --- groups --- */

/* Hosts of the set that are in no group yet: where the others of their claimed group are, else that
 * group.  teller: only those whose coordinates are from the set's source; NULL: all. */
static void take_claimed(struct work *w, const struct claim_set *s, const int *teller)
{
    int *claim = claim_set_of(s, w->t), *place = places(s, claim, w->of, w->t->hosts);

    for (int h = 0; h < w->t->hosts; h++) {
        int c = claim[h];
        if (c >= 0 && w->of[h] == NOWHERE && place[c] != SEVERAL &&
            (!teller || teller[h] == (int)s->source))
            w->of[h] = place[c] >= 0 ? place[c] : group(w, s->claim[c]->group);
    }
    free(place);
    free(claim);
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

/* The others where their coordinates say. */
static void take_coordinates(struct work *w)
{
    const struct topo *t = w->t;
    struct leaf_seat *seat = NULL;
    struct leaf_groups g;
    int seats = 0;

    for (int i = 0; i < t->endpoints; i++) {
        const int *at = t->endpoint[i].place.at;
        if (at[w->level] >= 0 && w->of[at[LEVEL_HOST]] == NOWHERE)
            MEM_PUSH(seat, seats) = (struct leaf_seat){at[LEVEL_HOST], at[w->level]};
    }
    leaf_groups_make(&g, seat, seats);
    char **name = mem_calloc((size_t)g.groups + 1, sizeof(*name));
    for (int i = 0; i < g.groups; i++)
        name[i] = name_of(w, &g, i);
    for (int h = 0; h < g.hosts; h++)
        if (g.of_host[h] >= 0)
            w->of[h] = group(w, name[g.of_host[h]]);
    for (int i = 0; i < g.groups; i++)
        free(name[i]);
    free(name);
    free(seat);
    leaf_groups_free(&g);
}

/* Numbers and names in the order of the hosts. */
static int *in_order(struct work *w, char ***name, int *groups)
{
    int words = w->words.group[LEVEL_LEAF].count;
    int *to = mem_calloc((size_t)words + 1, sizeof(*to));

    *name = NULL;
    *groups = 0;
    for (int h = 0; h < w->t->hosts; h++) {
        if (w->of[h] < 0)
            continue;
        if (!to[w->of[h]]) {
            MEM_PUSH(*name, *groups) = mem_strdup(w->words.group[LEVEL_LEAF].name[w->of[h]]);
            to[w->of[h]] = *groups;
        }
        w->of[h] = to[w->of[h]] - 1;
    }
    free(to);
    return w->of;
}

int *topo_host_groups(const struct topo *t, enum level level, char ***name, int *groups)
{
    struct work w = {.t = t, .level = level};
    int *teller = tellers(t, level), sets;
    struct claim_set *s = claim_sets_at(t, level, &sets);

    topo_init(&w.words);
    w.of = mem_calloc((size_t)t->hosts + 1, sizeof(*w.of));
    for (int h = 0; h < t->hosts; h++)
        w.of[h] = NOWHERE;
    for (int i = 0; i < sets; i++)
        take_claimed(&w, &s[i], teller);
    take_coordinates(&w);
    for (int i = 0; i < sets; i++)
        take_claimed(&w, &s[i], NULL);
    claim_sets_free(s, sets);
    free(teller);
    int *of = in_order(&w, name, groups);
    topo_free(&w.words);
    return of;
}

enum source topo_source_at(const struct topo *t, enum level level)
{
    enum source first = SOURCE_NONE;

    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[level] >= 0)
            return (enum source)t->endpoint[i].source[level];
    for (int i = 0; i < t->claims; i++)
        if (t->claim[i].level == level && !t->claim[i].above &&
            (!first || t->claim[i].source < first))
            first = t->claim[i].source;
    return first;
}

/* --- claims as coordinates --- */

/* Of hosts of which nobody knows any. */
static bool apply(struct topo *t, const struct claim_set *s)
{
    int *held = held_by(t, s->level), *claim = claim_set_of(s, t);
    int *place = places(s, claim, held, t->hosts);
    bool changed = false;

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        int h = e->place.at[LEVEL_HOST], c = claim[h];
        if (c < 0 || held[h] != NOWHERE || place[c] == SEVERAL)
            continue;
        e->place.at[s->level] =
            place[c] >= 0 ? place[c] : topo_add_group(t, s->level, s->claim[c]->group);
        e->source[s->level] = (unsigned char)s->source;
        changed = true;
    }
    free(place);
    free(claim);
    free(held);
    return changed;
}

void claims_apply(struct topo *t)
{
    static const enum level order[] = {LEVEL_DOMAIN, LEVEL_LEAF, LEVEL_RACK, LEVEL_RAIL,
                                       LEVEL_SPINE};
    bool changed = false;

    for (size_t l = 0; l < sizeof(order) / sizeof(*order); l++) {
        int sets;
        struct claim_set *s = claim_sets_at(t, order[l], &sets);
        for (int i = 0; i < sets; i++)
            changed |= apply(t, &s[i]);
        claim_sets_free(s, sets);
    }
    if (changed)
        topo_default_tiers(t);
}
