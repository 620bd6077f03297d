/* SPDX-License-Identifier: BSD-3-Clause */
#include "fit/classes_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit_impl.h"
#include "topo/groups.h"
#include "topo/nic.h"

/* Constants that decide; each edge is tested in tests/unit/classes.c. */
static const double same_rate = 0.02; /* closer rates are equal: rounding of drivers, noise */
static const double as_declared =
    0.10; /* within this of the declaration, it holds: closer than accept's limit of 90 % */
static const double upper =
    0.75; /* quantile used for a class: a slow half does not move the quantile */
enum {
    OWN_HOSTS = 3,  /* hosts that must agree against a declaration: two may both be bad */
    OWN_PAIRS = 12, /* pairs needed as well: the upper quartile then rests on three */
    GPU_PAIRS = 4   /* pairs without NICs: fewer have no upper quartile */
};

static struct device_class device(const struct topo *t, int endpoint)
{
    const struct endpoint *e = &t->endpoint[endpoint];

    return (struct device_class){e->kind == ENDPOINT_GPU ? e->model : "",
                                 e->nic >= 0 && t->nic ? t->nic[e->nic].rate_Bps : 0, 0, 0};
}

static bool same_nics(double a, double b)
{
    return a == b || (a > 0 && b > 0 && fabs(a / b - 1) < same_rate);
}

static int find(const struct classes *c, const struct device_class *d)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->of[i].model, d->model) && same_nics(c->of[i].nic_Bps, d->nic_Bps))
            return i;
    return -1;
}

static void sort_out(struct classes *c, const struct topo *t)
{
    int last_host[CLASSES_MAX];

    for (int i = 0; i < t->endpoints; i++) {
        struct device_class d = device(t, i);
        int k = find(c, &d), host = topo_at(t, i, LEVEL_HOST);
        if (k < 0 && c->count < CLASSES_MAX) {
            k = c->count++;
            c->of[k] = d;
            last_host[k] = -1;
        }
        k = k < 0 ? 0 : k;
        c->at[i] = (unsigned char)k;
        c->of[k].endpoints++;
        c->of[k].hosts += last_host[k] != host; /* endpoints of a host are adjacent */
        last_host[k] = host;
    }
}

/* The class of most endpoints becomes number 0. */
static void reference_first(struct classes *c, const struct topo *t)
{
    int most = 0;

    for (int k = 1; k < c->count; k++) {
        const struct device_class *x = &c->of[k], *y = &c->of[most];
        if (x->endpoints > y->endpoints ||
            (x->endpoints == y->endpoints && x->nic_Bps > y->nic_Bps))
            most = k;
    }
    struct device_class swap = c->of[0];
    c->of[0] = c->of[most];
    c->of[most] = swap;
    for (int i = 0; most && i < t->endpoints; i++)
        c->at[i] = (unsigned char)(c->at[i] == 0 ? most : c->at[i] == most ? 0 : c->at[i]);
}

static void declare(struct classes *c, const struct topo *t)
{
    for (int tier = 0; tier < t->tiers; tier++) {
        c->nic[tier] = !(t->tier[tier].same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN));
        for (int k = 0; k < c->count; k++) {
            bool known = c->nic[tier] && c->of[0].nic_Bps > 0 && c->of[k].nic_Bps > 0;
            c->declared[tier][k] = known ? c->of[k].nic_Bps / c->of[0].nic_Bps : NAN;
            c->share[tier][k] = known ? c->declared[tier][k] : 1;
        }
    }
}

/* --- what each class gets --- */

/* Class whose rate an observation shows; -1: two classes, neither declared slower. */
static int shows(const struct classes *c, const struct obs *o, int tier)
{
    int a = c->at[o->src], b = c->at[o->dst];
    double x = c->share[tier][a], y = c->share[tier][b];

    if (a == b || (!c->nic[tier] && !strcmp(c->of[a].model, c->of[b].model)))
        return a;
    return !c->nic[tier] || x == y ? -1 : x < y ? a : b;
}

