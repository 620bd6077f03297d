/* SPDX-License-Identifier: BSD-3-Clause */
/* Racks: found by clustering hosts when none was declared, compared when they were. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/mem.h"
#include "cost/cluster.h"
#include "cost/fit_state.h"

enum { HOSTS_MIN = 3 };

/* One observation between two hosts. */
struct meet {
    int a, b; /* a < b */
    const struct obs *o;
};

static int host_of(const struct fit *f, int id)
{
    return f->m->topo.endpoint[id].place.at[LEVEL_HOST];
}

static int by_hosts(const void *x, const void *y)
{
    const struct meet *p = x, *q = y;

    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

static struct edge fold(const struct meet *v, int n, const struct fit *f)
{
    struct edge e = {v[0].a, v[0].b, NAN, NAN, NAN};
    double alone = 0, parallel = 0;

    for (int i = 0; i < n; i++) {
        const struct obs *o = v[i].o;
        if (!(o->sec > 0))
            continue;
        if (fit_is_bandwidth(f, o)) {
            double *best = o->alone ? &alone : &parallel;
            *best = fmax(*best, o->bytes / o->sec);
        } else if (o->op == OP_PAIR_LATENCY && o->bytes == f->lat_bytes) {
            e.sec = fmin(e.sec, o->sec); /* fmin ignores NAN */
        }
    }
    if (alone > 0 || parallel > 0)
        e.Bps = alone > 0 ? alone : parallel;
    if (alone > 0 && parallel > 0)
        e.shared = parallel / alone;
    return e;
}

static int make_edges(struct edge **out, const struct fit *f)
{
    struct meet *v = NULL;
    int n = 0, count = 0;

    for (int i = 0; i < f->count; i++) {
        int a = host_of(f, f->obs[i].src), b = host_of(f, f->obs[i].dst);
        if (a != b)
            MEM_PUSH(v, n) = (struct meet){a < b ? a : b, a < b ? b : a, &f->obs[i]};
    }
    *out = NULL;
    if (n)
        qsort(v, (size_t)n, sizeof(*v), by_hosts);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && by_hosts(&v[i], &v[j]) == 0; j++)
            ;
        struct edge e = fold(v + i, j - i, f);
        MEM_PUSH(*out, count) = e;
    }
    free(v);
    return count;
}

/* The hosts of one group, or those that could not be placed (g = -1), folded; the caller frees. */
static char *host_names(const struct fit *f, const struct clusters *c, int g)
{
    char **name = mem_calloc((size_t)f->m->topo.hosts, sizeof(*name));
    int n = 0;

    for (int h = 0; h < f->m->topo.hosts; h++)
        if (c->of[h] == g)
            name[n++] = f->m->topo.host[h].name;
    char *text = hostlist_fold(name, n);
    free(name);
    return text;
}

/* Hosts that never answered are exceptions already: their group becomes -2. */
static int set_silent_apart(struct fit *f, struct clusters *c)
{
    bool *answered = mem_calloc((size_t)f->m->topo.hosts, sizeof(*answered));
    int left = 0;

    for (int i = 0; i < f->count; i++)
        if (f->obs[i].sec > 0)
            answered[host_of(f, f->obs[i].src)] = answered[host_of(f, f->obs[i].dst)] = true;
    for (int h = 0; h < f->m->topo.hosts; h++) {
        if (c->of[h] == -1 && !answered[h])
            c->of[h] = -2;
        left += c->of[h] == -1;
    }
    free(answered);
    return left;
}

static void say_unresolved(struct fit *f, struct clusters *c)
{
    if (!set_silent_apart(f, c))
        return;
    char *names = host_names(f, c, -1);
    matrix_find(
        f->m, "racks",
        "the rack of %s cannot be told: no faster to anybody than what passes between racks, "
        "and neither latency nor shared traffic sets one rack apart",
        names);
    free(names);
}

static void say_found(struct fit *f, const struct clusters *c)
{
    char *text = mem_printf("%d racks found by %s", c->groups,
                            c->clue == CLUE_LATENCY ? "latency" : "bandwidth");

    for (int g = 0; g < c->groups && g < 16; g++) {
        char *names = host_names(f, c, g), *longer;
        longer = mem_printf("%s%s %.200s", text, g ? ";" : ":", names);
        free(names);
        free(text);
        text = longer;
    }
    matrix_find(f->m, "racks", "%s%s", text, c->groups > 16 ? "; ..." : "");
    free(text);
}

