/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict/below_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "base/units.h"
#include "measure/transports/transport.h"
#include "topo/gpu.h"
#include "topo/nic.h"

/* --- which endpoint is which --- */

const char *below_host(const struct topo *t, int endpoint)
{
    return t->host[topo_at(t, endpoint, LEVEL_HOST)].name;
}

/* NICs are equal by name, or by the GUID of their port because containers rename them. */
static bool same_nic(const struct nic *x, const struct nic *y)
{
    return !strcmp(x->name, y->name) || (*x->guid && !strcmp(x->guid, y->guid));
}

static bool same_device(const struct topo *t, int a, const struct topo *u, int b)
{
    const struct endpoint *x = &t->endpoint[a], *y = &u->endpoint[b];
    const char *p = x->gpu >= 0 ? t->gpu[x->gpu].uuid : "",
               *q = y->gpu >= 0 ? u->gpu[y->gpu].uuid : "";

    if (*p && *q)
        return !strcmp(p, q);
    if (*x->busid && *y->busid)
        return !strcmp(x->busid, y->busid);
    return x->local == y->local;
}

/* Score how well endpoint b below matches a above on one host; 0: not at all.  The NIC decides, or
 * the device if a NIC is unknown.  At equal NICs the same device scores higher. */
static int likeness(const struct topo *t, int a, const struct topo *u, int b)
{
    int x = t->endpoint[a].nic, y = u->endpoint[b].nic;
    int device = same_device(t, a, u, b);

    if (x >= 0 && y >= 0)
        return same_nic(&t->nic[x], &u->nic[y]) ? 2 + device : 0;
    return device;
}

/* List endpoints by host: those of host h are list[start[h]] .. list[start[h + 1] - 1]. */
static int *by_host(const struct topo *t, int **list)
{
    int *start = mem_ints(t->hosts + 2, 0);

    *list = mem_ints(t->endpoints + 1, 0);
    for (int i = 0; i < t->endpoints; i++)
        start[topo_at(t, i, LEVEL_HOST) + 2]++;
    for (int h = 0; h < t->hosts; h++)
        start[h + 2] += start[h + 1];
    for (int i = 0; i < t->endpoints; i++)
        (*list)[start[topo_at(t, i, LEVEL_HOST) + 1]++] = i;
    return start;
}

static void match(struct below *b)
{
    const struct topo *t = b->above.t, *u = b->below.t;
    int *list, *start = by_host(u, &list);

    b->to = mem_ints(t->endpoints + 1, -1);
    b->next = mem_ints(t->endpoints + 1, -1);
    b->first = mem_ints(u->endpoints + 1, -1);
    for (int i = t->endpoints - 1; i >= 0; i--) {
        int host = topo_find_host(u, below_host(t, i)), most = 0;
        for (int k = host < 0 ? 0 : start[host]; host >= 0 && k < start[host + 1]; k++) {
            int like = likeness(t, i, u, list[k]);
            if (like <= most)
                continue;
            most = like;
            b->to[i] = list[k];
        }
        if (b->to[i] < 0)
            continue;
        b->matched++;
        b->next[i] = b->first[b->to[i]];
        b->first[b->to[i]] = i;
    }
    free(start);
    free(list);
}

static const char *words_of(const struct matrix *m)
{
    const struct transport *t = transport_find(m->transport);

    return t && t->words ? t->words : m->transport;
}

/* True for another transport of smaller depth, or of unknown depth.  Nothing lies below a transport
 * that uses only NICs. */
static bool can_lie_below(const struct matrix *above, const struct matrix *below)
{
    const struct transport *x = transport_find(above->transport),
                           *y = transport_find(below->transport);

    if (!strcmp(above->transport, below->transport) || (x && x->wire))
        return false;
    return !x || !y || !x->depth || y->depth < x->depth;
}

static void open_side(struct below_side *s, const struct below_layer *of)
{
    s->of = *of;
    s->t = of->t ? of->t : &of->m->topo;
    s->count = of->p ? observe(&s->obs, of->p, true) : 0;
}

int below_match(struct below *b, const struct below_layer *above, const struct below_layer *below,
                const char *path, struct err *err)
{
    *b = (struct below){.upper = words_of(above->m), .lower = words_of(below->m)};
    if (!can_lie_below(above->m, below->m))
        return err_data(err, "%s is of transport %s, which does not lie below %s", path,
                        below->m->transport, above->m->transport);
    open_side(&b->above, above);
    open_side(&b->below, below);
    match(b);
    return b->matched
               ? 0
               : err_data(err,
                          "%s has no NIC or GPU of the campaign's: its hosts are %s ..., the "
                          "campaign's %s ...",
                          path, b->below.t->hosts ? b->below.t->host[0].name : "none",
                          b->above.t->hosts ? b->above.t->host[0].name : "none");
}

