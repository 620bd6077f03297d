/* SPDX-License-Identifier: BSD-3-Clause */
#include "fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/stats.h"
#include "fit/fit_impl.h"
#include "matrix/collective.h"
#include "measure/transports/mpi_opts.h"
#include "measure/transports/transport.h"
#include "topo/nccl_profile.h"
#include "topo/nic.h"

/* --- tier curves: at each size the median over healthy pairs, only pairs alone if any ran alone at that size; at
 * the size of the pair matrix this is the class median over all its pairs --- */

static const double as_good_as_alone = 0.02; /* parallel closer to alone than this: both count */

static const enum op op_of[DIR_COUNT] = {
    [DIR_ONEWAY] = OP_PAIR_LATENCY, [DIR_UNI] = OP_PAIR_BW, [DIR_BI] = OP_PAIR_BIBW};

/* By size, then pairs alone first. */
static uint64_t by_size(const void *a)
{
    const struct obs *o = *(struct obs *const *)a;

    return (uint64_t)o->bytes << 1 | !o->alone;
}

/* Removal of slow parts from a time: time / ratio.  lo, hi: bounds of the ratio. */
struct without {
    double ratio, lo, hi;
};

/* Merge observations of one size into medians of their times, each without its slow parts (NULL: unchanged). */
static struct curve_point median_point(const struct obs *const *o, const struct without *without,
                                       int n)
{
    double *v = mem_calloc(3 * (size_t)n, sizeof(*v));
    struct curve_point p = {.bytes = o[0]->bytes};

    for (int i = 0; i < n; i++) {
        struct without by = without ? without[i] : (struct without){1, 1, 1};
        v[i] = o[i]->sec / by.ratio;
        v[n + i] = obs_lo(o[i]) / by.hi;
        v[2 * n + i] = obs_hi(o[i]) / by.lo;
        p.n += obs_samples(o[i]);
    }
    p.sec = stats_middle(v, n);
    p.lo = fmin(p.sec, stats_middle(v + n, n));
    p.hi = fmax(p.sec, stats_middle(v + 2 * n, n));
    free(v);
    return p;
}

static double median_sec(const struct obs *const *o, int n)
{
    double *v = mem_calloc((size_t)n, sizeof(*v));

    for (int i = 0; i < n; i++)
        v[i] = o[i]->sec;
    double median = stats_middle(v, n);
    free(v);
    return median;
}

/* Return how many observations of one size count; pairs alone come first.  Each operation is checked separately:
 * contention may change latency but not bandwidth. */
static int counted(const struct obs *const *o, int n)
{
    int alone = 0;

    while (alone < n && o[alone]->alone)
        alone++;
    if (alone == 0 || alone == n)
        return n;
    double ratio = median_sec(o + alone, n - alone) / median_sec(o, alone);
    return fabs(ratio - 1) < as_good_as_alone ? n : alone;
}

/* Share that slow parts and the device class leave of a pair, 0..1.  OP_PAIR_BW: bandwidth one way; OP_PAIR_BIBW:
 * bandwidth of the slower way; latency, which small messages consist of: 1.  0: a dead or wrong part is on the path. */
static double left_of(const struct fit *f, const struct obs *o)
{
    double share = fit_declared(f, o->src, o->dst, o->tier),
           there = share * matrix_factor(f->m, o->src, o->dst, NULL, &(double){0}),
           back = share * matrix_factor(f->m, o->dst, o->src, NULL, &(double){0});

    if (o->op == OP_PAIR_BW)
        return there;
    return o->op == OP_PAIR_BIBW || !(fmin(there, back) > 0) ? fmin(there, back) : 1;
}

/* List observations of healthy pairs, or if all pairs cross a slow part, of all pairs, to be scaled to healthy
 * (scaled).  Returns their number. */
