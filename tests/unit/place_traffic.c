/* SPDX-License-Identifier: BSD-3-Clause */
/* place_traffic.c - the ranks of meshes on clusters of all kinds: what the best order could be, and
 * that place finds it. */
#include "place_scene.h"
#include "test.h"

enum { AXIS = 64, DOMAINS = 16 };

/* Seconds of a flow inside a domain, and more outside, on the healthy machine. */
struct price {
    double near, more;
};

static struct price price_of(const struct matrix *m, double bytes)
{
    struct price p = {INFINITY, 0};

    for (int t = 0; t < m->tiers - 1; t++)
        p.near = fmin(p.near, matrix_tier_time(&m->tier[t], bytes, 1));
    p.more = matrix_tier_time(&m->tier[m->tiers - 1], bytes, 1) - p.near;
    return p;
}

struct prices {
    struct price tp, dp, pp, ep;
};

static struct prices prices_of(const struct matrix *m, struct mesh_job j)
{
    struct prices p = {price_of(m, tp_bytes), price_of(m, dp_bytes), price_of(m, pp_bytes), {0, 0}};

    if (j.ep > 1)
        p.ep = price_of(m, ep_bytes / (j.ep - 1));
    return p;
}

/* --- a bound on the cost of all flows --- */

/* One axis of the mesh: the Laplacian of who sends to whom, weighted with `more`. */
struct laplacian {
    double a[AXIS][AXIS], value[AXIS];
    int n;
};

static void join(struct laplacian *x, int i, int k, double weight)
{
    x->a[i][i] += weight;
    x->a[k][k] += weight;
    x->a[i][k] -= weight;
    x->a[k][i] -= weight;
}

static void ring(struct laplacian *x, double weight)
{
    for (int i = 0; x->n > 1 && i < x->n; i++)
        join(x, i, (i + 1) % x->n, weight);
}

static void turn(struct laplacian *x, int p, int q)
{
    double theta = (x->a[q][q] - x->a[p][p]) / (2 * x->a[p][q]);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;

    for (int k = 0; k < x->n; k++) {
        double u = x->a[k][p], v = x->a[k][q];
        x->a[k][p] = c * u - s * v;
        x->a[k][q] = s * u + c * v;
    }
    for (int k = 0; k < x->n; k++) {
        double u = x->a[p][k], v = x->a[q][k];
        x->a[p][k] = c * u - s * v;
        x->a[q][k] = s * u + c * v;
    }
}

/* Eigenvalues by Jacobi's rotations. */
static void solve(struct laplacian *x)
{
    for (int sweep = 0; sweep < 50; sweep++)
        for (int p = 0; p < x->n; p++)
            for (int q = p + 1; q < x->n; q++)
                if (fabs(x->a[p][q]) > 1e-13)
                    turn(x, p, q);
    for (int i = 0; i < x->n; i++)
        x->value[i] = x->a[i][i];
}

/* Ascending eigenvalues of the whole mesh: sums of one of each axis. */
static void spectrum(double *all, const struct prices *p, struct mesh_job j)
{
    static struct laplacian tp, dp, pp;
    int n = 0;

    memset(&tp, 0, sizeof(tp));
    memset(&dp, 0, sizeof(dp));
    memset(&pp, 0, sizeof(pp));
    tp.n = j.tp;
    dp.n = j.dp;
    pp.n = j.pp;
    ring(&tp, p->tp.more);
    ring(&dp, p->dp.more);
    for (int x = 0; x < j.dp; x++) /* both ways: twice for each pair */
        for (int e = x / j.ep * j.ep; e < x / j.ep * j.ep + j.ep; e++)
            if (e != x)
                join(&dp, x, e, p->ep.more);
    for (int s = 0; s + 1 < j.pp; s++)
        join(&pp, s, s + 1, p->pp.more);
    solve(&tp);
    solve(&dp);
    solve(&pp);
    for (int a = 0; a < j.tp; a++)
        for (int b = 0; b < j.dp; b++)
            for (int c = 0; c < j.pp; c++)
                all[n++] = tp.value[a] + dp.value[b] + pp.value[c];
    stats_sort(all, n);
}