void below_free(struct below *b)
{
    free(b->above.obs);
    free(b->below.obs);
    free(b->to);
    free(b->first);
    free(b->next);
    memset(b, 0, sizeof(*b));
}

/* --- properties of pairs --- */

/* True if the transport uses nothing but NICs.  Assumed of a transport unknown to this program,
 * because nothing else is known of it. */
static bool only_nics(const struct below_side *s)
{
    const struct transport *t = transport_find(s->of.m->transport);

    return t ? t->wire : strcmp(s->of.m->transport, "preset") != 0;
}

bool below_crosses(const struct below_side *s, int src, int dst)
{
    const struct matrix *m = s->of.m;

    return src != dst && m->tiers &&
           (only_nics(s) || m->tier[topo_tier(&m->topo, src, dst)].nic ||
            topo_hides_nics(&m->topo));
}

const struct tier *below_tier(const struct below_side *s, int src, int dst)
{
    const struct matrix *m = s->of.m;

    return &m->tier[only_nics(s) ? topo_tier(&m->topo, src, dst)
                                 : topo_nic_tier(&m->topo, src, dst)];
}

static const struct curve *curve_of(const struct tier *t)
{
    return t->curve[DIR_UNI].points ? &t->curve[DIR_UNI] : &t->curve[DIR_ONEWAY];
}

double below_like(const struct below_side *s, int src, int dst, double bytes)
{
    return bytes / curve_time(curve_of(below_tier(s, src, dst)), bytes);
}

static double largest_of(const struct below_side *s, int src, int dst)
{
    const struct curve *c = curve_of(below_tier(s, src, dst));

    return c->points ? c->point[c->points - 1].bytes : 0;
}

double below_size(const struct below *b, int src, int dst)
{
    return fmin(largest_of(&b->above, src, dst), largest_of(&b->below, b->to[src], b->to[dst]));
}

/* True if this observation was of traffic over NICs. */
static bool over_nics(const struct below_side *s, const struct obs *o)
{
    return o->by_nic || only_nics(s) ||
           s->of.m->tier[topo_tier(&s->of.m->topo, o->src, o->dst)].nic;
}