static int observations(const struct fit *f, int tier, enum direction dir, const struct obs **o,
                        bool *scaled)
{
    int n = 0, count;
    const int *of = fit_of(f, tier, op_of[dir], &count);

    for (int pass = 0; pass < 2 && n == 0; pass++) {
        *scaled = pass;
        for (int i = 0; i < count; i++) {
            const struct obs *one = &f->obs[of[i]];
            if (one->sec > 0 && (pass ? left_of(f, one) > 0 : fit_is_healthy(f, one)))
                o[n++] = one;
        }
    }
    return n;
}

static void fit_curve(struct fit *f, int tier, enum direction dir, const struct obs **o)
{
    struct curve *c = &f->m->tier[tier].curve[dir];
    bool scaled;
    int n = observations(f, tier, dir, o, &scaled);
    struct without *without = scaled && n ? mem_calloc((size_t)n, sizeof(*without)) : NULL;

    stats_sort_keys(o, n, sizeof(struct obs *), by_size);
    for (int i = 0; without && i < n; i++) {
        double ratio = 1 / left_of(f, o[i]);
        without[i] = (struct without){ratio, ratio, ratio};
    }
    for (int i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && o[j]->bytes == o[i]->bytes; j++)
            ;
        curve_add(c, median_point(o + i, without ? without + i : NULL, counted(o + i, j - i)));
    }
    free(without);
    curve_settle(c);
    curve_summarise(c);
}

/* Estimate beta from a single size, which gives no slope: the share of the latency in one message of a window is
 * known. */
static void slope_of_one(struct tier *t, bool windows)
{
    const struct mpi_opts usual = {0};
    double alpha = t->curve[DIR_ONEWAY].points ? t->curve[DIR_ONEWAY].alpha : 0;

    for (int d = DIR_UNI; d < DIR_COUNT; d++) {
        struct curve *c = &t->curve[d];
        if (c->points != 1)
            continue;
        int window = windows ? mpi_opts_window(&usual, (size_t)c->point[0].bytes) : OP_PAIR_WINDOW;
        double rest = c->point[0].sec - alpha / window;
        if (rest > 0.5 * c->point[0].sec)
            c->beta = rest / c->point[0].bytes;
    }
}

static void tier_curves(struct fit *f)
{
    const struct transport *t = transport_find(f->m->transport);
    const struct obs **o = mem_calloc((size_t)f->count, sizeof(*o));

    for (int tier = 0; tier < f->m->tiers; tier++) {
        for (int d = 0; d < DIR_COUNT; d++)
            fit_curve(f, tier, d, o);
        slope_of_one(&f->m->tier[tier], t && t->windows);
    }
    free(o);
}

/* --- collective curves by (op, shape, crossings of the ring, groups at once): the median over groups that are equal
 * in these.  A slow part that the schedule of its group does not cross leaves the curve as measured.  Groups whose
 * schedule crosses a slow part count only if no other group has that shape; the model then removes the slow part,
 * and matrix_collective() restores the part for the same group --- */

struct item {
    int curve; /* index into matrix.collective */
    bool clean;
    int part; /* slow part that was removed, or that the schedule does not cross; -1: none */
    struct without without; /* result of the model */
    const struct obs *o;
};

static int curve_of(struct matrix *m, enum op op, const struct ways *w)
{
    for (int i = 0; i < m->collectives; i++) {
        const struct collective *c = &m->collective[i];
        if (c->op == op && shape_equal(&c->shape, &w->shape) && c->crossings == w->crossings &&
            c->at_once == w->at_once)
            return i;
    }
    MEM_PUSH(m->collective, m->collectives) = (struct collective){.op = op,
                                                                  .shape = w->shape,
                                                                  .crossings = w->crossings,
                                                                  .at_once = w->at_once,
                                                                  .basis = BASIS_MEASURED};
    return m->collectives - 1;
}

/* A part slows only the share of a time that moves bytes.  In simulated campaigns of all presets the model missed
 * that share by up to 0.2, and near 0 and 1, where latency or bandwidth dominates, by up to nine times the
 * remainder. */
