/* SPDX-License-Identifier: BSD-3-Clause */
#include "matrix/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "matrix/collective.h"
#include "measure/transports/transport.h"
#include "topo/nic.h"

/* The model of libraries that choose among algorithms is good only while bytes are most of the time. */
static const double moving = 0.8;      /* share of the time, at least */
static const double same_rate = 0.02;  /* NICs whose rates differ by less are alike */
static const double small_message = 8; /* bytes: nothing but latency */

/* The same hosts in the same order. */
static bool same_hosts(const struct topo *a, const struct topo *b)
{
    if (a->hosts != b->hosts || a->endpoints != b->endpoints)
        return false;
    for (int i = 0; i < a->hosts; i++)
        if (strcmp(a->host[i].name, b->host[i].name))
            return false;
    return true;
}

/* Racks, leaves and rails as well: then a group of a shape is the one that was measured. */
static bool same_places(const struct topo *a, const struct topo *b)
{
    for (int l = LEVEL_DOMAIN; l < LEVEL_COUNT; l++)
        if (a->group[l].count != b->group[l].count)
            return false;
    return true;
}

/* True if the fabric says that it is this preset. */
static bool declare(struct reference *r, const struct matrix *m)
{
    struct fabric f;
    struct err err;
    int per_rack;

    if (!m->fabric || !fabric_shipped(m->fabric) || fabric_load(&f, m->fabric, &err) < 0)
        return false;
    per_rack = f.hosts_per_rack > 0 ? f.hosts_per_rack : 1;
    r->declared = m->topo.hosts % per_rack == 0 &&
                  matrix_from_fabric(&r->preset, &f, m->topo.hosts / per_rack, &err) == 0;
    fabric_free(&f);
    if (r->declared && !same_hosts(&m->topo, &r->preset.topo)) {
        matrix_free(&r->preset);
        r->declared = false;
    }
    r->seen = r->declared && same_places(&m->topo, &r->preset.topo);
    return r->declared;
}

/* The GPU of all endpoints, "" where they differ. */
static const char *gpu_of(const struct topo *t)
{
    for (int i = 0; i < t->endpoints; i++)
        if (t->endpoint[i].kind != ENDPOINT_GPU ||
            strcmp(t->endpoint[i].model, t->endpoint[0].model))
            return "";
    return t->endpoints ? t->endpoint[0].model : "";
}

static bool nics_run_at(const struct topo *t, double Bps)
{
    for (int i = 0; i < t->endpoints; i++) {
        int nic = t->endpoint[i].nic;
        if (nic < 0 || !(fabs(t->nic[nic].rate_Bps / Bps - 1) < same_rate))
            return false;
    }
    return true;
}

/* Published curves of the GPUs that were measured; those between domains need the same NICs. */
static void borrow_curves(struct reference *r, const struct matrix *m)
{
    const struct transport *t = transport_find(m->transport);
    const char *gpu = t && t->published ? gpu_of(&m->topo) : "";
    char *name = *gpu ? fabric_of_gpu(gpu) : NULL;
    struct fabric f;
    struct err err;
    int kept = 0;

    if (name && fabric_load(&f, name, &err) == 0) {
        bool between = nics_run_at(&m->topo, f.nic.Bps.value);
        if (matrix_from_fabric(&r->preset, &f, 1, &err) == 0)
            for (int i = 0; i < r->preset.collectives; i++) {
                struct collective *c = &r->preset.collective[i], other = r->preset.collective[kept];
                if (c->shape.domains > 1 && !between)
                    continue;
                r->preset.collective[kept++] = *c;
                *c = other;
            }
        fabric_free(&f);
    }
    free(name);
    r->like = *m;
    r->like.collective = r->preset.collective;
    r->like.collectives = kept;
}

void reference_open(struct reference *r, const struct matrix *m)
{
    *r = (struct reference){.measured = m};
    matrix_init(&r->preset);
    if (m->transport && !strcmp(m->transport, "preset"))
        return;
    if (declare(r, m))
        r->like = r->preset;
    else
        borrow_curves(r, m);
    r->like.algorithm = m->algorithm;
}

void reference_free(struct reference *r)
{
    matrix_free(&r->preset); /* `like` owns nothing */
}

static const struct cost none = {
    .sec = NAN, .lo = NAN, .hi = NAN, .basis = BASIS_ASSUMED, .exception = -1};

/* Latency alone by the model, if the model may judge the group; INFINITY: it may not. */
static double latency(const struct reference *r, enum op op, const int *ids, int n, int at_once)
{
    const struct matrix *m = &r->like;
    struct cost small;
    struct ways w;

    ways_of(&w, m, ids, n, op, true);
    if (w.outer < 0 || !m->tier[w.outer].nic)
        return INFINITY;
    if (m->topo.endpoint[ids[0]].kind != ENDPOINT_GPU && w.shape.domains != n)
        return INFINITY;
    matrix_collective_at(m, op, ids, n, at_once, small_message, true, &small);
    return small.sec;
}

void reference_sizes(const struct reference *r, enum op op, const int *ids, int n, int at_once,
                     const double *bytes, int sizes, struct cost *out)
{
    double least = -1; /* not asked yet */

    for (int i = 0; i < sizes; i++)
        out[i] = none;
    if (!ids || !r->like.topo.endpoints)
        return;
    matrix_collective_sizes(&r->like, op, ids, n, at_once, bytes, sizes, true, out);
    for (int i = 0; i < sizes && !r->seen; i++) {
        if (out[i].basis != BASIS_MODELLED)
            continue;
        if (least < 0)
            least = latency(r, op, ids, n, at_once);
        if (!(least < (1 - moving) * out[i].sec))
            out[i] = none;
    }
}