static int first_of(const struct below_side *s, enum op op, int src, int dst)
{
    int lo = 0, hi = s->count;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        const struct obs *o = &s->obs[mid];
        if (stats_order((double[]){o->op, o->src, o->dst}, (double[]){op, src, dst}, 3) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Find the observation of a pair at this size (0: at the largest), measured alone if there is
 * one. */
static const struct obs *pick(const struct below_side *s, enum op op, int src, int dst,
                              double bytes)
{
    const struct obs *best = NULL;

    for (int i = first_of(s, op, src, dst); i < s->count; i++) {
        const struct obs *o = &s->obs[i];
        if (o->op != op || o->src != src || o->dst != dst)
            break;
        if (over_nics(s, o) && (!(bytes > 0) || o->bytes == bytes) &&
            (!best || (obs_epochs(o) > 0) > (obs_epochs(best) > 0) ||
             ((obs_epochs(o) > 0) == (obs_epochs(best) > 0) && o->bytes >= best->bytes)))
            best = o; /* sorted by size; alone last within a size */
    }
    return best;
}

double below_common_size(const struct below *b, int src, int dst)
{
    const struct below_side *x = &b->above, *y = &b->below;
    double best = 0;

    for (int i = first_of(x, OP_PAIR_BW, src, dst); i < x->count; i++) {
        const struct obs *o = &x->obs[i];
        if (o->op != OP_PAIR_BW || o->src != src || o->dst != dst)
            break;
        if (over_nics(x, o) && obs_epochs(o) && o->bytes > best &&
            pick(y, OP_PAIR_BW, b->to[src], b->to[dst], o->bytes))
            best = o->bytes;
    }
    return best > 0 ? best : below_size(b, src, dst);
}

/* --- figures --- */

/* An unknown interval is taken to be no narrower than this. */
static const double narrowest = 0.005;

struct below_figure below_nothing(void)
{
    return (struct below_figure){NAN, NAN, NAN, NAN, NAN, NAN, 0};
}

/* half: half width of the interval of share, relative to share. */
static struct below_figure figure(double share, double half, double like, int pairs)
{
    const double wide = exp(fmax(half, narrowest));

    return (struct below_figure){.Bps = share * like,
                                 .lo = share / wide * like,
                                 .hi = share * wide * like,
                                 .share = share,
                                 .share_lo = share / wide,
                                 .share_hi = share * wide,
                                 .pairs = pairs};
}

/* Returns the product of the factors of the matrix's parts on the path. */
static double share_of(const struct matrix *m, const struct tier *t, int src, int dst)
{
    double share = 1;

    for (int i = 0; i < m->exceptions; i++)
        if (matrix_crosses(m, &m->exception[i], src, dst, (int)(t - m->tier)))
            share = fmin(share, m->exception[i].factor);
    return share;
}

/* True if the matrix judged all parts of a kind, so that a part without exception is good. */
static bool saw_all(const struct matrix *m, enum seen kind)
{
    const struct seen_parts *s = matrix_seen(m, kind);

    return s && s->judged >= s->parts;
}

struct below_figure below_by_matrix(const struct below_side *s, int src, int dst, double bytes)
{
    if (!below_crosses(s, src, dst))
        return below_nothing();
    const struct tier *t = below_tier(s, src, dst);
    double like = below_like(s, src, dst, bytes);
    if (!(like > 0))
        return below_nothing();
    return figure(share_of(s->of.m, t, src, dst), 2 * 1.4826 * t->spread, like, 0);
}

/* Compare with a healthy pair at the measured size; the share is then used at size `bytes`. */
static struct below_figure by_points(const struct below_side *s, const struct obs *o, double bytes)
{
    double share = below_like(s, o->src, o->dst, o->bytes) * o->sec / o->bytes;

    if (!obs_epochs(o))
        return figure(0, 0, below_like(s, o->src, o->dst, bytes), 1);
    return figure(1 / share, 1.96 * observe_noise(o), below_like(s, o->src, o->dst, bytes), 1);
}

struct below_figure below_pair_figure(const struct below_side *s, int src, int dst, double bytes)
{
    if (!s->of.p)
        return saw_all(s->of.m, SEEN_NIC) ? below_by_matrix(s, src, dst, bytes) : below_nothing();
    const struct obs *o = pick(s, OP_PAIR_BW, src, dst, bytes);
    if (!o)
        o = pick(s, OP_PAIR_BW, src, dst, 0);
    return o ? by_points(s, o, bytes) : below_nothing();
}

/* --- over many pairs --- */

static bool any_takes(const struct below *b, below_takes *takes, const void *of, int src, int dst)
{
    for (int x = b->first[src]; x >= 0; x = b->next[x])
        for (int y = b->first[dst]; y >= 0; y = b->next[y])
            if (x != y && takes(of, x, y))
                return true;
    return false;
}

struct gathered {
    double *v, *like, noise;
    int n, likes;
};

/* Returns the median and its interval, which is at least as wide as the noise of one value
 * allows. */
static struct below_figure gathered_middle(struct gathered *g)
{
    struct below_figure f = below_nothing();
    double lo, hi;

    if (g->n) {
        const double rate = stats_median(g->like, g->likes);
        stats_sort(g->v, g->n);
        stats_median_ci(g->v, g->n, &lo, &hi);
        f = figure(stats_median(g->v, g->n), g->noise / sqrt(g->n), rate, g->n);
        f.share_lo = fmin(f.share_lo, lo);
        f.share_hi = fmax(f.share_hi, hi);
        f.lo = f.share_lo * rate;
        f.hi = f.share_hi * rate;
    }
    free(g->v);
    free(g->like);
    return f;
}

/* Mark the parts of the matrix below that belong to other faults because fewer than half of these
 * pairs cross them.  The caller frees. */
static bool *others_parts(const struct below *b, below_takes *takes, const void *of)
{
    const struct below_side *s = &b->below;
    const struct matrix *m = s->of.m;
    int *crossed = mem_ints(m->exceptions, 0), all = 0;
    bool *other = mem_calloc((size_t)m->exceptions + 1, sizeof(*other));

    for (int i = first_of(s, OP_PAIR_BW, -1, -1); i < s->count && s->obs[i].op == OP_PAIR_BW; i++) {
        const struct obs *o = &s->obs[i];
        if (!m->exceptions || !any_takes(b, takes, of, o->src, o->dst))
            continue;
        const int tier = (int)(below_tier(s, o->src, o->dst) - m->tier);
        all++;
        for (int k = 0; k < m->exceptions; k++)
            crossed[k] += matrix_crosses(m, &m->exception[k], o->src, o->dst, tier);
    }
    for (int k = 0; k < m->exceptions; k++)
        other[k] = 2 * crossed[k] < all;
    free(crossed);
    return other;
}

static bool suffers(const struct below_side *s, const bool *other, int src, int dst)
{
    const struct matrix *m = s->of.m;
    const int tier = (int)(below_tier(s, src, dst) - m->tier);

    for (int k = 0; k < m->exceptions; k++)
        if (other[k] && matrix_crosses(m, &m->exception[k], src, dst, tier))
            return true;
    return false;
}

struct below_figure below_over(const struct below *b, below_takes *takes, const void *of,
                               double bytes)
{
    const struct below_side *s = &b->below;
    bool *other = others_parts(b, takes, of);
    struct gathered g = {0};

    for (int i = first_of(s, OP_PAIR_BW, -1, -1), k; i < s->count && s->obs[i].op == OP_PAIR_BW;
         i = k) {
        const struct obs *o = &s->obs[i];
        for (k = i + 1; k < s->count && s->obs[k].op == o->op && s->obs[k].src == o->src &&
                        s->obs[k].dst == o->dst;
             k++)
            ;
        if (!any_takes(b, takes, of, o->src, o->dst) || suffers(s, other, o->src, o->dst) ||
            !(o = pick(s, o->op, o->src, o->dst, 0)))
            continue;
        struct below_figure f = by_points(s, o, bytes);
        if (isnan(f.share))
            continue;
        MEM_PUSH(g.v, g.n) = f.share;
        MEM_PUSH(g.like, g.likes) = below_like(s, o->src, o->dst, bytes);
        g.noise = fmax(g.noise, obs_epochs(o) ? 1.96 * observe_noise(o) : 0);
    }
    free(other);
    return gathered_middle(&g);
}

struct below_figure below_over_matrix(const struct below *b, below_takes *takes, const void *of,
                                      double bytes, enum seen kind, const int *end, int ends)
{
    struct gathered g = {0};

    for (int i = 0; i < ends && saw_all(b->below.of.m, kind); i++)
        for (int k = 0; k < ends; k++) {
            int x = b->to[end[i]], y = b->to[end[k]];
            if (i == k || x < 0 || y < 0 || x == y || !takes(of, end[i], end[k]))
                continue;
            struct below_figure f = below_by_matrix(&b->below, x, y, bytes);
            if (isnan(f.share))
                continue;
            MEM_PUSH(g.v, g.n) = f.share;
            MEM_PUSH(g.like, g.likes) = below_like(&b->below, x, y, bytes);
            g.noise = fmax(g.noise, log(f.share_hi / f.share));
        }
    struct below_figure f = gathered_middle(&g);
    f.pairs = 0;
    return f;
}

struct below_figure below_late(const struct below *b, below_takes *takes, const void *of)
{
    const struct below_side *s = &b->below;
    struct below_figure f = below_nothing();
    double *v = NULL, noise = 0;
    int n = 0;

    for (int i = first_of(s, OP_PAIR_LATENCY, -1, -1); i < s->count; i++) {
        const struct obs *o = &s->obs[i];
        if (o->op != OP_PAIR_LATENCY)
            break;
        if (!obs_epochs(o) || !over_nics(s, o) || !any_takes(b, takes, of, o->src, o->dst))
            continue;
        const struct curve *c = &below_tier(s, o->src, o->dst)->curve[DIR_ONEWAY];
        if (!c->points)
            continue;
        MEM_PUSH(v, n) = o->sec - curve_time(c, o->bytes);
        noise = fmax(noise, 1.96 * observe_noise(o) * o->sec);
    }
    if (n) {
        stats_sort(v, n);
        stats_median_ci(v, n, &f.lo, &f.hi);
        f.Bps = stats_median(v, n);
        f.lo = fmin(f.lo, f.Bps - noise / sqrt(n));
        f.hi = fmax(f.hi, f.Bps + noise / sqrt(n));
        f.pairs = n;
    }
    free(v);
    return f;
}

int below_checked(const struct below *b, below_takes *takes, const void *of, int *wrong)
{
    const struct points *p = b->below.of.p;
    int checked = 0;

    *wrong = 0;
    for (int i = 0; p && i < p->count; i++) {
        const struct point *x = &p->point[i];
        if (!op_is_pair(x->op) || !x->checked || !any_takes(b, takes, of, x->src, x->dst))
            continue;
        checked++;
        *wrong += x->wrong;
    }
    return checked;
}
