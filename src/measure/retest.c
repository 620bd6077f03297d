/* SPDX-License-Identifier: BSD-3-Clause */
/* retest.c - the second stage: suspects and as many controls, with other partners, in mixed
 * order. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "measure/looks.h"
#include "measure/schedule_impl.h"

enum {
    LOOKS_LEAST = 8,    /* per suspect: one per block */
    LOOKS_MOST = 48,    /* six per block: more add no information about a block */
    GROUP_MEMBERS = 8,  /* of a suspected group */
    OTHER_CONTROLS = 6, /* controls from anywhere: number of normal looks in each block */
    CROWD = 4,  /* with more suspects on a leaf than this, the leaf itself may be the cause */
    TRIES = 40, /* random draws before all are tried in turn */
    INSIDE = LOOK_COUNT, /* classes inside a host or domain follow those over NICs */
    ASKS = 2 * LOOK_COUNT
};

/* Marks of an endpoint. */
enum {
    SUSPECT = 1,
    CONTROL = 2,
    GROUPED = 4 /* in a suspected group */,
    SILENT = 8 /* does not answer */
};

/* Endpoint that is looked at, suspect or control. */
struct subject {
    int id;
    int tier; /* tier of its pairs; -1: any that crosses NICs */
    int rack; /* rack of its partners; -1: any */
};

/* One kind of look, over NICs or inside. */
struct ask {
    struct subject *who; /* suspects first */
    int count, suspects;
};

struct retest {
    const struct noise_input *in;
    struct plan *out;
    bool by_nic;
    const bool *hashed; /* tiers whose flows are hashed onto uplinks */
    size_t bytes[LOOK_COUNT];
    struct rng rng;
    char *mark, *used;
    /* endpoints by leaf; endpoints by domain, or host if there is none */
    struct lists leaf, inside;
    int *crowd; /* number of suspects by leaf */
    struct ask ask[ASKS];
    int room; /* number of subjects that can still be added */
};

static bool is_inside(int ask)
{
    return ask >= INSIDE;
}

/* --- locations --- */

static int inside_of(const struct topo *t, int id)
{
    int domain = topo_at(t, id, LEVEL_DOMAIN);

    return domain >= 0 ? t->group[LEVEL_HOST].count + domain : topo_at(t, id, LEVEL_HOST);
}

static void list_places(struct retest *r)
{
    const struct topo *t = r->in->topo;
    const int leaves = t->group[LEVEL_LEAF].count;
    int *leaf = mem_ints(t->endpoints, -1), *inside = mem_ints(t->endpoints, -1);

    for (int i = 0; i < t->endpoints; i++) {
        leaf[i] = topo_at(t, i, LEVEL_LEAF);
        inside[i] = inside_of(t, i);
    }
    lists_make(&r->leaf, leaf, NULL, t->endpoints, leaves);
    lists_make(&r->inside, inside, NULL, t->endpoints,
               t->group[LEVEL_HOST].count + t->group[LEVEL_DOMAIN].count);
    r->crowd = mem_ints(leaves, 0);
    free(leaf);
    free(inside);
}

/* Endpoints near this one, on its leaf or inside its domain or host; *n 0: not known. */
static const int *near_list(const struct retest *r, int ask, int id, int *n)
{
    const struct lists *l = is_inside(ask) ? &r->inside : &r->leaf;
    int at = is_inside(ask) ? inside_of(r->in->topo, id) : topo_at(r->in->topo, id, LEVEL_LEAF);

    *n = at < 0 ? 0 : l->start[at + 1] - l->start[at];
    return *n ? l->at + l->start[at] : NULL;
}

typedef bool accept_fn(const struct retest *r, int ask, const struct subject *s, int id);

/* Random element of a list (NULL: of all endpoints); -1: no element is accepted. */
static int draw(struct retest *r, const int *list, int n, accept_fn *accepts, int ask,
                const struct subject *s)
{
    for (int i = 0; i < TRIES && n; i++) {
        int at = (int)rng_below(&r->rng, (unsigned)n), id = list ? list[at] : at;
        if (accepts(r, ask, s, id))
            return id;
    }
    for (int i = 0, from = n ? (int)rng_below(&r->rng, (unsigned)n) : 0; i < n; i++) {
        int at = (from + i) % n, id = list ? list[at] : at;
        if (accepts(r, ask, s, id))
            return id;
    }
    return -1;
}

/* --- suspects --- */

static bool has_subject(const struct ask *a, int id)
{
    for (int i = 0; i < a->count; i++)
        if (a->who[i].id == id)
            return true;
    return false;
}