static const double moving_error = 0.2, moving_times = 9;
static const double all_moves = 1e18; /* size at which latency is negligible */

/* Ratio of a time that slow parts stretched to the time without them. */
static double slowed_by(const struct matrix *m, const struct ways *slow, enum op op, double bytes,
                        double sec)
{
    struct ways healthy = ways_healthy(slow);
    struct ways_model with, without;

    ways_model(&with, m, slow, op);
    ways_model(&without, m, &healthy, op);
    struct ways_slower by = ways_slower(&with, &without, bytes);
    /* a model that adds more latency than was measured leaves half of the time */
    double ratio = by.factor * sec / fmax(sec - by.add, sec / 2);

    return isfinite(ratio) && ratio > 1 ? ratio : 1;
}

static struct without without_part(const struct matrix *m, const struct obs *o,
                                   const struct ways *slow)
{
    double ratio = slowed_by(m, slow, o->op, o->bytes, o->sec),
           most = slowed_by(m, slow, o->op, all_moves, all_moves),
           moving = most > 1 ? fmin(1, (ratio - 1) / (most - 1)) : 0;
    double least = fmax(0, fmax(moving - moving_error, 1 - moving_times * (1 - moving))),
           all = fmin(1, fmin(moving + moving_error, moving_times * moving));

    return (struct without){ratio, fmin(ratio, 1 + least * (most - 1)),
                            fmax(ratio, 1 + all * (most - 1))};
}

static struct item make_item(struct fit *f, const struct obs *o, const struct ways *slow)
{
    struct ways healthy = ways_healthy(slow);
    struct ways_model model;

    ways_model(&model, f->m, &healthy, o->op);
    const struct ways_slow *by = &slow->slow[ways_schedule(&model, o->bytes)];
    struct item x = {curve_of(f->m, o->op, slow), by->exception < 0, by->spared, {1, 1, 1}, o};

    if (!x.clean) {
        x.part = by->exception;
        x.without = without_part(f->m, o, slow);
    }
    return x;
}

static int by_curve(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return stats_order((double[]){x->curve, x->o->bytes, -x->clean},
                       (double[]){y->curve, y->o->bytes, -y->clean}, 3);
}

static void add_point(struct collective *c, const struct item *x, int n)
{
    const struct obs **o = mem_calloc((size_t)n, sizeof(*o));
    struct without *without = mem_calloc((size_t)n, sizeof(*without));

    for (int i = 0; i < n; i++) {
        o[i] = x[i].o;
        without[i] = x[i].without;
    }
    curve_add(&c->curve, median_point(o, without, n));
    if (!x[0].clean)
        c->basis = BASIS_FITTED;
    free(o);
    free(without);
}

/* Set the source of a curve: the slow part that was removed, or that no schedule crosses. */
static void say_part(const struct matrix *m, struct collective *c, const struct item *x, int n)
{
    char part[MATRIX_PART];

    for (int i = 0; i < n && !c->source; i++)
        if (x[i].part >= 0 && x[i].clean == (c->basis != BASIS_FITTED))
            c->source =
                mem_printf(x[i].clean ? "as measured: its schedule does not cross %s"
                                      : "without its slow part: %s, which the model took out",
                           matrix_part(m, &m->exception[x[i].part], part));
}

static void fill_curves(struct matrix *m, struct item *x, int n)
{
    if (n)
        qsort(x, (size_t)n, sizeof(*x), by_curve);
    for (int i = 0, j, clean; i < n; i = j) {
        clean = 0;
        for (j = i; j < n && x[j].curve == x[i].curve && x[j].o->bytes == x[i].o->bytes; j++)
            clean += x[j].clean;
        add_point(&m->collective[x[i].curve], x + i, clean ? clean : j - i);
    }
    for (int i = 0, j; i < n; i = j) {
        for (j = i; j < n && x[j].curve == x[i].curve; j++)
            ;
        say_part(m, &m->collective[x[i].curve], x + i, j - i);
    }
    for (int i = 0; i < m->collectives; i++) {
        curve_settle(&m->collective[i].curve);
        curve_summarise(&m->collective[i].curve);
    }
}

