/* SPDX-License-Identifier: BSD-3-Clause */
/* simgrid.c - a cost matrix as a platform of SimGrid (https://simgrid.org, version 3.32 and later),
 * so that smpirun can run MPI programs on the measured or published machine.
 *
 * Every host has two full-duplex ports, for traffic that crosses NICs and for traffic that does
 * not, each as fast as its fastest healthy pair; flows of one host share a port.  The route of a
 * pair is the port of its source, its latency, the port of its destination and, if the pair is
 * slower than the ports, a link of its own.  Latency and bandwidth of each pair equal matrix_pair()
 * under smpirun --cfg=network/model:CM02 --cfg=network/crosstraffic:0 (the platform file contains
 * these settings, and the removal of TCP's window limit). */
#include "export/export_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "base/mem.h"
#include "base/units.h"
#include "export/pair_cost.h"

/* A platform has a route for each pair, so more nodes make files of hundreds of megabytes. */
enum { SIMGRID_NODES_MAX = 2048 };

/* Bandwidth is the slope between the last two sizes, where latency has no influence. */
enum { SIZES = 3 };
static const double size[SIZES] = {1, 512.0 * (1 << 20), 1024.0 * (1 << 20)};

/* A port faster than a pair by less than this needs no link of its own for the pair. */
#define NARROWER (1 - 1e-6)

struct simgrid_pair {
    double alpha, Bps;
    bool nic;
};

struct simgrid_draw {
    FILE *f;
    const struct matrix *m;
    struct export_nodes nodes;
    char **name; /* name of each node, escaped for XML */
    struct pair_cost quote[SIZES];
    double *port[2]; /* B/s of each node, without and with NICs; 0: none */
    double *latency; /* distinct values */
    int latencies;
};

/* Latency and bandwidth between nodes a and b. */
static int pair_of(const struct simgrid_draw *d, int a, int b, struct simgrid_pair *p,
                   struct err *err)
{
    const struct topo *t = &d->m->topo;
    int from = d->nodes.id[a], to = d->nodes.id[b];
    const struct tier *tier = &d->m->tier[topo_tier(t, from, to)];
    double sec[SIZES];

    for (int i = 0; i < SIZES; i++)
        sec[i] = pair_cost_of(&d->quote[i], from, to);
    p->alpha = sec[0];
    p->Bps = (size[2] - size[1]) / (sec[2] - sec[1]);
    p->nic = tier->nic;
    if (!(p->alpha >= 0 && p->alpha < 1e6) || !(p->Bps > 0) || isinf(p->Bps))
        return err_data(err,
                        "the matrix has no latency or bandwidth for endpoints %d and %d (tier %s)",
                        from, to, tier->rule.name);
    return 0;
}

static int latency_index(struct simgrid_draw *d, double alpha)
{
    for (int i = 0; i < d->latencies; i++)
        if (d->latency[i] == alpha)
            return i;
    MEM_PUSH(d->latency, d->latencies) = alpha;
    return d->latencies - 1;
}

/* First pass over the pairs: find the speed of the ports, and the distinct latencies. */
static int survey(struct simgrid_draw *d, struct err *err)
{
    struct simgrid_pair p;

    for (int a = 0; a < d->nodes.count; a++)
        for (int b = 0; b < d->nodes.count; b++) {
            if (a == b)
                continue;
            if (pair_of(d, a, b, &p, err) < 0)
                return -1;
            double *port = d->port[p.nic];
            port[a] = port[a] > p.Bps ? port[a] : p.Bps;
            port[b] = port[b] > p.Bps ? port[b] : p.Bps;
            latency_index(d, p.alpha);
        }
    return 0;
}

static const char *const port_name[2] = {"local", "nic"};

static void put_nodes(struct simgrid_draw *d)
{
    char text[FOREIGN_TEXT];

    for (int i = 0; i < d->nodes.count; i++)
        fprintf(d->f, "    <host id=\"%s\" speed=\"1Gf\"/>\n", d->name[i]);
    for (int i = 0; i < d->nodes.count; i++)
        for (int k = 0; k < 2; k++)
            if (d->port[k][i] > 0)
                fprintf(d->f,
                        "    <link id=\"%s:%s\" bandwidth=\"%s\" latency=\"0s\" "
                        "sharing_policy=\"SPLITDUPLEX\"/>\n",
                        d->name[i], port_name[k],
                        units_foreign_text(text, FOREIGN_SIMGRID_BANDWIDTH, d->port[k][i]));
    for (int i = 0; i < d->latencies; i++)
        fprintf(d->f,
                "    <link id=\"latency:%d\" bandwidth=\"1e18Bps\" latency=\"%s\" "
                "sharing_policy=\"FATPIPE\"/>\n",
                i, units_foreign_text(text, FOREIGN_SIMGRID_LATENCY, d->latency[i]));
}

static void put_port(struct simgrid_draw *d, const struct simgrid_pair *p, int node,
                     const char *way)
{
    fprintf(d->f, "<link_ctn id=\"%s:%s\" direction=\"%s\"/>", d->name[node], port_name[p->nic],
            way);
}

/* True if the pair is slower than its ports, and needs a link of its own. */
static bool is_narrow(const struct simgrid_draw *d, const struct simgrid_pair *p, int a, int b)
{
    return p->Bps < fmin(d->port[p->nic][a], d->port[p->nic][b]) * NARROWER;
}

