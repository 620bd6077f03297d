/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/nccl/nccl_pairs_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "measure/transports/nccl_opts.h"
#include "transport/mpi/world_mpi.h"
#include "transport/nccl/nccl_conn.h"
#include "transport/nccl/nccl_session_impl.h"

/* communicator for the pairs of each tier; rank 0 knows the topology */
static enum nccl_way ways[TIER_MAX];
static bool any_way; /* some tier does not use its own */
static bool nic_tiers;
static bool no_split;        /* the communicator of all ranks was lost */
static enum nccl_way my_way; /* communicator of this rank's pair in the current round */

bool nccl_pairs_shared(const struct group *g)
{
    return g->size == 2 && g->round && op_is_pair(g->round->op) && my_way == NCCL_SHARED;
}

/* Rank 0 knows the tiers and sends way[g] of each pair to all. */
static int tell_ways(unsigned char *way, struct world *w, const struct topo *topo,
                     const struct round *r, struct err *err)
{
    for (int g = 0; g < r->groups && w->rank == 0; g++) {
        const int *pair = r->group[g].members;
        way[g] = (unsigned char)ways[topo_tier_by(topo, pair[0], pair[1], nic_tiers)];
    }
    return w->tell(w, way, (size_t)r->groups, err);
}

/* If the communicator of all ranks is lost, pairs continue with their own. */
static void connect_round(struct world *w, const struct group *mine, bool split, bool shared)
{
    struct err why = {0, ""};
    double sec;
    int rc = shared ? nccl_conn_everyone(w, &why) : 0;

    if (rc == 0 && split)
        rc = nccl_conn_split(w, mine->members ? mine : NULL, &sec, &why);
    no_split = rc < 0;
    if (no_split && w->rank == 0)
        log_warn("pairs get communicators of their own from here on: %s", why.text);
    if (no_split)
        my_way = NCCL_OWN;
}

int nccl_pairs_round(struct world *w, const struct topo *topo, const struct round *r,
                     struct err *err)
{
    struct group mine = {.members = NULL};
    bool split = false, shared = false;

    my_way = NCCL_OWN;
    if (!any_way || no_split || !op_is_pair(r->op))
        return 0;
    unsigned char *way = mem_calloc((size_t)r->groups, 1);
    int rc = tell_ways(way, w, topo, r, err);
    for (int g = 0; g < r->groups && rc == 0; g++) {
        const int *pair = r->group[g].members;
        bool member = pair[0] == w->rank || pair[1] == w->rank;
        split |= way[g] == NCCL_SPLIT;
        shared |= way[g] == NCCL_SHARED;
        if (member)
            my_way = (enum nccl_way)way[g];
        if (member && way[g] == NCCL_SPLIT)
            mine = (struct group){.members = pair, .size = 2, .self = pair[1] == w->rank};
    }
    free(way);
    if (rc == 0 && (split || shared))
        connect_round(w, &mine, split, shared);
    return rc;
}

/* --- the trial --- */

/* Result of a pair, sent by its first member to rank 0. */
enum { TRY_OWN, TRY_SHARED, TRIES };
enum { TRY_LATENCY, TRY_BW, TRY_OPS };
struct trial {
    int tier;  /* -1: not the first member of a pair */
    bool good; /* no failure */
    double init;
    double median[TRY_OPS][TRIES], half[TRY_OPS][TRIES]; /* s; share of the median */
};

struct trial_plan {
    const struct transport *tr;
    struct world *w;
    const struct topo *topo;
    struct trial_choice {
        enum nccl_pair_comms how;
        size_t bytes[TRY_OPS];
        int pair[TIER_MAX][TRIAL_PAIRS][2], pairs[TIER_MAX];
    } now; /* rank 0's, sent to all */
};

static bool has(const struct trial_plan *p, int tier, int rank)
{
    for (int i = 0; i < p->now.pairs[tier]; i++)
        if (p->now.pair[tier][i][0] == rank || p->now.pair[tier][i][1] == rank)
            return true;
    return false;
}

/* Choose pairs without a common member from the plan's rounds: the first ones of each tier. */
static void choose_pairs(struct trial_plan *p, const struct plan *plan)
{
    p->now.bytes[TRY_LATENCY] = 8;
    p->now.bytes[TRY_BW] = 1 << 20;
    for (int i = plan->rounds - 1; i >= 0; i--)
        if (plan->round[i].op == OP_PAIR_BW && stage_by_nic(plan->round[i].stage) == nic_tiers)
            p->now.bytes[TRY_BW] =
                plan->round[i].first > 1024 ? plan->round[i].first : p->now.bytes[TRY_BW];
    for (int i = 0; i < plan->rounds; i++) {
        const struct round *r = &plan->round[i];
        for (int g = 0; g < r->groups && op_is_pair(r->op); g++) {
            const int *m = r->group[g].members;
            int tier = topo_tier_by(p->topo, m[0], m[1], nic_tiers), n = p->now.pairs[tier];
            if (stage_by_nic(r->stage) != nic_tiers || n == TRIAL_PAIRS || has(p, tier, m[0]) ||
                has(p, tier, m[1]))
                continue;
            memcpy(p->now.pair[tier][p->now.pairs[tier]++], m, 2 * sizeof(*m));
        }
    }
}

