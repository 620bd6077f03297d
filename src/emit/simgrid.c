/* SPDX-License-Identifier: BSD-3-Clause */
#include "emit/simgrid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Bandwidth is the slope between these sizes: the part of the time that latency does not explain.
 */
static const double small = 1, large = 512.0 * (1 << 20), larger = 1024.0 * (1 << 20);

/* A port that is this little faster than a pair does not need to be narrowed for it. */
#define NARROWER (1 - 1e-6)

struct pair {
    double alpha, Bps;
    bool nic;
};

struct draw {
    FILE *f;
    const struct matrix *m;
    int *id;     /* endpoint of each node */
    char **name; /* of each node */
    int nodes;
    double *port[2]; /* B/s of each node, without and with NICs; 0: none */
    double *latency; /* distinct ones */
    int latencies;
};

static int pair_of(const struct matrix *m, int a, int b, struct pair *p, struct err *err)
{
    struct cost c, lo, hi;
    int tier = topo_tier(m->topo.tier, m->topo.tiers, &m->topo.endpoint[a].place,
                         &m->topo.endpoint[b].place);

    matrix_pair(m, a, b, small, &c);
    matrix_pair(m, a, b, large, &lo);
    matrix_pair(m, a, b, larger, &hi);
    p->alpha = c.sec;
    p->Bps = (larger - large) / (hi.sec - lo.sec);
    p->nic = m->tier[tier].nic;
    if (!(p->alpha >= 0 && p->alpha < 1e6) || !(p->Bps > 0) || isinf(p->Bps))
        return err_data(err,
                        "the matrix has no latency or bandwidth for endpoints %d and %d (tier %s)",
                        a, b, m->tier[tier].rule.name);
    return 0;
}

/* Names go into XML attributes. */
static void put_name(FILE *f, const char *name)
{
    static const char special[] = "&<>\"'";

    for (; *name; name++)
        if (strchr(special, *name))
            fprintf(f, "&#%d;", *name);
        else
            fputc(*name, f);
}

static bool wanted(const struct draw *d, const struct simgrid_opts *o, int id,
                   const int *rank_in_rack)
{
    const struct endpoint *e = &d->m->topo.endpoint[id];

    if (!o->endpoints && e->local != 0)
        return false;
    return !o->hosts_per_rack || rank_in_rack[e->place.at[LEVEL_HOST]] < o->hosts_per_rack;
}

/* The how-manieth host of its rack each host is; -1 in *out[h] never happens. */
static int count_in_racks(const struct topo *t, int *in_rack, struct err *err)
{
    int *seen = mem_calloc((size_t)t->group[LEVEL_RACK].count + 1, sizeof(*seen)), rc = 0;
    bool *done = mem_calloc((size_t)t->hosts + 1, sizeof(*done));

    for (int i = 0; i < t->endpoints && rc == 0; i++) {
        const int *at = t->endpoint[i].place.at;
        if (at[LEVEL_RACK] < 0)
            rc = err_usage(err, "--hosts-per-rack: the rack of endpoint %d is not known", i);
        else if (!done[at[LEVEL_HOST]]) {
            done[at[LEVEL_HOST]] = true;
            in_rack[at[LEVEL_HOST]] = seen[at[LEVEL_RACK]]++;
        }
    }
    free(seen);
    free(done);
    return rc;
}

static int choose_nodes(struct draw *d, const struct simgrid_opts *o, struct err *err)
{
    const struct topo *t = &d->m->topo;
    int *in_rack = mem_calloc((size_t)t->hosts + 1, sizeof(*in_rack)), rc = 0;

    if (o->hosts_per_rack)
        rc = count_in_racks(t, in_rack, err);
    for (int i = 0; i < t->endpoints && rc == 0 && d->nodes <= SIMGRID_NODES_MAX; i++)
        if (wanted(d, o, i, in_rack)) {
            int names = d->nodes;
            const char *host = t->host[t->endpoint[i].place.at[LEVEL_HOST]].name;
            MEM_PUSH(d->id, d->nodes) = i;
            MEM_PUSH(d->name, names) =
                o->endpoints ? mem_printf("%s-%d", host, t->endpoint[i].local) : mem_strdup(host);
        }
    free(in_rack);
    if (rc == 0 && d->nodes > SIMGRID_NODES_MAX)
        rc = err_usage(err,
                       "more than %d nodes: a platform has a route for each pair; choose fewer "
                       "racks or --hosts-per-rack",
                       SIMGRID_NODES_MAX);
    if (rc == 0 && d->nodes < 2)
        rc = err_usage(err, "%d node%s: a platform needs two", d->nodes, d->nodes == 1 ? "" : "s");
    return rc;
}

static int latency_index(struct draw *d, double alpha)
{
    for (int i = 0; i < d->latencies; i++)
        if (d->latency[i] == alpha)
            return i;
    MEM_PUSH(d->latency, d->latencies) = alpha;
    return d->latencies - 1;
}

/* First pass over the pairs: how fast the ports must be, and which latencies there are. */
static int survey(struct draw *d, struct err *err)
{
    struct pair p;

    for (int a = 0; a < d->nodes; a++)
        for (int b = 0; b < d->nodes; b++) {
            if (a == b)
                continue;
            if (pair_of(d->m, d->id[a], d->id[b], &p, err) < 0)
                return -1;
            double *port = d->port[p.nic];
            port[a] = port[a] > p.Bps ? port[a] : p.Bps;
            port[b] = port[b] > p.Bps ? port[b] : p.Bps;
            latency_index(d, p.alpha);
        }
    return 0;
}