static void put_pair_link(struct simgrid_draw *d, const struct simgrid_pair *p, int a, int b,
                          bool both)
{
    char text[FOREIGN_TEXT];

    if (is_narrow(d, p, a, b))
        fprintf(d->f,
                "    <link id=\"pair:%d:%d\" bandwidth=\"%s\" latency=\"0s\" "
                "sharing_policy=\"%s\"/>\n",
                a, b, units_foreign_text(text, FOREIGN_SIMGRID_BANDWIDTH, p->Bps),
                both ? "SPLITDUPLEX" : "SHARED");
}

/* Route a -> b; `both`: also back. */
static void put_route(struct simgrid_draw *d, const struct simgrid_pair *p, int a, int b, bool both)
{
    fprintf(d->f, "    <route src=\"%s\" dst=\"%s\" symmetrical=\"%s\">", d->name[a], d->name[b],
            both ? "YES" : "NO");
    put_port(d, p, a, "UP");
    fprintf(d->f, "<link_ctn id=\"latency:%d\"/>", latency_index(d, p->alpha));
    if (is_narrow(d, p, a, b))
        fprintf(d->f, "<link_ctn id=\"pair:%d:%d\"%s/>", a, b, both ? " direction=\"UP\"" : "");
    put_port(d, p, b, "DOWN");
    fputs("</route>\n", d->f);
}

static bool same_pair(const struct simgrid_pair *p, const struct simgrid_pair *q)
{
    return p->alpha == q->alpha && p->Bps == q->Bps && p->nic == q->nic;
}

/* Two passes, because the platform's grammar needs every link before the first route. */
static int put_pairs(struct simgrid_draw *d,
                     void (*put)(struct simgrid_draw *, const struct simgrid_pair *, int, int,
                                 bool),
                     struct err *err)
{
    struct simgrid_pair there, back;

    for (int a = 0; a < d->nodes.count; a++)
        for (int b = a + 1; b < d->nodes.count; b++) {
            if (pair_of(d, a, b, &there, err) < 0 || pair_of(d, b, a, &back, err) < 0)
                return -1;
            bool both = same_pair(&there, &back);
            put(d, &there, a, b, both);
            if (!both)
                put(d, &back, b, a, false);
        }
    return 0;
}

static void put_head(struct simgrid_draw *d)
{
    fputs("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n",
          d->f);
    fprintf(d->f, "<!-- railgauge %s: %d nodes, %s -->\n", RG_VERSION, d->nodes.count,
            d->m->fabric ? "from a preset" : "from a measured matrix");
    fputs("<platform version=\"4.1\">\n  <config>\n"
          "    <prop id=\"network/model\" value=\"CM02\"/>\n"
          "    <prop id=\"network/crosstraffic\" value=\"0\"/>\n"
          "    <prop id=\"network/TCP-gamma\" value=\"0\"/>\n  </config>\n"
          "  <zone id=\"world\" routing=\"Full\">\n",
          d->f);
}

/* Check for names that are single words, because smpirun's host file has no quotes. */
static int check_names(const struct export_nodes *n, struct err *err)
{
    for (int i = 0; i < n->count; i++)
        if (n->name[i][strspn(n->name[i], HOST_PLAIN)])
            return err_data(err,
                            "smpirun reads names of letters, digits, dot, dash and underscore, "
                            "not \"%s\"",
                            n->name[i]);
    return 0;
}

static void open_draw(struct simgrid_draw *d, const struct export_run *e)
{
    d->name = mem_calloc((size_t)d->nodes.count + 1, sizeof(*d->name));
    for (int i = 0; i < d->nodes.count; i++)
        d->name[i] = export_xml(d->nodes.name[i]);
    for (int i = 0; i < SIZES; i++)
        pair_cost_init(&d->quote[i], e->m, QUANTITY_TIME, size[i]);
    d->port[0] = mem_calloc((size_t)d->nodes.count + 1, sizeof(double));
    d->port[1] = mem_calloc((size_t)d->nodes.count + 1, sizeof(double));
}

static void close_draw(struct simgrid_draw *d)
{
    for (int i = 0; i < SIZES; i++)
        pair_cost_free(&d->quote[i]);
    hostlist_free(d->name, d->nodes.count);
    export_nodes_free(&d->nodes);
    free(d->port[0]);
    free(d->port[1]);
    free(d->latency);
}

/* EXIT_USAGE: too many nodes, fewer than two, or hosts_per_rack without racks; EXIT_DATA: a pair
 * without latency or bandwidth. */
int simgrid_write(const struct export_run *e, struct err *err)
{
    const struct export_limit limit = {"a SimGrid platform", 2, SIMGRID_NODES_MAX, 100, '-'};
    struct simgrid_draw d = {.f = e->out, .m = e->m};
    int rc = export_nodes_choose(&d.nodes, e, &limit, err);

    if (rc == 0 && e->second)
        rc = check_names(&d.nodes, err);
    open_draw(&d, e);
    if (rc == 0)
        rc = survey(&d, err);
    if (rc == 0) {
        put_head(&d);
        put_nodes(&d);
        rc = put_pairs(&d, put_pair_link, err);
        if (rc == 0)
            rc = put_pairs(&d, put_route, err);
        fputs("  </zone>\n</platform>\n", e->out);
    }
    if (rc == 0)
        export_nodes_put(e, &d.nodes);
    close_draw(&d);
    return rc;
}
