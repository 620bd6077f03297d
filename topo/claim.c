/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/claim.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void claim_free(struct claim *c)
{
    for (int i = 0; i < c->hosts; i++)
        free(c->host[i]);
    free(c->host);
    free(c->origin);
    free(c->group);
}

int claim_name_check(const char *host, const char *where, struct err *err)
{
    if (topo_text_check(host, 255, where, err) < 0)
        return -1;
    if (strpbrk(host, "[],"))
        return err_data(err, "%s: host \"%.100s\" has a bracket or a comma in its name", where,
                        host);
    return 0;
}

void claim_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *group, char *const *host, int hosts)
{
    struct claim c = {source, level, mem_strdup(origin), mem_strdup(group), NULL, 0};

    for (int i = 0; i < hosts; i++)
        MEM_PUSH(c.host, c.hosts) = mem_strdup(host[i]);
    MEM_PUSH(t->claim, t->claims) = c;
}

static bool same_set(const struct claim *c, enum source source, enum level level,
                     const char *origin)
{
    return c->source == source && c->level == level && !strcmp(c->origin, origin);
}

void claim_host(struct topo *t, enum source source, enum level level, const char *origin,
                const char *group, const char *host)
{
    for (int i = t->claims - 1; i >= 0; i--) { /* most likely the last one */
        struct claim *c = &t->claim[i];
        if (same_set(c, source, level, origin) && !strcmp(c->group, group)) {
            MEM_PUSH(c->host, c->hosts) = mem_strdup(host);
            return;
        }
    }
    claim_add(t, source, level, origin, group, (char *[]){(char *)host}, 1);
}

struct claim_set *claim_sets(const struct topo *t, int *count)
{
    struct claim_set *s = NULL;
    int n = 0;

    for (int i = 0; i < t->claims; i++) {
        const struct claim *c = &t->claim[i];
        int k = n - 1;
        while (k >= 0 && !same_set(c, s[k].source, s[k].level, s[k].origin))
            k--;
        if (k < 0) {
            k = n;
            MEM_PUSH(s, n) = (struct claim_set){c->source, c->level, c->origin, NULL, 0};
        }
        MEM_PUSH(s[k].claim, s[k].claims) = c;
    }
    *count = n;
    return s;
}

void claim_sets_free(struct claim_set *s, int count)
{
    for (int i = 0; i < count; i++)
        free(s[i].claim);
    free(s);
}

int *claim_set_of(const struct claim_set *s, const struct topo *t)
{
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int h = 0; h < t->hosts; h++)
        of[h] = -1;
    for (int i = 0; i < s->claims; i++)
        for (int k = 0; k < s->claim[i]->hosts; k++) {
            int h = topo_find_host(t, s->claim[i]->host[k]);
            if (h >= 0 && of[h] < 0)
                of[h] = i;
        }
    return of;
}

/* --- coordinates as groups of hosts --- */

struct seen { /* a host and one coordinate of its endpoints */
    int host, at;
};

static int by_host(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;

    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Coordinates of each host, sorted, each once; *count of them. */
static struct seen *coordinates(const struct topo *t, enum level level, int *count)
{
    struct seen *v = mem_calloc((size_t)t->endpoints + 1, sizeof(*v));
    int n = 0, kept = 0;

    for (int i = 0; i < t->endpoints; i++) {
        const struct place *p = &t->endpoint[i].place;
        if (p->at[level] >= 0)
            v[n++] = (struct seen){p->at[LEVEL_HOST], p->at[level]};
    }
    qsort(v, (size_t)n, sizeof(*v), by_host);
    for (int i = 0; i < n; i++)
        if (!kept || by_host(&v[kept - 1], &v[i]) != 0)
            v[kept++] = v[i];
    *count = kept;
    return v;
}

int *topo_host_groups(const struct topo *t, enum level level, char ***name, int *groups)
{
    int n, *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));
    struct seen *v = coordinates(t, level, &n);
    struct topo words; /* interns sets of coordinates as texts */

    topo_init(&words);
    *name = NULL;
    *groups = 0;
    for (int h = 0; h < t->hosts; h++)
        of[h] = -1;
    for (int i = 0, j; i < n; i = j) {
        char *key = mem_strdup("");
        for (j = i; j < n && v[j].host == v[i].host; j++) {
            char *longer = mem_printf("%s,%d", key, v[j].at);
            free(key);
            key = longer;
        }
        int g = topo_add_group(&words, LEVEL_LEAF, key);
        free(key);
        of[v[i].host] = g;
        if (g < *groups)
            continue;
        const char *first = t->group[level].name[v[i].at],
                   *last = t->group[level].name[v[j - 1].at];
        MEM_PUSH(*name, *groups) =
            j - i == 1 ? mem_strdup(first) : mem_printf("%s..%s (%d)", first, last, j - i);
    }
    topo_free(&words);
    free(v);
    return of;
}

/* --- claims as coordinates --- */

void claims_add_hosts(struct topo *t)
{
    for (int i = 0; i < t->claims; i++)
        for (int k = 0; k < t->claim[i].hosts; k++)
            topo_add_host(t, t->claim[i].host[k]);
}

/* The level is visible from another source; a coordinate is one fact, claims are kept anyway. */
static bool visible(const struct topo *t, enum level level)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].place.at[level] >= 0)
            return true;
    return false;
}

static bool apply(struct topo *t, const struct claim_set *s)
{
    int *of = claim_set_of(s, t);
    bool changed = false;

    for (int i = 0; i < t->endpoints; i++) {
        struct endpoint *e = &t->endpoint[i];
        int c = of[e->place.at[LEVEL_HOST]];
        if (c < 0)
            continue;
        e->place.at[s->level] = topo_add_group(t, s->level, s->claim[c]->group);
        e->source[s->level] = (unsigned char)s->source;
        changed = true;
    }
    free(of);
    return changed;
}

void claims_apply(struct topo *t)
{
    int count;
    struct claim_set *s = claim_sets(t, &count);
    bool changed = false;

    for (int source = 0; source < SOURCE_COUNT; source++)
        for (int i = 0; i < count; i++)
            if ((int)s[i].source == source && s[i].level != LEVEL_HOST && !visible(t, s[i].level))
                changed |= apply(t, &s[i]);
    claim_sets_free(s, count);
    if (changed)
        topo_default_tiers(t);
}
