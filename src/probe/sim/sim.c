/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "probe/plan.h"

enum part { ENDPOINT, HOST, RACK };

/* How each fault is written: NAME=A[-B][:F[:side]]. */
static const struct {
    const char *name;
    enum part part;
    bool two, factor, side;
} forms[FAULT_COUNT] = {
    [FAULT_SLOW_LINK] = {"slow-link", ENDPOINT, true, true, false},
    [FAULT_SLOW_NIC] = {"slow-nic", ENDPOINT, false, true, true},
    [FAULT_SLOW_GPU] = {"slow-gpu", ENDPOINT, false, true, false},
    [FAULT_SLOW_HOST] = {"slow-host", HOST, false, true, false},
    [FAULT_SLOW_RACKS] = {"slow-racks", RACK, true, true, false},
    [FAULT_DEAD_HOST] = {"dead-host", HOST, false, false, false},
    [FAULT_CORRUPT] = {"corrupt", ENDPOINT, false, false, false},
};

/* Racks where there are any, NVLink domains elsewhere. */
static enum level rack_level(const struct topo *t)
{
    return t->group[LEVEL_RACK].count > 1 ? LEVEL_RACK : LEVEL_DOMAIN;
}

static int find_end(const struct topo *t, enum part part, const char *text, int *out,
                    struct err *err)
{
    static const char *const names[] = {"endpoint", "host", "rack"};
    int count = part == ENDPOINT ? t->endpoints
                : part == HOST   ? t->hosts
                                 : t->group[rack_level(t)].count;
    struct err why;

    *out = part == HOST ? topo_find_host(t, text) : -1;
    if (*out >= 0)
        return 0;
    if (units_int(out, text, 0, count - 1, &why) < 0)
        return err_usage(err, "%s %s: %s", names[part], text, why.text);
    return 0;
}

/* The next piece of "a-b:f:side" up to one of `ends`; cuts it out of *rest. */
static char *piece(char **rest, const char *ends)
{
    char *here = *rest, *end = here + strcspn(here, ends);

    *rest = *end ? end + 1 : end;
    *end = '\0';
    return here;
}

static int parse_fault(const struct sim *s, struct sim_fault *f, char *text, struct err *err)
{
    char *rest = text, *name = piece(&rest, "=");
    int kind = 0;

    while (kind < FAULT_COUNT && strcmp(forms[kind].name, name))
        kind++;
    if (kind == FAULT_COUNT)
        return err_usage(err,
                         "no fault \"%s\"; known: slow-link slow-nic slow-gpu slow-host slow-racks "
                         "dead-host corrupt",
                         name);
    *f = (struct sim_fault){.kind = (enum fault_kind)kind, .b = -1, .tx = true, .rx = true};
    char *a = piece(&rest, forms[kind].two ? "-" : ":");
    if (find_end(s->truth, forms[kind].part, a, &f->a, err) < 0)
        return -1;
    if (forms[kind].two && find_end(s->truth, forms[kind].part, piece(&rest, ":"), &f->b, err) < 0)
        return -1;
    if (f->a == f->b)
        return err_usage(err, "%s: the two ends are the same, %d", name, f->a);
    if (forms[kind].factor && units_double(&f->factor, piece(&rest, ":"), 1e-6, 1, err) < 0)
        return err_wrap(err, "factor of %s", name);
    if (forms[kind].side && *rest) {
        char *side = piece(&rest, ":");
        if (strcmp(side, "tx") && strcmp(side, "rx"))
            return err_usage(err, "side \"%s\" is neither tx nor rx", side);
        f->tx = side[0] == 't';
        f->rx = !f->tx;
    }
    return *rest ? err_usage(err, "\"%s\" is left over", rest) : 0;
}

int sim_fault(struct sim *s, const char *text, struct err *err)
{
    char *copy = mem_strdup(text);
    struct sim_fault f;
    int rc = parse_fault(s, &f, copy, err);

    if (rc < 0)
        err_wrap(err, "--fault %s", text);
    else
        MEM_PUSH(s->fault, s->faults) = f;
    free(copy);
    return rc;
}

static bool between(int x, int y, int a, int b)
{
    return (x == a && y == b) || (x == b && y == a);
}

bool sim_concerns(const struct sim *s, const struct sim_fault *f, int src, int dst, bool nic)
{
    const int *x = s->truth->endpoint[src].place.at, *y = s->truth->endpoint[dst].place.at;
    enum level rack = rack_level(s->truth);

    switch (f->kind) {
    case FAULT_SLOW_LINK:
        return between(src, dst, f->a, f->b);
    case FAULT_SLOW_NIC:
        return nic && ((f->a == src && f->tx) || (f->a == dst && f->rx));
    case FAULT_SLOW_GPU:
        return !nic && (f->a == src || f->a == dst);
    case FAULT_SLOW_HOST:
        return x[LEVEL_HOST] == f->a || y[LEVEL_HOST] == f->a;
    case FAULT_SLOW_RACKS:
        return between(x[rack], y[rack], f->a, f->b);
    default:
        return false;
    }
}