/* Set the kind of data of each operation's curves; points_alike() has found no other one. */
static void say_kinds(struct matrix *m, const struct points *p)
{
    unsigned kind[OP_COUNT] = {0};
    char text[POINT_KIND];

    for (int i = 0; i < p->count; i++)
        kind[p->point[i].op] = point_kind(&p->point[i]);
    for (int i = 0; i < m->collectives; i++)
        if (*point_kind_text(kind[m->collective[i].op], text))
            m->collective[i].data = mem_strdup(text);
}

/* Report wrong data in one sentence per operation, with the first note. */
static void say_wrong(struct fit *f, const struct obs *obs, int count)
{
    for (int op = 0; op < OP_COUNT; op++) {
        int wrong = 0, all = 0;
        const char *note = NULL;
        for (int i = 0; i < count; i++)
            if ((int)obs[i].op == op) {
                all++;
                wrong += obs[i].wrong;
                note = !note && obs[i].wrong ? obs_note(&obs[i]) : note;
            }
        if (wrong)
            matrix_find(f->m, "wrong_data",
                        "%s: wrong data in %d of %d measurements%s%s; their times do not count",
                        op_name(op), wrong, all, note && *note ? ": " : "", note ? note : "");
    }
}

static void collective_curves(struct fit *f)
{
    struct obs *obs;
    struct item *item = NULL;
    int count = observe(&obs, f->points, false), n = 0, lost = 0;
    const struct obs *of = NULL; /* last observation of the group that `slow` describes */
    struct ways slow;

    for (int i = 0; i < count; i++) {
        const struct obs *o = &obs[i];
        const struct round *r = fit_round(f, o->src, o->dst);
        if (!r || r->group[o->dst].size < 2)
            lost++;
        else if (o->sec > 0) {
            if (!of || of->op != o->op || of->src != o->src || of->dst != o->dst)
                ways_of(&slow, f->m, r->group[o->dst].members, r->group[o->dst].size, o->op, false);
            slow.at_once = r->groups;
            of = o;
            struct item x = make_item(f, o, &slow);
            MEM_PUSH(item, n) = x;
        }
    }
    fill_curves(f->m, item, n);
    say_kinds(f->m, f->points);
    say_wrong(f, obs, count);
    if (lost)
        matrix_find(f->m, "plan", "%d points of collectives belong to no round of the plan", lost);
    free(item);
    free(obs);
}

/* --- the chain --- */

static int points_fit_topology(const struct topo *t, const struct points *p, struct err *err)
{
    if (t->endpoints < 2)
        return err_data(err, "the topology has %d endpoints; a fit needs two", t->endpoints);
    if (t->tiers < 1)
        return err_data(err, "the topology has no tiers");
    if (p->endpoints != t->endpoints)
        return err_data(err, "the points are of %d endpoints, the topology has %d", p->endpoints,
                        t->endpoints);
    for (int i = 0; i < p->count; i++) {
        const struct point *q = &p->point[i];
        if (op_is_pair(q->op) && (q->src < 0 || q->dst < 0 || q->src >= t->endpoints ||
                                  q->dst >= t->endpoints || q->src == q->dst))
            return err_data(err, "point %d: no pair %d, %d among %d endpoints", i + 1, q->src,
                            q->dst, t->endpoints);
    }
    return p->count ? points_alike(p, NULL, err) : err_data(err, "no points: nothing to fit");
}

/* Start with the tiers of the topology, without measured values. */
static void start_tiers(struct matrix *m)
{
    m->tiers = m->topo.tiers;
    for (int i = 0; i < m->tiers; i++) {
        struct tier *t = &m->tier[i];
        t->rule = m->topo.tier[i];
        t->basis = BASIS_MEASURED;
        t->loaded = NAN;
        t->nic = !(t->rule.same & (1u << LEVEL_HOST | 1u << LEVEL_DOMAIN));
    }
}