static int by_value(const void *a, const void *b)
{
    return stats_order(a, b, 1);
}

static void sum_up(struct trial *t, int op, int way, double *sec)
{
    qsort(sec, TRIAL_ROUNDS, sizeof(*sec), by_value);
    double middle = sec[TRIAL_ROUNDS / 2], sigma = stats_sigma(sec, TRIAL_ROUNDS);

    t->median[op][way] = middle;
    t->half[op][way] = middle > 0 ? 1.96 * 1.2533 * sigma / sqrt(TRIAL_ROUNDS) / middle : 1;
}

/* Measure with both kinds in turn; the two members agree inside run(). */
static int run_trial(struct trial_plan *p, void *const ctx[TRIES], struct trial *t, struct err *err)
{
    static const enum op ops[TRY_OPS] = {OP_PAIR_LATENCY, OP_PAIR_BW};
    double all[TRY_OPS][TRIES][TRIAL_ROUNDS], sec[8];

    for (int i = -1; i < TRIAL_ROUNDS; i++) /* the first one connects */
        for (int op = 0; op < TRY_OPS; op++)
            for (int way = 0; way < TRIES; way++) {
                int n = op == TRY_LATENCY ? 8 : 2;
                if (p->tr->calls->run(ctx[way], ops[op], p->now.bytes[op], n, sec, err) < 0)
                    return -1;
                if (i >= 0)
                    all[op][way][i] = stats_median(sec, n);
            }
    for (int op = 0; op < TRY_OPS; op++)
        for (int way = 0; way < TRIES; way++)
            sum_up(t, op, way, all[op][way]);
    return 0;
}

static int try_pair(struct trial_plan *p, const int *pair, struct trial *t, struct err *err)
{
    struct nccl_session *s[TRIES] = {NULL};
    struct group g = {.members = pair, .size = 2, .self = pair[1] == p->w->rank};
    int rc = p->w->enter(p->w, pair, 2, 0, &g.comm, err);

    for (int way = 0; way < TRIES && rc == 0; way++) {
        double from = log_now();
        rc = nccl_session_open(&s[way], &g, way == TRY_SHARED, p->now.bytes[TRY_BW], err);
        if (way == TRY_OWN)
            t->init = log_now() - from;
    }
    if (rc == 0)
        rc = run_trial(p, (void *[]){s[TRY_OWN], s[TRY_SHARED]}, t, err);
    for (int way = 0; way < TRIES; way++)
        nccl_session_close(s[way]);
    nccl_conn_close(pair, 2);
    if (g.comm)
        p->w->leave(p->w, &g.comm);
    return rc;
}

/* Measure the pairs of one tier; sec: seconds of the slowest init, and of a split. */
static int try_tier(struct trial_plan *p, int tier, struct trial *all, double sec[2],
                    struct err *err)
{
    struct trial mine = {.tier = -1};
    struct group g = {.members = NULL};
    struct err why;

    for (int i = 0; i < p->now.pairs[tier]; i++) {
        const int *pair = p->now.pair[tier][i];
        if (pair[0] != p->w->rank && pair[1] != p->w->rank)
            continue;
        g = (struct group){.members = pair, .size = 2, .self = pair[1] == p->w->rank};
        mine.good = try_pair(p, pair, &mine, &why) == 0;
        mine.tier = g.self == 0 ? tier : -1;
    }
    if (p->w->gather(p->w, &mine, sizeof(mine), all, err) < 0 ||
        nccl_conn_split(p->w, g.members ? &g : NULL, &sec[1], err) < 0)
        return -1;
    if (g.members)
        nccl_conn_close(g.members, 2);
    sec[0] = 0;
    for (int r = 0; r < p->w->size && p->w->rank == 0; r++)
        if (all[r].tier == tier)
            sec[0] = fmax(sec[0], all[r].init);
    return 0;
}

static bool agree(const struct trial *t)
{
    for (int op = 0; op < TRY_OPS && t->good; op++) {
        double noise = t->half[op][TRY_OWN] + t->half[op][TRY_SHARED];
        if (noise > 0.1 ||
            fabs(t->median[op][TRY_SHARED] / t->median[op][TRY_OWN] - 1) > fmax(0.02, noise))
            return false;
    }
    return t->good;
}

/* Largest difference of a pair between the two kinds, as |log|; a tier is judged by its worst
 * pair. */
static double apart(const struct trial *t)
{
    double most = 0;

    for (int op = 0; op < TRY_OPS; op++)
        most = fmax(most, t->good ? fabs(log(t->median[op][TRY_SHARED] / t->median[op][TRY_OWN]))
                                  : INFINITY);
    return most;
}

