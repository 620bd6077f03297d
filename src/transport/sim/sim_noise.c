/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_noise.c - effect of a world on points and samples.
 *
 * Seconds of a point without noise are multiplied by
 *
 *   exp(sum over kinds of sigma N(0,1))        point, ladder, group-epoch, pair, turn
 *   exp(-sum over its hosts of sigma N(0,1))   host-epoch; for a collective the slowest host
 *   exp(-least of its members)                 endpoint + host: ends are in series
 *   exp(largest of its hosts |sigma N(0,1)|)   host-latency, for pair_latency alone
 *   1 / factor                                 stray
 *   1 / (1 - drift * turn / turns)             all but pair_latency
 *
 * The rate between leaves is multiplied by least + (1 - least) * U at each end where another job
 * runs, and a sample by sim_noise_sample().  Each draw has its own key, made of the seed (campaign
 * or machine) and the purpose of the draw. */
#include <math.h>

#include "measure/plan.h"
#include "transport/sim/sim.h"

/* Purpose of a draw: the first value of its key. */
enum draw {
    DRAW_POINT = 1000, /* apart from the numbers of rounds */
    DRAW_LADDER,
    DRAW_GROUP_EPOCH,
    DRAW_PAIR,
    DRAW_TURN,
    DRAW_HOST_EPOCH,
    DRAW_ENDPOINT,
    DRAW_HOST,
    DRAW_HOST_LATENCY,
    DRAW_STRAY,
    DRAW_JOB,
    DRAW_JOB_SIZE,
    DRAW_LANE,
    DRAW_PXN
};

static double normal(unsigned long long key)
{
    struct rng rng;

    rng_seed(&rng, key);
    return rng_normal(&rng);
}

static unsigned long long key_of(unsigned long long seed, enum draw what, int a, int b)
{
    return sim_mix(sim_mix(sim_mix(seed, what), (unsigned)a), (unsigned)b);
}

/* Number of a moment; both passes of a plan number their turns from 0. */
static int moment(const struct sim *s)
{
    return 2 * s->now.turn + s->by_nic;
}

int sim_lane(const struct sim *s, int src, int dst, int lanes)
{
    bool once = s->world && s->world->hashing.rehash == REHASH_CAMPAIGN;
    unsigned long long key = key_of(s->seed, DRAW_LANE, src, dst);

    return (int)(sim_uniform(sim_mix(key, once ? 0 : (unsigned)s->now.block + 1)) * lanes);
}

int sim_sender(const struct sim *s, int src, int dst)
{
    const struct topo *t = s->truth;
    int rail = topo_at(t, dst, LEVEL_RAIL), host = topo_at(t, src, LEVEL_HOST);

    if (!s->world || !(s->world->pxn > 0) || rail < 0 || rail == topo_at(t, src, LEVEL_RAIL) ||
        sim_uniform(key_of(s->machine, DRAW_PXN, src, dst)) >= s->world->pxn)
        return src;
    for (int i = src - t->endpoint[src].local; i < t->endpoints; i++) {
        if (topo_at(t, i, LEVEL_HOST) != host)
            break;
        if (topo_at(t, i, LEVEL_RAIL) == rail)
            return i;
    }
    return src;
}

/* --- noise of a point --- */

/* Log of the rate of a part, which the machine keeps. */
static double kept(const struct sim *s, int id)
{
    const struct sim_world *w = s->world;
    double y = 0;

    if (w->endpoint > 0)
        y += w->endpoint * normal(key_of(s->machine, DRAW_ENDPOINT, id, 0));
    if (w->host > 0)
        y += w->host * normal(key_of(s->machine, DRAW_HOST, topo_at(s->truth, id, LEVEL_HOST), 0));
    return y;
}

static double hosts_minute(const struct sim *s, const struct group *g)
{
    const int *ids = g->members;
    double sum = 0, least = INFINITY;
    int before = -1;

    for (int i = 0; i < g->size; i++) {
        int host = topo_at(s->truth, ids[i], LEVEL_HOST);
        if (host == before)
            continue;
        double y =
            s->world->host_epoch * normal(key_of(s->seed, DRAW_HOST_EPOCH, host, s->now.block));
        sum += y;
        least = fmin(least, y);
        before = host;
    }
    return g->size > 2 ? least : sum;
}

/* Log of the time that parts add or save. */
static double parts(const struct sim *s, const struct group *g)
{
    const struct sim_world *w = s->world;
    bool latency = s->now.op == OP_PAIR_LATENCY;
    double least = INFINITY, late = 0, y = 0;

    for (int i = 0; i < g->size; i++) {
        if (latency && w->host_latency > 0)
            late = fmax(late,
                        w->host_latency *
                            fabs(normal(key_of(s->machine, DRAW_HOST_LATENCY,
                                               topo_at(s->truth, g->members[i], LEVEL_HOST), 0))));
        else if (!latency && (w->endpoint > 0 || w->host > 0))
            least = fmin(least, kept(s, g->members[i]));
    }
    y = late - (isinf(least) ? 0 : least);
    return w->host_epoch > 0 ? y - hosts_minute(s, g) : y;
}