/* Add a suspect if there is also room for its control. */
static void add_suspect(struct retest *r, int ask, struct subject s)
{
    struct ask *a = &r->ask[ask];
    int leaf = topo_at(r->in->topo, s.id, LEVEL_LEAF);

    if (r->room < 1 || r->mark[s.id] & SILENT || has_subject(a, s.id))
        return;
    MEM_PUSH(a->who, a->count) = s;
    a->suspects = a->count;
    r->room -= 2;
    if (!(r->mark[s.id] & SUSPECT) && leaf >= 0)
        r->crowd[leaf]++;
    r->mark[s.id] |= SUSPECT;
}

/* Add some random members of a suspected group; mark all of its members. */
static void add_group(struct retest *r, int ask, const struct found *f)
{
    const struct topo *t = r->in->topo;
    int *member = NULL, n = 0;

    for (int i = 0; i < t->endpoints; i++)
        if (topo_at(t, i, part_level[f->part]) == f->a) {
            MEM_PUSH(member, n) = i;
            r->mark[i] |= f->part == PART_RACK_PAIR ? 0 : GROUPED;
        }
    if (n)
        rng_shuffle(&r->rng, member, n);
    for (int i = 0; i < n && i < GROUP_MEMBERS; i++)
        add_suspect(r, ask,
                    (struct subject){member[i], f->tier, f->part == PART_RACK_PAIR ? f->b : -1});
    free(member);
}

/* Dead parts and wrong data are certain from the first points; pairs are measured by
 * retest_pairs.c. */
static bool is_measured_again(const struct found *f)
{
    return f->part != PART_PAIR && f->state != STATE_DEAD && f->state != STATE_WRONG;
}

static void add_suspects(struct retest *r, const struct noise *noise)
{
    for (int i = 0; i < noise->suspects; i++) {
        const struct found *f = &noise->suspect[i];
        int ask = f->kind + (f->tier >= 0 && !r->in->crosses[f->tier] ? INSIDE : 0);
        if (!is_measured_again(f))
            continue;
        if (part_level[f->part] >= 0)
            add_group(r, ask, f);
        else
            add_suspect(r, ask, (struct subject){f->a, f->tier, -1});
    }
}

/* --- controls --- */

static bool may_control(const struct retest *r, int ask, const struct subject *s, int id)
{
    const struct topo *t = r->in->topo;

    return !(r->mark[id] & (SUSPECT | CONTROL | GROUPED | SILENT)) &&
           topo_at(t, id, LEVEL_HOST) != topo_at(t, s->id, LEVEL_HOST) &&
           (!is_inside(ask) || inside_of(t, id) == inside_of(t, s->id));
}

static bool may_control_anywhere(const struct retest *r, int ask, const struct subject *s, int id)
{
    (void)ask;
    (void)s;
    return !(r->mark[id] & (SUSPECT | CONTROL | GROUPED | SILENT));
}

/* Control near the suspect, where both see the same other traffic; elsewhere if the leaf may be the
 * cause. */
static int control_of(struct retest *r, int ask, const struct subject *s)
{
    const int leaf = topo_at(r->in->topo, s->id, LEVEL_LEAF);
    const bool crowd = !is_inside(ask) && leaf >= 0 && r->crowd[leaf] > CROWD;
    int n, id = -1;
    const int *list = near_list(r, ask, s->id, &n);

    if (!crowd)
        id = draw(r, list, n, may_control, ask, s);
    if (id < 0)
        id = draw(r, NULL, r->in->topo->endpoints, may_control_anywhere, ask, s);
    return id;
}

static void add_control(struct retest *r, int ask, int id, int tier)
{
    struct ask *a = &r->ask[ask];

    if (id < 0)
        return;
    MEM_PUSH(a->who, a->count) = (struct subject){id, tier, -1};
    r->mark[id] |= CONTROL;
}

static void add_controls(struct retest *r, int ask)
{
    struct ask *a = &r->ask[ask];

    for (int i = 0; i < a->suspects; i++) {
        struct subject s = a->who[i];
        add_control(r, ask, control_of(r, ask, &s), s.tier);
    }
    for (int i = 0; i < OTHER_CONTROLS && a->suspects && r->room > 0; i++, r->room--) {
        struct subject s = a->who[i % a->suspects];
        int id = draw(r, NULL, r->in->topo->endpoints, may_control_anywhere, ask, &s);
        add_control(r, ask, id, is_inside(ask) ? s.tier : -1);
    }
}

/* --- partners --- */