static void tell(const struct trial_plan *p, int tier, const struct trial *t, const double sec[2])
{
    const char *name = p->topo->tier[tier].name;
    double gb = (double)p->now.bytes[TRY_BW] / 1e9;

    if (!t || !t->good) {
        log_info("pairs of tier %s have communicators of their own: their trial failed", name);
        return;
    }
    char *made = ways[tier] == NCCL_SHARED
                     ? mem_strdup("share one communicator")
                     : mem_printf("have communicators of their own%s",
                                  ways[tier] == NCCL_SPLIT ? ", by splits" : "");
    log_info("pairs of tier %s %s: %.4g against %.4g us, %.4g against %.4g GB/s (shared against "
             "own); an init took %.2g s, a split %.2g s",
             name, made, 1e6 * t->median[TRY_LATENCY][TRY_SHARED],
             1e6 * t->median[TRY_LATENCY][TRY_OWN], gb / t->median[TRY_BW][TRY_SHARED],
             gb / t->median[TRY_BW][TRY_OWN], sec[0], sec[1]);
    free(made);
}

/* Decide on rank 0. */
static void decide(const struct trial_plan *p, int tier, const struct trial *all,
                   const double sec[2])
{
    const struct trial *worst = NULL;
    struct nccl_config config;
    bool shares = true;

    for (int r = 0; r < p->w->size; r++) {
        if (all[r].tier != tier)
            continue;
        shares &= agree(&all[r]);
        worst = !worst || apart(&all[r]) > apart(worst) ? &all[r] : worst;
    }
    nccl_opts_config(&config);
    bool splits = sec[1] > 0 && sec[1] < sec[0] && config.split_share != 1;
    ways[tier] = shares && worst ? NCCL_SHARED : splits ? NCCL_SPLIT : NCCL_OWN;
    tell(p, tier, worst, sec);
}

static int trial(struct trial_plan *p, struct err *err)
{
    struct trial *all = mem_calloc((size_t)p->w->size, sizeof(*all));
    double sec[2];
    struct err why = {0, ""};
    int rc = nccl_conn_everyone(p->w, &why);

    for (int tier = 0; tier < TIER_MAX && rc == 0; tier++) {
        if (!p->now.pairs[tier])
            continue;
        rc = try_tier(p, tier, all, sec, &why);
        if (rc == 0 && p->w->rank == 0)
            decide(p, tier, all, sec);
    }
    free(all);
    if (rc < 0 && p->w->rank == 0)
        log_warn("pairs have communicators of their own: no trial of others: %s", why.text);
    for (int tier = 0; rc < 0 && tier < TIER_MAX; tier++)
        ways[tier] = NCCL_OWN;
    return p->w->tell(p->w, ways, sizeof(ways), err);
}

/* --- before the campaign --- */

static void note(const struct trial_plan *p)
{
    char *text = mem_strdup("");

    for (int tier = 0; tier < TIER_MAX; tier++) {
        if (!p->now.pairs[tier])
            continue;
        char *more = mem_printf("%s%s%s %s", text, *text ? ", " : "", p->topo->tier[tier].name,
                                nccl_way_name[ways[tier]]);
        free(text);
        text = more;
    }
    json_provenance_add("pair_comms", text);
    free(text);
}

/* Choose on rank 0. */
static void choose_how(struct trial_plan *p, const struct plan *plan)
{
    const struct nccl_opts *o = nccl_opts_now();
    double sec = plan_connect_seconds(plan, p->topo, o->pool, nic_tiers);

    p->now.how = o->pair_comms;
    if (p->now.how == NCCL_PAIRS_DEFAULT)
        p->now.how = sec > PAIRS_PATIENCE ? NCCL_PAIRS_AUTO : NCCL_PAIRS_OWN;
    if (p->now.how == NCCL_PAIRS_AUTO && o->registration == NCCL_REG_SYMMETRIC)
        p->now.how = NCCL_PAIRS_SPLIT; /* windows are registered by all members of a communicator */
    choose_pairs(p, plan);
}

int nccl_pairs_prepare(const struct transport *tr, struct world *w, const struct topo *topo,
                       const struct plan *plan, bool by_nic, struct err *err)
{
    struct trial_plan p = {.tr = tr, .w = w, .topo = topo};

    nic_tiers = by_nic;
    no_split = false;
    if (w->rank == 0)
        choose_how(&p, plan);
    int rc = w->tell(w, &p.now, sizeof(p.now), err);
    for (int tier = 0; tier < TIER_MAX; tier++)
        ways[tier] = p.now.how == NCCL_PAIRS_SPLIT    ? NCCL_SPLIT
                     : p.now.how == NCCL_PAIRS_SHARED ? NCCL_SHARED
                                                      : NCCL_OWN;
    if (rc == 0 && p.now.how == NCCL_PAIRS_AUTO)
        rc = trial(&p, err);
    any_way = false;
    for (int tier = 0; tier < TIER_MAX; tier++)
        any_way |= ways[tier] != NCCL_OWN;
    if (w->rank == 0)
        note(&p);
    return rc;
}