/* Log of the time from noise that does not depend on parts. */
static double luck(const struct sim *s, const struct group *g)
{
    const struct sim_world *w = s->world;
    unsigned long long seed = s->seed, members = 0, ladder;
    double y = 0;

    ladder = sim_mix(key_of(seed, DRAW_LADDER, g->round->id, g->index), (unsigned)g->epoch);
    for (int i = 0; i < g->size && (w->group_epoch > 0 || w->pair > 0); i++)
        members = sim_mix(members, (unsigned)g->members[i]);
    if (w->point > 0)
        y += w->point * normal(sim_mix(sim_mix(ladder, DRAW_POINT), s->now.bytes));
    if (w->ladder > 0)
        y += w->ladder * normal(ladder);
    if (w->group_epoch > 0)
        y += w->group_epoch *
             normal(sim_mix(key_of(seed, DRAW_GROUP_EPOCH, s->now.block, 0), members));
    if (w->pair > 0)
        y += w->pair * normal(sim_mix(key_of(seed, DRAW_PAIR, 0, 0), members));
    if (w->turn > 0)
        y += w->turn * normal(key_of(seed, DRAW_TURN, moment(s), 0));
    double share = s->now.load ? w->stray.share : w->stray.alone;
    if (share > 0 && sim_uniform(sim_mix(sim_mix(ladder, DRAW_STRAY), s->now.bytes)) < share)
        y -= log(w->stray.factor);
    return y;
}

/* Share of the rate that other jobs leave to a flow over the uplinks of this leaf. */
static double beside_jobs(const struct sim *s, int leaf, int a)
{
    const struct sim_world *w = s->world;
    int slot = (int)(s->now.turn / w->jobs.turns) * 2 + s->by_nic;

    if (sim_uniform(key_of(s->seed, DRAW_JOB, leaf, slot)) >= w->jobs.share)
        return 1;
    double u = sim_uniform(sim_mix(key_of(s->seed, DRAW_JOB_SIZE, leaf, moment(s)), (unsigned)a));
    return w->jobs.least + (1 - w->jobs.least) * u;
}

/* True if a flow goes from one leaf to another.  NVLink crosses no leaf, although both ends have
 * NICs there. */
static bool between_leaves(const struct sim *s, int a, int b)
{
    const int level = (int)sim_uplink_level(s->truth), x = topo_at(s->truth, a, level);

    return x >= 0 && x != topo_at(s->truth, b, level) &&
           s->fabric->tier[topo_tier_by(s->truth, a, b, s->by_nic)].nic;
}

/* A flow between leaves, or a collective over several, is slowed by the jobs of each leaf. */
static double jobs_leave(const struct sim *s, const struct group *g)
{
    const int level = (int)sim_uplink_level(s->truth);
    double left = 1, least = 1;

    if (!(s->world->jobs.share > 0))
        return 1;
    for (int i = 0; i < g->size; i++) {
        int a = g->members[i], b = g->members[(i + 1) % g->size];
        if (!between_leaves(s, a, b))
            continue;
        double here = beside_jobs(s, topo_at(s->truth, a, level), g->members[0]);
        left *= here;
        least = fmin(least, here);
    }
    return g->size > 2 ? least : left;
}

struct sim_luck sim_noise_point(const struct sim *s, const struct group *g)
{
    struct sim_luck out = {1, 1};
    const struct sim_world *w = s->world;

    if (!w)
        return out;
    out.time = exp(luck(s, g) + parts(s, g));
    if (s->now.op != OP_PAIR_LATENCY && s->now.turns > 0)
        out.time /= 1 - w->drift * fmin(1, (double)s->now.turn / s->now.turns);
    out.rate = jobs_leave(s, g);
    return out;
}

/* --- noise of a sample --- */

/* True if the pair, or some members of the group, send from one leaf to another. */
static bool crosses(const struct sim *s, const struct group *g)
{
    for (int i = 1; i < g->size; i++)
        if (between_leaves(s, g->members[0], g->members[i]))
            return true;
    return false;
}

double sim_noise_sample(const struct sim *s, const struct group *g, struct rng *rng, double sec)
{
    const struct sim_world *w = s->world;

    if (w->adaptive.sigma > 0 && s->now.load && s->now.op != OP_PAIR_LATENCY && crosses(s, g))
        sec /= fmax(w->adaptive.least, 1 - fabs(w->adaptive.sigma * rng_normal(rng)));
    if (w->modes.share > 0 && rng_uniform(rng) < w->modes.share)
        sec /= w->modes.factor;
    if (w->tail.share > 0 && rng_uniform(rng) < w->tail.share)
        sec *=
            1 + fmin(w->tail.most, w->tail.scale * pow(1 - rng_uniform(rng), -1 / w->tail.shape));
    if (w->tick > 0)
        sec = w->tick * fmax(1, round(sec / w->tick));
    return sec;
}