/* Rates of one tier by class; the caller frees. */
static double *rates(struct classes *c, struct lists *by, const struct topo *t, const struct obs *o,
                     int count, double bytes, int tier)
{
    int *key = mem_calloc((size_t)count + 1, sizeof(*key));
    double *v = mem_calloc((size_t)count + 1, sizeof(*v));

    for (int i = 0; i < count; i++) {
        bool counts = o[i].op == OP_PAIR_BW && o[i].bytes == bytes && o[i].sec > 0 &&
                      topo_tier_by(t, o[i].src, o[i].dst, o[i].by_nic) == tier;
        key[i] = counts ? shows(c, &o[i], tier) : -1;
    }
    lists_make(by, key, NULL, count, c->count);
    for (int i = 0; i < by->start[c->count]; i++)
        v[i] = o[by->at[i]].bytes / o[by->at[i]].sec;
    free(key);
    return v;
}

static double usual_rate(double *v, int n)
{
    stats_sort(v, n);
    return stats_quantile(v, n, upper);
}

/* Count pairs of classes together if the classes do not differ in anything that this tier needs. */
static void share_of_models(struct classes *c, int tier)
{
    for (int k = 0; k < c->count && !c->nic[tier]; k++)
        for (int i = 0; i < k; i++)
            if (!strcmp(c->of[i].model, c->of[k].model)) {
                c->share[tier][k] = c->share[tier][i];
                c->own[tier][k] = c->own[tier][i];
                break;
            }
}

static void judge(struct classes *c, int tier, int k, double share)
{
    double declared = c->declared[tier][k];
    bool enough = c->nic[tier] ? c->pairs[tier][k] >= OWN_PAIRS && c->of[k].hosts >= OWN_HOSTS
                               : c->pairs[tier][k] >= GPU_PAIRS;

    double usual = isnan(declared) ? 1 : declared,
           tolerance = isnan(declared) ? same_rate : as_declared;
    if (!enough || fabs(share / usual - 1) <= tolerance)
        return;
    c->own[tier][k] = true;
    c->share[tier][k] = share;
}

static void measure(struct classes *c, const struct topo *t, const struct obs *o, int count,
                    double bytes, int tier)
{
    struct lists by;
    double *v = rates(c, &by, t, o, count, bytes, tier), usual[CLASSES_MAX];

    for (int k = 0; k < c->count; k++) {
        int n = by.start[k + 1] - by.start[k];
        c->pairs[tier][k] = n;
        usual[k] = n ? usual_rate(v + by.start[k], n) : NAN;
    }
    for (int k = 1; k < c->count; k++)
        if (usual[k] > 0 && usual[0] > 0)
            judge(c, tier, k, usual[k] / usual[0]);
    share_of_models(c, tier);
    lists_free(&by);
    free(v);
}

void classes_make(struct classes *c, const struct topo *t, const struct obs *o, int count,
                  double bytes)
{
    memset(c, 0, sizeof(*c));
    c->at = mem_calloc((size_t)t->endpoints + 1, sizeof(*c->at));
    sort_out(c, t);
    if (c->count < 2) {
        free(c->at);
        c->at = NULL;
        return;
    }
    reference_first(c, t);
    declare(c, t);
    for (int tier = 0; tier < t->tiers; tier++)
        measure(c, t, o, count, bytes, tier);
}

char *classes_name(const struct classes *c, int k)
{
    const struct device_class *d = &c->of[k];
    const char *model = *d->model ? d->model : "unknown devices";

    return d->nic_Bps > 0 ? mem_printf("%s with NICs of %.0f Gb/s", model, d->nic_Bps * 8 / 1e9)
                          : mem_strdup(model);
}

/* --- output to the matrix: a property per class for accept and for readers, and declared exceptions for costs, on
 * the widest part that has only this class --- */

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

/* Add slow exceptions in this tier for the widest parts that have only class k. */
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
            if (r != last_rack) /* endpoints of a rack are adjacent, so each rack is added once */
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

/* Median rate of pairs of the class in this tier. */
static double class_rate(const struct fit *f, int tier, int k)
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
    double share = c->share[tier][k], rate = class_rate(f, tier, k);
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

/* Report a class in one line. */
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