void reference_of_curve(const struct reference *r, const struct collective *c, const int *ids,
                        const double *bytes, int sizes, struct cost *out)
{
    bool measured = c->basis == BASIS_MEASURED || c->basis == BASIS_FITTED;

    reference_sizes(r, c->op, measured ? ids : NULL, c->shape.ranks, c->at_once ? c->at_once : 1,
                    bytes, sizes, out);
}

double reference_share(const struct cost *reference, double sec)
{
    if (!(sec > 0) || !isfinite(sec) || !isfinite(reference->sec) ||
        (!reference->exact && sec < reference->lo))
        return NAN;
    return reference->sec / sec;
}

char *reference_words(const struct reference *r, const struct cost *c, char buf[80])
{
    bool modelled = c->basis == BASIS_MODELLED;
    const char *name = r->preset.fabric && (r->declared || !modelled) ? r->preset.fabric : NULL;

    buf[0] = '\0';
    if (!isfinite(c->sec))
        return buf;
    int n = snprintf(buf, 80, "%s%.40s", name ? "preset " : "pairs", name ? name : "");
    if (!c->exact)
        snprintf(buf + n, 80 - (size_t)n, ", %s within %.0f %%",
                 modelled      ? "modelled"
                 : c->from > 0 ? "extrapolated"
                               : "scaled",
                 100 * (c->hi / c->sec - 1));
    return buf;
}

/* Coordinates that two endpoints have in common where they have these. */
static unsigned implied(unsigned same)
{
    if (same & 1u << LEVEL_HOST)
        same |= 1u << LEVEL_DOMAIN;
    if (same & 1u << LEVEL_DOMAIN)
        same |= 1u << LEVEL_RACK;
    return same;
}

double reference_nics(const struct topo *t)
{
    double *v = mem_calloc((size_t)t->endpoints + 1, sizeof(*v)), most = 0;
    int n = 0, times = 0;

    for (int i = 0; i < t->endpoints && t->nic; i++)
        if (t->endpoint[i].nic >= 0 && t->nic[t->endpoint[i].nic].rate_Bps > 0)
            v[n++] = t->nic[t->endpoint[i].nic].rate_Bps;
    stats_sort(v, n);
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && v[j] <= v[i] * (1 + same_rate); j++)
            ;
        if (j - i >= times) { /* the faster of equal ones */
            times = j - i;
            most = v[i];
        }
    }
    free(v);
    return most;
}

double reference_scale(const struct matrix *reference, const struct topo *t)
{
    double ours = reference_nics(t), theirs = reference ? reference_nics(&reference->topo) : 0,
           scale = ours > 0 && theirs > 0 ? ours / theirs : 1;

    return fabs(scale - 1) < same_rate ? 1 : scale;
}

/* The tier of the same name, else of the same place. */
static const struct tier *tier_of_place(const struct matrix *reference, const struct tier *t)
{
    const struct tier *same = NULL, *holds = NULL, *widest = NULL;

    for (int i = 0; reference && i < reference->tiers; i++) {
        const struct tier *x = &reference->tier[i];
        if (!strcmp(x->rule.name, t->rule.name))
            return x;
        if (x->nic != t->nic)
            continue;
        if (x->rule.same == t->rule.same)
            same = x;
        widest = x->nic ? x : widest;
        if (!holds && x->rule.same && !(x->rule.same & ~implied(t->rule.same)))
            holds = x;
    }
    return same ? same : holds ? holds : widest;
}

/* B/s at large sizes; NAN: neither curve nor data sheet. */
static double tier_rate(const struct tier *t)
{
    const struct curve *c = t->curve[DIR_UNI].points ? &t->curve[DIR_UNI] : &t->curve[DIR_ONEWAY];

    return c->beta > 0 ? 1 / c->beta : t->peak_Bps > 0 ? t->peak_Bps : NAN;
}

const struct tier *reference_tier(const struct matrix *reference, const struct matrix *m,
                                  const struct tier *t)
{
    const struct tier *like = tier_of_place(reference, t), *nearest = NULL;
    double rate = tier_rate(t), step = log(TIER_BEYOND),
           nics = reference_scale(reference, &m->topo);

    if (!like || !(rate > TIER_BEYOND * tier_rate(like) * (like->nic ? nics : 1)))
        return like; /* NULL as well where there is no reference */
    for (int i = 0; i < reference->tiers; i++) {
        const struct tier *x = &reference->tier[i];
        double apart = fabs(log(rate / (tier_rate(x) * (x->nic ? nics : 1))));
        if (apart <= step) {
            step = apart;
            nearest = x;
        }
    }
    return nearest;
}

double reference_rate(const struct matrix *reference, const struct matrix *m, const struct tier *t)
{
    const struct tier *like = reference_tier(reference, m, t);

    return !like ? NAN
                 : matrix_rate(reference, (int)(like - reference->tier), DIR_UNI) *
                       (like->nic ? reference_scale(reference, &m->topo) : 1);
}

const struct collective *reference_curve(const struct matrix *reference, const struct collective *c)
{
    for (int i = 0; reference && i < reference->collectives; i++) {
        const struct collective *x = &reference->collective[i];
        if (x->op == c->op && x->curve.points && shape_equal(&x->shape, &c->shape))
            return x;
    }
    return NULL;
}