/* Rate left (0..1) of src -> dst on this tier. */
static double rate_left(const struct sim *s, int src, int dst, int tier)
{
    double worst = 1;

    for (int i = 0; i < s->faults; i++)
        if (sim_concerns(s, &s->fault[i], src, dst, s->fabric->tier[tier].nic))
            worst = fmin(worst, s->fault[i].factor);
    return worst;
}

/* The NVLink domain, where there is none the host. */
static int domain_of(const struct topo *t, int id)
{
    const int *at = t->endpoint[id].place.at;

    return at[LEVEL_DOMAIN] >= 0 ? at[LEVEL_DOMAIN] : at[LEVEL_HOST];
}

double sim_pair(const struct sim *s, enum op op, int src, int dst, double bytes, double share)
{
    const struct topo *t = s->truth;
    int tier = topo_tier(t, src, dst);
    const struct fabric_tier *ft = &s->fabric->tier[tier];
    double alpha = ft->alpha.value, there = share * rate_left(s, src, dst, tier),
           back = share * rate_left(s, dst, src, tier);

    if (op == OP_PAIR_LATENCY) /* half of a round trip */
        return alpha + bytes / ft->Bps.value * (1 / there + 1 / back) / 2;
    if (op == OP_PAIR_BIBW)
        return alpha / OP_PAIR_WINDOW + bytes / (ft->bi_Bps.value * fmin(there, back));
    return alpha / OP_PAIR_WINDOW + bytes / (ft->Bps.value * there);
}

/* --- collectives --- */

/* Collectives on the simulated fabric: what the preset says of a healthy group that runs alone, and
 * what faults and a share of the uplinks do to the part of it that grows with the size.
 *
 * What they do is told by what moves: a ring in member order runs at its slowest hop (all_gather,
 * reduce_scatter, all_reduce, broadcast, reduce), and leaves a domain over the NICs of all its
 * members there at once, each carrying its part, so the slowest of those NICs rules; in all_to_all
 * every member's NIC carries its own traffic beside what stays inside, and the slowest member rules
 * (nccl-tests issue #267); sendrecv takes its slowest hop. */
struct links {
    double in_Bps;  /* of the slowest hop inside a domain; INFINITY: none */
    double nic_Bps; /* of the slowest hop that crosses NICs, one endpoint's; INFINITY: none */
    int per_domain; /* members that leave a domain together: the fewest */
};

/* What the slowest member's own fault leaves of its traffic between domains. */
static double member_factor(const struct sim *s, const int *ids, int n)
{
    double worst = 1;

    for (int f = 0; f < s->faults; f++) {
        const struct sim_fault *x = &s->fault[f];
        for (int i = 0; i < n; i++) {
            int host = s->truth->endpoint[ids[i]].place.at[LEVEL_HOST];
            if ((x->kind == FAULT_SLOW_NIC && ids[i] == x->a) ||
                (x->kind == FAULT_SLOW_HOST && host == x->a))
                worst = fmin(worst, x->factor);
        }
    }
    return worst;
}

/* Walk the ring of members once. */
static struct links walk(const struct sim *s, const int *ids, int n, bool faults)
{
    const struct topo *t = s->truth;
    double nics = fmin(1, (double)s->fabric->nics_per_host / s->fabric->gpus_per_host);
    struct links l = {INFINITY, INFINITY, n};
    int run = 0;

    for (int i = 0; i < n; i++) {
        int a = ids[i], b = ids[(i + 1) % n];
        int tier = topo_tier(t, a, b);
        double Bps = s->fabric->tier[tier].Bps.value;
        if (faults)
            Bps *= rate_left(s, a, b, tier);
        run++;
        if (domain_of(t, a) == domain_of(t, b)) {
            l.in_Bps = fmin(l.in_Bps, Bps);
            continue;
        }
        l.nic_Bps = fmin(l.nic_Bps, Bps);
        l.per_domain = run < l.per_domain ? run : l.per_domain;
        run = 0;
    }
    if (l.per_domain > 1)
        l.nic_Bps *= nics; /* which they share */
    if (faults)
        l.nic_Bps = fmin(l.nic_Bps, l.nic_Bps * member_factor(s, ids, n));
    return l;
}

