/* SPDX-License-Identifier: BSD-3-Clause */
/* properties.c - kinds of devices as the matrix has them: a property each for accept and for people, and
 * declared exceptions for prices, which take the widest part that is all of the kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "cost/fit/fit_impl.h"
#include "topo/groups.h"

/* Endpoints of class k among those of each group of a level: all of them, none (0) or some (-1). */
enum whole { SOME = -1, NONE, ALL };

static enum whole *wholes(const struct fit *f, enum level level, int k)
{
    const struct topo *t = &f->m->topo;
    int groups = t->group[level].count, *in = mem_calloc((size_t)groups + 1, sizeof(*in)),
        *all = mem_calloc((size_t)groups + 1, sizeof(*all));
    enum whole *w = mem_calloc((size_t)groups + 1, sizeof(*w));

    for (int i = 0; i < t->endpoints; i++) {
        int g = topo_at(t, i, level);
        if (g < 0)
            continue;
        all[g]++;
        in[g] += classes_at(&f->classes, i) == k;
    }
    for (int g = 0; g < groups; g++)
        w[g] = !in[g] ? NONE : in[g] == all[g] ? ALL : SOME;
    free(in);
    free(all);
    return w;
}

static void add(struct fit *f, enum part part, int a, int tier, double factor)
{
    MEM_PUSH(f->m->exception, f->m->exceptions) = (struct exception){
        .part = part, .a = a, .b = -1, .tier = tier, .factor = factor, .declared = true};
}

/* The widest parts that are all of class k are slower in this tier. */
static void slow_parts(struct fit *f, int tier, int k, double factor)
{
    const struct topo *t = &f->m->topo;
    enum whole *rack = wholes(f, LEVEL_RACK, k), *host = wholes(f, LEVEL_HOST, k);
    int last_host = -1, last_rack = -1;

    for (int i = 0; i < t->endpoints; i++) {
        int r = topo_at(t, i, LEVEL_RACK), h = topo_at(t, i, LEVEL_HOST);
        if (classes_at(&f->classes, i) != k)
            continue;
        if (r >= 0 && rack[r] == ALL) {
            if (r != last_rack) /* endpoints of a rack stand side by side, or it is said twice */
                add(f, PART_RACK, r, tier, factor);
        } else if (host[h] == ALL) {
            if (h != last_host)
                add(f, PART_HOST, h, tier, factor);
        } else {
            add(f, PART_ENDPOINT, i, tier, factor);
        }
        last_rack = r;
        last_host = h;
    }
    free(rack);
    free(host);
}

/* The middle of what pairs of the class get in this tier. */
static double rate_of(const struct fit *f, int tier, int k)
{
    int n, found = 0;
    const int *of = fit_of(f, tier, OP_PAIR_BW, &n);
    double *v = mem_calloc((size_t)n + 1, sizeof(*v));

    for (int i = 0; i < n; i++) {
        const struct obs *o = &f->obs[of[i]];
        if (fit_is_bandwidth(f, o) && o->sec > 0 &&
            classes_pair(&f->classes, o->src, o->dst, tier) == k)
            v[found++] = o->bytes / o->sec;
    }
    double rate = found ? stats_middle(v, found) : NAN;
    free(v);
    return rate;
}

static void add_class(struct fit *f, int tier, int k)
{
    const struct classes *c = &f->classes;
    double share = c->share[tier][k], rate = rate_of(f, tier, k);
    bool like_reference = !c->own[tier][k] && share == 1;

    if (like_reference || !(rate > 0))
        return;
    struct property *p = matrix_property(f->m, PROPERTY_CLASS, tier, share);
    p->declared = c->declared[tier][k];
    p->what = classes_name(c, k);
    p->endpoints = c->of[k].endpoints;
    p->Bps = rate;
    p->text = mem_printf("%d pairs of %d hosts%s", c->pairs[tier][k], c->of[k].hosts,
                         c->own[tier][k] ? ", which agree" : ", as declared");
    if (share < 1)
        slow_parts(f, tier, k, share);
}

/* One line a class: who it is. */
static void say_class(struct fit *f, int k)
{
    const struct topo *t = &f->m->topo;
    char *name = classes_name(&f->classes, k), *most = classes_name(&f->classes, 0);
    int *of = mem_calloc((size_t)t->hosts + 1, sizeof(*of));

    for (int i = 0; i < t->endpoints; i++)
        if (classes_at(&f->classes, i) == k)
            of[topo_at(t, i, LEVEL_HOST)] = 1;
    char *hosts = groups_fold(t, of, 1);
    matrix_find(f->m, "class",
                "%s: %d of %d endpoints have %s, most have %s; judged by their own rate", hosts,
                f->classes.of[k].endpoints, t->endpoints, name, most);
    free(hosts);
    free(of);
    free(name);
    free(most);
}

void fit_properties(struct fit *f)
{
    for (int k = 1; k < f->classes.count; k++) {
        int before = f->m->properties;
        for (int tier = 0; tier < f->m->tiers; tier++)
            add_class(f, tier, k);
        if (f->m->properties > before)
            say_class(f, k);
    }
}