/* Found racks become coordinates and a tier in front of the last one. */
static void apply(struct fit *f, struct clusters *c)
{
    struct topo *t = &f->m->topo;
    char name[32];

    topo_clear_level(t, LEVEL_RACK);
    for (int g = 0; g < c->groups; g++) {
        snprintf(name, sizeof(name), "rack-%02d", g);
        topo_add_group(t, LEVEL_RACK, name);
    }
    for (int i = 0; i < t->endpoints; i++) {
        int g = c->of[host_of(f, i)];
        t->endpoint[i].place.at[LEVEL_RACK] = g;
        t->endpoint[i].source[LEVEL_RACK] = g < 0 ? SOURCE_NONE : SOURCE_MEASURED;
    }
    if (t->tiers >= TIER_MAX)
        return;
    t->tier[t->tiers] = t->tier[t->tiers - 1];
    t->tier[t->tiers - 1] = (struct tier_rule){"rack", 1u << LEVEL_RACK};
    snprintf(t->tier[t->tiers].name, sizeof(t->tier[0].name), "fabric");
    t->tiers++;
    say_found(f, c);
    say_unresolved(f, c);
}

/* A declared rack of each host; -1 when not visible. */
static int *declared_racks(const struct fit *f)
{
    int *rack = mem_calloc((size_t)f->m->topo.hosts, sizeof(*rack));

    for (int h = 0; h < f->m->topo.hosts; h++)
        rack[h] = -1;
    for (int i = 0; i < f->m->topo.endpoints; i++)
        rack[host_of(f, i)] = f->m->topo.endpoint[i].place.at[LEVEL_RACK];
    return rack;
}

/* Does every declared rack lie inside one measured group?  Several racks may well measure alike. */
static bool nested(const struct fit *f, const struct clusters *c, const int *rack)
{
    const struct topo *t = &f->m->topo;
    int *group = mem_calloc((size_t)t->group[LEVEL_RACK].count + 1, sizeof(*group)); /* + 1 */
    bool good = true;

    for (int h = 0; h < t->hosts; h++) {
        if (c->of[h] < 0 || rack[h] < 0)
            continue;
        if (group[rack[h]] && group[rack[h]] != c->of[h] + 1)
            good = false;
        group[rack[h]] = c->of[h] + 1;
    }
    free(group);
    return good;
}

/* The hosts whose group mostly belongs to another declared rack (majority: Boyer & Moore 1981). */
static int misfits(const struct fit *f, const struct clusters *c, const int *rack, int *first,
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

static void compare(struct fit *f, const struct clusters *c)
{
    const struct topo *t = &f->m->topo;
    int *rack = declared_racks(f), *image = mem_calloc((size_t)c->groups, sizeof(*image)),
        first = 0;
    int differ = misfits(f, c, rack, &first, image);
    char *const *name = t->group[LEVEL_RACK].name;

    if (nested(f, c, rack)) {
        if (c->groups == t->group[LEVEL_RACK].count)
            matrix_find(f->m, "racks",
                        "%d racks: measuring finds the same groups of hosts as declared",
                        c->groups);
    } else if (differ) {
        matrix_find(
            f->m, "racks",
            "%d hosts measure like another rack than the declared one, the first is %s: declared "
            "%s, measured with %s; the declared racks were kept",
            differ, t->host[first].name, name[rack[first]], name[image[c->of[first]]]);
    } else {
        matrix_find(f->m, "racks",
                    "declared %d racks, measured %d groups: some racks measure as several",
                    t->group[LEVEL_RACK].count, c->groups);
    }
    free(rack);
    free(image);
}

void fit_racks(struct fit *f)
{
    struct topo *t = &f->m->topo;
    struct clusters c;
    struct edge *edge;

    if (t->hosts < HOSTS_MIN)
        return;
    int edges = make_edges(&edge, f);
    cluster_units(&c, t->hosts, edge, edges);
    if (c.groups > 1 && t->group[LEVEL_RACK].count)
        compare(f, &c);
    else if (c.groups > 1)
        apply(f, &c);
    else if (c.contradictions)
        matrix_find(
            f->m, "racks",
            "pairs of hosts fall into fast and slow ones, but not into racks: %d slow pairs lie "
            "between hosts that fast pairs join",
            c.contradictions);
    cluster_free(&c);
    free(edge);
}