/* Seconds that a byte moves. */
static double moving(const struct links *l, enum op op, int n)
{
    int g = l->per_domain;

    if (op_table[op].links == OP_EXCHANGE)
        return fmax((g - 1) / l->in_Bps, (n - g) / l->nic_Bps) / n;
    if (op_table[op].links == OP_NEXT)
        return 1 / fmin(l->in_Bps, l->nic_Bps);
    return 1 / fmin(l->in_Bps, l->nic_Bps * g);
}

double sim_collective(const struct sim *s, enum op op, const int *ids, int n, double bytes,
                      double share)
{
    double whole = s->healthy(s->of, op, ids, n, bytes);

    if (!s->faults && share >= 1)
        return whole;
    double floor = fmin(whole, s->healthy(s->of, op, ids, n, 8));
    struct links well = walk(s, ids, n, false), now = walk(s, ids, n, true);
    now.nic_Bps *= share;
    return floor + (whole - floor) * moving(&now, op, n) / moving(&well, op, n);
}

/* --- uplinks --- */

/* Who shares the uplinks of a leaf.  They carry uplink_share of what its endpoints' NICs do, each
 * way; flows that cross leaves at once share them evenly, and one flow alone notices nothing. */

/* What flows up from and down to each leaf in one round, in whole NICs of an endpoint. */
struct sim_uplinks {
    const struct round *round;
    int id;
    double *up, *down;
    int *endpoints;
};

/* The flow from a to b, or `part` of one: counted, or what the uplinks leave of it. */
typedef double flow_fn(struct sim_uplinks *u, const struct topo *t, int a, int b, double part);

static int leaf_of(const struct topo *t, int id)
{
    return t->endpoint[id].place.at[LEVEL_LEAF];
}

static bool climbs(const struct topo *t, int a, int b)
{
    return leaf_of(t, a) >= 0 && leaf_of(t, b) >= 0 && leaf_of(t, a) != leaf_of(t, b);
}

static double count_flow(struct sim_uplinks *u, const struct topo *t, int a, int b, double part)
{
    if (climbs(t, a, b)) {
        u->up[leaf_of(t, a)] += part;
        u->down[leaf_of(t, b)] += part;
    }
    return INFINITY;
}

static double room_for_flow(struct sim_uplinks *u, const struct topo *t, int a, int b, double part)
{
    int x = leaf_of(t, a), y = leaf_of(t, b);

    (void)part;
    return climbs(t, a, b) ? fmin(u->endpoints[x] / u->up[x], u->endpoints[y] / u->down[y])
                           : INFINITY;
}

/* A ring leaves the domain that ends before ids[end] over the NICs of all its members there. */
static double ring_flows(struct sim_uplinks *u, const struct topo *t, const int *ids, int n,
                         flow_fn *fn)
{
    double least = INFINITY;

    for (int i = 0, run = 0; i < n; i++) {
        run++;
        if (domain_of(t, ids[i]) == domain_of(t, ids[(i + 1) % n]))
            continue;
        for (int k = 1 - run; k <= 0; k++)
            least = fmin(least, fn(u, t, ids[i + k], ids[(i + k + run) % n], 1));
        run = 0;
    }
    return least;
}

/* Everybody sends evenly to all; what leaves a domain goes over the sender's NIC. */
static double all_flows(struct sim_uplinks *u, const struct topo *t, const int *ids, int n,
                        flow_fn *fn)
{
    double least = INFINITY;

    for (int i = 0; i < n; i++) {
        int outside = 0;
        for (int k = 0; k < n; k++)
            outside += domain_of(t, ids[k]) != domain_of(t, ids[i]);
        for (int k = 0; k < n; k++)
            if (domain_of(t, ids[k]) != domain_of(t, ids[i]))
                least = fmin(least, fn(u, t, ids[i], ids[k], 1.0 / outside));
    }
    return least;
}

static double flows(struct sim_uplinks *u, const struct topo *t, enum op op,
                    const struct plan_group *g, flow_fn *fn)
{
    const int *ids = g->members;
    double least = INFINITY;

    if (op_table[op].links == OP_EXCHANGE)
        return all_flows(u, t, ids, g->size, fn);
    if (op_table[op].links == OP_RING)
        return ring_flows(u, t, ids, g->size, fn);
    int hops = op_is_pair(op) ? op == OP_PAIR_BIBW ? 2 : 1 : g->size;
    for (int i = 0; i < hops; i++)
        if (domain_of(t, ids[i]) != domain_of(t, ids[(i + 1) % g->size]))
            least = fmin(least, fn(u, t, ids[i], ids[(i + 1) % g->size], 1));
    return least;
}

static void free_uplinks(struct sim_uplinks *u)
{
    if (!u)
        return;
    free(u->up);
    free(u->down);
    free(u->endpoints);
    free(u);
}