static bool may_meet(const struct retest *r, int ask, const struct subject *s, int id)
{
    const struct topo *t = r->in->topo;

    if (id == s->id || r->used[id] || r->mark[id] & (SUSPECT | CONTROL | SILENT) ||
        (s->rack >= 0 && topo_at(t, id, LEVEL_RACK) != s->rack))
        return false;
    if (r->by_nic && t->endpoint[id].nic == t->endpoint[s->id].nic)
        return false;
    int tier = topo_tier_by(t, s->id, id, r->by_nic);
    return s->tier >= 0 ? tier == s->tier : r->in->crosses[tier] != is_inside(ask);
}

/* True for a partner outside suspected groups.  Only members of a suspected group may have a near
 * partner inside the group, because such a pair tells the group from its uplinks. */
static bool may_meet_clean(const struct retest *r, int ask, const struct subject *s, int id)
{
    return !(r->mark[id] & GROUPED) && may_meet(r, ask, s, id);
}

/* Half of the partners are near, as in the first stage; -1: no partner is left. */
static int partner_of(struct retest *r, int ask, const struct subject *s)
{
    const int all = r->in->topo->endpoints;
    int n, id = -1;
    const int *list = near_list(r, ask, s->id, &n);

    if (is_inside(ask) || rng_below(&r->rng, 2))
        id = draw(r, list, n, r->mark[s->id] & GROUPED ? may_meet : may_meet_clean, ask, s);
    if (id < 0)
        id = draw(r, NULL, all, may_meet_clean, ask, s);
    return id < 0 ? draw(r, NULL, all, may_meet, ask, s) : id;
}

/* --- looks --- */

static const enum op op_of[LOOK_COUNT] = {[LOOK_RATE] = OP_PAIR_BW,
                                          [LOOK_BOTH_WAYS] = OP_PAIR_BIBW,
                                          [LOOK_SMALL] = OP_PAIR_BW,
                                          [LOOK_LARGE] = OP_PAIR_BW,
                                          [LOOK_LATENCY] = OP_PAIR_LATENCY};

static enum stage stage_of(const struct retest *r, bool receives)
{
    return r->by_nic  ? receives ? STAGE_NIC_FRESH_RX : STAGE_NIC_FRESH_TX
           : receives ? STAGE_FRESH_RX
                      : STAGE_FRESH_TX;
}

/* True if look k is alone: every second one, or three of four where flows beside others collide by chance. */
static bool is_alone(const struct retest *r, int ask, int k)
{
    bool hashed = false;

    for (int t = 0; t < TIER_MAX && !is_inside(ask) && ask != LOOK_LATENCY; t++)
        hashed |= r->hashed[t];
    return k % 2 || (hashed && k % 8 != 0 && k % 8 != 6);
}

/* Add look k of all subjects of an ask.  Looks are alone or all at once, and change between sending
 * and receiving every two looks. */
static void add_look(struct retest *r, int ask, int k, unsigned epochs)
{
    const struct ask *a = &r->ask[ask];
    const bool alone = is_alone(r, ask, k), receives = k / 2 % 2;
    const enum look_kind kind = (enum look_kind)(ask % LOOK_COUNT);
    int(*pair)[2] = mem_calloc((size_t)a->count, sizeof(*pair)), n = 0,
    *order = mem_ints(a->count, 0);

    for (int i = 0; i < a->count; i++)
        order[i] = i;
    rng_shuffle(&r->rng, order, a->count);
    for (int i = 0; i < a->count; i++) {
        const struct subject *s = &a->who[order[i]];
        int partner = partner_of(r, ask, s);
        if (partner < 0)
            continue;
        r->used[partner] = 1;
        pair[n][receives] = s->id;
        pair[n++][!receives] = partner;
    }
    const struct plan_pairs what = {stage_of(r, receives), op_of[kind], r->bytes[kind], epochs};
    for (int i = 0; i < n; i++) {
        r->used[pair[i][!receives]] = 0;
        if (alone)
            plan_add_pairs(r->out, &what, (const int(*)[2]) & pair[i], 1);
    }
    if (!alone && n)
        plan_add_pairs(r->out, &what, (const int(*)[2])pair, n);
    free(order);
    free(pair);
}

/* Blocks of the looks of an ask, by look: looks of one sort (alone or not, sending or receiving) are spread evenly, so
 * that each sort is in as many blocks as it has looks. */
static void spread_looks(struct retest *r, int ask, int looks, int *block)
{
    int of[4] = {0}, at[4] = {0};
    double from[4];

    for (int s = 0; s < 4; s++)
        from[s] = rng_uniform(&r->rng);
    for (int k = 0; k < looks; k++)
        of[2 * is_alone(r, ask, k) + k / 2 % 2]++;
    for (int k = 0; k < looks; k++) {
        int s = 2 * is_alone(r, ask, k) + k / 2 % 2;

        block[k] = (int)((at[s]++ + from[s]) * PLAN_EPOCHS / of[s]);
    }
}