/* Count pairs selected at random to run alone, the basis for judging "under load". */
static void count_unselected(struct fit *f)
{
    for (int i = 0; i < f->count; i++) {
        const struct obs *o = &f->obs[i];
        if (o->alone && fit_is_bandwidth(f, o) && o->sec > 0 && o->stages & 1u << STAGE_RANDOM)
            f->m->tier[o->tier].loaded_pairs++;
    }
}

/* Set the data-sheet rate of tiers that cross NICs: the rate of the reference's NICs, unless pairs reach more than a
 * NIC can carry.  Such pairs take another path with an unknown data sheet. */
static void peaks_from_nics(struct fit *f)
{
    struct matrix *m = f->m;
    double rate = f->classes.of[0].nic_Bps;

    for (int i = 0; i < m->tiers; i++)
        if (m->tier[i].nic && !(matrix_rate(m, i, DIR_UNI) > TIER_BEYOND * rate))
            m->tier[i].peak_Bps = rate;
}

/* Drop the NIC pass if all its pairs failed: the pass did not work, so it is not evidence about NICs. */
static void look_at_nic_pass(struct fit *f)
{
    const char *note = NULL;
    int kept = 0;

    for (int i = 0; i < f->count; i++) {
        f->by_nic = f->by_nic || (f->obs[i].by_nic && f->obs[i].sec > 0);
        note = f->obs[i].by_nic && obs_note(&f->obs[i]) ? obs_note(&f->obs[i]) : note;
    }
    if (f->by_nic)
        return;
    for (int i = 0; i < f->count; i++)
        if (!f->obs[i].by_nic)
            f->obs[kept++] = f->obs[i];
    if (kept < f->count)
        matrix_find(f->m, "unmeasured", "no pair got an answer through the NICs%s%s",
                    note ? ": " : "", note ? note : "");
    f->count = kept;
}

/* Record the network that NCCL used, because the tuner of a plugin is not NCCL's. */
static void say_network(struct matrix *m)
{
    struct nccl_profile p;

    if (!m->topo.nccl || nccl_profile_read(&p, m->topo.nccl, "topology", NULL) < 0)
        return;
    if (p.ranks && *p.rank[0].net)
        json_object_set_new(m->provenance, "network", json_string(p.rank[0].net));
    nccl_profile_free(&p);
}

int fit_matrix(struct matrix *m, struct topo *t, const struct plan *plan, const struct points *p,
               const struct fit_opts *o, struct err *err)
{
    struct fit f = {.m = m, .plan = plan, .points = p, .o = *o};

    matrix_init(m);
    if (points_fit_topology(t, p, err) < 0)
        return -1;
    m->topo = *t;
    topo_init(t);
    m->transport = mem_strdup(p->transport);
    m->fabric = m->topo.fabric ? mem_strdup(m->topo.fabric) : NULL;
    m->provenance = json_provenance();
    say_network(m);
    f.count = observe(&f.obs, p, true);
    look_at_nic_pass(&f);
    f.bw_bytes = observe_size(f.obs, f.count, OP_PAIR_BW);
    f.lat_bytes = observe_size(f.obs, f.count, OP_PAIR_LATENCY);
    fit_racks(&f);
    start_tiers(m);
    classes_make(&f.classes, &m->topo, f.obs, f.count, f.bw_bytes);
    fit_baseline(&f);
    fit_parts(&f);
    free(f.look); /* millions, and nothing after the parts asks for them */
    f.look = NULL;
    f.looks = 0;
    fit_latency(&f);
    tier_curves(&f);
    fit_properties(&f);
    count_unselected(&f);
    peaks_from_nics(&f);
    collective_curves(&f);
    fit_coverage(&f);
    fit_findings(&f);
    free(f.obs);
    free(f.tiers.at);
    noise_free(&f.noise);
    classes_free(&f.classes);
    lists_free(&f.of);
    return 0;
}