void sim_free(struct sim *s)
{
    free(s->fault);
    free_uplinks(s->uplinks);
    memset(s, 0, sizeof(*s));
}

static struct sim_uplinks *count_uplinks(const struct topo *t, const struct round *r)
{
    size_t leaves = (size_t)t->group[LEVEL_LEAF].count + 1;
    struct sim_uplinks *u = mem_calloc(1, sizeof(*u));

    *u = (struct sim_uplinks){r, r->id, mem_calloc(leaves, sizeof(double)),
                              mem_calloc(leaves, sizeof(double)), mem_calloc(leaves, sizeof(int))};
    for (int i = 0; i < t->endpoints; i++)
        if (leaf_of(t, i) >= 0)
            u->endpoints[leaf_of(t, i)]++;
    for (int i = 0; i < r->groups; i++)
        flows(u, t, r->op, &r->group[i], count_flow);
    return u;
}

double sim_share(struct sim *s, const struct round *r, int group, enum op op)
{
    if (s->fabric->uplink_share >= 1 || !r || op == OP_PAIR_LATENCY)
        return 1;
    if (!s->uplinks || s->uplinks->round != r || s->uplinks->id != r->id) {
        free_uplinks(s->uplinks);
        s->uplinks = count_uplinks(s->truth, r);
    }
    return fmin(1, s->fabric->uplink_share *
                       flows(s->uplinks, s->truth, op, &r->group[group], room_for_flow));
}

/* --- the transport --- */

extern const struct transport_calls transport_sim;

struct sim_ctx {
    const struct sim *sim;
    struct group group;
    double share;   /* of the uplinks */
    unsigned calls; /* run()s so far: each draws its own numbers */
};

static int host_of(const struct sim *s, int id)
{
    return s->truth->endpoint[id].place.at[LEVEL_HOST];
}

/* A dead host answers nobody. */
static int answer(const struct sim *s, const struct group *g, struct err *err)
{
    for (int f = 0; f < s->faults; f++)
        for (int i = 0; s->fault[f].kind == FAULT_DEAD_HOST && i < g->size; i++)
            if (host_of(s, g->members[i]) == s->fault[f].a)
                return err_set(err, "no answer from host %s", s->truth->host[s->fault[f].a].name);
    return 0;
}

static int sim_open(void **out, const struct group *g, size_t max_bytes, struct err *err)
{
    struct sim *s = g->comm;

    (void)max_bytes;
    if (answer(s, g, err) < 0)
        return -1;
    struct sim_ctx *ctx = mem_calloc(1, sizeof(*ctx));
    ctx->sim = s;
    ctx->group = *g;
    ctx->share = sim_share(s, g->round, g->index, g->round->op);
    *out = ctx;
    return 0;
}

static unsigned long long mix(unsigned long long h, unsigned long long v)
{
    h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdULL;
}

static int sim_run(void *p, enum op op, size_t bytes, int n, double *sec, struct err *err)
{
    struct sim_ctx *ctx = p;
    const struct group *g = &ctx->group;
    const struct sim *s = ctx->sim;
    double exact = op_is_pair(op)
                       ? sim_pair(s, op, g->members[0], g->members[1], (double)bytes, ctx->share)
                       : sim_collective(s, op, g->members, g->size, (double)bytes, ctx->share);
    unsigned long long seed = s->seed;
    struct rng rng;

    (void)err;
    seed = mix(seed, (unsigned)g->round->id);
    seed = mix(seed, (unsigned)g->index);
    seed = mix(seed, (unsigned)g->epoch);
    seed = mix(seed, bytes * OP_COUNT + op);
    seed = mix(seed, ctx->calls++);
    rng_seed(&rng, seed);
    for (int i = 0; i < n; i++)
        sec[i] = s->noise > 0 ? exact * exp(s->noise * rng_normal(&rng)) : exact;
    return 0;
}

static int sim_check(void *p, enum op op, size_t bytes, struct err *err)
{
    const struct sim_ctx *ctx = p;
    const struct sim *s = ctx->sim;

    for (int f = 0; f < s->faults; f++)
        for (int i = 0; s->fault[f].kind == FAULT_CORRUPT && i < ctx->group.size; i++)
            if (ctx->group.members[i] == s->fault[f].a &&
                !(op_is_pair(op) && i == 0 && op == OP_PAIR_BW))
                return err_data(err, "%s: endpoint %d: byte %zu is wrong", op_name(op),
                                s->fault[f].a, bytes / 2);
    return 0;
}

static void sim_close(void *p)
{
    free(p);
}

const struct transport_calls transport_sim = {
    .open = sim_open,
    .run = sim_run,
    .check = sim_check,
    .close = sim_close,
};