static const char *const port_name[2] = {"local", "nic"};

static void put_nodes(struct draw *d)
{
    for (int i = 0; i < d->nodes; i++) {
        fputs("    <host id=\"", d->f);
        put_name(d->f, d->name[i]);
        fputs("\" speed=\"1Gf\"/>\n", d->f);
    }
    for (int i = 0; i < d->nodes; i++)
        for (int k = 0; k < 2; k++) {
            if (!(d->port[k][i] > 0))
                continue;
            fputs("    <link id=\"", d->f);
            put_name(d->f, d->name[i]);
            fprintf(d->f,
                    ":%s\" bandwidth=\"%.9gBps\" latency=\"0s\" sharing_policy=\"SPLITDUPLEX\"/>\n",
                    port_name[k], d->port[k][i]);
        }
    for (int i = 0; i < d->latencies; i++)
        fprintf(d->f,
                "    <link id=\"latency:%d\" bandwidth=\"1e18Bps\" latency=\"%.9gs\" "
                "sharing_policy=\"FATPIPE\"/>\n",
                i, d->latency[i]);
}

static void put_port(struct draw *d, const struct pair *p, int node, const char *way)
{
    fputs("<link_ctn id=\"", d->f);
    put_name(d->f, d->name[node]);
    fprintf(d->f, ":%s\" direction=\"%s\"/>", port_name[p->nic], way);
}

/* Is the pair slower than what its ports leave it?  Then it has a link of its own. */
static bool is_narrow(const struct draw *d, const struct pair *p, int a, int b)
{
    return p->Bps < fmin(d->port[p->nic][a], d->port[p->nic][b]) * NARROWER;
}

static void put_pair_link(struct draw *d, const struct pair *p, int a, int b, bool both)
{
    if (is_narrow(d, p, a, b))
        fprintf(d->f,
                "    <link id=\"pair:%d:%d\" bandwidth=\"%.9gBps\" latency=\"0s\" "
                "sharing_policy=\"%s\"/>\n",
                a, b, p->Bps, both ? "SPLITDUPLEX" : "SHARED");
}

/* a -> b, and back the same way when `both`. */
static void put_route(struct draw *d, const struct pair *p, int a, int b, bool both)
{
    fputs("    <route src=\"", d->f);
    put_name(d->f, d->name[a]);
    fputs("\" dst=\"", d->f);
    put_name(d->f, d->name[b]);
    fprintf(d->f, "\" symmetrical=\"%s\">", both ? "YES" : "NO");
    put_port(d, p, a, "UP");
    fprintf(d->f, "<link_ctn id=\"latency:%d\"/>", latency_index(d, p->alpha));
    if (is_narrow(d, p, a, b))
        fprintf(d->f, "<link_ctn id=\"pair:%d:%d\"%s/>", a, b, both ? " direction=\"UP\"" : "");
    put_port(d, p, b, "DOWN");
    fputs("</route>\n", d->f);
}

static bool same_pair(const struct pair *p, const struct pair *q)
{
    return p->alpha == q->alpha && p->Bps == q->Bps && p->nic == q->nic;
}

/* The platform's grammar wants every link before the first route, hence two passes. */
static int put_pairs(struct draw *d,
                     void (*put)(struct draw *, const struct pair *, int, int, bool),
                     struct err *err)
{
    struct pair there, back;

    for (int a = 0; a < d->nodes; a++)
        for (int b = a + 1; b < d->nodes; b++) {
            if (pair_of(d->m, d->id[a], d->id[b], &there, err) < 0 ||
                pair_of(d->m, d->id[b], d->id[a], &back, err) < 0)
                return -1;
            bool both = same_pair(&there, &back);
            put(d, &there, a, b, both);
            if (!both)
                put(d, &back, b, a, false);
        }
    return 0;
}

static void put_head(struct draw *d)
{
    fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n",
          d->f);
    fprintf(d->f, "<!-- railgauge %s: %d nodes, %s -->\n", RG_VERSION, d->nodes,
            d->m->fabric ? "from a preset" : "from a measured matrix");
    fputs("<platform version=\"4.1\">\n  <config>\n"
          "    <prop id=\"network/model\" value=\"CM02\"/>\n"
          "    <prop id=\"network/crosstraffic\" value=\"0\"/>\n"
          "    <prop id=\"network/TCP-gamma\" value=\"0\"/>\n  </config>\n"
          "  <zone id=\"world\" routing=\"Full\">\n",
          d->f);
}

int simgrid_write(FILE *platform, FILE *hostfile, const struct matrix *m,
                  const struct simgrid_opts *o, struct err *err)
{
    struct draw d = {.f = platform, .m = m};
    int rc = choose_nodes(&d, o, err);

    d.port[0] = mem_calloc((size_t)d.nodes + 1, sizeof(double));
    d.port[1] = mem_calloc((size_t)d.nodes + 1, sizeof(double));
    if (rc == 0)
        rc = survey(&d, err);
    if (rc == 0) {
        put_head(&d);
        put_nodes(&d);
        rc = put_pairs(&d, put_pair_link, err);
        if (rc == 0)
            rc = put_pairs(&d, put_route, err);
        fputs("  </zone>\n</platform>\n", platform);
    }
    for (int i = 0; i < d.nodes; i++) {
        if (hostfile && rc == 0)
            fprintf(hostfile, "%s\n", d.name[i]);
        free(d.name[i]);
    }
    free(d.name);
    free(d.id);
    free(d.port[0]);
    free(d.port[1]);
    free(d.latency);
    return rc;
}
