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
    if (*host == '-')
        return err_data(err, "%s: host \"%.100s\" begins with a dash, as options do", where, host);
    return 0;
}

void claim_add(struct topo *t, enum source source, enum level level, const char *origin,
               const char *group, char *const *host, int hosts)
{
    struct claim c = {
        .source = source, .level = level, .origin = mem_strdup(origin), .group = mem_strdup(group)};

    for (int i = 0; i < hosts; i++)
        MEM_PUSH(c.host, c.hosts) = mem_strdup(host[i]);
    MEM_PUSH(t->claim, t->claims) = c;
}

void claim_copy(struct topo *to, const struct claim *c)
{
    claim_add(to, c->source, c->level, c->origin, c->group, c->host, c->hosts);
    to->claim[to->claims - 1].above = c->above;
}

static bool same_set(const struct claim *c, const struct claim_set *s)
{
    return c->source == s->source && c->level == s->level && c->above == s->above &&
           !strcmp(c->origin, s->origin);
}

static void add_host(struct topo *t, const struct claim_set *s, const char *group, const char *host)
{
    for (int i = t->claims - 1; i >= 0; i--) { /* most likely the last one */
        struct claim *c = &t->claim[i];
        if (same_set(c, s) && !strcmp(c->group, group)) {
            MEM_PUSH(c->host, c->hosts) = mem_strdup(host);
            return;
        }
    }
    claim_add(t, s->source, s->level, s->origin, group, (char *[]){(char *)host}, 1);
    t->claim[t->claims - 1].above = s->above;
}

void claim_host(struct topo *t, enum source source, enum level level, const char *origin,
                const char *group, const char *host)
{
    add_host(t, &(struct claim_set){.source = source, .level = level, .origin = origin}, group,
             host);
}

void claim_above(struct topo *t, enum source source, int above, const char *origin,
                 const char *group, const char *host)
{
    add_host(t,
             &(struct claim_set){
                 .source = source, .level = LEVEL_SPINE, .above = above, .origin = origin},
             group, host);
}

void claims_drop_whole(struct topo *t, enum source source, const char *origin)
{
    int kept = 0;

    for (int i = 0; i < t->claims; i++) {
        struct claim_set s = {
            .source = source, .level = LEVEL_SPINE, .above = t->claim[i].above, .origin = origin};
        int groups = 0;
        for (int k = 0; k < t->claims && s.above && same_set(&t->claim[i], &s) && groups < 2; k++)
            groups += (k < kept || k >= i) && same_set(&t->claim[k], &s);
        if (groups == 1)
            claim_free(&t->claim[i]);
        else
            t->claim[kept++] = t->claim[i];
    }
    t->claims = kept;
}

struct claim_set *claim_sets(const struct topo *t, int *count)
{
    struct claim_set *s = NULL;
    int n = 0;

    for (int i = 0; i < t->claims; i++) {
        const struct claim *c = &t->claim[i];
        int k = n - 1;
        while (k >= 0 && !same_set(c, &s[k]))
            k--;
        if (k < 0) {
            k = n;
            MEM_PUSH(s, n) = (struct claim_set){
                .source = c->source, .level = c->level, .above = c->above, .origin = c->origin};
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

/* By source and height; sets are few. */
static struct claim_set *pick(const struct topo *t, int *count, enum level level, bool wide)
{
    int all, n = 0, top = 0;
    struct claim_set *s = claim_sets(t, &all), *at = mem_calloc((size_t)all + 1, sizeof(*at));

    for (int i = 0; i < all; i++)
        top = s[i].above > top ? s[i].above : top;
    for (int source = 0; source < SOURCE_COUNT; source++)
        for (int above = wide ? 1 : 0; above <= (wide ? top : 0); above++)
            for (int i = 0; i < all; i++)
                if ((int)s[i].source == source && s[i].level == level && s[i].above == above) {
                    at[n++] = s[i];
                    s[i].claim = NULL;
                }
    claim_sets_free(s, all);
    *count = n;
    return at;
}

struct claim_set *claim_sets_at(const struct topo *t, enum level level, int *count)
{
    return pick(t, count, level, false);
}

struct claim_set *claim_sets_above(const struct topo *t, int *count)
{
    return pick(t, count, LEVEL_SPINE, true);
}

void claims_add_hosts(struct topo *t)
{
    for (int i = 0; i < t->claims; i++)
        for (int k = 0; k < t->claim[i].hosts; k++)
            topo_add_host(t, t->claim[i].host[k]);
}