/* Add all looks in mixed order over the blocks. */
static void add_looks(struct retest *r, int budget)
{
    int subjects = 0, items = 0, asks = 0, *item, block[ASKS * LOOKS_MOST];

    for (int a = 0; a < ASKS; a++) {
        subjects += r->ask[a].count;
        asks += r->ask[a].count > 0;
    }
    int looks = subjects ? budget / subjects : 0;
    looks = looks > LOOKS_MOST ? LOOKS_MOST : looks;
    item = mem_ints(looks * asks, 0);
    for (int a = 0; a < ASKS; a++) {
        spread_looks(r, a, looks, block + (ptrdiff_t)a * LOOKS_MOST);
        for (int k = 0; k < looks && r->ask[a].count; k++)
            item[items++] = a * LOOKS_MOST + k;
    }
    if (items)
        rng_shuffle(&r->rng, item, items);
    for (int b = 0; b < PLAN_EPOCHS; b++)
        for (int i = 0; i < items; i++)
            if (block[item[i]] == b)
                add_look(r, item[i] / LOOKS_MOST, item[i] % LOOKS_MOST, 1u << b);
    free(item);
}

/* --- second stage as a whole --- */

/* Find the size of each kind, and mark endpoints that are silent in most of their points. */
static void read_points(struct retest *r, const struct points *p, const int *of)
{
    const int n = r->in->topo->endpoints;
    int *silent = mem_ints(2 * n, 0), *all = silent + n;

    for (int i = 0; i < r->in->looks; i++) {
        const struct look *k = &r->in->look[i];
        if (!r->bytes[k->kind])
            r->bytes[k->kind] = p->point[of[i]].bytes;
        for (int end = 0; end < 2; end++) {
            silent[end ? k->dst : k->src] += k->y == -INFINITY;
            all[end ? k->dst : k->src]++;
        }
    }
    for (int i = 0; i < n; i++)
        if (2 * silent[i] > all[i])
            r->mark[i] |= SILENT;
    free(silent);
}

/* Keep only looks of the first stage, so that a resumed campaign plans the same second stage. */
static int first_stage(struct look *look, int *of, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++)
        if (!look[i].fresh) {
            look[kept] = look[i];
            of[kept++] = of[i];
        }
    return kept;
}

static void measure_again(struct retest *r, const struct noise *noise, bool quick, int budget)
{
    const int n = r->in->topo->endpoints, least = quick ? 2 : LOOKS_LEAST;
    const struct plan_pairs pairs = {r->by_nic ? STAGE_NIC_RETEST : STAGE_RETEST, OP_PAIR_BW,
                                     r->bytes[LOOK_RATE], quick ? 1 : (1u << PLAN_EPOCHS) - 1};
    const int before = r->out->rounds;

    r->room = n < 4 ? 2 : n / 2; /* leave as many as partners */
    r->room = budget / least < r->room ? budget / least : r->room;
    add_suspects(r, noise);
    for (int a = 0; a < ASKS; a++)
        add_controls(r, a);
    schedule_retest_pairs(r->out, r->in, noise, &pairs, quick ? RETEST_PAIRS_QUICK : RETEST_PAIRS);
    add_looks(r, budget - (quick ? r->out->rounds - before : 0));
}

void schedule_retest(struct plan *out, const struct topo *t, struct points *p, bool by_nic,
                     bool quick)
{
    struct noise_input in = {.topo = t};
    struct noise noise;
    struct retest r = {.in = &in, .out = out, .by_nic = by_nic, .hashed = noise.hashed};
    int *of, budget = RETEST_LOOKS;
    struct look *look = looks_of(p, t, by_nic, &of, &in.looks);

    in.look = look;
    in.looks = first_stage(look, of, in.looks);
    looks_crossing(t, by_nic, in.crosses);
    if (quick)
        budget = t->endpoints < RETEST_QUICK        ? RETEST_QUICK
                 : t->endpoints > RETEST_MOST_QUICK ? RETEST_MOST_QUICK
                                                    : t->endpoints;
    rng_seed(&r.rng, p->plan_crc + by_nic);
    r.mark = mem_calloc((size_t)t->endpoints, 1);
    r.used = mem_calloc((size_t)t->endpoints, 1);
    list_places(&r);
    read_points(&r, p, of);
    free(of);
    noise_court_free(p->judged);
    p->judged = noise_suspects(&noise, &in);
    measure_again(&r, &noise, quick, budget);
    noise_free(&noise);
    for (int a = 0; a < ASKS; a++)
        free(r.ask[a].who);
    lists_free(&r.leaf);
    lists_free(&r.inside);
    free(r.crowd);
    free(r.mark);
    free(r.used);
    free(look);
}