static int descending(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

/* Free seats of each domain, the largest first. */
static void domain_seats(const struct scene *s, int *size)
{
    const struct topo *t = &s->matrix.topo;

    memset(size, 0, DOMAINS * sizeof(*size));
    for (int e = 0; e < t->endpoints; e++)
        for (int i = 0; i < s->hosts; i++)
            if (t->endpoint[e].place.at[LEVEL_HOST] == s->host[i])
                size[t->endpoint[e].place.at[LEVEL_DOMAIN]]++;
    qsort(size, DOMAINS, sizeof(*size), descending);
}

/* No order costs less: flows inside domains at their price, and of those between domains at least
 * half the sum of (ranks in a domain x eigenvalue), largest with smallest (Donath and Hoffman,
 * Lower bounds for the partitioning of graphs, 1973). */
static double cost_bound(const struct scene *s, struct mesh_job j)
{
    struct prices p = prices_of(&s->matrix, j);
    int ranks = j.tp * j.dp * j.pp, size[DOMAINS], left = ranks;
    double *all = mem_calloc((size_t)ranks, sizeof(*all));
    double sum =
        ranks * ((j.tp > 1) * p.tp.near + (j.dp > 1) * p.dp.near + (j.ep - 1) * p.ep.near) +
        (ranks - j.tp * j.dp) * p.pp.near;

    spectrum(all, &p, j);
    domain_seats(s, size);
    for (int k = 0; left > 0; k++) {
        int take = size[k] < left ? size[k] : left;
        sum += 0.5 * take * all[k];
        left -= take;
    }
    free(all);
    return sum;
}

/* --- a bound on the busiest endpoint --- */

/* No domain holds all ranks, and all hang together, so that some flow is far: one of a ring, one to
 * the next stage, or those of a rank whose ep group is cut, of the smaller part: to half of it at
 * least.  Its sender, or in the last stage its receiver, has all flows of a rank besides. */
static double busy_bound(const struct scene *s, struct mesh_job j)
{
    struct prices p = prices_of(&s->matrix, j);
    double near = (j.tp > 1) * p.tp.near + (j.dp > 1) * p.dp.near + (j.ep - 1) * p.ep.near +
                  (j.pp > 1) * p.pp.near;
    double more = INFINITY;

    if (j.tp > 1)
        more = fmin(more, p.tp.more);
    if (j.dp > 1)
        more = fmin(more, p.dp.more);
    if (j.pp > 1)
        more = fmin(more, p.pp.more);
    if (j.ep > 1)
        more = fmin(more, (j.ep + 1) / 2 * p.ep.more);
    return near + more;
}

/* --- orders --- */

/* Seconds of all flows, one after another: what the communication costs. */
static double cost_of(const struct matrix *m, const struct demand *d, const int *order)
{
    struct cost c;
    double sum = 0;

    for (int i = 0; i < d->flows; i++) {
        matrix_pair(m, order[d->flow[i].src], order[d->flow[i].dst], d->flow[i].bytes, &c);
        sum += c.sec;
    }
    return sum;
}

/* Ranks scattered over all free seats: the median of nine orders. */
static double cost_of_scattered(const struct scene *s, const struct demand *d)
{
    const struct topo *t = &s->matrix.topo;
    int seats = 0, *seat = NULL;
    double cost[9];
    struct rng rng;

    for (int e = 0; e < t->endpoints; e++)
        for (int k = 0; k < s->hosts; k++)
            if (t->endpoint[e].place.at[LEVEL_HOST] == s->host[k])
                MEM_PUSH(seat, seats) = e;
    rng_seed(&rng, 3);
    for (int k = 0; k < 9; k++) {
        rng_shuffle(&rng, seat, seats);
        cost[k] = cost_of(&s->matrix, d, seat);
    }
    free(seat);
    return stats_median(cost, 9);
}

static const double rounding = 1e-5; /* curves are interpolated */

struct outcome {
    double gain;      /* scattered ranks cost so many times as much */
    double most_gain; /* with the bound instead of what was found */
    double busy;      /* bound / busiest endpoint: 1 is the best that there can be */
};

static struct outcome place_mesh(struct scene *s, struct mesh_job j, const char *name)
{
    struct demand d;
    struct placed p;
    struct err err = {0, ""};

    mesh_demand(&d, j);
    struct place_ask ask = ask_of(s);
    ask.step = NULL;
    ask.demand = &d;
    assert_int_equal(place_run(&p, &ask, &err), 0);
    check_order(s, &p);
    double random = cost_of_scattered(s, &d), cost = cost_of(&s->matrix, &d, p.order);
    double bound = cost_bound(s, j), busy = busy_bound(s, j);
    print_message("%s, tp%d dp%d pp%d ep%d: cost %.0f s, given %.0f, scattered x %.1f of at most "
                  "%.1f; busiest %.2f s, given %.2f, bound %.2f (%.2f); %ld tried in %.2f s; %s\n",
                  name, j.tp, j.dp, j.pp, j.ep, cost, cost_of(&s->matrix, &d, p.given),
                  random / cost, random / bound, p.sec, p.in_order, busy, p.bound, p.tried, p.took,
                  p.how);
    assert_true(p.sec <= p.in_order && p.bound <= p.sec);
    assert_true(busy <= p.sec * (1 + rounding) && bound <= cost * (1 + rounding));
    struct outcome o = {random / cost, random / bound, busy / p.sec};
    placed_free(&p);
    demand_free(&d);
    return o;
}

static const struct {
    struct mesh_job job;
    int racks, per_rack; /* nodes free of each rack */
    double least;        /* scattered ranks cost at least so many times as much */
} fits[] = {
    {{8, 8, 8, 8}, 8, 16, 8}, {{8, 8, 8, 8}, 10, 15, 6}, /* no rack holds a whole tp x ep block of
                                                            64 */
    {{8, 8, 8, 8}, 9, 18, 8}, {{16, 9, 4, 1}, 8, 18, 8}, {{8, 9, 4, 3}, 5, 18, 8},
};

static void open_free(struct scene *s)
{
    open_scene(s, "gb200-nvl72", 12, "mixtral-8x7b", "dp_shard=8", STRATEGY_FSDP, ORDER_MEGATRON);
}

TEST(traffic_costs_an_eighth_of_what_scattered_ranks_cost)
{
    for (size_t i = 0; i < sizeof(fits) / sizeof(*fits); i++) {
        struct scene s;
        char name[32];
        open_free(&s);
        for (int r = 0; r < fits[i].racks; r++)
            free_rack(&s, r, 0, fits[i].per_rack - 1);
        snprintf(name, sizeof(name), "%d x %d nodes", fits[i].racks, fits[i].per_rack);
        assert_true(place_mesh(&s, fits[i].job, name).gain >= fits[i].least);
        close_scene(&s);
    }
}

/* Scattered ranks cost eight times as much, or no order costs 5 % less, or none has an endpoint
 * that is 5 % less busy. */
static bool as_promised(struct outcome o)
{
    return o.gain >= 8 || o.gain > 0.95 * o.most_gain || o.busy > 0.95;
}

/* 256 ranks.  Of the racks with holes none has more than 60 seats, so that tp x ep blocks of 64 are
 * cut whatever is done, which the bounds do not know: there a gain is asked for. */
static const struct {
    struct mesh_job job;
    double in_holes;
} jobs[] = {
    {{8, 8, 4, 8}, 4.6},  {{4, 16, 4, 16}, 5}, {{1, 64, 4, 16}, 7.5},
    {{8, 32, 1, 8}, 5.9}, {{4, 8, 8, 8}, 8},
};

TEST(eight_clusters_for_all_meshes)
{
    int size[DOMAINS];

    for (size_t c = 0; c < sizeof(clusters) / sizeof(*clusters); c++)
        for (size_t k = 0; k < sizeof(jobs) / sizeof(*jobs); k++) {
            struct scene s;
            open_free(&s);
            clusters[c].make(&s);
            domain_seats(&s, size);
            struct outcome o = place_mesh(&s, jobs[k].job, clusters[c].name);
            assert_true(size[0] < 64 ? o.gain >= jobs[k].in_holes : as_promised(o));
            close_scene(&s);
        }
}
